//! Hand-made illegal plans: each breaks one rule, and the check must say which and where.

use super::*;
use crate::device::{Confidence, board};
use crate::plan::{LatencyRule, Limit, Metric, Metrics, Sharing, gap, sample};
use crate::units::{Bytes, Megahertz};

/// The faults of the sample after a change, as text.
fn faults(change: impl FnOnce(&mut Plan)) -> Vec<String> {
    let mut plan = sample::plan();
    change(&mut plan);
    check(plan).err().unwrap_or_default().iter().map(Fault::to_string).collect()
}

/// Makes all sums of a plan follow from its instances again.
fn add_up(plan: &mut Plan) {
    for gpu in &mut plan.gpus {
        let base = gpu.base_power_w.unwrap();
        gpu.power_w = Some(base + gpu.instances.iter().map(|i| i.dynamic_power_w.unwrap()).sum::<f64>());
        gpu.mean_power_w =
            Some(base + gpu.instances.iter().map(|i| i.mean_dynamic_power_w.unwrap()).sum::<f64>());
    }
    for service in &mut plan.services {
        let own = || plan.gpus.iter().flat_map(|g| &g.instances).filter(|i| i.service == service.name);
        service.served_rps = own().map(|i| i.rate_rps).sum();
        service.replicas = u32::try_from(own().count()).unwrap();
        service.predicted_latency_ms = own().map(|i| i.predicted_latency_ms).reduce(f64::max);
    }
    plan.metrics = Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
    let value = plan.metrics.value(plan.objective.metric, plan.accounting.horizon_s);
    plan.objective.value = value;
    plan.objective.bound = value.map(|v| v * 0.99);
    plan.objective.gap = value.map(|v| gap(v, v * 0.99));
}

/// Puts copies of an instance of the sample on its board, by profile and start.
fn cut(plan: &mut Plan, cuts: &[(&str, u32, u32)]) {
    let template = plan.gpus[0].instances[0].clone();
    plan.gpus[0].instances = cuts
        .iter()
        .map(|(profile, start, size)| Instance {
            profile: Some((*profile).to_owned()),
            start: Some(*start),
            size: Some(*size),
            ..template.clone()
        })
        .collect();
    plan.services.truncate(1);
    add_up(plan);
}

#[track_caller]
fn refused(faults: &[String], words: &str) {
    assert!(faults.iter().any(|f| f.contains(words)), "`{words}` is not among {faults:#?}");
}

#[test]
fn the_sample_passes_and_comes_out_as_it_went_in() {
    let plan = sample::plan();
    assert_eq!(check(plan.clone()).unwrap().into_plan(), plan);
}

#[test]
fn a_plan_survives_its_file() {
    let plan = sample::plan();
    let read: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(check(read).unwrap().into_plan(), plan);
}

#[test]
fn legal_cuts_pass() {
    assert_eq!(faults(|p| cut(p, &[("4g.40gb", 0, 4), ("3g.40gb", 4, 4)])), [""; 0]);
    assert_eq!(faults(|p| cut(p, &[("1g.20gb", 0, 2), ("1g.10gb", 4, 1), ("1g.20gb", 6, 2)])), [""; 0]);
}

#[test]
fn two_halves_and_a_seventh_overlap_although_seven_slices_are_enough() {
    let found = faults(|p| cut(p, &[("3g.40gb", 0, 4), ("3g.40gb", 4, 4), ("1g.10gb", 6, 1)]));
    assert_eq!(found, ["gpus[0].instances[2]: it overlaps gpus[0].instances[1]"]);
}

#[test]
fn overlapping_placements_are_refused_each_by_place() {
    let found = faults(|p| cut(p, &[("2g.20gb", 0, 2), ("1g.10gb", 1, 1), ("2g.20gb", 2, 2)]));
    assert_eq!(found, ["gpus[0].instances[1]: it overlaps gpus[0].instances[0]"]);
}

#[test]
fn a_start_or_size_the_profile_does_not_have_is_refused() {
    refused(&faults(|p| cut(p, &[("3g.40gb", 2, 4)])), "`3g.40gb` cannot start at memory slice 2");
    refused(&faults(|p| cut(p, &[("2g.20gb", 6, 2)])), "`2g.20gb` cannot start at memory slice 6");
    refused(&faults(|p| cut(p, &[("1g.10gb", u32::MAX, 1)])), "cannot start");
    refused(&faults(|p| cut(p, &[("3g.40gb", 0, 3)])), "occupies 4 memory slices, not 3");
    refused(&faults(|p| cut(p, &[("3g.71gb", 0, 4)])), "has no profile `3g.71gb`");
    refused(&faults(|p| p.gpus[0].instances[0].start = None), "needs a profile, a start and a size");
}

