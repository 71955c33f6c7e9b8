//! An honest plan passes; each way of being wrong is found.

use super::*;
use crate::fixture;
use crate::operate::operate;
use ent_lang::program::{Limit, Pin, Replicas, Spread};
use ent_plan::diagnostic::{Located, Sources, Span};
use ent_plan::plan::{LatencyRule, Metric, Metrics, sample};
use ent_plan::units::Megahertz;

/// Batches of 2 take 20 ms, of 4 32 ms, on three slices at 1050 MHz.
const ROWS: &str = "\
model,batch_size,mig_slices,frequency,avg_power_draw,dynamic_power_draw,throughput,latency
a,1,3,1050,70,20,66.66666666666667,15
a,2,3,1050,74,24,100,20
a,4,3,1050,80,30,125,32
b,1,4,1050,65,15,100,10
b,2,4,1050,70,20,133.33333333333334,15
";

fn located<T>(value: T) -> Located<T> {
    Located::new(value, Span::default())
}

fn world() -> (Program, PerformanceSet) {
    let program = fixture::program(&["a", "b"]);
    let set = PerformanceSet::from_table(&program, "t.csv", ROWS.as_bytes(), &mut Sources::default());
    assert!(
        set.diagnostics.iter().all(|d| d.severity != ent_plan::diagnostic::Severity::Error),
        "{:?}",
        set.diagnostics
    );
    (program, set.value)
}

