//! Program + performance + plan → what the plan gets wrong.
//!
//! Recomputes from spec and catalogue what [`ent_plan::plan::check`] takes as given: every instance's
//! batch times, energies, rates and latency, and with them every promise, limit and metric; and whether
//! the plan is one of this program's: its services, nodes, pins and bounds. It knows no planner.

use crate::load::PerformanceSet;
use crate::operate::{Operation, Promise, operate_with_wait};
use crate::predict::{ModelPerformance, PointKey, Prediction, ShareKey};
use ent_lang::Program;
use ent_lang::program::Service;
use ent_plan::device::Board;
use ent_plan::plan::{Fault, Gpu, Instance, Plan, Sharing, Status};
use std::collections::BTreeMap;

mod requirements;
mod site;

#[cfg(test)]
mod tests;

/// How far a recomputed number may be off, relative: what printing and summing lose.
const TOLERANCE: f64 = 1e-6;

/// The faults found so far.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault { place: place.into(), message: message.into() });
    }

    fn equal(&mut self, place: impl Into<String>, stated: f64, computed: f64) {
        if !close(stated, computed) {
            self.add(
                place,
                format!("it is {stated}, but {computed} by the program and its performance data"),
            );
        }
    }

    fn equal_if_known(&mut self, place: impl Into<String>, stated: Option<f64>, computed: Option<f64>) {
        match (stated, computed) {
            (Some(stated), Some(computed)) => self.equal(place, stated, computed),
            (Some(stated), None) => self.add(place, format!("it is {stated}, but nothing is known of it")),
            (None, Some(computed)) => self.add(place, format!("it is absent, but {computed} by its data")),
            (None, None) => {}
        }
    }

    fn equal_lists(&mut self, place: String, stated: &[f64], computed: &[f64]) {
        if stated.len() != computed.len() {
            self.add(place, format!("it has {} entries, not {}", stated.len(), computed.len()));
            return;
        }
        if let Some((k, (stated, computed))) =
            stated.iter().zip(computed).enumerate().find(|(_, (s, c))| !close(**s, **c))
        {
            self.equal(format!("{place}[{k}]"), *stated, *computed);
        }
    }
}

/// Equal but for rounding. A number that is not finite equals only itself.
fn close(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()) + 1e-12
}

/// Not above, but for rounding.
fn at_most(value: f64, limit: f64) -> bool {
    value <= limit || close(value, limit)
}

/// Everything in which a plan differs from what its program and performance data say; empty when it keeps
/// every promise, limit and requirement and states its numbers as they are. A plan without boards, because
/// there is none or none was found, has nothing to be verified.
#[must_use]
pub fn verify(program: &Program, performance: &PerformanceSet, plan: &Plan) -> Vec<Fault> {
    let mut faults = Faults::default();
    if matches!(plan.status, Status::Infeasible | Status::Unknown) {
        return faults.0;
    }
    if let Some(rule) = program.latency_rule
        && rule != plan.latency_rule
    {
        faults.add("latency_rule", "it is not the program's");
    }
    let mut verifier = Verifier { program, performance, plan, known: BTreeMap::new() };
    for (g, gpu) in plan.gpus.iter().enumerate() {
        verifier.gpu(gpu, &format!("gpus[{g}]"), &mut faults);
    }
    requirements::check(program, plan, &mut faults);
    site::check(program, plan, &mut faults);
    faults.0
}

/// What tells instances apart that behave the same: service, board, point, rate and fill wait.
type Same = (usize, usize, Point, u64, u64);

/// An operating point, on whatever it runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// A MIG device or a whole board.
    Cut(PointKey),
    /// An MPS share.
    Share(ShareKey),
}

impl Point {
    /// `None` when a board has nothing like it.
    fn of(board: &Board, gpu: &Gpu, instance: &Instance) -> Option<Self> {
        let (processes, batch, clock) = (instance.processes, instance.batch, gpu.sm_clock_mhz);
        match (gpu.sharing, &instance.profile) {
            (Sharing::Mps, None) => {
                Some(Self::Share(ShareKey { percent: instance.mps_percent?, processes, batch, clock }))
            }
            _ => {
                let profile = profile_index(board, gpu.sharing, instance)?;
                Some(Self::Cut(PointKey { profile, processes, batch, clock }))
            }
        }
    }

    fn predict(self, known: &ModelPerformance, board: &Board) -> Option<Prediction> {
        match self {
            Self::Cut(key) => known.predict(board, key),
            Self::Share(share) => known.predict_share(board, share),
        }
    }
}

struct Verifier<'a> {
    program: &'a Program,
    performance: &'a PerformanceSet,
    plan: &'a Plan,
    /// Large plans repeat few distinct instances many times.
    known: BTreeMap<Same, Option<(Prediction, Operation)>>,
}

