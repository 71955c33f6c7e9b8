//! Plans beside the text: a client, a server, and a planner that does as it is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use ent_lsp::planning::Planned;
use ent_lsp::{Planning, serve};
use ent_plan::diagnostic::{Code, Diagnostic, Sources, Span};
use lsp_server::{Connection, Message, Notification, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const URI: &str = "file:///specs/program.ent";
const PROGRAM: &str = "import \"catalog:nvidia/a100-80gb-pcie\"\nmodel m {}\n\
                       service classify { model = m, rate = 1 req/s, latency = p99 <= 1 s }\n\
                       hardware { node \"a\" { gpu = a100_80gb_pcie } }\n";

/// Answers with the sample plan and a warning at the service's name; waits to be stopped for a program
/// that says `wait`.
struct Fake;

impl Planning for Fake {
    fn plan(&self, main: &str, sources: &Sources, stop: &AtomicBool, _: &mut dyn FnMut(Planned)) -> Planned {
        let file = sources.find(main).unwrap();
        let text = &sources.get(file).unwrap().text;
        while text.contains("wait") && !stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        let start = u32::try_from(text.find("classify").unwrap_or(0)).unwrap();
        let span = Span { file, start, end: start + 8 };
        Planned {
            plan: Some(ent_plan::plan::sample::plan()),
            diagnostics: vec![Diagnostic::warning(Code::IllustrativeData, span, "made up")],
            ..Planned::default()
        }
    }

    fn draws(&self) -> bool {
        true
    }

    fn page(&self, _: &ent_plan::plan::Plan) -> Option<String> {
        Some("<!doctype html>".to_owned())
    }
}

struct Client {
    connection: Connection,
    server: Option<std::thread::JoinHandle<()>>,
    seen: Vec<Message>,
    n_requests: i32,
}

impl Client {
    fn start(planning: Option<Arc<dyn Planning>>, options: Value) -> (Self, Value) {
        let (server, connection) = Connection::memory();
        let thread = std::thread::spawn(move || {
            serve(server, planning);
        });
        let mut client = Self { connection, server: Some(thread), seen: Vec::new(), n_requests: 0 };
        let params = json!({
            "capabilities": { "workspace": { "inlayHint": { "refreshSupport": true }, "codeLens": { "refreshSupport": true } } },
            "initializationOptions": options,
        });
        let answer = client.ask("initialize", params).unwrap();
        client.tell("initialized", json!({}));
        (client, answer)
    }

    fn tell(&self, method: &str, params: Value) {
        let note = Notification { method: method.to_owned(), params };
        self.connection.sender.send(note.into()).unwrap();
    }

    fn send(&mut self, method: &str, params: Value) -> i32 {
        self.n_requests += 1;
        let request = Request { id: self.n_requests.into(), method: method.to_owned(), params };
        self.connection.sender.send(request.into()).unwrap();
        self.n_requests
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params);
        self.answer(id)
    }

    fn answer(&mut self, id: i32) -> Result<Value, String> {
        let is_it =
            |m: &Message| matches!(m, Message::Response(r) if r.id == lsp_server::RequestId::from(id));
        let response = serde_json::to_value(self.wait(is_it)).unwrap();
        match response.get("error") {
            Some(error) => Err(error["message"].as_str().unwrap().to_owned()),
            None => Ok(response["result"].clone()),
        }
    }

    /// The next message of a kind; the others are kept.
    fn wait(&mut self, is_it: impl Fn(&Message) -> bool) -> Message {
        if let Some(at) = self.seen.iter().position(&is_it) {
            return self.seen.remove(at);
        }
        loop {
            let message = self.connection.receiver.recv_timeout(Duration::from_secs(60)).expect("a message");
            if is_it(&message) {
                return message;
            }
            self.seen.push(message);
        }
    }

    fn notified(&mut self, method: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let found =
            self.wait(|m| matches!(m, Message::Notification(n) if n.method == method && is_it(&n.params)));
        let Message::Notification(note) = found else { panic!("no notification") };
        note.params
    }

    fn open(&self, text: &str) {
        let document = json!({ "uri": URI, "languageId": "ent", "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&self, version: i32, text: &str) {
        let params = json!({
            "textDocument": { "uri": URI, "version": version }, "contentChanges": [{ "text": text }],
        });
        self.tell("textDocument/didChange", params);
    }

    fn hints(&mut self) -> Vec<String> {
        let position = |line: u32| json!({ "line": line, "character": 0 });
        let range = json!({ "start": position(0), "end": position(99) });
        let params = json!({ "textDocument": { "uri": URI }, "range": range });
        let hints = self.ask("textDocument/inlayHint", params).unwrap();
        let label = |hint: &Value| hint["label"].as_str().unwrap().to_owned();
        hints.as_array().unwrap().iter().map(label).collect()
    }

    fn planned(&mut self, state: &str) -> Value {
        self.notified("entc/planned", |params| params["state"] == state)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.tell("exit", Value::Null);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

fn at_once() -> Value {
    json!({ "planning": true, "planningDelay": 0 })
}

#[test]
fn a_plan_arrives_as_hints_warnings_and_lenses() {
    let (mut client, answer) = Client::start(Some(Arc::new(Fake)), at_once());
    let commands = &answer["capabilities"]["executeCommandProvider"]["commands"];
    assert_eq!(*commands, json!(["entc.plan", "entc.showPlan"]));
    client.open(PROGRAM);
    client.planned("planning");
    let planned = client.planned("planned");
    assert_eq!((&planned["uri"], &planned["boards"]), (&json!(URI), &json!(1)));
    client.wait(|m| matches!(m, Message::Request(r) if r.method == "workspace/inlayHint/refresh"));
    client.wait(|m| matches!(m, Message::Request(r) if r.method == "workspace/codeLens/refresh"));
    let warned = client.notified("textDocument/publishDiagnostics", |params| {
        params["diagnostics"]
            .as_array()
            .is_some_and(|list| list.iter().any(|d| d["code"] == "illustrative-data"))
    });
    assert_eq!(warned["diagnostics"][0]["range"]["start"]["line"], 2);
    assert!(client.hints()[0].starts_with("1 × 3g.40gb · 1050 MHz · batch 2"));
    let lenses = client.ask("textDocument/codeLens", json!({ "textDocument": { "uri": URI } })).unwrap();
    assert_eq!(lenses.as_array().unwrap().len(), 2);
    assert_eq!(lenses[0]["command"]["command"], "entc.plan");
}

#[test]
fn typing_never_waits_for_the_planner_and_keeps_the_older_plan_marked() {
    let (mut client, _) = Client::start(Some(Arc::new(Fake)), at_once());
    client.open(PROGRAM);
    client.planned("planned");
    // This one is planned until it is stopped; meanwhile everything is answered.
    client.change(2, &format!("{PROGRAM}// wait\n"));
    client.planned("planning");
    assert!(client.hints()[0].ends_with("(before the last change)"));
    client.change(3, &format!("{PROGRAM}// done\n"));
    client.planned("planned");
    assert!(client.hints()[0].ends_with(" W"));
}

#[test]
fn commands_answer_when_the_plan_is_there() {
    let (mut client, _) = Client::start(Some(Arc::new(Fake)), json!({ "planning": false }));
    client.open(PROGRAM);
    let command = |name: &str| json!({ "command": name, "arguments": [URI] });
    let summary = client.ask("workspace/executeCommand", command("entc.plan")).unwrap();
    assert_eq!((&summary["state"], &summary["uri"]), (&json!("planned"), &json!(URI)));
    assert!(summary["summary"].as_str().unwrap().contains("1 board"));
    let shown = client.ask("workspace/executeCommand", command("entc.showPlan")).unwrap();
    assert_eq!(shown["html"], "<!doctype html>");
    assert_eq!(shown["plan"]["program"], json!(ent_plan::plan::sample::plan().program));
    let why = client.ask("workspace/executeCommand", command("entc.other")).unwrap_err();
    assert!(why.contains("unknown command"), "{why}");
    client.change(2, "service s {\n");
    let why = client.ask("workspace/executeCommand", command("entc.plan")).unwrap_err();
    assert!(why.contains("has errors"), "{why}");
}

#[test]
fn a_command_that_waits_is_refused_when_the_program_changes_or_it_is_cancelled() {
    let (mut client, _) = Client::start(Some(Arc::new(Fake)), json!({ "planning": false }));
    client.open(&format!("{PROGRAM}// wait\n"));
    let command = json!({ "command": "entc.plan", "arguments": [URI] });
    let id = client.send("workspace/executeCommand", command.clone());
    client.planned("planning");
    client.change(2, &format!("{PROGRAM}// wait on\n"));
    assert!(client.answer(id).unwrap_err().contains("has changed"));
    let id = client.send("workspace/executeCommand", command);
    client.planned("planning");
    client.tell("$/cancelRequest", json!({ "id": id }));
    assert_eq!(client.answer(id).unwrap_err(), "cancelled");
}

#[test]
fn settings_turn_planning_on() {
    let (mut client, _) =
        Client::start(Some(Arc::new(Fake)), json!({ "planning": false, "planningDelay": 0 }));
    client.open(PROGRAM);
    assert!(client.hints().is_empty());
    client.tell("workspace/didChangeConfiguration", json!({ "settings": { "entc": { "planning": true } } }));
    client.planned("planned");
    assert_eq!(client.hints().len(), 1);
}

#[test]
fn without_a_planner_there_are_no_commands() {
    let (mut client, answer) = Client::start(None, Value::Null);
    assert_eq!(answer["capabilities"].get("executeCommandProvider"), None);
    client.open(PROGRAM);
    let command = json!({ "command": "entc.plan", "arguments": [URI] });
    assert!(client.ask("workspace/executeCommand", command).unwrap_err().contains("without a planner"));
}
