//! A name → where it is declared and used, over all files of its program.

use crate::Snapshot;
use ent_plan::diagnostic::FileId;
use lsp_types::{DocumentHighlight, Location, PrepareRenameResponse, WorkspaceEdit};

/// Where the name at a byte is declared.
#[must_use]
pub fn definition(_snapshot: &Snapshot<'_>, _file: FileId, _offset: usize) -> Vec<Location> {
    Vec::new()
}

/// Where the name at a byte is used.
#[must_use]
pub fn references(
    _snapshot: &Snapshot<'_>,
    _file: FileId,
    _offset: usize,
    _with_declaration: bool,
) -> Vec<Location> {
    Vec::new()
}

/// Where the name at a byte stands in this file.
#[must_use]
pub fn highlights(_snapshot: &Snapshot<'_>, _file: FileId, _offset: usize) -> Vec<DocumentHighlight> {
    Vec::new()
}

/// What would be renamed at a byte.
///
/// # Errors
/// Why nothing there can be renamed.
pub fn prepare_rename(
    _snapshot: &Snapshot<'_>,
    _file: FileId,
    _offset: usize,
) -> Result<PrepareRenameResponse, String> {
    Err("nothing here has a name of its own".to_owned())
}

/// Renames the name at a byte everywhere.
///
/// # Errors
/// Why it cannot be renamed so.
pub fn rename(
    _snapshot: &Snapshot<'_>,
    _file: FileId,
    _offset: usize,
    _new_name: &str,
) -> Result<WorkspaceEdit, String> {
    Err("nothing here has a name of its own".to_owned())
}
