//! Text → Ast.
//!
//! Parsing never fails: what cannot be understood is reported, left out, and remembered as
//! [`ItemKind::Broken`], so that the rest is read and one mistake is reported once. Time is linear in
//! the text; recursion is bounded by [`MAX_DEPTH`]. This is the only file that knows pest.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place takes the few rules it knows; words for all are matched one by one"
)]

use crate::ast::Unit;
use crate::ast::{
    Argument, Ast, Block, Comment, Element, Expr, ExprKind, Item, ItemKind, List, Name, Operator,
};
use crate::depth::{self, MAX_DEPTH};
use crate::rule_in_words::rule_in_words;
use crate::syntax_error;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Outcome, Span};
use pest::Parser;
use pest::iterators::Pair;

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
    let mut reader = Reader::new(file, text);
    if let Some(at) = depth::too_deep(text) {
        reader.diagnostics.push(nested_too_deeply(reader.span(at, at + 1)));
        let items = vec![reader.broken(0, text.len(), Vec::new())];
        return Outcome { value: Ast { items, file }, diagnostics: reader.diagnostics };
    }
    let items = match Grammar::parse(Rule::program, text) {
        Ok(pairs) => reader.items(pairs).0,
        Err(error) => {
            // The grammar takes any text; should it ever not, the user gets an error, not a panic.
            let problem = reader.problem_of(&error, 0);
            reader.report(problem);
            vec![reader.broken(0, text.len(), Vec::new())]
        }
    };
    Outcome { value: Ast { items, file }, diagnostics: reader.diagnostics }
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
    Outcome { value, diagnostics: reader.diagnostics }
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
    diagnostics: Vec<Diagnostic>,
    /// Comments inside an expression; they move to the lines before its entry.
    hoisted: Vec<Comment>,
    /// Brackets that the last broken line left open: lines that continue it are not errors of their own.
    open_brackets: usize,
}

impl<'a> Reader<'a> {
    fn new(file: FileId, text: &'a str) -> Self {
        Self { file, text, base: 0, diagnostics: Vec::new(), hoisted: Vec::new(), open_brackets: 0 }
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
        match self.diagnostics.len() {
            n if n < MAX_SYNTAX_ERRORS => self.diagnostics.push(problem),
            MAX_SYNTAX_ERRORS => {
                let more = "fix these first; further syntax errors of this file are not shown";
                self.diagnostics.push(problem.help(more));
            }
            _ => {}
        }
    }

