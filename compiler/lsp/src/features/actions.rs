//! A range and its diagnostics → the fixes that can be applied there.

use crate::Snapshot;
use ent_plan::diagnostic::{Diagnostic, FileId};
use lsp_types::{CodeActionContext, CodeActionOrCommand};
use std::ops::Range;

/// The fixes in a range of bytes. `planning` is what the current plan found wrong.
#[must_use]
pub fn actions(
    _snapshot: &Snapshot<'_>,
    _planning: &[Diagnostic],
    _file: FileId,
    _bytes: Range<usize>,
    _context: &CodeActionContext,
) -> Vec<CodeActionOrCommand> {
    Vec::new()
}
