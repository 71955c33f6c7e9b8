//! A file → what of it can be folded: blocks, lists, comments and imports of several lines.

use crate::Snapshot;
use crate::documents::LineIndex;
use ent_lang::ast::{Expr, ExprKind, Item, ItemKind};
use ent_plan::diagnostic::{FileId, Span};
use lsp_types::{FoldingRange, FoldingRangeKind};

/// What can be folded.
#[must_use]
pub fn folding(snapshot: &Snapshot<'_>, file: FileId) -> Vec<FoldingRange> {
    let (Some(ast), Some(lines)) = (snapshot.ast(file), snapshot.lines(file)) else { return Vec::new() };
    let mut folds = Folds { lines, found: Vec::new() };
    folds.items(&ast.items);
    folds.found
}

struct Folds<'a> {
    lines: &'a LineIndex,
    found: Vec<FoldingRange>,
}

impl Folds<'_> {
    fn items(&mut self, items: &[Item]) {
        self.runs(items, Item::is_comment, FoldingRangeKind::Comment);
        let is_import = |item: &Item| matches!(item.kind, ItemKind::Import { .. });
        self.runs(items, is_import, FoldingRangeKind::Imports);
        for item in items {
            match &item.kind {
                ItemKind::Block(block) => {
                    self.fold(item.span, true, None);
                    self.items(&block.items);
                }
                ItemKind::Broken { items, .. } => {
                    if !items.is_empty() {
                        self.fold(item.span, true, None);
                    }
                    self.items(items);
                }
                ItemKind::Param { value, .. }
                | ItemKind::Let { value, .. }
                | ItemKind::Attribute { value, .. }
                | ItemKind::Limit { at_most: value, .. } => self.value(value),
                ItemKind::Comment(_) | ItemKind::Import { .. } | ItemKind::Minimize { .. } => {}
            }
        }
    }

    /// Folds each run of neighbours of one kind that has several lines.
    fn runs(&mut self, items: &[Item], is_it: impl Fn(&Item) -> bool, kind: FoldingRangeKind) {
        for run in items.split(|item| !is_it(item)) {
            let mut first: Option<(Span, Span)> = None;
            for item in run {
                first = match first {
                    Some((start, _)) if !item.follows_blank_line => Some((start, item.span)),
                    Some((start, end)) => {
                        self.fold(start.to(end), false, Some(kind.clone()));
                        Some((item.span, item.span))
                    }
                    None => Some((item.span, item.span)),
                };
            }
            if let Some((start, end)) = first {
                self.fold(start.to(end), false, Some(kind.clone()));
            }
        }
    }

    fn value(&mut self, value: &Expr) {
        let is_list = matches!(value.kind, ExprKind::List(_) | ExprKind::Call { .. });
        self.fold(value.span, is_list, None);
    }

    /// Folds a span of several lines; its last one stays visible where it is a closing bracket.
    fn fold(&mut self, span: Span, is_closed: bool, kind: Option<FoldingRangeKind>) {
        let first = self.lines.line_of(span.start as usize);
        let last = self.lines.line_of((span.end as usize).saturating_sub(1).max(span.start as usize));
        let last = if is_closed { last.saturating_sub(1) } else { last };
        if last <= first {
            return;
        }
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.found.push(FoldingRange {
            start_line: number(first),
            end_line: number(last),
            kind,
            ..FoldingRange::default()
        });
    }
}
