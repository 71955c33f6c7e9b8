//! Programs with one mistake each → the diagnostic names it on its line, and its fix mends it.
//!
//! A mistake is marked in its file by `// <- code` on the line where it is.

use crate::{OPEN, applied, started};
use serde_json::{Value, json};

/// Programs whose mistake only the user can mend.
const ONLY_THE_USER: &[&str] = &[];

fn mistakes() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mistakes");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_mistake_is_named_on_its_line_and_its_fix_mends_it() {
    let mistakes = mistakes();
    assert!(mistakes.len() >= 10, "{}", mistakes.len());
    let mut client = started();
    let mut version = 0;
    let mut unmended = Vec::new();
    for (name, text) in &mistakes {
        client.open(OPEN, "ent", text);
        let found = client.diagnostics(OPEN, 0);
        let (line, marked) = text.lines().enumerate().find(|(_, l)| l.contains("// <- ")).expect(name);
        let code = marked.split("// <- ").nth(1).unwrap();
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!(found[0]["range"]["start"]["line"], line, "{name}: {found:#?}");
        assert_eq!(found[0]["code"], code, "{name}: {found:#?}");
        let page = found[0]["codeDescription"]["href"].as_str().unwrap();
        assert!(page.ends_with(&format!("specs/diagnostics/{code}.md")), "{page}");

        let params = json!({
            "textDocument": { "uri": OPEN },
            "range": found[0]["range"],
            "context": { "diagnostics": found, "only": ["quickfix"] },
        });
        let actions = client.request("textDocument/codeAction", params).unwrap();
        let fix = &actions[0];
        if fix.is_null() {
            unmended.push(name.as_str());
        } else {
            assert_eq!(fix["kind"], "quickfix", "{name}");
            assert_eq!(fix["diagnostics"][0]["code"], code, "{name}");
            let change = &fix["edit"]["documentChanges"][0];
            assert_eq!(change["textDocument"], json!({ "uri": OPEN, "version": 0 }), "{name}");
            let mended = applied(text, change["edits"].as_array().unwrap());
            version += 1;
            client.change(OPEN, version, json!([{ "text": mended }]));
            let left = client.diagnostics(OPEN, version);
            if !left.is_empty() {
                unmended.push(name.as_str());
            }
            // What is mended is a program for the command too.
            let formatted = ent_lang::format(&mended);
            assert_eq!(formatted.is_ok(), left.iter().all(|d| d["code"] != "syntax"), "{name}");
        }
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": OPEN } }));
    }
    assert_eq!(unmended, ONLY_THE_USER);
    assert!(client.stop().unwrap().success());
}

#[test]
fn all_sure_fixes_of_a_file_are_made_at_once() {
    let text = "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n\
        model resnet { performance = a100_80gb_pci.resnet50 }\n\
        service s { model = resnt, rate = 5 rps, latency = 40 ms }\n\
        hardware { node \"n\" { gpu = a100_80gb_pcie x 1 } }\n\
        objective { minimize enrgy }\n";
    let mut client = started();
    client.open(OPEN, "ent", text);
    let before = client.diagnostics(OPEN, 0);
    assert_eq!(before.len(), 5, "{before:#?}");
    let actions = client
        .request(
            "textDocument/codeAction",
            json!({
                "textDocument": { "uri": OPEN },
                "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } },
                "context": { "diagnostics": [], "only": ["source.fixAll"] },
            }),
        )
        .unwrap();
    let actions: Vec<Value> = actions.as_array().unwrap().clone();
    assert_eq!(actions.len(), 1, "{actions:#?}");
    let edits = actions[0]["edit"]["documentChanges"][0]["edits"].as_array().unwrap();
    let mended = applied(text, edits);
    client.change(OPEN, 1, json!([{ "text": mended }]));
    assert_eq!(client.diagnostics(OPEN, 1), Vec::<Value>::new(), "{mended}");
}
