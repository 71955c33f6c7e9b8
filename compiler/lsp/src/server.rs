//! The client's messages → answers and diagnostics, one at a time.
//!
//! All messages that have arrived are taken from the connection before the next one is handled: a
//! request that was cancelled meanwhile is never begun, and edits that queued up are compiled once.
//! Diagnostics are made when nothing waits any more. A handler that panics is answered with an error.

mod capabilities;
mod notifications;
mod plans;
mod publish;
mod requests;

use crate::analysis::Programs;
use crate::documents::Encoding;
use crate::planning::{Background, Event, PLAN, Planning, SHOW_PLAN};
use crate::workspace::{Workspace, name_of};
use crossbeam_channel::{Receiver, Sender};
use ent_plan::diagnostic::FileId;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{InitializeParams, InitializeResult, ServerInfo};
use publish::Published;
use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// `shutdown`, then `exit`.
    InOrder,
    /// `exit` without `shutdown`, or the connection broke.
    OutOfOrder,
}

/// At most this many messages are handled before diagnostics are made, however many wait.
const MAX_UNCOMPILED: usize = 256;

/// Speaks with a client until it leaves.
pub fn serve(connection: Connection, planning: Option<Arc<dyn Planning>>) -> End {
    let commands: &[&str] = match &planning {
        Some(planning) if planning.draws() => &[PLAN, SHOW_PLAN],
        Some(_) => &[PLAN],
        None => &[],
    };
    let Some(client) = initialize(&connection, commands) else { return End::OutOfOrder };
    let Connection { sender, receiver } = connection;
    let mut background = Background::start(planning);
    if let Some(options) = &client.initialization_options {
        background.settings.take(options);
    }
    let results = background.results();
    let mut server = Server {
        sender,
        workspace: Workspace::default(),
        programs: Programs::default(),
        background,
        client,
        published: Published::default(),
        dirty: BTreeSet::new(),
        asked: Vec::new(),
        n_refreshes: 0,
        is_shut_down: false,
    };
    server.begin();
    server.run(&receiver, &results)
}

/// The state of a conversation.
struct Server {
    sender: Sender<Message>,
    workspace: Workspace,
    programs: Programs,
    background: Background,
    client: InitializeParams,
    published: Published,
    /// Files whose programs must be looked at again.
    dirty: BTreeSet<FileId>,
    /// Requests that wait for a plan, with the main files of their programs.
    asked: Vec<(RequestId, FileId, plans::Wanted)>,
    n_refreshes: u64,
    is_shut_down: bool,
}

/// Waits for `initialize`, answers it, and waits for `initialized`. `None` when the client left instead.
fn initialize(connection: &Connection, commands: &[&str]) -> Option<InitializeParams> {
    let refuse = |id: RequestId, code: ErrorCode, why: &str| {
        connection.sender.send(Message::Response(Response::new_err(id, code as i32, why.to_owned()))).ok()
    };
    let mut params = None;
    for message in &connection.receiver {
        match message {
            Message::Request(request) if request.method == "initialize" && params.is_none() => {
                match serde_json::from_value::<InitializeParams>(requests::with_legal_addresses(
                    request.params,
                )) {
                    Ok(given) => {
                        let general = given.capabilities.general.as_ref();
                        let encoding =
                            Encoding::choose(general.and_then(|g| g.position_encodings.as_deref()));
                        let result = InitializeResult {
                            capabilities: capabilities::capabilities(encoding, commands),
                            server_info: Some(ServerInfo {
                                name: "entc".to_owned(),
                                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                            }),
                        };
                        let value = serde_json::to_value(result).unwrap_or_default();
                        connection
                            .sender
                            .send(Message::Response(Response::new_ok(request.id, value)))
                            .ok()?;
                        params = Some(given);
                    }
                    Err(error) => {
                        refuse(request.id, ErrorCode::InvalidParams, &error.to_string())?;
                    }
                }
            }
            Message::Request(request) if params.is_some() => {
                refuse(request.id, ErrorCode::InvalidRequest, "send `initialized` first")?;
            }
            Message::Request(request) => {
                refuse(request.id, ErrorCode::ServerNotInitialized, "send `initialize` first")?;
            }
            Message::Notification(note) if note.method == "exit" => return None,
            Message::Notification(note) if note.method == "initialized" && params.is_some() => return params,
            Message::Notification(_) | Message::Response(_) => {}
        }
    }
    None
}

