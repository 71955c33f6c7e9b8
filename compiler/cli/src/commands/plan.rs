//! `entc plan`: spec → plan, shown and saved.

use super::pictures::{self, More};
use super::planners::{Given, Original, Who, faults};
use super::program::{Compiled, asked, performance};
use super::{canvas_err, canvas_out, tell};
use crate::arguments::{Emit, Format, Plan as Arguments};
use crate::exit::{Exit, Stop};
use crate::progress::{Display, Moment};
use crate::render::{self, json};
use crate::terminal::{Terminal, Verbosity};
use crate::{interrupt, report, write};
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Code, Diagnostic, Severity, Sources};
use ent_plan::plan::{Fault, LatencyRule, Metric, Note, Plan, Status, check, seal};
use ent_planner::{Control, PlanOptions, Planner, Progress, SolverFault};
use std::ops::ControlFlow;
use std::time::{Instant, SystemTime};

mod form;
mod service;
mod site;

pub(super) use service::{GAP, alternatives, explain_service};
pub(super) use site::Site;

/// Plans, shows and saves.
pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.emit == Some(Emit::Ast) {
        return form::ast(&arguments.file, terminal);
    }
    interrupt::listen();
    let who = Who::asked(&arguments.who)?;
    let mut compiled = asked(&arguments.file, &arguments.question)?;
    if arguments.emit == Some(Emit::Program) {
        return form::program(&compiled, terminal);
    }
    let given = Given::read(&arguments.who.published, compiled.latency_rule(), &[who])?;
    let results = [&arguments.output, &arguments.pictures.svg, &arguments.pictures.html];
    write::apart(&arguments.file, results.into_iter().flatten())?;
    if let Some(path) = &arguments.output {
        write::possible(path)?;
    }
    pictures::possible(&arguments.pictures)?;
    if (arguments.fronts || arguments.alternatives) && !matches!(who, Who::Own(Planner::Optimal)) {
        return Err(Stop::Refused {
            code: "usage",
            message: "`--fronts` and `--alternatives` are about plans of the planner `optimal`".to_owned(),
            help: Some("leave them out, or plan with `--planner optimal`".to_owned()),
        });
    }
    let site = match arguments.library.nvml {
        Some(_) => Some(Site::of(&compiled, &arguments.library, arguments.node.node.as_deref(), true)?),
        None => None,
    };
    let performance = performance(&mut compiled, arguments.question.table.as_deref())?;
    let limits = Limits {
        gap: arguments.gap.unwrap_or(0.0),
        time_limit: arguments.question.time_limit.as_secs_f64(),
        node_limit: arguments.node_limit,
    };
    if let Some(form @ (Emit::Problem | Emit::Lp | Emit::Solution)) = arguments.emit {
        let Who::Own(planner) = who else {
            return Err(Stop::Refused {
                code: "usage",
                message: format!("`{}` has no such form on the way to its plan", who.name()),
                help: Some("use `--planner optimal`, or `--emit plan`".to_owned()),
            });
        };
        let wishes = limits.wishes(planner, compiled.latency_rule());
        return form::problem(&mut compiled, &performance, &wishes, form, terminal);
    }
    let planned_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let mut made = make(who, &given, &mut compiled, &performance, &limits, terminal)?;
    if let Some(site) = &site {
        site.write_into(&mut made.plan);
    }
    seal(&mut made.plan);
    let plan = &made.plan;
    if arguments.pictures.html.is_some() || arguments.pictures.svg.is_some() {
        let is_whole = !made.is_interrupted;
        let more =
            More { fronts: arguments.fronts && is_whole, alternatives: arguments.alternatives && is_whole };
        let wishes = limits.wishes(Planner::Optimal, compiled.latency_rule());
        let findings = pictures::findings(plan, &mut compiled, &performance, &wishes, more, terminal)?;
        pictures::write(&arguments.pictures, plan, &findings, terminal)?;
    }
    finish(arguments, &made, &planned_at, &compiled.sources, terminal)
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Proven this close to the best is close enough.
    pub(super) gap: f64,
    /// Seconds.
    pub(super) time_limit: f64,
    /// Nodes of the search tree.
    pub(super) node_limit: Option<u32>,
}

impl Limits {
    fn wishes(self, planner: Planner, rule: LatencyRule) -> Wishes {
        let Self { gap, time_limit, node_limit } = self;
        Wishes { options: PlanOptions { planner, metric: None, rule }, gap, time_limit, node_limit }
    }
}

