//! The gateway's queue makes the batches that plans are simulated with: one policy, in one form for time
//! that passes and in another for time that is counted.

use ent_lang::program::Arrivals;
use ent_performance::queueing::BatchServer;
use ent_performance::simulate::{Stream, simulate_server};
use ent_serve::queue::{Policy, Queue};
use std::time::{Duration, Instant};

/// What the gateway's queue does with the arrivals of a simulation: batches by size, and latencies (s).
fn queue(
    server: BatchServer<'_>,
    arrivals: &Arrivals,
    rate: f64,
    requests: u64,
    from: f64,
) -> (Vec<u64>, Vec<f64>) {
    let origin = Instant::now();
    let at = |seconds: f64| origin + Duration::from_secs_f64(seconds);
    let policy = Policy {
        batch: u32::try_from(server.batch_times.len()).unwrap(),
        max_wait: Duration::from_secs_f64(server.max_wait),
    };
    let mut queue = Queue::new(policy, |_: &f64, _: &f64| true);
    let mut free = vec![origin; server.processes as usize];
    let mut sizes = vec![0; server.batch_times.len()];
    let mut latencies = Vec::new();
    let mut stream = Stream::new(arrivals, None, rate, 7, 0);
    let mut settle = |queue: &mut Queue<f64>, until: Option<Instant>| {
        while let Some(ready) = queue.leaves_at() {
            let executor = free.iter_mut().min().unwrap();
            let start = ready.max(*executor);
            // A request that arrives at this very moment still joins.
            if until.is_some_and(|until| start >= until) {
                return;
            }
            let (batch, _) = queue.take(start).unwrap();
            let end = start + Duration::from_secs_f64(server.batch_times[batch.len() - 1]);
            *executor = end;
            if start >= at(from) {
                sizes[batch.len() - 1] += 1;
            }
            let counted = batch.iter().filter(|w| w.item >= from);
            latencies.extend(counted.map(|w| (end - at(w.item)).as_secs_f64()));
        }
    };
    for _ in 0..requests {
        let arrival = stream.next_arrival().max(0.0);
        settle(&mut queue, Some(at(arrival)));
        queue.push(at(arrival), 1, arrival);
    }
    settle(&mut queue, None);
    (sizes, latencies)
}

#[test]
fn the_gateways_batches_are_the_simulated_ones() {
    const REQUESTS: u64 = 20_000;
    let times: Vec<f64> = (0..8).map(|k| 0.010 + 0.002 * f64::from(k)).collect();
    for arrivals in [Arrivals::Poisson, Arrivals::Gamma { cv: 2.0 }] {
        for (processes, max_wait, rate) in
            [(1, 0.0, 200.0), (1, 0.008, 150.0), (3, 0.004, 700.0), (2, 0.05, 30.0)]
        {
            let server = BatchServer { batch_times: &times, processes, max_wait };
            let simulated = simulate_server(server, &arrivals, rate, REQUESTS, 7);
            let from = REQUESTS as f64 * 0.02 / rate;
            let (sizes, mut latencies) = queue(server, &arrivals, rate, REQUESTS, from);
            let batches = sizes.iter().sum::<u64>() as f64;
            for (k, (ours, theirs)) in sizes.iter().zip(&simulated.batch_sizes).enumerate() {
                let ours = *ours as f64 / batches;
                // Time is in nanoseconds here and in floating point there. Bursts of gamma arrivals have
                // gaps of less than one, and such a tie falls otherwise.
                let tolerance = if arrivals == Arrivals::Poisson { 1e-9 } else { 5e-3 };
                assert!((ours - theirs).abs() < tolerance, "batches of {}: {ours} and {theirs}", k + 1);
            }
            latencies.sort_by(f64::total_cmp);
            for p in [0.5, 0.99] {
                let ours = latencies[((latencies.len() - 1) as f64 * p) as usize];
                let theirs = simulated.latencies.percentile(p);
                assert!((ours / theirs - 1.0).abs() < 0.02, "p{p}: {ours} s and {theirs} s");
            }
        }
    }
}
