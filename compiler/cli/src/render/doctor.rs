//! What was looked at → one line each, with its fix.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use crate::report::machine::{Finding, Findings};

/// Draws the findings.
pub(crate) fn doctor(findings: &Findings, canvas: &Canvas) -> String {
    let mut lines: Vec<Line> = findings.checks.iter().flat_map(|finding| check(finding, canvas)).collect();
    let count = |verdict: &str| findings.checks.iter().filter(|finding| finding.verdict == verdict).count();
    let (problems, warnings) = (count("problem"), count("warning"));
    lines.push(Line::new());
    lines.push(match (problems, warnings) {
        (0, 0) => Line::of(Role::Good, "nothing stands in the way of `entc apply`"),
        (0, n) => Line::of(Role::Warn, format!("no problems; warnings: {n}")),
        (n, m) => Line::of(Role::Bad, format!("problems that keep `entc apply` from its work: {n}"))
            .and(Role::Plain, format!("; warnings: {m}")),
    });
    page(&lines, canvas.color)
}

fn check(finding: &Finding, canvas: &Canvas) -> Vec<Line> {
    let role = match finding.verdict {
        "ok" => Role::Good,
        "warning" => Role::Warn,
        _ => Role::Bad,
    };
    let line = Line::of(role, format!("{:<8}", finding.verdict))
        .and(Role::Heading, &finding.name)
        .and(Role::Plain, format!(": {}", finding.message));
    let mut lines = line.wrapped(canvas.width, 10);
    if let Some(fix) = &finding.fix {
        lines.extend(Line::of(Role::Note, "        fix: ").and(Role::Plain, fix).wrapped(canvas.width, 13));
    }
    lines
}
