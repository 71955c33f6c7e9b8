//! The house rules: what a reader may rely on anywhere in the tree.
//!
//! Each rule is stated in `CONTRIBUTING.md` or `ARCHITECTURE.md`; a failure names every place at once.

use ent_plan::diagnostic::Code;
use ent_tests::{files, read, root};
use std::collections::{BTreeMap, BTreeSet};

/// Which crates of ours a crate may use: dependencies point down.
const EDGES: &[(&str, &[&str])] = &[
    ("ent-plan", &[]),
    ("ent-lang", &["ent-plan"]),
    ("ent-performance", &["ent-plan", "ent-lang"]),
    ("ent-planner", &["ent-plan", "ent-lang", "ent-performance"]),
    // The language server is brought its planner by `entc`.
    ("ent-lsp", &["ent-plan", "ent-lang", "ent-performance"]),
    ("ent-picture", &["ent-plan"]),
    // The runtime half: it stands on plans, and never sees the compiler.
    ("ent-nvml-sim", &["ent-plan"]),
    ("ent-machine", &["ent-plan", "ent-nvml-sim"]),
    ("ent-wire", &[]),
    ("ent-worker", &["ent-wire"]),
    ("ent-serve", &["ent-wire"]),
    (
        "entc",
        &[
            "ent-plan",
            "ent-lang",
            "ent-lsp",
            "ent-performance",
            "ent-planner",
            "ent-picture",
            "ent-machine",
            "ent-nvml-sim",
            "ent-serve",
            "ent-wire",
        ],
    ),
    (
        "ent-tests",
        &[
            "ent-plan",
            "ent-lang",
            "ent-performance",
            "ent-planner",
            "entc",
            "ent-machine",
            "ent-nvml-sim",
            "ent-serve",
        ],
    ),
];

/// Foreign names and the only places that may say them: a boundary is one file or one folder.
const HOMES: &[(&str, &[&str])] = &[
    (
        "pest::",
        &["compiler/lang/src/parse", "compiler/lang/src/syntax_error.rs", "compiler/lang/src/depth.rs"],
    ),
    ("pest_derive", &["compiler/lang/src/parse"]),
    ("miette::", &["compiler/cli/src/render"]),
    (
        "plotters::",
        &[
            "compiler/picture/src/",
            "compiler/cli/src/render/comparison/picture.rs",
            "compiler/cli/src/render/benchmark/picture.rs",
            "compiler/cli/src/render/svg.rs",
        ],
    ),
    ("maud::", &["compiler/picture/src/"]),
    ("ratatui::", &["compiler/cli/src/render/top.rs"]),
    ("jiff::", &["compiler/performance/src/import"]),
    ("highs::", &["compiler/planner/src/solve"]),
    ("highs_sys::", &["compiler/planner/src/solve"]),
    ("good_lp::", &["compiler/planner/src/solve"]),
    // A build script speaks to cargo.
    ("println!", &["runtime/worker/build.rs", "compiler/cli/src/", "runtime/serve/build.rs"]),
    ("eprintln!", &["compiler/cli/src/"]),
    ("nvml_wrapper", &["runtime/machine/src/driver", "runtime/nvml-sim/src/abi"]),
    ("tokio::", &["runtime/serve/src/"]),
    ("lsp_types::", &["compiler/lsp/src/"]),
    ("lsp_server::", &["compiler/lsp/src/"]),
    ("crossbeam_channel::", &["compiler/lsp/src/"]),
    ("hyper::", &["runtime/serve/src/gateway", "runtime/serve/src/load"]),
    ("opentelemetry", &["runtime/serve/src/gateway/traces.rs"]),
    ("tonic::", &["runtime/serve/src/protocol.rs", "runtime/serve/src/gateway"]),
    ("prometheus::", &["runtime/serve/src/"]),
    ("std::env::", &["compiler/cli/src/", "runtime/nvml-sim/src/", "runtime/worker/build.rs"]),
    // The planner keeps deadlines; everything else that is measured is measured by the command.
    ("std::time::Instant", &["compiler/cli/src/", "compiler/planner/src/solve", "runtime/"]),
];