/// One board, `a` on `3g.40gb` in batches of 4 and `b` on `4g.40gb` in batches of 2.
fn plan(program: &Program, set: &PerformanceSet, rule: LatencyRule) -> Plan {
    let board = &program.boards[0];
    let mut plan = sample::plan();
    let instances: Vec<Instance> = [0, 1]
        .into_iter()
        .map(|service| {
            let (profile, batch) = if service == 0 { ("3g.40gb", 4) } else { ("4g.40gb", 2) };
            let declared = &program.services[service];
            let key = PointKey {
                profile: board.profiles.iter().position(|p| p.name == profile).unwrap(),
                processes: 1,
                batch,
                clock: Megahertz(1050),
            };
            let prediction = set.get(service, 0).unwrap().predict(board, key).unwrap();
            let rate = declared.rate.value.get();
            let at = operate(&prediction, 1, promise(declared, rule), rate);
            Instance {
                profile: Some(profile.to_owned()),
                start: Some(0),
                size: Some(4),
                mps_percent: None,
                service: declared.name.value.clone(),
                model: program.models[service].name.value.clone(),
                processes: 1,
                batch,
                max_wait_ms: at.max_wait * 1e3,
                batch_times_ms: prediction.batch_times.iter().map(|t| t.get() * 1e3).collect(),
                batch_energy_j: at.batch_energy,
                rate_rps: rate,
                capacity_rps: at.capacity,
                admissible_rps: at.admissible,
                utilisation: at.utilisation,
                predicted_latency_ms: at.predicted_latency * 1e3,
                promised_latency_ms: declared.slo.value.bound.get() * 1e3,
                dynamic_power_w: at.dynamic_power,
                mean_dynamic_power_w: at.mean_dynamic_power,
                memory_bytes: None,
                time_error: 0.0,
                power_error: 0.0,
                source: "table".to_owned(),
            }
        })
        .collect();
    plan.latency_rule = rule;
    plan.services = instances
        .iter()
        .map(|i| ent_plan::plan::Service {
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
    plan.boards = vec![board.clone()];
    let gpu = &mut plan.gpus[0];
    gpu.node = "rack".to_owned();
    gpu.board = board.id.clone();
    gpu.sm_clock_mhz = Megahertz(1050);
    gpu.base_power_w = Some(50.0);
    gpu.power_w = Some(50.0 + instances.iter().filter_map(|i| i.dynamic_power_w).sum::<f64>());
    gpu.mean_power_w = Some(50.0 + instances.iter().filter_map(|i| i.mean_dynamic_power_w).sum::<f64>());
    gpu.instances = instances;
    plan.unused[0].node = "rack".to_owned();
    plan.unused[0].board = board.id.clone();
    plan.unused[0].is_off = false;
    plan.unused[0].power_w = Some(44.0);
    plan.accounting = ent_plan::plan::Accounting {
        horizon_s: program.objective.horizon.get(),
        ..ent_plan::plan::Accounting::default()
    };
    plan.metrics = Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
    plan
}

/// The faults of a plan after a change to it.
fn faults(change: impl Fn(&mut Plan)) -> Vec<Fault> {
    let (program, set) = world();
    let mut plan = plan(&program, &set, LatencyRule::Queueing);
    change(&mut plan);
    verify(&program, &set, &plan)
}

/// The faults of the honest plan under a changed program.
fn faults_under(change: impl Fn(&mut Program)) -> Vec<Fault> {
    let (mut program, set) = world();
    let plan = plan(&program, &set, LatencyRule::Queueing);
    change(&mut program);
    verify(&program, &set, &plan)
}

#[test]
fn an_honest_plan_has_no_faults_under_either_rule() {
    let (program, set) = world();
    for rule in [LatencyRule::Queueing, LatencyRule::Execution] {
        let plan = plan(&program, &set, rule);
        assert_eq!(verify(&program, &set, &plan), Vec::new());
    }
}

#[test]
fn every_number_is_recomputed() {
    type Change = fn(&mut Instance);
    let changes: [(&str, Change); 10] = [
        ("batch_times_ms[1]", |i| i.batch_times_ms[1] *= 0.99),
        ("batch_energy_j[0]", |i| i.batch_energy_j[0] *= 0.99),
        ("capacity_rps", |i| i.capacity_rps *= 1.01),
        ("admissible_rps", |i| i.admissible_rps *= 1.01),
        ("utilisation", |i| i.utilisation *= 1.01),
        ("predicted_latency_ms", |i| i.predicted_latency_ms *= 0.9),
        ("dynamic_power_w", |i| i.dynamic_power_w = Some(1.0)),
        ("mean_dynamic_power_w", |i| i.mean_dynamic_power_w = None),
        ("promised_latency_ms", |i| i.promised_latency_ms *= 2.0),
        ("source", |i| i.source = "fitted".to_owned()),
    ];
    for (what, change) in changes {
        let found = faults(|plan| change(&mut plan.gpus[0].instances[0]));
        let place = format!("gpus[0].instances[0].{what}");
        assert!(found.iter().any(|f| f.place == place), "{what}: {found:?}");
    }
}

#[test]
fn a_broken_promise_is_found_whatever_the_plan_says() {
    let found = faults_under(|program| program.services[0].slo.value.bound.0 = 0.04);
    assert!(found.iter().any(|f| f.message.contains("promises 40 ms")), "{found:?}");
    let found = faults(|plan| plan.gpus[0].instances[0].rate_rps = 124.9);
    assert!(found.iter().any(|f| f.message.contains("promise holds up to")), "{found:?}");
}

#[test]
fn too_little_for_a_service_is_found() {
    let found = faults_under(|program| program.services[1].rate.value.0 = 11.0);
    assert!(found.iter().any(|f| f.place == "services[1]" && f.message.contains("of 11")), "{found:?}");
}

#[test]
fn requirements_are_checked() {
    type Change = fn(&mut Program);
    let changes: [(&str, Change); 7] = [
        ("wants 2 to 3", |p| p.services[0].replicas = Some(located(Replicas { min: 2, max: 3 }))),
        ("another batch", |p| {
            p.services[0].pin = Some(located(Pin { batch: Some(located(2)), ..Pin::default() }));
        }),
        ("another profile", |p| {
            p.services[0].pin =
                Some(located(Pin { profile: Some(located("1g.10gb".to_owned())), ..Pin::default() }));
        }),
        ("another clock", |p| {
            p.services[0].pin = Some(located(Pin { clock: Some(located(Megahertz(600))), ..Pin::default() }));
        }),
        ("boards to itself", |p| p.services[0].isolate = Some(located(true))),
        ("above the program's limit", |p| {
            p.objective.limits = vec![Limit { metric: Metric::Power, at_most: 60.0, span: Span::default() }];
        }),
        ("may not use", |p| p.nodes[0].clocks = Some(located(vec![Megahertz(600)]))),
    ];
    for (what, change) in changes {
        let found = faults_under(change);
        assert!(found.iter().any(|f| f.message.contains(what)), "{what}: {found:?}");
    }
}

#[test]
fn replicas_that_must_be_apart_are_not_together() {
    let (mut program, set) = world();
    program.services[0].spread = Some(located(Spread::Gpu));
    let mut plan = plan(&program, &set, LatencyRule::Queueing);
    let twin = plan.gpus[0].instances[0].clone();
    plan.gpus[0].instances[1] = twin;
    let found = verify(&program, &set, &plan);
    assert!(found.iter().any(|f| f.message.contains("on the same board")), "{found:?}");
}

#[test]
fn points_without_data_and_strangers_are_found() {
    let found = faults(|plan| plan.gpus[0].instances[0].batch = 8);
    assert!(found.iter().any(|f| f.message.contains("no performance data")), "{found:?}");
    let found = faults(|plan| plan.gpus[0].instances[0].service = "nobody".to_owned());
    assert!(found.iter().any(|f| f.message.contains("no service `nobody`")), "{found:?}");
    let found = faults(|plan| plan.gpus[0].node = "attic".to_owned());
    assert!(found.iter().any(|f| f.message.contains("no node `attic`")), "{found:?}");
}

#[test]
fn metrics_and_leftover_boards_are_the_programs() {
    let found = faults(|plan| plan.metrics.power_w = Some(1.0));
    assert!(found.iter().any(|f| f.place == "metrics.power_w"), "{found:?}");
    let found = faults(|plan| plan.unused[0].is_off = true);
    assert!(found.iter().any(|f| f.place == "unused[0].is_off"), "{found:?}");
    let found = faults(|plan| plan.unused.clear());
    assert!(found.iter().any(|f| f.place == "unused"), "{found:?}");
}

#[test]
fn a_plan_that_is_none_has_nothing_to_verify() {
    let found = faults(|plan| {
        plan.status = Status::Infeasible;
        plan.gpus.clear();
    });
    assert_eq!(found, Vec::new());
}
