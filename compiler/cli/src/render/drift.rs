//! What is no longer as entc left it → a table, or that all is.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::table::{Column, table};
use crate::report::machine::DriftReport;
use ent_machine::observed::Observed;
use ent_machine::state::State;

/// Draws it.
pub(crate) fn drift(report: &DriftReport, observed: &Observed, state: &State, canvas: &Canvas) -> String {
    let mut lines = if state.gpus.is_empty() {
        vec![Line::plain("entc has left nothing on this machine")]
    } else if report.drift.is_empty() {
        vec![Line::of(Role::Good, "no drift").and(Role::Plain, ": the machine is as entc left it")]
    } else {
        let n = report.drift.len();
        let word = if n == 1 { "thing is" } else { "things are" };
        vec![Line::of(Role::Bad, "drift").and(Role::Plain, format!(": {n} {word} not as entc left it"))]
    };
    if !report.drift.is_empty() {
        let columns =
            [Column::number("gpu"), Column::name("what"), Column::name("left as"), Column::name("is now")];
        let row = |one: &crate::report::machine::Drifted| {
            let index =
                observed.gpu(&one.gpu).map_or_else(|| one.gpu.to_string(), |gpu| gpu.index.to_string());
            vec![
                Line::plain(index),
                Line::of(Role::Name, &one.field),
                Line::plain(&one.expected),
                Line::of(Role::Warn, &one.found),
            ]
        };
        let rows: Vec<Vec<Line>> = report.drift.iter().map(row).collect();
        lines.extend(table(&columns, &rows, canvas.width, 2, canvas.symbols));
        let help = if report.drift.iter().any(|one| one.is_reasserted) {
            "  help: bring it back with `entc apply --reassert`, or plan for the machine as it is"
        } else {
            "  help: applying again would change nothing of it: ask whoever made it, adopt instances with \
             `entc import`, or give the machine back with `entc destroy`"
        };
        lines.extend(Line::of(Role::Faint, help).wrapped(canvas.width, 8));
    }
    page(&lines.into_iter().flat_map(|line| line.wrapped(canvas.width, 2)).collect::<Vec<_>>(), canvas.color)
}
