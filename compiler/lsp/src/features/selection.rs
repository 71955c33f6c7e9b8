//! A place → the ever wider ranges around it.

use crate::Snapshot;
use ent_plan::diagnostic::FileId;
use lsp_types::SelectionRange;

/// The ranges around a byte, the narrowest first.
#[must_use]
pub fn selection(_snapshot: &Snapshot<'_>, _file: FileId, _offset: usize) -> SelectionRange {
    SelectionRange { range: lsp_types::Range::default(), parent: None }
}
