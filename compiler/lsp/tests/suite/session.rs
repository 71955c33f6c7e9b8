//! One session: everything the server says it can is asked for, and answered.

use crate::client::Client;
use crate::{OPEN, PROGRAM, applied, binary, modern, started};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn document() -> Value {
    json!({ "uri": OPEN })
}

/// The position of a text in the program, `after` characters behind its start. The program is ASCII.
fn place(text: &str, after: usize) -> Value {
    let at = PROGRAM.find(text).expect(text) + after;
    let before = &PROGRAM[..at];
    let column = at - before.rfind('\n').map_or(0, |i| i + 1);
    json!({ "line": before.matches('\n').count(), "character": column })
}

fn at(text: &str, after: usize) -> Value {
    json!({ "textDocument": document(), "position": place(text, after) })
}

fn everything() -> Value {
    json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 9999, "character": 0 } })
}

#[test]
fn everything_that_is_advertised_is_answered() {
    let mut client = Client::spawn(binary());
    let answer = client.start(modern(), None);
    assert_eq!(answer["serverInfo"]["name"], "entc");
    client.open(OPEN, "ent", PROGRAM);
    assert_eq!(client.diagnostics(OPEN, 0), Vec::<Value>::new());
    let registered = &client.asked;
    assert_eq!(registered.len(), 1, "{registered:?}");
    assert_eq!(registered[0].method, "client/registerCapability");

    let can = answer["capabilities"].as_object().unwrap().clone();
    let mut seen = BTreeSet::new();
    for (name, options) in &can {
        let is_on = options != &Value::Bool(false) && !options.is_null();
        assert!(is_on, "{name}");
        ask(&mut client, name, options);
        seen.insert(name.as_str());
    }
    // What an editor cannot do without.
    for name in ["textDocumentSync", "completionProvider", "hoverProvider", "codeActionProvider"] {
        assert!(seen.contains(name), "{name}");
    }
    assert!(client.stop().unwrap().success());
}

