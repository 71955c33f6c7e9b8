//! Ast → text, in the one canonical layout.
//!
//! Two spaces a level, one entry a line, `=` and comments aligned over lines without a gap, at most one
//! empty line between entries. Comments are kept; those inside an expression stand before its entry.
//! Printing what was printed changes nothing.

#![expect(clippy::wildcard_enum_match_arm, reason = "only a bare number is printed close")]

use crate::ast::{Ast, Block, Expr, ExprKind, Item, ItemKind, List, Name, Unit};
use std::fmt::Write as _;

/// Prints a file.
#[must_use]
pub fn print(ast: &Ast) -> String {
    let mut text = String::new();
    items(&mut text, &ast.items, 0, true);
    text
}

/// Prints one value as it would be written.
#[must_use]
pub fn print_expr(value: &Expr) -> String {
    let mut text = String::new();
    expr(&mut text, value, 0);
    text
}

/// One entry, ready to be put below the others: the part before the aligned sign, and the rest.
struct Line<'a> {
    indent: usize,
    left: String,
    sign: &'static str,
    right: String,
    comment: Option<&'a str>,
}

fn items(text: &mut String, items: &[Item], indent: usize, is_top: bool) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let previous = i.checked_sub(1).and_then(|i| items.get(i));
        if previous.is_some_and(|p| has_gap_before(item, p, is_top)) {
            flush(text, &mut lines);
            text.push('\n');
        }
        match &item.kind {
            ItemKind::Block(block) if !block.is_inline => {
                flush(text, &mut lines);
                multiline_block(text, block, item, indent);
            }
            kind => {
                let line = line(kind, item, indent);
                // A value of several lines is not aligned with what is around it.
                let is_tall = line.right.contains('\n');
                if is_tall {
                    flush(text, &mut lines);
                }
                lines.push(line);
                if is_tall {
                    flush(text, &mut lines);
                }
            }
        }
    }
    flush(text, &mut lines);
}

/// Whether an empty line stands between an entry and the one before it.
pub(crate) fn has_gap_before(item: &Item, previous: &Item, is_top: bool) -> bool {
    let is_block = |item: &Item| matches!(&item.kind, ItemKind::Block(b) if !b.is_inline);
    let needs_gap = is_top && (is_block(previous) || (is_block(item) && !previous.is_comment()));
    item.follows_blank_line || needs_gap
}

fn multiline_block(text: &mut String, block: &Block, item: &Item, indent: usize) {
    pad(text, indent);
    block_head(text, block);
    text.push('{');
    if let Some(comment) = &block.opening_comment {
        text.push(' ');
        text.push_str(&comment.text);
    }
    text.push('\n');
    items(text, &block.items, indent + 1, false);
    pad(text, indent);
    text.push('}');
    if let Some(comment) = &item.trailing {
        text.push(' ');
        text.push_str(&comment.text);
    }
    text.push('\n');
}

fn line<'a>(kind: &'a ItemKind, item: &'a Item, indent: usize) -> Line<'a> {
    let (left, sign, right) = parts(kind, indent);
    Line { indent, left, sign, right, comment: item.trailing.as_ref().map(|c| c.text.as_str()) }
}

fn parts(kind: &ItemKind, indent: usize) -> (String, &'static str, String) {
    let print = |value: &Expr| {
        let mut text = String::new();
        expr(&mut text, value, indent);
        text
    };
    match kind {
        ItemKind::Comment(comment) => (comment.text.clone(), "", String::new()),
        ItemKind::Import { path, alias } => {
            let alias = alias.as_ref().map(|a| format!(" as {}", a.text)).unwrap_or_default();
            (format!("import {}{alias}", quoted(&path.text)), "", String::new())
        }
        ItemKind::Param { name, value } => (format!("param {}", name.text), "=", print(value)),
        ItemKind::Let { name, value } => (format!("let {}", name.text), "=", print(value)),
        ItemKind::Limit { metric, at_most } => (format!("limit {}", metric.text), "<=", print(at_most)),
        ItemKind::Minimize { metric } => (format!("minimize {}", metric.text), "", String::new()),
        ItemKind::Attribute { name, value } => (name.text.clone(), "=", print(value)),
        ItemKind::Block(block) => (inline_block(block, indent), "", String::new()),
        ItemKind::Broken { .. } => (String::new(), "", String::new()),
    }
}

fn inline_block(block: &Block, indent: usize) -> String {
    let mut text = String::new();
    block_head(&mut text, block);
    text.push('{');
    for (i, item) in block.items.iter().enumerate() {
        let (left, sign, right) = parts(&item.kind, indent);
        text.push(' ');
        text.push_str(&left);
        if !sign.is_empty() {
            let _ = write!(text, " {sign} {right}");
        }
        let is_block = matches!(item.kind, ItemKind::Block(_));
        if i + 1 < block.items.len() && !is_block {
            text.push(',');
        }
    }
    text.push_str(if block.items.is_empty() { "}" } else { " }" });
    text
}

fn block_head(text: &mut String, block: &Block) {
    text.push_str(&block.kind.text);
    text.push(' ');
    if let Some(name) = &block.name {
        push_name(text, name);
        text.push(' ');
    }
}

