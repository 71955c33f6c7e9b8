//! Latency, interference, batches and rates, as GPUlets reckons them.

use super::{Input, MOST_BATCH, Model, SLACK, Tenant};
use crate::published::Mode;

/// Rates above this are inflated by a tenth instead of by their 99th percentile.
const LARGE_RATE: f64 = 550.0;
/// Share of the seconds whose requests a share must carry.
const COVERED: f64 = 0.99;
/// Throughput must grow by this factor from one size to the next for the next to be considered.
const WORTHWHILE: f64 = 1.05;
/// A batch whose latency decides how far apart sizes are.
const REFERENCE_BATCH: u32 = 32;

/// An input and how to regard it.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub(super) input: &'a Input,
    pub(super) mode: Mode,
}

/// What shares the board: the tenants of the other shares with their percentages.
pub(super) type Neighbours<'a> = [(Tenant, u32)];

impl Rules<'_> {
    pub(super) fn model(&self, model: usize) -> &Model {
        &self.input.models[model]
    }

    /// The original keeps single precision.
    pub(super) fn real(&self, value: f64) -> f64 {
        match self.mode {
            Mode::Conformant => f64::from(value as f32),
            Mode::Native => value,
        }
    }

    /// The original keeps whole requests.
    pub(super) fn whole(&self, value: f64) -> f64 {
        match self.mode {
            Mode::Conformant => value.trunc(),
            Mode::Native => value,
        }
    }

    /// Whether so little (of `asked`) is left that it counts as served.
    pub(super) fn is_served(&self, rate: f64, asked: f64) -> bool {
        match self.mode {
            Mode::Conformant => rate <= SLACK,
            Mode::Native => rate <= 1e-9 * asked,
        }
    }

    /// The time a batch of b waits to fill at a rate (ms).
    pub(super) fn fill(&self, batch: u32, rate: f64) -> f64 {
        let gaps = match self.mode {
            Mode::Conformant => f64::from(batch),
            Mode::Native => f64::from(batch) - 1.0,
        };
        1000.0 * gaps / rate
    }

    /// Time between batches of b at a rate (ms).
    pub(super) fn duty(&self, batch: u32, rate: f64) -> f64 {
        self.real(1000.0 * f64::from(batch) / rate)
    }

    /// What a request waits in a share with one tenant of that duty cycle (ms).
    pub(super) fn wait(&self, batch: u32, duty: f64) -> f64 {
        match self.mode {
            Mode::Conformant => duty,
            Mode::Native => duty * (f64::from(batch) - 1.0) / f64::from(batch),
        }
    }

    /// The rate to plan for; `None` where the original looks for it for ever. The original looks at seconds;
    /// natively a promise longer than a second is the window, or rare requests would be planned for as one
    /// a second.
    pub(super) fn inflated(&self, rate: f64, bound_ms: f64) -> Option<f64> {
        match self.mode {
            Mode::Conformant => inflated_like_the_original(rate),
            Mode::Native => {
                let window = (bound_ms / 1000.0).max(1.0);
                Some((percentile(rate * window) / window).max(rate))
            }
        }
    }

    /// Time to gather a batch (ms).
    pub(super) fn batching(&self, model: usize, batch: u32) -> f64 {
        let own = &self.model(model).batching_ms;
        own.get(batch as usize - 1).or(own.last()).copied().unwrap_or(0.0)
    }

    /// Latency of a batch in a share (ms), gathering included, times the safety ratio.
    pub(super) fn latency(&self, model: usize, batch: u32, percent: u32, neighbours: &Neighbours<'_>) -> f64 {
        let table = self.table(model, batch, percent);
        let factor = self.interference(model, batch, percent, neighbours);
        self.real(self.input.latency_ratio * (table + self.batching(model, batch) + table * (factor - 1.0)))
    }

    /// Measured latency (ms). A batch that was not measured at a percentage is blended from the least and the
    /// greatest percentage, by where this one lies at batch 32; a percentage that was not measured lies at 0.
    fn table(&self, model: usize, batch: u32, percent: u32) -> f64 {
        let own = &self.model(model).latencies;
        let measured = |p: u32, b: u32| own.iter().find(|(q, c, _)| *q == p && *c == b).map(|(_, _, ms)| *ms);
        if let Some(ms) = measured(percent, batch) {
            return ms;
        }
        let least = own.iter().map(|(p, ..)| *p).min().unwrap_or(100);
        let most = own.iter().map(|(p, ..)| *p).max().unwrap_or(100);
        let at = |p: u32| {
            let below = own.iter().filter(|(q, b, _)| *q == p && *b <= batch).max_by_key(|(_, b, _)| *b);
            let above = own.iter().filter(|(q, b, _)| *q == p && *b >= batch).min_by_key(|(_, b, _)| *b);
            match (below, above) {
                (Some((_, b0, l0)), Some((_, b1, l1))) if b1 > b0 => {
                    l0 + (l1 - l0) * f64::from(batch - b0) / f64::from(b1 - b0)
                }
                (Some((.., l)), _) | (None, Some((.., l))) => *l,
                (None, None) => f64::INFINITY,
            }
        };
        if self.mode == Mode::Native && measured(percent, 1).is_some() {
            return at(percent);
        }
        let y = |p: u32| measured(p, REFERENCE_BATCH).unwrap_or(0.0);
        let span = y(least) - y(most);
        // With one percentage there is nothing to blend.
        let weight = if span == 0.0 { 0.0 } else { (y(percent) - y(most)) / span };
        weight * (at(least) - at(most)) + at(most)
    }

    /// How much longer a batch takes beside the worst of its neighbours, at least 1.
    fn interference(&self, model: usize, batch: u32, percent: u32, neighbours: &Neighbours<'_>) -> f64 {
        let Some(c) = self.input.interference else { return 1.0 };
        let Some(own) = self.utilisation(model, batch) else { return 1.0 };
        let share = |percent: u32| f64::from(percent) / 100.0;
        let mut worst = 1.0_f64;
        for (other, q) in neighbours {
            let Some(their) = self.utilisation(other.model, other.batch) else { continue };
            let (p, q) = (share(percent), share(*q));
            let factor = c[0] * own.0 * p + c[1] * their.0 * q + c[2] * own.1 * p + c[3] * their.1 * q + c[4];
            worst = worst.max(factor);
        }
        worst
    }

    /// L2 and memory utilisation at a batch: linear between the powers of two around it.
    fn utilisation(&self, model: usize, batch: u32) -> Option<(f64, f64)> {
        let batch = batch.min(MOST_BATCH);
        let own = &self.model(model).utilisation;
        let below = own.iter().rfind(|(b, ..)| *b <= batch);
        let above = own.iter().find(|(b, ..)| *b >= batch);
        match (below, above) {
            (Some(&(b0, l0, m0)), Some(&(b1, l1, m1))) if b1 > b0 => {
                let t = f64::from(batch - b0) / f64::from(b1 - b0);
                Some((l0 + (l1 - l0) * t, m0 + (m1 - m0) * t))
            }
            (Some(&(_, l, m)), _) | (None, Some(&(_, l, m))) => Some((l, m)),
            (None, None) => None,
        }
    }

    /// The largest batch that passes, 0 for none. The original bisects and never reaches the last.
    fn largest(&self, model: usize, passes: impl Fn(u32) -> bool) -> u32 {
        let passes = |b: u32| b <= self.model(model).most_batch && passes(b);
        if self.mode == Mode::Native {
            return (1..=MOST_BATCH).rev().find(|b| passes(*b)).unwrap_or(0);
        }
        let (mut low, mut high) = (1, MOST_BATCH);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if passes(middle) { low = middle } else { high = middle }
        }
        if low > 1 || passes(1) { low } else { 0 }
    }

    /// The largest batch whose execution takes half the promise, 0 for none.
    pub(super) fn saturated_batch(&self, model: usize, percent: u32, neighbours: &Neighbours<'_>) -> u32 {
        let bound = self.model(model).bound_ms;
        self.largest(model, |b| 2.0 * self.latency(model, b, percent, neighbours) <= bound)
    }

    /// The largest batch that fills and is executed within the promise, 0 for none. With nothing at all, a
    /// batch of one may still do at a greater rate; the rate is then raised.
    pub(super) fn residue_batch(
        &self,
        model: usize,
        percent: u32,
        rate: &mut f64,
        neighbours: &Neighbours<'_>,
    ) -> u32 {
        let bound = self.model(model).bound_ms;
        let latency = |b: u32| self.latency(model, b, percent, neighbours);
        let batch = self.largest(model, |b| latency(b) + self.fill(b, *rate) <= bound);
        if batch > 0 || self.mode == Mode::Native {
            return batch;
        }
        let one = latency(1);
        if one < 1000.0 / *rate && one < bound {
            *rate = (self.input.latency_ratio * 1000.0 / (bound - one)).trunc();
            return 1;
        }
        0
    }

    /// Batch, latency (ms) and throughput (req/s) of a share that is always busy and has no neighbour.
    pub(super) fn saturated(&self, model: usize, percent: u32) -> (u32, f64, f64) {
        let batch = self.saturated_batch(model, percent, &[]).max(1);
        let latency = self.latency(model, batch, percent, &[]);
        (batch, latency, self.real(1000.0 * f64::from(batch) / latency))
    }

    /// Sizes, ascending, each once.
    pub(super) fn sizes(&self) -> Vec<u32> {
        let mut sizes = self.input.partitions.clone();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The size with the steepest growth of throughput below it, the step to 100 left out.
    pub(super) fn knee(&self, model: usize) -> u32 {
        let sizes = self.sizes();
        let mut best = (0.0, sizes.first().copied().unwrap_or(100));
        for pair in sizes.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            if high == 100 {
                continue;
            }
            let (at_low, at_high) = (self.saturated(model, low).2, self.saturated(model, high).2);
            let slope = (at_high - at_low) / f64::from(high - low);
            if at_high / at_low >= WORTHWHILE && slope > best.0 {
                best = (slope, high);
            }
        }
        best.1
    }
}

