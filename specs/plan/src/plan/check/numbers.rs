//! Every number of a plan is finite and in its range, and every list has its length.

use super::{Faults, Plan, instances};

/// What a number may be.
#[derive(Clone, Copy)]
enum Range {
    Positive,
    NotNegative,
    Any,
}

impl Faults {
    fn number(&mut self, place: &str, name: &str, value: f64, range: Range) {
        let (holds, words) = match range {
            Range::Positive => (value > 0.0, "a positive number"),
            Range::NotNegative => (value >= 0.0, "zero or a positive number"),
            Range::Any => (true, "a number"),
        };
        if !holds || !value.is_finite() {
            let place = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
            self.add(place, format!("{value} is not {words}"));
        }
    }

    fn number_if_known(&mut self, place: &str, name: &str, value: Option<f64>, range: Range) {
        if let Some(value) = value {
            self.number(place, name, value, range);
        }
    }
}

pub(super) fn check(plan: &Plan, faults: &mut Faults) {
    use Range::{Any, NotNegative, Positive};
    for (place, i) in instances(plan) {
        let batch = i.batch as usize;
        if i.processes == 0 || batch == 0 {
            faults.add(&place, "it has no process or an empty batch");
        }
        if i.batch_times_ms.len() != batch {
            let found = i.batch_times_ms.len();
            faults
                .add(format!("{place}.batch_times_ms"), format!("{found} times for batches of 1 to {batch}"));
        }
        if !i.batch_energy_j.is_empty() && i.batch_energy_j.len() != batch {
            let found = i.batch_energy_j.len();
            faults.add(
                format!("{place}.batch_energy_j"),
                format!("{found} energies for batches of 1 to {batch}"),
            );
        }
        i.batch_times_ms.iter().for_each(|t| faults.number(&place, "batch_times_ms", *t, Positive));
        i.batch_energy_j.iter().for_each(|e| faults.number(&place, "batch_energy_j", *e, NotNegative));
        faults.number(&place, "max_wait_ms", i.max_wait_ms, NotNegative);
        faults.number(&place, "rate_rps", i.rate_rps, NotNegative);
        faults.number(&place, "capacity_rps", i.capacity_rps, Positive);
        faults.number(&place, "admissible_rps", i.admissible_rps, NotNegative);
        faults.number(&place, "utilisation", i.utilisation, NotNegative);
        faults.number(&place, "predicted_latency_ms", i.predicted_latency_ms, Positive);
        faults.number(&place, "promised_latency_ms", i.promised_latency_ms, Positive);
        faults.number_if_known(&place, "dynamic_power_w", i.dynamic_power_w, NotNegative);
        faults.number_if_known(&place, "mean_dynamic_power_w", i.mean_dynamic_power_w, NotNegative);
        faults.number_if_known(&place, "memory_bytes", i.memory_bytes, NotNegative);
        faults.number(&place, "time_error", i.time_error, NotNegative);
        faults.number(&place, "power_error", i.power_error, NotNegative);
    }
    for (index, gpu) in plan.gpus.iter().enumerate() {
        let place = format!("gpus[{index}]");
        faults.number_if_known(&place, "base_power_w", gpu.base_power_w, NotNegative);
        faults.number_if_known(&place, "mean_power_w", gpu.mean_power_w, NotNegative);
        faults.number_if_known(&place, "power_w", gpu.power_w, NotNegative);
    }
    for (index, unused) in plan.unused.iter().enumerate() {
        faults.number_if_known(&format!("unused[{index}]"), "power_w", unused.power_w, NotNegative);
    }
    for (index, service) in plan.services.iter().enumerate() {
        let place = format!("services[{index}]");
        faults.number(&place, "rate_rps", service.rate_rps, NotNegative);
        faults.number(&place, "served_rps", service.served_rps, NotNegative);
        faults.number(&place, "promised_latency_ms", service.promised_latency_ms, Positive);
        faults.number_if_known(&place, "predicted_latency_ms", service.predicted_latency_ms, Positive);
        if !(service.percentile > 0.0 && service.percentile < 1.0) {
            faults
                .add(format!("{place}.percentile"), format!("{} is not between 0 and 1", service.percentile));
        }
    }
    for (index, limit) in plan.limits.iter().enumerate() {
        faults.number(&format!("limits[{index}]"), "at_most", limit.at_most, NotNegative);
    }
    let a = &plan.accounting;
    faults.number("accounting", "horizon_s", a.horizon_s, Positive);
    faults.number_if_known(
        "accounting",
        "carbon_intensity_g_per_kwh",
        a.carbon_intensity_g_per_kwh,
        NotNegative,
    );
    faults.number("accounting", "embodied_g_per_gpu_hour", a.embodied_g_per_gpu_hour, NotNegative);
    for (node, pue) in &a.pue {
        if !(*pue >= 1.0 && pue.is_finite()) {
            faults.add(format!("accounting.pue.{node}"), format!("{pue} is below 1 or not a number"));
        }
    }
    for (node, price) in &a.price_per_gpu_hour {
        faults.number("accounting.price_per_gpu_hour", node, *price, NotNegative);
    }
    let m = &plan.metrics;
    faults.number_if_known("metrics", "power_w", m.power_w, NotNegative);
    faults.number_if_known("metrics", "mean_power_w", m.mean_power_w, NotNegative);
    faults.number_if_known("metrics", "energy_j_per_hour", m.energy_j_per_hour, NotNegative);
    faults.number_if_known("metrics", "carbon_g_per_hour", m.carbon_g_per_hour, NotNegative);
    faults.number_if_known("metrics", "cost_per_hour", m.cost_per_hour, NotNegative);
    let o = &plan.objective;
    faults.number_if_known("objective", "value", o.value, NotNegative);
    // A bound below zero is useless, not wrong.
    faults.number_if_known("objective", "bound", o.bound, Any);
    faults.number_if_known("objective", "gap", o.gap, NotNegative);
}
