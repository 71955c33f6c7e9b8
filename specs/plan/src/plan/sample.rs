//! A small legal plan, for the tests of everything that takes one.
//!
//! Its numbers are made up and round; only geometry, clock and base power are the catalogue's.

use super::{
    Accounting, FORMAT_VERSION, Gpu, Instance, LatencyRule, Metric, Metrics, Objective, Plan, Service,
    Sharing, Status, Unused, gap,
};
use crate::device::board;
use crate::units::Megahertz;

/// Two services on one of two A100 boards, the other one off: `3g.40gb` at 0 and `2g.20gb` at 4.
#[must_use]
pub fn plan() -> Plan {
    let board = board("a100-80gb-pcie").into_iter().collect::<Vec<_>>();
    let clock = Megahertz(1050);
    let base_power = board.first().and_then(|b| b.base_power.as_ref()).and_then(|b| b.at(clock));
    let instances = vec![
        instance("classify", "3g.40gb", 0, 4, 1, 2, 100.0),
        instance("search", "2g.20gb", 4, 2, 2, 1, 25.0),
    ];
    let dynamic: Option<f64> = instances.iter().map(|i| i.dynamic_power_w).sum();
    let mean_dynamic: Option<f64> = instances.iter().map(|i| i.mean_dynamic_power_w).sum();
    let base_power_w = base_power.map(crate::units::Watts::get);
    let gpus = vec![Gpu {
        node: "box".to_owned(),
        index: 0,
        uuid: None,
        board: "a100-80gb-pcie".to_owned(),
        sharing: Sharing::Mig,
        sm_clock_mhz: clock,
        base_power_w,
        mean_power_w: base_power_w.zip(mean_dynamic).map(|(base, dynamic)| base + dynamic),
        power_w: base_power_w.zip(dynamic).map(|(base, dynamic)| base + dynamic),
        instances,
    }];
    let unused = vec![Unused {
        node: "box".to_owned(),
        board: "a100-80gb-pcie".to_owned(),
        count: 1,
        is_off: true,
        power_w: Some(0.0),
    }];
    let accounting = Accounting { horizon_s: 3600.0, ..Accounting::default() };
    let metrics = Metrics::of(&gpus, &unused, &accounting);
    let value = metrics.value(Metric::Energy, accounting.horizon_s);
    let bound = value.map(|v| v * 0.999);
    let services = gpus
        .iter()
        .flat_map(|gpu| &gpu.instances)
        .map(|i| Service {
            name: i.service.clone(),
            rate_rps: i.rate_rps,
            served_rps: i.rate_rps,
            percentile: 0.99,
            arrivals: "poisson".to_owned(),
            predicted_latency_ms: Some(i.predicted_latency_ms),
            promised_latency_ms: i.promised_latency_ms,
            replicas: 1,
        })
        .collect();
    Plan {
        format_version: FORMAT_VERSION.to_owned(),
        entc_version: env!("CARGO_PKG_VERSION").to_owned(),
        program: "sample.ent".to_owned(),
        params: std::collections::BTreeMap::new(),
        status: Status::WithinGap,
        stopped_by: None,
        objective: Objective {
            metric: Metric::Energy,
            value,
            bound,
            gap: value.zip(bound).map(|(value, bound)| gap(value, bound)),
        },
        planner: "optimal".to_owned(),
        latency_rule: LatencyRule::Execution,
        metrics,
        limits: Vec::new(),
        accounting,
        boards: board,
        gpus,
        unused,
        services,
        models: Vec::new(),
        assumptions: Vec::new(),
        diagnostics: Vec::new(),
        machine: None,
        checksum: None,
    }
}

/// Batches take 10 ms (one request) and 15 ms (two). `classify` draws 40 W busy, `search` 20 W.
fn instance(
    service: &str,
    profile: &str,
    start: u32,
    size: u32,
    processes: u32,
    batch: u32,
    rate: f64,
) -> Instance {
    let times: Vec<f64> = [10.0, 15.0].into_iter().take(batch as usize).collect();
    let energies = if batch == 2 { vec![0.4, 0.6] } else { vec![0.1] };
    let last = times.len() - 1;
    let capacity = f64::from(processes) * f64::from(batch) / (times[last] / 1e3);
    let dynamic = f64::from(processes) * energies[last] / (times[last] / 1e3);
    let utilisation = rate / capacity;
    Instance {
        profile: Some(profile.to_owned()),
        start: Some(start),
        size: Some(size),
        mps_percent: None,
        service: service.to_owned(),
        model: format!("{service}-model"),
        processes,
        batch,
        max_wait_ms: 0.0,
        batch_times_ms: times,
        batch_energy_j: energies,
        rate_rps: rate,
        capacity_rps: capacity,
        admissible_rps: capacity,
        utilisation,
        predicted_latency_ms: 16.0,
        promised_latency_ms: 40.0,
        dynamic_power_w: Some(dynamic),
        mean_dynamic_power_w: Some(dynamic * utilisation),
        memory_bytes: Some(8e9),
        time_error: 0.0,
        power_error: 0.0,
        source: "table".to_owned(),
    }
}
