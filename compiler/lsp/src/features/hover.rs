//! A place in a program → what stands there.

use crate::Snapshot;
use crate::planning::Planned;
use ent_plan::diagnostic::FileId;
use lsp_types::Hover;

/// What stands at a byte; with what the current plan does about it, if there is one.
#[must_use]
pub fn hover(
    _snapshot: &Snapshot<'_>,
    _planned: Option<&Planned>,
    _file: FileId,
    _offset: usize,
) -> Option<Hover> {
    None
}
