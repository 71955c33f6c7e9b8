//! A queue that loses `down` a step and gains a Poisson number → its ladder heights.
//!
//! Above a full batch the queue is a random walk, the same at every level. Its Wiener-Hopf factors turn
//! the unbounded part of the chain into a short recursion, at the same cost however close the load is
//! to capacity. The descending factor is the polynomial with the roots, within the unit circle, of
//! `z^down = exp(mean (z - 1))`; the ascending one follows by convolution. Arrivals of other phases have
//! matrices for factors, which are found by playing levels out.

use super::phases::{Counts, Phases, poisson};
use nalgebra::Complex;

/// Error of the descending factor's sum that is still trusted.
const TRUSTED: f64 = 1e-6;

/// The two ladders of the walk. States are counted by request and phase; where the walk is regular only
/// from one request to the next, there is one of everything for each phase.
pub(super) struct Ladder {
    /// Probability that the walk first gets below its start by `d` states, at d - 1, by phase of the start.
    pub(super) descend: Vec<Vec<f64>>,
    /// Expected visits to a state from `d` states below, before the walk gets below it, at d - 1, by phase
    /// of the state.
    pub(super) ascend: Vec<Vec<f64>>,
    /// Expected visits to a state, before the walk gets below it, per first visit.
    pub(super) stay: Vec<f64>,
    /// Queues get longer by one request with this ratio of probabilities, in the limit.
    pub(super) ratio: f64,
}

/// The ladders of batches of `batch` requests under Erlang arrivals of `m` phases and `mean` of them in a
/// batch; `None` when they cannot be had to working precision (an overloaded walk, for one).
pub(super) fn ladder(batch: usize, m: usize, mean: f64) -> Option<Ladder> {
    let (down, mean) = (batch * m, mean * m as f64);
    if mean.is_nan() || mean >= down as f64 {
        return None;
    }
    let descend = descending(down, mean)?;
    let gains = poisson(mean);
    let widest = gains.first + gains.data.len();
    let gain = |k: usize| {
        if k < gains.first { 0.0 } else { gains.data.get(k - gains.first).copied().unwrap_or(0.0) }
    };
    // Probability that the descending ladder touches a level n below.
    let highest = widest.saturating_sub(down);
    let mut touch = vec![1.0; highest + 1];
    for n in 1..=highest {
        touch[n] = descend.iter().take(n).enumerate().map(|(i, g)| g * touch[n - 1 - i]).sum();
    }
    let rise = |d: usize| -> f64 { (0..=highest - d).map(|i| gain(down + d + i) * touch[i]).sum() };
    let stay = 1.0 / (1.0 - rise(0));
    let ascend = (1..=highest).map(|d| rise(d) * stay).collect();
    let ratio = (-growth(down as f64, mean) * m as f64).exp();
    Some(Ladder { descend: vec![descend], ascend: vec![ascend], stay: vec![stay], ratio })
}

