//! `entc simulate`: plan (or spec → plan) → what its promises do under simulated arrivals.

use super::plan::{Limits, has_boards, make};
use super::planners::{Given, Who, is_plan, nothing_asked};
use super::program::{asked, performance};
use super::replay::{Replay, Traces, replay};
use super::{canvas_err, canvas_out, show, tell};
use crate::arguments::{self, Format, Question, Simulate};
use crate::exit::{Exit, Stop};
use crate::render::{self, json};
use crate::terminal::Terminal;
use ent_plan::diagnostic::Sources;
use ent_plan::plan::{FORMAT_VERSION, LatencyRule, Plan};
use schemars::JsonSchema;
use serde::Serialize;

/// Simulates and reports.
pub(super) fn run(arguments: &Simulate, terminal: &Terminal) -> Result<Exit, Stop> {
    let is_saved = is_plan(&arguments.planned.file);
    let (plan, mut traces) = if is_saved {
        nothing_asked(&arguments.planned.question, &arguments.planned.who)?;
        let saved = show::read(&arguments.planned.file)?;
        saved.warn(terminal);
        (saved.plan.into_plan(), Traces::new())
    } else {
        let arguments::Planned { file, question, who } = &arguments.planned;
        match planned(file, question, who, arguments.format, terminal)? {
            Ok(planned) => planned,
            Err(exit) => return Ok(exit),
        }
    };
    recorded(&arguments.traces, &plan, &mut traces, terminal)?;
    crate::bug::processing("simulation");
    let replay = replay(&plan, &arguments.runs, &traces);
    let text = match arguments.format {
        Format::Json => json::text(&serde_json::json!(report(&plan, &replay))),
        Format::Human => render::simulation::simulation(&plan, &replay, &canvas_out(terminal, false, false)),
    };
    terminal.result(&text)?;
    let is_broken = replay.services.iter().any(|service| !service.is_kept);
    Ok(if is_broken && arguments.detailed_exitcode { Exit::Changes } else { Exit::Done })
}

/// Plans the spec; an exit code where there is no plan to simulate.
pub(super) fn planned(
    file: &str,
    question: &Question,
    who: &arguments::Who,
    format: Format,
    terminal: &Terminal,
) -> Result<Result<(Plan, Traces), Exit>, Stop> {
    crate::interrupt::listen();
    let published = &who.published;
    let who = Who::asked(who)?;
    let mut compiled = asked(file, question)?;
    let given = Given::read(published, compiled.latency_rule(), &[who])?;
    let performance = performance(&mut compiled, question.table.as_deref())?;
    let time_limit = question.time_limit.as_secs_f64();
    let limits = Limits { gap: 0.0, time_limit, node_limit: None };
    let made = make(who, &given, &mut compiled, &performance, &limits, terminal)?;
    tell(terminal, &compiled.sources, &made.diagnostics);
    if made.is_interrupted {
        return Ok(Err(Exit::Interrupted));
    }
    if !has_boards(made.plan.status) {
        terminal.message(&render::plan::status(&made.plan, Some(made.seconds), &canvas_err(terminal)));
        if format == Format::Json {
            let shown = json::diagnostics(&compiled.sources, &made.diagnostics);
            terminal.result(&json::Report::new(shown).text())?;
        }
        return Ok(Err(Exit::Wrong));
    }
    Ok(Ok((made.plan, compiled.traces)))
}

/// Reads the recorded arrivals that the command line names: `FILE` for every service, `SERVICE=FILE` for one.
fn recorded(words: &[String], plan: &Plan, traces: &mut Traces, terminal: &Terminal) -> Result<(), Stop> {
    for word in words {
        let is_service = |name: &str| plan.services.iter().any(|s| s.name == name.trim());
        let (names, file) = match word.split_once('=') {
            Some((name, file)) if is_service(name) => (vec![name.trim().to_owned()], file),
            Some((name, _)) if !std::path::Path::new(word).exists() => {
                let known: Vec<&str> = plan.services.iter().map(|s| s.name.as_str()).collect();
                return Err(Stop::Refused {
                    code: "unknown-name",
                    message: format!("the plan has no service `{}`", name.trim()),
                    help: Some(format!("use one of: {}", known.join(", "))),
                });
            }
            _ => (plan.services.iter().map(|s| s.name.clone()).collect(), word.as_str()),
        };
        let text = crate::load::text(file)?;
        let mut sources = Sources::default();
        let id = sources.add(file, text.as_str());
        let outcome = ent_performance::import::trace(&text, id);
        if outcome.has_errors() {
            return Err(Stop::Diagnostics { sources, diagnostics: outcome.diagnostics });
        }
        tell(terminal, &sources, &outcome.diagnostics);
        for name in names {
            traces.insert(name, outcome.value.gaps.clone());
        }
    }
    Ok(())
}

/// What `entc simulate --format json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Simulation<'a> {
    /// Version of this format.
    format_version: &'static str,
    /// The spec's file.
    program: &'a str,
    /// Who made the plan.
    planner: &'a str,
    /// Which latency its promises are about.
    latency_rule: LatencyRule,
    /// Mean power that the plan predicts (W); `null` without power data.
    predicted_mean_power_w: Option<f64>,
    /// Whether every promise holds.
    is_kept: bool,
    /// What happened.
    #[serde(flatten)]
    replay: &'a Replay,
}

fn report<'a>(plan: &'a Plan, replay: &'a Replay) -> Simulation<'a> {
    Simulation {
        format_version: FORMAT_VERSION,
        program: &plan.program,
        planner: &plan.planner,
        latency_rule: plan.latency_rule,
        predicted_mean_power_w: plan.gpus.iter().map(|g| g.mean_power_w).sum(),
        is_kept: replay.services.iter().all(|s| s.is_kept),
        replay,
    }
}