/// Files that may contain `unsafe`, one per foreign boundary, each with its reason there.
const UNSAFE: &[&str] = &[
    "runtime/machine/src/driver/raw.rs",
    "runtime/nvml-sim/src/abi/boundary.rs",
    "runtime/serve/src/gateway/timer.rs",
    // The simulated board, and torch's CUDA half.
    "runtime/worker/src/device.rs",
    "runtime/worker/src/torch/cuda.rs",
];

/// Names that say nothing about what is inside.
const DRAWERS: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "stuff", "types",
    "shared", "core", "base", "tools",
];

/// Words that our glossary has another word for, and that have no other sense here.
const UNWANTED: &[&str] = &[
    "vgpu",
    "virtual gpu",
    "mig partition",
    "sub-slice",
    "flavour",
    "frequency cap",
    "energy usage",
    "graphics card",
    "tdp",
    "sla",
    "hit rate",
    "fitness",
    "cost function",
];

fn sources() -> impl Iterator<Item = (String, String)> {
    files("").into_iter().filter(|p| p.ends_with(".rs")).map(|p| {
        let text = read(&p);
        (p, text)
    })
}

/// Sources of what is shipped: neither tests nor benchmarks.
fn product() -> impl Iterator<Item = (String, String)> {
    let is_test =
        |p: &str| p.split('/').any(|part| ["tests", "tests.rs", "benches", "examples"].contains(&part));
    sources().filter(move |(path, _)| !is_test(path)).map(|(path, text)| {
        let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        (path, text[..end].to_owned())
    })
}

#[track_caller]
fn none(faults: Vec<String>, rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}

#[test]
fn every_source_file_begins_with_what_it_is() {
    let faults = sources().filter(|(_, text)| !text.starts_with("//! ")).map(|(path, _)| path).collect();
    none(faults, "the first line of a source file is `//! ` and what goes in and comes out");
}

#[test]
fn no_source_file_is_longer_than_six_hundred_lines() {
    let faults = files("")
        .into_iter()
        .filter(|p| [".rs", ".pest", ".sh"].iter().any(|end| p.ends_with(end)))
        .map(|p| (read(&p).lines().count(), p))
        .filter(|(lines, _)| *lines > 600)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    none(faults, "a file of more than 600 lines is more than one thing");
}

#[test]
fn no_file_is_a_drawer() {
    let is_drawer =
        |path: &String| path.split('/').any(|part| DRAWERS.contains(&part.split('.').next().unwrap_or(part)));
    none(files("").into_iter().filter(is_drawer).collect(), "a name says what is inside");
}

#[test]
fn every_diagnostic_has_a_page_and_every_page_a_diagnostic() {
    let pages: BTreeSet<String> = files("specs/diagnostics")
        .into_iter()
        .filter_map(|p| Some(p.strip_prefix("specs/diagnostics/")?.strip_suffix(".md")?.to_owned()))
        .filter(|p| p != "README")
        .collect();
    let codes: BTreeSet<String> = Code::ALL.iter().map(|c| c.word().to_owned()).collect();
    none(pages.symmetric_difference(&codes).cloned().collect(), "codes and pages are the same words");
    let is_stub = |code: &&Code| {
        let page = code.page();
        let body = page.lines().skip(1).filter(|l| !l.trim().is_empty()).count();
        page.lines().next() != Some(format!("# {}", code.word()).as_str()) || body < 3
    };
    let stubs = Code::ALL.iter().filter(is_stub).map(|c| c.word().to_owned()).collect();
    none(stubs, "a page has its code as title, and says what is wrong and what to do");
}

#[test]
fn dependencies_point_down() {
    let allowed: BTreeMap<&str, &[&str]> = EDGES.iter().copied().collect();
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    // The extension of an editor is no part of the workspace: it is built by that editor.
    let is_ours = |path: &String| path.ends_with("/Cargo.toml") && !path.starts_with("editors/");
    for path in files("").into_iter().filter(is_ours) {
        let manifest: toml::Table = read(&path).parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        let Some(edges) = allowed.get(name.as_str()) else {
            faults.push(format!("{path}: `{name}` is not in the table of edges"));
            continue;
        };
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let used = manifest.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            for (used, _) in used.filter(|(used, _)| used.starts_with("ent-") || *used == "entc") {
                if !edges.contains(&used.as_str()) {
                    faults.push(format!("{path}: `{name}` may not use `{used}`"));
                }
            }
        }
        if manifest.get("lints").and_then(|l| l.get("workspace")).and_then(toml::Value::as_bool) != Some(true)
        {
            faults.push(format!("{path}: the workspace's lints are not taken over"));
        }
        seen.insert(name);
    }
    faults.extend(EDGES.iter().filter(|(n, _)| !seen.contains(*n)).map(|(n, _)| format!("`{n}` is gone")));
    none(faults, "neither half knows the other, and only `entc` knows all");
}

