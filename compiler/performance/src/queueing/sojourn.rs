//! A solved chain → the share of requests whose latency exceeds a given one.
//!
//! A request that arrives with A others ahead of it while a batch runs for another R waits for that
//! batch, then for A / batch full ones; its own batch then holds the rest and what arrives until it
//! starts. Arrivals are spread over running batches by the chain's own counts, so bursts see longer
//! queues.

use super::chain::{Chain, Load};
use super::phases::Phases;

/// Cells that a full batch's time is divided into, at least.
const CELLS: f64 = 16.0;

/// Counts rarer than this are left out where they are not compounded.
const RARE: f64 = 1e-6;

/// Ages of the oldest of several waiting requests, as quantiles.
const AGES: [f64; 3] = [1.0 / 6.0, 0.5, 5.0 / 6.0];

/// Batches that so small a share of requests is in are left out.
const RARE_BATCH: f64 = 1e-6;

/// P(at least s arrivals within a time after an arrival). Depends on the arrival process only.
pub(super) struct Tails {
    most: usize,
    spacing: f64,
    /// Row i is for the time `(i * spacing)^2`, s at index s - 1.
    rows: Vec<f64>,
}

impl Tails {
    /// For counts up to `most` and times up to `horizon`; longer ones count as enough for anything.
    pub(super) fn new(phases: &Phases, most: usize, horizon: f64) -> Self {
        let variation = phases.variation();
        let spread = variation.sqrt().clamp(0.4, 1.0);
        let longest =
            most as f64 + 6.0 * (variation.max(0.2) * most as f64).sqrt() + 6.0 * variation.max(1.0);
        let longest = longest.min(horizon);
        let spacing = (0.1 * spread).min(longest.sqrt() / 24.0);
        let n = (longest.sqrt() / spacing).ceil() as usize + 1;
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
            } else {
                phases.evolve(&mut now, 1, most, until - time);
                time = until;
            }
            let mut fewer = 0.0;
            for row in now.chunks_exact(m) {
                fewer += row.iter().sum::<f64>();
                rows.push((1.0 - fewer).max(0.0));
            }
        }
        Self { most, spacing, rows }
    }

    /// P(at least s arrivals) within one time, s at most `most`.
    #[inline]
    fn at(&self, time: f64) -> Tail<'_> {
        let at = time.max(0.0).sqrt() / self.spacing;
        let i = at as usize;
        let rows = self.rows.get(i * self.most..(i + 2) * self.most).unwrap_or(&[]);
        let (low, high) = rows.split_at(rows.len() / 2);
        Tail { low, high, share: at - i as f64 }
    }
}

/// P(at least s arrivals) within one time.
struct Tail<'a> {
    low: &'a [f64],
    high: &'a [f64],
    share: f64,
}

