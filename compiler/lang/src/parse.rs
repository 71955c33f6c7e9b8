//! Text → Ast.
//!
//! Parsing never fails: what cannot be understood is reported, left out, and remembered as
//! [`ItemKind::Broken`], so that the rest is read and one mistake is reported once. Time is linear in
//! the text; recursion is bounded by [`MAX_DEPTH`]. This is the only file that knows pest.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place takes the few rules it knows; words for all are matched one by one"
)]

use crate::ast::{Ast, Block, Comment, Expr, Item, ItemKind, Name};
use crate::depth::{self, MAX_DEPTH};
use crate::rule_in_words::rule_in_words;
use crate::syntax_error;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Fix, Outcome, Span};
use pest::Parser;
use pest::iterators::Pair;

mod again;
mod unclosed;
mod values;
pub(crate) use again::reparse;

mod grammar {
    /// The rules of `grammar/ent.pest`.
    #[derive(pest_derive::Parser)]
    #[grammar = "../../../grammar/ent.pest"]
    pub(crate) struct Grammar;
}
use grammar::Grammar;
pub(crate) use grammar::Rule;

/// At most this many syntax errors are reported in one file.
const MAX_SYNTAX_ERRORS: usize = 100;

/// Most entries are shorter than half of this.
const SHORT_ENTRY: usize = 4096;

/// Parses a file.
#[must_use]
pub fn parse(file: FileId, text: &str) -> Outcome<Ast> {
    let Entries { items, reports } = entries(file, text);
    Outcome { value: Ast { items, file }, diagnostics: reports.into_iter().map(|r| r.problem).collect() }
}

/// The entries of a file, and what was wrong with them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    pub(crate) items: Vec<Item>,
    pub(crate) reports: Vec<Report>,
}

/// A syntax error, and where the entry at the top of the file begins that has it.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) entry: usize,
    pub(crate) problem: Diagnostic,
}

/// Reads all entries of a file.
pub(crate) fn entries(file: FileId, text: &str) -> Entries {
    let mut reader = Reader::new(file, text);
    if let Some(at) = depth::too_deep(text) {
        reader.report(nested_too_deeply(reader.span(at, at + 1)));
        let items = vec![reader.broken(0, text.len(), Vec::new())];
        return Entries { items, reports: reader.reports };
    }
    let mut found = Found::default();
    let mut at = beginning(text);
    while let Some(next) = reader.step(&mut found, at) {
        at = next;
    }
    Entries { items: found.items, reports: reader.reports }
}

/// Where the first entry of a file may stand: behind its byte-order mark.
fn beginning(text: &str) -> usize {
    if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
}

/// Parses one value, as in `--set NAME=VALUE`; `text` from `start` on.
#[must_use]
pub(crate) fn parse_value(file: FileId, text: &str, start: usize) -> Outcome<Option<Expr>> {
    let mut reader = Reader { base: start, ..Reader::new(file, text) };
    let rest = text.get(start..).unwrap_or("");
    if let Some(at) = depth::too_deep(rest) {
        let at = start + at;
        return Outcome { value: None, diagnostics: vec![nested_too_deeply(reader.span(at, at + 1))] };
    }
    let value = match Grammar::parse(Rule::setting, rest) {
        Ok(mut pairs) => pairs.find(|p| p.as_rule() == Rule::value).and_then(|p| reader.value(p)),
        Err(error) => {
            let problem = reader.problem_of(&error, start);
            reader.report(problem);
            None
        }
    };
    Outcome { value, diagnostics: reader.reports.into_iter().map(|r| r.problem).collect() }
}

fn nested_too_deeply(span: Span) -> Diagnostic {
    Diagnostic::error(Code::Syntax, span, "brackets are nested too deeply")
        .label(format!("the {}th bracket that is open here", MAX_DEPTH + 1))
        .help(format!("close brackets that were left open; at most {MAX_DEPTH} may be nested"))
}

