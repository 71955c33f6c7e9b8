//! Boards as a planner decided them → Plan: names, indices and every number.
//!
//! The same for all planners, so that plans differ only in what was decided.

use crate::formulate::points::percentile_word;
use crate::formulate::promise;
use crate::problem::RATE_PARTS;
use crate::weights::{embodied_per_hour, idle_power, mean_intensity, per_solver_unit};
use ent_lang::Program;
use ent_lang::program::{Arrivals, UnusedBoards};
use ent_performance::operate::operate;
use ent_performance::{PerformanceSet, PointKey, Prediction};
use ent_plan::plan::{
    Accounting, FORMAT_VERSION, Gpu, Instance, LatencyRule, Limit, Metric, Metrics, ModelFile, OPTIMAL_GAP,
    Objective, Plan, Service, Sharing, Status, Unused, gap,
};
use ent_plan::units::Megahertz;
use std::collections::BTreeSet;

/// What a plan is called and how it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Making<'a> {
    /// The program.
    pub(crate) program: &'a Program,
    /// What is known of its models.
    pub(crate) performance: &'a PerformanceSet,
    /// Who planned.
    pub(crate) planner: &'a str,
    /// What was minimised.
    pub(crate) metric: Metric,
    /// Which latency promises are about.
    pub(crate) rule: LatencyRule,
    /// Gap that was asked for.
    pub(crate) gap: f64,
}

/// A used board as a planner decided it.
#[derive(Clone, Debug)]
pub(crate) struct BoardChoice {
    /// Index into the program's nodes. Boards of a node are numbered in the order given; whether the node
    /// has so many is the planner's concern.
    pub(crate) node: usize,
    /// How it is shared.
    pub(crate) sharing: Sharing,
    /// Its clock.
    pub(crate) clock: Megahertz,
    /// What runs on it.
    pub(crate) instances: Vec<InstanceChoice>,
}

/// An instance as a planner decided it.
#[derive(Clone, Debug)]
pub(crate) struct InstanceChoice {
    /// Index into the program's services.
    pub(crate) service: usize,
    /// Index into the board's profiles; of the profile that stands for it where sharing is not by MIG.
    pub(crate) profile: usize,
    /// First memory slice; `None` outside MIG, or where no legal place exists.
    pub(crate) start: Option<u32>,
    /// MPS active-thread percentage; `None` outside MPS.
    pub(crate) mps_percent: Option<u32>,
    /// Worker processes.
    pub(crate) processes: u32,
    /// Largest batch.
    pub(crate) batch: u32,
    /// Offered rate (req/s).
    pub(crate) rate: f64,
    /// In place of what the performance data predicts for the profile: an MPS share.
    pub(crate) prediction: Option<Prediction>,
}

impl InstanceChoice {
    /// What is predicted for it on a board of the program at a clock; `None` when nobody measured it.
    #[must_use]
    pub(crate) fn predict(&self, making: &Making<'_>, board: usize, clock: Megahertz) -> Option<Prediction> {
        if let Some(own) = &self.prediction {
            return Some(own.clone());
        }
        let service = making.program.services.get(self.service)?;
        let key = PointKey { profile: self.profile, processes: self.processes, batch: self.batch, clock };
        let facts = making.program.boards.get(board)?;
        making.performance.get(service.model.value, board)?.predict(facts, key)
    }
}

/// How far a plan is proven.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proof {
    /// Whether there is a plan at all.
    pub(crate) has_plan: bool,
    /// Proven to have none.
    pub(crate) is_infeasible: bool,
    /// No plan is better than this, in the unit the solver works in.
    pub(crate) bound: Option<f64>,
    /// The limit that stopped the planner.
    pub(crate) stopped_by: Option<&'static str>,
}

