//! A client of any language server: sends messages, waits for answers, keeps what it was told.
//!
//! Nothing here knows our server; the benchmark drives others with it.

use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::BufReader;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than any answer takes: a server that hangs fails a test and does not block it.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    send: Box<dyn FnMut(Message)>,
    receive: Box<dyn Fn() -> Result<Message, RecvTimeoutError>>,
    child: Option<Child>,
    last_id: i32,
    /// Notifications of the server that nobody has asked for yet.
    pub(crate) told: VecDeque<Notification>,
    /// Requests of the server, each answered with `null`.
    pub(crate) asked: Vec<Request>,
}

impl Client {
    /// Starts a server and talks to it over its standard input and output.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the server starts");
        let mut input = child.stdin.take();
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            while let Ok(Some(message)) = Message::read(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let send = move |message: Message| {
            let is_last = matches!(&message, Message::Notification(n) if n.method == "exit");
            if let Some(open) = &mut input {
                // A server that has ended no longer reads; what is asked next will tell.
                let _ = message.write(open);
            }
            if is_last {
                input = None;
            }
        };
        Self::new(Box::new(send), receiver, Some(child))
    }

    /// Talks to a server in this process.
    pub(crate) fn connect(connection: Connection) -> Self {
        let (sender, receiver) = channel();
        let Connection { sender: out, receiver: messages } = connection;
        std::thread::spawn(move || {
            for message in messages {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self::new(Box::new(move |message| drop(out.send(message))), receiver, None)
    }

    fn new(send: Box<dyn FnMut(Message)>, receiver: Receiver<Message>, child: Option<Child>) -> Self {
        let receive = Box::new(move || receiver.recv_timeout(PATIENCE));
        Self { send, receive, child, last_id: 0, told: VecDeque::new(), asked: Vec::new() }
    }

    /// `initialize` and `initialized`; the server's answer.
    pub(crate) fn start(&mut self, capabilities: Value, root: Option<&str>) -> Value {
        let folders = root.map(|uri| json!([{ "uri": uri, "name": "root" }]));
        let params = json!({
            "processId": null, "rootUri": root, "capabilities": capabilities, "workspaceFolders": folders,
        });
        let result = self.request("initialize", params).expect("initialize is answered");
        self.notify("initialized", json!({}));
        result
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        (self.send)(Message::Notification(Notification { method: method.to_owned(), params }));
    }

    /// Sends a request and does not wait.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> RequestId {
        self.last_id += 1;
        let id = RequestId::from(self.last_id);
        (self.send)(Message::Request(Request { id: id.clone(), method: method.to_owned(), params }));
        id
    }

    /// Sends a request and waits: the result, or the code and message of the error.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<Value, (i32, String)> {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: &RequestId) -> Result<Value, (i32, String)> {
        loop {
            match self.next() {
                Message::Response(response) if response.id == *id => {
                    return response.response_result.map_err(|e| (e.code, e.message));
                }
                Message::Response(_) => {}
                Message::Notification(note) => self.told.push_back(note),
                Message::Request(request) => self.grant(request),
            }
        }
    }

    /// Waits for the next notification of a kind.
    pub(crate) fn told(&mut self, method: &str) -> Value {
        if let Some(at) = self.told.iter().position(|n| n.method == method) {
            return self.told.remove(at).expect("it is there").params;
        }
        loop {
            match self.next() {
                Message::Notification(note) if note.method == method => return note.params,
                Message::Notification(note) => self.told.push_back(note),
                Message::Request(request) => self.grant(request),
                Message::Response(_) => {}
            }
        }
    }

    /// Waits for the diagnostics of a version of a file.
    pub(crate) fn diagnostics(&mut self, uri: &str, version: i32) -> Vec<Value> {
        loop {
            let params = self.told("textDocument/publishDiagnostics");
            // Some servers leave out the version.
            let is_version = params["version"].is_null() || params["version"] == version;
            if params["uri"] == uri && is_version {
                return params["diagnostics"].as_array().cloned().unwrap_or_default();
            }
        }
    }

    pub(crate) fn open(&mut self, uri: &str, language: &str, text: &str) {
        let document = json!({ "uri": uri, "languageId": language, "version": 0, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    pub(crate) fn change(&mut self, uri: &str, version: i32, changes: Value) {
        let document = json!({ "uri": uri, "version": version });
        let params = json!({ "textDocument": document, "contentChanges": changes });
        self.notify("textDocument/didChange", params);
    }

    /// `shutdown` and `exit`; how the process ended.
    pub(crate) fn stop(mut self) -> Option<ExitStatus> {
        let _ = self.request("shutdown", Value::Null);
        self.exit()
    }

    /// `exit` alone.
    pub(crate) fn exit(mut self) -> Option<ExitStatus> {
        self.notify("exit", Value::Null);
        self.child.take().map(|mut child| child.wait().expect("it ends"))
    }

    /// The process's id.
    pub(crate) fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    fn grant(&mut self, request: Request) {
        // What `workspace/configuration` asks for is a list.
        let n = request.params["items"].as_array().map(Vec::len);
        let value = n.map_or(Value::Null, |n| Value::Array(vec![Value::Null; n]));
        (self.send)(Message::Response(Response::new_ok(request.id.clone(), value)));
        self.asked.push(request);
    }

    fn next(&self) -> Message {
        (self.receive)().expect("the server answers")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
