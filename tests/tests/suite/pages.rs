//! The pages of diagnostics, planned: every `ent plan` fence is reported as it says, and no more.
//!
//! A `csv NAME` fence of the page is a file beside the program. Pages of the language and of measurements
//! are run by the crates that report them; here is what only planning can show.

use ent_plan::diagnostic::{Code, Severity};
use ent_tests::fences::{Expectation, Fence, expectations, fences};
use ent_tests::planning::{Answer, Question, ask};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Codes that no program causes: they are about plan files, and the command's tests show them.
const OF_FILES: [Code; 3] = [Code::InvalidPlan, Code::PlanChecksum, Code::PlanCheckFailed];

/// Codes that this suite's pages must show; the other crates' pages show the rest.
const PLANNED: [Code; 11] = [
    Code::ConflictingRequirements,
    Code::IllustrativeData,
    Code::LatencyOutOfReach,
    Code::MemoryOutOfReach,
    Code::MissingBoardFact,
    Code::PinOutOfReach,
    Code::PlannerLimitation,
    Code::PowerLimitExceeded,
    Code::SloWithoutMeasurement,
    Code::TooFewMeasurements,
    Code::UnverifiedBoardFact,
];

fn reported(answer: &Answer) -> Vec<Expectation> {
    let of = |d: &ent_plan::diagnostic::Diagnostic| {
        let file = answer.sources.get(d.primary.span.file).map_or("", |f| f.name.as_str()).to_owned();
        let severity = if d.severity == Severity::Error { "error" } else { "warning" };
        Expectation {
            file,
            line: answer.sources.position(d.primary.span).0,
            severity: severity.to_owned(),
            code: d.code.word().to_owned(),
            underlined: Some(answer.sources.snippet(d.primary.span).to_owned()),
        }
    };
    answer.diagnostics.iter().map(of).collect()
}

/// What a program is reported to be, against what it says.
fn judge(fence: &Fence, texts: &BTreeMap<String, String>) -> String {
    let mut texts = texts.clone();
    texts.insert("program.ent".to_owned(), fence.text.clone());
    let expected: Vec<Expectation> = texts.iter().flat_map(|(name, text)| expectations(name, text)).collect();
    let mut question = Question { texts, ..Question::default() };
    if fence.words.iter().any(|word| word == "execution") {
        question.rule = Some(ent_plan::plan::LatencyRule::Execution);
    }
    let answer = ask("program.ent", &question);
    let mut said = reported(&answer);
    let mut wrong = String::new();
    for expected in expected {
        let is_it = |s: &Expectation| {
            (&s.file, s.line, &s.severity, &s.code)
                == (&expected.file, expected.line, &expected.severity, &expected.code)
                && (expected.underlined.is_none() || s.underlined == expected.underlined)
        };
        match said.iter().position(is_it) {
            Some(at) => drop(said.remove(at)),
            None => writeln!(wrong, "  missing:    {expected:?}").unwrap(),
        }
    }
    for other in said {
        writeln!(wrong, "  unexpected: {other:?}").unwrap();
    }
    if answer.errors().count() == 0 {
        answer.kept();
    }
    for diagnostic in &answer.diagnostics {
        if diagnostic.help.as_deref().unwrap_or("").is_empty() || diagnostic.message.ends_with('.') {
            writeln!(wrong, "  no help, or a full stop: {diagnostic:?}").unwrap();
        }
    }
    wrong
}

#[test]
fn the_pages_that_need_a_plan_show_what_they_say() {
    let mut report = String::new();
    for path in ent_tests::files("specs/diagnostics").into_iter().filter(|p| p.ends_with(".md")) {
        let found = fences(&ent_tests::read(&path));
        let texts: BTreeMap<String, String> = found
            .iter()
            .filter(|fence| fence.is(&["csv"]) && fence.words.len() == 2)
            .map(|fence| (fence.words[1].clone(), fence.text.clone()))
            .collect();
        for fence in found.iter().filter(|fence| fence.is(&["ent", "plan"])) {
            let wrong = judge(fence, &texts);
            if !wrong.is_empty() {
                writeln!(report, "{path}:{}\n{wrong}", fence.line).unwrap();
            }
        }
        for fence in found.iter().filter(|fence| fence.is(&["ent", "fragment"])) {
            let file = ent_plan::diagnostic::FileId(0);
            let problems = ent_lang::parse(file, &fence.text).diagnostics;
            if !problems.is_empty() {
                writeln!(report, "{path}:{}\n  {problems:?}", fence.line).unwrap();
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn every_code_of_planning_has_an_example_that_causes_it() {
    for code in PLANNED {
        let marks = [format!("// error: [{}]", code.word()), format!("// warning: [{}]", code.word())];
        let shown = fences(code.page())
            .iter()
            .any(|f| f.is(&["ent", "plan"]) && marks.iter().any(|mark| f.text.contains(mark.as_str())));
        assert!(shown, "{}: no example of it", code.word());
    }
}

#[test]
fn every_page_has_an_example() {
    for code in Code::ALL.iter().filter(|code| !OF_FILES.contains(code)) {
        let n_examples = fences(code.page()).len();
        let says_what_to_do = code.page().contains("**What to do.**") || n_examples > 1;
        assert!(n_examples > 0 && says_what_to_do, "{}", code.word());
    }
}