#[test]
fn counts_and_media_extensions_are_limited() {
    let found = faults(|p| cut(p, &[("1g.10gb+me", 0, 1), ("1g.10gb+me", 1, 1)]));
    refused(&found, "2 of `1g.10gb+me`, at most 1 are possible");
    refused(&found, "media extensions for one instance");
}

#[test]
fn all_media_engines_exclude_ordinary_instances() {
    let found = faults(|p| {
        let rtx = board("rtx-pro-6000-blackwell").unwrap();
        p.gpus[0].board.clone_from(&rtx.id);
        p.boards.push(crate::device::Board { clocks: vec![Megahertz(1050)], ..rtx });
        p.gpus[0].base_power_w = None;
        cut_without_power(p, &[("1g.24gb+me.all", 0, 3), ("1g.24gb", 3, 3)]);
    });
    refused(&found, "`1g.24gb+me.all` and `1g.24gb` exclude each other");
}

/// As [`cut`], on a board without base power.
fn cut_without_power(plan: &mut Plan, cuts: &[(&str, u32, u32)]) {
    plan.gpus[0].base_power_w = Some(0.0);
    cut(plan, cuts);
    plan.gpus[0].base_power_w = None;
    plan.gpus[0].power_w = None;
    plan.gpus[0].mean_power_w = None;
}

#[test]
fn more_memory_than_the_profile_has_is_refused() {
    let found = faults(|p| p.gpus[0].instances[1].memory_bytes = Some(40e9));
    refused(&found, "gpus[0].instances[1].memory_bytes: 40000000000 bytes; `2g.20gb` has");
    // Unknown memory is not enough memory.
    let found = faults(|p| {
        let profile = p.boards[0].profiles.iter_mut().find(|q| q.name == "2g.20gb").unwrap();
        profile.memory = None;
    });
    refused(&found, "the memory of `2g.20gb` is not known");
}

#[test]
fn a_clock_off_the_ladder_is_refused() {
    refused(&faults(|p| p.gpus[0].sm_clock_mhz = Megahertz(1051)), "1051 MHz is not a clock of");
    let found = faults(|p| {
        p.boards[0].clocks.clear();
        p.boards[0].base_power = None;
    });
    refused(&found, "nothing says that `a100-80gb-pcie` has 1050 MHz");
}

#[test]
fn base_power_must_be_the_one_of_the_clock() {
    refused(
        &faults(|p| p.gpus[0].sm_clock_mhz = Megahertz(1140)),
        "gpus[0].base_power_w: base power is 49.5",
    );
    refused(&faults(|p| p.gpus[0].base_power_w = None), "base power is absent");
}

#[test]
fn a_board_is_used_once_and_exists() {
    let found = faults(|p| p.gpus.push(p.gpus[0].clone()));
    refused(&found, "board 0 of node `box` is there twice");
    refused(&faults(|p| p.gpus[0].index = 2), "node `box` has no board 2");
    refused(&faults(|p| p.gpus[0].instances.clear()), "carries nothing");
    refused(&faults(|p| p.gpus[0].board = "b300".to_owned()), "does not carry board `b300`");
    refused(&faults(|p| p.boards.push(p.boards[0].clone())), "board `a100-80gb-pcie` is there twice");
}

#[test]
fn boards_of_a_node_stand_together_in_order() {
    let pair = |first: (&'static str, u32), second: (&'static str, u32)| {
        faults(|p| {
            p.gpus.push(p.gpus[0].clone());
            p.unused.clear();
            for (gpu, (node, index)) in p.gpus.iter_mut().zip([first, second]) {
                (gpu.node, gpu.index) = (node.to_owned(), index);
            }
            p.services.iter_mut().for_each(|s| s.rate_rps *= 2.0);
            add_up(p);
        })
    };
    assert_eq!(pair(("box", 0), ("box", 1)), [""; 0]);
    assert_eq!(pair(("west", 0), ("east", 0)), [""; 0]);
    refused(&pair(("box", 1), ("box", 0)), "not in the order of node and index");
}

#[test]
fn geometry_under_a_catalogue_name_is_the_catalogues() {
    let found = faults(|p| p.boards[0].profiles[4].n_memory_slices = 3);
    refused(&found, "`3g.40gb` is not cut as the catalogue's");
    let found = faults(|p| {
        p.boards[0].profiles[0].max_instances = 6;
        p.boards[0].profiles[0].confidence = Confidence::User;
    });
    assert_eq!(found, [""; 0]);
    refused(&faults(|p| p.boards[0].memory = Some(Bytes(1e9))), "more memory than the board");
}

