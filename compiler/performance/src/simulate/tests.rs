//! Known queues, and what a simulated plan must satisfy.

use super::*;

fn server(times: &[f64], processes: u32, max_wait: f64) -> BatchServer<'_> {
    BatchServer { batch_times: times, processes, max_wait }
}

#[test]
fn evenly_spaced_requests_within_capacity_never_wait() {
    let seen = simulate_server(server(&[0.8], 1, 0.0), &Arrivals::Uniform, 1.0, 10_000, 1);
    assert!((seen.latencies.max() - 0.8).abs() < 1e-9);
    assert!((seen.latencies.percentile(0.5) - 0.8).abs() < 1e-3);
    assert!((seen.busy - 0.8).abs() < 1e-3);
    let two = simulate_server(server(&[1.6], 2, 0.0), &Arrivals::Uniform, 1.0, 10_000, 1);
    assert!((two.latencies.max() - 1.6).abs() < 1e-9);
}

/// Mean wait of M/D/1: rho / (2 (1 - rho)) service times (Pollaczek-Khinchine).
#[test]
fn memoryless_arrivals_at_one_executor_wait_as_pollaczek_and_khinchine_say() {
    for load in [0.3, 0.6, 0.8] {
        let seen = simulate_server(server(&[1.0], 1, 0.0), &Arrivals::Poisson, load, 1_000_000, 3);
        let mean = 1.0 + load / (2.0 * (1.0 - load));
        assert!((seen.latencies.mean() / mean - 1.0).abs() < 0.02, "load {load}: {}", seen.latencies.mean());
        assert!((seen.busy / load - 1.0).abs() < 0.01);
    }
}

#[test]
fn a_batch_waits_until_it_is_full_or_its_oldest_request_has_waited_long_enough() {
    // One request a second, batches of four: full after three seconds.
    let full = simulate_server(server(&[0.1; 4], 1, 10.0), &Arrivals::Uniform, 1.0, 10_000, 1);
    assert!((full.latencies.max() - 3.1).abs() < 1e-9);
    assert!(full.batch_sizes[3] > 0.999);
    // Patience of 1.5 s: two in a batch, the first waits 1.5 s.
    let part = simulate_server(server(&[0.1; 4], 1, 1.5), &Arrivals::Uniform, 1.0, 10_000, 1);
    assert!((part.latencies.max() - 1.6).abs() < 1e-9);
    assert!(part.batch_sizes[1] > 0.999);
}

#[test]
fn words_for_arrivals_are_read_back() {
    assert_eq!(arrivals_from_words("poisson"), Some(Arrivals::Poisson));
    assert_eq!(arrivals_from_words("gamma(cv = 2)"), Some(Arrivals::Gamma { cv: 2.0 }));
    assert_eq!(arrivals_from_words("gamma(cv = -1)"), None);
    assert_eq!(arrivals_from_words("sometimes"), None);
}

#[test]
fn round_robin_gives_every_instance_its_share_in_turn() {
    let mut router = Router::new([2.0, 1.0, 1.0].into_iter(), &Arrivals::Uniform);
    let mut stream = Stream::new(&Arrivals::Uniform, None, 1.0, 0, 0);
    let turns: Vec<usize> = (0..8).map(|_| router.choose(&mut stream)).collect();
    assert_eq!(turns, vec![0, 1, 2, 0, 0, 1, 2, 0]);
}

/// A plan with one service on two instances, at the highest rates that queueing admits.
fn plan_at_the_limit(arrivals: &Arrivals, words: &str, bound: f64) -> Plan {
    let mut plan = ent_plan::plan::sample::plan();
    let service = plan.services[0].name.clone();
    plan.services.truncate(1);
    for (instance, (batch, first)) in plan.gpus[0].instances.iter_mut().zip([(4_usize, 0.4), (2, 0.7)]) {
        let times: Vec<f64> =
            (1..=batch).map(|k| first + (1.0 - first) * (k as f64 - 1.0) / (batch as f64 - 1.0)).collect();
        let one = BatchServer { batch_times: &times, processes: 1, max_wait: 0.0 };
        instance.service.clone_from(&service);
        instance.processes = 1;
        instance.max_wait_ms = 0.0;
        instance.batch_times_ms = times.iter().map(|t| t * 1e3).collect();
        instance.batch_energy_j = vec![1.0; batch];
        instance.rate_rps =
            crate::queueing::admissible_rate(one, arrivals, 0.99, bound / crate::operate::SAFETY);
    }
    let rate = plan.gpus[0].instances.iter().map(|i| i.rate_rps).sum();
    plan.services[0].rate_rps = rate;
    plan.services[0].arrivals = words.to_owned();
    plan.services[0].promised_latency_ms = bound * 1e3;
    plan
}

