//! A plan → what is shown beside the text: slice, clock, batch and watts of each service.

use crate::Snapshot;
use crate::planning::Planned;
use ent_plan::diagnostic::FileId;
use lsp_types::InlayHint;
use std::ops::Range;

/// The hints in a range of bytes.
#[must_use]
pub fn hints(
    _snapshot: &Snapshot<'_>,
    _planned: Option<&Planned>,
    _file: FileId,
    _bytes: Range<usize>,
) -> Vec<InlayHint> {
    Vec::new()
}