/// The ladders for any arrivals, `counts` of them in a full batch's time: levels far above are played out
/// until it hardly matters what is above them.
pub(super) fn ladder_by_levels(batch: usize, phases: &Phases, counts: &Counts, time: f64) -> Ladder {
    let m = phases.m;
    let widest = counts.first + counts.len(m);
    let up = widest.saturating_sub(batch).max(1);
    // Levels batch .. bottom are only left upwards; bottom .. top are eliminated.
    let bottom = batch + up;
    let top = bottom + up / 2 + PLAYED_OUT;
    let width = (widest.max(batch) + 1) * m;
    let base = |s: usize| (s / m - batch) * m;
    let at = |s: usize| (s - batch * m) * width;
    let mut rows = vec![0.0; (top - batch) * m * width];
    for level in batch..top {
        for j in 0..m {
            let s = level * m + j;
            for (a, matrix) in counts.data.chunks_exact(m * m).enumerate() {
                let to = (level - batch + counts.first + a).min(top - 1);
                let column = at(s) + to * m - base(s);
                for (i, p) in matrix[j * m..(j + 1) * m].iter().enumerate() {
                    rows[column + i] += p;
                }
            }
        }
    }
    let mut ladder = Ladder {
        descend: vec![Vec::new(); m],
        ascend: vec![Vec::new(); m],
        stay: vec![0.0; m],
        ratio: phases.tail_ratio(batch, time),
    };
    for n in (bottom * m..top * m).rev() {
        let low = base(n);
        let (before, after) = rows.split_at_mut(at(n));
        let leaving = &after[..n - low];
        let total: f64 = leaving.iter().sum();
        let scale = if total > 0.0 { 1.0 / total } else { 0.0 };
        let is_kept = n < (bottom + 1) * m;
        if is_kept {
            ladder.descend[n % m] = leaving.iter().rev().map(|p| p * scale).collect();
            ladder.stay[n % m] = scale;
        }
        for i in (batch * m..n).rev() {
            let offset = base(i);
            if offset + width <= n {
                break;
            }
            let row = &mut before[at(i)..at(i) + width];
            let factor = row[n - offset] * scale;
            if is_kept {
                ladder.ascend[n % m].push(factor);
            }
            if factor > 0.0 {
                for (to, p) in row[low - offset..n - offset].iter_mut().zip(leaving) {
                    *to += factor * p;
                }
            }
        }
    }
    ladder
}

/// Levels played out above the reach of one batch's arrivals.
const PLAYED_OUT: usize = 24;

fn descending(down: usize, mean: f64) -> Option<Vec<f64>> {
    let n = down as f64;
    let slack = n - mean;
    // 1 - descend(w) as a polynomial; z = 1 is always a root.
    let mut polynomial = Vec::with_capacity(down + 2);
    polynomial.extend([1.0, -1.0]);
    let pairs = (down - 1) / 2;
    for k in spread(pairs) {
        let z = root(n, mean, slack, k + 1)?;
        multiply(&mut polynomial, -2.0 * z.re, z.norm_sqr());
    }
    if down.is_multiple_of(2) {
        let z = root(n, mean, slack, down / 2)?;
        multiply(&mut polynomial, -z.re, 0.0);
        polynomial.pop();
    }
    let mut total = 0.0;
    let descend: Vec<f64> = polynomial[1..]
        .iter()
        .map(|c| {
            let p = (-c).max(0.0);
            total += p;
            p
        })
        .collect();
    let is_sound = (total - 1.0).abs() < TRUSTED && polynomial[1..].iter().all(|c| *c < TRUSTED);
    is_sound.then(|| descend.iter().map(|p| p / total).collect())
}

/// The k-th root within the unit circle, by Newton's method on its logarithm.
fn root(n: f64, mean: f64, slack: f64, k: usize) -> Option<Complex<f64>> {
    let turn = Complex::new(0.0, std::f64::consts::TAU * k as f64);
    // Exact for small logarithms, and on the right side of the axis for the others.
    let mut w = (Complex::from(slack) - (Complex::from(slack * slack) - turn * (2.0 * mean)).sqrt()) / mean;
    for _ in 0..60 {
        let z = w.exp();
        let step = (w * n - (z - 1.0) * mean - turn) / (Complex::from(n) - z * mean);
        w -= step;
        if step.norm_sqr() < 1e-26 {
            let z = w.exp();
            return (z.norm_sqr() <= 1.0 + 1e-9).then_some(z);
        }
    }
    None
}

/// `0..n` in an order that keeps neighbours apart, so that partial products of roots stay small.
fn spread(n: usize) -> Vec<usize> {
    let bits = usize::BITS - n.leading_zeros();
    (0..1usize << bits).map(|i| i.reverse_bits() >> (usize::BITS - bits.max(1))).filter(|i| *i < n).collect()
}