/// The plan of these boards.
#[must_use]
pub(crate) fn assemble(making: &Making<'_>, boards: &[BoardChoice], proof: Proof) -> Plan {
    let program = making.program;
    let gpus = gpus(making, boards);
    let unused = unused(program, &gpus);
    let accounting = accounting(program);
    let metrics = Metrics::of(&gpus, &unused, &accounting);
    let value =
        if proof.has_plan { metrics.value(making.metric, program.objective.horizon.get()) } else { None };
    let bound = proof.bound.map(|b| b * per_solver_unit(program, making.metric));
    // A bound above the value by rounding is the value.
    let bound = match (bound, value) {
        (Some(b), Some(v)) if v - b <= 1e-12 * v.abs() => Some(v),
        (b, _) => b,
    };
    let proven = value.zip(bound).map(|(v, b)| gap(v, b));
    let status = match (proof.has_plan, proven) {
        (false, _) if proof.is_infeasible => Status::Infeasible,
        (false, _) => Status::Unknown,
        (true, Some(g)) if g <= OPTIMAL_GAP => Status::Optimal,
        (true, Some(g)) if g <= making.gap => Status::WithinGap,
        (true, _) => Status::Feasible,
    };
    let services = services(program, &gpus);
    Plan {
        format_version: FORMAT_VERSION.to_owned(),
        entc_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: program.name.clone(),
        params: program.params.clone(),
        status,
        stopped_by: if status == Status::Optimal { None } else { proof.stopped_by.map(str::to_owned) },
        objective: Objective { metric: making.metric, value, bound, gap: proven },
        planner: making.planner.to_owned(),
        latency_rule: making.rule,
        metrics,
        limits: program
            .objective
            .limits
            .iter()
            .map(|l| Limit { metric: l.metric, at_most: l.at_most })
            .collect(),
        accounting,
        boards: program.boards.clone(),
        gpus,
        unused,
        services,
        models: models(program),
        assumptions: assumptions(making),
        diagnostics: Vec::new(),
        machine: None,
        checksum: None,
    }
}

/// The files of the networks that services use, by the program's order of models.
fn models(program: &Program) -> Vec<ModelFile> {
    let is_used = |index: usize| program.services.iter().any(|service| service.model.value == index);
    let used = program.models.iter().enumerate().filter(|(index, _)| is_used(*index));
    let file = |(_, model): (usize, &ent_lang::program::Model)| {
        let artifact = model.artifact.as_ref()?.value.clone();
        Some(ModelFile { name: model.name.value.clone(), artifact })
    };
    used.filter_map(file).collect()
}

/// Gives every board its index in its node, and every instance its numbers.
fn gpus(making: &Making<'_>, boards: &[BoardChoice]) -> Vec<Gpu> {
    let program = making.program;
    let mut used: Vec<u32> = vec![0; program.nodes.len()];
    let mut gpus: Vec<(usize, Gpu)> = Vec::new();
    for choice in boards {
        let Some(node) = program.nodes.get(choice.node) else { continue };
        let index = used[choice.node];
        used[choice.node] += 1;
        let facts = &program.boards[node.board.value];
        let mut instances: Vec<Instance> =
            choice.instances.iter().filter_map(|i| instance(making, choice, node.board.value, i)).collect();
        instances.sort_by_key(|i| i.start);
        let base = facts.base_power.as_ref().and_then(|b| b.at(choice.clock)).map(|w| w.get());
        let add = |own: fn(&Instance) -> Option<f64>| {
            base.zip(instances.iter().map(own).sum::<Option<f64>>()).map(|(base, sum)| base + sum)
        };
        let gpu = Gpu {
            node: node.name.value.clone(),
            index,
            uuid: None,
            board: facts.id.clone(),
            sharing: choice.sharing,
            sm_clock_mhz: choice.clock,
            base_power_w: base,
            mean_power_w: add(|i| i.mean_dynamic_power_w),
            power_w: add(|i| i.dynamic_power_w),
            instances,
        };
        gpus.push((choice.node, gpu));
    }
    gpus.sort_by_key(|(node, gpu)| (*node, gpu.index));
    gpus.into_iter().map(|(_, gpu)| gpu).collect()
}

fn instance(
    making: &Making<'_>,
    board: &BoardChoice,
    facts: usize,
    choice: &InstanceChoice,
) -> Option<Instance> {
    let program = making.program;
    let service = program.services.get(choice.service)?;
    let model = &program.models[service.model.value];
    let prediction = choice.predict(making, facts, board.clock)?;
    let at = operate(&prediction, choice.processes, promise(service, making.rule), choice.rate);
    let profile = match board.sharing {
        Sharing::Mig => program.boards[facts].profiles.get(choice.profile),
        Sharing::Mps | Sharing::Whole => None,
    };
    Some(Instance {
        profile: profile.map(|p| p.name.clone()),
        start: profile.and(choice.start),
        size: profile.map(|p| p.n_memory_slices),
        mps_percent: choice.mps_percent,
        service: service.name.value.clone(),
        model: model.name.value.clone(),
        processes: choice.processes,
        batch: choice.batch,
        max_wait_ms: at.max_wait * 1e3,
        batch_times_ms: prediction.batch_times.iter().map(|t| t.get() * 1e3).collect(),
        batch_energy_j: at.batch_energy,
        rate_rps: choice.rate,
        capacity_rps: at.capacity,
        admissible_rps: at.admissible,
        utilisation: at.utilisation,
        predicted_latency_ms: at.predicted_latency * 1e3,
        promised_latency_ms: service.slo.value.bound.get() * 1e3,
        dynamic_power_w: at.dynamic_power,
        mean_dynamic_power_w: at.mean_dynamic_power,
        memory_bytes: model.memory.as_ref().map(|m| m.value.get() * f64::from(choice.processes)),
        time_error: prediction.time_error,
        power_error: prediction.power_error,
        source: prediction.source.to_owned(),
    })
}

