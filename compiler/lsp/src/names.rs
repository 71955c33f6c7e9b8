//! The trees of a program → its names: where each is declared and where it is used.
//!
//! Values, models, services, nodes, boards and performance data have names of their own, which may be
//! the same word. A word is what its place wants, as the resolver has it: a `let` comes before a board,
//! and a model before a `let` where a model is wanted.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most entries declare nothing, and most values name nothing"
)]

use crate::Snapshot;
use crate::place::{Role, roles};
use crate::token::Token;
use crate::vocabulary::{Expected, attribute, limit};
use ent_lang::ast::{Ast, Block, Expr, ExprKind, Item, ItemKind, Name};
use ent_plan::diagnostic::{FileId, Span};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// A `param` or a `let`.
    Value,
    Model,
    Service,
    Node,
    Board,
    /// Imported performance data.
    Performance,
}

impl Sort {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Model => "model",
            Self::Service => "service",
            Self::Node => "node",
            Self::Board => "board",
            Self::Performance => "performance data",
        }
    }
}

/// How a name is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As it is.
    Word,
    /// In quotes.
    Quoted,
    /// Not at all: the path of an import implies it. The span is the path's.
    Implied,
}

/// A name in a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) sort: Sort,
    pub(crate) span: Span,
    /// The whole entry, of a declaration.
    pub(crate) entry: Option<Span>,
    pub(crate) form: Form,
}

impl Occurrence<'_> {
    pub(crate) fn is_declaration(&self) -> bool {
        self.entry.is_some()
    }
}

/// The names of a program.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    /// Declarations first, in the order of the files; then uses.
    pub(crate) all: Vec<Occurrence<'a>>,
    n_declarations: usize,
}

impl<'a> Names<'a> {
    /// Collects the names of a program's files.
    pub(crate) fn of(snapshot: &Snapshot<'a>) -> Self {
        Self::of_trees(snapshot.files().iter().filter_map(|file| snapshot.ast(*file)))
    }

    /// Collects the names of some trees.
    pub(crate) fn of_trees(asts: impl IntoIterator<Item = &'a Ast>) -> Self {
        let asts: Vec<&'a Ast> = asts.into_iter().collect();
        let mut names = Self::default();
        for item in asts.iter().flat_map(|ast| &ast.items) {
            names.declare(item);
        }
        names.n_declarations = names.all.len();
        let known: BTreeSet<(Sort, String)> =
            names.all.iter().map(|o| (o.sort, o.name.clone().into_owned())).collect();
        let mut uses = Uses { known: &known, found: Vec::new() };
        for item in asts.iter().flat_map(|ast| &ast.items) {
            uses.entry(item, &mut Vec::new());
        }
        names.all.append(&mut uses.found);
        names
    }