/// Plans with whoever is asked.
pub(super) fn make(
    who: Who,
    given: &Given,
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    limits: &Limits,
    terminal: &Terminal,
) -> Result<Made, Stop> {
    match who {
        Who::Own(planner) => {
            let wishes = limits.wishes(planner, compiled.latency_rule());
            solve(compiled, performance, &wishes, terminal)
        }
        Who::Published(original) => Ok(by_original(original, given, compiled, performance)),
    }
}

/// A published planner's plan, judged and not mended: where it does not hold, that is said.
fn by_original(
    original: &Original,
    given: &Given,
    compiled: &mut Compiled,
    performance: &PerformanceSet,
) -> Made {
    crate::bug::processing("plan");
    let started = Instant::now();
    let (outcome, shared) = original.plan(&compiled.program, performance, given);
    let seconds = started.elapsed().as_secs_f64();
    let mut plan = outcome.value;
    let mut diagnostics = std::mem::take(&mut compiled.diagnostics);
    diagnostics.extend(outcome.diagnostics);
    if plan.gpus.is_empty() {
        // Whatever the planner calls it, nothing that carries nothing is a plan.
        plan.status = Status::Unknown;
        plan.objective.value = None;
        plan.objective.gap = None;
    }
    let faults = faults(shared.as_ref().unwrap_or(&compiled.program), performance, &plan);
    if let Some(first) = faults.first() {
        let span = compiled.program.objective.minimize.span;
        diagnostics.push(
            Diagnostic::error(
                Code::PlanCheckFailed,
                span,
                format!("the plan of `{}` does not hold", original.name),
            )
            .label(format!("{} faults; the first: {}: {}", faults.len(), first.place, first.message))
            .help("plan with `--planner optimal`; a plan that does not hold is not written"),
        );
    }
    plan.assumptions.extend(compiled.assumptions.iter().cloned());
    plan.diagnostics = diagnostics.iter().map(|diagnostic| note(&compiled.sources, diagnostic)).collect();
    Made { plan, diagnostics, faults, seconds, is_interrupted: interrupt::is_interrupted() }
}

/// A plan, what was said about it, and how long it took.
pub(super) struct Made {
    /// The plan, checked.
    pub(super) plan: Plan,
    /// Everything said, from the spec's text to the plan.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// In what the plan does not hold: nothing, for entc's own planners.
    pub(super) faults: Vec<Fault>,
    /// Seconds of planning.
    pub(super) seconds: f64,
    /// Whether the user stopped it.
    pub(super) is_interrupted: bool,
}

/// What the planner is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    /// What to plan for.
    pub(super) options: PlanOptions,
    /// Proven this close to the best is close enough.
    pub(super) gap: f64,
    /// Seconds.
    pub(super) time_limit: f64,
    /// Nodes of the search tree.
    pub(super) node_limit: Option<u32>,
}

/// Plans, with the display running, and checks what comes out.
pub(super) fn solve(
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    wishes: &Wishes,
    terminal: &Terminal,
) -> Result<Made, Stop> {
    let metric = wishes.options.metric.unwrap_or(compiled.program.objective.minimize.value);
    let (outcome, seconds) = under_control(wishes, metric, terminal, |control| {
        ent_planner::plan(&compiled.program, performance, wishes.options, control)
    });
    crate::bug::processing("plan");
    let mut plan = outcome.value;
    let mut diagnostics = std::mem::take(&mut compiled.diagnostics);
    diagnostics.extend(outcome.diagnostics);
    plan.assumptions.extend(compiled.assumptions.iter().cloned());
    plan.diagnostics = diagnostics.iter().map(|diagnostic| note(&compiled.sources, diagnostic)).collect();
    if has_boards(plan.status) {
        plan = checked(plan);
        verified(&compiled.program, performance, &plan);
    }
    Ok(Made { plan, diagnostics, faults: Vec::new(), seconds, is_interrupted: interrupt::is_interrupted() })
}