    /// The entries of a file or block, and whether a line ended among them.
    fn items<'i>(&mut self, pairs: impl Iterator<Item = Pair<'i, Rule>>) -> (Vec<Item>, bool) {
        let mut items: Vec<Item> = Vec::new();
        let (mut newlines, mut has_newline) = (0usize, false);
        for pair in pairs {
            let rule = pair.as_rule();
            if rule == Rule::newline {
                newlines += 1;
                has_newline = true;
                continue;
            }
            if matches!(rule, Rule::EOI | Rule::comma) {
                continue;
            }
            let follows_blank_line = newlines > 1 && !items.is_empty();
            if rule == Rule::comment {
                let comment = self.comment(&pair);
                match items.last_mut() {
                    Some(last) if newlines == 0 && last.trailing.is_none() && !last.is_comment() => {
                        last.trailing = Some(comment);
                    }
                    _ => {
                        let span = comment.span;
                        let kind = ItemKind::Comment(comment);
                        items.push(Item { kind, span, follows_blank_line, trailing: None });
                    }
                }
                newlines = 0;
                continue;
            }
            newlines = 0;
            let span = self.span_of(&pair);
            let before = self.hoisted.len();
            let kind = self.entry(pair);
            let mut follows_blank_line = follows_blank_line;
            for comment in self.hoisted.split_off(before) {
                let span = comment.span;
                let kind = ItemKind::Comment(comment);
                items.push(Item { kind, span, follows_blank_line, trailing: None });
                follows_blank_line = false;
            }
            items.push(Item { kind, span, follows_blank_line, trailing: None });
        }
        (items, has_newline)
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
                        .help("remove this `}`, or add the block's opening line");
                    self.report(problem);
                }
                return ItemKind::Broken { names: Vec::new() };
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
            (_, name, _) => ItemKind::Broken { names: name.map(|n| n.text).into_iter().collect() },
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
        let Some(kind) = kind else { return ItemKind::Broken { names: Vec::new() } };
        if !is_closed {
            let what = format!("this block of `{}` is never closed", kind.text);
            let problem = Diagnostic::error(Code::Syntax, brace, "block is not closed")
                .label(what)
                .help("add a `}` at its end");
            self.report(problem);
        }
        let is_inline = !has_newline && opening_comment.is_none();
        let block = Block { kind, name, items, opening_comment, is_inline };
        ItemKind::Block(block)
    }

    fn block_items<'i>(&mut self, inner: impl Iterator<Item = Pair<'i, Rule>>) -> (Vec<Item>, bool, bool) {
        let mut is_closed = false;
        let (items, has_newline) = self.items(inner.filter(|p| {
            is_closed |= p.as_rule() == Rule::close_brace;
            !matches!(p.as_rule(), Rule::close_brace | Rule::e_unclosed)
        }));
        (items, has_newline, is_closed)
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
        if !continues && self.diagnostics.len() <= MAX_SYNTAX_ERRORS {
            let problem = self.problem_at(start, head.trim_end());
            self.report(problem);
        }
        let body = pair.into_inner().skip_while(|p| p.as_rule() != Rule::open_brace).skip(1);
        let before = self.hoisted.len();
        let _ = self.block_items(body);
        self.hoisted.truncate(before);
        ItemKind::Broken { names }
    }

    fn broken(&self, start: usize, end: usize, names: Vec<String>) -> Item {
        let kind = ItemKind::Broken { names };
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

    fn name(&mut self, pair: &Pair<'_, Rule>) -> Name {
        let span = self.span_of(pair);
        if pair.as_rule() == Rule::string {
            return Name { text: self.unquote(pair), is_quoted: true, span };
        }
        Name { text: pair.as_str().to_owned(), is_quoted: false, span }
    }

    fn unquote(&mut self, pair: &Pair<'_, Rule>) -> String {
        let raw = pair.as_str();
        let inside = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')).unwrap_or(raw);
        let mut text = String::with_capacity(inside.len());
        let mut chars = inside.char_indices();
        while let Some((i, c)) = chars.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            match chars.next() {
                Some((_, '"')) => text.push('"'),
                Some((_, '\\')) => text.push('\\'),
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, other)) => {
                    let at = self.base + pair.as_span().start() + 1 + i;
                    let span = self.span(at, at + 1 + other.len_utf8());
                    let problem = Diagnostic::error(Code::Syntax, span, "unknown escape in a text")
                        .label(format!("`\\{other}`"))
                        .help("write `\\\\` for a backslash; `\\\"`, `\\n` and `\\t` exist too");
                    self.report(problem);
                }
                None => {}
            }
        }
        text
    }

    fn value(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let span = self.span_of(&pair);
        let mut inner = pair.into_inner();
        let first = inner.next()?;
        if first.as_rule() == Rule::promise {
            return self.promise(first, span);
        }
        let first = self.expr(first)?;
        let Some(rest) = inner.next() else { return Some(first) };
        let rule = rest.as_rule();
        let mut operands = Vec::new();
        for part in rest.into_inner().filter(|p| p.as_rule() == Rule::sum) {
            operands.push(self.expr(part)?);
        }
        let mut operands = operands.into_iter();
        let second = Box::new(operands.next()?);
        let first = Box::new(first);
        let kind = match rule {
            Rule::range => ExprKind::Range { from: first, to: second, step: operands.next().map(Box::new) },
            Rule::over => ExprKind::Over { amount: first, time: second },
            _ => ExprKind::Times { item: first, count: second },
        };
        Some(Expr { kind, span })
    }

    fn promise(&mut self, pair: Pair<'_, Rule>, span: Span) -> Option<Expr> {
        let (mut percentile, mut bound) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::percentile => percentile = Some(self.name(&part)),
                Rule::sum => bound = self.expr(part),
                _ => {}
            }
        }
        let kind = ExprKind::Promise { percentile: percentile?, bound: Box::new(bound?) };
        Some(Expr { kind, span })
    }

    fn expr(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let span = self.span_of(&pair);
        let kind = match pair.as_rule() {
            Rule::value => return self.value(pair),
            Rule::sum | Rule::product => return self.chain(pair, span),
            Rule::negative => ExprKind::Negative(Box::new(self.only(pair)?)),
            Rule::paren => ExprKind::Paren(Box::new(self.only(pair)?)),
            Rule::profile => ExprKind::Profile(pair.as_str().to_owned()),
            Rule::string => ExprKind::Text(self.unquote(&pair)),
            Rule::literal => self.literal(pair)?,
            Rule::named => self.named(pair)?,
            Rule::list => ExprKind::List(self.list(pair)),
            _ => return None,
        };
        Some(Expr { kind, span })
    }

    /// The one operand inside, whose comments are moved out.
    fn only(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let mut found = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::comment => {
                    let comment = self.comment(&part);
                    self.hoisted.push(comment);
                }
                Rule::newline | Rule::open_paren | Rule::close_paren | Rule::minus => {}
                _ => found = self.expr(part),
            }
        }
        found
    }

    fn chain(&mut self, pair: Pair<'_, Rule>, span: Span) -> Option<Expr> {
        let mut first = None;
        let mut rest = Vec::new();
        let mut operator = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::newline => {}
                Rule::comment => {
                    let comment = self.comment(&part);
                    self.hoisted.push(comment);
                }
                Rule::plus => operator = Some(Operator::Add),
                Rule::minus => operator = Some(Operator::Subtract),
                Rule::star => operator = Some(Operator::Multiply),
                Rule::slash => operator = Some(Operator::Divide),
                _ => {
                    let operand = self.expr(part)?;
                    match operator.take() {
                        Some(operator) => rest.push((operator, operand)),
                        None => first = Some(operand),
                    }
                }
            }
        }
        let first = first?;
        if rest.is_empty() {
            return Some(first);
        }
        Some(Expr { kind: ExprKind::Chain { first: Box::new(first), rest }, span })
    }

    fn literal(&mut self, pair: Pair<'_, Rule>) -> Option<ExprKind> {
        let (mut digits, mut unit) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::number => digits = Some(part.as_str().to_owned()),
                Rule::unit => {
                    let text = part.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
                    unit = Some(Unit { text, span: self.span_of(&part) });
                }
                _ => {}
            }
        }
        Some(ExprKind::Number { digits: digits?, unit })
    }

    fn list(&mut self, pair: Pair<'_, Rule>) -> List {
        let mut list = List { elements: Vec::new(), closing_comments: Vec::new(), is_multiline: false };
        let mut comments = Vec::new();
        // A comment on the line of the bracket or of an element before it belongs to that line.
        let mut is_same_line = true;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::newline => {
                    list.is_multiline = true;
                    is_same_line = false;
                }
                Rule::comment => {
                    let comment = self.comment(&part);
                    match list.elements.last_mut() {
                        Some(last) if is_same_line => last.trailing = Some(comment),
                        _ => comments.push(comment),
                    }
                }
                Rule::element => {
                    let mut values = Vec::new();
                    for value in part.into_inner().filter(|p| p.as_rule() == Rule::value) {
                        values.extend(self.value(value));
                    }
                    let Some(value) = values.pop() else { continue };
                    let comments = std::mem::take(&mut comments);
                    list.elements.push(Element { comments, key: values.pop(), value, trailing: None });
                    is_same_line = true;
                }
                _ => {}
            }
        }
        list.closing_comments = comments;
        list
    }

    /// A name, and what is behind it: nothing, an entry, arguments or extents.
    fn named(&mut self, pair: Pair<'_, Rule>) -> Option<ExprKind> {
        let mut names = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::word | Rule::string => names.push(self.name(&part)),
                Rule::call => {
                    let arguments = self.arguments(part)?;
                    return Some(ExprKind::Call { function: names.pop()?, arguments });
                }
                Rule::tensor => {
                    let extents = self.extents(part)?;
                    return Some(ExprKind::Tensor { element: names.pop()?, extents });
                }
                _ => {}
            }
        }
        Some(ExprKind::Path(names))
    }

    fn arguments(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Argument>> {
        let mut arguments = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::comment => {
                    let comment = self.comment(&part);
                    self.hoisted.push(comment);
                }
                Rule::argument => {
                    let (mut name, mut value) = (None, None);
                    for piece in part.into_inner() {
                        match piece.as_rule() {
                            Rule::word => name = Some(self.name(&piece)),
                            Rule::value => value = self.value(piece),
                            _ => {}
                        }
                    }
                    arguments.push(Argument { name, value: value? });
                }
                _ => {}
            }
        }
        Some(arguments)
    }

    fn extents(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Expr>> {
        let mut extents = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::comment => {
                    let comment = self.comment(&part);
                    self.hoisted.push(comment);
                }
                Rule::sum => extents.push(self.expr(part)?),
                _ => {}
            }
        }
        Some(extents)
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