#[test]
fn promises_at_the_admissible_rates_are_kept_over_pooled_seeds() {
    for (arrivals, words) in [
        (Arrivals::Poisson, "poisson"),
        (Arrivals::Uniform, "uniform"),
        (Arrivals::Gamma { cv: 0.6 }, "gamma(cv = 0.6)"),
        (Arrivals::Gamma { cv: 2.0 }, "gamma(cv = 2)"),
    ] {
        for bound in [2.5, 5.0] {
            let plan = plan_at_the_limit(&arrivals, words, bound);
            let seen: Vec<Simulation> = (0..20)
                .map(|seed| simulate(&plan, &Options { seed, requests: Some(100_000), ..Options::default() }))
                .collect();
            let pooled = pool(&seen, 0).unwrap();
            assert!(pooled.attainment() >= 0.99, "{words} within {bound}: {}", pooled.attainment());
            assert!(pooled.count() > 1_900_000);
        }
    }
}

#[test]
fn a_seed_decides_everything() {
    let plan = plan_at_the_limit(&Arrivals::Poisson, "poisson", 3.0);
    let run = |seed| {
        let seen = simulate(&plan, &Options { seed, requests: Some(20_000), ..Options::default() });
        serde_json::to_string(&seen).unwrap()
    };
    assert_eq!(run(4), run(4));
    assert_ne!(run(4), run(5));
}

#[test]
fn energy_power_and_shares_add_up() {
    let plan = plan_at_the_limit(&Arrivals::Poisson, "poisson", 3.0);
    let seen = simulate(&plan, &Options { requests: Some(100_000), ..Options::default() });
    let service = &seen.services[0];
    // Every batch costs one joule here.
    let batches = service.requests as f64 / service.mean_batch;
    assert!((service.energy_j / batches - 1.0).abs() < 1e-9);
    let dynamic: f64 = seen.instances.iter().map(|i| i.mean_dynamic_power_w).sum();
    assert!((dynamic * service.seconds / service.energy_j - 1.0).abs() < 1e-9);
    let base = plan.gpus[0].base_power_w.unwrap();
    assert!((seen.gpus[0].mean_power_w.unwrap() - base - dynamic).abs() < 1e-9);
    for (instance, planned) in seen.instances.iter().zip(&plan.gpus[0].instances) {
        let share = instance.requests as f64 / service.requests as f64;
        assert!((share / (planned.rate_rps / plan.services[0].rate_rps) - 1.0).abs() < 0.02);
    }
}

#[test]
fn a_service_without_instances_keeps_nothing() {
    let mut plan = ent_plan::plan::sample::plan();
    plan.gpus.clear();
    let seen = simulate(&plan, &Options::default());
    assert!(seen.services.iter().all(|s| s.requests == 0 && !s.is_kept));
}

#[test]
fn the_arrivals_that_are_told_are_those_that_are_simulated() {
    for (process, words) in [(Arrivals::Poisson, "poisson"), (Arrivals::Uniform, "uniform")] {
        let mut plan = plan_at_the_limit(&process, words, 3.0);
        // A batch of one that takes no time: an answer then comes when its request does.
        for instance in &mut plan.gpus[0].instances {
            (instance.batch, instance.batch_times_ms, instance.max_wait_ms) = (1, vec![0.0], 0.0);
        }
        let options = Options { seed: 3, requests: Some(5000), ..Options::default() };
        let told = &arrivals(&plan, &options)[0];
        let seen = &simulate(&plan, &options).services[0];
        assert_eq!(told.at.len(), 5000);
        assert!(told.at.is_sorted());
        let last = told.at.last().unwrap();
        assert!((last - told.from - seen.seconds).abs() < 1e-9, "{last} {} {}", told.from, seen.seconds);
        assert_eq!(told.at.iter().filter(|at| **at >= told.from).count() as u64, seen.requests);
    }
}

#[test]
fn no_request_arrives_after_the_end_that_was_asked_for() {
    let plan = plan_at_the_limit(&Arrivals::Poisson, "poisson", 3.0);
    let options = Options { seed: 3, until: Some(500.0), ..Options::default() };
    let told = &arrivals(&plan, &options)[0];
    let rate = plan.services[0].rate_rps;
    assert!(told.at.iter().all(|at| (0.0..=500.0).contains(at)));
    assert!((told.at.len() as f64 / (500.0 * rate) - 1.0).abs() < 0.2);
    let seen = &simulate(&plan, &options).services[0];
    assert_eq!(seen.requests, told.at.iter().filter(|at| **at >= 10.0).count() as u64);
    assert!((seen.seconds - 490.0).abs() < 1e-9);
    let none = simulate(&plan, &Options { until: Some(1e-9), ..options });
    assert_eq!(none.services[0].requests, 0);
}
