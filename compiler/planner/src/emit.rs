//! Assignment → Plan: named boards, explicit placements, every number.
//!
//! Instances are dealt to boards in a fixed order, so that the same assignment gives the same plan.

use crate::formulate::promise;
use crate::formulate::points::percentile_word;
use crate::problem::{Assignment, Problem, Slot, Solution};
use crate::weights::{embodied_per_hour, idle_power, mean_intensity, per_solver_unit};
use ent_lang::Program;
use ent_lang::program::{Arrivals, Spread, UnusedBoards};
use ent_performance::PerformanceSet;
use ent_performance::operate::operate;
use ent_plan::plan::{
    Accounting, FORMAT_VERSION, Gpu, Instance, LatencyRule, Limit, Metric, Metrics, OPTIMAL_GAP, Objective, Plan,
    Service, Sharing, Status, Unused, gap,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a plan is called and how it was made.
pub(crate) struct Making<'a> {
    pub(crate) program: &'a Program,
    pub(crate) performance: &'a PerformanceSet,
    pub(crate) planner: &'a str,
    pub(crate) metric: Metric,
    pub(crate) rule: LatencyRule,
    /// Gap that was asked for.
    pub(crate) gap: f64,
}

/// An instance that has no board yet.
#[derive(Clone, Copy, Debug)]
struct Loose {
    service: usize,
    point: usize,
    rate: f64,
}

/// A board that has no name yet.
#[derive(Clone, Debug)]
struct Anonymous {
    pattern: usize,
    instances: Vec<Loose>,
}

/// The plan of a solution.
pub(crate) fn emit(making: &Making<'_>, problem: &Problem, solution: &Solution) -> Plan {
    let program = making.program;
    let boards = solution.incumbent.as_ref().map(|a| deal(problem, a)).unwrap_or_default();
    let gpus = name(making, problem, &boards);
    let unused = unused(program, &gpus);
    let accounting = accounting(program);
    let metrics = Metrics::of(&gpus, &unused, &accounting);
    let has_plan = solution.incumbent.is_some();
    let value = if has_plan { metrics.value(making.metric, program.objective.horizon.get()) } else { None };
    let bound = solution.bound.map(|b| b * per_solver_unit(program, making.metric));
    // A bound above the value by rounding is the value.
    let bound = match (bound, value) {
        (Some(b), Some(v)) => Some(b.min(v)),
        (b, _) => b,
    };
    let proven = value.zip(bound).map(|(v, b)| gap(v, b));
    let status = match (has_plan, proven) {
        (false, _) if solution.is_infeasible => Status::Infeasible,
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
        stopped_by: if status == Status::Optimal { None } else { solution.stopped_by.map(str::to_owned) },
        objective: Objective { metric: making.metric, value, bound, gap: proven },
        planner: making.planner.to_owned(),
        latency_rule: making.rule,
        metrics,
        limits: program.objective.limits.iter().map(|l| Limit { metric: l.metric, at_most: l.at_most }).collect(),
        accounting,
        boards: boards_used(program, &gpus),
        gpus,
        unused,
        services,
        assumptions: assumptions(making),
        diagnostics: Vec::new(),
    }
}

/// The facts of the boards that the plan uses, so that it can be checked without the spec.
fn boards_used(program: &Program, _gpus: &[Gpu]) -> Vec<ent_plan::device::Board> {
    program.boards.clone()
}

/// Gives every instance a board.
fn deal(problem: &Problem, assignment: &Assignment) -> Vec<Anonymous> {
    let mut boards: Vec<Anonymous> = Vec::new();
    let mut free: Vec<BTreeMap<usize, u32>> = Vec::new();
    let mut of_cell: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &(pattern, count) in &assignment.boards {
        for _ in 0..count {
            for &(cell, _) in &problem.patterns[pattern].places {
                of_cell.entry(cell).or_default().push(boards.len());
            }
            free.push(problem.patterns[pattern].places.iter().copied().collect());
            boards.push(Anonymous { pattern, instances: Vec::new() });
        }
    }
    // Services that must be apart choose first; the rest in the program's order.
    let mut loose: Vec<Loose> = Vec::new();
    for (service, shares) in assignment.shares.iter().enumerate() {
        for share in shares {
            loose.extend(share.rates.iter().map(|&rate| Loose { service, point: share.point, rate }));
        }
    }
    loose.sort_by_key(|l| (problem.services[l.service].spread.is_none(), l.service));
    // Where the first board with room is, by cell: boards before it are full.
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for instance in loose {
        let cell = problem.services[instance.service].points[instance.point].cell;
        let Some(candidates) = of_cell.get(&cell) else { continue };
        let from = first.entry(cell).or_default();
        while candidates.get(*from).is_some_and(|&b| free[b].get(&cell).copied().unwrap_or(0) == 0) {
            *from += 1;
        }
        let has_room = |b: &usize| free[*b].get(&cell).copied().unwrap_or(0) > 0;
        let apart = |b: &usize| !boards[*b].instances.iter().any(|i| i.service == instance.service);
        let is_spread = problem.services[instance.service].spread.is_some();
        let rest = candidates.get(*from..).unwrap_or_default();
        let chosen = rest
            .iter()
            .copied()
            .find(|b| has_room(b) && (!is_spread || apart(b)))
            .or_else(|| rest.iter().copied().find(has_room));
        if let Some(board) = chosen {
            if let Some(n) = free[board].get_mut(&cell) {
                *n -= 1;
            }
            boards[board].instances.push(instance);
        }
    }
    boards.retain(|b| !b.instances.is_empty());
    boards
}

