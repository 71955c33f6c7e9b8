//! The pages of the measurement diagnostics, executed: every `csv` fence reports what it says, and no more.
//!
//! In a fence, `# error: [code] "underlined"` (or `warning`) below a row says what that row causes. A fence
//! with a file name belongs to a program, and is tried with it.
#![expect(clippy::unwrap_used, reason = "a test: a page that cannot be read fails it")]

use ent_performance::import;
use ent_plan::diagnostic::{Code, FileId, Severity, Sources};
use std::path::Path;

/// Severity, code, line, underlined text.
type Expected = (Severity, String, usize, String);

fn fences(text: &str) -> Vec<String> {
    let mut fences = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (&mut open, line) {
            (Some(fence), "```") => {
                fences.push(std::mem::take(fence));
                open = None;
            }
            (Some(fence), line) => {
                fence.push_str(line);
                fence.push('\n');
            }
            (None, "```csv") => open = Some(String::new()),
            (None, _) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    fences
}

fn expectations(fence: &str) -> Vec<Expected> {
    let mut row = 0;
    let mut expected = Vec::new();
    for (index, line) in fence.lines().enumerate() {
        let Some(comment) = line.strip_prefix("# ") else {
            row = index + 1;
            continue;
        };
        let (severity, rest) = match comment.split_once(": [") {
            Some(("error", rest)) => (Severity::Error, rest),
            Some(("warning", rest)) => (Severity::Warning, rest),
            Some(_) | None => continue,
        };
        let (code, rest) = rest.split_once("] \"").unwrap();
        expected.push((severity, code.to_owned(), row, rest.trim_end_matches('"').to_owned()));
    }
    expected
}

fn reported(fence: &str) -> Vec<Expected> {
    let mut sources = Sources::default();
    let file: FileId = sources.add("fence.csv", fence);
    let boards = [ent_plan::device::board("a100-80gb-pcie").unwrap()];
    let context = import::Context { boards: &boards, board: Some(0), model: Some("net"), source: "a page" };
    let outcome = import::measurements(fence, file, &context);
    let mut reported: Vec<Expected> = outcome
        .diagnostics
        .iter()
        .map(|d| {
            let line = sources.position(d.primary.span).0;
            (d.severity, d.code.word().to_owned(), line, sources.snippet(d.primary.span).to_owned())
        })
        .collect();
    reported.sort_by_key(|(_, _, line, _)| *line);
    reported
}

#[test]
fn the_pages_of_the_measurement_diagnostics_show_them_and_their_repair() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/diagnostics");
    for code in
        [Code::MeasurementColumn, Code::MeasurementRow, Code::MeasurementUnits, Code::DuplicateMeasurement]
    {
        let text = std::fs::read_to_string(folder.join(format!("{}.md", code.word()))).unwrap();
        let fences = fences(&text);
        for fence in &fences {
            assert_eq!(reported(fence), expectations(fence), "{}:\n{fence}", code.word());
        }
        let shows = |severity| {
            fences.iter().any(|f| expectations(f).iter().any(|e| e.0 == severity && e.1 == code.word()))
        };
        assert!(shows(Severity::Error), "{}: no example of the mistake", code.word());
        assert!(
            fences.iter().any(|f| expectations(f).is_empty()),
            "{}: no example of the repair",
            code.word()
        );
    }
}
