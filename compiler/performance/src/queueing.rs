//! Batch times and arrivals → latency percentiles, batch sizes, admissible rates.
//!
//! The batching policy is one for model, simulator and worker: an idle executor starts a batch when
//! `batch` requests wait or the oldest has waited `max_wait`. A batch of k takes `t(k)`.

use ent_lang::program::Arrivals;

/// A batch server: `processes` executors that share one queue.
#[derive(Clone, Copy, Debug)]
pub struct BatchServer<'a> {
    /// Time of a batch of k requests in seconds, at index k - 1.
    pub batch_times: &'a [f64],
    /// Executors.
    pub processes: u32,
    /// Longest wait of the oldest request for its batch to fill (s).
    pub max_wait: f64,
}

/// How a batch server behaves at an offered rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Latency (wait plus execution) at the asked percentile, in seconds; infinite when unstable.
    pub latency: f64,
    /// Share of batches that have k requests, at index k - 1.
    pub batch_sizes: Vec<f64>,
    /// Share of time the executors are busy, 0..=1.
    pub busy: f64,
}

/// The behaviour at an offered rate (req/s).
#[must_use]
pub fn behaviour(_server: BatchServer<'_>, _arrivals: &Arrivals, _rate: f64, _percentile: f64) -> Behaviour {
    Behaviour { latency: f64::INFINITY, batch_sizes: Vec::new(), busy: 1.0 }
}

/// The highest rate (req/s) at which the percentile of latency is within `bound` seconds with no
/// fill wait (`max_wait` ignored); 0 when even an empty server is too slow.
#[must_use]
pub fn admissible_rate(_server: BatchServer<'_>, _arrivals: &Arrivals, _percentile: f64, _bound: f64) -> f64 {
    0.0
}

/// The fill wait, `0 ..= bound`, that keeps the promise at this rate with the least energy per
/// request, given the dynamic energy (J) of a batch of k at index k - 1.
#[must_use]
pub fn best_wait(
    _server: BatchServer<'_>,
    _arrivals: &Arrivals,
    _rate: f64,
    _percentile: f64,
    _bound: f64,
    _batch_energy: &[f64],
) -> f64 {
    0.0
}

/// Mean dynamic power (W) at an offered rate (req/s), given the dynamic energy (J) of a batch of k at
/// index k - 1: batches per second times the mean energy of a batch.
#[must_use]
pub fn mean_power(behaviour: &Behaviour, rate: f64, batch_energy: &[f64]) -> f64 {
    let mean_size: f64 = behaviour.batch_sizes.iter().enumerate().map(|(i, p)| p * (i + 1) as f64).sum();
    let mean_energy: f64 = behaviour.batch_sizes.iter().zip(batch_energy).map(|(p, e)| p * e).sum();
    if mean_size > 0.0 { rate * mean_energy / mean_size } else { 0.0 }
}
