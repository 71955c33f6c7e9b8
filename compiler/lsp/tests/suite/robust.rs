//! What clients and disks do that they should not → an answer, and the server lives.

use crate::client::Client;
use crate::{OPEN, PROGRAM, binary, modern, started};
use serde_json::{Value, json};
use std::path::Path;

const NOT_INITIALIZED: i32 = -32002;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const CANCELLED: i32 = -32800;

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}

fn code(answer: Result<Value, (i32, String)>) -> i32 {
    answer.expect_err("it is refused").0
}

#[test]
fn a_conversation_has_a_beginning_and_an_end() {
    let mut client = Client::spawn(binary());
    assert_eq!(code(client.request("textDocument/hover", json!({}))), NOT_INITIALIZED);
    client.open(OPEN, "ent", PROGRAM);
    client.start(modern(), None);
    assert_eq!(code(client.request("initialize", json!({ "capabilities": {} }))), INVALID_REQUEST);
    assert_eq!(code(client.request("textDocument/nonsense", json!({}))), METHOD_NOT_FOUND);
    assert_eq!(code(client.request("textDocument/hover", json!({ "x": 1 }))), INVALID_PARAMS);
    let unknown = json!({ "textDocument": { "uri": OPEN }, "position": { "line": 0, "character": 0 } });
    assert_eq!(code(client.request("textDocument/hover", unknown)), INVALID_PARAMS, "opened too early");
    client.notify("textDocument/nonsense", json!({}));
    client.notify("$/setTrace", json!({ "value": "off" }));
    client.notify("textDocument/didChange", json!({ "neither": "this" }));
    assert_eq!(client.request("shutdown", Value::Null), Ok(Value::Null));
    assert_eq!(code(client.request("textDocument/hover", json!({}))), INVALID_REQUEST);
    assert_eq!(client.exit().unwrap().code(), Some(0));

    let mut client = Client::spawn(binary());
    client.start(modern(), None);
    assert_eq!(client.exit().unwrap().code(), Some(1), "exit without shutdown");
    let client = Client::spawn(binary());
    assert_eq!(client.exit().unwrap().code(), Some(1), "exit before initialize");
}

#[test]
fn a_cancelled_request_is_answered_once() {
    let mut client = started();
    // Enough work that the requests wait behind it.
    let long = PROGRAM.repeat(200);
    client.open(OPEN, "ent", &long);
    let document = json!({ "textDocument": { "uri": OPEN } });
    let ids: Vec<_> = (0..50).map(|_| client.ask("textDocument/documentSymbol", document.clone())).collect();
    let last = ids.last().unwrap().clone();
    client.notify("$/cancelRequest", json!({ "id": ids.len() + 1 }));
    client.notify("$/cancelRequest", json!({ "id": "no such request" }));
    let answers: Vec<_> = ids.iter().map(|id| client.answer(id)).collect();
    assert!(answers.iter().take(49).all(Result::is_ok));
    // Cancelled in time or answered before: both are right, nothing is not.
    assert!(matches!(client_answer(&answers), Ok(_) | Err((CANCELLED, _))), "{last:?}");
    assert!(client.request("textDocument/documentSymbol", document).is_ok());
}

fn client_answer(answers: &[Result<Value, (i32, String)>]) -> &Result<Value, (i32, String)> {
    answers.last().unwrap()
}

#[test]
fn imports_are_followed_over_unsaved_buffers_and_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (main, lib) = (folder.path().join("main.ent"), folder.path().join("lib/models.ent"));
    std::fs::create_dir(folder.path().join("lib")).unwrap();
    let (models, rest) = PROGRAM.split_once("service classify").unwrap();
    let text = format!("import \"lib/models.ent\"\nservice classify{rest}");
    std::fs::write(&main, &text).unwrap();
    std::fs::write(&lib, models).unwrap();
    let (main, lib_uri) = (uri(&main), uri(&lib));
    let mut client = Client::spawn(binary());
    client.start(modern(), Some(&uri(folder.path())));

    // The imported file is opened alone: its program is known from the folder.
    client.open(&lib_uri, "ent", models);
    assert_eq!(client.diagnostics(&lib_uri, 0), Vec::<Value>::new());
    client.open(&main, "ent", &text);
    assert_eq!(client.diagnostics(&main, 0), Vec::<Value>::new());

    // A change of the unsaved import is a mistake in the file that uses it.
    let broken = models.replace("model resnet50", "model resnet51");
    client.change(&lib_uri, 1, json!([{ "text": broken }]));
    let found = client.diagnostics(&main, 0);
    assert_eq!(found[0]["code"], "unknown-name", "{found:#?}");
    assert!(found[0]["message"].as_str().unwrap().contains("did you mean `resnet51`?"), "{found:#?}");
    // Closed without saving, it is again what is on disk.
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": lib_uri } }));
    assert_eq!(client.diagnostics(&main, 0), Vec::<Value>::new());

    // The folder is renamed, and named again.
    std::fs::rename(folder.path().join("lib"), folder.path().join("other")).unwrap();
    let renamed = json!({ "files": [{ "oldUri": uri(&folder.path().join("lib")), "newUri": uri(&folder.path().join("other")) }] });
    client.notify("workspace/didRenameFiles", renamed);
    let found = client.diagnostics(&main, 0);
    assert_eq!(found[0]["code"], "missing-file", "{found:#?}");
    assert_eq!(found[0]["message"].as_str().unwrap().lines().next(), Some("no file `lib/models.ent`"));
    std::fs::rename(folder.path().join("other"), folder.path().join("lib")).unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(client.diagnostics(&main, 0), Vec::<Value>::new());

    // Deleted, then not text at all, then a folder.
    std::fs::remove_file(&lib).unwrap();
    client.notify("workspace/didDeleteFiles", json!({ "files": [{ "uri": lib_uri }] }));
    assert_eq!(client.diagnostics(&main, 0)[0]["code"], "missing-file");
    std::fs::write(&lib, b"model \xff\xfe {}").unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(client.diagnostics(&main, 0)[0]["code"], "unreadable-file");
    std::fs::remove_file(&lib).unwrap();
    std::fs::create_dir(&lib).unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(client.diagnostics(&main, 0)[0]["code"], "unreadable-file");

    // A cycle is named where it closes.
    std::fs::remove_dir(&lib).unwrap();
    std::fs::write(&lib, format!("import \"../main.ent\"\n{models}")).unwrap();
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    let found = client.diagnostics(&lib_uri, 0);
    assert_eq!(found[0]["code"], "import-cycle", "{found:#?}");
    assert_eq!(found[0]["relatedInformation"][0]["location"]["uri"], main, "{found:#?}");
    assert!(client.stop().unwrap().success());
}