/// Asks for one capability.
fn ask(client: &mut Client, name: &str, options: &Value) {
    let mut get = |method: &str, params: Value| {
        let answer = client.request(method, params);
        answer.unwrap_or_else(|error| panic!("{method}: {error:?}"))
    };
    match name {
        "positionEncoding" => assert_eq!(options, "utf-16"),
        "textDocumentSync" => {
            assert_eq!(options["change"], 2, "incremental");
            let edit = json!({ "range": { "start": place("300", 0), "end": place("300", 3) }, "text": "40 \u{1f600}" });
            client.change(OPEN, 1, json!([edit]));
            let found = client.diagnostics(OPEN, 1);
            assert_eq!(found[0]["code"], "syntax", "{found:#?}");
            client.notify("textDocument/didSave", json!({ "textDocument": document() }));
            client.change(OPEN, 2, json!([{ "text": PROGRAM }]));
            assert_eq!(client.diagnostics(OPEN, 2), Vec::<Value>::new());
        }
        "documentFormattingProvider" => {
            let params =
                json!({ "textDocument": document(), "options": { "tabSize": 2, "insertSpaces": true } });
            assert_eq!(get("textDocument/formatting", params), json!([]), "it is laid out already");
        }
        "documentRangeFormattingProvider" => {
            let params = json!({ "textDocument": document(), "range": everything(), "options": {} });
            let params = with(params, "options", json!({ "tabSize": 2, "insertSpaces": true }));
            assert_eq!(get("textDocument/rangeFormatting", params), json!([]));
        }
        "documentOnTypeFormattingProvider" => {
            assert_eq!(options["firstTriggerCharacter"], "}");
            let params = with(at("}", 1), "ch", json!("}"));
            let params = with(params, "options", json!({ "tabSize": 2, "insertSpaces": true }));
            assert_eq!(get("textDocument/onTypeFormatting", params), json!([]));
        }
        "foldingRangeProvider" => {
            let folds = get("textDocument/foldingRange", json!({ "textDocument": document() }));
            let lines: Vec<(u64, u64)> = (folds.as_array().unwrap().iter())
                .map(|f| (f["startLine"].as_u64().unwrap(), f["endLine"].as_u64().unwrap()))
                .collect();
            let line = |text: &str| place(text, 0)["line"].as_u64().unwrap();
            assert!(lines.contains(&(line("import"), line("import") + 1)), "{lines:?}");
            assert!(lines.contains(&(line("service classify"), line("  replicas"))), "{lines:?}");
            assert!(lines.contains(&(line("  node"), line("    gpu"))), "{lines:?}");
            let inline = line("model whisper");
            assert!(lines.iter().all(|(start, _)| *start != inline), "one line is not folded: {lines:?}");
        }
        "selectionRangeProvider" => {
            let params =
                json!({ "textDocument": document(), "positions": [place("peak\n", 1), place("100 ms", 1)] });
            let found = get("textDocument/selectionRange", params);
            let texts = |mut range: &Value| {
                let mut texts = Vec::new();
                while !range.is_null() {
                    texts.push(snippet(&range["range"]));
                    range = &range["parent"];
                }
                texts
            };
            let chain = texts(&found[0]);
            assert_eq!(&chain[1..4], ["peak", "load * peak", "rate     = load * peak"]);
            assert_eq!(chain.last().copied(), Some(PROGRAM));
            assert!(texts(&found[1]).contains(&"p99 <= 100 ms"), "{:?}", texts(&found[1]));
        }
        "codeActionProvider" => {
            assert_eq!(options["codeActionKinds"], json!(["quickfix", "source.fixAll"]));
            let context = json!({ "diagnostics": [] });
            let params = json!({ "textDocument": document(), "range": everything(), "context": context });
            assert_eq!(get("textDocument/codeAction", params), json!([]), "nothing is to be mended");
        }
        "completionProvider" => {
            assert_eq!(options["resolveProvider"], true);
            let list = get("textDocument/completion", at("replicas", 0));
            let items = list["items"].as_array().unwrap();
            for item in items.iter().take(1) {
                assert_eq!(get("completionItem/resolve", item.clone())["label"], item["label"]);
            }
        }
        "hoverProvider" => drop(get("textDocument/hover", at("resnet50", 1))),
        "definitionProvider" => drop(get("textDocument/definition", at("= resnet50", 3))),
        "referencesProvider" => {
            let params = with(at("resnet50", 1), "context", json!({ "includeDeclaration": true }));
            drop(get("textDocument/references", params));
        }
        "documentHighlightProvider" => drop(get("textDocument/documentHighlight", at("resnet50", 1))),
        "renameProvider" => {
            assert_eq!(options["prepareProvider"], true);
            drop(get("textDocument/prepareRename", at("resnet50", 1)));
        }
        "documentSymbolProvider" => {
            drop(get("textDocument/documentSymbol", json!({ "textDocument": document() })));
        }
        "workspaceSymbolProvider" => drop(get("workspace/symbol", json!({ "query": "class" }))),
        "semanticTokensProvider" => {
            let full = get("textDocument/semanticTokens/full", json!({ "textDocument": document() }));
            let params = json!({ "textDocument": document(), "range": everything() });
            assert_eq!(get("textDocument/semanticTokens/range", params)["data"], full["data"]);
        }
        "inlayHintProvider" => {
            drop(get("textDocument/inlayHint", json!({ "textDocument": document(), "range": everything() })));
        }
        "codeLensProvider" => drop(get("textDocument/codeLens", json!({ "textDocument": document() }))),
        "documentLinkProvider" => {
            drop(get("textDocument/documentLink", json!({ "textDocument": document() })))
        }
        "executeCommandProvider" => {
            for command in options["commands"].as_array().unwrap() {
                // Without a planner there is no plan to show; that is an answer.
                let params = json!({ "command": command, "arguments": [OPEN] });
                let answer = client.request("workspace/executeCommand", params);
                assert!(matches!(&answer, Ok(_) | Err((-32803, _))), "{command}: {answer:?}");
            }
        }
        "workspace" => {
            assert_eq!(options["workspaceFolders"]["supported"], true);
            let event =
                json!({ "added": [{ "uri": "file:///nowhere/else", "name": "else" }], "removed": [] });
            client.notify("workspace/didChangeWorkspaceFolders", json!({ "event": event }));
            for operation in options["fileOperations"].as_object().unwrap().keys() {
                let method = format!("workspace/{operation}Files");
                let files =
                    json!({ "files": [{ "uri": OPEN, "oldUri": OPEN, "newUri": "file:///nowhere/b.ent" }] });
                if operation.starts_with("will") {
                    client.request(&method, files).unwrap();
                } else {
                    client.notify(&method, files);
                }
            }
        }
        other => panic!("{other} is advertised and not in this session: {options}"),
    }
}

