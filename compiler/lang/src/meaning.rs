//! Parsed files → what their names mean, as far as they can be understood: what an editor shows.
//!
//! Files may be broken anywhere: whatever can be understood has a meaning, and nothing is reported
//! here. [`crate::compile`] decides whether a program is right.

use crate::ast::{Ast, Expr};
use crate::board::{self, Boards};
use crate::context::Context;
use crate::declarations::Declarations;
use crate::definitions::define;
use crate::hardware;
use crate::quantity::{Measure, Quantity, meaning};
use crate::value::Value;
use ent_plan::device::Board;
use ent_plan::diagnostic::Sources;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What the names of some files mean.
pub struct Meaning<'a> {
    context: RefCell<Context<'a>>,
    boards: Boards,
    performance: BTreeMap<String, String>,
    nodes: Vec<NodeMeaning>,
}

/// A node, as far as it can be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeMeaning {
    /// Its name.
    pub name: String,
    /// The name of its boards, for [`Meaning::board`].
    pub board: String,
    /// How many it has.
    pub n_boards: Option<u32>,
}

/// A value, worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The value with its unit, at most six digits: `695.985 req/s`.
    pub text: String,
    /// What it is: `a rate`.
    pub words: String,
}

impl<'a> Meaning<'a> {
    /// Works out what the names of these files mean. Imports are not followed: give all files of a program.
    /// Paths are joined to the names that `sources` has for the files.
    #[must_use]
    pub fn of<'b>(sources: &'a Sources, asts: impl IntoIterator<Item = &'b Ast>) -> Self {
        let mut context = Context::new(sources);
        context.is_all_poisoned = true;
        let asts: Vec<&Ast> = asts.into_iter().collect();
        let declarations = Declarations::collect(&mut context, &asts);
        define(&mut context, &declarations.values, &BTreeMap::new());
        let boards = board::boards(&mut context, &declarations);
        let nodes = hardware::outline(&mut context, &declarations);
        let performance =
            declarations.namespaces.iter().map(|(name, n)| (name.clone(), n.file.clone())).collect();
        Self { context: RefCell::new(context), boards, performance, nodes }
    }

    /// What an expression is worth; `None` where that cannot be told.
    #[must_use]
    pub fn value(&self, expr: &Expr) -> Option<Resolved> {
        let value = self.context.borrow_mut().evaluate(expr).value;
        let text = shown(&value)?;
        Some(Resolved { text, words: value.words() })
    }

    /// What a `param` or `let` is worth.
    #[must_use]
    pub fn named_value(&self, name: &str) -> Option<Resolved> {
        let context = self.context.borrow();
        let value = &context.definitions.get(name)?.value;
        Some(Resolved { text: shown(value)?, words: value.words() })
    }

    /// The board that a name stands for.
    #[must_use]
    pub fn board(&self, name: &str) -> Option<&Board> {
        self.boards.get(name)?.as_ref()
    }

    /// Every board that has a name, in alphabetical order.
    pub fn boards(&self) -> impl Iterator<Item = (&str, &Board)> {
        self.boards.iter().filter_map(|(name, board)| Some((name.as_str(), board.as_ref()?)))
    }

    /// The names of imported performance data and their files, as in
    /// [`crate::program::PerformanceRef::file`].
    pub fn performance(&self) -> impl Iterator<Item = (&str, &str)> {
        self.performance.iter().map(|(name, file)| (name.as_str(), file.as_str()))
    }

    /// The nodes, in the order written.
    #[must_use]
    pub fn nodes(&self) -> &[NodeMeaning] {
        &self.nodes
    }
}

/// A value as a person would write it; `None` for what could not be understood.
fn shown(value: &Value) -> Option<String> {
    let part = |located: &ent_plan::diagnostic::Located<Value>| shown(&located.value);
    Some(match value {
        Value::Poison | Value::Tensor => return None,
        Value::Quantity(quantity) => quantity_text(*quantity),
        Value::Text(text, _) => format!("\"{text}\""),
        Value::Word(word) => word.to_string(),
        Value::Path(parts) => parts.join("."),
        Value::Profile(name) => name.to_string(),
        Value::List(entries) => {
            let entry = |entry: &crate::value::Entry| {
                let value = shown(&entry.value.value)?;
                Some(match &entry.key {
                    Some(key) => format!("{}: {value}", shown(&key.value)?),
                    None => value,
                })
            };
            let most = 6;
            let mut parts = entries.iter().take(most).map(entry).collect::<Option<Vec<_>>>()?;
            if entries.len() > most {
                parts.push(format!("… {} in all", entries.len()));
            }
            format!("[{}]", parts.join(", "))
        }
        Value::Promise { percentile, bound } => format!("{} <= {}", percentile.value, part(bound)?),
        Value::Range { from, to, step } => {
            let range = format!("{}..{}", part(from)?, part(to)?);
            match step {
                Some(step) => format!("{range} step {}", part(step)?),
                None => range,
            }
        }
        Value::Over { amount, time } => format!("{} over {}", part(amount)?, part(time)?),
        Value::Times { item, count } => format!("{} x {}", part(item)?, part(count)?),
        Value::Call { function, arguments } => {
            let arguments = arguments.iter().map(|a| part(&a.value)).collect::<Option<Vec<_>>>()?;
            format!("{function}({})", arguments.join(", "))
        }
    })
}

