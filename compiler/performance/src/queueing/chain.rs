//! One executor, phase-type arrivals → how many requests wait when batches start.
//!
//! Batch starts form a Markov chain on (requests waiting, arrival phase): a batch takes all that wait,
//! at most `batch`; what arrives meanwhile waits for the next; an executor that finds too few idles
//! until enough wait or the oldest is out of patience. The chain is solved exactly (up to steps of the
//! patience timer): everything beyond a full batch is folded onto the rest by the walk's ladder heights,
//! and the rest solved by the elimination of Grassmann, Taksar and Heyman, which subtracts nothing and so
//! loses no digits.
//!
//! Time is counted in mean gaps between arrivals.

use super::ladder::{Ladder, ladder, ladder_by_levels};
use super::phases::{Counts, Phases};

/// Steps of the patience timer.
const TIMER_STEPS: usize = 24;

/// Longest queue that is followed; the tail beyond it is lumped.
const MOST_LEVELS: usize = 100_000;

/// Natural logarithm of the share of queue lengths that may be lumped.
const TRUNCATION: f64 = 16.0;

/// A batch server and its arrivals, in mean gaps.
pub(super) struct Load<'a> {
    pub(super) phases: &'a Phases,
    /// Time of a batch of k at index k - 1, not descending.
    pub(super) times: Vec<f64>,
    /// Patience of the oldest waiting request.
    pub(super) wait: f64,
}

/// Requests that wait for their batch to fill while the executor idles, by time left on the timer.
pub(super) struct Filling {
    /// Length of a step of the timer.
    pub(super) step: f64,
    /// Arrivals in a step that find n requests waiting (at index n - 1) with (g + 1/2) steps gone.
    pub(super) arrivals: Vec<Vec<f64>>,
}

/// The chain, solved.
pub(super) struct Chain {
    pub(super) m: usize,
    pub(super) batch: usize,
    /// Share of batch starts that find q requests in phase j, at `(q - 1) * m + j`.
    pub(super) starts: Vec<f64>,
    /// Share of batch starts that find more than that.
    pub(super) beyond: f64,
    /// Requests that arrive to an idle executor and an empty queue, per batch.
    pub(super) idle: f64,
    /// Present when batches wait to fill.
    pub(super) filling: Option<Filling>,
}

impl Chain {
    /// Share of batches that have k requests, at index k - 1.
    pub(super) fn batch_sizes(&self) -> Vec<f64> {
        let mut sizes = vec![0.0; self.batch];
        for (i, p) in self.starts.iter().enumerate() {
            sizes[(i / self.m).min(self.batch - 1)] += p;
        }
        sizes[self.batch - 1] += self.beyond;
        sizes
    }
}

/// Where completions of a batch lead, by how many requests wait then.
struct Next {
    /// Starts at once: share by (q, phase).
    row: Vec<f64>,
    /// Fills: share by timer step and (n, phase), n < batch.
    inflow: Vec<Vec<f64>>,
    idle: f64,
}

struct Timer {
    step: f64,
    counts: Counts,
}

struct Builder<'a> {
    load: &'a Load<'a>,
    batch: usize,
    m: usize,
    levels: usize,
    counts: Vec<Counts>,
    timer: Option<Timer>,
}

/// Solves the chain; `None` when the server cannot keep up. Queues that make a request wait for longer
/// than `reach` need not be told apart.
pub(super) fn solve(load: &Load<'_>, reach: f64) -> Option<Chain> {
    let batch = load.times.len();
    let full = *load.times.last()?;
    let utilisation = full / batch as f64;
    if utilisation.is_nan() || utilisation >= 1.0 {
        return None;
    }
    let m = load.phases.m;
    let counts = load.phases.counts(&load.times);
    let widest = counts.iter().map(|c| c.first + c.len(m)).max().unwrap_or(1).max(batch + 1);
    let timer = (load.wait > 0.0 && batch > 1).then(|| {
        let step = load.wait / TIMER_STEPS as f64;
        Timer { step, counts: load.phases.counts_in(step) }
    });
    let exact = if load.phases.is_erlang { ladder(batch, m, full) } else { None };
    let ladder = exact.unwrap_or_else(|| ladder_by_levels(batch, load.phases, &counts[batch - 1], full));
    let builder = Builder { load, batch, m, levels: widest, counts, timer };
    let (starts, beyond) = builder.fold(&ladder, reach);
    let (idle, filling) = builder.between(&starts);
    Some(Chain { m, batch, starts, beyond, idle, filling })
}