/// Multiplies by `1 + a w + b w^2`.
fn multiply(polynomial: &mut Vec<f64>, a: f64, b: f64) {
    polynomial.extend([0.0, 0.0]);
    for i in (1..polynomial.len()).rev() {
        let two = if i >= 2 { polynomial[i - 2] } else { 0.0 };
        polynomial[i] += a * polynomial[i - 1] + b * two;
    }
}

/// Positive logarithm w of the root beyond the unit circle: `down w = mean (e^w - 1)`.
fn growth(down: f64, mean: f64) -> f64 {
    let excess = |w: f64| mean * w.exp_m1() - down * w;
    let mut w = 1.0 + (down / mean).ln();
    while excess(w) < 0.0 {
        w *= 2.0;
    }
    // From the right of a convex function's root Newton's method descends to it.
    for _ in 0..60 {
        let step = excess(w) / (mean * w.exp() - down);
        w -= step;
        if step.abs() < 1e-13 * w {
            break;
        }
    }
    w
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ladder heights by playing the walk's levels out one by one.
    fn descend_slowly(down: usize, mean: f64) -> Vec<f64> {
        let gains = poisson(mean);
        let depth = 400;
        // `first[h]`: where the walk first falls below level h when it starts on it, levels above known.
        let mut known: Vec<Vec<f64>> = Vec::new();
        for _ in 0..depth {
            let mut row = vec![0.0; down + gains.first + gains.data.len() + 1];
            for (a, p) in gains.data.iter().enumerate() {
                row[gains.first + a] += p;
            }
            // Index down is the level itself; above it, fall by what is known there.
            for at in (down + 1..row.len()).rev() {
                let p = row[at];
                if let Some(fall) = known.get((known.len() + down).wrapping_sub(at)) {
                    for (i, g) in fall.iter().enumerate() {
                        row[at - 1 - i] += p * g;
                    }
                    row[at] = 0.0;
                }
            }
            let stay = row[down];
            known.push((1..=down).map(|i| row[down - i] / (1.0 - stay)).collect());
        }
        let last = known.pop().unwrap();
        let total: f64 = last.iter().sum();
        last.iter().map(|p| p / total).collect()
    }

    #[test]
    fn descending_heights_match_the_walk_played_out() {
        for (down, mean) in [(1, 0.5), (2, 1.2), (5, 4.0), (8, 3.0)] {
            let fast = &ladder(down, 1, mean).unwrap().descend[0];
            for (a, b) in fast.iter().zip(descend_slowly(down, mean)) {
                assert!((a - b).abs() < 1e-6, "{down} {mean}: {a} {b}");
            }
        }
    }

    #[test]
    fn ladders_exist_from_idle_to_the_brink() {
        for down in [1, 2, 7, 32, 64, 128, 256] {
            for load in [1e-3, 0.1, 0.5, 0.9, 0.99, 0.9999] {
                let ladder = ladder(down, 1, load * down as f64);
                let ladder = ladder.unwrap_or_else(|| panic!("{down} at {load}"));
                assert!(ladder.ratio < 1.0 && ladder.stay[0] >= 1.0);
            }
        }
        assert!(ladder(4, 1, 4.0).is_none());
    }

    #[test]
    fn both_ways_to_the_ladders_agree() {
        for (batch, m, load) in [(1, 1, 0.5), (4, 1, 0.8), (3, 2, 0.6), (6, 3, 0.9)] {
            let phases = Phases::erlang(m);
            let time = load * batch as f64;
            let exact = ladder(batch, m, time).unwrap();
            let played = ladder_by_levels(batch, &phases, &phases.counts(&[time])[0], time);
            assert!((exact.ratio - played.ratio).abs() < 1e-9, "{} {}", exact.ratio, played.ratio);
            for (a, b) in exact.descend[0].iter().zip(&played.descend[0]) {
                assert!((a - b).abs() < 2e-3, "{batch} {m}: {a} {b}");
            }
            for (a, b) in exact.ascend[0].iter().zip(&played.ascend[0]) {
                assert!((a - b).abs() < 2e-3, "{batch} {m}: {a} {b}");
            }
        }
    }
}
