//! Program + performance + utilisation → Usher's plan.

use super::{Decision, Input, Model, Profile, decide};
use crate::published::Interference;
use crate::published::Request;
use crate::published::shares::{Planning, ShareChoice, Site};
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::Outcome;
use ent_plan::plan::Plan;
use std::collections::BTreeMap;

/// The planner's name in commands.
pub const NAME: &str = "usher";

/// Plans a program like Usher, on boards of one kind at their highest measured clock. Without `interference`
/// there is no plan: Usher packs by utilisation. What it leaves out or needs more boards for is a warning.
#[must_use]
pub fn plan(
    program: &Program,
    performance: &PerformanceSet,
    interference: Option<&Interference>,
    asked: Request,
) -> Outcome<Plan> {
    let mut planning = Planning { program, performance, asked, planner: NAME, diagnostics: Vec::new() };
    let Some(interference) = interference else {
        let span = program.services.first().map_or(program.objective.minimize.span, |s| s.name.span);
        let label = "it packs by utilisation, and no utilisation data were given";
        planning.refuse(span, label, "give utilisation data, or plan with another planner");
        return planning.plan(None, &[]);
    };
    let Some(site) = planning.site() else { return planning.plan(None, &[]) };
    let input = input(&planning, &site, interference);
    let decision = decide(&input, asked.mode);
    explain(&mut planning, &input, &decision);
    let boards: Vec<Vec<ShareChoice>> = decision
        .gpus
        .iter()
        .map(|gpu| {
            let share =
                |r: &super::Replica| ShareChoice { service: r.model, percent: r.percent, batch: r.batch };
            gpu.replicas.iter().map(share).collect()
        })
        .collect();
    planning.plan(Some(&site), &boards)
}

/// Every service is a model of Usher's.
fn input(planning: &Planning<'_>, site: &Site, interference: &Interference) -> Input {
    let model = |index: usize| {
        let service = &planning.program.services[index];
        let name = &planning.program.models[service.model.value].name.value;
        let own: BTreeMap<u32, Profile> = interference
            .utilisation
            .iter()
            .filter(|u| u.model == *name)
            .map(|u| (u.batch, Profile { batch: u.batch, compute: u.compute, l2: u.l2, memory: u.memory }))
            .collect();
        let measured = planning.batches(index, site);
        let most = measured.last().copied().unwrap_or(0);
        Model {
            name: service.name.value.clone(),
            rate: service.rate.value.get(),
            bound_ms: service.slo.value.bound.get() * 1e3,
            // A batch above all measured ones has no plan to be in.
            profiles: own.into_values().filter(|p| p.batch <= most).collect(),
            latencies: measured
                .into_iter()
                .filter_map(|b| Some((b, planning.latency_ms(index, site, 100, b)?)))
                .collect(),
        }
    };
    Input {
        models: (0..planning.program.services.len()).map(model).collect(),
        constants: interference.constants,
        memory_mb: site.memory_mb,
    }
}

fn explain(planning: &mut Planning<'_>, input: &Input, decision: &Decision) {
    for service in decision.dropped() {
        let model = &input.models[service];
        let why = if decision.too_slow.contains(&service) {
            "no batch is within its promise"
        } else if model.profiles.is_empty() {
            "no utilisation data of its model"
        } else if decision.unknown.contains(&service) {
            "no performance data of its model"
        } else {
            "no configuration of its group carries the group's rates"
        };
        planning.leave_out(service, why);
    }
}
