//! A file that is open in an editor → its tree, kept up to date edit by edit.

use crate::ast::{Ast, Item, ItemKind};
use crate::parse::{Entries, Report, entries, reparse};
use ent_plan::diagnostic::{Diagnostic, FileId};

/// A file's tree and syntax errors.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    ast: Ast,
    reports: Vec<Report>,
}

/// A replaced part of a text: bytes `start..old_end` became `start..new_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// First byte.
    pub start: usize,
    /// One past the last byte that was replaced, in the old text.
    pub old_end: usize,
    /// One past the last byte that is new, in the new text.
    pub new_end: usize,
}

impl Parsed {
    /// Parses a whole file.
    #[must_use]
    pub fn new(file: FileId, text: &str) -> Self {
        let Entries { items, reports } = entries(file, text);
        Self { ast: Ast { items, file }, reports }
    }

    /// Brings the tree up to date: `text` is the new text, `edit` what was replaced in the one before.
    /// The result is that of [`Parsed::new`] on the new text; the time is that of the blocks around the edit.
    pub fn edit(&mut self, text: &str, edit: Edit) {
        let items = std::mem::take(&mut self.ast.items);
        let mut entries = Entries { items, reports: std::mem::take(&mut self.reports) };
        reparse(self.ast.file, &mut entries, text, edit);
        self.ast.items = entries.items;
        self.reports = entries.reports;
    }

    /// The tree.
    #[must_use]
    pub fn ast(&self) -> &Ast {
        &self.ast
    }

    /// Whether an entry at the top of the file was understood, and everything inside it.
    #[must_use]
    pub fn is_clean(&self, item: &Item) -> bool {
        let start = item.span.start as usize;
        let is_reported = self.reports.binary_search_by_key(&start, |r| r.entry).is_ok();
        !is_reported && !matches!(item.kind, ItemKind::Broken { .. })
    }

    /// The syntax errors, in the order of the text.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        self.reports.iter().map(|r| r.problem.clone()).collect()
    }
}
