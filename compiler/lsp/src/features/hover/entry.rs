//! A tree and a place → the entry or expression that stands there.

#![expect(clippy::wildcard_enum_match_arm, reason = "only some expressions have parts")]

use crate::Snapshot;
use crate::manual;
use crate::vocabulary::attributes;
use ent_lang::ast::{Ast, Block, Expr, ExprKind, Item, ItemKind};
use ent_lang::meaning::Meaning;
use ent_plan::diagnostic::Span;
use std::fmt::Write as _;

fn covers(span: Span, offset: usize) -> bool {
    (span.start as usize..span.end as usize).contains(&offset)
}

/// The entry at a place, the innermost.
fn item_at(items: &[Item], offset: usize) -> Option<&Item> {
    let item = items.iter().find(|item| covers(item.span, offset))?;
    match &item.kind {
        ItemKind::Block(block) => item_at(&block.items, offset).or(Some(item)),
        _ => Some(item),
    }
}

/// The value of the attribute whose name is at a place.
pub(super) fn attribute_at(ast: &Ast, offset: usize) -> Option<&Expr> {
    match &item_at(&ast.items, offset)?.kind {
        ItemKind::Attribute { name, value } if covers(name.span, offset) => Some(value),
        _ => None,
    }
}

/// The smallest expression at a place that is worth something of its own: the number with its unit, or the
/// whole of a calculation where the place is on an operator.
pub(super) fn expression_at(ast: &Ast, offset: usize) -> Option<&Expr> {
    let value = match &item_at(&ast.items, offset)?.kind {
        ItemKind::Attribute { value, .. } | ItemKind::Let { value, .. } => value,
        ItemKind::Param { value, .. } | ItemKind::Limit { at_most: value, .. } => value,
        _ => return None,
    };
    covers(value.span, offset).then(|| innermost(value, offset))
}

fn innermost(expr: &Expr, offset: usize) -> &Expr {
    let inside = parts(expr).into_iter().find(|part| covers(part.span, offset));
    inside.map_or(expr, |part| innermost(part, offset))
}

fn parts(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Tensor { extents, .. } => extents.iter().collect(),
        ExprKind::List(list) => list.elements.iter().flat_map(|e| e.key.iter().chain([&e.value])).collect(),
        ExprKind::Call { arguments, .. } => arguments.iter().map(|a| &a.value).collect(),
        ExprKind::Negative(inner) | ExprKind::Paren(inner) => vec![inner],
        ExprKind::Chain { first, rest } => {
            std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand)).collect()
        }
        ExprKind::Promise { bound, .. } => vec![bound],
        ExprKind::Range { from, to, step } => [from, to].into_iter().chain(step).map(|e| &**e).collect(),
        ExprKind::Over { amount: a, time: b } | ExprKind::Times { item: a, count: b } => vec![a, b],
        _ => Vec::new(),
    }
}

/// The attributes of a service, worked out, and the defaults that are taken.
pub(super) fn promises(block: &Block, meaning: &Meaning<'_>) -> String {
    let mut text = String::new();
    let given = |name: &str| {
        block.items.iter().find_map(|item| match &item.kind {
            ItemKind::Attribute { name: own, value } if own.text == name => Some(value),
            _ => None,
        })
    };
    let path = [block.kind.text.as_str()];
    let mut defaults = Vec::new();
    for attribute in attributes(&path) {
        let name = attribute.name;
        match given(name).map(|value| (meaning.value(value), value)) {
            Some((Some(resolved), _)) => {
                let _ = writeln!(text, "- {name}: `{}`", resolved.text);
            }
            Some((None, value)) => {
                let _ = writeln!(text, "- {name}: `{}`", ent_lang::print_expr(value));
            }
            None => match manual::attribute(&path, name).and_then(|e| e.default) {
                Some(default) if default != "required" => defaults.push(format!("{name} {default}")),
                Some(_) | None => {}
            },
        }
    }
    if !defaults.is_empty() {
        let _ = writeln!(text, "\nTaken as it is not given: {}.", defaults.join(", "));
    }
    text.trim_end().to_owned()
}

/// The files, and the entries in them, that a model's performance is from.
pub(super) fn performance(
    block: &Block,
    meaning: &Meaning<'_>,
    snapshot: &Snapshot<'_>,
) -> Vec<(String, Option<String>)> {
    let value = block.items.iter().find_map(|item| match &item.kind {
        ItemKind::Attribute { name, value } if name.text == "performance" => Some(value),
        _ => None,
    });
    let Some(value) = value else { return Vec::new() };
    let one = |expr: &Expr| {
        let file_of = |name: &str| meaning.performance().find(|(n, _)| *n == name).map(|(_, f)| f.to_owned());
        match &expr.kind {
            ExprKind::Path(names) => {
                Some((file_of(&names.first()?.text)?, names.get(1).map(|entry| entry.text.clone())))
            }
            ExprKind::Text(path) => Some((ent_lang::joined(snapshot.name(expr.span.file), path), None)),
            _ => None,
        }
    };
    match &value.kind {
        ExprKind::List(list) => list.elements.iter().filter_map(|e| one(&e.value)).collect(),
        _ => one(value).into_iter().collect(),
    }
}