#[test]
fn files_of_other_tools_are_left_alone() {
    let mut client = started();
    let xml = "<!ENTITY nbsp \"&#160;\">\n<!ENTITY % x SYSTEM 'y'>\n";
    client.open(OPEN, "ent", xml);
    let place = json!({ "textDocument": { "uri": OPEN }, "position": { "line": 0, "character": 3 } });
    assert_eq!(client.request("textDocument/hover", place.clone()), Ok(Value::Null));
    assert_eq!(client.request("textDocument/completion", place), Ok(Value::Null));
    client.change(OPEN, 1, json!([{ "range": { "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 0 } }, "text": "{{{" }]));
    assert_eq!(client.request("entc/text", json!({ "uri": OPEN })).unwrap(), xml.replace("\n<", "\n{{{<"));
    let told: Vec<_> = client.told.drain(..).collect();
    assert_eq!(told.len(), 1, "one message, no diagnostics: {told:?}");
    assert_eq!(told[0].method, "window/logMessage");
    assert_eq!(told[0].params["type"], 3, "information");

    // A buffer that becomes a program is one.
    client.change(OPEN, 2, json!([{ "text": "service s {" }]));
    assert!(!client.diagnostics(OPEN, 2).is_empty());
}

#[test]
fn monstrous_texts_are_survived() {
    let mut client = started();
    let mut version = 0;
    for text in [
        String::new(),
        "\u{feff}".to_owned(),
        "x".repeat(3 << 20),
        format!("let x = {}", "1 + ".repeat(200_000)),
        "{".repeat(100_000),
        "[".repeat(100_000),
        "service s {\n".repeat(20_000),
        "\u{1f600}".repeat(300_000),
        "\r".repeat(100_000),
        format!("let x = \"{}", "\\".repeat(100_001)),
        "\0\0\0".to_owned(),
        "rate = = 5\n".repeat(50_000),
        "import \"a.ent\"\n".repeat(5_000),
        " ".repeat((8 << 20) + 1),
    ] {
        client.open(OPEN, "ent", &text);
        client.diagnostics(OPEN, 0);
        version += 1;
        let start = json!({ "line": 0, "character": 0 });
        client.change(OPEN, version, json!([{ "range": { "start": start, "end": start }, "text": "}" }]));
        client.diagnostics(OPEN, version);
        for method in
            ["textDocument/foldingRange", "textDocument/documentSymbol", "textDocument/semanticTokens/full"]
        {
            client.request(method, json!({ "textDocument": { "uri": OPEN } })).unwrap();
        }
        let params =
            json!({ "textDocument": { "uri": OPEN }, "position": { "line": 0, "character": 1_000_000 } });
        client.request("textDocument/completion", params.clone()).unwrap();
        client.request("textDocument/hover", params).unwrap();
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": OPEN } }));
    }
    assert!(client.stop().unwrap().success());
}

#[test]
fn addresses_that_are_not_encoded_are_understood() {
    let mut client = started();
    for uri in ["file:///nowhere/a b.ent", "file:///nowhere/\u{fc}[1].ent", "untitled:Untitled-1"] {
        client.open(uri, "ent", PROGRAM);
        let told = client.told("textDocument/publishDiagnostics");
        assert_eq!(told["diagnostics"], json!([]), "{uri}");
        let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 0 } });
        assert!(client.request("textDocument/hover", place).is_ok(), "{uri}");
    }
}