    /// The name at an offset of a file.
    pub(crate) fn at(&self, file: FileId, offset: usize) -> Option<&Occurrence<'a>> {
        let covers =
            |span: Span| span.file == file && span.start as usize <= offset && offset <= span.end as usize;
        self.all.iter().find(|o| covers(o.span))
    }

    /// The name at an offset of a file; in an entry that is not finished, whatever is declared by the word
    /// there, a value first.
    pub(crate) fn meant(&self, file: FileId, offset: usize, text: &str) -> Option<&Occurrence<'a>> {
        self.at(file, offset).or_else(|| {
            let all = roles(text);
            let covers = |token: &Token| token.start <= offset && offset <= token.end;
            let (token, _) = all.iter().find(|(token, role)| *role == Role::Name && covers(token))?;
            let word = token.text(text);
            self.declared().iter().filter(|o| o.name == word).min_by_key(|o| o.sort)
        })
    }

    /// The declarations.
    pub(crate) fn declared(&self) -> &[Occurrence<'a>] {
        self.all.get(..self.n_declarations).unwrap_or_default()
    }

    /// Everywhere that one name stands.
    pub(crate) fn same(&self, sort: Sort, name: &str) -> impl Iterator<Item = &Occurrence<'a>> {
        let name = name.to_owned();
        self.all.iter().filter(move |o| o.sort == sort && o.name == name)
    }

    fn declare(&mut self, item: &'a Item) {
        match &item.kind {
            ItemKind::Param { name, .. } | ItemKind::Let { name, .. } => {
                self.add(Sort::Value, name, item.span)
            }
            ItemKind::Block(block) => {
                let sort = match block.kind.text.as_str() {
                    "model" => Sort::Model,
                    "service" => Sort::Service,
                    "board" => Sort::Board,
                    "hardware" => {
                        for inner in &block.items {
                            if let ItemKind::Block(node) = &inner.kind
                                && node.kind.text == "node"
                                && let Some(name) = &node.name
                            {
                                self.add(Sort::Node, name, inner.span);
                            }
                        }
                        return;
                    }
                    _ => return,
                };
                if let Some(name) = &block.name {
                    self.add(sort, name, item.span);
                }
            }
            ItemKind::Import { path, alias } => {
                let Some((sort, implied)) = imported_name(&path.text) else { return };
                match alias {
                    Some(alias) => self.add(sort, alias, item.span),
                    None => self.all.push(Occurrence {
                        name: Cow::Owned(implied),
                        sort,
                        span: path.span,
                        entry: Some(item.span),
                        form: Form::Implied,
                    }),
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, sort: Sort, name: &'a Name, entry: Span) {
        let form = if name.is_quoted { Form::Quoted } else { Form::Word };
        self.all.push(Occurrence {
            name: Cow::Borrowed(&name.text),
            sort,
            span: name.span,
            entry: Some(entry),
            form,
        });
    }
}

/// What an import names, and how it is called without `as`.
pub(crate) fn imported_name(path: &str) -> Option<(Sort, String)> {
    if let Some(id) = path.strip_prefix("catalog:nvidia/") {
        return Some((Sort::Board, id.replace('-', "_")));
    }
    if let Some(id) = path.strip_prefix("catalog:performance/") {
        return Some((Sort::Performance, id.replace('-', "_")));
    }
    if !path.ends_with(".json") && !path.ends_with(".csv") {
        return None;
    }
    let file = path.rsplit(['/', ':']).next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    Some((Sort::Performance, stem.replace('-', "_")))
}

struct Uses<'a, 'k> {
    known: &'k BTreeSet<(Sort, String)>,
    found: Vec<Occurrence<'a>>,
}

impl<'a> Uses<'a, '_> {
    fn entry(&mut self, item: &'a Item, path: &mut Vec<&'a str>) {
        match &item.kind {
            ItemKind::Param { value, .. } | ItemKind::Let { value, .. } => self.value(value, Expected::Any),
            ItemKind::Limit { metric, at_most } => self.value(at_most, limit(&metric.text)),
            ItemKind::Attribute { name, value } => {
                let expected = attribute(path, &name.text).map_or(Expected::Any, |a| a.expected);
                self.value(value, expected);
            }
            ItemKind::Block(Block { kind, items, .. }) => {
                path.push(&kind.text);
                for inner in items {
                    self.entry(inner, path);
                }
                path.pop();
            }
            ItemKind::Comment(_) | ItemKind::Import { .. } | ItemKind::Minimize { .. } => {}
            ItemKind::Broken { .. } => {}
        }
    }

    fn value(&mut self, expr: &'a Expr, expected: Expected) {
        match &expr.kind {
            ExprKind::Number { .. } | ExprKind::Profile(_) => {}
            ExprKind::Text(text) => {
                if let Some(sort) = wanted(expected).filter(|sort| *sort != Sort::Performance) {
                    self.add(sort, text, expr.span, Form::Quoted);
                }
            }
            ExprKind::Path(names) => match names.as_slice() {
                [one] => {
                    if let Some(sort) = self.sort(&one.text, expected) {
                        self.add(sort, &one.text, one.span, Form::Word);
                    }
                }
                [first, ..] => self.add(Sort::Performance, &first.text, first.span, Form::Word),
                [] => {}
            },
            ExprKind::Tensor { extents, .. } => extents.iter().for_each(|e| self.value(e, Expected::Count)),
            ExprKind::List(list) => {
                for element in &list.elements {
                    element.key.iter().for_each(|k| self.value(k, Expected::Any));
                    self.value(&element.value, expected);
                }
            }
            ExprKind::Call { arguments, .. } => {
                arguments.iter().for_each(|a| self.value(&a.value, Expected::Any));
            }
            ExprKind::Negative(inner) | ExprKind::Paren(inner) => self.value(inner, expected),
            ExprKind::Chain { first, rest } => {
                self.value(first, Expected::Count);
                rest.iter().for_each(|(_, operand)| self.value(operand, Expected::Count));
            }
            ExprKind::Promise { bound, .. } => self.value(bound, Expected::Count),
            ExprKind::Range { from, to, step } => {
                self.value(from, Expected::Count);
                self.value(to, Expected::Count);
                step.iter().for_each(|s| self.value(s, Expected::Count));
            }
            ExprKind::Over { amount: a, time: b } => {
                self.value(a, Expected::Count);
                self.value(b, Expected::Count);
            }
            ExprKind::Times { item, count } => {
                self.value(item, if expected == Expected::Any { expected } else { Expected::Board });
                self.value(count, Expected::Count);
            }
        }
    }

    /// What a bare word names where this is expected; `None` for a word of the language.
    fn sort(&self, name: &str, expected: Expected) -> Option<Sort> {
        let is_known = |sort: Sort| self.known.contains(&(sort, name.to_owned()));
        if expected == Expected::Model && is_known(Sort::Model) {
            return Some(Sort::Model);
        }
        if is_known(Sort::Value) {
            return Some(Sort::Value);
        }
        match expected {
            Expected::Any => {
                [Sort::Board, Sort::Model, Sort::Performance, Sort::Node].into_iter().find(|s| is_known(*s))
            }
            Expected::Measure(_) | Expected::Count | Expected::CountRange => Some(Sort::Value),
            other => wanted(other),
        }
    }

    fn add(&mut self, sort: Sort, name: &'a str, span: Span, form: Form) {
        self.found.push(Occurrence { name: Cow::Borrowed(name), sort, span, entry: None, form });
    }
}

/// What is named where this is expected.
fn wanted(expected: Expected) -> Option<Sort> {
    match expected {
        Expected::Model => Some(Sort::Model),
        Expected::Boards | Expected::Board => Some(Sort::Board),
        Expected::Node => Some(Sort::Node),
        Expected::Performance => Some(Sort::Performance),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_their_place_wants() {
        let text = "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"perf/mine-1.json\"\nlet n = 2\nlet bert = 3\n\
                    model bert { performance = [mine_1.bert, mine_1] }\n\
                    service s { model = bert, rate = n * 1 req/s, latency = slo, pin { node = \"box\", batch = n } }\n\
                    hardware { node \"box\" { gpu = a100_80gb_pcie x n, unused = off } }\nlet slo = p99 <= n * 1 s\n";
        let ast = ent_lang::parse(FileId(0), text).value;
        let names = Names::of_trees([&ast]);
        let shown: Vec<(Sort, &str, bool)> =
            names.all.iter().map(|o| (o.sort, &*o.name, o.is_declaration())).collect();
        use Sort::*;
        assert_eq!(
            shown,
            [
                (Board, "a100_80gb_pcie", true),
                (Performance, "mine_1", true),
                (Value, "n", true),
                (Value, "bert", true),
                (Model, "bert", true),
                (Service, "s", true),
                (Node, "box", true),
                (Value, "slo", true),
                (Performance, "mine_1", false),
                (Performance, "mine_1", false),
                (Model, "bert", false),
                (Value, "n", false),
                (Value, "slo", false),
                (Node, "box", false),
                (Value, "n", false),
                (Board, "a100_80gb_pcie", false),
                (Value, "n", false),
                (Value, "n", false),
            ],
        );
    }
}
