//! What the client tells → the files as they are now.

use super::Server;
use crate::workspace::name_of;
use ent_plan::diagnostic::FileId;
use lsp_server::Notification;
use lsp_types::notification::{
    DidChangeConfiguration, DidChangeTextDocument, DidChangeWatchedFiles, DidChangeWorkspaceFolders,
    DidCloseTextDocument, DidCreateFiles, DidDeleteFiles, DidOpenTextDocument, DidRenameFiles,
    DidSaveTextDocument, Notification as Told,
};
use lsp_types::request::RegisterCapability;
use lsp_types::{
    DidChangeWatchedFilesRegistrationOptions, FileSystemWatcher, GlobPattern, MessageType, Registration,
    RegistrationParams,
};

impl Server {
    pub(super) fn notification(&mut self, note: Notification) {
        match note.method.as_str() {
            DidOpenTextDocument::METHOD => self.told::<DidOpenTextDocument>(note, |server, params| {
                let document = params.text_document;
                let file = server.workspace.open(document.uri, document.version, document.text);
                if let Some(file) = server.workspace.file(file)
                    && let Some(what) = file.foreign
                {
                    let note = format!("`{}` is {what}, not a program: it is left alone", file.name);
                    server.log(MessageType::INFO, &note);
                }
                server.reload_closed();
                server.dirty.insert(file);
            }),
            DidChangeTextDocument::METHOD => self.told::<DidChangeTextDocument>(note, |server, params| {
                let document = params.text_document;
                let Some(file) = server.workspace.find(&document.uri) else { return };
                server.workspace.change(file, document.version, params.content_changes);
                server.dirty.insert(file);
            }),
            DidCloseTextDocument::METHOD => self.told::<DidCloseTextDocument>(note, |server, params| {
                let Some(file) = server.workspace.find(&params.text_document.uri) else { return };
                server.workspace.close(file);
                server.dirty.insert(file);
            }),
            DidSaveTextDocument::METHOD => self.told::<DidSaveTextDocument>(note, |server, _| {
                server.reload_closed();
            }),
            DidChangeWatchedFiles::METHOD
            | DidCreateFiles::METHOD
            | DidRenameFiles::METHOD
            | DidDeleteFiles::METHOD => self.reload_closed(),
            DidChangeWorkspaceFolders::METHOD => {
                self.told::<DidChangeWorkspaceFolders>(note, |server, params| {
                    let name = |uri| name_of(uri).trim_end_matches('/').to_owned();
                    let removed: Vec<String> = params.event.removed.iter().map(|f| name(&f.uri)).collect();
                    server.workspace.folders.retain(|folder| !removed.contains(folder));
                    server.workspace.folders.extend(params.event.added.iter().map(|f| name(&f.uri)));
                    server.workspace.scan();
                });
            }
            DidChangeConfiguration::METHOD => self.configure(note),
            // Traces, and what begins with `$/` may be ignored.
            _ => {}
        }
    }

    fn told<N: Told>(&mut self, note: Notification, take: impl FnOnce(&mut Self, N::Params)) {
        match serde_json::from_value(super::requests::with_legal_addresses(note.params)) {
            Ok(params) => take(self, params),
            Err(error) => self.log(MessageType::ERROR, &format!("`{}` not understood: {error}", N::METHOD)),
        }
    }

    /// Reads every file again that is known and not open.
    fn reload_closed(&mut self) {
        let closed: Vec<FileId> =
            self.workspace.files().filter(|(_, f)| !f.is_open()).map(|(id, _)| id).collect();
        for file in closed {
            if self.workspace.reload(file) {
                self.dirty.insert(file);
            }
        }
    }

    /// Asks to be told when files change on disk, of a client that can.
    pub(super) fn watch_files(&self) {
        let workspace = self.client.capabilities.workspace.as_ref();
        let watched = workspace.and_then(|w| w.did_change_watched_files.as_ref());
        if watched.and_then(|w| w.dynamic_registration) != Some(true) {
            return;
        }
        let watchers = vec![FileSystemWatcher {
            glob_pattern: GlobPattern::String("**/*.{ent,json,csv}".to_owned()),
            kind: None,
        }];
        let options = DidChangeWatchedFilesRegistrationOptions { watchers };
        self.ask::<RegisterCapability>(
            "watch",
            &RegistrationParams {
                registrations: vec![Registration {
                    id: "watch".to_owned(),
                    method: DidChangeWatchedFiles::METHOD.to_owned(),
                    register_options: serde_json::to_value(options).ok(),
                }],
            },
        );
    }
}
