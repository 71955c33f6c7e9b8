//! pest's tokens of a value → an expression.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each place takes the few rules it knows; words for all are matched one by one"
)]

use super::{Reader, Rule};
use crate::ast::{Argument, Element, Expr, ExprKind, List, Name, Operator, Unit};
use ent_plan::diagnostic::{Code, Diagnostic, Span};
use pest::iterators::Pair;

impl Reader<'_> {
    pub(super) fn name(&mut self, pair: &Pair<'_, Rule>) -> Name {
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

    pub(super) fn value(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
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
