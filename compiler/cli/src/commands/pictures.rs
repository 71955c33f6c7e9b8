//! A plan and what its models know → a page and a picture, written to files.

use super::explore::search::{Search, Wanted};
use super::plan::{GAP, Wishes, alternatives};
use super::program::Compiled;
use crate::arguments::Pictures;
use crate::exit::Stop;
use crate::terminal::{Terminal, Verbosity};
use crate::{interrupt, write};
use ent_performance::operate::{Promise, admissible};
use ent_performance::{PerformanceSet, PointKey, ShareKey};
use ent_picture::{Alternatives, Axis, Curve, CurvePoint, DrawError, Findings, Front, plan_page, plan_svg};
use ent_plan::device::Board;
use ent_plan::plan::{Gpu, Instance, Metric, Plan, Sharing};
use ent_plan::units::Megahertz;
use std::collections::BTreeSet;
use std::time::Instant;

/// What takes plans of its own to find, and is looked for only when it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct More {
    /// The objective against boards and latency.
    pub(super) fronts: bool,
    /// What else each service could have had.
    pub(super) alternatives: bool,
}

/// Times the time limit that fronts, and alternatives, may take.
const PATIENCE: f64 = 4.0;

/// Points of a front on the page of a plan.
const POINTS: usize = 6;

/// Points of a front need not be told apart more finely.
const FRONT_GAP: f64 = 1e-3;

/// Tightest and loosest promises on the page of a plan.
const SLACK: (f64, f64) = (0.5, 2.0);

/// Refuses files that could not be written, before there is work to be kept in them.
///
/// # Errors
/// As [`write::possible`].
pub(super) fn possible(pictures: &Pictures) -> Result<(), Stop> {
    [&pictures.svg, &pictures.html].into_iter().flatten().try_for_each(|path| write::possible(path))
}

/// Writes the pictures of a plan that are asked for.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write(
    pictures: &Pictures,
    plan: &Plan,
    findings: &Findings,
    terminal: &Terminal,
) -> Result<(), Stop> {
    if let Some(path) = &pictures.svg {
        write::atomically(path, &plan_svg(plan))?;
        say(path, terminal);
    }
    if let Some(path) = &pictures.html {
        write::atomically(path, &plan_page(plan, findings).map_err(undrawn)?)?;
        say(path, terminal);
    }
    Ok(())
}

/// Says which file was written.
pub(super) fn say(path: &std::path::Path, terminal: &Terminal) {
    if terminal.verbosity > Verbosity::Quiet {
        terminal.message(&format!("wrote {}\n", path.display()));
    }
}

/// The drawing library's faults.
pub(super) fn undrawn(error: DrawError) -> Stop {
    Stop::refused("cannot-write", error.to_string())
}

/// Everything that a page can show beside the plan, as far as it is asked for.
///
/// # Errors
/// When planning fails.
pub(super) fn findings(
    plan: &Plan,
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    wishes: &Wishes,
    more: More,
    terminal: &Terminal,
) -> Result<Findings, Stop> {
    crate::bug::processing("picture");
    let mut findings = Findings { curves: Some(curves(plan, compiled, performance)), ..Findings::default() };
    if plan.gpus.is_empty() {
        return Ok(findings);
    }
    let wishes = Wishes { gap: wishes.gap.max(GAP), ..*wishes };
    if more.alternatives {
        findings.alternatives = Some(all_alternatives(plan, compiled, performance, &wishes, terminal)?);
    }
    if more.fronts {
        findings.fronts = Some(fronts(plan, compiled, performance, &wishes, terminal)?);
    }
    Ok(findings)
}

/// What else each service could have had; the time is shared out evenly among the services.
fn all_alternatives(
    plan: &Plan,
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    wishes: &Wishes,
    terminal: &Terminal,
) -> Result<Vec<Alternatives>, Stop> {
    let started = Instant::now();
    let names: Vec<String> = compiled.program.services.iter().map(|s| s.name.value.clone()).collect();
    let mut all = Vec::new();
    for (index, service) in names.iter().enumerate() {
        step(terminal, &format!("alternatives: service {} of {}, {service}", index + 1, names.len()));
        let left = PATIENCE * wishes.time_limit - started.elapsed().as_secs_f64();
        let budget = left / (names.len() - index) as f64;
        let choices = alternatives(compiled, performance, wishes, plan, index, budget, terminal)?;
        all.push(Alternatives { service: service.clone(), choices });
    }
    Ok(all)
}

/// Says what is being done, where somebody waits and sees it.
pub(super) fn step(terminal: &Terminal, words: &str) {
    let is_wanted = terminal.verbosity == Verbosity::Verbose
        || (terminal.verbosity > Verbosity::Quiet && terminal.is_interactive());
    if is_wanted {
        terminal.message(&format!("{words}\n"));
    }
}