/// Rates up to [`LARGE_RATE`] become one more than their 99th percentile, in which the probability of no
/// request at all is forgotten: below 5 req/s the rest never adds up to 99 %.
fn inflated_like_the_original(rate: f64) -> Option<f64> {
    if rate > LARGE_RATE {
        return Some((1.1 * rate).trunc());
    }
    counts(rate)
        .scan(0.0, |sum, (k, p)| {
            *sum += if k > 0 { p } else { 0.0 };
            Some((k, *sum))
        })
        .find(|(_, sum)| *sum >= COVERED)
        .map(|(k, _)| f64::from(k + 1))
}

/// The 99th percentile of a Poisson count with this mean.
fn percentile(mean: f64) -> f64 {
    if mean > LARGE_RATE {
        return mean + 2.3263 * mean.sqrt() + 0.5;
    }
    let mut sum = 0.0;
    for (k, p) in counts(mean) {
        sum += p;
        if sum >= COVERED {
            return f64::from(k);
        }
    }
    mean
}

/// Counts and their Poisson probabilities, far into the tail.
fn counts(mean: f64) -> impl Iterator<Item = (u32, f64)> {
    let last = (10.0 * mean) as u32 + 100;
    let mut probability = (-mean).exp();
    (0..=last).map(move |k| {
        if k > 0 {
            probability *= mean / f64::from(k);
        }
        (k, probability)
    })
}