#[test]
fn not_a_number_and_infinity_are_refused_before_anything_is_added() {
    let found = faults(|p| p.gpus[0].instances[0].rate_rps = f64::NAN);
    assert_eq!(found, ["gpus[0].instances[0].rate_rps: NaN is not zero or a positive number"]);
    let found = faults(|p| p.gpus[0].instances[1].batch_times_ms[0] = f64::INFINITY);
    assert_eq!(found, ["gpus[0].instances[1].batch_times_ms: inf is not a positive number"]);
    let found = faults(|p| p.objective.bound = Some(f64::NAN));
    assert_eq!(found, ["objective.bound: NaN is not a number"]);
    refused(&faults(|p| p.gpus[0].instances[0].batch_energy_j[1] = -1.0), "-1 is not zero or a positive");
    refused(&faults(|p| p.metrics.power_w = Some(f64::NEG_INFINITY)), "metrics.power_w");
    refused(&faults(|p| p.accounting.horizon_s = 0.0), "accounting.horizon_s: 0 is not a positive number");
}

#[test]
fn lists_are_as_long_as_the_batch() {
    refused(&faults(|p| p.gpus[0].instances[0].batch = 3), "2 times for batches of 1 to 3");
    refused(
        &faults(|p| p.gpus[0].instances[0].batch_energy_j = vec![1.0]),
        "1 energies for batches of 1 to 2",
    );
    refused(&faults(|p| p.gpus[0].instances[0].processes = 0), "no process");
}

#[test]
fn overload_is_refused() {
    let found = faults(|p| {
        let i = &mut p.gpus[0].instances[0];
        i.rate_rps = 140.0;
        i.utilisation = i.rate_rps / i.capacity_rps;
        i.mean_dynamic_power_w = i.dynamic_power_w.map(|d| d * i.utilisation);
        add_up(p);
    });
    assert_eq!(found.len(), 1, "{found:?}");
    refused(&found, "it is given 140 req/s; its promise holds up to 133.3");
    refused(&faults(|p| p.gpus[0].instances[0].admissible_rps = 150.0), "150 req/s is above the capacity");
}

#[test]
fn capacity_utilisation_and_power_follow_from_the_batches() {
    refused(&faults(|p| p.gpus[0].instances[0].capacity_rps *= 1.001), "the capacity is");
    refused(&faults(|p| p.gpus[0].instances[0].utilisation *= 0.999), "the utilisation is");
    refused(&faults(|p| p.gpus[0].instances[0].dynamic_power_w = Some(39.0)), "the dynamic power is 39");
    refused(
        &faults(|p| p.gpus[0].instances[0].mean_dynamic_power_w = Some(29.0)),
        "the mean dynamic power is 29",
    );
    refused(&faults(|p| p.gpus[0].instances[0].mean_dynamic_power_w = None), "absent although energies");
}

#[test]
fn with_queueing_mean_power_is_between_what_batches_cost() {
    // Requests of `classify` cost 0.4 J alone and 0.3 J in pairs.
    let at = |watts: f64| {
        faults(|p| {
            p.latency_rule = LatencyRule::Queueing;
            p.gpus[0].instances[0].mean_dynamic_power_w = Some(watts);
            add_up(p);
        })
    };
    assert_eq!(at(30.0), [""; 0]);
    assert_eq!(at(40.0), [""; 0]);
    refused(&at(29.9), "29.9 W is not between");
    refused(&at(40.1), "40.1 W is not between");
}

#[test]
fn a_broken_promise_is_refused() {
    let found = faults(|p| {
        p.gpus[0].instances[0].predicted_latency_ms = 41.0;
        add_up(p);
    });
    assert_eq!(found, ["gpus[0].instances[0]: its predicted latency of 41 ms is above the promised 40 ms"]);
    refused(&faults(|p| p.gpus[0].instances[0].promised_latency_ms = 50.0), "promises another latency");
    let found = faults(|p| {
        p.latency_rule = LatencyRule::Queueing;
        p.gpus[0].instances[0].predicted_latency_ms = 9.0;
    });
    refused(&found, "9 ms is less than its shortest batch takes");
}

#[test]
fn services_get_what_they_ask_for() {
    refused(&faults(|p| p.services[0].rate_rps = 101.0), "100 req/s are served of 101 asked for");
    refused(&faults(|p| p.services[0].served_rps = 99.0), "the served rate is 99, but 100");
    refused(&faults(|p| p.services[0].replicas = 2), "2 replicas are stated, 1 are there");
    refused(&faults(|p| p.services[0].predicted_latency_ms = Some(15.0)), "the worst latency is 15");
    refused(&faults(|p| p.gpus[0].instances[0].service = "other".to_owned()), "has no service `other`");
    refused(&faults(|p| p.services.push(p.services[0].clone())), "service `classify` is there twice");
}

