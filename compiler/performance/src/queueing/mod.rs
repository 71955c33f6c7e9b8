//! Batch times and arrivals → latency percentiles, batch sizes, admissible rates.
//!
//! The batching policy is one for model, simulator and worker: an idle executor starts a batch when
//! `batch` requests wait or the oldest has waited `max_wait`. A batch of k takes `t(k)`.

use ent_lang::program::Arrivals;

mod chain;
mod phases;
mod sojourn;

use chain::Load;
use phases::Phases;
use sojourn::{Sojourn, Tails};

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

impl Behaviour {
    fn unstable(batch: usize) -> Self {
        let mut batch_sizes = vec![0.0; batch];
        if let Some(full) = batch_sizes.last_mut() {
            *full = 1.0;
        }
        Self { latency: f64::INFINITY, batch_sizes, busy: 1.0 }
    }
}

/// The behaviour at an offered rate (req/s).
#[must_use]
pub fn behaviour(server: BatchServer<'_>, arrivals: &Arrivals, rate: f64, percentile: f64) -> Behaviour {
    let batch = server.batch_times.len();
    let capacity = capacity(server);
    if batch == 0 || !(rate < capacity) {
        return Behaviour::unstable(batch);
    }
    let family = Family::new(server, arrivals);
    let load = family.load(server, rate);
    let Some(chain) = chain::solve(&load) else { return Behaviour::unstable(batch) };
    let tails = family.tails(batch);
    let sojourn = Sojourn::new(&load, &chain, &tails);
    let latency = quantile(&sojourn, load.times[0], percentile) / rate;
    let batch_sizes = chain.batch_sizes();
    let mean =
        |of: &dyn Fn(usize) -> f64| -> f64 { batch_sizes.iter().enumerate().map(|(i, p)| p * of(i)).sum() };
    let busy = (mean(&|i| load.times[i]) / mean(&|i| (i + 1) as f64)).min(1.0);
    Behaviour { latency, busy, batch_sizes }
}

/// The highest rate (req/s) at which the percentile of latency is within `bound` seconds with no
/// fill wait (`max_wait` ignored); 0 when even an empty server is too slow.
#[must_use]
pub fn admissible_rate(server: BatchServer<'_>, arrivals: &Arrivals, percentile: f64, bound: f64) -> f64 {
    let batch = server.batch_times.len();
    let server = BatchServer { max_wait: 0.0, ..server };
    if batch == 0 || !(server.batch_times[0] <= bound) {
        return 0.0;
    }
    let family = Family::new(server, arrivals);
    let tails = family.tails(batch);
    let allowed = 1.0 - percentile;
    // How far the share of late requests is from the allowed one, as a logarithm.
    let excess = |rate: f64| -> f64 {
        let load = family.load(server, rate);
        let Some(chain) = chain::solve(&load) else { return f64::INFINITY };
        let late = Sojourn::new(&load, &chain, &tails).exceed(bound * rate);
        (late.max(1e-12) / allowed).ln()
    };
    let top = MAX_UTILISATION * capacity(server);
    search(top, excess)
}

/// No rate above this share of the capacity is admissible.
const MAX_UTILISATION: f64 = 0.999;

/// The largest rate below `top` with no excess, to a few parts in a thousand, from the safe side.
fn search(top: f64, excess: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut low_value) = (0.0, f64::NEG_INFINITY);
    let (mut high, mut high_value) = (top, f64::INFINITY);
    let mut at = 0.6 * top;
    for _ in 0..24 {
        let value = excess(at);
        if value <= 0.0 {
            (low, low_value) = (at, value);
        } else {
            (high, high_value) = (at, value);
        }
        if high - low < 0.003 * high {
            break;
        }
        let middle = 0.5 * (low + high);
        at = if low_value > -8.0 && high_value < 8.0 {
            // Regula falsi, kept away from the ends so that both close in.
            let share = (-low_value / (high_value - low_value)).clamp(0.05, 0.95);
            // Aim a little to the safe side: the answer is the lower end.
            (low + share * (high - low) - 0.001 * high).max(low + 0.02 * (high - low))
        } else if high == top && high_value.is_infinite() {
            low + 0.6 * (high - low)
        } else {
            middle
        };
        if high == top && high - low < 0.01 * top {
            at = top * (1.0 - 1e-9);
            if excess(at) <= 0.0 {
                return at;
            }
            high = at;
            at = 0.5 * (low + high);
        }
    }
    low
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

/// Rate at which the server saturates with full batches (req/s).
fn capacity(server: BatchServer<'_>) -> f64 {
    server
        .batch_times
        .last()
        .map_or(0.0, |t| f64::from(server.processes) * server.batch_times.len() as f64 / t)
}

/// What is common to all rates of one server and its arrivals.
struct Family {
    phases: Phases,
    variation: f64,
}

impl Family {
    fn new(_server: BatchServer<'_>, arrivals: &Arrivals) -> Self {
        let cv = match arrivals {
            Arrivals::Uniform => 0.0,
            Arrivals::Poisson | Arrivals::Trace { .. } => 1.0,
            Arrivals::Gamma { cv } => *cv,
        };
        Self { phases: Phases::gamma(cv.max(0.05)), variation: cv * cv }
    }

    fn load<'a>(&'a self, server: BatchServer<'_>, rate: f64) -> Load<'a> {
        let mut longest: f64 = 0.0;
        let times = server
            .batch_times
            .iter()
            .map(|t| {
                longest = longest.max(*t);
                longest * rate
            })
            .collect();
        Load { phases: &self.phases, variation: self.variation, times, wait: server.max_wait * rate }
    }

    fn tails(&self, batch: usize) -> Tails {
        Tails::new(&self.phases, self.variation, batch)
    }
}

/// The latency that a share `percentile` of requests does not exceed.
fn quantile(sojourn: &Sojourn<'_>, shortest: f64, percentile: f64) -> f64 {
    let allowed = 1.0 - percentile;
    let (mut low, mut high) = (0.0, shortest);
    while sojourn.exceed(high) > allowed && high < 1e9 * shortest {
        low = high;
        high *= 1.5;
    }
    while high - low > 5e-4 * high {
        let middle = 0.5 * (low + high);
        if sojourn.exceed(middle) > allowed {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