/// The objective against boards, and against latency.
fn fronts(
    plan: &Plan,
    compiled: &mut Compiled,
    performance: &PerformanceSet,
    wishes: &Wishes,
    terminal: &Terminal,
) -> Result<Vec<Front>, Stop> {
    let metric = plan.objective.metric;
    // Fewest boards against boards would be one point; watts are what more boards buy.
    let against_boards = if metric == Metric::Gpus { Metric::Energy } else { metric };
    let wanted = [
        (against_boards, Axis::Metric(Metric::Gpus), (metric != Metric::Gpus).then_some(plan)),
        (metric, Axis::LatencySlack, Some(plan)),
    ];
    let mut fronts = Vec::new();
    for (minimized, limited, known) in wanted {
        if interrupt::is_interrupted() {
            break;
        }
        let total_s = PATIENCE / 2.0 * wishes.time_limit;
        let wanted = Wanted { minimized, limited, n_points: POINTS, slack: SLACK };
        let mut search = Search {
            compiled,
            performance,
            wishes: Wishes {
                gap: wishes.gap.max(FRONT_GAP),
                time_limit: total_s / (POINTS + 1) as f64,
                ..*wishes
            },
            total_s,
            terminal,
        };
        fronts.push(search.run(&wanted, known)?.front(&wanted, Some(plan)));
    }
    Ok(fronts)
}

/// Dynamic power over the clock of every operating point of a plan, each once, in the plan's order.
fn curves(plan: &Plan, compiled: &Compiled, performance: &PerformanceSet) -> Vec<Curve> {
    let mut seen = BTreeSet::new();
    let mut curves = Vec::new();
    for gpu in &plan.gpus {
        for instance in &gpu.instances {
            let key = (
                instance.service.as_str(),
                gpu.board.as_str(),
                gpu.sm_clock_mhz,
                (&instance.profile, instance.mps_percent),
                (instance.batch, instance.processes),
            );
            if seen.insert(key) {
                curves.extend(curve(gpu, instance, plan, compiled, performance));
            }
        }
    }
    let place = |curve: &Curve| plan.services.iter().position(|s| s.name == curve.service);
    curves.sort_by_key(place);
    curves
}

/// One curve; `None` where its models have no power or do not know the point.
fn curve(
    gpu: &Gpu,
    instance: &Instance,
    plan: &Plan,
    compiled: &Compiled,
    performance: &PerformanceSet,
) -> Option<Curve> {
    let program = &compiled.program;
    let service = program.services.iter().find(|s| s.name.value == instance.service)?;
    let board_index = program.boards.iter().position(|board| board.id == gpu.board)?;
    let board = program.boards.get(board_index)?;
    let known = performance.get(service.model.value, board_index)?;
    let promise = Promise {
        rule: plan.latency_rule,
        arrivals: &service.arrivals.value,
        percentile: service.slo.value.percentile,
        bound: service.slo.value.bound.get(),
    };
    let (batch, processes) = (instance.batch, instance.processes);
    let mut band = 0.0;
    let points = clocks(board, gpu.sm_clock_mhz).into_iter().filter_map(|clock| {
        let prediction = match instance.mps_percent {
            Some(percent) => known.predict_share(board, ShareKey { percent, processes, batch, clock }),
            None => {
                let profile = profile(board, gpu.sharing, instance)?;
                known.predict(board, PointKey { profile, processes, batch, clock })
            }
        }?;
        let dynamic_power_w = prediction.dynamic_power.last()?.get();
        let capacity = prediction.capacity(processes);
        if clock == gpu.sm_clock_mhz {
            band = prediction.power_error;
        }
        Some(CurvePoint {
            clock,
            dynamic_power_w,
            joules_per_request: if capacity > 0.0 { dynamic_power_w / capacity } else { 0.0 },
            is_kept: admissible(&prediction, processes, promise) >= instance.rate_rps * (1.0 - 1e-9),
        })
    });
    let points: Vec<CurvePoint> = points.collect();
    if points.is_empty() {
        return None;
    }
    let share = match (&instance.profile, instance.mps_percent) {
        (Some(profile), _) => profile.clone(),
        (None, Some(percent)) => format!("{percent} % of the threads"),
        (None, None) => "whole board".to_owned(),
    };
    let times = if processes > 1 { format!(", {processes} processes") } else { String::new() };
    Some(Curve {
        service: instance.service.clone(),
        point: format!("{share}, batch {batch}{times}"),
        points,
        chosen: gpu.sm_clock_mhz,
        power_error: band,
        source: instance.source.clone(),
    })
}

/// The clocks that a planner could choose: those with a known base power, and the one that was chosen.
fn clocks(board: &Board, chosen: Megahertz) -> BTreeSet<Megahertz> {
    let known = board.base_power.iter().flat_map(|base| base.points.iter().map(|(clock, _)| *clock));
    known.chain([chosen]).collect()
}

/// The profile of an instance; a whole board performs as its largest.
fn profile(board: &Board, sharing: Sharing, instance: &Instance) -> Option<usize> {
    match (sharing, &instance.profile) {
        (Sharing::Mig, Some(name)) => board.profiles.iter().position(|p| p.name == *name),
        (Sharing::Whole, None) => board
            .profiles
            .iter()
            .enumerate()
            .filter(|(_, profile)| profile.is_base)
            .max_by_key(|(_, profile)| profile.n_memory_slices)
            .map(|(index, _)| index),
        _ => None,
    }
}