/// Gives every board a node and an index, and every instance a placement and its numbers.
fn name(making: &Making<'_>, problem: &Problem, boards: &[Anonymous]) -> Vec<Gpu> {
    let program = making.program;
    let mut used: Vec<u32> = vec![0; program.nodes.len()];
    let mut on_node: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); program.nodes.len()];
    let mut gpus = Vec::new();
    for board in boards {
        let pattern = &problem.patterns[board.pattern];
        let class = &problem.classes[pattern.class];
        let free = |n: &usize, used: &[u32]| used[*n] < program.nodes[*n].count.value;
        let apart = |n: &usize| {
            !board.instances.iter().any(|i| {
                problem.services[i.service].spread == Some(Spread::Node) && on_node[*n].contains(&i.service)
            })
        };
        let node = class
            .nodes
            .iter()
            .copied()
            .find(|n| free(n, &used) && apart(n))
            .or_else(|| class.nodes.iter().copied().find(|n| free(n, &used)));
        let Some(node) = node else { continue };
        let index = used[node];
        used[node] += 1;
        on_node[node].extend(board.instances.iter().map(|i| i.service));
        let facts = &program.boards[class.board];
        let slots: Vec<Slot> = board
            .instances
            .iter()
            .map(|i| problem.cells[problem.services[i.service].points[i.point].cell].slot)
            .collect();
        let profiles: Vec<usize> =
            slots.iter().filter_map(|s| if let Slot::Profile(p) = s { Some(*p) } else { None }).collect();
        let starts = ent_plan::device::place(facts, &profiles).unwrap_or_default();
        let mut instances: Vec<Instance> = board
            .instances
            .iter()
            .enumerate()
            .filter_map(|(at, loose)| instance(making, problem, class.board, *loose, starts.get(at).copied()))
            .collect();
        instances.sort_by(|a, b| a.start.cmp(&b.start));
        let base = facts.base_power.as_ref().and_then(|b| b.at(pattern.clock)).map(|w| w.get());
        let add = |own: fn(&Instance) -> Option<f64>| {
            base.zip(instances.iter().map(own).sum::<Option<f64>>()).map(|(base, sum)| base + sum)
        };
        gpus.push(Gpu {
            node: program.nodes[node].name.value.clone(),
            index,
            uuid: None,
            board: facts.id.clone(),
            sharing: if class.sharing == Sharing::Whole { Sharing::Whole } else { Sharing::Mig },
            sm_clock_mhz: pattern.clock,
            base_power_w: base,
            mean_power_w: add(|i| i.mean_dynamic_power_w),
            power_w: add(|i| i.dynamic_power_w),
            instances,
        });
    }
    let order: BTreeMap<&str, usize> =
        program.nodes.iter().enumerate().map(|(i, n)| (n.name.value.as_str(), i)).collect();
    gpus.sort_by_key(|g| (order.get(g.node.as_str()).copied(), g.index));
    gpus
}

fn instance(
    making: &Making<'_>,
    problem: &Problem,
    board: usize,
    loose: Loose,
    start: Option<u32>,
) -> Option<Instance> {
    let program = making.program;
    let service = &program.services[loose.service];
    let model = &program.models[service.model.value];
    let point = &problem.services[loose.service].points[loose.point];
    let facts = &program.boards[board];
    let prediction = making.performance.get(service.model.value, board)?.predict(facts, point.key)?;
    let at = operate(&prediction, point.key.processes, promise(service, making.rule), loose.rate);
    let profile = match problem.cells[point.cell].slot {
        Slot::Profile(p) => facts.profiles.get(p),
        Slot::Whole => None,
    };
    Some(Instance {
        profile: profile.map(|p| p.name.clone()),
        start: profile.and(start),
        size: profile.map(|p| p.n_memory_slices),
        mps_percent: None,
        service: service.name.value.clone(),
        model: model.name.value.clone(),
        processes: point.key.processes,
        batch: point.key.batch,
        max_wait_ms: at.max_wait * 1e3,
        batch_times_ms: prediction.batch_times.iter().map(|t| t.get() * 1e3).collect(),
        batch_energy_j: at.batch_energy,
        rate_rps: loose.rate,
        capacity_rps: at.capacity,
        admissible_rps: at.admissible,
        utilisation: at.utilisation,
        predicted_latency_ms: at.predicted_latency * 1e3,
        promised_latency_ms: service.slo.value.bound.get() * 1e3,
        dynamic_power_w: at.dynamic_power,
        mean_dynamic_power_w: at.mean_dynamic_power,
        memory_bytes: model.memory.as_ref().map(|m| m.value.get() * f64::from(point.key.processes)),
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
            let own = || {
                gpus.iter().flat_map(|g| &g.instances).filter(|i| i.service == service.name.value)
            };
            Service {
                name: service.name.value.clone(),
                rate_rps: service.rate.value.get(),
                served_rps: own().map(|i| i.rate_rps).sum(),
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
    all.push("power of a board is its base power and the sum of its instances' dynamic powers; no interference".to_owned());
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
    all.push("replicas that share a service's rate are filled in order of energy per request".to_owned());
    all
}
