//! A solved chain → the share of requests whose latency exceeds a given one.
//!
//! A request that arrives with A others ahead of it while a batch runs for another R waits for that
//! batch, then for A / batch full ones; its own batch then holds the rest and what arrives until it
//! starts. Arrivals are spread over running batches by the chain's own counts, so bursts see longer
//! queues.

use super::chain::{Chain, Load};
use super::phases::Phases;

/// Cells that a full batch's time is divided into, at least.
const CELLS: f64 = 24.0;

/// Ages of the oldest of several waiting requests, as quantiles.
const AGES: [f64; 4] = [0.125, 0.375, 0.625, 0.875];

/// P(at least s arrivals within a time after an arrival). Depends on the arrival process only.
pub(super) struct Tails {
    most: usize,
    spacing: f64,
    /// Row i is for the time `(i * spacing)^2`, s at index s - 1.
    rows: Vec<f64>,
}

impl Tails {
    pub(super) fn new(phases: &Phases, variation: f64, most: usize) -> Self {
        let spread = variation.sqrt().clamp(0.4, 1.0);
        let spacing = 0.1 * spread;
        let longest =
            most as f64 + 6.0 * (variation.max(0.2) * most as f64).sqrt() + 6.0 * variation.max(1.0);
        let n = (longest.sqrt() / spacing).ceil() as usize;
        let m = phases.m;
        let mut rows = Vec::with_capacity((n + 1) * most);
        // Fewer than `most` arrivals so far, by (count, phase).
        let mut now = vec![0.0; most * m];
        now[..m].copy_from_slice(&phases.start);
        let mut time = 0.0;
        for i in 0..=n {
            let until = (i as f64 * spacing).powi(2);
            if m == 1 {
                let counts = super::phases::poisson(until);
                now.iter_mut().for_each(|p| *p = 0.0);
                for (a, p) in counts.data.iter().enumerate() {
                    if let Some(slot) = now.get_mut(counts.first + a) {
                        *slot = *p;
                    }
                }
            } else if until > time {
                let step = phases.short_or_long(until - time);
                let mut then = vec![0.0; most * m];
                for (from, row) in now.chunks_exact(m).enumerate() {
                    for (a, matrix) in step.data.chunks_exact(m * m).enumerate() {
                        let to = from + step.first + a;
                        if to >= most {
                            break;
                        }
                        for (i, p) in row.iter().enumerate() {
                            for (j, x) in matrix[i * m..(i + 1) * m].iter().enumerate() {
                                then[to * m + j] += p * x;
                            }
                        }
                    }
                }
                now = then;
            }
            time = until;
            let mut fewer = 0.0;
            for row in now.chunks_exact(m) {
                fewer += row.iter().sum::<f64>();
                rows.push((1.0 - fewer).max(0.0));
            }
        }
        Self { most, spacing, rows }
    }

    /// P(at least s arrivals within the time), s at most `most`.
    #[inline]
    fn at_least(&self, s: isize, time: f64) -> f64 {
        if s <= 0 {
            return 1.0;
        }
        let at = time.max(0.0).sqrt() / self.spacing;
        let i = at as usize;
        let s = s as usize - 1;
        match (self.rows.get(i * self.most + s), self.rows.get((i + 1) * self.most + s)) {
            (Some(a), Some(b)) => a + (b - a) * (at - i as f64),
            _ => 1.0,
        }
    }
}

/// Part of a running batch's time, and how many arrived until its middle.
struct Cell {
    from: f64,
    to: f64,
    first: usize,
    /// Rate of arrivals that find `first + a` before them, batch begun in phase j, at `a * m + j`.
    rates: Vec<f64>,
    /// The same, summed over all counts from `first + a` on.
    onwards: Vec<f64>,
}

/// What is needed to ask for shares.
pub(super) struct Sojourn<'a> {
    load: &'a Load<'a>,
    chain: &'a Chain,
    tails: &'a Tails,
    cells: Vec<Cell>,
    /// All arrivals per batch.
    arrivals: f64,
}

impl<'a> Sojourn<'a> {
    pub(super) fn new(load: &'a Load<'a>, chain: &'a Chain, tails: &'a Tails) -> Self {
        let m = chain.m;
        let (shortest, full) = (load.times[0], load.times[chain.batch - 1]);
        let mut edges = vec![0.0];
        let mut at = 0.0;
        while at < full * (1.0 - 1e-9) {
            let step = (full / CELLS).min((shortest / 8.0).max(at / 6.0));
            at = if at + 1.5 * step > full { full } else { at + step };
            edges.push(at);
        }
        let middles: Vec<f64> = edges.windows(2).map(|e| 0.5 * (e[0] + e[1])).collect();
        let cells: Vec<Cell> = load
            .phases
            .counts(&middles)
            .into_iter()
            .zip(edges.windows(2))
            .map(|(counts, edge)| {
                let mut rates = Vec::with_capacity(counts.len(m) * m);
                for matrix in counts.data.chunks_exact(m * m) {
                    for j in 0..m {
                        rates.push(
                            matrix[j * m..(j + 1) * m]
                                .iter()
                                .zip(&load.phases.arrive)
                                .map(|(p, d)| p * d)
                                .sum(),
                        );
                    }
                }
                let mut onwards = rates.clone();
                for i in (0..onwards.len().saturating_sub(m)).rev() {
                    onwards[i] += onwards[i + m];
                }
                Cell { from: edge[0], to: edge[1], first: counts.first, rates, onwards }
            })
            .collect();
        let mut this = Self { load, chain, tails, cells, arrivals: 1.0 };
        this.arrivals = this.exceeding(-1.0);
        this
    }

