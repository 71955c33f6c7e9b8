//! Marked texts → a workspace to ask about: `$0` is the place in question.

use crate::analysis::{Analysis, Programs, Snapshot};
use crate::workspace::Workspace;
use ent_plan::diagnostic::FileId;
use lsp_types::TextEdit;
use std::str::FromStr;

/// A workspace in which one place is marked.
pub(crate) struct World {
    pub(crate) workspace: Workspace,
    programs: Programs,
    mains: Vec<FileId>,
    pub(crate) file: FileId,
    pub(crate) offset: usize,
}

impl World {
    /// Opens files by their paths; the first is the main file. One of them has the mark, or the first
    /// is asked about at its beginning.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self::of_mains(files, &[files[0].0])
    }

    /// The same with several programs.
    pub(crate) fn of_mains(files: &[(&str, &str)], mains: &[&str]) -> Self {
        let mut workspace = Workspace::default();
        let (mut file, mut offset) = (None, 0);
        for (name, marked) in files {
            let uri = lsp_types::Uri::from_str(&format!("file:///{name}")).unwrap();
            let id = workspace.open(uri, 1, marked.replacen("$0", "", 1));
            if let Some(at) = marked.find("$0") {
                (file, offset) = (Some(id), at);
            }
        }
        let id = |name: &str| workspace.named(&format!("/{name}")).unwrap();
        let file = file.unwrap_or_else(|| id(files[0].0));
        let mains: Vec<FileId> = mains.iter().map(|name| id(name)).collect();
        let mut programs = Programs::default();
        for main in &mains {
            programs.refresh(&mut workspace, *main);
        }
        Self { workspace, programs, mains, file, offset }
    }

    /// One file.
    pub(crate) fn of(marked: &str) -> Self {
        Self::new(&[("main.ent", marked)])
    }

    pub(crate) fn analysis(&self) -> &Analysis {
        self.programs.get(self.mains[0]).unwrap()
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { workspace: &self.workspace, analysis: self.analysis() }
    }

    pub(crate) fn snapshots(&self) -> Vec<Snapshot<'_>> {
        let analyses = self.mains.iter().map(|main| self.programs.get(*main).unwrap());
        analyses.map(|analysis| Snapshot { workspace: &self.workspace, analysis }).collect()
    }

    /// The text under a range of a file.
    pub(crate) fn text(&self, file: FileId, range: lsp_types::Range) -> &str {
        &self.workspace.text(file)[self.workspace.bytes(file, range)]
    }

    /// A file's text after some edits.
    pub(crate) fn edited(&self, file: FileId, edits: &[TextEdit]) -> String {
        let mut text = self.workspace.text(file).to_owned();
        let mut edits: Vec<(std::ops::Range<usize>, &str)> = edits
            .iter()
            .map(|edit| (self.workspace.bytes(file, edit.range), edit.new_text.as_str()))
            .collect();
        edits.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes.start));
        for (bytes, new) in edits {
            text.replace_range(bytes, new);
        }
        text
    }
}

/// Three services on one board: the README's program.
pub(crate) const QUICKSTART: &str = include_str!("../../../examples/quickstart/program.ent");
