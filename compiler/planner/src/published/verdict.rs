//! What a published planner's plan misses: rates, promises, places.

use super::site::limitation;
use crate::formulate::points::{percentile_word, time};
use ent_lang::Program;
use ent_plan::diagnostic::Diagnostic;
use ent_plan::plan::{Gpu, Plan, Sharing};

/// Relative tolerance of rates and promises.
const TOLERANCE: f64 = 1e-9;

/// One diagnostic for each service that the plan does not carry, each promise it breaks, and each board
/// that cannot be laid out.
pub(super) fn misses(program: &Program, plan: &Plan) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for (asked, got) in program.services.iter().zip(&plan.services) {
        let name = &asked.name.value;
        if got.replicas == 0 {
            all.push(
                limitation(&plan.planner, asked.name.span, &format!("leaves `{name}` out"))
                    .label("no instance carries it"),
            );
            continue;
        }
        if got.served_rps < got.rate_rps * (1.0 - TOLERANCE) {
            all.push(
                limitation(&plan.planner, asked.rate.span, &format!("does not carry all of `{name}`"))
                    .label(format!("{} of {} req/s are served", short(got.served_rps), short(got.rate_rps))),
            );
        }
        let predicted = got.predicted_latency_ms.unwrap_or(0.0);
        if predicted > got.promised_latency_ms * (1.0 + TOLERANCE) {
            all.push(
                limitation(&plan.planner, asked.slo.span, &format!("breaks the promise of `{name}`")).label(
                    format!("{} is predicted at {}", percentile_word(got.percentile), time(predicted / 1e3)),
                ),
            );
        }
    }
    for gpu in plan.gpus.iter().filter(|g| g.sharing == Sharing::Mig && !is_legal(plan, g)) {
        let node = program.nodes.iter().find(|n| n.name.value == gpu.node);
        let span = node.map_or_else(Default::default, |n| n.name.span);
        let sizes: Vec<String> = gpu
            .instances
            .iter()
            .map(|i| {
                let profile = i.profile.as_deref().unwrap_or("?");
                i.start.map_or_else(|| profile.to_owned(), |start| format!("{profile} at {start}"))
            })
            .collect();
        all.push(limitation(&plan.planner, span, "cuts a board as MIG does not allow").label(format!(
            "board {} of `{}`: {}",
            gpu.index,
            gpu.node,
            sizes.join(", ")
        )));
    }
    all
}

/// Whether every instance begins where its profile may, and none overlap.
fn is_legal(plan: &Plan, gpu: &Gpu) -> bool {
    let Some(board) = plan.boards.iter().find(|b| b.id == gpu.board) else { return false };
    let mut taken: Vec<(u32, u32)> = Vec::new();
    for instance in &gpu.instances {
        let profile = instance.profile.as_deref().and_then(|p| board.profile(p));
        let Some((profile, start)) = profile.zip(instance.start) else { return false };
        let end = start + profile.n_memory_slices;
        if !profile.starts.contains(&start) || taken.iter().any(|(s, e)| start < *e && *s < end) {
            return false;
        }
        taken.push((start, end));
    }
    board.n_compute_slices()
        >= gpu
            .instances
            .iter()
            .filter_map(|i| board.profile(i.profile.as_deref()?))
            .map(|p| p.n_compute_slices)
            .sum()
}

/// A rate with four significant digits.
fn short(rate: f64) -> String {
    if rate >= 1000.0 {
        return format!("{rate:.0}");
    }
    let decimals = (3 - rate.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    format!("{rate:.decimals$}")
}