impl Builder<'_> {
    fn empty(&self) -> Next {
        let steps = if self.timer.is_some() { TIMER_STEPS } else { 0 };
        Next {
            row: vec![0.0; self.levels * self.m],
            inflow: vec![vec![0.0; self.batch * self.m]; steps],
            idle: 0.0,
        }
    }

    /// Adds where a batch of `k` that left nothing waiting leads, begun in `phase`, with a weight.
    fn complete(&self, k: usize, phase: usize, weight: f64, next: &mut Next) {
        let m = self.m;
        let counts = &self.counts[k - 1];
        // Share of the oldest request's age within each step of the timer: the largest of n uniform ages.
        let ratios: Vec<f64> = self.timer.as_ref().map_or_else(Vec::new, |timer| {
            (0..TIMER_STEPS)
                .map(|g| ((g as f64 + 0.5) * timer.step / self.load.times[k - 1]).min(1.0))
                .collect()
        });
        let mut powers: Vec<f64> = ratios.iter().map(|r| r.powi(counts.first as i32)).collect();
        for (a, matrix) in counts.data.chunks_exact(m * m).enumerate() {
            let n = counts.first + a;
            let shares = &matrix[phase * m..(phase + 1) * m];
            if n == 0 {
                next.idle += weight * shares.iter().sum::<f64>();
            } else if n >= self.batch || self.timer.is_none() {
                let level = n.min(self.levels);
                for (j, p) in shares.iter().enumerate() {
                    next.row[(level - 1) * m + j] += weight * p;
                }
            } else {
                let mut below = 0.0;
                for (g, power) in powers.iter().enumerate() {
                    let share = power - below;
                    below = *power;
                    for (j, p) in shares.iter().enumerate() {
                        next.inflow[g][(n - 1) * m + j] += weight * p * share;
                    }
                }
                for (j, p) in shares.iter().enumerate() {
                    next.row[(n - 1) * m + j] += weight * p * (1.0 - below);
                }
            }
            for (power, ratio) in powers.iter_mut().zip(&ratios) {
                *power *= ratio;
            }
        }
    }

    /// Lets idle executors and filling batches come to their start; records who arrives meanwhile.
    fn fill(&self, next: &mut Next, mut arrivals: Option<&mut Vec<Vec<f64>>>) {
        let m = self.m;
        let start = &self.load.phases.start;
        let Some(timer) = &self.timer else {
            for (j, p) in start.iter().enumerate() {
                next.row[j] += next.idle * p;
            }
            return;
        };
        let below = self.batch - 1;
        let mut now = vec![0.0; self.batch * m];
        for (j, p) in start.iter().enumerate() {
            now[j] += next.idle * p;
        }
        let mut full = 0.0;
        for g in 0..TIMER_STEPS {
            for (n, i) in now.iter_mut().zip(&next.inflow[g]) {
                *n += i;
            }
            let mut then = vec![0.0; self.batch * m];
            for n in 1..=below {
                for i in 0..m {
                    let weight = now[(n - 1) * m + i];
                    if weight < 1e-14 {
                        continue;
                    }
                    for (a, matrix) in timer.counts.data.chunks_exact(m * m).enumerate() {
                        let to = n + timer.counts.first + a;
                        let shares = &matrix[i * m..(i + 1) * m];
                        if to >= self.batch {
                            full += weight * shares.iter().sum::<f64>();
                        } else {
                            for (j, p) in shares.iter().enumerate() {
                                then[(to - 1) * m + j] += weight * p;
                            }
                        }
                    }
                }
            }
            if let Some(arrivals) = arrivals.as_deref_mut() {
                arrivals.push(
                    (0..below)
                        .map(|n| {
                            (0..m)
                                .map(|j| {
                                    0.5 * (now[n * m + j] + then[n * m + j])
                                        * self.load.phases.arrive[j]
                                        * timer.step
                                })
                                .sum()
                        })
                        .collect(),
                );
            }
            now = then;
        }
        for (row, n) in next.row.iter_mut().zip(&now) {
            *row += n;
        }
        for (j, p) in start.iter().enumerate() {
            next.row[below * m + j] += full * p;
        }
    }

    /// What happens between a batch's end and the next start, given all starts.
    fn between(&self, starts: &[f64]) -> (f64, Option<Filling>) {
        let m = self.m;
        let mut next = self.empty();
        for k in 1..=self.batch {
            for j in 0..m {
                self.complete(k, j, starts[(k - 1) * m + j], &mut next);
            }
        }
        let idle = next.idle;
        let filling = self.timer.as_ref().map(|timer| {
            let mut arrivals = Vec::with_capacity(TIMER_STEPS);
            self.fill(&mut next, Some(&mut arrivals));
            Filling { step: timer.step, arrivals }
        });
        (idle, filling)
    }

    /// Rows of the chain for batches that leave nothing waiting, by (batch, phase) of their start.
    fn boundary(&self) -> impl Iterator<Item = Vec<f64>> {
        (0..self.batch * self.m).map(|s| {
            let mut next = self.empty();
            self.complete(s / self.m + 1, s % self.m, 1.0, &mut next);
            self.fill(&mut next, None);
            next.row
        })
    }

    /// The stationary distribution, longer queues than a batch folded away by the walk's ladders; and
    /// the share of queues that are longer than listed.
    fn fold(&self, ladder: &Ladder, reach: f64) -> (Vec<f64>, f64) {
        let (m, n) = (self.m, self.batch * self.m);
        let above = self.levels * m - n;
        let classes = ladder.descend.len();
        let reversed = |lists: &[Vec<f64>]| -> Vec<Vec<f64>> {
            lists.iter().map(|list| list.iter().rev().copied().collect()).collect()
        };
        let falls = reversed(&ladder.descend);
        let rises = reversed(&ladder.ascend);
        let mut inside = vec![0.0; n * n];
        let mut visits = vec![0.0; n * above];
        for (s, mut row) in self.boundary().enumerate() {
            for at in (n..row.len()).rev() {
                let p = row[at];
                if p > 0.0 {
                    visits[s * above + at - n] = p * ladder.stay[at % classes];
                    let fall = &falls[at % classes];
                    for (to, fall) in row[at - fall.len()..at].iter_mut().zip(fall) {
                        *to += p * fall;
                    }
                }
            }
            inside[s * n..(s + 1) * n].copy_from_slice(&row[..n]);
        }
        let mut starts = stationary(&mut inside, n);
        // Long enough for the tail to have become geometric, and to tell what the caller asks.
        let full = self.load.times[self.batch - 1];
        let settled = self.batch + 2 * ladder.ascend[0].len().div_ceil(m).max(above / m);
        let needed = ((reach / full + 2.0) * self.batch as f64).min(TRUNCATION / (1.0 - ladder.ratio));
        let levels = settled.max(needed as usize).min(MOST_LEVELS);
        starts.resize(levels * m, 0.0);
        for s in 0..n {
            let weight = starts[s];
            for (to, v) in starts[n..].iter_mut().zip(&visits[s * above..(s + 1) * above]) {
                *to += weight * v;
            }
        }
        for at in n..levels * m {
            let rise = &rises[at % classes];
            let reach = rise.len().min(at - n);
            let (before, after) = starts.split_at_mut(at);
            let from = before[at - reach..].iter().zip(&rise[rise.len() - reach..]);
            after[0] += from.map(|(p, r)| p * r).sum::<f64>();
        }
        let level = |starts: &[f64], l: usize| -> f64 { starts[l * m..(l + 1) * m].iter().sum() };
        // Ladders that were played out have the tail's ratio only nearly; the exact one is known. A tail
        // that is far off it is one of counts too rare to be followed, at light load.
        let (last, previous) = (level(&starts, levels - 1), level(&starts, levels - 2));
        let correction = ladder.ratio * previous / last;
        if classes > 1 && (0.95..1.05).contains(&correction) {
            let mut factor = 1.0;
            for level in starts[n..].chunks_exact_mut(m) {
                factor *= correction;
                level.iter_mut().for_each(|p| *p *= factor);
            }
        }
        let beyond = level(&starts, levels - 1) * ladder.ratio / (1.0 - ladder.ratio);
        let total: f64 = starts.iter().sum::<f64>() + beyond;
        starts.iter_mut().for_each(|p| *p /= total);
        (starts, beyond / total)
    }
}

/// Stationary distribution, up to a factor, of an n x n transition matrix, row by row.
fn stationary(matrix: &mut [f64], n: usize) -> Vec<f64> {
    for last in (1..n).rev() {
        let (before, after) = matrix.split_at_mut(last * n);
        let leaving = &after[..last];
        let total: f64 = leaving.iter().sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        for row in before.chunks_exact_mut(n) {
            let factor = row[last] * scale;
            row[last] = factor;
            if factor > 0.0 {
                for (to, p) in row[..last].iter_mut().zip(leaving) {
                    *to += factor * p;
                }
            }
        }
    }
    let mut shares = vec![0.0; n];
    if let Some(first) = shares.first_mut() {
        *first = 1.0;
    }
    for s in 0..n {
        let weight = shares[s];
        for to in s + 1..n {
            shares[to] += weight * matrix[s * n + to];
        }
    }
    shares
}