/// Writes lines that belong together: signs below each other, comments below each other.
fn flush(text: &mut String, lines: &mut Vec<Line<'_>>) {
    let width = |s: &str| s.chars().count();
    let mut sign_column = vec![0; lines.len()];
    for run in runs(lines, |l| l.sign) {
        let widest = lines[run.clone()].iter().map(|l| width(&l.left)).max().unwrap_or(0);
        sign_column[run].fill(widest);
    }
    let bodies: Vec<String> = lines
        .iter()
        .zip(&sign_column)
        .map(|(line, column)| {
            if line.sign.is_empty() {
                return line.left.clone();
            }
            format!("{}{} {} {}", line.left, " ".repeat(column - width(&line.left)), line.sign, line.right)
        })
        .collect();
    let mut comment_column = vec![0; lines.len()];
    for run in runs(lines, |l| if l.comment.is_some() { "comment" } else { "" }) {
        let widest = bodies[run.clone()].iter().map(|b| width(b.lines().last().unwrap_or(""))).max();
        comment_column[run].fill(widest.unwrap_or(0));
    }
    for ((line, body), column) in lines.iter().zip(&bodies).zip(&comment_column) {
        pad(text, line.indent);
        text.push_str(body);
        if let Some(comment) = line.comment {
            let last = width(body.lines().last().unwrap_or(""));
            let _ = write!(text, "{} {comment}", " ".repeat(column - last));
        }
        text.push('\n');
    }
    lines.clear();
}

/// Maximal runs of neighbours with the same, not empty, key.
fn runs<'l>(
    lines: &'l [Line<'_>],
    key: impl Fn(&Line<'_>) -> &'static str + 'l,
) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for i in 1..=lines.len() {
        if i < lines.len() && key(&lines[i]) == key(&lines[start]) {
            continue;
        }
        if !key(&lines[start]).is_empty() {
            found.push(start..i);
        }
        start = i;
    }
    found
}

fn pad(text: &mut String, indent: usize) {
    for _ in 0..indent {
        text.push_str("  ");
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn push_name(text: &mut String, name: &Name) {
    if name.is_quoted {
        text.push_str(&quoted(&name.text));
    } else {
        text.push_str(&name.text);
    }
}

fn push_unit(text: &mut String, unit: &Unit) {
    if unit.text != "%" {
        text.push(' ');
    }
    text.push_str(&unit.text);
}

fn expr(text: &mut String, value: &Expr, indent: usize) {
    match &value.kind {
        ExprKind::Number { digits, unit } => {
            text.push_str(digits);
            if let Some(unit) = unit {
                push_unit(text, unit);
            }
        }
        ExprKind::Text(inner) => text.push_str(&quoted(inner)),
        ExprKind::Path(names) => {
            for (i, name) in names.iter().enumerate() {
                if i > 0 {
                    text.push('.');
                }
                push_name(text, name);
            }
        }
        ExprKind::Profile(name) => text.push_str(name),
        ExprKind::Tensor { element, extents } => {
            text.push_str(&element.text);
            text.push('[');
            for (i, extent) in extents.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                expr(text, extent, indent);
            }
            text.push(']');
        }
        ExprKind::List(inner) => list(text, inner, indent),
        ExprKind::Call { function, arguments } => {
            text.push_str(&function.text);
            text.push('(');
            for (i, argument) in arguments.iter().enumerate() {
                if i > 0 {
                    text.push_str(", ");
                }
                if let Some(name) = &argument.name {
                    let _ = write!(text, "{} = ", name.text);
                }
                expr(text, &argument.value, indent);
            }
            text.push(')');
        }
        ExprKind::Negative(inner) => {
            text.push('-');
            expr(text, inner, indent);
        }
        ExprKind::Paren(inner) => {
            text.push('(');
            expr(text, inner, indent);
            text.push(')');
        }
        ExprKind::Chain { first, rest } => {
            expr(text, first, indent);
            for (operator, operand) in rest {
                let _ = write!(text, " {} ", operator.sign());
                expr(text, operand, indent);
            }
        }
        ExprKind::Promise { percentile, bound } => {
            let _ = write!(text, "{} <= ", percentile.text);
            expr(text, bound, indent);
        }
        ExprKind::Range { from, to, step } => {
            // Bare numbers stand close together, quantities apart: `2..6`, `210 MHz .. 1410 MHz`.
            let is_bare = |e: &Expr| matches!(&e.kind, ExprKind::Number { unit: None, .. });
            expr(text, from, indent);
            text.push_str(if is_bare(from) && is_bare(to) { ".." } else { " .. " });
            expr(text, to, indent);
            if let Some(step) = step {
                text.push_str(" step ");
                expr(text, step, indent);
            }
        }
        ExprKind::Over { amount, time } => {
            expr(text, amount, indent);
            text.push_str(" over ");
            expr(text, time, indent);
        }
        ExprKind::Times { item, count } => {
            expr(text, item, indent);
            text.push_str(" x ");
            expr(text, count, indent);
        }
    }
}

fn list(text: &mut String, list: &List, indent: usize) {
    if !list.is_multiline {
        text.push('[');
        for (i, element) in list.elements.iter().enumerate() {
            if i > 0 {
                text.push_str(", ");
            }
            if let Some(key) = &element.key {
                expr(text, key, indent);
                text.push_str(": ");
            }
            expr(text, &element.value, indent);
        }
        text.push(']');
        return;
    }
    text.push_str("[\n");
    for element in &list.elements {
        for comment in &element.comments {
            pad(text, indent + 1);
            text.push_str(&comment.text);
            text.push('\n');
        }
        pad(text, indent + 1);
        if let Some(key) = &element.key {
            expr(text, key, indent + 1);
            text.push_str(": ");
        }
        expr(text, &element.value, indent + 1);
        text.push(',');
        if let Some(comment) = &element.trailing {
            text.push(' ');
            text.push_str(&comment.text);
        }
        text.push('\n');
    }
    for comment in &list.closing_comments {
        pad(text, indent + 1);
        text.push_str(&comment.text);
        text.push('\n');
    }
    pad(text, indent);
    text.push(']');
}
