//! Program + performance → GPUlets' plan.

use super::{Decision, Ending, Gpulet, Input, MOST_BATCH, Model, decide};
use crate::published::Request;
use crate::published::shares::{Planning, ShareChoice, Site};
use crate::published::{Interference, Mode};
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::Outcome;
use ent_plan::plan::Plan;

/// The planner's name in commands.
pub const NAME: &str = "gpulets";

/// Sizes of shares (%), as the original has them.
pub const PARTITIONS: [u32; 6] = [100, 80, 60, 50, 40, 20];

/// Latencies are taken times this, as the original's configurations say.
const LATENCY_RATIO: f64 = 1.1;

/// Most models that share the time of one share, as the original's configurations say.
const MOST_MODELS: usize = 2;

/// Boards that are regarded. The original looks at all of them for every share.
const MOST_BOARDS: usize = 1024;

/// Plans a program like GPUlets, on boards of one kind at their highest measured clock. Without
/// `interference` shares of a board are taken not to slow each other down. Where the original hangs, crashes
/// or plans nothing there is no plan in [`Mode::Conformant`]; [`Mode::Native`] leaves services out.
#[must_use]
pub fn plan(
    program: &Program,
    performance: &PerformanceSet,
    interference: Option<&Interference>,
    asked: Request,
) -> Outcome<Plan> {
    let mut planning = Planning { program, performance, asked, planner: NAME, diagnostics: Vec::new() };
    let Some(site) = planning.site() else { return planning.plan(None, &[]) };
    // A service that was never measured would void the plan for all.
    let services: Vec<usize> = (0..program.services.len())
        .filter(|s| {
            let is_known = !planning.batches(*s, &site).is_empty();
            if !is_known {
                planning.leave_out(*s, "no performance data of its model");
            }
            is_known
        })
        .collect();
    let input = input(&planning, &site, &services, interference);
    let decision = decide(&input, asked.mode);
    explain(&mut planning, &services, &decision);
    let boards: Vec<Vec<ShareChoice>> = decision
        .gpus
        .iter()
        .map(|gpu| gpu.gpulets.iter().flat_map(|share| shares(share, &services)).collect::<Vec<_>>())
        .filter(|own| !own.is_empty())
        .collect();
    planning.plan(Some(&site), &boards)
}

/// A share with one model is one instance. Models that take turns get their part of it each: processes under
/// MPS run at the same time.
fn shares(share: &Gpulet, services: &[usize]) -> Vec<ShareChoice> {
    let n = share.tenants.len().max(1) as u32;
    share
        .tenants
        .iter()
        .map(|t| ShareChoice {
            service: services[t.model],
            percent: (share.percent / n).max(1),
            batch: t.batch,
        })
        .collect()
}

fn input(
    planning: &Planning<'_>,
    site: &Site,
    services: &[usize],
    interference: Option<&Interference>,
) -> Input {
    let program = planning.program;
    let model = |index: usize| {
        let service = &program.services[index];
        let declared = &program.models[service.model.value];
        let most = planning.batches(index, site).last().copied().unwrap_or(1).min(MOST_BATCH);
        let mut latencies = Vec::new();
        for percent in PARTITIONS {
            for batch in 1..=most {
                if let Some(ms) = planning.latency_ms(index, site, percent, batch) {
                    latencies.push((percent, batch, ms));
                }
            }
            // The table must have it; it is larger than any batch that is chosen.
            if most < MOST_BATCH
                && let Some(ms) = planning.latency_ms(index, site, percent, most)
            {
                latencies.push((percent, MOST_BATCH, ms * f64::from(MOST_BATCH) / f64::from(most)));
            }
        }
        let mut utilisation: Vec<(u32, f64, f64)> = interference
            .iter()
            .flat_map(|i| &i.utilisation)
            .filter(|u| u.model == declared.name.value)
            .map(|u| (u.batch, u.l2, u.memory))
            .collect();
        utilisation.sort_by_key(|(batch, ..)| *batch);
        Model {
            name: service.name.value.clone(),
            rate: service.rate.value.get(),
            bound_ms: service.slo.value.bound.get() * 1e3,
            memory_mb: declared.memory.as_ref().map_or(0.0, |m| m.value.get() / (1024.0 * 1024.0)),
            request_bytes: 0.0,
            latencies,
            batching_ms: Vec::new(),
            utilisation,
            most_batch: most,
        }
    };
    Input {
        models: services.iter().map(|s| model(*s)).collect(),
        boards: (site.boards as usize).min(MOST_BOARDS),
        partitions: PARTITIONS.to_vec(),
        latency_ratio: LATENCY_RATIO,
        interference: interference.map(|i| i.constants),
        most_models: MOST_MODELS,
        is_self_tuning: false,
        memory_mb: site.memory_mb,
        network: None,
    }
}

fn explain(planning: &mut Planning<'_>, services: &[usize], decision: &Decision) {
    let (model, label) = match decision.ending {
        Ending::Scheduled => {
            for model in &decision.dropped {
                planning.leave_out(services[*model], "no boards are left that keep its promise");
            }
            return;
        }
        Ending::Empty { model } => (model, "it cannot place this service, and then plans none"),
        Ending::Hangs { model } => (model, "below 5 req/s the original never ends"),
        Ending::Crashes { model } => (model, "the original crashes at this rate: it asks for no share"),
        Ending::Aborts { model } => (model, "the original aborts: a batch of one exceeds the promise"),
        Ending::Unusable { model } => (model, "its latencies are not known at every size"),
    };
    let span = planning.program.services[services[model]].rate.span;
    let help = if planning.asked.mode == Mode::Conformant {
        "leave out `--conformant`, or plan with another planner"
    } else {
        "plan with another planner"
    };
    planning.refuse(span, label, help);
}