    /// Share of requests whose latency exceeds x.
    pub(super) fn exceed(&self, x: f64) -> f64 {
        self.exceeding(x) / self.arrivals
    }

    fn largest_within(&self, time: f64) -> usize {
        self.load.times.partition_point(|t| *t <= time)
    }

    /// Requests per batch whose latency exceeds x.
    fn exceeding(&self, x: f64) -> f64 {
        let mut total = 0.0;
        match &self.chain.filling {
            None => {
                if self.load.times[0] > x {
                    total += self.chain.idle;
                }
            }
            Some(filling) => {
                total += self.chain.idle * self.joining(0, 0.0, self.load.wait, x);
                for (g, arrivals) in filling.arrivals.iter().enumerate() {
                    let left = self.load.wait - (g as f64 + 0.5) * filling.step;
                    for (n, rate) in arrivals.iter().enumerate() {
                        if *rate > 1e-12 {
                            total += rate * self.joining(n + 1, 0.0, left, x);
                        }
                    }
                }
            }
        }
        let m = self.chain.m;
        for k in 1..=self.chain.batch {
            let starts = &self.chain.starts[(k - 1) * m..k * m];
            if starts.iter().sum::<f64>() < 1e-9 {
                continue;
            }
            if self.chain.filling.is_some() {
                total += self.during_with_wait(k, starts, x);
            } else {
                total += self.during(k, 0, starts, x);
            }
        }
        let left_over = &self.chain.starts[self.chain.batch * m..];
        total + self.during(self.chain.batch, 1, left_over, x)
    }

    /// Arrivals during batches of k that left `least`, `least + 1`, … waiting (each with its starts by
    /// phase) and exceed x. A batch that follows starts at once.
    fn during(&self, k: usize, least: usize, starts: &[f64], x: f64) -> f64 {
        let (m, batch) = (self.chain.m, self.chain.batch);
        let (time, full) = (self.load.times[k - 1], self.load.times[batch - 1]);
        let mut total = 0.0;
        let mut partly = vec![0.0; batch + 1];
        for cell in &self.cells {
            let to = cell.to.min(time);
            if to <= cell.from {
                break;
            }
            let rest = time - 0.5 * (cell.from + to);
            // With fewer than `never` ahead it is in time, with `always` ahead it is not; in between it
            // depends on how many more join its batch.
            let (never, always) = if x < rest {
                (0, 0)
            } else {
                let batches = ((x - rest) / full) as usize;
                let fits = self.largest_within(x - rest - batches as f64 * full).min(batch - 1);
                let start = rest + batches as f64 * full;
                for (i, slot) in partly[..fits].iter_mut().enumerate() {
                    *slot = self.tails.at_least((fits - i) as isize, start);
                }
                (batches * batch, batches * batch + fits)
            };
            let counts = cell.rates.len() / m;
            let mut share = 0.0;
            for (i, starts) in starts.chunks_exact(m).enumerate() {
                let ahead = least + i + cell.first;
                if ahead + counts <= never {
                    continue;
                }
                let (from, to) =
                    (never.saturating_sub(ahead).min(counts), always.saturating_sub(ahead).min(counts));
                for (j, start) in starts.iter().enumerate() {
                    let mut late = if to < counts { cell.onwards[to * m + j] } else { 0.0 };
                    for a in from..to {
                        late += cell.rates[a * m + j] * partly[ahead + a - never];
                    }
                    share += start * late;
                }
            }
            total += share * (to - cell.from);
        }
        total
    }

    /// Arrivals during batches of k that left nothing waiting and exceed x, when batches wait to fill.
    fn during_with_wait(&self, k: usize, starts: &[f64], x: f64) -> f64 {
        let m = self.chain.m;
        let time = self.load.times[k - 1];
        let mut total = 0.0;
        for cell in &self.cells {
            let to = cell.to.min(time);
            if to <= cell.from {
                break;
            }
            let gone = 0.5 * (cell.from + to);
            let rest = time - gone;
            let mut share = 0.0;
            for (a, rates) in cell.rates.chunks_exact(m).enumerate() {
                let weight: f64 = rates.iter().zip(starts).map(|(r, s)| r * s).sum();
                if weight < 1e-12 {
                    continue;
                }
                let ahead = cell.first + a;
                let late = if ahead == 0 {
                    self.joining(0, rest, self.load.wait, x)
                } else if ahead >= self.chain.batch || self.load.wait <= rest {
                    self.joining(ahead, rest, 0.0, x)
                } else {
                    // The oldest of n requests spread evenly over the time gone.
                    let root = 1.0 / ahead as f64;
                    let sum: f64 = AGES
                        .iter()
                        .map(|v| self.joining(ahead, rest, self.load.wait - gone * v.powf(root), x))
                        .sum();
                    sum / AGES.len() as f64
                };
                share += weight * late;
            }
            total += share * (to - cell.from);
        }
        total
    }

    /// Probability that a request exceeds x which finds `ahead` others waiting, the executor busy for
    /// another `rest`, and `left` on the timer of the oldest in its batch.
    fn joining(&self, ahead: usize, rest: f64, left: f64, x: f64) -> f64 {
        let batch = self.chain.batch;
        let full = self.load.times[batch - 1];
        let batches = ahead / batch;
        let mine = (ahead % batch) as isize;
        let free = rest + batches as f64 * full;
        let timer = if batches > 0 { self.load.wait } else { left };
        let latest = free.max(timer);
        if latest + full <= x {
            return 0.0;
        }
        let until = x - full;
        let filled = if until >= free { self.tails.at_least(batch as isize - mine - 1, until) } else { 0.0 };
        let fits = self.largest_within(x - latest) as isize;
        let few = 1.0 - self.tails.at_least(fits - mine, latest);
        (1.0 - filled - few).max(0.0)
    }
}
