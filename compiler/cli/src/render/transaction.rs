//! Events and the end of a transaction → lines: what was done, what the machine is now, what to do.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use crate::exit::Trouble;
use ent_machine::apply::{Event, Outcome, Report};
use ent_machine::changes::Step;

/// A line for an event, and whether it tells of a failure.
pub(crate) fn event(event: &Event<'_>) -> (String, bool) {
    match event {
        Event::Started { number, of, step, is_inverse } => {
            let back = if *is_inverse { "back: " } else { "" };
            let digits = of.to_string().len();
            (format!("{number:>digits$}/{of}  {back}gpu {}: {}", step.index, step.operation), false)
        }
        Event::Finished { step, error: Some(error), .. } => {
            (format!("failed: {}", crate::machine::failed_step(step, error)), true)
        }
        Event::Finished { step, error: None, .. } => {
            (format!("done: gpu {}: {}", step.index, step.operation), false)
        }
        Event::Verifying => ("reading the machine back".to_owned(), false),
        Event::GoingBack { reason } => (format!("going back: {}", crate::machine::going_back(reason)), true),
    }
}

/// How a transaction ended.
pub(crate) struct Summary<'a> {
    /// `apply`, `resume`, `rollback`, `destroy`.
    pub(crate) word: &'static str,
    /// What was done and how the machine is left.
    pub(crate) report: &'a Report,
    /// Why it did not end as asked; empty when it did.
    pub(crate) troubles: &'a [Trouble],
}

/// Draws the end.
pub(crate) fn summary(summary: &Summary<'_>, canvas: &Canvas) -> String {
    let report = summary.report;
    let mut lines = Vec::new();
    for trouble in summary.troubles {
        let line = Line::of(Role::Bad, format!("error[{}]", trouble.code))
            .and(Role::Plain, format!(": {}", trouble.message));
        lines.extend(line.wrapped(canvas.width, 2));
    }
    if summary.troubles.is_empty() {
        lines.extend(good(summary).wrapped(canvas.width, 2));
    } else {
        lines.extend(Line::of(Role::Note, "  now:  ").and(Role::Plain, now(report)).wrapped(canvas.width, 8));
        for help in helps(summary) {
            lines.extend(Line::of(Role::Note, "  help: ").and(Role::Plain, help).wrapped(canvas.width, 8));
        }
        lines.extend(steps("done", &report.done, canvas));
        lines.extend(steps("failed", &report.failed, canvas));
        lines.extend(steps("taken back", &report.taken_back, canvas));
        lines.extend(steps("not started", &report.not_started, canvas));
    }
    for note in &report.notes {
        lines.extend(Line::of(Role::Warn, "  note: ").and(Role::Plain, note).wrapped(canvas.width, 8));
    }
    page(&lines, canvas.color)
}

fn good(summary: &Summary<'_>) -> Line {
    let n = summary.report.done.len();
    let steps = match n {
        0 => "nothing to do".to_owned(),
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    };
    let (word, is_now) = match summary.word {
        "rollback" => ("Rolled back", "the machine reads back as it was before"),
        "destroy" => ("Given back", "the machine reads back as it was before entc"),
        "import" => ("Imported", "the machine was not changed"),
        _ => ("Applied", "the machine reads back as planned"),
    };
    Line::of(Role::Good, word).and(Role::Plain, format!(": {steps}, {is_now}"))
}

fn now(report: &Report) -> String {
    match report.outcome {
        Outcome::Done => "the machine is as wished, read back".to_owned(),
        Outcome::RolledBack => "gone back: the machine is as it was before, read back".to_owned(),
        Outcome::Unchanged => "nothing was changed".to_owned(),
        Outcome::Open => format!(
            "half way: steps done {}, failed {}, not started {}; the journal is {}",
            report.done.len(),
            report.failed.len(),
            report.not_started.len(),
            report.journal.display()
        ),
    }
}

fn helps(summary: &Summary<'_>) -> Vec<String> {
    let mut helps: Vec<String> = summary.troubles.iter().map(|trouble| trouble.help.clone()).collect();
    helps.dedup();
    if summary.report.outcome == Outcome::Open {
        helps.push("then go on with `entc apply --resume`, or back with `entc rollback`".to_owned());
    }
    helps
}

fn steps(word: &str, steps: &[Step], canvas: &Canvas) -> Vec<Line> {
    let line = |step: &Step| {
        Line::of(Role::Faint, format!("  {word:<12}"))
            .and(Role::Plain, format!("gpu {}: {}", step.index, step.operation))
            .wrapped(canvas.width, 16)
    };
    steps.iter().flat_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::Detail;
    use crate::render::symbols::ASCII;
    use ent_machine::changes::Operation;
    use ent_machine::observed::GpuUuid;

    #[test]
    fn a_failure_says_what_happened_what_is_now_and_what_to_do() {
        let step = |mhz: u32| Step {
            gpu: GpuUuid("GPU-1".to_owned()),
            index: 1,
            operation: Operation::LockClocks { min: mhz, max: mhz },
            reason: String::new(),
        };
        let report = Report {
            done: vec![step(210)],
            failed: vec![step(420)],
            not_started: vec![step(510)],
            outcome: Outcome::Open,
            journal: "/x/journal.jsonl".into(),
            taken_back: Vec::new(),
            notes: vec!["a GPU is gone".to_owned()],
        };
        let troubles = [Trouble::new("gpu-lost", "it fell off", "reboot")];
        let canvas = Canvas { width: 60, color: false, symbols: &ASCII, detail: Detail::Boards };
        let text = summary(&Summary { word: "apply", report: &report, troubles: &troubles }, &canvas);
        for words in [
            "error[gpu-lost]: it fell off",
            "now:  half way",
            "/x/journal.jsonl",
            "help: reboot",
            "--resume",
            "done        gpu 1",
            "failed      gpu 1",
            "not started gpu 1",
            "a GPU is gone",
        ] {
            assert!(text.contains(words), "{words} is missing from\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(!text.contains("Applied"));
    }
}