#[test]
fn foreign_names_stay_at_their_boundary() {
    let mut faults = Vec::new();
    for (path, text) in product() {
        let homeless = |(name, homes): &&(&str, &[&str])| {
            !homes.iter().any(|home| path.starts_with(home)) && code(&text).contains(name)
        };
        faults.extend(HOMES.iter().filter(homeless).map(|(name, _)| format!("{path}: {name}")));
        let is_unsafe = code(&text).split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == "unsafe");
        if is_unsafe && !UNSAFE.contains(&path.as_str()) {
            faults.push(format!("{path}: unsafe"));
        }
    }
    none(faults, "a foreign name is said in its one home only");
}

#[test]
fn user_visible_text_uses_our_words() {
    let mut faults = Vec::new();
    for (path, text) in product() {
        for literal in literals(&text) {
            let lower = literal.to_lowercase();
            let is_word = |at: usize, word: &str| {
                let before = lower[..at].chars().next_back();
                let after = lower[at + word.len()..].chars().next();
                !before.into_iter().chain(after).any(char::is_alphanumeric)
            };
            for word in UNWANTED {
                if lower.match_indices(word).any(|(at, _)| is_word(at, word)) {
                    faults.push(format!("{path}: `{word}` in \"{literal}\""));
                }
            }
        }
    }
    none(faults, "the glossary has another word for it");
}

#[test]
fn nothing_is_left_for_later_without_saying_where() {
    // Spelled apart, so that this file does not accuse itself.
    let marks = [["TO", "DO"], ["FIX", "ME"], ["todo", "!("], ["unimple", "mented!"], ["#[ig", "nore"]];
    let marks: Vec<String> = marks.iter().map(|halves| halves.concat()).collect();
    let mut faults = Vec::new();
    for (path, text) in sources() {
        faults.extend(marks.iter().filter(|m| text.contains(m.as_str())).map(|m| format!("{path}: {m}")));
    }
    none(faults, "what does not work yet is asserted as it is, with a comment");
}

#[test]
fn architecture_names_every_crate_and_only_paths_that_exist() {
    let text = read("ARCHITECTURE.md");
    let mut faults: Vec<String> = EDGES
        .iter()
        .filter(|(name, _)| !text.contains(&format!("`{name}`")))
        .map(|(name, _)| format!("`{name}` is not mentioned"))
        .collect();
    let is_path = |span: &&str| {
        span.contains('/') && !span.contains([' ', '<', '*', ':', '{']) && !span.starts_with(['/', '-'])
    };
    for span in text.split('`').skip(1).step_by(2).filter(is_path) {
        if !root().join(span).exists() {
            faults.push(format!("`{span}` does not exist"));
        }
    }
    none(faults, "ARCHITECTURE.md is true");
}

#[test]
fn long_documents_stay_readable() {
    let limits = [("ARCHITECTURE.md", 300), ("CONTRIBUTING.md", 200)];
    let too_long = |(path, limit): &(&str, usize)| {
        let lines = read(path).lines().count();
        (lines == 0 || lines > *limit).then(|| format!("{path}: {lines} lines, at most {limit}"))
    };
    none(limits.iter().filter_map(too_long).collect(), "a map is not an atlas");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Vec::new();
    for path in files("").into_iter().filter(|p| p.ends_with(".md")) {
        let folder = root().join(&path).parent().unwrap().to_path_buf();
        for rest in read(&path).split("](").skip(1) {
            let target = rest.split([')', ' ', '#']).next().unwrap_or_default();
            let is_local = !target.is_empty() && !target.contains(':');
            if is_local && !folder.join(target).exists() {
                faults.push(format!("{path}: {target}"));
            }
        }
    }
    none(faults, "links lead somewhere");
}

