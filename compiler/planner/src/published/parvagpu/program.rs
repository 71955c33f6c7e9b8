//! Program → ParvaGPU's input, and its decision → plan.

use super::{Decision, Fate, Input, MAX_BOARDS, MAX_PROCESSES, Point, Service, decide};
use crate::assemble::{BoardChoice, InstanceChoice};
use crate::published::site::{Known, Site, SplitBy, limitation, no_plan, pins_ignored};
use crate::published::{Mode, Request};
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Diagnostic, Outcome};
use ent_plan::plan::{Plan, Sharing};
use ent_plan::units::Megahertz;

/// The planner's name.
pub const NAME: &str = "parvagpu";

/// Plans like ParvaGPU, at the highest clock.
///
/// [`Mode::Conformant`]: its own latency rule, and its labels as starts, legal or not.
/// [`Mode::Native`]: an operating point is worth the rate at which entc's promise holds, and boards are
/// laid out as MIG allows where it does.
///
/// Errors: [`ent_plan::diagnostic::Code::PlannerLimitation`] when there are no boards it knows. Warnings
/// of the same kind for what it does not look at and for what its plan misses.
#[must_use]
pub fn plan(program: &Program, performance: &PerformanceSet, request: Request) -> Outcome<Plan> {
    let mut diagnostics = Vec::new();
    let site = Site::of(program, performance, NAME, request, &mut diagnostics);
    let Some(site) = site else { return no_plan(program, performance, NAME, request, diagnostics) };
    diagnostics.extend(pins_ignored(program, NAME));
    let Some(clock) = site.highest_clock() else { return site.plan(&[], diagnostics) };
    let order = alphabetical(program);
    let services = order.iter().map(|s| service(program, &site, *s, clock, request.mode)).collect();
    let max_boards = site.count().min(MAX_BOARDS);
    let decision = decide(&Input { services, max_processes: MAX_PROCESSES, max_boards }, request.mode);
    diagnostics.extend(fates(program, &order, &decision));
    let mut boards = boards(&site, &order, &decision, clock);
    if request.mode == Mode::Native {
        boards.iter_mut().for_each(|b| site.lay_out(b));
    }
    let by = match request.mode {
        Mode::Conformant => SplitBy::Capacity,
        Mode::Native => SplitBy::Promise,
    };
    site.split(&mut boards, by);
    site.plan(&boards, diagnostics)
}

/// The order in which the original serves models: that of their profiles' file names.
fn alphabetical(program: &Program) -> Vec<usize> {
    let mut order: Vec<usize> = (0..program.services.len()).collect();
    order.sort_by_key(|s| {
        let service = &program.services[*s];
        (program.models[service.model.value].name.value.as_str(), service.name.value.as_str())
    });
    order
}

fn service(program: &Program, site: &Site<'_>, index: usize, clock: Megahertz, mode: Mode) -> Service {
    let asked = &program.services[index];
    let point = |known: Known| {
        let rate = match mode {
            Mode::Conformant => known.prediction.capacity(known.key.processes),
            Mode::Native => site.admissible(index, &known),
        };
        Point {
            slices: known.slices,
            batch: known.key.batch,
            processes: known.key.processes,
            throughput: rate / f64::from(known.key.processes),
            latency: known.prediction.latency_p99.get(),
        }
    };
    Service {
        name: asked.name.value.clone(),
        rate: asked.rate.value.get(),
        bound: asked.slo.value.bound.get() * 1e3,
        points: site.known(index, |key| key.clock == clock).into_iter().map(point).collect(),
    }
}

fn boards(site: &Site<'_>, order: &[usize], decision: &Decision, clock: Megahertz) -> Vec<BoardChoice> {
    let seats = site.seats(decision.boards.len());
    let instance = |segment: &super::Segment| {
        Some(InstanceChoice {
            service: order[segment.service],
            profile: site.profile(segment.choice.slices)?,
            start: segment.label,
            mps_percent: None,
            processes: segment.choice.processes,
            batch: segment.choice.batch,
            rate: 0.0,
            prediction: None,
        })
    };
    let board = |(node, segments): (usize, &Vec<super::Segment>)| BoardChoice {
        node,
        sharing: Sharing::Mig,
        clock,
        instances: segments.iter().filter_map(instance).collect(),
    };
    seats.into_iter().zip(&decision.boards).map(board).collect()
}

/// What happened to services on the way, beyond what the plan itself shows.
fn fates(program: &Program, order: &[usize], decision: &Decision) -> Vec<Diagnostic> {
    let said = |(index, fate): &(usize, Fate)| {
        let asked = &program.services[order[*index]];
        let name = &asked.name.value;
        let warn = |span, what: &str, label: String| Some(limitation(NAME, span, what).label(label));
        match fate {
            Fate::Inactive => warn(
                asked.rate.span,
                "reads rates and latencies as whole numbers",
                format!("the rate or the promise of `{name}` becomes 0"),
            ),
            Fate::Dropped => warn(
                asked.slo.span,
                "finds no operating point that is fast enough",
                format!("the original leaves `{name}` out and says nothing"),
            ),
            Fate::Crash { slices } => warn(
                asked.slo.span,
                "crashes here in the original",
                format!("`{name}` has no {slices}-slice point that is fast enough; decided without"),
            ),
            Fate::Lost { throughput } => warn(
                asked.rate.span,
                "gives up a segment that it cannot split",
                format!("`{name}` loses {throughput:.1} req/s: it has no point with one or two slices"),
            ),
            Fate::Unlabelled => warn(
                asked.name.span,
                "finds no label for a segment",
                format!("the original writes outside of its table for `{name}`"),
            ),
            Fate::OutOfBoards { throughput } => warn(
                asked.rate.span,
                "needs more boards than there are",
                format!("{throughput:.1} req/s of segments for `{name}` find no board"),
            ),
        }
    };
    decision.fates.iter().filter_map(said).collect()
}