/// Turns pest's tokens into the tree.
struct Reader<'a> {
    file: FileId,
    text: &'a str,
    /// Where in `text` pest's positions start.
    base: usize,
    /// Where the entry at the top of the file begins that is being read.
    entry: usize,
    reports: Vec<Report>,
    /// Comments inside an expression; they move to the lines before its entry.
    hoisted: Vec<Comment>,
    /// Brackets that the last broken line left open: lines that continue it are not errors of their own.
    open_brackets: usize,
}

impl<'a> Reader<'a> {
    fn new(file: FileId, text: &'a str) -> Self {
        Self { file, text, base: 0, entry: 0, reports: Vec::new(), hoisted: Vec::new(), open_brackets: 0 }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        let at = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        Span { file: self.file, start: at(start), end: at(end.max(start)) }
    }

    fn span_of(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        let trailing = span.as_str().len() - span.as_str().trim_end().len();
        self.span(self.base + span.start(), self.base + span.end() - trailing)
    }

    fn report(&mut self, problem: Diagnostic) {
        let problem = match self.reports.len() {
            n if n < MAX_SYNTAX_ERRORS => problem,
            MAX_SYNTAX_ERRORS => {
                problem.help("fix these first; further syntax errors of this file are not shown")
            }
            _ => return,
        };
        self.reports.push(Report { entry: self.entry, problem });
    }

    /// Reads the next entry, line end or comment of a file from a byte on; where it ends. `None` at the end.
    fn step(&mut self, found: &mut Found, at: usize) -> Option<usize> {
        let rest = self.text.get(at..).unwrap_or("");
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        self.entry = at + spaces;
        if self.entry >= self.text.len() {
            return None;
        }
        self.base = at;
        match Grammar::parse(Rule::step, rest).map(|mut pairs| pairs.next()) {
            Ok(Some(pair)) => {
                let end = at + pair.as_span().end();
                self.take(found, pair);
                (end > at).then_some(end)
            }
            // The grammar takes any text; should it ever not, the user gets an error, not a panic.
            Ok(None) => None,
            Err(error) => {
                let problem = self.problem_of(&error, at);
                self.report(problem);
                found.items.push(self.broken(at, self.text.len(), Vec::new()));
                None
            }
        }
    }

    /// Takes one token: an entry, a comment or a line end.
    fn take(&mut self, found: &mut Found, pair: Pair<'_, Rule>) {
        let rule = pair.as_rule();
        if rule == Rule::newline {
            found.n_newlines += 1;
            found.has_newline = true;
            return;
        }
        if matches!(rule, Rule::EOI | Rule::comma) {
            return;
        }
        let follows_blank_line = found.is_after_blank_line();
        let n_newlines = std::mem::take(&mut found.n_newlines);
        if rule == Rule::comment {
            let comment = self.comment(&pair);
            match found.items.last_mut() {
                Some(last) if n_newlines == 0 && last.trailing.is_none() && !last.is_comment() => {
                    last.trailing = Some(comment);
                }
                _ => found.push_comment(comment, follows_blank_line),
            }
            return;
        }
        let span = self.span_of(&pair);
        let before = self.hoisted.len();
        let kind = self.entry(pair);
        let mut follows_blank_line = follows_blank_line;
        for comment in self.hoisted.split_off(before) {
            found.push_comment(comment, follows_blank_line);
            follows_blank_line = false;
        }
        found.items.push(Item { kind, span, follows_blank_line, trailing: None });
    }

    fn comment(&self, pair: &Pair<'_, Rule>) -> Comment {
        Comment { text: pair.as_str().trim_end().to_owned(), span: self.span_of(pair) }
    }

