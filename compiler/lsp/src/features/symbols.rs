//! A file or all programs → what they declare.

use crate::Snapshot;
use ent_plan::diagnostic::FileId;
use lsp_types::{DocumentSymbol, WorkspaceSymbol};

/// What a file declares, as a tree.
#[must_use]
pub fn document(_snapshot: &Snapshot<'_>, _file: FileId) -> Vec<DocumentSymbol> {
    Vec::new()
}

/// What all programs declare that is like a query.
#[must_use]
pub fn workspace(_snapshots: &[Snapshot<'_>], _query: &str) -> Vec<WorkspaceSymbol> {
    Vec::new()
}
