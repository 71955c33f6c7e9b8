//! Batch times and arrivals → latency percentiles, batch sizes, admissible rates.
//!
//! The batching policy is one for model, simulator and worker: an idle executor starts a batch when
//! `batch` requests wait or the oldest has waited `max_wait`. A batch of k takes `t(k)`.

use ent_lang::program::Arrivals;
use std::borrow::Cow;

mod chain;
mod even;
mod ladder;
mod phases;
mod several;
mod sojourn;

#[cfg(test)]
mod tests;

use chain::{Chain, Load};
use phases::{MOST_PHASES, Phases};
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
    fn idle(server: BatchServer<'_>) -> Self {
        let batch = server.batch_times.len();
        let mut batch_sizes = vec![0.0; batch];
        batch_sizes[0] = 1.0;
        let wait = if batch > 1 { server.max_wait } else { 0.0 };
        Self { latency: wait + server.batch_times[0], batch_sizes, busy: 0.0 }
    }

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
    if batch == 0 || rate.is_nan() || rate >= capacity(server) {
        return Behaviour::unstable(batch);
    }
    if rate <= 0.0 {
        return Behaviour::idle(server);
    }
    let (server, rate, cv) = one_by_one(server, rate, coefficient(arrivals));
    if server.processes > 1 && cv > 0.0 {
        return several::behaviour(server, arrivals, cv, rate, percentile);
    }
    let mut blend = Behaviour { latency: 0.0, batch_sizes: vec![0.0; batch], busy: 0.0 };
    for (family, weight) in families(cv) {
        let part = family.behaviour(server, rate, percentile);
        blend.latency += weight * part.latency;
        blend.busy += weight * part.busy;
        for (all, one) in blend.batch_sizes.iter_mut().zip(&part.batch_sizes) {
            *all += weight * one;
        }
    }
    blend
}

/// The highest rate (req/s) at which the percentile of latency is within `bound` seconds with no
/// fill wait (`max_wait` ignored); 0 when even an empty server is too slow.
#[must_use]
pub fn admissible_rate(server: BatchServer<'_>, arrivals: &Arrivals, percentile: f64, bound: f64) -> f64 {
    let batch = server.batch_times.len();
    let server = BatchServer { max_wait: 0.0, ..server };
    if batch == 0 || bound.is_nan() || server.batch_times[0] > bound {
        return 0.0;
    }
    let (one, share, cv) = one_by_one(server, 1.0, coefficient(arrivals));
    if one.processes > 1 && cv > 0.0 {
        let top = MAX_UTILISATION * capacity(one);
        let mut rate =
            search(top, 0.7 * top, CLOSE, |rate| several::excess(one, arrivals, rate, percentile, bound));
        // The glance is settled by a long look.
        for _ in 0..20 {
            if several::behaviour(one, arrivals, cv, rate, percentile).latency <= bound {
                break;
            }
            rate *= 0.98;
        }
        return rate;
    }
    let families = families(cv);
    let mut rate = families
        .iter()
        .map(|(family, weight)| weight * family.admissible(one, percentile, bound))
        .sum::<f64>()
        / share;
    if families.len() > 1 {
        // A blend of rates is close to, not the same as, the rate of the blend.
        for _ in 0..20 {
            if behaviour(server, arrivals, rate, percentile).latency <= bound {
                break;
            }
            rate *= 0.995;
        }
    }
    rate
}

/// No rate above this share of the capacity is admissible.
const MAX_UTILISATION: f64 = 0.999;

/// How closely an admissible rate is found, relative.
const CLOSE: f64 = 0.003;

/// The same for a first guess.
const ROUGH: f64 = 0.03;

/// Less than this share of the capacity is as good as nothing.
const NOTHING: f64 = 1e-5;

