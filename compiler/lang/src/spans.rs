//! Entries that text was put before → the same entries at their new places.

use crate::ast::{Argument, Block, Comment, Element, Expr, ExprKind, Item, ItemKind, Name};
use ent_plan::diagnostic::{Diagnostic, Span};

/// Moves every span of an entry by so many bytes; backwards when it wraps.
pub(crate) fn move_spans(item: &mut Item, delta: usize) {
    shift_item(item, delta);
}

/// Moves every span of a diagnostic likewise.
pub(crate) fn move_diagnostic(problem: &mut Diagnostic, delta: usize) {
    shift(&mut problem.primary.span, delta);
    problem.secondary.iter_mut().for_each(|label| shift(&mut label.span, delta));
    problem.fixes.iter_mut().flat_map(|fix| &mut fix.edits).for_each(|edit| shift(&mut edit.span, delta));
}

/// A span that many bytes further.
fn moved(span: Span, delta: usize) -> Span {
    // Truncation is meant: addition modulo 2^32 is subtraction for what wraps.
    #[expect(clippy::cast_possible_truncation, reason = "both wrap alike")]
    let delta = delta as u32;
    Span { start: span.start.wrapping_add(delta), end: span.end.wrapping_add(delta), ..span }
}

fn shift(span: &mut Span, delta: usize) {
    *span = moved(*span, delta);
}

fn shift_item(item: &mut Item, delta: usize) {
    shift(&mut item.span, delta);
    shift_comment(item.trailing.as_mut(), delta);
    match &mut item.kind {
        ItemKind::Comment(comment) => shift(&mut comment.span, delta),
        ItemKind::Import { path, alias } => {
            shift_name(Some(path), delta);
            shift_name(alias.as_mut(), delta);
        }
        ItemKind::Param { name, value }
        | ItemKind::Let { name, value }
        | ItemKind::Attribute { name, value } => {
            shift_name(Some(name), delta);
            shift_expr(value, delta);
        }
        ItemKind::Limit { metric, at_most } => {
            shift_name(Some(metric), delta);
            shift_expr(at_most, delta);
        }
        ItemKind::Minimize { metric } => shift_name(Some(metric), delta),
        ItemKind::Block(block) => shift_block(block, delta),
        ItemKind::Broken { items, .. } => items.iter_mut().for_each(|item| shift_item(item, delta)),
    }
}

fn shift_block(block: &mut Block, delta: usize) {
    shift_name(Some(&mut block.kind), delta);
    shift_name(block.name.as_mut(), delta);
    shift_comment(block.opening_comment.as_mut(), delta);
    block.items.iter_mut().for_each(|item| shift_item(item, delta));
}

fn shift_name(name: Option<&mut Name>, delta: usize) {
    if let Some(name) = name {
        shift(&mut name.span, delta);
    }
}

fn shift_comment(comment: Option<&mut Comment>, delta: usize) {
    if let Some(comment) = comment {
        shift(&mut comment.span, delta);
    }
}

fn shift_expr(expr: &mut Expr, delta: usize) {
    shift(&mut expr.span, delta);
    match &mut expr.kind {
        ExprKind::Number { unit, .. } => {
            if let Some(unit) = unit {
                shift(&mut unit.span, delta);
            }
        }
        ExprKind::Text(_) | ExprKind::Profile(_) => {}
        ExprKind::Path(names) => names.iter_mut().for_each(|name| shift_name(Some(name), delta)),
        ExprKind::Tensor { element, extents } => {
            shift_name(Some(element), delta);
            extents.iter_mut().for_each(|extent| shift_expr(extent, delta));
        }
        ExprKind::List(list) => {
            list.closing_comments.iter_mut().for_each(|comment| shift_comment(Some(comment), delta));
            for Element { comments, key, value, trailing } in &mut list.elements {
                comments.iter_mut().for_each(|comment| shift_comment(Some(comment), delta));
                shift_comment(trailing.as_mut(), delta);
                key.iter_mut().for_each(|key| shift_expr(key, delta));
                shift_expr(value, delta);
            }
        }
        ExprKind::Call { function, arguments } => {
            shift_name(Some(function), delta);
            for Argument { name, value } in arguments {
                shift_name(name.as_mut(), delta);
                shift_expr(value, delta);
            }
        }
        ExprKind::Negative(inner) | ExprKind::Paren(inner) => shift_expr(inner, delta),
        ExprKind::Chain { first, rest } => {
            shift_expr(first, delta);
            rest.iter_mut().for_each(|(_, operand)| shift_expr(operand, delta));
        }
        ExprKind::Promise { percentile, bound } => {
            shift_name(Some(percentile), delta);
            shift_expr(bound, delta);
        }
        ExprKind::Range { from, to, step } => {
            shift_expr(from, delta);
            shift_expr(to, delta);
            step.iter_mut().for_each(|step| shift_expr(step, delta));
        }
        ExprKind::Over { amount: one, time: other } | ExprKind::Times { item: one, count: other } => {
            shift_expr(one, delta);
            shift_expr(other, delta);
        }
    }
}