/// A quantity in the unit that gives it the fewest digits before the point, but at least one.
fn quantity_text(quantity: Quantity) -> String {
    let ladder: &[&'static str] =
        match Measure::ALL.iter().find(|kind| kind.dimension() == quantity.dimension) {
            Some(Measure::Ratio) => return digits(quantity.base()),
            Some(Measure::Time) => &["ns", "us", "ms", "s", "h", "day"],
            Some(Measure::Power) => &["mW", "W", "kW", "MW"],
            Some(Measure::Energy) => &["mJ", "J", "kJ", "MJ", "GJ"],
            Some(Measure::Memory) => &["B", "KiB", "MiB", "GiB", "TiB"],
            Some(Measure::Carbon) => &["gCO2", "kgCO2", "tCO2"],
            Some(kind) => &[kind.unit()],
            None => return quantity.text(),
        };
    let of = |unit: &&'static str| Some((quantity.in_unit(meaning(unit)?), *unit));
    let fitting = ladder.iter().rev().filter_map(of).find(|(value, _)| value.abs() >= 1.0);
    let least = if quantity.base() == 0.0 { ladder.iter().rev().find_map(of) } else { None };
    match fitting.or(least).or_else(|| ladder.iter().find_map(of)) {
        Some((value, unit)) => format!("{} {unit}", digits(value)),
        None => quantity.text(),
    }
}

/// A number with at most six digits that count.
fn digits(value: f64) -> String {
    if value == 0.0 || !(1e-4..1e9).contains(&value.abs()) {
        return format!("{value}");
    }
    let before = value.abs().log10().floor();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 10 by the range above"
    )]
    let decimals = (5.0 - before).clamp(0.0, 10.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::ItemKind;
    use crate::parse;

    fn sources(text: &str) -> (Sources, Ast) {
        let mut sources = Sources::default();
        let file = sources.add("main.ent", text);
        let ast = parse(file, text).value;
        (sources, ast)
    }

    #[test]
    fn values_are_worked_out_in_broken_files() {
        let (sources, ast) = sources(
            "param load = 50%\nlet peak = 1391.97 req/s\nlet rate = load * peak\nlet gap = 1 / 20 req/s\n\
             let slo = p99 <= 0.0476 s\nservice x { rate = = }\nlet none = nothing * 2\n",
        );
        let meaning = Meaning::of(&sources, [&ast]);
        let value = |name: &str| meaning.named_value(name).map(|r| (r.text, r.words));
        let pair = |text: &str, words: &str| Some((text.to_owned(), words.to_owned()));
        assert_eq!(value("rate"), pair("695.985 req/s", "a rate"));
        assert_eq!(value("gap"), pair("50 ms", "a time"));
        assert_eq!(value("slo"), pair("p99 <= 47.6 ms", "a latency promise"));
        assert_eq!(value("none"), None);
    }

    #[test]
    fn an_expression_of_a_block_is_worked_out_with_the_names_of_the_file() {
        let (sources, ast) = sources("let peak = 10 req/s\nservice x { rate = peak * 3 }\n");
        let meaning = Meaning::of(&sources, [&ast]);
        let ItemKind::Block(block) = &ast.items[1].kind else { panic!("{ast:?}") };
        let ItemKind::Attribute { value, .. } = &block.items[0].kind else { panic!("{block:?}") };
        assert_eq!(meaning.value(value).map(|r| r.text).as_deref(), Some("30 req/s"));
    }

    #[test]
    fn boards_nodes_and_performance_have_meanings() {
        let (sources, ast) = sources(
            "import \"catalog:nvidia/h100-80gb-sxm\" as h100\nimport \"catalog:performance/a100-80gb-pcie\"\n\
             board mine { base = h100, profile 1g.10gb { sms = 3 } }\n\
             hardware { node \"a\" { gpu = mine x 2 + 2 }\n node \"b\" { gpu = h100 } \n node \"c\" { gpu = } }\n",
        );
        let meaning = Meaning::of(&sources, [&ast]);
        assert_eq!(meaning.boards().map(|(name, _)| name).collect::<Vec<_>>(), ["h100", "mine"]);
        assert_eq!(meaning.board("mine").and_then(|b| b.profile("1g.10gb")?.n_sms), Some(3));
        let nodes: Vec<(&str, &str, Option<u32>)> =
            meaning.nodes().iter().map(|n| (n.name.as_str(), n.board.as_str(), n.n_boards)).collect();
        assert_eq!(nodes, [("a", "mine", Some(4)), ("b", "h100", Some(1))]);
        let performance: Vec<_> = meaning.performance().collect();
        assert_eq!(performance, [("a100_80gb_pcie", "catalog:performance/a100-80gb-pcie")]);
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in
            [(0.1 + 0.2, "0.3"), (1391.97, "1391.97"), (123_456.789, "123457"), (0.0, "0"), (2.0, "2")]
        {
            assert_eq!(digits(value), text);
        }
    }
}