fn unused(program: &Program, gpus: &[Gpu]) -> Vec<Unused> {
    program
        .nodes
        .iter()
        .filter_map(|node| {
            let used = gpus.iter().filter(|g| g.node == node.name.value).count() as u32;
            let count = node.count.value.saturating_sub(used);
            (count > 0).then(|| Unused {
                node: node.name.value.clone(),
                board: program.boards[node.board.value].id.clone(),
                count,
                is_off: node.unused == UnusedBoards::Off,
                power_w: idle_power(program, node),
            })
        })
        .collect()
}

fn accounting(program: &Program) -> Accounting {
    Accounting {
        horizon_s: program.objective.horizon.get(),
        carbon_intensity_g_per_kwh: mean_intensity(program),
        embodied_g_per_gpu_hour: embodied_per_hour(program),
        pue: program.nodes.iter().map(|n| (n.name.value.clone(), n.pue)).collect(),
        price_per_gpu_hour: program
            .nodes
            .iter()
            .filter_map(|n| Some((n.name.value.clone(), n.price.as_ref()?.value.get())))
            .collect(),
    }
}

fn services(program: &Program, gpus: &[Gpu]) -> Vec<Service> {
    program
        .services
        .iter()
        .map(|service| {
            let own = || gpus.iter().flat_map(|g| &g.instances).filter(|i| i.service == service.name.value);
            Service {
                name: service.name.value.clone(),
                rate_rps: service.rate.value.get(),
                // The sum of nothing is -0.
                served_rps: own().map(|i| i.rate_rps).sum::<f64>() + 0.0,
                percentile: service.slo.value.percentile,
                arrivals: arrivals_word(&service.arrivals.value),
                predicted_latency_ms: own().map(|i| i.predicted_latency_ms).reduce(f64::max),
                promised_latency_ms: service.slo.value.bound.get() * 1e3,
                replicas: own().count() as u32,
            }
        })
        .collect()
}

/// An arrival process as a spec writes it.
pub(crate) fn arrivals_word(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Uniform => "uniform".to_owned(),
        Arrivals::Poisson => "poisson".to_owned(),
        Arrivals::Gamma { cv } => format!("gamma(cv = {cv})"),
        Arrivals::Trace { file } => format!("trace(\"{file}\")"),
    }
}

fn assumptions(making: &Making<'_>) -> Vec<String> {
    let program = making.program;
    let mut all = Vec::new();
    all.push(match making.rule {
        LatencyRule::Execution => {
            "latency is the execution of a full batch at p99; waiting and queueing are left out, as in the published papers".to_owned()
        }
        LatencyRule::Queueing => {
            let words: BTreeSet<String> =
                program.services.iter().map(|s| percentile_word(s.slo.value.percentile)).collect();
            let words: Vec<String> = words.into_iter().collect();
            format!("latency is batch wait, queueing and execution together, at {}", words.join(", "))
        }
    });
    all.push(
        "power of a board is its base power and the sum of its instances' dynamic powers; no interference"
            .to_owned(),
    );
    for board in &program.boards {
        if let Some(base) = &board.base_power {
            all.push(format!("base power of {}: {}", board.id, base.source));
        }
    }
    let sources: BTreeSet<String> = program
        .services
        .iter()
        .flat_map(|s| (0..program.boards.len()).filter_map(|b| making.performance.get(s.model.value, b)))
        .map(|p| p.provenance.clone())
        .collect();
    all.extend(sources.into_iter().map(|s| format!("performance: {s}")));
    all.push(match making.rule {
        LatencyRule::Execution => {
            "replicas that share a service's rate are filled in order of energy per request".to_owned()
        }
        LatencyRule::Queueing => {
            format!("replicas of a service each serve a number of {RATE_PARTS}ths of its rate")
        }
    });
    all
}
