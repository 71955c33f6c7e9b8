//! A tree that is kept up to date edit by edit is the tree of the whole text, places and errors included.

#![expect(clippy::unwrap_used, reason = "a test stops where a property does not hold")]
#![expect(clippy::wildcard_enum_match_arm, reason = "everything else is not what the test made")]

use ent_lang::{Edit, Parsed};
use ent_plan::diagnostic::FileId;
use proptest::prelude::*;

/// Pieces that begin, end and break every kind of entry.
const PIECES: &[&str] = &[
    "service a {\n  rate = 5 req/s\n  latency = p99 <= 50 ms // kept\n}\n",
    "model m { memory = 4 GiB }\n",
    "hardware {\n  node \"box\" {\n    gpu = a100 x 8\n  }\n}\n",
    "objective {\n  minimize energy\n  limit power <= 1 kW\n}\n",
    "board b {\n  clocks = 210 MHz..1410 MHz step 15 MHz\n  base_power = [\n    210 MHz: 45 W, // low\n    1410 MHz: 80 W,\n  ]\n}\n",
    "import \"catalog:nvidia/a100-80gb-pcie\"\n",
    "import \"lib.ent\" as x\n",
    "param load = 100%\n",
    "let peak = 3 *\n  // inside\n  (4 req/s + 5 req/s)\n",
    "let x = f(\n",
    "a = 5,\n",
    "x = [1,\n",
    "// a comment\n",
    "\n",
    "\n\n\n",
    "\r\n",
    "\r",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "\"",
    "\\",
    "/",
    "//",
    " ",
    "\t",
    "le",
    "t",
    "service ",
    "service s {\n",
    "  rate = = 5\n",
    "\"never closed\n",
    "\u{1f600}",
    "\u{fc}",
    "\u{feff}",
    "# no comment\n",
    "..",
    "p99 <= ",
    "5",
    "5 ms",
    "1g.10gb",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..24).prop_map(|pieces| pieces.concat())
}

fn edits() -> impl Strategy<Value = Vec<(f64, usize, String)>> {
    let replacement = prop::collection::vec(prop::sample::select(PIECES), 0..3).prop_map(|p| p.concat());
    prop::collection::vec(
        (0.0..1.0f64, prop_oneof![Just(0usize), 0usize..4, 0usize..120], replacement),
        1..12,
    )
}

fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_one_by_one_are_the_whole_text_at_once(text in text(), edits in edits()) {
        let mut text = text;
        let mut parsed = Parsed::new(FileId(7), &text);
        for (at, length, replacement) in edits {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in the text")]
            let start = boundary(&text, (at * text.len() as f64) as usize);
            let old_end = boundary(&text, start + length).max(start);
            let before = text.clone();
            text.replace_range(start..old_end, &replacement);
            parsed.edit(&text, Edit { start, old_end, new_end: start + replacement.len() });
            let whole = Parsed::new(FileId(7), &text);
            prop_assert_eq!(
                format!("{:#?}", parsed.ast()), format!("{:#?}", whole.ast()),
                "{:?} with {}..{} as {:?}", before, start, old_end, replacement
            );
            prop_assert_eq!(format!("{:?}", parsed.diagnostics()), format!("{:?}", whole.diagnostics()),
                "{:?} with {}..{} as {:?}", before, start, old_end, replacement);
        }
    }
}

#[test]
fn a_keystroke_reads_only_around_it() {
    // Entries far away must be the same values, not equal ones: their strings have not moved.
    let text: String = (0..200).map(|i| format!("model m{i} {{ memory = {i} GiB }}\n")).collect();
    let mut parsed = Parsed::new(FileId(0), &text);
    let place = |parsed: &Parsed, i: usize| match &parsed.ast().items[i].kind {
        ent_lang::ast::ItemKind::Block(block) => block.kind.text.as_ptr(),
        other => panic!("{other:?}"),
    };
    let (first, last) = (place(&parsed, 0), place(&parsed, 199));
    let at = text.find("m100 ").unwrap();
    let mut edited = text.clone();
    edited.insert(at, 'x');
    parsed.edit(&edited, Edit { start: at, old_end: at, new_end: at + 1 });
    assert_eq!((place(&parsed, 0), place(&parsed, 199)), (first, last));
    assert_eq!(format!("{:?}", parsed.ast()), format!("{:?}", Parsed::new(FileId(0), &edited).ast()));
}
