//! A place in a program → what could be written there.

use crate::Snapshot;
use ent_plan::diagnostic::FileId;
use lsp_types::{CompletionItem, CompletionList};

/// What could be written at a byte.
#[must_use]
pub fn completion(_snapshot: &Snapshot<'_>, _file: FileId, _offset: usize) -> CompletionList {
    CompletionList::default()
}

/// Adds what an item leaves out until it is looked at.
#[must_use]
pub fn resolve(item: CompletionItem) -> CompletionItem {
    item
}