/// Runs a search with the clock, the display and Ctrl-C; gives its answer and how long it took. A solver
/// that fails is a bug, never the user's fault.
#[expect(clippy::panic, reason = "a bug is a panic: code 101, with what is needed to report it")]
pub(super) fn under_control<T>(
    wishes: &Wishes,
    metric: Metric,
    terminal: &Terminal,
    search: impl FnOnce(&mut Control<'_>) -> Result<T, SolverFault>,
) -> (T, f64) {
    crate::bug::processing("problem");
    let started = Instant::now();
    let mut display = Display::start(terminal, metric, started);
    let mut progress = |progress: Progress| {
        display.show(&Moment { phase: progress.phase, incumbent: progress.incumbent, bound: progress.bound });
        if progress.incumbent.is_some() {
            interrupt::has_incumbent();
        }
        if interrupt::is_interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut control = Control {
        gap: wishes.gap,
        time_limit: Some(wishes.time_limit),
        node_limit: wishes.node_limit,
        elapsed: &|| started.elapsed().as_secs_f64(),
        progress: &mut progress,
        is_stopped: false,
    };
    let answer = search(&mut control);
    display.finish();
    match answer {
        Ok(answer) => (answer, started.elapsed().as_secs_f64()),
        Err(fault) => panic!("the solver failed: {fault}"),
    }
}

/// Every number a user sees comes from the check. A plan of our own that fails it is a bug of ours.
#[expect(clippy::panic, reason = "a bug is a panic: code 101, with what is needed to report it")]
fn checked(plan: Plan) -> Plan {
    match check(plan) {
        Ok(checked) => checked.into_plan(),
        Err(faults) => {
            let faults: Vec<String> =
                faults.iter().map(|fault| format!("{}: {}", fault.place, fault.message)).collect();
            panic!("the plan fails its check: {}", faults.join("; "))
        }
    }
}

/// Recomputes every promise and prediction from the spec and the performance data.
/// A plan of our own that fails is a bug of ours: a panic, code 101.
fn verified(program: &Program, performance: &PerformanceSet, plan: &Plan) {
    let faults: Vec<String> = ent_performance::verify::verify(program, performance, plan)
        .iter()
        .map(|fault| format!("{}: {}", fault.place, fault.message))
        .collect();
    assert!(faults.is_empty(), "the plan fails its verification: {}", faults.join("; "));
}

/// Shows, saves, and says how it went.
fn finish(
    arguments: &Arguments,
    made: &Made,
    planned_at: &str,
    sources: &Sources,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let plan = &made.plan;
    // A published planner's plan that does not hold is shown all the same.
    let is_drawn = has_boards(plan.status) && !plan.gpus.is_empty();
    let is_wrong = !has_boards(plan.status) || made.diagnostics.iter().any(|d| d.severity == Severity::Error);
    let file = report::plan_file(plan)?;
    let mut is_changed = true;
    if let (Some(path), false, false) = (&arguments.output, is_wrong, made.is_interrupted) {
        // Only a regular file holds a plan: a device may never end.
        is_changed = !path.is_file() || std::fs::read_to_string(path).map_or(true, |before| before != file);
        write::atomically(path, &file)?;
        if terminal.verbosity > Verbosity::Quiet {
            terminal.message(&format!("wrote {}\n", path.display()));
        }
    }
    if arguments.emit == Some(Emit::Plan) {
        terminal.result(&file)?;
    } else if arguments.format == Format::Json {
        let shown = json::diagnostics(sources, &made.diagnostics);
        terminal.result(&json::text(&report::run_report(plan, made.seconds, planned_at, &shown)))?;
    } else if !is_wrong || is_drawn {
        let canvas = canvas_out(terminal, arguments.explain, arguments.summary);
        terminal.result(&render::plan::plan(plan, Some(made.seconds), &canvas))?;
    }
    if is_wrong && is_drawn {
        let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
        tell(terminal, sources, &made.diagnostics.iter().filter(is_error).cloned().collect::<Vec<_>>());
    } else if is_wrong {
        terminal.message(&render::plan::status(plan, Some(made.seconds), &canvas_err(terminal)));
        tell(terminal, sources, &made.diagnostics);
    }
    Ok(match (made.is_interrupted, is_wrong) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Wrong,
        (false, false) if arguments.detailed_exitcode && is_changed => Exit::Changes,
        (false, false) => Exit::Done,
    })
}

pub(super) fn has_boards(status: Status) -> bool {
    matches!(status, Status::Optimal | Status::WithinGap | Status::Feasible)
}

/// A diagnostic as it travels with the plan.
fn note(sources: &Sources, diagnostic: &Diagnostic) -> Note {
    Note {
        severity: json::severity(diagnostic.severity).to_owned(),
        code: diagnostic.code.word().to_owned(),
        message: diagnostic.message.clone(),
        location: Some(render::diagnostic::location(sources, &diagnostic.primary)),
        help: diagnostic.help.clone(),
    }
}
