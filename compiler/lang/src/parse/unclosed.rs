//! A block without its `}` → which block that most likely is, and where the `}` belongs.
//!
//! The brace that is missing may be that of an inner block, which then took the brace of the outer one:
//! its entries stand deeper than what follows them, and its brace less deep than its first line.

#![expect(clippy::wildcard_enum_match_arm, reason = "only blocks are closed")]

use super::Reader;
use crate::ast::{Block, Item, ItemKind};
use crate::fields::head;
use crate::fixes::indent_at;
use ent_plan::diagnostic::{Code, Diagnostic, Fix, Span};

impl Reader<'_> {
    /// Reports a block that is not closed; `brace` is its opening one.
    pub(super) fn unclosed(&self, block: &Block, brace: Span) -> Diagnostic {
        const HELP: &str = "add a `}` at its end";
        let (block, place, end) = match self.inner_unclosed(&block.items) {
            Some((inner, end)) => (inner, head(inner), end),
            None => {
                let last = block.items.last().map(end_of);
                let opening = block.opening_comment.as_ref().map(|c| c.span.end);
                (block, brace, last.or(opening).unwrap_or(brace.end))
            }
        };
        let what = format!("this block of `{}` is never closed", block.kind.text);
        let closing = if block.is_inline {
            " }".to_owned()
        } else {
            format!("\n{}}}", self.indent(block.kind.span.start))
        };
        Diagnostic::error(Code::Syntax, place, "block is not closed").label(what).help(HELP).fix(Fix::insert(
            HELP,
            Span { start: end, end, ..brace },
            closing,
        ))
    }

    /// Gives the entries that an inner block took with the brace of the one around it back to that one.
    pub(super) fn give_back(&self, items: &mut Vec<Item>) {
        let is_block = |item: &Item| matches!(&item.kind, ItemKind::Block(block) if !block.is_inline);
        let Some(at) = items.iter().rposition(is_block) else { return };
        let Some(Item { kind: ItemKind::Block(block), span, trailing, .. }) = items.get_mut(at) else {
            return;
        };
        self.give_back(&mut block.items);
        let depth = self.indent(block.kind.span.start).len();
        if self.indent(span.end.saturating_sub(1)).len() >= depth {
            return;
        }
        let is_inside = |i: &Item| self.indent(i.span.start).len() > depth;
        let n_inside = block.items.iter().take_while(|i| is_inside(i)).count();
        let rest = block.items.split_off(n_inside);
        span.end = block.items.last().map_or(span.end, end_of);
        // What stands behind the brace stands behind that of the outer block.
        *trailing = None;
        items.splice(at + 1..at + 1, rest);
    }

    /// The innermost block that took the brace of one around it, and where its own belongs.
    fn inner_unclosed<'b>(&self, items: &'b [Item]) -> Option<(&'b Block, u32)> {
        let (item, block) = items.iter().rev().find_map(|item| match &item.kind {
            ItemKind::Block(block) if !block.is_inline => Some((item, block)),
            _ => None,
        })?;
        if let Some(found) = self.inner_unclosed(&block.items) {
            return Some(found);
        }
        let depth = self.indent(block.kind.span.start).len();
        let closing = item.span.end.saturating_sub(1);
        if self.indent(closing).len() >= depth {
            return None;
        }
        let is_inside = |i: &&Item| self.indent(i.span.start).len() > depth;
        let last = block.items.iter().take_while(is_inside).last()?;
        Some((block, end_of(last)))
    }

    /// The spaces that the line of a byte begins with. Nothing that stands before the entry at the top of
    /// the file has a say in it: see `again`.
    fn indent(&self, at: u32) -> &str {
        let entry = self.text.get(self.entry..).unwrap_or("");
        indent_at(entry, (at as usize).saturating_sub(self.entry))
    }
}

fn end_of(item: &Item) -> u32 {
    item.trailing.as_ref().map_or(item.span.end, |comment| comment.span.end)
}
