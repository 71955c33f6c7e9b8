//! Several executors that batch from one queue → latency percentiles, by seeded simulation.
//!
//! No short exact method is known: executors drift into and out of step, and how they do depends on how
//! batch times grow. A simulation with a fixed seed shows it; what it cannot show well, rare long queues
//! at high load, it shares with a single executor of the whole capacity, which is simulated under the
//! same arrivals and also solved exactly. Their ratio corrects the result. A margin covers the rest.

use super::{BatchServer, Behaviour, capacity, families};
use crate::simulate::simulate_server;
use ent_lang::program::Arrivals;

/// Requests simulated for a percentile, and for a step of a search.
const REQUESTS: u64 = 240_000;
const GLANCE: u64 = 40_000;

/// The seed of all these simulations.
const SEED: u64 = 0x5EED;

/// What simulated percentiles are multiplied by: they scatter by about a percent.
const MARGIN: f64 = 1.02;

/// Largest batch of the stand-in; beyond it queues are short against a batch and need no correction.
const STAND_IN: usize = 32;

/// The behaviour at a rate (req/s) below capacity.
pub(super) fn behaviour(
    server: BatchServer<'_>,
    arrivals: &Arrivals,
    cv: f64,
    rate: f64,
    percentile: f64,
) -> Behaviour {
    let load = rate / capacity(server);
    // Queues at high load take long to forget.
    let requests = (REQUESTS as f64 * (0.15 / (1.0 - load)).clamp(1.0, 8.0)) as u64;
    let seen = simulate_server(server, arrivals, rate, requests, SEED);
    let mut latency = seen.latencies.percentile(percentile) * MARGIN;
    let batch = server.batch_times.len() * server.processes as usize;
    if load > 0.6 && batch <= STAND_IN && cv <= 1.001 {
        let times: Vec<f64> =
            (1..=batch).map(|k| server.batch_times[k.div_ceil(server.processes as usize) - 1]).collect();
        let whole = BatchServer { batch_times: &times, processes: 1, ..server };
        let simulated =
            simulate_server(whole, arrivals, rate, requests, SEED).latencies.percentile(percentile);
        let exact: f64 = families(cv)
            .iter()
            .map(|(family, weight)| weight * family.behaviour(whole, rate, percentile).latency)
            .sum();
        // Only the waiting in long queues is shared, and only upwards is safe to trust in full.
        let ratio = exact / simulated;
        let queued = ((latency - server.batch_times[server.batch_times.len() - 1]) / latency).clamp(0.0, 1.0);
        latency *= 1.0 + (ratio - 1.0) * queued;
    }
    Behaviour { latency, batch_sizes: seen.batch_sizes, busy: seen.busy.min(1.0) }
}

/// How far the share of requests later than `bound` is from the allowed one, as a logarithm, at a glance.
pub(super) fn excess(
    server: BatchServer<'_>,
    arrivals: &Arrivals,
    rate: f64,
    percentile: f64,
    bound: f64,
) -> f64 {
    let seen = simulate_server(server, arrivals, rate, GLANCE, SEED);
    let late = 1.0 - seen.latencies.share_within(bound / MARGIN);
    (late.max(1e-12) / (1.0 - percentile)).ln()
}
