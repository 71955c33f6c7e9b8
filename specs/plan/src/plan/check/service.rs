//! Every instance can do what it is asked, and every service gets what it was promised.

use super::{Faults, Plan, at_most, close, instances};
use crate::plan::{Instance, LatencyRule};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(plan: &Plan, faults: &mut Faults) {
    let names: BTreeSet<&str> = plan.services.iter().map(|s| s.name.as_str()).collect();
    let mut of_service: BTreeMap<&str, Vec<(String, &Instance)>> = BTreeMap::new();
    for (place, instance) in instances(plan) {
        rate(instance, &place, faults);
        latency(instance, plan.latency_rule, &place, faults);
        power(instance, plan.latency_rule, &place, faults);
        if !names.contains(instance.service.as_str()) {
            faults.add(&place, format!("the plan has no service `{}`", instance.service));
        }
        of_service.entry(&instance.service).or_default().push((place, instance));
    }
    let mut seen = BTreeSet::new();
    for (index, service) in plan.services.iter().enumerate() {
        let place = format!("services[{index}]");
        if !seen.insert(&service.name) {
            faults.add(&place, format!("service `{}` is there twice", service.name));
        }
        let own = of_service.get(service.name.as_str()).map_or(&[][..], Vec::as_slice);
        // The sum of nothing is -0.
        let served = own.iter().map(|(_, i)| i.rate_rps).sum::<f64>() + 0.0;
        faults.equal(format!("{place}.served_rps"), "the served rate", service.served_rps, served);
        if !at_most(service.rate_rps, served) {
            let message = format!("{served} req/s are served of {} asked for", service.rate_rps);
            faults.add(&place, message);
        }
        if service.replicas as usize != own.len() {
            let message = format!("{} replicas are stated, {} are there", service.replicas, own.len());
            faults.add(format!("{place}.replicas"), message);
        }
        let worst = own.iter().map(|(_, i)| i.predicted_latency_ms).reduce(f64::max);
        let stated = service.predicted_latency_ms;
        faults.equal_if_known(format!("{place}.predicted_latency_ms"), "the worst latency", stated, worst);
        for (instance_place, instance) in own {
            if !close(instance.promised_latency_ms, service.promised_latency_ms) {
                let message = format!("service `{}` promises another latency", service.name);
                faults.add(format!("{instance_place}.promised_latency_ms"), message);
            }
        }
    }
}

/// Capacity by its batch time, utilisation by its capacity, no more than is admissible.
fn rate(instance: &Instance, place: &str, faults: &mut Faults) {
    let full_batch_s = instance.batch_times_ms.last().copied().unwrap_or(f64::INFINITY) / 1e3;
    let capacity = f64::from(instance.processes) * f64::from(instance.batch) / full_batch_s;
    faults.equal(format!("{place}.capacity_rps"), "the capacity", instance.capacity_rps, capacity);
    let utilisation = instance.rate_rps / capacity;
    faults.equal(format!("{place}.utilisation"), "the utilisation", instance.utilisation, utilisation);
    if !at_most(instance.admissible_rps, capacity) {
        let admissible = instance.admissible_rps;
        faults.add(format!("{place}.admissible_rps"), format!("{admissible} req/s is above the capacity"));
    }
    if !at_most(instance.rate_rps, instance.admissible_rps) {
        let (rate, admissible) = (instance.rate_rps, instance.admissible_rps);
        faults.add(place, format!("it is given {rate} req/s; its promise holds up to {admissible}"));
    }
}

fn latency(instance: &Instance, rule: LatencyRule, place: &str, faults: &mut Faults) {
    let (predicted, promised) = (instance.predicted_latency_ms, instance.promised_latency_ms);
    if !at_most(predicted, promised) {
        faults.add(
            place,
            format!("its predicted latency of {predicted} ms is above the promised {promised} ms"),
        );
    }
    if rule == LatencyRule::Queueing {
        // A request waits and is then part of some batch: no latency is below the shortest batch's time.
        let shortest = instance.batch_times_ms.iter().copied().fold(f64::INFINITY, f64::min);
        if !at_most(shortest, predicted) {
            let message = format!("{predicted} ms is less than its shortest batch takes");
            faults.add(format!("{place}.predicted_latency_ms"), message);
        }
        if !at_most(instance.max_wait_ms, promised) {
            faults.add(format!("{place}.max_wait_ms"), "a request may wait longer than its promise");
        }
    }
}

/// Dynamic power by the energy of full batches; mean dynamic power by the energy of the requests served.
fn power(instance: &Instance, rule: LatencyRule, place: &str, faults: &mut Faults) {
    let full = instance.batch_energy_j.last().zip(instance.batch_times_ms.last());
    let dynamic = full.map(|(joules, millis)| f64::from(instance.processes) * joules / (millis / 1e3));
    let what = "the dynamic power";
    faults.equal_if_known(format!("{place}.dynamic_power_w"), what, instance.dynamic_power_w, dynamic);
    let place = format!("{place}.mean_dynamic_power_w");
    let Some(mean) = instance.mean_dynamic_power_w else {
        if dynamic.is_some() {
            faults.add(place, "it is absent although energies are there");
        }
        return;
    };
    let Some(dynamic) = dynamic else {
        faults.add(place, format!("it is {mean} W, but no energies are there"));
        return;
    };
    match rule {
        LatencyRule::Execution => {
            faults.equal(place, "the mean dynamic power", mean, dynamic * instance.utilisation);
        }
        LatencyRule::Queueing => {
            // Whatever sizes the batches have, a request costs between the least and the most that any does.
            let each = instance.batch_energy_j.iter().zip(1_u32..).map(|(joules, k)| joules / f64::from(k));
            let (least, most) = each.fold((f64::INFINITY, 0.0_f64), |(a, b), e| (a.min(e), b.max(e)));
            let (least, most) = (least * instance.rate_rps, most * instance.rate_rps);
            if !at_most(least, mean) || !at_most(mean, most) {
                faults
                    .add(place, format!("{mean} W is not between {least} W and {most} W, what batches cost"));
            }
        }
    }
}