    /// One entry. Anything that cannot be built is broken, and has been reported.
    fn entry(&mut self, pair: Pair<'_, Rule>) -> ItemKind {
        let (rule, start) = (pair.as_rule(), self.base + pair.as_span().start());
        let end = self.base + pair.as_span().end();
        match rule {
            Rule::e_item => return self.broken_entry(pair),
            Rule::e_close => {
                if self.open_brackets == 0 {
                    let problem = Diagnostic::error(Code::Syntax, self.span(start, end), "nothing to close")
                        .label("no block is open here")
                        .help("remove this `}`, or add the block's opening line")
                        .fix(Fix::replace("remove this `}`", self.span(start, end), ""));
                    self.report(problem);
                }
                return nothing(Vec::new());
            }
            _ => self.open_brackets = 0,
        }
        if rule == Rule::block {
            return self.block(pair);
        }
        let mut names: Vec<Name> = Vec::new();
        let mut value = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::word | Rule::string => names.push(self.name(&part)),
                Rule::value => value = self.value(part),
                _ => {}
            }
        }
        let mut names = names.into_iter();
        match (rule, names.next(), value) {
            (Rule::import, Some(path), _) => ItemKind::Import { path, alias: names.next() },
            (Rule::param, Some(name), Some(value)) => ItemKind::Param { name, value },
            (Rule::binding, Some(name), Some(value)) => ItemKind::Let { name, value },
            (Rule::limit, Some(metric), Some(at_most)) => ItemKind::Limit { metric, at_most },
            (Rule::minimize, Some(metric), _) => ItemKind::Minimize { metric },
            (Rule::attribute, Some(name), Some(value)) => ItemKind::Attribute { name, value },
            (_, name, _) => nothing(name.map(|n| n.text).into_iter().collect()),
        }
    }

    fn block(&mut self, pair: Pair<'_, Rule>) -> ItemKind {
        let mut inner = pair.into_inner().peekable();
        let (mut kind, mut name, mut brace) = (None, None, Span::default());
        for part in inner.by_ref() {
            match part.as_rule() {
                Rule::word if kind.is_none() => kind = Some(self.name(&part)),
                Rule::word | Rule::string | Rule::profile => name = Some(self.name(&part)),
                Rule::open_brace => {
                    brace = self.span_of(&part);
                    break;
                }
                _ => {}
            }
        }
        let opening_comment = inner.next_if(|p| p.as_rule() == Rule::comment).map(|p| self.comment(&p));
        let (items, has_newline, is_closed) = self.block_items(inner);
        let Some(kind) = kind else { return nothing(Vec::new()) };
        let is_inline = !has_newline && opening_comment.is_none();
        let mut block = Block { kind, name, items, opening_comment, is_inline };
        if !is_closed {
            let problem = self.unclosed(&block, brace);
            self.report(problem);
            self.give_back(&mut block.items);
        }
        ItemKind::Block(block)
    }

    fn block_items<'i>(&mut self, inner: impl Iterator<Item = Pair<'i, Rule>>) -> (Vec<Item>, bool, bool) {
        let mut is_closed = false;
        let mut found = Found::default();
        for pair in inner {
            match pair.as_rule() {
                Rule::close_brace => is_closed = true,
                Rule::e_unclosed => {}
                _ => self.take(&mut found, pair),
            }
        }
        (found.items, found.has_newline, is_closed)
    }

    /// Reports what is wrong with a line (or a block's first line) that no rule understood, and still
    /// reads the block's entries for their own errors.
    fn broken_entry(&mut self, pair: Pair<'_, Rule>) -> ItemKind {
        let start = self.base + pair.as_span().start();
        let head = pair.as_str().split(['\n', '\r', '{']).next().unwrap_or("");
        let names = declared_words(head);
        if starts_entry(head) {
            self.open_brackets = 0;
        }
        let continues = self.open_brackets > 0;
        self.open_brackets = depth::brackets_left_open(self.open_brackets, head);
        if !continues && self.reports.len() <= MAX_SYNTAX_ERRORS {
            let problem = self.problem_at(start, head.trim_end());
            self.report(problem);
        }
        let body = pair.into_inner().skip_while(|p| p.as_rule() != Rule::open_brace).skip(1);
        let before = self.hoisted.len();
        let (items, ..) = self.block_items(body);
        self.hoisted.truncate(before);
        ItemKind::Broken { names, items }
    }

    fn broken(&self, start: usize, end: usize, names: Vec<String>) -> Item {
        let kind = nothing(names);
        Item { kind, span: self.span(start, end), follows_blank_line: false, trailing: None }
    }

    /// Reads an entry again with the strict rules alone, for what it needed and did not get.
    fn problem_at(&self, start: usize, head: &str) -> Diagnostic {
        if let Some(problem) = syntax_error::foreign_habit(self.span(start, start + head.len()), head) {
            return problem;
        }
        let rest = self.text.get(start..).unwrap_or("");
        // pest walks through all it was given to describe an error, so it is given little if that will do.
        let mut end = SHORT_ENTRY.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let short = Grammar::parse(Rule::strict, rest.get(..end).unwrap_or(rest));
        let parsed = match short {
            Err(error) if end < rest.len() && reach(&error) + SHORT_ENTRY / 2 > end => {
                Grammar::parse(Rule::strict, rest)
            }
            short => short,
        };
        match parsed {
            Err(error) => self.problem_of(&error, start),
            // It parsed here and not in its place: it belongs to the top of a file.
            Ok(_) => {
                Diagnostic::error(Code::Syntax, self.span(start, start + head.len()), "unexpected entry")
                    .label("this cannot stand here")
                    .help("move it to the top of the file")
            }
        }
    }

    fn problem_of(&self, error: &pest::error::Error<Rule>, base: usize) -> Diagnostic {
        let at = base + reach(error);
        let expected: Vec<&str> = match &error.variant {
            pest::error::ErrorVariant::ParsingError { positives, .. } => {
                positives.iter().map(|r| rule_in_words(*r)).collect()
            }
            pest::error::ErrorVariant::CustomError { .. } => Vec::new(),
        };
        syntax_error::expected(self.file, self.text, at, &expected)
    }
}