impl Server {
    /// What follows `initialized`.
    fn begin(&mut self) {
        let general = self.client.capabilities.general.as_ref();
        self.workspace.encoding = Encoding::choose(general.and_then(|g| g.position_encodings.as_deref()));
        let folders = self.client.workspace_folders.iter().flatten();
        self.workspace.folders =
            folders.map(|folder| name_of(&folder.uri).trim_end_matches('/').to_owned()).collect();
        let workspace = self.client.capabilities.workspace.as_ref();
        let edits = workspace.and_then(|w| w.workspace_edit.as_ref());
        self.workspace.has_document_changes = edits.and_then(|e| e.document_changes) == Some(true);
        self.workspace.scan();
        self.watch_files();
    }

    fn run(&mut self, messages: &Receiver<Message>, results: &Receiver<Event>) -> End {
        let mut waiting: VecDeque<Message> = VecDeque::new();
        let mut n_uncompiled = 0;
        loop {
            if waiting.is_empty() {
                crossbeam_channel::select! {
                    recv(messages) -> message => match message {
                        Ok(message) => self.queue(&mut waiting, message),
                        Err(_) => return End::OutOfOrder,
                    },
                    recv(results) -> event => {
                        if let Ok(event) = event {
                            self.guarded(None, |server| server.planned(event));
                        }
                    }
                }
            }
            while let Ok(message) = messages.try_recv() {
                self.queue(&mut waiting, message);
            }
            match waiting.pop_front() {
                Some(Message::Notification(note)) if note.method == "exit" => {
                    return if self.is_shut_down { End::InOrder } else { End::OutOfOrder };
                }
                Some(Message::Notification(note)) => {
                    self.guarded(None, |server| server.notification(note));
                }
                Some(Message::Request(request)) => {
                    let id = request.id.clone();
                    self.guarded(Some(id), |server| server.request(request));
                }
                Some(Message::Response(_)) | None => {}
            }
            n_uncompiled += 1;
            if waiting.is_empty() || n_uncompiled >= MAX_UNCOMPILED {
                n_uncompiled = 0;
                self.guarded(None, Self::publish);
            }
        }
    }

    /// Puts a message behind those that wait; a cancelled request is answered and taken out.
    fn queue(&mut self, waiting: &mut VecDeque<Message>, message: Message) {
        let Some(id) = cancelled(&message) else {
            waiting.push_back(message);
            return;
        };
        let is_it = |m: &Message| matches!(m, Message::Request(request) if request.id == id);
        if let Some(at) = waiting.iter().position(is_it) {
            waiting.remove(at);
            self.refuse(id, ErrorCode::RequestCanceled, "cancelled");
        } else if let Some(at) = self.asked.iter().position(|(asked, ..)| *asked == id) {
            self.asked.remove(at);
            self.refuse(id, ErrorCode::RequestCanceled, "cancelled");
        }
    }

    /// Runs a handler. When it panics, the request is answered with an error, and the server goes on.
    fn guarded(&mut self, id: Option<RequestId>, handle: impl FnOnce(&mut Self)) {
        if catch_unwind(AssertUnwindSafe(|| handle(self))).is_err() {
            self.log(
                lsp_types::MessageType::ERROR,
                "this is a bug in entc: a handler failed; the server goes on",
            );
            if let Some(id) = id {
                self.refuse(id, ErrorCode::InternalError, "this is a bug in entc: the handler failed");
            }
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that no longer listens ends the conversation at the next receive.
        let _ = self.sender.send(message.into());
    }

    fn refuse(&self, id: RequestId, code: ErrorCode, why: &str) {
        self.send(Response::new_err(id, code as i32, why.to_owned()));
    }

    fn notify<N: lsp_types::notification::Notification>(&self, params: &N::Params) {
        self.send(Notification {
            method: N::METHOD.to_owned(),
            params: serde_json::to_value(params).unwrap_or_default(),
        });
    }

    /// Asks the client for something; its answer is not waited for.
    fn ask<R: lsp_types::request::Request>(&self, id: &str, params: &R::Params) {
        self.send(Request {
            id: RequestId::from(id.to_owned()),
            method: R::METHOD.to_owned(),
            params: serde_json::to_value(params).unwrap_or_default(),
        });
    }

    fn log(&self, kind: lsp_types::MessageType, message: &str) {
        self.notify::<lsp_types::notification::LogMessage>(&lsp_types::LogMessageParams {
            typ: kind,
            message: message.to_owned(),
        });
    }
}

/// The request that a message cancels.
fn cancelled(message: &Message) -> Option<RequestId> {
    let Message::Notification(note) = message else { return None };
    if note.method != "$/cancelRequest" {
        return None;
    }
    serde_json::from_value(note.params.get("id")?.clone()).ok()
}