/// The largest rate up to `top` with no excess, to within `close`, from the safe side; sought from a
/// first guess.
fn search(top: f64, guess: f64, close: f64, excess: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut low_value) = (0.0, f64::NEG_INFINITY);
    let (mut high, mut high_value) = (top, f64::INFINITY);
    let mut at = guess.min(0.99 * top);
    for _ in 0..40 {
        let value = excess(at);
        if value <= 0.0 {
            (low, low_value) = (at, value);
        } else {
            (high, high_value) = (at, value);
        }
        if high - low <= close * high || high < NOTHING * top {
            break;
        }
        at = if low == 0.0 {
            // Late requests grow at least in proportion to the rate.
            at * (-value).exp().clamp(0.02, 1.0 - 2.0 * close)
        } else if high_value.is_infinite() && high == top {
            if top - low < 2.0 * close * top {
                top * (1.0 - 0.5 * close)
            } else {
                (low * (-0.3 * value).exp()).clamp(low * (1.0 + close), low + 0.6 * (top - low))
            }
        } else if low_value < -12.0 || high_value.is_infinite() {
            0.5 * (low + high)
        } else {
            // Regula falsi, a little to the safe side: the answer is the lower end.
            let zero = low + (high - low) * low_value / (low_value - high_value);
            let margin = 0.4 * close * high;
            if zero - margin > low + margin {
                (zero - margin).min(high - 0.1 * (high - low))
            } else {
                (low + 2.0 * margin).min(0.5 * (low + high))
            }
        };
    }
    low
}

/// The fill wait, `0 ..= bound`, that keeps the promise at this rate with the least energy per
/// request, given the dynamic energy (J) of a batch of k at index k - 1.
#[must_use]
pub fn best_wait(
    server: BatchServer<'_>,
    arrivals: &Arrivals,
    rate: f64,
    percentile: f64,
    bound: f64,
    batch_energy: &[f64],
) -> f64 {
    let at = |max_wait: f64| BatchServer { max_wait, ..server };
    let batch = server.batch_times.len();
    if batch < 2 || batch_energy.len() < batch || !(rate > 0.0 && rate < capacity(server)) {
        return 0.0;
    }
    let longest = bound - server.batch_times[0];
    let (none, is_kept) = judge(at(0.0), arrivals, rate, percentile, bound);
    // Nothing to gain from larger batches, or nothing left to gain.
    let cost = |behaviour: &Behaviour| mean_power(behaviour, rate, batch_energy);
    let least =
        rate * batch_energy.iter().enumerate().map(|(i, e)| e / (i + 1) as f64).fold(f64::INFINITY, f64::min);
    if longest.is_nan() || longest <= 0.0 || !is_kept || cost(&none) <= least * (1.0 + WORTHWHILE) {
        return 0.0;
    }
    let (mut best, mut best_cost) = (0.0, cost(&none));
    let (mut low, mut high) = (0.0, longest);
    let mut wait = longest - (server.batch_times[batch - 1] - server.batch_times[0]).min(0.5 * longest);
    for _ in 0..WAITS {
        let (behaviour, is_kept) = judge(at(wait), arrivals, rate, percentile, bound);
        if is_kept {
            low = wait;
            if cost(&behaviour) < best_cost * (1.0 - WORTHWHILE) {
                (best, best_cost) = (wait, cost(&behaviour));
            }
        } else {
            high = wait;
        }
        wait = 0.5 * (low + high);
    }
    best
}

/// Fill waits that [`best_wait`] tries.
const WAITS: usize = 6;

/// A fill wait that saves a smaller share of the energy than this is not taken.
const WORTHWHILE: f64 = 0.002;

