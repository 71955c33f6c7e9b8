//! A file → the edits that give it the canonical layout.

use crate::Snapshot;
use ent_plan::diagnostic::FileId;
use lsp_types::TextEdit;
use std::ops::Range;

/// The edits for a whole file.
#[must_use]
pub fn whole(_snapshot: &Snapshot<'_>, _file: FileId) -> Vec<TextEdit> {
    Vec::new()
}

/// The edits for the entries that a range of bytes touches.
#[must_use]
pub fn range(_snapshot: &Snapshot<'_>, _file: FileId, _bytes: Range<usize>) -> Vec<TextEdit> {
    Vec::new()
}

/// The edits after a character was typed before a byte.
#[must_use]
pub fn on_type(_snapshot: &Snapshot<'_>, _file: FileId, _offset: usize, _typed: &str) -> Vec<TextEdit> {
    Vec::new()
}
