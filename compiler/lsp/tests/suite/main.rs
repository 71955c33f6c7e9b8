//! The language server as a client sees it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops where it cannot go on"
)]

mod client;
mod mistakes;
mod robust;
mod session;
mod sync;

use client::Client;
use serde_json::{Value, json};
use std::process::Command;

/// The server's binary, not started yet.
fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ent-lsp"))
}

/// What a modern editor says it can.
fn modern() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "workspace": {
            "workspaceEdit": { "documentChanges": true },
            "didChangeWatchedFiles": { "dynamicRegistration": true },
        },
    })
}

/// A started server in a process of its own.
fn started() -> Client {
    let mut client = Client::spawn(binary());
    client.start(modern(), None);
    client
}

/// A program without a mistake.
const PROGRAM: &str = include_str!("../program.ent");

/// The address of a file that is only open, not on disk.
const OPEN: &str = "file:///nowhere/program.ent";

/// A text with edits of the protocol (UTF-16) applied.
fn applied(text: &str, edits: &[Value]) -> String {
    let mut spans: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| {
            let new = edit["newText"].as_str().unwrap();
            (sync::offset(text, &edit["range"]["start"]), sync::offset(text, &edit["range"]["end"]), new)
        })
        .collect();
    spans.sort_by_key(|(start, end, _)| (*start, *end));
    let mut made = String::new();
    let mut from = 0;
    for (start, end, new) in spans {
        assert!(start >= from, "edits overlap: {edits:?}");
        made.push_str(&text[from..start]);
        made.push_str(new);
        from = end;
    }
    made + &text[from..]
}
