//! A file → the commands that are shown above its lines: "plan this file".

use crate::Snapshot;
use crate::planning::Planned;
use ent_plan::diagnostic::FileId;
use lsp_types::CodeLens;

/// The lenses of a file.
#[must_use]
pub fn lenses(_snapshot: &Snapshot<'_>, _planned: Option<&Planned>, _file: FileId) -> Vec<CodeLens> {
    Vec::new()
}
