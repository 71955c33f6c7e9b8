//! What services ask of a plan beside latency: rate, replicas, pins, company and distance.

use super::{Faults, at_most, close};
use crate::simulate::arrivals_from_words;
use ent_lang::Program;
use ent_lang::program::{Pin, Service, Spread};
use ent_plan::plan::{Gpu, Instance, Plan};
use std::collections::BTreeMap;

/// A service's instances with their places and boards.
type Own<'a> = [(String, &'a Gpu, &'a Instance)];

pub(super) fn check(program: &Program, plan: &Plan, faults: &mut Faults) {
    let mut of_service: BTreeMap<&str, Vec<(String, &Gpu, &Instance)>> = BTreeMap::new();
    for (g, gpu) in plan.gpus.iter().enumerate() {
        for (i, instance) in gpu.instances.iter().enumerate() {
            let place = format!("gpus[{g}].instances[{i}]");
            of_service.entry(&instance.service).or_default().push((place, gpu, instance));
        }
    }
    for (index, service) in program.services.iter().enumerate() {
        let name = &service.name.value;
        let own = of_service.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        stated(service, plan, index, faults);
        served(service, own, index, faults);
        if let Some(pin) = &service.pin {
            own.iter()
                .for_each(|(place, gpu, instance)| pinned(name, &pin.value, gpu, instance, place, faults));
        }
        if let Some(spread) = &service.spread {
            apart(name, spread.value, own, faults);
        }
        if service.isolate.as_ref().is_some_and(|i| i.value) {
            for (place, gpu, _) in own {
                if gpu.instances.iter().any(|other| other.service != *name) {
                    faults.add(place, format!("service `{name}` is to have its boards to itself"));
                }
            }
        }
    }
    if plan.services.len() != program.services.len() {
        let message =
            format!("{} are listed; the program has {}", plan.services.len(), program.services.len());
        faults.add("services", message);
    }
}

/// The plan's own record of the service.
fn stated(service: &Service, plan: &Plan, index: usize, faults: &mut Faults) {
    let place = format!("services[{index}]");
    let Some(stated) = plan.services.get(index).filter(|s| s.name == service.name.value) else {
        faults.add(place, format!("it is not `{}`, as in the program", service.name.value));
        return;
    };
    faults.equal(format!("{place}.rate_rps"), stated.rate_rps, service.rate.value.get());
    faults.equal(format!("{place}.percentile"), stated.percentile, service.slo.value.percentile);
    let bound = service.slo.value.bound.get() * 1e3;
    faults.equal(format!("{place}.promised_latency_ms"), stated.promised_latency_ms, bound);
    let kind = |a: &ent_lang::program::Arrivals| std::mem::discriminant(a);
    let is_same = match (arrivals_from_words(&stated.arrivals), &service.arrivals.value) {
        (
            Some(ent_lang::program::Arrivals::Gamma { cv: stated }),
            ent_lang::program::Arrivals::Gamma { cv },
        ) => close(stated, *cv),
        (Some(stated), arrivals) => kind(&stated) == kind(arrivals),
        (None, _) => false,
    };
    if !is_same {
        faults.add(format!("{place}.arrivals"), format!("`{}` is not how requests arrive", stated.arrivals));
    }
}

/// Rate and replicas.
fn served(service: &Service, own: &Own<'_>, index: usize, faults: &mut Faults) {
    let name = &service.name.value;
    // The sum of nothing is -0.
    let served = own.iter().map(|(_, _, i)| i.rate_rps).sum::<f64>() + 0.0;
    let asked = service.rate.value.get();
    if !at_most(asked, served) {
        faults.add(format!("services[{index}]"), format!("`{name}` gets {served} req/s of {asked}"));
    }
    if let Some(replicas) = &service.replicas {
        let (min, max) = (replicas.value.min, replicas.value.max);
        if own.len() < min as usize || own.len() > max as usize {
            let message = format!("`{name}` has {}, the program wants {min} to {max}", own.len());
            faults.add(format!("services[{index}].replicas"), message);
        }
    }
}

fn pinned(name: &str, pin: &Pin, gpu: &Gpu, instance: &Instance, place: &str, faults: &mut Faults) {
    let mut unless = |holds: bool, what: &str, is: String| {
        if !holds {
            faults.add(place, format!("service `{name}` is pinned to another {what} than {is}"));
        }
    };
    if let Some(profile) = &pin.profile {
        let is = instance.profile.clone().unwrap_or_else(|| "none".to_owned());
        unless(instance.profile.as_deref() == Some(profile.value.as_str()), "profile", is);
    }
    if let Some(batch) = &pin.batch {
        unless(instance.batch == batch.value, "batch", instance.batch.to_string());
    }
    if let Some(clock) = &pin.clock {
        unless(gpu.sm_clock_mhz == clock.value, "clock", gpu.sm_clock_mhz.to_string());
    }
    if let Some(processes) = &pin.processes {
        unless(instance.processes == processes.value, "number of processes", instance.processes.to_string());
    }
    if let Some(node) = &pin.node {
        unless(gpu.node == node.value, "node", gpu.node.clone());
    }
}

/// No two replicas on one board, or node.
fn apart(name: &str, spread: Spread, own: &Own<'_>, faults: &mut Faults) {
    let mut seen: BTreeMap<(&str, Option<u32>), &str> = BTreeMap::new();
    for (place, gpu, _) in own {
        let (at, what) = match spread {
            Spread::Gpu => ((gpu.node.as_str(), Some(gpu.index)), "board"),
            Spread::Node => ((gpu.node.as_str(), None), "node"),
        };
        if let Some(other) = seen.insert(at, place) {
            faults.add(place, format!("service `{name}` is to be spread, but {other} is on the same {what}"));
        }
    }
}