impl Tail<'_> {
    #[inline]
    fn at_least(&self, s: usize) -> f64 {
        match (s.checked_sub(1), self.low, self.high) {
            (Some(s), [_, ..], [_, ..]) => self.low[s] + (self.high[s] - self.low[s]) * self.share,
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
    /// Starts that leave at least so many waiting, by phase.
    left_over: Vec<f64>,
    /// Age of the oldest of n requests over the time they came in, at n - 1, for each of `AGES`.
    oldest: Vec<[f64; AGES.len()]>,
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
            let step = (full / CELLS).min((shortest / 6.0).max(at / 5.0));
            at = if at + 1.5 * step > full { full } else { at + step };
            edges.push(at);
        }
        let middles: Vec<f64> = edges.windows(2).map(|e| 0.5 * (e[0] + e[1])).collect();
        let cells: Vec<Cell> = load
            .phases
            .counts(&middles)
            .into_iter()
            .zip(edges.windows(2))
            .map(|(mut counts, edge)| {
                counts.keep_above(RARE, m);
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
        let mut left_over = chain.starts[chain.batch * m..].to_vec();
        for i in (0..left_over.len().saturating_sub(m)).rev() {
            left_over[i] += left_over[i + m];
        }
        let patient = if chain.filling.is_some() { chain.batch } else { 0 };
        let oldest = (1..=patient).map(|n| AGES.map(|v| v.powf(1.0 / n as f64))).collect();
        let mut this = Self { load, chain, tails, cells, left_over, oldest, arrivals: 1.0 };
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
        let m = self.chain.m;
        let full = self.load.times[self.chain.batch - 1];
        let filled = self.tails.at(x - full);
        // Nobody waits for a batch to fill for longer than this allows.
        let is_patient = self.chain.filling.is_some() && self.load.wait + full > x;
        let mut total = 0.0;
        match &self.chain.filling {
            None => {
                if self.load.times[0] > x {
                    total += self.chain.idle;
                }
            }
            Some(filling) if is_patient => {
                total += self.chain.idle * self.joining(0, 0.0, self.load.wait, x, &filled);
                for (g, arrivals) in filling.arrivals.iter().enumerate() {
                    let left = self.load.wait - (g as f64 + 0.5) * filling.step;
                    for (n, rate) in arrivals.iter().enumerate() {
                        if *rate > RARE_BATCH {
                            total += rate * self.joining(n + 1, 0.0, left, x, &filled);
                        }
                    }
                }
            }
            Some(_) => {}
        }
        for k in 1..=self.chain.batch {
            let starts = &self.chain.starts[(k - 1) * m..k * m];
            if starts.iter().sum::<f64>() * (k as f64) < RARE_BATCH {
                continue;
            }
            if is_patient {
                total += self.during_with_wait(k, starts, x, &filled);
            } else {
                total += self.during(k, 0, starts, starts, x);
            }
        }
        let left_over = &self.chain.starts[self.chain.batch * m..];
        total += self.during(self.chain.batch, 1, left_over, &self.left_over, x);
        total + self.chain.beyond * self.load.times[self.chain.batch - 1]
    }

    /// Arrivals during batches of k that left `least`, `least + 1`, … waiting (each with its starts by
    /// phase, `sums` from each on) and exceed x. A batch that follows starts at once.
    fn during(&self, k: usize, least: usize, starts: &[f64], sums: &[f64], x: f64) -> f64 {
        let batch = self.chain.batch;
        let (time, full) = (self.load.times[k - 1], self.load.times[batch - 1]);
        let mut total = 0.0;
        let mut partly = vec![0.0; batch + 1];
        // What fits changes abruptly with the time left; small batches, which few requests share, show it.
        let pieces = if k <= 2 || batch <= 4 { 8.0 } else { 1.0 };
        for cell in &self.cells {
            let end = cell.to.min(time);
            let mut gone = cell.from;
            while gone < end {
                let left = x - time + gone;
                let next = if left < 0.0 {
                    gone - left
                } else {
                    let within = left - (left / full).floor() * full;
                    let step = self.load.times.get(self.largest_within(within)).unwrap_or(&full) - within;
                    gone + step
                };
                let until = next.max(gone + (cell.to - cell.from) / pieces);
                let until = if until + 1e-9 * full > end { end } else { until };
                total += (until - gone)
                    * self.during_part(
                        cell,
                        time - 0.5 * (gone + until),
                        least,
                        starts,
                        sums,
                        x,
                        &mut partly,
                    );
                gone = until;
            }
        }
        total
    }

    /// The same per time, when the batch runs for another `rest`.
    #[expect(clippy::too_many_arguments, reason = "the innermost loop's context")]
    fn during_part(
        &self,
        cell: &Cell,
        rest: f64,
        least: usize,
        starts: &[f64],
        sums: &[f64],
        x: f64,
        partly: &mut [f64],
    ) -> f64 {
        let (m, batch) = (self.chain.m, self.chain.batch);
        let full = self.load.times[batch - 1];
        // With fewer than `never` ahead it is in time, with `always` ahead it is not; in between it
        // depends on how many more join its batch.
        let (never, always, start) = if x < rest {
            (0, 0, 0.0)
        } else {
            let batches = ((x - rest) / full) as usize;
            let start = rest + batches as f64 * full;
            let fits = self.largest_within(x - start).min(batch - 1);
            (batches * batch, batches * batch + fits, start)
        };
        let counts = cell.rates.len() / m;
        let most = least + starts.len() / m - 1 + cell.first + counts;
        if most <= never {
            return 0.0;
        }
        let tail = self.tails.at(start);
        for (a, slot) in partly.iter_mut().enumerate().take(always - never) {
            *slot = tail.at_least(always - never - a);
        }
        let mut share = 0.0;
        // Longer queues than this are always late.
        let queues = starts.len() / m;
        let late = always.saturating_sub(least + cell.first).min(queues);
        for j in 0..m {
            share += sums.get(late * m + j).copied().unwrap_or(0.0) * cell.onwards[j];
        }
        let early = (never + 1).saturating_sub(least + cell.first + counts).min(late);
        for (i, starts) in starts.chunks_exact(m).enumerate().take(late).skip(early) {
            let ahead = least + i + cell.first;
            let (from, to) =
                (never.saturating_sub(ahead).min(counts), always.saturating_sub(ahead).min(counts));
            let partly = &partly[(ahead + from).saturating_sub(never)..];
            let rates = &cell.rates[from * m..to * m];
            for (j, start) in starts.iter().enumerate() {
                let mut late = cell.onwards.get(to * m + j).copied().unwrap_or(0.0);
                for (rate, partly) in rates[j.min(rates.len())..].iter().step_by(m).zip(partly) {
                    late += rate * partly;
                }
                share += start * late;
            }
        }
        share
    }

    /// Arrivals during batches of k that left nothing waiting and exceed x, when batches wait to fill.
    fn during_with_wait(&self, k: usize, starts: &[f64], x: f64, filled: &Tail<'_>) -> f64 {
        let m = self.chain.m;
        let (time, wait) = (self.load.times[k - 1], self.load.wait);
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
                if weight < RARE_BATCH {
                    continue;
                }
                let ahead = cell.first + a;
                let late = if ahead == 0 {
                    self.joining(0, rest, wait, x, filled)
                } else if ahead >= self.chain.batch || wait <= rest {
                    self.joining(ahead, rest, 0.0, x, filled)
                } else {
                    // The oldest of n requests spread evenly over the time gone.
                    let late = |share: &f64| self.joining(ahead, rest, wait - gone * share, x, filled);
                    self.oldest[ahead - 1].iter().map(late).sum::<f64>() / AGES.len() as f64
                };
                share += weight * late;
            }
            total += share * (to - cell.from);
        }
        total
    }

    /// Probability that a request exceeds x which finds `ahead` others waiting, the executor busy for
    /// another `rest`, and `left` on the timer of the oldest in its batch. `filled` is about the time
    /// within which a full batch must start.
    fn joining(&self, ahead: usize, rest: f64, left: f64, x: f64, filled: &Tail<'_>) -> f64 {
        let batch = self.chain.batch;
        let full = self.load.times[batch - 1];
        let (batches, mine) = if ahead < batch { (0, ahead) } else { (ahead / batch, ahead % batch) };
        let free = rest + batches as f64 * full;
        let timer = if batches > 0 { self.load.wait } else { left };
        let latest = free.max(timer);
        if latest + full <= x {
            return 0.0;
        }
        let full_in_time = if x - full >= free { filled.at_least(batch - mine - 1) } else { 0.0 };
        let fits = self.largest_within(x - latest);
        let small_in_time = if fits > mine { 1.0 - self.tails.at(latest).at_least(fits - mine) } else { 0.0 };
        (1.0 - full_in_time - small_in_time).max(0.0)
    }
}
