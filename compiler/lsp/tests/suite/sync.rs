//! Any sequence of edits: the server's text is the client's; any request anywhere is answered.

use crate::client::Client;
use crate::{OPEN, PROGRAM};
use lsp_server::Connection;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What is typed and pasted: characters of one to four bytes, every line end, pieces of programs.
const PIECES: &[&str] = &[
    "a",
    "5",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "\"",
    "//",
    "=",
    "<=",
    ",",
    ".",
    "\u{e9}",
    "\u{fc}\u{df}",
    "\u{20ac}",
    "\u{1f600}",
    "\u{1f469}\u{200d}\u{1f680}",
    "e\u{301}",
    "\u{feff}",
    "\u{2028}",
    "\0",
    "service s {\n",
    "rate = 5 req/s\n",
    "import \"x.ent\"\n",
    "let y = 3 ms\r\n",
    "model \u{1f600} { }\n",
    "# \u{1f600}\n",
    "node \"\u{1f600}\" {",
    "p99 <= 4 s",
    "1g.10gb",
    "x = [1,\n2]\n",
];

/// Everything that asks about a place.
const AT_A_PLACE: &[&str] = &[
    "textDocument/completion",
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/onTypeFormatting",
    "textDocument/selectionRange",
];

/// Everything that asks about a range or a file.
const OF_A_FILE: &[&str] = &[
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/formatting",
    "textDocument/rangeFormatting",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/inlayHint",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/range",
    "workspace/symbol",
];

/// The byte of a position in UTF-16 columns, worked out the slow way: line by line, character by character.
pub(crate) fn offset(text: &str, position: &Value) -> usize {
    offset_in(text, position, |c| c.len_utf16())
}

fn offset_in(text: &str, position: &Value, width: impl Fn(char) -> usize) -> usize {
    let (mut line, mut column) =
        (position["line"].as_u64().unwrap(), position["character"].as_u64().unwrap());
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let is_end = c == '\n' || c == '\r';
        if line == 0 {
            if is_end || column < width(c) as u64 {
                return at;
            }
            column -= width(c) as u64;
        } else if is_end {
            if c == '\r' {
                chars.next_if(|(_, next)| *next == '\n');
            }
            line -= 1;
        }
    }
    text.len()
}

#[derive(Clone, Debug)]
struct Change {
    /// Line and column of start and end, before they are put in order; beyond the text too.
    places: [(u32, u32); 2],
    text: String,
    is_whole: bool,
}

fn change() -> impl Strategy<Value = Change> {
    let place =
        || (prop_oneof![9 => 0u32..40, 1 => Just(u32::MAX)], prop_oneof![9 => 0u32..50, 1 => Just(u32::MAX)]);
    let text = prop::collection::vec(prop::sample::select(PIECES), 0..4).prop_map(|p| p.concat());
    let near = (place(), 0u32..2, 0u32..8).prop_map(|((line, column), down, right)| {
        [(line, column), (line.saturating_add(down), column.saturating_add(right))]
    });
    let far = (place(), place()).prop_map(|(a, b)| [a, b]);
    (prop_oneof![6 => near, 1 => far], text, prop::bool::weighted(0.02))
        .prop_map(|(places, text, is_whole)| Change { places, text, is_whole })
}

fn started(encoding: &str) -> Client {
    let (server, client) = Connection::memory();
    std::thread::spawn(move || ent_lsp::serve(server, None));
    let mut client = Client::connect(client);
    let answer = client.start(json!({ "general": { "positionEncodings": [encoding] } }), None);
    assert_eq!(answer["capabilities"]["positionEncoding"], encoding);
    client
}

fn width(encoding: &str) -> fn(char) -> usize {
    match encoding {
        "utf-8" => char::len_utf8,
        "utf-16" => char::len_utf16,
        _ => |_| 1,
    }
}

/// Applies changes to a text as a client would, and says them as the protocol does.
fn apply(text: &mut String, changes: &[Change], encoding: &str) -> Value {
    let mut said = Vec::new();
    for change in changes {
        if change.is_whole {
            *text = change.text.clone();
            said.push(json!({ "text": change.text }));
            continue;
        }
        let mut places = change.places;
        places.sort_unstable();
        let position = |(line, character): (u32, u32)| json!({ "line": line, "character": character });
        let [start, end] = places.map(|p| offset_in(text, &position(p), width(encoding)));
        text.replace_range(start..end.max(start), &change.text);
        let range = json!({ "start": position(places[0]), "end": position(places[1]) });
        said.push(json!({ "range": range, "text": change.text }));
    }
    Value::Array(said)
}

fn request(method: &str, place: &Value) -> Value {
    let range = json!({ "start": place, "end": { "line": place["line"], "character": u32::MAX } });
    json!({
        "textDocument": { "uri": OPEN },
        "position": place,
        "positions": [place],
        "range": range,
        "newName": "renamed",
        "query": "s",
        "ch": if method.len().is_multiple_of(2) { "}" } else { "\n" },
        "options": { "tabSize": 2, "insertSpaces": true },
        "context": { "includeDeclaration": true, "diagnostics": [], "triggerKind": 1 },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_text_of_the_server_is_the_text_of_the_client(
        rounds in prop::collection::vec(prop::collection::vec(change(), 1..5), 1..12),
        places in prop::collection::vec((0u32..40, 0u32..60), 4),
        encoding in prop::sample::select(&["utf-8", "utf-16", "utf-32"][..]),
        begins_empty in prop::bool::weighted(0.2),
    ) {
        let mut client = started(encoding);
        let mut text = if begins_empty { String::new() } else { PROGRAM.to_owned() };
        client.open(OPEN, "ent", &text);
        for (version, changes) in (1i32..).zip(&rounds) {
            let said = apply(&mut text, changes, encoding);
            client.change(OPEN, version, said);
            let held = client.request("entc/text", json!({ "uri": OPEN })).unwrap();
            prop_assert_eq!(held.as_str(), Some(text.as_str()), "{:?}", changes);
        }
        for (line, character) in places {
            let place = json!({ "line": line, "character": character });
            for method in AT_A_PLACE.iter().chain(OF_A_FILE) {
                let answer = client.request(method, request(method, &place));
                // That a place has nothing to rename is the one refusal there is.
                let is_fine = match &answer {
                    Ok(_) => true,
                    Err((code, _)) => *method == "textDocument/rename" && *code == -32803,
                };
                prop_assert!(is_fine, "{} at {}: {:?}\n{}", method, place, answer, text);
            }
        }
        if text.trim_start_matches('\u{feff}').trim_start().starts_with(['<', '%']) {
            // By now it is another tool's file, of which nothing is said.
            return Ok(());
        }
        // What was open when it began to be edited is diagnosed as the text opened at once.
        let version = i32::try_from(rounds.len()).unwrap();
        let edited = client.diagnostics(OPEN, version);
        let mut fresh = started(encoding);
        fresh.open(OPEN, "ent", &text);
        prop_assert_eq!(edited, fresh.diagnostics(OPEN, 0), "{}", text);
    }
}
