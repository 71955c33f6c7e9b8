//! Known queues, agreement with simulation, and what any answer must satisfy.

use super::*;
use crate::simulate::simulate_server;

/// Batch times from `first` of a full batch's time of 1 s, linear.
fn times(batch: usize, first: f64) -> Vec<f64> {
    (1..=batch).map(|k| first + (1.0 - first) * (k as f64 - 1.0) / (batch as f64 - 1.0).max(1.0)).collect()
}

fn server(batch_times: &[f64], processes: u32, max_wait: f64) -> BatchServer<'_> {
    BatchServer { batch_times, processes, max_wait }
}

/// P(wait > x) of M/D/1 with service time 1, by Crommelin's sum.
fn crommelin(load: f64, x: f64) -> f64 {
    let mut sum = 0.0;
    for j in 0..=x.floor() as i32 {
        let y = load * (f64::from(j) - x);
        let factorial: f64 = (1..=j).map(f64::from).product();
        sum += y.powi(j) / factorial * (-y).exp();
    }
    1.0 - (1.0 - load) * sum
}

#[test]
fn one_by_one_service_of_memoryless_arrivals_is_crommelins() {
    for load in [0.3, 0.6, 0.8] {
        for percentile in [0.9, 0.99] {
            let latency = behaviour(server(&[1.0], 1, 0.0), &Arrivals::Poisson, load, percentile).latency;
            let late = crommelin(load, latency - 1.0);
            assert!((late / (1.0 - percentile) - 1.0).abs() < 0.02, "load {load}: {late}");
        }
    }
    // The exact p99 at 0.9, from the same sum in extended precision: 22.9 service times.
    let latency = behaviour(server(&[1.0], 1, 0.0), &Arrivals::Poisson, 0.9, 0.99).latency;
    assert!((latency - 22.9).abs() < 0.1, "{latency}");
}

#[test]
fn evenly_spaced_requests_within_capacity_never_wait() {
    let at = behaviour(server(&[0.8], 1, 0.0), &Arrivals::Uniform, 1.0, 0.99);
    assert!((at.latency - 0.8).abs() < 1e-9);
    assert!((at.busy - 0.8).abs() < 1e-3);
    let two = behaviour(server(&[1.6], 2, 0.0), &Arrivals::Uniform, 1.0, 0.99);
    assert!((two.latency - 1.6).abs() < 1e-9);
}

/// Latency percentiles and busy share against ten pooled seeds.
fn compare(server: BatchServer<'_>, arrivals: &Arrivals, load: f64, low: f64, high: f64) {
    let rate = load * capacity(server);
    let mut pooled: Option<crate::simulate::Latencies> = None;
    let mut busy = 0.0;
    for seed in 0..5 {
        let seen = simulate_server(server, arrivals, rate, 200_000, seed);
        busy += seen.busy / 5.0;
        match &mut pooled {
            Some(all) => all.pool(&seen.latencies),
            None => pooled = Some(seen.latencies),
        }
    }
    let pooled = pooled.unwrap();
    for percentile in [0.95, 0.99] {
        let at = behaviour(server, arrivals, rate, percentile);
        let ratio = at.latency / pooled.percentile(percentile);
        assert!(
            (1.0 - low..1.0 + high).contains(&ratio),
            "{server:?} {arrivals:?} load {load} p{percentile}: {} against {}",
            at.latency,
            pooled.percentile(percentile)
        );
        assert!((at.busy / busy - 1.0).abs() < 0.06, "{server:?} load {load}: busy {} {busy}", at.busy);
        let total: f64 = at.batch_sizes.iter().sum();
        assert!((total - 1.0).abs() < 1e-6);
    }
}

#[test]
fn memoryless_arrivals_agree_with_simulation() {
    for (batch, first) in [(1, 1.0), (4, 0.3), (32, 0.1), (32, 0.83)] {
        for load in [0.2, 0.6, 0.9] {
            compare(server(&times(batch, first), 1, 0.0), &Arrivals::Poisson, load, 0.04, 0.04);
        }
    }
}

#[test]
fn batches_that_wait_to_fill_agree_with_simulation() {
    for (batch, first) in [(4, 0.3), (16, 0.5)] {
        for wait in [0.3, 2.0] {
            for load in [0.2, 0.6] {
                compare(server(&times(batch, first), 1, wait), &Arrivals::Poisson, load, 0.05, 0.05);
            }
        }
    }
}

#[test]
fn regular_and_bursty_arrivals_agree_with_simulation() {
    for cv in [0.5, 0.8, 1.5, 2.0] {
        for (batch, first) in [(2, 0.6), (8, 0.4)] {
            for load in [0.3, 0.8] {
                compare(server(&times(batch, first), 1, 0.0), &Arrivals::Gamma { cv }, load, 0.05, 0.1);
            }
        }
    }
}

#[test]
fn several_executors_agree_with_simulation() {
    for (batch, processes) in [(1, 3), (4, 2), (16, 3)] {
        for load in [0.4, 0.8] {
            compare(server(&times(batch, 0.5), processes, 0.0), &Arrivals::Poisson, load, 0.04, 0.08);
        }
    }
}