impl Verifier<'_> {
    fn gpu(&mut self, gpu: &Gpu, place: &str, faults: &mut Faults) {
        let Some(node) = self.program.nodes.iter().find(|n| n.name.value == gpu.node) else {
            faults.add(format!("{place}.node"), format!("the program has no node `{}`", gpu.node));
            return;
        };
        if gpu.index >= node.count.value {
            let message = format!("node `{}` has {} boards", gpu.node, node.count.value);
            faults.add(format!("{place}.index"), message);
        }
        let Some(board) = self.program.boards.get(node.board.value) else { return };
        if gpu.board != board.id {
            faults.add(format!("{place}.board"), format!("node `{}` has `{}`", gpu.node, board.id));
            return;
        }
        if gpu.sharing != node.sharing {
            faults.add(format!("{place}.sharing"), format!("node `{}` is shared otherwise", gpu.node));
        }
        if node.clocks.as_ref().is_some_and(|c| !c.value.contains(&gpu.sm_clock_mhz)) {
            let message = format!("node `{}` may not use {}", gpu.node, gpu.sm_clock_mhz);
            faults.add(format!("{place}.sm_clock_mhz"), message);
        }
        let base = board.base_power.as_ref().and_then(|b| b.at(gpu.sm_clock_mhz)).map(|w| w.get());
        faults.equal_if_known(format!("{place}.base_power_w"), gpu.base_power_w, base);
        for (i, instance) in gpu.instances.iter().enumerate() {
            let place = format!("{place}.instances[{i}]");
            self.instance(gpu, (node.board.value, board), instance, &place, faults);
        }
    }

    fn instance(
        &mut self,
        gpu: &Gpu,
        (board_index, board): (usize, &Board),
        instance: &Instance,
        place: &str,
        faults: &mut Faults,
    ) {
        let found = self.program.services.iter().enumerate().find(|(_, s)| s.name.value == instance.service);
        let Some((index, service)) = found else {
            let message = format!("the program has no service `{}`", instance.service);
            faults.add(format!("{place}.service"), message);
            return;
        };
        let Some(model) = self.program.models.get(service.model.value) else { return };
        if instance.model != model.name.value {
            let message = format!("service `{}` runs `{}`", instance.service, model.name.value);
            faults.add(format!("{place}.model"), message);
            return;
        }
        let Some(point) = Point::of(board, gpu, instance) else {
            faults.add(format!("{place}.profile"), format!("`{}` has nothing like it", board.id));
            return;
        };
        let same = (index, board_index, point, instance.rate_rps.to_bits(), instance.max_wait_ms.to_bits());
        let (performance, rule) = (self.performance, self.plan.latency_rule);
        let known = self.known.entry(same).or_insert_with(|| {
            let prediction = point.predict(performance.get(service.model.value, board_index)?, board)?;
            let at = operate_with_wait(
                &prediction,
                instance.processes,
                promise(service, rule),
                instance.rate_rps,
                instance.max_wait_ms * 1e-3,
            );
            Some((prediction, at))
        });
        let Some((prediction, at)) = known else {
            faults.add(place, "there is no performance data for this operating point");
            return;
        };
        numbers(instance, prediction, at, place, faults);
        let needed = model.memory.as_ref().map(|m| m.value.get() * f64::from(instance.processes));
        faults.equal_if_known(format!("{place}.memory_bytes"), instance.memory_bytes, needed);
        let promised = service.slo.value.bound.get() * 1e3;
        faults.equal(format!("{place}.promised_latency_ms"), instance.promised_latency_ms, promised);
        if !at_most(at.predicted_latency * 1e3, promised) {
            let latency = at.predicted_latency * 1e3;
            faults.add(
                place,
                format!("its latency is {latency} ms; service `{}` promises {promised} ms", instance.service),
            );
        }
        if !at_most(instance.rate_rps, at.admissible) {
            let message =
                format!("it is given {} req/s; its promise holds up to {}", instance.rate_rps, at.admissible);
            faults.add(place, message);
        }
    }
}

/// The profile an instance is predicted as: its own, or the largest for a whole board.
fn profile_index(board: &Board, sharing: Sharing, instance: &Instance) -> Option<usize> {
    match (sharing, &instance.profile) {
        (Sharing::Mig, Some(name)) => board.profiles.iter().position(|p| p.name == *name),
        (Sharing::Whole, None) => (0..board.profiles.len())
            .filter(|p| board.profiles[*p].is_base)
            .max_by_key(|p| board.profiles[*p].n_memory_slices),
        _ => None,
    }
}

fn promise(service: &Service, rule: ent_plan::plan::LatencyRule) -> Promise<'_> {
    Promise {
        rule,
        arrivals: &service.arrivals.value,
        percentile: service.slo.value.percentile,
        bound: service.slo.value.bound.get(),
    }
}

/// An instance's numbers, recomputed.
fn numbers(instance: &Instance, prediction: &Prediction, at: &Operation, place: &str, faults: &mut Faults) {
    let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get() * 1e3).collect();
    faults.equal_lists(format!("{place}.batch_times_ms"), &instance.batch_times_ms, &times);
    faults.equal_lists(format!("{place}.batch_energy_j"), &instance.batch_energy_j, &at.batch_energy);
    for (what, stated, computed) in [
        ("capacity_rps", instance.capacity_rps, at.capacity),
        ("admissible_rps", instance.admissible_rps, at.admissible),
        ("utilisation", instance.utilisation, at.utilisation),
        ("predicted_latency_ms", instance.predicted_latency_ms, at.predicted_latency * 1e3),
        ("time_error", instance.time_error, prediction.time_error),
        ("power_error", instance.power_error, prediction.power_error),
    ] {
        faults.equal(format!("{place}.{what}"), stated, computed);
    }
    let place_of = |what: &str| format!("{place}.{what}");
    faults.equal_if_known(place_of("dynamic_power_w"), instance.dynamic_power_w, at.dynamic_power);
    faults.equal_if_known(
        place_of("mean_dynamic_power_w"),
        instance.mean_dynamic_power_w,
        at.mean_dynamic_power,
    );
    if instance.source != prediction.source {
        faults.add(place_of("source"), format!("it is `{}`, not `{}`", prediction.source, instance.source));
    }
}
