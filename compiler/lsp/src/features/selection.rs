//! A place → the ever wider ranges around it: word, value, entry, block, file.

use crate::Snapshot;
use ent_lang::ast::{Block, Expr, ExprKind, Item, ItemKind, Name};
use ent_plan::diagnostic::{FileId, Span};
use lsp_types::SelectionRange;

/// The ranges around a byte, the narrowest first.
#[must_use]
pub fn selection(snapshot: &Snapshot<'_>, file: FileId, offset: usize) -> SelectionRange {
    let text = snapshot.text(file);
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let span = |start: usize, end: usize| Span { file, start: number(start), end: number(end) };
    let mut around = Around { offset: number(offset), found: vec![span(0, text.len())] };
    if let Some(ast) = snapshot.ast(file) {
        around.items(&ast.items);
    }
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let start = text.get(..offset).unwrap_or("");
    let start = start.len() - start.chars().rev().take_while(|c| word(*c)).map(char::len_utf8).sum::<usize>();
    let end = text.get(offset..).unwrap_or("");
    let end = offset + end.chars().take_while(|c| word(*c)).map(char::len_utf8).sum::<usize>();
    if start < end {
        around.take(span(start, end));
    }
    around.take(span(offset, offset));
    let mut found = around.found;
    // Each inside the one before it; equal ones once.
    found.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
    found.dedup();
    let mut widest = SelectionRange { range: snapshot.range(span(0, text.len())), parent: None };
    let mut inner = span(0, text.len());
    for next in found.into_iter().skip(1) {
        if next.start < inner.start || next.end > inner.end {
            continue;
        }
        inner = next;
        widest = SelectionRange { range: snapshot.range(next), parent: Some(Box::new(widest)) };
    }
    widest
}

struct Around {
    offset: u32,
    found: Vec<Span>,
}

impl Around {
    /// Takes a span that the place is in or at the end of.
    fn take(&mut self, span: Span) -> bool {
        let is_in = span.start <= self.offset && self.offset <= span.end;
        if is_in {
            self.found.push(span);
        }
        is_in
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            let whole = item.trailing.as_ref().map_or(item.span, |comment| item.span.to(comment.span));
            if !self.take(whole) {
                continue;
            }
            self.take(item.span);
            self.comment(item);
            match &item.kind {
                ItemKind::Comment(_) => {}
                ItemKind::Import { path, alias } => {
                    self.name(path);
                    alias.iter().for_each(|alias| self.name(alias));
                }
                ItemKind::Param { name, value }
                | ItemKind::Let { name, value }
                | ItemKind::Attribute { name, value }
                | ItemKind::Limit { metric: name, at_most: value } => {
                    self.name(name);
                    self.value(value);
                }
                ItemKind::Minimize { metric } => self.name(metric),
                ItemKind::Block(block) => self.block(block),
                ItemKind::Broken { items, .. } => self.items(items),
            }
        }
    }

    fn comment(&mut self, item: &Item) {
        if let Some(comment) = &item.trailing {
            self.take(comment.span);
        }
    }

    fn block(&mut self, block: &Block) {
        self.name(&block.kind);
        block.name.iter().for_each(|name| self.name(name));
        if let (Some(first), Some(last)) = (block.items.first(), block.items.last()) {
            self.take(first.span.to(last.trailing.as_ref().map_or(last.span, |c| c.span)));
        }
        self.items(&block.items);
    }

    fn name(&mut self, name: &Name) {
        if self.take(name.span) && name.is_quoted && name.span.end - name.span.start >= 2 {
            self.take(Span { start: name.span.start + 1, end: name.span.end - 1, ..name.span });
        }
    }

    fn value(&mut self, value: &Expr) {
        if !self.take(value.span) {
            return;
        }
        match &value.kind {
            ExprKind::Number { unit, .. } => {
                if let Some(unit) = unit {
                    self.take(unit.span);
                    self.take(Span { end: unit.span.start, ..value.span });
                }
            }
            ExprKind::Text(_) if value.span.end - value.span.start >= 2 => {
                self.take(Span { start: value.span.start + 1, end: value.span.end - 1, ..value.span });
            }
            ExprKind::Text(_) | ExprKind::Profile(_) => {}
            ExprKind::Path(names) => names.iter().for_each(|name| self.name(name)),
            ExprKind::Tensor { element, extents } => {
                self.name(element);
                extents.iter().for_each(|extent| self.value(extent));
            }
            ExprKind::List(list) => {
                for element in &list.elements {
                    let key = element.key.as_ref();
                    self.take(key.map_or(element.value.span, |key| key.span.to(element.value.span)));
                    key.iter().for_each(|key| self.value(key));
                    self.value(&element.value);
                }
            }
            ExprKind::Call { function, arguments } => {
                self.name(function);
                for argument in arguments {
                    let name = argument.name.as_ref();
                    self.take(name.map_or(argument.value.span, |name| name.span.to(argument.value.span)));
                    name.iter().for_each(|name| self.name(name));
                    self.value(&argument.value);
                }
            }
            ExprKind::Negative(inner) | ExprKind::Paren(inner) => self.value(inner),
            ExprKind::Chain { first, rest } => {
                self.value(first);
                rest.iter().for_each(|(_, operand)| self.value(operand));
            }
            ExprKind::Promise { percentile, bound } => {
                self.name(percentile);
                self.value(bound);
            }
            ExprKind::Range { from, to, step } => {
                self.value(from);
                self.value(to);
                step.iter().for_each(|step| self.value(step));
            }
            ExprKind::Over { amount: one, time: other } | ExprKind::Times { item: one, count: other } => {
                self.value(one);
                self.value(other);
            }
        }
    }
}