/// An entry that could not be understood, and has none inside.
fn nothing(names: Vec<String>) -> ItemKind {
    ItemKind::Broken { names, items: Vec::new() }
}

/// The entries of a file or block that were found so far.
#[derive(Default)]
struct Found {
    items: Vec<Item>,
    /// Line ends since the last of them.
    n_newlines: usize,
    /// A line ended among them.
    has_newline: bool,
}

impl Found {
    fn is_after_blank_line(&self) -> bool {
        self.n_newlines > 1 && !self.items.is_empty()
    }

    fn push_comment(&mut self, comment: Comment, follows_blank_line: bool) {
        let span = comment.span;
        let kind = ItemKind::Comment(comment);
        self.items.push(Item { kind, span, follows_blank_line, trailing: None });
    }
}

/// How far the parser came.
fn reach(error: &pest::error::Error<Rule>) -> usize {
    match error.location {
        pest::error::InputLocation::Pos(at) | pest::error::InputLocation::Span((at, _)) => at,
    }
}

/// The names a broken line seems to be about: `rate = = 5` is about `rate`, `let x =` about `x`. First its
/// first two words, then every word before an `=`.
fn declared_words(head: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = head.split(|c| !is_word(c)).filter(|w| !w.is_empty()).take(2);
    let assigned =
        head.split('=').rev().skip(1).take(16).filter_map(|part| {
            part.trim_end().rsplit(|c| !is_word(c)).next().filter(|word| !word.is_empty())
        });
    words.chain(assigned).map(str::to_owned).collect()
}

/// Whether a line starts an entry rather than going on with the one before it.
fn starts_entry(head: &str) -> bool {
    let end = head.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(head.len());
    let (word, rest) = head.split_at(end);
    matches!(word, "let" | "param" | "import") || (!word.is_empty() && rest.trim_start().starts_with('='))
}
