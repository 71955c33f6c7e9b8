//! Params and lets → the value of each name, in the order they need each other.

use crate::ast::{Expr, ExprKind, Name};
use crate::context::{Context, Definition};
use crate::value::Value;
use ent_plan::diagnostic::{Code, Diagnostic, Located, Span};
use std::collections::BTreeMap;

/// A `param` or a `let`.
pub(crate) struct Declared<'a> {
    pub(crate) name: &'a Name,
    pub(crate) value: &'a Expr,
    pub(crate) is_param: bool,
}

/// Gives every name its value. `set` replaces the values of params.
pub(crate) fn define(context: &mut Context<'_>, declared: &[Declared<'_>], set: &BTreeMap<String, Expr>) {
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, one) in declared.iter().enumerate() {
        match by_name.get(one.name.text.as_str()) {
            Some(first) => {
                let first = declared.get(*first).map_or(one.name.span, |d| d.name.span);
                context.report(duplicate("name", &one.name.text, one.name.span, first));
            }
            None => {
                by_name.insert(&one.name.text, i);
            }
        }
    }
    for index in ordered(context, declared, &by_name) {
        let Some(one) = declared.get(index) else { continue };
        if by_name.get(one.name.text.as_str()) != Some(&index) {
            continue;
        }
        let mut value = context.evaluate(one.value).value;
        if let Some(given) = set.get(&one.name.text).filter(|_| one.is_param) {
            let given = context.evaluate(given);
            check_kind(context, &one.name.text, &value, one.value.span, &given);
            value = given.value;
        }
        context.definitions.insert(one.name.text.clone(), Definition { value, span: one.name.span });
    }
}

/// A second declaration of one name.
pub(crate) fn duplicate(what: &str, name: &str, second: Span, first: Span) -> Diagnostic {
    Diagnostic::error(Code::Duplicate, second, format!("second {what} `{name}`"))
        .label("declared again here")
        .and(first, "first declared here")
        .help("remove or rename one of them")
}

/// What is given from outside must be of the kind that the program wrote.
fn check_kind(context: &mut Context<'_>, name: &str, default: &Value, at: Span, given: &Located<Value>) {
    let help = |example: &str| format!("give `{name}` a value like `{example}`");
    let example = context.sources.snippet(at).to_owned();
    match (default, &given.value) {
        (Value::Poison, _) | (_, Value::Poison) => {}
        (Value::Quantity(wanted), Value::Quantity(found)) => {
            if wanted.dimension != found.dimension {
                let (wanted, found) = (wanted.dimension.words(), found.dimension.words());
                context.report(
                    Diagnostic::error(
                        Code::UnitMismatch,
                        given.span,
                        format!("expected {wanted}, found {found}"),
                    )
                    .label(found)
                    .and(at, wanted)
                    .help(help(&example)),
                );
            }
        }
        (Value::Word(_) | Value::Text(..), Value::Word(_) | Value::Text(..)) => {}
        (wanted, found) => {
            if std::mem::discriminant(wanted) != std::mem::discriminant(found) {
                let (wanted, found) = (wanted.words(), found.words());
                context.report(
                    Diagnostic::error(
                        Code::TypeMismatch,
                        given.span,
                        format!("expected {wanted}, found {found}"),
                    )
                    .label(found)
                    .and(at, wanted)
                    .help(help(&example)),
                );
            }
        }
    }
}

/// Indices such that each comes after those it needs; cycles are reported and broken.
fn ordered(
    context: &mut Context<'_>,
    declared: &[Declared<'_>],
    by_name: &BTreeMap<&str, usize>,
) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let needs: Vec<Vec<(usize, Span)>> = declared.iter().map(|d| needed(d.value, by_name)).collect();
    let mut state = vec![State::New; declared.len()];
    let mut order = Vec::with_capacity(declared.len());
    for start in 0..declared.len() {
        if state[start] != State::New {
            continue;
        }
        // The way down: each index, and how many of its needs were followed.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        state[start] = State::Open;
        while let Some((index, next)) = way.last_mut() {
            let Some((needed, span)) = needs[*index].get(*next).copied() else {
                state[*index] = State::Done;
                order.push(*index);
                way.pop();
                continue;
            };
            *next += 1;
            match state[needed] {
                State::New => {
                    state[needed] = State::Open;
                    way.push((needed, 0));
                }
                State::Done => {}
                State::Open => {
                    let from = way.iter().position(|(i, _)| *i == needed).unwrap_or(0);
                    let names: Vec<&str> =
                        way[from..].iter().map(|(i, _)| declared[*i].name.text.as_str()).collect();
                    context.report(cyclic(&names, span, declared[needed].name));
                    // Poison it, so that its users are not reported as well.
                    context.poisoned.insert(declared[needed].name.text.clone());
                }
            }
        }
    }
    order
}

fn cyclic(names: &[&str], span: Span, first: &Name) -> Diagnostic {
    let mut chain: Vec<&str> = names.iter().copied().take(8).collect();
    if names.len() > 8 {
        chain.push("…");
    }
    chain.push(&first.text);
    Diagnostic::error(Code::CyclicDefinition, span, format!("`{}` depends on itself", first.text))
        .label(chain.join(" → "))
        .and(first.span, "defined here")
        .help("give one of them a value of its own")
}

/// The declared names in an expression.
fn needed(expr: &Expr, by_name: &BTreeMap<&str, usize>) -> Vec<(usize, Span)> {
    let mut found = Vec::new();
    visit(expr, &mut |name| {
        if let Some(index) = by_name.get(name.text.as_str()) {
            found.push((*index, name.span));
        }
    });
    found
}

/// Calls `on_name` with each bare name in an expression; depth is bounded by the parser.
fn visit(expr: &Expr, on_name: &mut impl FnMut(&Name)) {
    match &expr.kind {
        ExprKind::Number { .. } | ExprKind::Text(_) | ExprKind::Profile(_) => {}
        ExprKind::Path(names) => {
            if let [one] = names.as_slice()
                && !one.is_quoted
            {
                on_name(one);
            }
        }
        ExprKind::Tensor { extents, .. } => extents.iter().for_each(|e| visit(e, on_name)),
        ExprKind::List(list) => {
            for element in &list.elements {
                element.key.iter().for_each(|k| visit(k, on_name));
                visit(&element.value, on_name);
            }
        }
        ExprKind::Call { arguments, .. } => arguments.iter().for_each(|a| visit(&a.value, on_name)),
        ExprKind::Negative(inner) | ExprKind::Paren(inner) => visit(inner, on_name),
        ExprKind::Chain { first, rest } => {
            visit(first, on_name);
            rest.iter().for_each(|(_, operand)| visit(operand, on_name));
        }
        ExprKind::Promise { bound, .. } => visit(bound, on_name),
        ExprKind::Range { from, to, step } => {
            visit(from, on_name);
            visit(to, on_name);
            step.iter().for_each(|s| visit(s, on_name));
        }
        ExprKind::Over { amount: a, time: b } | ExprKind::Times { item: a, count: b } => {
            visit(a, on_name);
            visit(b, on_name);
        }
    }
}
