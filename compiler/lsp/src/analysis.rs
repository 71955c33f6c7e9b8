//! Files → programs: what each feature is asked with.
//!
//! A [`Snapshot`] is one program at one moment: the texts, trees and lines of its files, and what
//! compiling made of them. Nothing is copied; it borrows from the server for the length of a request.

use crate::documents::LineIndex;
use crate::workspace::Workspace;
use ent_lang::ast::Ast;
use ent_lang::{Program, compile_parsed};
use ent_plan::diagnostic::{Diagnostic, FileId, Severity, Sources, Span};
use ent_plan::text::LoadError;
use lsp_types::{Location, Range, Uri};
use std::collections::BTreeMap;

/// A program at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// Every file the server knows.
    pub workspace: &'a Workspace,
    /// What compiling made of the program.
    pub analysis: &'a Analysis,
}

/// What compiling made of a program.
#[derive(Debug, Default)]
pub struct Analysis {
    /// Its specs that could be had, the main file first.
    pub files: Vec<FileId>,
    /// The program. When there are errors, it lacks what they are about: fit to be shown, not planned.
    pub program: Program,
    /// What is wrong, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The files it was made from, absent ones too, and their revisions then.
    revisions: Vec<(FileId, u64)>,
}

impl Analysis {
    /// Whether any diagnostic is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether a file, absent or not, is part of the program.
    #[must_use]
    pub fn reads(&self, file: FileId) -> bool {
        self.revisions.iter().any(|(id, _)| *id == file)
    }

    /// A number that changes whenever the text of any of its files does.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revisions.iter().map(|(_, revision)| revision).sum()
    }

    fn is_current(&self, workspace: &Workspace) -> bool {
        let is_same = |(id, revision): &(FileId, u64)| {
            workspace.file(*id).is_some_and(|file| file.revision == *revision)
        };
        !self.revisions.is_empty() && self.revisions.iter().all(is_same)
    }
}

impl<'a> Snapshot<'a> {
    /// The resolved program; partial when there are errors.
    #[must_use]
    pub fn program(&self) -> &'a Program {
        &self.analysis.program
    }

    /// The specs of the program, the main file first.
    #[must_use]
    pub fn files(&self) -> &'a [FileId] {
        &self.analysis.files
    }

    /// The texts that spans point into.
    #[must_use]
    pub fn sources(&self) -> &'a Sources {
        &self.workspace.sources
    }

    /// The text of a file.
    #[must_use]
    pub fn text(&self, file: FileId) -> &'a str {
        self.workspace.text(file)
    }

    /// The text under a span.
    #[must_use]
    pub fn snippet(&self, span: Span) -> &'a str {
        self.workspace.sources.snippet(span)
    }

    /// The tree of a file. A file that is part of a program has one.
    #[must_use]
    pub fn ast(&self, file: FileId) -> Option<&'a Ast> {
        self.workspace.ast(file)
    }

    /// The lines of a file.
    #[must_use]
    pub fn lines(&self, file: FileId) -> Option<&'a LineIndex> {
        self.workspace.file(file).map(|f| &f.lines)
    }

    /// The address of a file.
    #[must_use]
    pub fn uri(&self, file: FileId) -> Option<&'a Uri> {
        self.workspace.file(file).map(|f| &f.uri)
    }

    /// The name of a file as programs know it: its path.
    #[must_use]
    pub fn name(&self, file: FileId) -> &'a str {
        self.workspace.file(file).map_or("", |f| f.name.as_str())
    }

    /// The range of a span in its file, in the client's columns.
    #[must_use]
    pub fn range(&self, span: Span) -> Range {
        self.workspace.range_of(span)
    }

    /// The file and range of a span.
    #[must_use]
    pub fn location(&self, span: Span) -> Option<Location> {
        self.workspace.location(span)
    }
}

/// The programs that are looked after, by their main files, each compiled when something of it changed.
#[derive(Debug, Default)]
pub struct Programs {
    by_main: BTreeMap<FileId, Analysis>,
}

impl Programs {
    /// Brings a program up to date. Whether anything had changed.
    pub fn refresh(&mut self, workspace: &mut Workspace, main: FileId) -> bool {
        let analysis = self.by_main.entry(main).or_default();
        if analysis.is_current(workspace) {
            return false;
        }
        *analysis = compile(workspace, main);
        true
    }

    /// A program, if it was ever compiled.
    #[must_use]
    pub fn get(&self, main: FileId) -> Option<&Analysis> {
        self.by_main.get(&main)
    }

    /// Every program with its main file.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Analysis)> {
        self.by_main.iter().map(|(main, analysis)| (*main, analysis))
    }

    /// Forgets the programs that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(FileId) -> bool) {
        self.by_main.retain(|main, _| keep(*main));
    }
}

fn compile(workspace: &mut Workspace, main: FileId) -> Analysis {
    let read = workspace.load_all(main);
    let workspace = &*workspace;
    let name = workspace.file(main).map_or("", |f| f.name.as_str());
    let mut open = |name: &str| match workspace.named(name).and_then(|id| workspace.file(id)) {
        Some(file) => file.parsed.as_ref().map_err(Clone::clone),
        None => Err(LoadError::Missing),
    };
    let outcome = compile_parsed(name, &mut open, &workspace.sources);
    let revision = |id: FileId| (id, workspace.file(id).map_or(0, |f| f.revision));
    Analysis {
        files: outcome.value.files,
        program: outcome.value.program,
        diagnostics: outcome.diagnostics,
        revisions: read.into_iter().map(revision).collect(),
    }
}