fn with(mut params: Value, name: &str, value: Value) -> Value {
    params[name] = value;
    params
}

/// What stands in a range of the program.
fn snippet(range: &Value) -> &'static str {
    let at = |position: &Value| crate::sync::offset(PROGRAM, position);
    &PROGRAM[at(&range["start"])..at(&range["end"])]
}

#[test]
fn layout_is_what_the_formatter_makes_of_it() {
    let untidy = PROGRAM
        .replace("  rate     =", "rate=")
        .replace("\n\nservice transcribe", "\nservice transcribe")
        .replace("import", "\n\n  import")
        .replace(", rate = 1 req/s", ",rate=1 req/s")
        .replace("objective {\n  minimize energy", "\n\nobjective{minimize energy");
    let mut client = started();
    let options = json!({ "tabSize": 2, "insertSpaces": true });
    for (version, (end_of_line, mark)) in (1..).zip([("\n", ""), ("\r\n", ""), ("\n", "\u{feff}")]) {
        let text = format!("{mark}{}", untidy.replace('\n', end_of_line));
        client.open(OPEN, "ent", &text);
        let params = json!({ "textDocument": document(), "options": options });
        let edits = client.request("textDocument/formatting", params.clone()).unwrap();
        let made = applied(&text, edits.as_array().unwrap());
        let canonical = ent_lang::format(&untidy).unwrap();
        assert_eq!(made, format!("{mark}{}", canonical.replace('\n', end_of_line)));
        // Once more changes nothing.
        client.change(OPEN, version, json!([{ "text": made }]));
        assert_eq!(client.request("textDocument/formatting", params).unwrap(), json!([]));
        client.notify("textDocument/didClose", json!({ "textDocument": document() }));
    }
    assert!(client.stop().unwrap().success());
}

#[test]
fn what_is_broken_is_not_laid_out_and_the_rest_is() {
    let text = "let a=1\n\nlet b = = 2\n\nservice s {\n rate=5 req/s\n}\n";
    let mut client = started();
    client.open(OPEN, "ent", text);
    let options = json!({ "tabSize": 2, "insertSpaces": true });
    let params = json!({ "textDocument": document(), "options": options });
    let edits = client.request("textDocument/formatting", params).unwrap();
    let made = applied(text, edits.as_array().unwrap());
    assert_eq!(made, "let a = 1\n\nlet b = = 2\n\nservice s {\n  rate = 5 req/s\n}\n");
    let range = json!({ "start": { "line": 5, "character": 0 }, "end": { "line": 5, "character": 0 } });
    let params = json!({ "textDocument": document(), "range": range, "options": options });
    let edits = client.request("textDocument/rangeFormatting", params).unwrap();
    let made = applied(text, edits.as_array().unwrap());
    assert_eq!(made, "let a=1\n\nlet b = = 2\n\nservice s {\n  rate = 5 req/s\n}\n");
}

#[test]
fn a_new_line_is_indented_and_a_closed_block_laid_out() {
    let mut client = started();
    let options = json!({ "tabSize": 2, "insertSpaces": true });
    let mut typed = |text: &str, line: u32, character: u32, ch: &str| {
        client.open(OPEN, "ent", text);
        let params = json!({
            "textDocument": document(), "position": { "line": line, "character": character },
            "ch": ch, "options": options,
        });
        let edits = client.request("textDocument/onTypeFormatting", params).unwrap();
        applied(text, edits.as_array().unwrap())
    };
    assert_eq!(typed("service s {\n\n}\n", 1, 0, "\n"), "service s {\n  \n}\n");
    assert_eq!(
        typed("hardware {\n  node \"n\" {\n  \n  }\n}\n", 2, 2, "\n"),
        "hardware {\n  node \"n\" {\n    \n  }\n}\n"
    );
    assert_eq!(typed("service s { // {\n    }\n", 1, 4, "\n"), "service s { // {\n}\n");
    assert_eq!(
        typed("let x = 1\nservice s {\nrate=5 req/s\n}\n", 3, 1, "}"),
        "let x = 1\nservice s {\n  rate = 5 req/s\n}\n"
    );
}
