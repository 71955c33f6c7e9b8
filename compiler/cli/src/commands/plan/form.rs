//! `entc plan --emit FORM`: the forms on the way from text to plan, printed.

use super::{Wishes, under_control};
use crate::arguments::Emit;
use crate::commands::program::Compiled;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Severity, Sources};

/// The text's structure. A text with errors still has one.
pub(super) fn ast(name: &str, terminal: &Terminal) -> Result<Exit, Stop> {
    let text = crate::load::spec(name)?;
    let mut sources = Sources::default();
    let file = sources.add(name, text.as_str());
    let outcome = ent_lang::parse(file, &text);
    terminal.result(&format!("{:#?}\n", outcome.value))?;
    let has_errors = outcome.diagnostics.iter().any(|d| d.severity == Severity::Error);
    crate::commands::tell(terminal, &sources, &outcome.diagnostics);
    Ok(if has_errors { Exit::Wrong } else { Exit::Done })
}

/// Names and units resolved.
pub(super) fn program(compiled: &Compiled, terminal: &Terminal) -> Result<Exit, Stop> {
    terminal.result(&format!("{:#?}\n", compiled.program))?;
    crate::commands::tell(terminal, &compiled.sources, &compiled.diagnostics);
    Ok(Exit::Done)
}

/// The optimisation problem.
pub(super) fn problem(
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    wishes: &Wishes,
    form: Emit,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    crate::bug::processing("problem");
    let metric = wishes.options.metric.unwrap_or(compiled.program.objective.minimize.value);
    let outcome = ent_planner::formulate(&compiled.program, performance, metric, wishes.options.rule);
    compiled.add(outcome.diagnostics)?;
    let problem = outcome.value;
    let text = match form {
        Emit::Lp => ent_planner::lp(&problem),
        Emit::Solution => {
            let (solution, _) = under_control(wishes, metric, terminal, |control| {
                ent_planner::solve(&compiled.program, performance, &problem, wishes.options.planner, control)
            });
            format!("{solution:#?}\n")
        }
        Emit::Ast | Emit::Program | Emit::Problem | Emit::Plan => format!("{problem:#?}\n"),
    };
    terminal.result(&text)?;
    Ok(Exit::Done)
}
