//! Documents → tests: every `ent` fence of the language's documents is compiled and must say what it says.
//!
//! In a fence, `// error: [code] "underlined"` (or `warning`) ends the line that a diagnostic starts on; a
//! message may follow, and a line `// help: text` below it; `// ^ error: …` is about the line above. Nothing else may be reported. A fence marked
//! `part` gets what a program lacks from a file of its own; `file="name"` is a file for the fences below it
//! in its section; `set="name=value"` sets a param, and `// --set error: …` expects an error of that setting.
//! A fence marked `before` is formatted and must become the fence marked `after` below it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where its document is wrong")]

use ent_lang::{Options, compile, format, parse, print};
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Severity, Sources};
use ent_plan::text::LoadError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What makes a part a whole program.
const REST: &str = r#"
import "catalog:nvidia/a100-80gb-pcie"
model some_model {}
service some_service { model = some_model, rate = 1 req/s, latency = p99 <= 1 s }
hardware { node "some_node" { gpu = a100_80gb_pcie x 2 } }
"#;

struct Fence {
    line: usize,
    info: String,
    text: String,
}

impl Fence {
    fn is_part(&self) -> bool {
        self.info.split(' ').any(|word| word == "part")
    }

    fn option(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.info.split_once(&format!("{name}=\""))?;
        rest.split('"').next()
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The `ent` fences of a document by section.
fn sections(text: &str) -> Vec<Vec<Fence>> {
    let mut sections = vec![Vec::new()];
    let mut open: Option<Fence> = None;
    let mut is_other = false;
    for (i, line) in text.lines().enumerate() {
        if let Some(fence) = &mut open {
            if line.starts_with("```") {
                sections.last_mut().unwrap().extend(open.take());
            } else {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
        } else if is_other {
            is_other = !line.starts_with("```");
        } else if let Some(info) = line.strip_prefix("```ent") {
            open = Some(Fence { line: i + 2, info: info.trim().to_owned(), text: String::new() });
        } else if line.starts_with("```") {
            is_other = true;
        } else if line.starts_with('#') {
            sections.push(Vec::new());
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    sections
}

fn outcome(fence: &Fence, files: &BTreeMap<String, String>) -> (Vec<Diagnostic>, Sources) {
    let mut text = fence.text.clone();
    if fence.is_part() {
        text.push_str("import \"rest.ent\"\n");
    }
    let mut load = |name: &str| match (name, files.get(name)) {
        ("program.ent", _) => Ok(text.clone().into_bytes()),
        ("rest.ent", _) => Ok(REST.as_bytes().to_vec()),
        (_, Some(text)) => Ok(text.clone().into_bytes()),
        (_, None) => Err(LoadError::Missing),
    };
    let set = fence.option("set").and_then(|s| s.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned()));
    let options = Options { set: set.into_iter().collect(), ..Options::default() };
    let mut sources = Sources::default();
    let outcome = compile("program.ent", &options, &mut load, &mut sources);
    assert_eq!(outcome.value.is_none(), outcome.has_errors(), "a program comes exactly without errors");
    (outcome.diagnostics, sources)
}

/// `line: severity: [code] "underlined"`, and what else is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Expectation {
    file: String,
    line: usize,
    head: String,
    message: Option<String>,
    help: Option<String>,
}

fn expectations(file: &str, text: &str) -> Vec<Expectation> {
    let mut found: Vec<Expectation> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if let Some(help) = line.trim().strip_prefix("// help: ") {
            found.last_mut().expect("help follows an error").help = Some(help.to_owned());
            continue;
        }
        for (at, _) in line.match_indices("// ") {
            let rest = &line[at + 3..];
            let (is_above, rest) = rest.strip_prefix("^ ").map_or((false, rest), |rest| (true, rest));
            let is_setting = rest.starts_with("--set error: [");
            if !rest.starts_with("error: [") && !rest.starts_with("warning: [") && !is_setting {
                continue;
            }
            let rest = rest.split(" // ").next().unwrap();
            let quote = rest.find('"').expect("the underlined text is in quotes");
            let end = rest.rfind("\" ").filter(|end| *end > quote).unwrap_or(rest.rfind('"').unwrap());
            let message = rest[end + 1..].trim();
            found.push(Expectation {
                file: if is_setting { "--set".to_owned() } else { file.to_owned() },
                line: if is_setting { 1 } else { i + usize::from(!is_above) },
                head: rest[..=end].trim_start_matches("--set ").to_owned(),
                message: (!message.is_empty()).then(|| message.to_owned()),
                help: None,
            });
        }
    }
    found
}

fn said(diagnostic: &Diagnostic, sources: &Sources) -> Expectation {
    let severity = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
    let underlined = sources.snippet(diagnostic.primary.span).lines().next().unwrap_or("");
    Expectation {
        file: sources.get(diagnostic.primary.span.file).unwrap().name.clone(),
        line: sources.position(diagnostic.primary.span).0,
        head: format!("{severity}: [{}] \"{underlined}\"", diagnostic.code.word()),
        message: Some(diagnostic.message.clone()),
        help: diagnostic.help.clone(),
    }
}

fn matches(expected: &Expectation, said: &Expectation) -> bool {
    expected.file == said.file
        && expected.line == said.line
        && expected.head == said.head
        && (expected.message.is_none() || expected.message == said.message)
        && (expected.help.is_none() || expected.help == said.help)
}

/// Compiles a fence and returns what differs from what it says.
fn judge(fence: &Fence, files: &BTreeMap<String, String>) -> String {
    let (diagnostics, sources) = outcome(fence, files);
    let mut said: Vec<Expectation> = diagnostics.iter().map(|d| said(d, &sources)).collect();
    let mut wrong = String::new();
    let mut expected = expectations("program.ent", &fence.text);
    for (name, text) in files.iter().filter(|(name, _)| sources.find(name).is_some()) {
        expected.extend(expectations(name, text));
    }
    for expected in expected {
        match said.iter().position(|s| matches(&expected, s)) {
            Some(at) => {
                said.remove(at);
            }
            None => writeln!(wrong, "  missing:    {expected:?}").unwrap(),
        }
    }
    for other in said {
        writeln!(wrong, "  unexpected: {other:?}").unwrap();
    }
    for diagnostic in &diagnostics {
        let help = diagnostic.help.as_deref().unwrap_or("");
        if (help.is_empty() && diagnostic.code != Code::Syntax)
            || diagnostic.message.is_empty()
            || diagnostic.message.ends_with('.')
        {
            writeln!(wrong, "  no help, or a full stop: {diagnostic:?}").unwrap();
        }
    }
    if let Ok(formatted) = format(&fence.text) {
        let again = format(&formatted);
        if again.as_ref() != Ok(&formatted) {
            writeln!(wrong, "  formatting twice differs:\n{formatted}\n{again:?}").unwrap();
        }
        let (before, after) = (parse(FileId(0), &fence.text).value, parse(FileId(0), &formatted).value);
        if before != after {
            writeln!(wrong, "  formatting changes the meaning:\n{formatted}").unwrap();
        }
        if print(&before) != formatted {
            writeln!(wrong, "  print and format differ").unwrap();
        }
    }
    wrong
}

/// Runs every fence of a document; returns how many there were, and what was wrong.
fn run(path: &Path, report: &mut String) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    let mut count = 0;
    for section in sections(&text) {
        let mut files = BTreeMap::new();
        let mut before: Option<Fence> = None;
        for fence in section {
            if fence.info == "before" {
                before = Some(fence);
                continue;
            }
            if fence.info == "after" {
                count += 1;
                let formatted = format(&before.take().expect("`before` comes before `after`").text);
                if formatted.as_ref() != Ok(&fence.text) {
                    let shown = formatted.unwrap_or_else(|problems| format!("{problems:?}"));
                    writeln!(report, "{}:{} is formatted as\n{shown}", path.display(), fence.line).unwrap();
                }
                continue;
            }
            if let Some(name) = fence.option("file") {
                files.insert(name.to_owned(), fence.text.clone());
                continue;
            }
            count += 1;
            let wrong = judge(&fence, &files);
            if !wrong.is_empty() {
                writeln!(report, "{}:{}\n{wrong}", path.display(), fence.line).unwrap();
            }
        }
    }
    count
}

fn documents(folder: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect();
    found.sort();
    found
}

#[test]
fn the_language_cases_hold() {
    let mut report = String::new();
    let count: usize = documents("tests/language").iter().map(|path| run(path, &mut report)).sum();
    assert!(report.is_empty(), "\n{report}");
    assert!(count >= 40, "only {count} cases were found");
}

#[test]
fn the_language_reference_is_true() {
    let mut report = String::new();
    let count = run(&root().join("specs/language.md"), &mut report);
    assert!(report.is_empty(), "\n{report}");
    assert!(count >= 12, "only {count} examples were found");
}

/// The codes that this crate reports: each page shows the mistake and its repair.
const CODES: [Code; 18] = [
    Code::Syntax,
    Code::UnreadableFile,
    Code::MissingFile,
    Code::ImportCycle,
    Code::UnknownName,
    Code::UnknownBlock,
    Code::UnknownAttribute,
    Code::UnknownUnit,
    Code::UnknownBoard,
    Code::UnknownProfile,
    Code::UnknownParam,
    Code::Duplicate,
    Code::UnitMismatch,
    Code::TypeMismatch,
    Code::OutOfRange,
    Code::CyclicDefinition,
    Code::MissingAttribute,
    Code::ClockOffLadder,
];

#[test]
fn the_pages_of_the_language_diagnostics_show_them_and_their_repair() {
    let mut report = String::new();
    for code in CODES {
        let path = root().join(format!("specs/diagnostics/{}.md", code.word()));
        run(&path, &mut report);
        let text = std::fs::read_to_string(&path).unwrap();
        let fences: Vec<Fence> =
            sections(&text).into_iter().flatten().filter(|f| f.option("file").is_none()).collect();
        let marker = format!("error: [{}]", code.word());
        if !fences.iter().any(|f| f.text.contains(&marker)) {
            writeln!(report, "{}: no example of the mistake", path.display()).unwrap();
        }
        if !fences.iter().any(|f| expectations("", &f.text).is_empty()) {
            writeln!(report, "{}: no example of the repair", path.display()).unwrap();
        }
        assert!(text.starts_with(&format!("# {}\n", code.word())), "{}", path.display());
    }
    assert!(report.is_empty(), "\n{report}");
}
