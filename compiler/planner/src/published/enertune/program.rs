//! Program → EnerTune's input, and its decision → plan.

use super::{ClockPower, Decision, Estimator, Input, MAX_WORK, PUBLISHED, Row, Service, decide};
use crate::assemble::{BoardChoice, InstanceChoice};
use crate::published::site::{Known, Site, SplitBy, limitation, no_plan, pins_ignored};
use crate::published::{Mode, Request};
use ent_lang::Program;
use ent_performance::{PerformanceSet, PointKey};
use ent_plan::diagnostic::{Diagnostic, Outcome};
use ent_plan::plan::{Metric, Plan, Sharing};
use ent_plan::units::Megahertz;

/// The planner's name.
pub const NAME: &str = "enertune";

/// The board that the original's power table is of.
const PUBLISHED_BOARD: &str = "a100-80gb-pcie";

/// Plans like EnerTune's own planner, with no more boards than there are.
///
/// [`Mode::Conformant`]: its power table and its latency rule, a full batch's time within the promise.
/// [`Mode::Native`]: the board's own base power, and an operating point is worth the rate at which
/// entc's promise holds.
///
/// Errors: [`ent_plan::diagnostic::Code::PlannerLimitation`] when there are no boards it knows. Warnings
/// of the same kind for what it does not look at and for what its plan misses.
#[must_use]
pub fn plan(program: &Program, performance: &PerformanceSet, request: Request) -> Outcome<Plan> {
    let mut diagnostics = Vec::new();
    let site = Site::of(program, performance, NAME, request, &mut diagnostics);
    let Some(site) = site else { return no_plan(program, performance, NAME, request, diagnostics) };
    diagnostics.extend(pins_ignored(program, NAME));
    let estimator = estimator(program, site.making.metric, &mut diagnostics);
    let known: Vec<Vec<Known>> = (0..program.services.len()).map(|s| usable(&site, s)).collect();
    let services =
        known.iter().enumerate().map(|(s, k)| service(program, &site, s, k, request.mode)).collect();
    let clocks = clocks(&site, request.mode);
    let max_boards = Some(site.count());
    let input = Input { services, clocks, max_boards, estimator, max_work: MAX_WORK };
    let decision = decide(&input, request.mode);
    diagnostics.extend(fates(program, &site, &decision));
    let keys: Vec<Vec<PointKey>> = known.iter().map(|own| own.iter().map(|k| k.key).collect()).collect();
    let mut boards = boards(&site, &keys, &decision);
    boards.iter_mut().for_each(|b| site.lay_out(b));
    site.split(&mut boards, SplitBy::Capacity);
    site.plan(&boards, diagnostics)
}

fn estimator(program: &Program, metric: Metric, diagnostics: &mut Vec<Diagnostic>) -> Estimator {
    match metric {
        Metric::Power => Estimator::Power,
        Metric::Energy => Estimator::Energy,
        Metric::Carbon => Estimator::Carbon,
        Metric::Gpus | Metric::Cost => {
            let span = program.objective.minimize.span;
            let what = format!("cannot minimise {}", metric.word());
            diagnostics.push(limitation(NAME, span, &what).label("planned for power"));
            Estimator::Power
        }
    }
}

/// Rows of one process with known power: the original's table has no others.
fn usable(site: &Site<'_>, service: usize) -> Vec<Known> {
    let mut known = site.known(service, |key| key.processes == 1);
    known.retain(|k| !k.prediction.dynamic_power.is_empty());
    known
}

fn service(program: &Program, site: &Site<'_>, index: usize, known: &[Known], mode: Mode) -> Service {
    let asked = &program.services[index];
    let rate = asked.rate.value.get();
    let row = |k: &Known| Row {
        slices: k.slices,
        batch: k.key.batch,
        clock: k.key.clock.0,
        dynamic: k.prediction.dynamic_power.last().map_or(0.0, |d| d.get()),
        throughput: match mode {
            Mode::Conformant => k.prediction.capacity(1),
            // Only whether it reaches the rate matters.
            Mode::Native => {
                if site.carries(index, k) {
                    rate
                } else {
                    0.0
                }
            }
        },
        latency: k.prediction.latency_p99.get() * 1e3,
    };
    Service {
        // The original knows models by name, and a model is a service.
        name: program.models[asked.model.value].name.value.clone(),
        rate,
        bound: asked.slo.value.bound.get() * 1e3,
        rows: known.iter().map(row).collect(),
    }
}

fn clocks(site: &Site<'_>, mode: Mode) -> Vec<ClockPower> {
    let facts = site.facts();
    let points = facts.base_power.iter().flat_map(|base| &base.points);
    let own = |clock: Megahertz, watts: f64| ClockPower {
        clock: clock.0,
        static_power: watts,
        fan: 0.0,
        idle: 0.0,
    };
    points
        .filter(|(clock, _)| site.allows(*clock))
        .map(|(clock, watts)| {
            let published = PUBLISHED.iter().find(|c| c.clock == clock.0);
            match (mode, published) {
                (Mode::Conformant, Some(entry)) if facts.id == PUBLISHED_BOARD => *entry,
                _ => own(*clock, watts.get()),
            }
        })
        .collect()
}

fn boards(site: &Site<'_>, keys: &[Vec<PointKey>], decision: &Decision) -> Vec<BoardChoice> {
    let seats = site.seats(decision.boards.len());
    let instance = |(service, row): &(usize, usize)| {
        let key = keys[*service][*row];
        InstanceChoice {
            service: *service,
            profile: key.profile,
            start: None,
            mps_percent: None,
            processes: key.processes,
            batch: key.batch,
            rate: 0.0,
            prediction: None,
        }
    };
    let board = |(node, b): (usize, &super::Board)| BoardChoice {
        node,
        sharing: Sharing::Mig,
        clock: Megahertz(b.clock),
        instances: b.members.iter().map(instance).collect(),
    };
    seats.into_iter().zip(&decision.boards).map(board).collect()
}

fn fates(program: &Program, site: &Site<'_>, decision: &Decision) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    if site.facts().base_power.is_none() {
        let span = site.nodes.first().map_or_else(Default::default, |(n, _)| program.nodes[*n].board.span);
        all.push(limitation(NAME, span, "needs the base power of its boards").label("it is in no catalogue"));
    }
    for service in &decision.unserved {
        let asked = &program.services[*service];
        all.push(
            limitation(
                NAME,
                asked.rate.span,
                &format!("has no instance that carries `{}`", asked.name.value),
            )
            .label("it never makes two of one service; the original crashes here"),
        );
    }
    let count = site.count();
    if decision.boards.len() > count {
        let why = if decision.is_stopped { "the search was stopped" } else { "no two boards can be joined" };
        all.push(
            limitation(NAME, program.objective.minimize.span, "returns more boards than there are")
                .label(format!("{} of {count}: {why}; the last are left out", decision.boards.len())),
        );
    }
    all
}
