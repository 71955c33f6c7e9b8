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
