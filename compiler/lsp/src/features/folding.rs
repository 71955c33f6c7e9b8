//! A file → what of it can be folded.

use crate::Snapshot;
use ent_plan::diagnostic::FileId;
use lsp_types::FoldingRange;

/// What can be folded.
#[must_use]
pub fn folding(_snapshot: &Snapshot<'_>, _file: FileId) -> Vec<FoldingRange> {
    Vec::new()
}