#[test]
fn latency_grows_with_the_rate() {
    for (batch, arrivals) in
        [(1, Arrivals::Poisson), (8, Arrivals::Poisson), (4, Arrivals::Gamma { cv: 2.0 })]
    {
        let times = times(batch, 0.4);
        let mut last = 0.0;
        for step in 1..20 {
            let rate = f64::from(step) * 0.05 * batch as f64;
            let latency = behaviour(server(&times, 1, 0.0), &arrivals, rate, 0.99).latency;
            assert!(latency >= last * (1.0 - 1e-3), "batch {batch} step {step}: {latency} after {last}");
            last = latency;
        }
    }
}

#[test]
fn the_admissible_rate_keeps_the_promise_and_little_more_breaks_it() {
    for arrivals in
        [Arrivals::Poisson, Arrivals::Gamma { cv: 0.5 }, Arrivals::Gamma { cv: 2.0 }, Arrivals::Uniform]
    {
        for (batch, first) in [(1, 1.0), (4, 0.3), (16, 0.8)] {
            for bound in [1.5, 3.0] {
                let times = times(batch, first);
                let one = server(&times, 1, 0.0);
                let rate = admissible_rate(one, &arrivals, 0.99, bound);
                if rate == 0.0 && matches!(arrivals, Arrivals::Gamma { cv } if cv > 1.0) {
                    // One request in a hundred follows another at once, however low the rate.
                    assert!(behaviour(one, &arrivals, 1e-4 * capacity(one), 0.99).latency > bound);
                    continue;
                }
                assert!(rate > 0.0 && rate <= MAX_UTILISATION * capacity(one));
                let at = behaviour(one, &arrivals, rate, 0.99).latency;
                // How finely bursts are seen changes with the rate, by steps.
                let step = if matches!(arrivals, Arrivals::Gamma { cv } if cv > 1.0) { 0.03 } else { 0.002 };
                assert!(at <= bound * (1.0 + step), "{arrivals:?} batch {batch} bound {bound}: {at}");
                let above = rate * 1.02;
                if above < MAX_UTILISATION * capacity(one) {
                    let over = behaviour(one, &arrivals, above, 0.99).latency;
                    assert!(
                        over > bound * 0.998,
                        "{arrivals:?} batch {batch} bound {bound}: {over} at {above}"
                    );
                }
            }
        }
    }
}

#[test]
fn nothing_is_admissible_when_an_empty_server_is_too_slow() {
    assert_eq!(admissible_rate(server(&[1.0, 1.5], 1, 0.0), &Arrivals::Poisson, 0.99, 0.9), 0.0);
    assert_eq!(admissible_rate(server(&[], 1, 0.0), &Arrivals::Poisson, 0.99, 0.9), 0.0);
    assert_eq!(admissible_rate(server(&[1.0], 1, 0.0), &Arrivals::Poisson, 0.99, f64::NAN), 0.0);
}

#[test]
fn above_capacity_nothing_is_finite_and_nothing_panics() {
    let times = times(4, 0.5);
    for rate in [4.0, 5.0, f64::INFINITY, f64::NAN] {
        let at = behaviour(server(&times, 1, 0.0), &Arrivals::Poisson, rate, 0.99);
        assert_eq!(at.latency, f64::INFINITY);
        assert_eq!(at.busy, 1.0);
    }
    let idle = behaviour(server(&times, 1, 0.2), &Arrivals::Poisson, 0.0, 0.99);
    assert_eq!(idle.latency, 0.2 + times[0]);
}

#[test]
fn a_fill_wait_saves_energy_and_keeps_the_promise() {
    let times = times(8, 0.8);
    let energy: Vec<f64> = (1..=8).map(|k| 1.0 + 0.05 * f64::from(k)).collect();
    let (rate, bound) = (2.0, 4.0);
    let wait = best_wait(server(&times, 1, 0.0), &Arrivals::Poisson, rate, 0.99, bound, &energy);
    assert!(wait > 1.0, "{wait}");
    let with = behaviour(server(&times, 1, wait), &Arrivals::Poisson, rate, 0.99);
    let without = behaviour(server(&times, 1, 0.0), &Arrivals::Poisson, rate, 0.99);
    assert!(with.latency <= bound * 1.002);
    assert!(mean_power(&with, rate, &energy) < 0.8 * mean_power(&without, rate, &energy));
    // When a request costs the same in any batch, nobody waits for nothing.
    let flat: Vec<f64> = (1..=8).map(f64::from).collect();
    assert_eq!(best_wait(server(&times, 1, 0.0), &Arrivals::Poisson, rate, 0.99, bound, &flat), 0.0);
}

#[test]
fn everything_is_the_same_twice_and_in_any_unit_of_time() {
    let times = times(8, 0.3);
    let scaled: Vec<f64> = times.iter().map(|t| t * 1e-3).collect();
    for arrivals in [Arrivals::Poisson, Arrivals::Gamma { cv: 1.7 }, Arrivals::Gamma { cv: 0.6 }] {
        let one = behaviour(server(&times, 1, 0.1), &arrivals, 5.0, 0.99);
        assert_eq!(one, behaviour(server(&times, 1, 0.1), &arrivals, 5.0, 0.99));
        let other = behaviour(server(&scaled, 1, 1e-4), &arrivals, 5000.0, 0.99);
        assert!((other.latency * 1e3 / one.latency - 1.0).abs() < 2e-3);
    }
}