#[test]
fn every_example_has_a_program_and_says_what_it_shows() {
    let examples: BTreeSet<String> =
        files("examples").iter().filter_map(|p| Some(p.split('/').nth(1)?.to_owned())).collect();
    assert!(examples.len() >= 6, "{examples:?}");
    let has = |example: &str, file: &str| !read(&format!("examples/{example}/{file}")).is_empty();
    let is_incomplete = |e: &String| !has(e, "README.md") || !has(e, "program.ent");
    none(examples.into_iter().filter(is_incomplete).collect(), "an example has README.md and program.ent");
}

#[test]
fn every_program_is_in_canonical_layout() {
    let is_not = |path: &String| {
        let text = read(path);
        ent_lang::format(&text).map_or(true, |canonical| canonical != text)
    };
    let programs = files("examples").into_iter().filter(|p| p.ends_with(".ent"));
    none(programs.filter(is_not).collect(), "`entc fmt` has nothing to change");
}

#[test]
fn the_readme_shows_the_quickstart_as_it_is() {
    let program = read("examples/quickstart/program.ent");
    assert!(
        read("README.md").contains(&format!("```ent\n{program}```")),
        "README.md shows another quickstart"
    );
}

#[test]
fn the_schema_of_plans_is_the_one_that_is_published() {
    let path = "specs/plan.schema.json";
    let schema = schemars::schema_for!(ent_plan::plan::Plan).to_value();
    if std::env::var_os("ENT_BLESS").is_some() {
        std::fs::write(root().join(path), format!("{}\n", serde_json::to_string_pretty(&schema).unwrap()))
            .unwrap();
    }
    // Values, not texts: whether keys are sorted depends on the crates that are built together.
    let published: Option<serde_json::Value> = serde_json::from_str(&read(path)).ok();
    assert!(
        published.as_ref() == Some(&schema),
        "{path} is stale; ENT_BLESS=1 rewrites it. Is the format's version still right?"
    );
}

/// A source text without comments and without what its string literals hold.
fn code(text: &str) -> String {
    lex(text).into_iter().filter_map(|(kind, piece)| (kind == Piece::Code).then_some(piece)).collect()
}

/// What the string literals of a source text hold.
fn literals(text: &str) -> Vec<&str> {
    lex(text).into_iter().filter_map(|(kind, piece)| (kind == Piece::Literal).then_some(piece)).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    Code,
    Comment,
    Literal,
}

/// Cuts a source text into code, comments and string literals. Knows as much Rust as that takes: raw
/// strings, escapes, nested comments, and that a quote may be a character.
fn lex(text: &str) -> Vec<(Piece, &str)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (kind, length) = if rest.starts_with("//") {
            (Piece::Comment, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (Piece::Comment, rest.find("*/").map_or(rest.len(), |end| end + 2))
        } else if let Some(length) = raw_string(rest) {
            (Piece::Literal, length)
        } else if let Some(inside) = rest.strip_prefix('"') {
            let mut is_escaped = false;
            let end = inside.find(|c| {
                let is_end = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                is_end
            });
            (Piece::Literal, end.map_or(rest.len(), |end| end + 2))
        } else {
            (Piece::Code, code_length(rest))
        };
        let (piece, more) = rest.split_at(length);
        pieces.push((kind, piece));
        rest = more;
    }
    pieces
}

/// The length of a raw string at the start of a text, if there is one.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.strip_prefix('r')?.chars().take_while(|c| *c == '#').count();
    let body = text[1 + hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    Some(body.find(&close).map_or(text.len(), |end| 2 + hashes + end + close.len()))
}

/// The length of the code at the start of a text, up to the next comment or string.
fn code_length(text: &str) -> usize {
    let character = ["'\"'", "'\\\"'", "'\\''", "'\\\\'"].iter().find(|c| text.starts_with(**c));
    if let Some(character) = character {
        return character.len();
    }
    let word = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
    if word > 0 { word } else { text.chars().next().map_or(1, char::len_utf8) }
}