#[test]
fn wrong_sums_are_refused() {
    refused(&faults(|p| p.gpus[0].power_w = Some(100.0)), "gpus[0].power_w: its power is 100, but 109.5");
    refused(&faults(|p| p.gpus[0].mean_power_w = None), "its mean power is absent");
    refused(&faults(|p| p.metrics.mean_power_w = Some(80.0)), "metrics.mean_power_w");
    refused(&faults(|p| p.metrics.energy_j_per_hour = Some(80.0)), "metrics.energy_j_per_hour");
    refused(&faults(|p| p.metrics.gpus = 2), "metrics.gpus: `gpus` is 2, but 1");
    refused(&faults(|p| p.metrics.carbon_g_per_hour = Some(1.0)), "cannot be known from its parts");
    refused(&faults(|p| p.unused[0].is_off = false), "the power of a board without work is 0, but 43.79");
}

#[test]
fn idle_boards_are_paid_for() {
    let found = faults(|p| {
        p.unused[0].is_off = false;
        p.unused[0].power_w = p.boards[0].base_power.as_ref().unwrap().at(Megahertz(210)).map(|w| w.get());
    });
    refused(&found, "metrics.power_w");
}

#[test]
fn limits_hold_on_what_can_be_known() {
    let limit = |metric, at_most| faults(|p| p.limits.push(Limit { metric, at_most }));
    assert_eq!(limit(Metric::Power, 110.0), [""; 0]);
    refused(&limit(Metric::Power, 100.0), "power is 109.5");
    refused(&limit(Metric::Gpus, 0.0), "gpus is 1, above the limit of 0");
    refused(&limit(Metric::Carbon, 1e9), "carbon cannot be known");
}

#[test]
fn claims_about_the_objective_are_arithmetic() {
    refused(&faults(|p| p.objective.value = Some(1.0)), "energy is 1, but");
    refused(&faults(|p| p.objective.value = None), "energy of this plan cannot be known");
    refused(&faults(|p| p.objective.bound = p.objective.value.map(|v| v * 1.01)), "it is no bound");
    refused(&faults(|p| p.objective.gap = Some(0.2)), "the gap is 0.2");
    refused(&faults(|p| p.objective.gap = None), "the gap is absent");
    refused(&faults(|p| p.status = Status::Optimal), "without a bound that shows it");
    let found = faults(|p| {
        p.objective.bound = None;
        p.objective.gap = None;
    });
    assert_eq!(found, ["status: it is called within the gap and has no bound"]);
    let found = faults(|p| {
        p.status = Status::Optimal;
        p.objective.bound = p.objective.value;
        p.objective.gap = Some(0.0);
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn an_answer_without_a_plan_does_not_look_like_one() {
    let empty = |status| {
        move |p: &mut Plan| {
            p.status = status;
            p.gpus.clear();
            p.unused[0].count = 2;
            p.objective =
                crate::plan::Objective { metric: Metric::Energy, value: None, bound: None, gap: None };
            p.metrics = Metrics::default();
            for service in &mut p.services {
                (service.served_rps, service.replicas, service.predicted_latency_ms) = (0.0, 0, None);
            }
        }
    };
    assert_eq!(faults(empty(Status::Infeasible)), [""; 0]);
    assert_eq!(faults(empty(Status::Unknown)), [""; 0]);
    refused(&faults(|p| p.status = Status::Infeasible), "boards are used although no plan was found");
    let found = faults(|p| {
        empty(Status::Infeasible)(p);
        p.objective.bound = Some(1.0);
    });
    refused(&found, "a bound although no plan exists");
    // And nothing placed is no plan for services that ask for something.
    refused(
        &faults(|p| {
            empty(Status::Feasible)(p);
        }),
        "0 req/s are served of 100 asked for",
    );
}

#[test]
fn shares_of_a_board_stay_within_it() {
    let mps = |percents: [u32; 2]| {
        faults(|p| {
            p.gpus[0].sharing = Sharing::Mps;
            for (instance, percent) in p.gpus[0].instances.iter_mut().zip(percents) {
                (instance.profile, instance.start, instance.size) = (None, None, None);
                instance.mps_percent = Some(percent);
            }
        })
    };
    assert_eq!(mps([60, 40]), [""; 0]);
    refused(&mps([60, 41]), "its shares add up to 101 %");
    refused(&mps([0, 41]), "a percentage from 1 to 100");
    let crowded = faults(|p| {
        p.gpus[0].sharing = Sharing::Mps;
        p.gpus[0].instances[0].processes = 48;
    });
    refused(&crowded, "50 processes share it by MPS, at most 48 can");
    let found = faults(|p| p.gpus[0].sharing = Sharing::Whole);
    refused(&found, "a whole board carries one instance");
    refused(&found, "a whole board has no profile");
}

#[test]
fn another_major_version_is_refused_and_a_minor_one_is_not() {
    refused(&faults(|p| p.format_version = "2.0".to_owned()), "`2.0` is not a version of 1.1");
    assert_eq!(faults(|p| p.format_version = "1.7".to_owned()), [""; 0]);
}
