//! Changed files → the diagnostics that clients are shown, cleared where there are none any more.

use super::Server;
use crate::features::diagnostics;
use crate::workspace::File;
use ent_plan::diagnostic::FileId;
use lsp_server::ErrorCode;
use lsp_types::notification::PublishDiagnostics;
use lsp_types::{Diagnostic, PublishDiagnosticsParams};
use std::collections::{BTreeMap, BTreeSet};

/// What the client was last told of each file.
#[derive(Debug, Default)]
pub(super) struct Published {
    by_file: BTreeMap<FileId, (Option<i32>, Vec<Diagnostic>)>,
}

impl Server {
    /// The main file of the program that a file is asked about in.
    pub(super) fn main_of(&self, file: FileId) -> FileId {
        self.workspace.mains_of(file).first().copied().unwrap_or(file)
    }

    /// Compiles what has changed and tells the client.
    pub(super) fn publish(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let dirty = std::mem::take(&mut self.dirty);
        let is_looked_at = |(_, f): &(FileId, &File)| f.is_open() && f.foreign.is_none();
        let open: Vec<FileId> = self.workspace.files().filter(is_looked_at).map(|(id, _)| id).collect();
        let mains: BTreeSet<FileId> = open.iter().flat_map(|file| self.workspace.mains_of(*file)).collect();
        for (main, _) in self.programs.iter() {
            if !mains.contains(&main) {
                self.background.forget(main);
            }
        }
        self.refuse_asked(|main| !mains.contains(&main), ErrorCode::ContentModified, "the file was closed");
        self.programs.retain(|main| mains.contains(&main));
        for main in &mains {
            if self.programs.refresh(&mut self.workspace, *main) {
                self.recompiled(*main);
            }
        }
        self.tell(&dirty);
    }

    /// Tells the client what is wrong with each file, where that is news or the file was edited.
    pub(super) fn tell(&mut self, edited: &BTreeSet<FileId>) {
        let mut by_file: BTreeMap<FileId, Vec<Diagnostic>> = BTreeMap::new();
        for (main, analysis) in self.programs.iter() {
            for file in &analysis.files {
                by_file.entry(*file).or_default();
            }
            // Places of an older text are not where they were.
            let planned = self.background.planned(main).filter(|p| p.revision == analysis.revision());
            let planned = planned.map_or(&[][..], |p| &p.diagnostics);
            for problem in analysis.diagnostics.iter().chain(planned) {
                let list = by_file.entry(problem.primary.span.file).or_default();
                let shown = diagnostics::shown(&self.workspace, problem);
                if !list.contains(&shown) {
                    list.push(shown);
                }
            }
        }
        for file in self.published.by_file.keys() {
            by_file.entry(*file).or_default();
        }
        for (file, diagnostics) in by_file {
            let version = self.workspace.file(file).and_then(|f| f.version);
            let is_news = match self.published.by_file.get(&file) {
                Some((_, before)) => *before != diagnostics || (edited.contains(&file) && version.is_some()),
                None => !diagnostics.is_empty() || version.is_some(),
            };
            if !is_news {
                continue;
            }
            let Some(uri) = self.workspace.file(file).map(|f| f.uri.clone()) else { continue };
            self.notify::<PublishDiagnostics>(&PublishDiagnosticsParams {
                uri,
                diagnostics: diagnostics.clone(),
                version,
            });
            if diagnostics.is_empty() && version.is_none() {
                self.published.by_file.remove(&file);
            } else {
                self.published.by_file.insert(file, (version, diagnostics));
            }
        }
    }
}
