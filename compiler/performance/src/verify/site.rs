//! The site's facts, the boards left over, the metrics and the program's limits on them.

use super::{Faults, at_most};
use ent_lang::Program;
use ent_lang::program::{Intensity, UnusedBoards};
use ent_plan::plan::{Accounting, Metrics, Plan, Unused};

pub(super) fn check(program: &Program, plan: &Plan, faults: &mut Faults) {
    let expected = accounting(program);
    let stated = &plan.accounting;
    faults.equal("accounting.horizon_s", stated.horizon_s, expected.horizon_s);
    faults.equal(
        "accounting.embodied_g_per_gpu_hour",
        stated.embodied_g_per_gpu_hour,
        expected.embodied_g_per_gpu_hour,
    );
    faults.equal_if_known(
        "accounting.carbon_intensity_g_per_kwh",
        stated.carbon_intensity_g_per_kwh,
        expected.carbon_intensity_g_per_kwh,
    );
    for node in &program.nodes {
        let name = &node.name.value;
        let pue = stated.pue.get(name).copied().unwrap_or(1.0);
        faults.equal(format!("accounting.pue.{name}"), pue, node.pue);
        let price = stated.price_per_gpu_hour.get(name).copied();
        let expected = node.price.as_ref().map(|p| p.value.get());
        faults.equal_if_known(format!("accounting.price_per_gpu_hour.{name}"), price, expected);
    }
    let unused = unused(program, plan, faults);
    // From the boards' own numbers, which are verified one by one, and the program's own facts.
    let metrics = Metrics::of(&plan.gpus, &unused, &expected);
    for (what, stated, computed) in [
        ("power_w", plan.metrics.power_w, metrics.power_w),
        ("mean_power_w", plan.metrics.mean_power_w, metrics.mean_power_w),
        ("energy_j_per_hour", plan.metrics.energy_j_per_hour, metrics.energy_j_per_hour),
        ("carbon_g_per_hour", plan.metrics.carbon_g_per_hour, metrics.carbon_g_per_hour),
        ("cost_per_hour", plan.metrics.cost_per_hour, metrics.cost_per_hour),
        ("gpus", Some(f64::from(plan.metrics.gpus)), Some(f64::from(metrics.gpus))),
    ] {
        faults.equal_if_known(format!("metrics.{what}"), stated, computed);
    }
    for (g, gpu) in plan.gpus.iter().enumerate() {
        let add = |own: Option<f64>| gpu.base_power_w.zip(own).map(|(base, own)| base + own);
        let busy = add(gpu.instances.iter().map(|i| i.dynamic_power_w).sum());
        let mean = add(gpu.instances.iter().map(|i| i.mean_dynamic_power_w).sum());
        faults.equal_if_known(format!("gpus[{g}].power_w"), gpu.power_w, busy);
        faults.equal_if_known(format!("gpus[{g}].mean_power_w"), gpu.mean_power_w, mean);
    }
    for limit in &program.objective.limits {
        let word = limit.metric.word();
        match metrics.value(limit.metric, expected.horizon_s) {
            Some(value) if at_most(value, limit.at_most) => {}
            Some(value) => {
                faults.add(
                    "limits",
                    format!("{word} is {value}, above the program's limit of {}", limit.at_most),
                );
            }
            None => {
                faults.add("limits", format!("{word} cannot be known, so neither the program's limit on it"))
            }
        }
    }
}

/// The boards that carry nothing, by the program; the plan must say the same.
fn unused(program: &Program, plan: &Plan, faults: &mut Faults) -> Vec<Unused> {
    let mut expected = Vec::new();
    for node in &program.nodes {
        let name = &node.name.value;
        let used = plan.gpus.iter().filter(|g| g.node == *name).count();
        let count = node.count.value.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX));
        let board = program.boards.get(node.board.value);
        let is_off = node.unused == UnusedBoards::Off;
        let lowest = board.and_then(|b| b.base_power.as_ref()).and_then(|b| b.points.first());
        let power_w = if is_off { Some(0.0) } else { lowest.map(|(_, watts)| watts.get()) };
        let stated: u32 = plan.unused.iter().filter(|u| u.node == *name).map(|u| u.count).sum();
        if stated != count {
            faults
                .add("unused", format!("node `{name}` has {count} boards that carry nothing, not {stated}"));
        }
        for (index, unused) in plan.unused.iter().enumerate().filter(|(_, u)| u.node == *name) {
            if unused.is_off != is_off {
                faults.add(format!("unused[{index}].is_off"), format!("node `{name}` says otherwise"));
            }
            faults.equal_if_known(format!("unused[{index}].power_w"), unused.power_w, power_w);
        }
        let board = board.map_or_else(String::new, |b| b.id.clone());
        expected.push(Unused { node: name.clone(), board, count, is_off, power_w });
    }
    for (index, unused) in plan.unused.iter().enumerate() {
        if !program.nodes.iter().any(|n| n.name.value == unused.node) {
            faults.add(format!("unused[{index}].node"), format!("the program has no node `{}`", unused.node));
        }
    }
    expected
}

/// The site's facts as the program states them.
fn accounting(program: &Program) -> Accounting {
    let embodied = program.carbon.embodied.as_ref().map(|e| e.value);
    Accounting {
        horizon_s: program.objective.horizon.get(),
        carbon_intensity_g_per_kwh: intensity(program),
        embodied_g_per_gpu_hour: embodied.map_or(0.0, |e| e.per_gpu.get() * 3600.0 / e.lifetime.get()),
        pue: program.nodes.iter().map(|n| (n.name.value.clone(), n.pue)).collect(),
        price_per_gpu_hour: program
            .nodes
            .iter()
            .filter_map(|n| Some((n.name.value.clone(), n.price.as_ref()?.value.get())))
            .collect(),
    }
}

/// Mean carbon intensity over the horizon (gCO2/kWh): step by step, the series repeated as needed.
fn intensity(program: &Program) -> Option<f64> {
    match &program.carbon.intensity.as_ref()?.value {
        Intensity::Constant(value) => Some(value.get()),
        Intensity::Series { step, values, .. } => {
            let (step, horizon) = (step.get(), program.objective.horizon.get());
            if values.is_empty() || step.is_nan() || step <= 0.0 {
                return None;
            }
            // Whole rounds of the series first: a horizon may be many times as long.
            let round = step * values.len() as f64;
            let rounds = (horizon / round).floor();
            let mut sum = rounds * step * values.iter().map(|v| v.get()).sum::<f64>();
            let mut left = horizon - rounds * round;
            for value in values {
                let part = left.clamp(0.0, step);
                sum += part * value.get();
                left -= part;
            }
            Some(sum / horizon)
        }
    }
}
