//! `entc compare`: spec → a plan of every planner at every load, judged under one set of definitions.
//!
//! Metrics are those of the plan format, promises are judged by the verifier and by simulation, and nobody's
//! plan is mended. A planner that cannot plan the spec says so, and the others go on.

use super::canvas_out;
use super::plan::{Limits, make};
use super::planners::{Given, Who};
use super::program::{Compiled, asked, performance};
use super::replay::replay;
use crate::arguments::{Compare, CompareFormat};
use crate::exit::{Exit, Stop};
use crate::render::comparison::{self as drawn, page, picture, records};
use crate::render::json;
use crate::terminal::{Terminal, Verbosity};
use crate::write;
use ent_plan::plan::FORMAT_VERSION;

mod judged;

pub(crate) use judged::{AtLoad, Comparison, Judged};

/// The planner whose plans the others are measured by.
pub(crate) const MEASURE: &str = "optimal";

/// The param that loads are values of.
const LOAD: &str = "load";

/// Compares and reports.
pub(super) fn run(arguments: &Compare, terminal: &Terminal) -> Result<Exit, Stop> {
    let planners = planners(&arguments.planners)?;
    crate::interrupt::listen();
    let mut spec = asked(&arguments.file, &arguments.question)?;
    let loads = loads(arguments, &spec)?;
    // Whatever is wrong with the performance data is said once, before anything is planned.
    performance(&mut spec, arguments.question.table.as_deref())?;
    super::tell(terminal, &spec.sources, &spec.diagnostics);
    let metric = spec.program.objective.minimize.value;
    let mut comparison = Comparison {
        format_version: FORMAT_VERSION,
        entc_version: env!("CARGO_PKG_VERSION"),
        program: spec.program.name.clone(),
        metric,
        latency_rule: spec.latency_rule(),
        table: arguments.question.table.clone(),
        is_conformant: arguments.published.conformant,
        seed: arguments.runs.seed,
        seeds: arguments.runs.seeds,
        requests: arguments.runs.requests,
        duration_s: arguments.runs.duration.map(|d| d.as_secs_f64()),
        loads: Vec::new(),
    };
    let n_all = loads.len() * planners.len();
    let mut n_done = 0;
    for load in &loads {
        let mut at = AtLoad { load: load.value, plans: Vec::new() };
        for who in &planners {
            n_done += 1;
            if terminal.verbosity > Verbosity::Quiet
                && (terminal.is_interactive() || terminal.verbosity == Verbosity::Verbose)
            {
                let load = load.value.map_or_else(String::new, |l| format!(" at {:.0} %", l * 100.0));
                terminal.message(&format!("{n_done} of {n_all}: {}{load}\n", who.name()));
            }
            let mut compiled = at_load(arguments, load)?;
            at.plans.push(judge(*who, &planners, arguments, &mut compiled, terminal)?);
            if crate::interrupt::is_interrupted() {
                return Ok(Exit::Interrupted);
            }
        }
        at.measure();
        comparison.loads.push(at);
    }
    if let Some(path) = &arguments.svg {
        write::atomically(path, &picture::svg(&comparison)?)?;
    }
    if let Some(path) = &arguments.html {
        write::atomically(path, &page::html(&comparison)?)?;
    }
    let text = match arguments.format {
        CompareFormat::Human => drawn::comparison(&comparison, &canvas_out(terminal, false, false)),
        CompareFormat::Json => json::text(&serde_json::json!(comparison)),
        CompareFormat::Csv => records::csv(&comparison)?,
        CompareFormat::Markdown => records::markdown(&comparison),
    };
    terminal.result(&text)?;
    Ok(Exit::Done)
}

/// The planners asked for, each once; all when none is.
fn planners(words: &[String]) -> Result<Vec<Who>, Stop> {
    let mut asked: Vec<Who> = Vec::new();
    for word in words.iter().filter(|word| !word.trim().is_empty()) {
        let who = Who::named(word)?;
        if !asked.iter().any(|known| known.name() == who.name()) {
            asked.push(who);
        }
    }
    Ok(if asked.is_empty() { Who::all() } else { asked })
}

/// A load to compare at.
struct Load {
    /// As a fraction; `None` is the spec as it is.
    value: Option<f64>,
    /// `load=50%`, where the spec has such a param.
    setting: Option<(String, String)>,
}

/// The loads asked for.
fn loads(arguments: &Compare, spec: &Compiled) -> Result<Vec<Load>, Stop> {
    if arguments.loads.is_empty() {
        return Ok(vec![Load { value: None, setting: None }]);
    }
    if arguments.question.settings.iter().any(|(name, _)| name == LOAD) {
        return Err(Stop::Refused {
            code: "usage",
            message: "the load is given twice".to_owned(),
            help: Some("give it with `--loads` or with `--set load=…`, not both".to_owned()),
        });
    }
    let has_param = spec.program.params.contains_key(LOAD);
    let load = |(text, value): &(String, f64)| Load {
        value: Some(*value),
        setting: has_param.then(|| (LOAD.to_owned(), text.clone())),
    };
    Ok(arguments.loads.iter().map(load).collect())
}

/// The spec at a load: its own param set, or else all rates multiplied.
fn at_load(arguments: &Compare, load: &Load) -> Result<Compiled, Stop> {
    let options = ent_lang::Options {
        set: arguments.question.settings.iter().cloned().chain(load.setting.clone()).collect(),
        minimize: arguments.question.minimize,
        latency_rule: arguments.question.latency_rule,
    };
    let mut compiled = super::program::compile(&arguments.file, &options)?;
    if let (Some(factor), None) = (load.value, &load.setting) {
        for service in &mut compiled.program.services {
            service.rate.value.0 *= factor;
        }
    }
    Ok(compiled)
}

/// Plans with one planner and judges the plan.
fn judge(
    who: Who,
    planners: &[Who],
    arguments: &Compare,
    compiled: &mut Compiled,
    terminal: &Terminal,
) -> Result<Judged, Stop> {
    let given = Given::read(&arguments.published, compiled.latency_rule(), planners)?;
    let performance = performance(compiled, arguments.question.table.as_deref())?;
    // Said before, once for all planners.
    compiled.diagnostics.clear();
    let limits = Limits {
        gap: arguments.gap.unwrap_or(0.0),
        time_limit: arguments.question.time_limit.as_secs_f64(),
        node_limit: None,
    };
    let made = make(who, &given, compiled, &performance, &limits, terminal)?;
    crate::bug::processing("simulation");
    let replay = (!made.plan.gpus.is_empty()).then(|| replay(&made.plan, &arguments.runs, &compiled.traces));
    let said = json::diagnostics(&compiled.sources, &made.diagnostics);
    Ok(Judged::new(&made.plan, &made.faults, replay.as_ref(), said, made.seconds))
}