/// Batch sizes and busy share at a rate, and whether the percentile is within the bound.
fn judge(
    server: BatchServer<'_>,
    arrivals: &Arrivals,
    rate: f64,
    percentile: f64,
    bound: f64,
) -> (Behaviour, bool) {
    let families = families(coefficient(arrivals));
    let phases = match families.as_slice() {
        [(family, _)] if server.processes <= 1 => family.phases(server, rate),
        _ => None,
    };
    if let Some(phases) = phases {
        let load = load(&phases, server, rate);
        let reach = bound * rate;
        let Some(chain) = chain::solve(&load, reach) else {
            return (Behaviour::unstable(server.batch_times.len()), false);
        };
        let tails = Tails::new(&phases, server.batch_times.len(), reach);
        let late = Sojourn::new(&load, &chain, &tails).exceed(reach);
        (summary(&load, &chain, bound), late <= 1.0 - percentile)
    } else {
        let behaviour = behaviour(server, arrivals, rate, percentile);
        let is_kept = behaviour.latency <= bound;
        (behaviour, is_kept)
    }
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

/// Coefficient of variation of the gaps. A trace counts as Poisson: who has read it passes gamma.
fn coefficient(arrivals: &Arrivals) -> f64 {
    match arrivals {
        Arrivals::Uniform => 0.0,
        Arrivals::Poisson | Arrivals::Trace { .. } => 1.0,
        Arrivals::Gamma { cv } => *cv,
    }
}

/// Executors that take one request at a time and all need the same time serve in turn: each gets every
/// n-th request, whose gaps are again of the gamma family. Then one of them stands for all.
fn one_by_one(server: BatchServer<'_>, rate: f64, cv: f64) -> (BatchServer<'_>, f64, f64) {
    if server.batch_times.len() > 1 || server.processes <= 1 {
        return (server, rate, cv);
    }
    let n = f64::from(server.processes);
    (BatchServer { processes: 1, ..server }, rate / n, cv / n.sqrt())
}

/// Arrivals of a kind that can be computed with.
enum Family {
    /// Evenly spaced.
    Even,
    /// Gaps of phase type, the same at every rate.
    Phases(Phases),
    /// Gaps with this squared coefficient of variation, above 1: how fine their bursts matter depends on
    /// the rate.
    Bursty(f64),
}

/// The families that a coefficient of variation lies between, and how near it is to each.
fn families(cv: f64) -> Vec<(Family, f64)> {
    let square = cv * cv;
    let erlang = |m: usize| Family::Phases(Phases::erlang(m));
    if square > 1.002 {
        return vec![(Family::Bursty(square), 1.0)];
    }
    if (0.51..0.99).contains(&square) {
        return vec![(Family::Phases(Phases::between_one_and_two(square)), 1.0)];
    }
    let (below, above) = if square >= 1.0 / MOST_PHASES as f64 {
        let m = (1.0 / square + 1e-9).floor().clamp(1.0, MOST_PHASES as f64);
        (1.0 / (m + 1.0), 1.0 / m)
    } else {
        (0.0, 1.0 / MOST_PHASES as f64)
    };
    let weight = ((square - below) / (above - below)).clamp(0.0, 1.0);
    let family =
        |square: f64| if square > 0.0 { erlang((1.0 / square).round() as usize) } else { Family::Even };
    if weight > 0.99 {
        vec![(family(above), 1.0)]
    } else if weight < 0.01 {
        vec![(family(below), 1.0)]
    } else {
        vec![(family(below), 1.0 - weight), (family(above), weight)]
    }
}

impl Family {
    /// Its phases at a rate; `None` of even arrivals, which have none.
    fn phases(&self, server: BatchServer<'_>, rate: f64) -> Option<Cow<'_, Phases>> {
        match self {
            Self::Even => None,
            Self::Phases(phases) => Some(Cow::Borrowed(phases)),
            Self::Bursty(square) => {
                let (batch, times) = (server.batch_times.len(), server.batch_times);
                let phases = Phases::bursty(*square, batch, times[0] * rate, times[batch - 1] * rate);
                Some(Cow::Owned(phases))
            }
        }
    }

    fn behaviour(&self, server: BatchServer<'_>, rate: f64, percentile: f64) -> Behaviour {
        let batch = server.batch_times.len();
        let Some(phases) = self.phases(server, rate) else {
            return even::behaviour(server, rate, percentile);
        };
        let load = load(&phases, server, rate);
        let Some(chain) = chain::solve(&load, f64::INFINITY) else { return Behaviour::unstable(batch) };
        let horizon = load.wait + LONGEST_WAIT * load.times[batch - 1];
        let tails = Tails::new(&phases, batch, horizon);
        let sojourn = Sojourn::new(&load, &chain, &tails);
        summary(&load, &chain, quantile(&sojourn, load.times[0], percentile) / rate)
    }

    fn admissible(&self, server: BatchServer<'_>, percentile: f64, bound: f64) -> f64 {
        let top = MAX_UTILISATION * capacity(server);
        let allowed = 1.0 - percentile;
        // How far the share of late requests is from the allowed one, as a logarithm.
        let excess = |phases: &Phases, tails: &Tails, rate: f64| -> f64 {
            let load = load(phases, server, rate);
            let Some(chain) = chain::solve(&load, bound * rate) else { return f64::INFINITY };
            let late = Sojourn::new(&load, &chain, tails).exceed(bound * rate);
            (late.max(1e-12) / allowed).ln()
        };
        let batch = server.batch_times.len();
        match self {
            Self::Even => search(top, 0.7 * top, CLOSE, |rate| {
                let latency = even::behaviour(server, rate, percentile).latency;
                if latency <= bound { -1.0 } else { 1.0 }
            }),
            Self::Phases(phases) => {
                let tails = Tails::new(phases, batch, f64::INFINITY);
                search(top, 0.7 * top, CLOSE, |rate| excess(phases, &tails, rate))
            }
            Self::Bursty(_) => {
                let poisson = Phases::erlang(1);
                let tails = Tails::new(&poisson, batch, f64::INFINITY);
                let without_bursts = search(top, 0.7 * top, ROUGH, |rate| excess(&poisson, &tails, rate));
                search(without_bursts.max(0.01 * top), 0.6 * without_bursts, CLOSE, |rate| {
                    self.phases(server, rate).map_or(f64::INFINITY, |phases| {
                        excess(&phases, &Tails::new(&phases, batch, bound * rate), rate)
                    })
                })
            }
        }
    }
}

fn summary(load: &Load<'_>, chain: &Chain, latency: f64) -> Behaviour {
    let batch_sizes = chain.batch_sizes();
    let mean =
        |of: &dyn Fn(usize) -> f64| -> f64 { batch_sizes.iter().enumerate().map(|(i, p)| p * of(i)).sum() };
    let busy = (mean(&|i| load.times[i]) / mean(&|i| (i + 1) as f64)).min(1.0);
    Behaviour { latency, busy, batch_sizes }
}

/// A server and its arrivals in mean gaps. Batch times that fall with the size are lifted: the model
/// wants them in order, and longer ones are on the safe side.
fn load<'a>(phases: &'a Phases, server: BatchServer<'_>, rate: f64) -> Load<'a> {
    let mut longest: f64 = 0.0;
    let times = server
        .batch_times
        .iter()
        .map(|t| {
            longest = longest.max(*t);
            longest * rate
        })
        .collect();
    Load { phases, times, wait: server.max_wait * rate }
}

/// The latency that a share `percentile` of requests does not exceed, to [`FINE`], from above.
fn quantile(sojourn: &Sojourn<'_>, shortest: f64, percentile: f64) -> f64 {
    let allowed = 1.0 - percentile;
    let excess = |x: f64| (sojourn.exceed(x).max(1e-12) / allowed).ln();
    let (mut low, mut high) = (0.0, shortest);
    let (mut low_value, mut high_value) = (f64::INFINITY, excess(shortest));
    while high_value > 0.0 && high < 1e9 * shortest {
        (low, low_value) = (high, high_value);
        high *= 1.6;
        high_value = excess(high);
    }
    // Tails are near exponential, so the logarithm is near linear; every third step halves, for jumps.
    let mut turn = 0;
    while high - low > FINE * high {
        turn += 1;
        let share = if turn % 3 == 0 || !low_value.is_finite() || high_value < -12.0 {
            0.5
        } else {
            (low_value / (low_value - high_value)).clamp(0.05, 0.95)
        };
        // A little beyond the zero, so that both ends close in.
        let at = (low + share * (high - low) + 0.4 * FINE * high).min(high - 0.1 * (high - low));
        let value = excess(at);
        if value > 0.0 {
            (low, low_value) = (at, value);
        } else {
            (high, high_value) = (at, value);
        }
    }
    high
}

/// Full batches' times that a request of interest may wait for its own batch.
const LONGEST_WAIT: f64 = 40.0;

/// How closely a percentile is found, relative.
const FINE: f64 = 1e-3;
