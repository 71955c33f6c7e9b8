//! A rule of the grammar → the user's words for it.
//!
//! The match is exhaustive: a new rule needs words before anything compiles.

use crate::parse::Rule;
use crate::syntax_error;

/// A rule as the user knows it.
pub(crate) fn rule_in_words(rule: Rule) -> &'static str {
    match rule {
        Rule::EOI | Rule::end => syntax_error::END,
        Rule::step | Rule::body | Rule::strict => "an entry",
        Rule::setting | Rule::value | Rule::promise | Rule::sum | Rule::product => "a value",
        Rule::factor | Rule::negative | Rule::atom | Rule::paren | Rule::list => "a value",
        Rule::profile | Rule::literal | Rule::named => "a value",
        Rule::number => "a number",
        Rule::import | Rule::kw_import => "`import`",
        Rule::param | Rule::kw_param => "`param`",
        Rule::binding | Rule::kw_let => "`let`",
        Rule::limit | Rule::kw_limit => "`limit`",
        Rule::minimize | Rule::kw_minimize => "`minimize`",
        Rule::attribute => "an attribute",
        Rule::block => "a block",
        Rule::block_name | Rule::word => "a name",
        Rule::range | Rule::dots => "`..`",
        Rule::over | Rule::kw_over => "`over`",
        Rule::times | Rule::kw_x => "`x`",
        Rule::kw_as => "`as`",
        Rule::kw_step => "`step`",
        Rule::element | Rule::argument => "a value",
        Rule::gap | Rule::WHITESPACE | Rule::word_char | Rule::e_space | Rule::newline => syntax_error::SPACE,
        Rule::comment => syntax_error::SPACE,
        Rule::string | Rule::e_string => "a text in quotes",
        Rule::percentile => "a percentile like `p99`",
        Rule::unit | Rule::unit_word | Rule::time_word => "a unit",
        Rule::equals => "`=`",
        Rule::at_most => "`<=`",
        Rule::comma => "`,`",
        Rule::colon => "`:`",
        Rule::dot => "`.`",
        Rule::plus | Rule::minus | Rule::star | Rule::slash => "an operator",
        Rule::open_brace => "`{`",
        Rule::close_brace | Rule::e_close | Rule::e_unclosed => "`}`",
        Rule::open_paren | Rule::call => "`(`",
        Rule::close_paren => "`)`",
        Rule::open_bracket | Rule::tensor => "`[`",
        Rule::close_bracket => "`]`",
        Rule::reserved => "a word of the language",
        Rule::e_letter => "a name",
        Rule::e_dedent | Rule::e_item | Rule::e_head | Rule::e_body => "an entry",
    }
}
