//! A file, broken or not → its parts that were understood, each with its canonical layout.
//!
//! A section is a run of entries without an empty line between them: what is laid out together. Entries
//! with an error are in none, and stay as they are. For a file without errors, the sections with an empty
//! line between each two are what [`format()`](crate::format()) makes of it.

use crate::ast::{Ast, Item};
use crate::parsed::Parsed;
use crate::print::{has_gap_before, print};
use std::ops::Range;

/// Entries that are laid out together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The bytes from its first entry to the end of its last, comments included.
    pub bytes: Range<usize>,
    /// How it would be written, with `\n` between lines and none at the end.
    pub text: String,
}

/// The sections of a file that touch a range of bytes, in order.
#[must_use]
pub fn sections(parsed: &Parsed, bytes: Range<usize>) -> Vec<Section> {
    let items = &parsed.ast().items;
    let mut found = Vec::new();
    let mut start = 0;
    for i in 1..=items.len() {
        let (Some(previous), next) = (items.get(i - 1), items.get(i)) else { break };
        let is_clean = |item: &Item| parsed.is_clean(item) || item.is_comment();
        let goes_on =
            |item: &&Item| !has_gap_before(item, previous, true) && is_clean(item) && is_clean(previous);
        if next.filter(goes_on).is_some() {
            continue;
        }
        let run = items.get(start..i).unwrap_or(&[]);
        start = i;
        let covered = covered(run);
        if run.first().is_some_and(is_clean) && covered.start <= bytes.end && covered.end >= bytes.start {
            let ast = Ast { items: run.to_vec(), file: parsed.ast().file };
            let text = print(&ast).trim_end_matches('\n').to_owned();
            found.push(Section { bytes: covered, text });
        }
    }
    found
}

/// From the first byte of some entries to their last, comments included.
fn covered(run: &[Item]) -> Range<usize> {
    let start = run.iter().map(|item| item.span.start).min().unwrap_or(0);
    let end = |item: &Item| item.trailing.as_ref().map_or(item.span.end, |c| c.span.end.max(item.span.end));
    start as usize..run.iter().map(end).max().unwrap_or(0) as usize
}
