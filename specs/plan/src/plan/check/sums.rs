//! Power of boards, metrics, limits, and what is claimed about the objective.

use super::{Faults, OPTIMAL_GAP, Plan, at_most};
use crate::plan::{Metrics, Status, gap};

pub(super) fn check(plan: &Plan, faults: &mut Faults) {
    boards(plan, faults);
    let metrics = Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
    let stated = &plan.metrics;
    for (what, stated, computed) in [
        ("power_w", stated.power_w, metrics.power_w),
        ("mean_power_w", stated.mean_power_w, metrics.mean_power_w),
        ("energy_j_per_hour", stated.energy_j_per_hour, metrics.energy_j_per_hour),
        ("carbon_g_per_hour", stated.carbon_g_per_hour, metrics.carbon_g_per_hour),
        ("cost_per_hour", stated.cost_per_hour, metrics.cost_per_hour),
        ("gpus", Some(f64::from(stated.gpus)), Some(f64::from(metrics.gpus))),
    ] {
        faults.equal_if_known(format!("metrics.{what}"), &format!("`{what}`"), stated, computed);
    }
    for (index, limit) in plan.limits.iter().enumerate() {
        let place = format!("limits[{index}]");
        match metrics.value(limit.metric, plan.accounting.horizon_s) {
            Some(value) if at_most(value, limit.at_most) => {}
            Some(value) => {
                let (word, limit) = (limit.metric.word(), limit.at_most);
                faults.add(place, format!("{word} is {value}, above the limit of {limit}"));
            }
            None => {
                faults.add(place, format!("{} cannot be known, so neither its limit", limit.metric.word()))
            }
        }
    }
    objective(plan, &metrics, faults);
}

/// Power of used boards is base plus dynamic; of unused ones nothing, or base at the lowest clock.
fn boards(plan: &Plan, faults: &mut Faults) {
    let add = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    for (index, gpu) in plan.gpus.iter().enumerate() {
        let place = format!("gpus[{index}]");
        let busy = add(gpu.base_power_w, gpu.instances.iter().map(|i| i.dynamic_power_w).sum());
        let mean = add(gpu.base_power_w, gpu.instances.iter().map(|i| i.mean_dynamic_power_w).sum());
        faults.equal_if_known(format!("{place}.power_w"), "its power", gpu.power_w, busy);
        faults.equal_if_known(format!("{place}.mean_power_w"), "its mean power", gpu.mean_power_w, mean);
    }
    for (index, unused) in plan.unused.iter().enumerate() {
        let place = format!("unused[{index}].power_w");
        let board = plan.boards.iter().find(|b| b.id == unused.board);
        let lowest = board.and_then(|b| b.base_power.as_ref()).and_then(|b| b.points.first());
        let power = if unused.is_off { Some(0.0) } else { lowest.map(|(_, watts)| watts.get()) };
        faults.equal_if_known(place, "the power of a board without work", unused.power_w, power);
    }
}

/// The value is the metric's; the bound does not contradict it; gap and status say what they show.
fn objective(plan: &Plan, metrics: &Metrics, faults: &mut Faults) {
    let objective = &plan.objective;
    let computed = metrics.value(objective.metric, plan.accounting.horizon_s);
    let Some(value) = objective.value.filter(|_| computed.is_some()) else {
        faults.add("objective.value", format!("{} of this plan cannot be known", objective.metric.word()));
        return;
    };
    faults.equal_if_known("objective.value", objective.metric.word(), Some(value), computed);
    let distance = objective.bound.map(|bound| gap(value, bound));
    if let Some(bound) = objective.bound
        && bound > value + OPTIMAL_GAP * value.abs().max(1.0)
    {
        faults
            .add("objective.bound", format!("the bound {bound} is above the value {value}: it is no bound"));
    }
    match (objective.gap, distance.filter(|d| d.is_finite())) {
        // Value and bound are often equal but for the last digits, and so is their difference.
        (Some(stated), Some(computed)) if (stated - computed).abs() <= 1e-9 * computed.max(1.0) => {}
        (None, None) => {}
        (Some(stated), computed) => {
            let computed = computed.map_or("unknown".to_owned(), |gap| gap.to_string());
            faults.add("objective.gap", format!("the gap is {stated}, but {computed} by value and bound"));
        }
        (None, Some(computed)) => faults.add("objective.gap", format!("the gap is absent, but {computed}")),
    }
    let is_proven = distance.is_some_and(|d| d <= OPTIMAL_GAP);
    if plan.status == Status::Optimal && !is_proven {
        faults.add("status", "it is called optimal without a bound that shows it");
    }
    if plan.status == Status::WithinGap && distance.is_none() {
        faults.add("status", "it is called within the gap and has no bound");
    }
}
