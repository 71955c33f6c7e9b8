//! Measured rows → predictions that are those rows and nothing else.
//!
//! A row proves that its point runs and fits in memory; a point without a row may not be used. Only the
//! times of batches that are not full are interpolated, between measured batches of the same slices,
//! processes and clock.

use crate::predict::{PointKey, Prediction, ShareKey, base_profile_index};
use ent_plan::device::Board;
use ent_plan::performance::PerformanceTable;
use ent_plan::units::{Megahertz, Seconds, Watts};
use std::collections::BTreeMap;

/// Rows by (compute slices, processes, clock), then batch.
type Rows = BTreeMap<(u32, u32, Megahertz), BTreeMap<u32, Point>>;

/// A measured table, indexed.
#[derive(Clone, Debug)]
pub(crate) struct TablePerformance {
    rows: Rows,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    throughput: f64,
    latency_p99: f64,
    dynamic_power: Option<f64>,
}

impl TablePerformance {
    /// Indexes the rows. A row without a clock was measured at the board's highest.
    pub(crate) fn new(table: &PerformanceTable, board: &Board) -> Self {
        let mut rows = Rows::new();
        for m in &table.measurements {
            let Some(clock) = m.clock.or_else(|| highest_clock(board)) else { continue };
            let base = || board.base_power.as_ref()?.at(clock);
            let from_total = || Some((m.board_power?.get() - base()?.get()).max(0.0));
            let point = Point {
                throughput: m.throughput.get(),
                latency_p99: m.latency_p99.get(),
                dynamic_power: m.dynamic_power.map(Watts::get).or_else(from_total),
            };
            let is_usable = point.throughput.is_finite() && point.throughput > 0.0 && point.latency_p99 > 0.0;
            if is_usable && m.batch > 0 && m.processes > 0 {
                rows.entry((m.n_compute_slices, m.processes, clock)).or_default().insert(m.batch, point);
            }
        }
        Self { rows }
    }

    /// Every row, as a point of the board.
    pub(crate) fn points(&self, board: &Board) -> Vec<PointKey> {
        let mut points = Vec::new();
        for ((slices, processes, clock), batches) in &self.rows {
            let Some(profile) = base_profile_index(board, *slices) else { continue };
            points.extend(batches.keys().map(|batch| PointKey {
                profile,
                processes: *processes,
                batch: *batch,
                clock: *clock,
            }));
        }
        points.sort_unstable();
        points
    }

    /// The row of a point.
    pub(crate) fn predict(&self, board: &Board, key: PointKey) -> Option<Prediction> {
        let slices = board.profiles.get(key.profile)?.n_compute_slices;
        if base_profile_index(board, slices) != Some(key.profile) {
            return None;
        }
        let batches = self.rows.get(&(slices, key.processes, key.clock))?;
        let full = batches.get(&key.batch)?;
        let times: Vec<(u32, f64)> = batches
            .range(..=key.batch)
            .map(|(batch, p)| (*batch, batch_time(key.processes, *batch, p.throughput)))
            .collect();
        let powers: Vec<(u32, f64)> = match full.dynamic_power {
            Some(_) => batches
                .range(..=key.batch)
                .filter_map(|(batch, p)| Some((*batch, p.dynamic_power?)))
                .collect(),
            None => Vec::new(),
        };
        Some(Prediction {
            batch_times: between(&times, key.batch).into_iter().map(Seconds).collect(),
            dynamic_power: between(&powers, key.batch).into_iter().map(Watts).collect(),
            latency_p99: Seconds(full.latency_p99),
            time_error: 0.0,
            power_error: 0.0,
            source: "table",
        })
    }
}

/// What one size does: times (s) and powers (W) of batches up to the one asked for, and its p99 (s).
struct Sized {
    slices: f64,
    times: Vec<f64>,
    powers: Vec<f64>,
    latency_p99: f64,
}

impl TablePerformance {
    /// The prediction for a share of a board: between the measured sizes around it, linear in logarithms.
    /// Below the smallest, times grow as the share shrinks and a batch costs the same energy; above the
    /// largest it is as fast as that.
    pub(crate) fn predict_share(&self, board: &Board, share: ShareKey) -> Option<Prediction> {
        let slices = share.slices(board);
        let sizes: Vec<Sized> = self
            .rows
            .iter()
            .filter(|((_, processes, clock), _)| *processes == share.processes && *clock == share.clock)
            .filter_map(|((n, processes, _), batches)| sized(*n, *processes, batches, share.batch))
            .collect();
        let above = sizes.partition_point(|s| s.slices < slices);
        let (low, high) = match (above.checked_sub(1).and_then(|i| sizes.get(i)), sizes.get(above)) {
            (Some(low), Some(high)) => (low, high),
            (None, Some(only)) | (Some(only), None) => (only, only),
            (None, None) => return None,
        };
        let span = (high.slices / low.slices).ln();
        let part = if span > 0.0 { (slices / low.slices).ln() / span } else { 0.0 };
        let slower = if span > 0.0 { 1.0 } else { (low.slices / slices).max(1.0) };
        let between =
            |a: f64, b: f64| if a > 0.0 && b > 0.0 { a.powf(1.0 - part) * b.powf(part) } else { a.max(b) };
        let all = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| between(*a, *b)).collect::<Vec<_>>();
        Some(Prediction {
            batch_times: all(&low.times, &high.times).into_iter().map(|t| Seconds(t * slower)).collect(),
            dynamic_power: all(&low.powers, &high.powers).into_iter().map(|w| Watts(w / slower)).collect(),
            latency_p99: Seconds(between(low.latency_p99, high.latency_p99) * slower),
            time_error: 0.0,
            power_error: 0.0,
            source: "extrapolated",
        })
    }
}

/// What the rows of one size say of batches up to `batch`; `None` when all measured ones are smaller.
fn sized(n: u32, processes: u32, batches: &BTreeMap<u32, Point>, batch: u32) -> Option<Sized> {
    let last = batches.range(batch..).next().map(|(b, _)| *b)?;
    let up_to = |of: &dyn Fn(u32, &Point) -> Option<f64>| {
        let knots: Vec<(u32, f64)> =
            batches.range(..=last).filter_map(|(b, p)| Some((*b, of(*b, p)?))).collect();
        let mut values =
            if knots.last().is_some_and(|(b, _)| *b == last) { between(&knots, last) } else { Vec::new() };
        values.truncate(batch as usize);
        values
    };
    let latencies = up_to(&|_, p| Some(p.latency_p99));
    Some(Sized {
        slices: f64::from(n),
        times: up_to(&|b, p| Some(batch_time(processes, b, p.throughput))),
        powers: up_to(&|_, p| p.dynamic_power),
        latency_p99: latencies.last().copied()?,
    })
}

/// The clock of a row that names none.
pub(crate) fn highest_clock(board: &Board) -> Option<Megahertz> {
    board.clocks.last().copied().or_else(|| Some(board.base_power.as_ref()?.points.last()?.0))
}

/// The time whose capacity, computed as [`Prediction::capacity`] does, is the throughput: a service whose
/// rate is exactly a row's throughput must fit it. Division rounds, so the neighbours are tried.
fn batch_time(processes: u32, batch: u32, throughput: f64) -> f64 {
    let requests = f64::from(processes) * f64::from(batch);
    let time = requests / throughput;
    [time, time.next_down(), time.next_up()]
        .into_iter()
        .find(|t| requests / t == throughput)
        .unwrap_or_else(|| if requests / time >= throughput { time } else { time.next_down() })
}

/// Values at 1..=batch, linear between knots that end at `batch`; constant below the first.
pub(crate) fn between(knots: &[(u32, f64)], batch: u32) -> Vec<f64> {
    let Some((first, first_value)) = knots.first().copied() else { return Vec::new() };
    let mut values = vec![first_value; first.min(batch) as usize];
    for pair in knots.windows(2) {
        let ((a, value_a), (b, value_b)) = (pair[0], pair[1]);
        for k in a + 1..b {
            let share = f64::from(k - a) / f64::from(b - a);
            values.push(value_a + share * (value_b - value_a));
        }
        values.push(value_b);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_the_measured_throughput() {
        let mut seed = 0.1_f64;
        for i in 1..20_000_u32 {
            seed = (seed * 997.13 + 0.37).fract();
            let throughput = 0.01 + seed * 5000.0;
            let (processes, batch) = (1 + i % 5, 1 << (i % 6));
            let time = batch_time(processes, batch, throughput);
            let capacity = f64::from(processes) * f64::from(batch) / time;
            assert!(capacity >= throughput, "{capacity} < {throughput}");
            assert!((capacity / throughput - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn times_are_linear_between_measured_batches_and_constant_below() {
        assert_eq!(
            between(&[(2, 10.0), (4, 14.0), (8, 30.0)], 8),
            [10.0, 10.0, 12.0, 14.0, 18.0, 22.0, 26.0, 30.0]
        );
        assert_eq!(between(&[(4, 3.0)], 4), [3.0; 4]);
        assert!(between(&[], 4).is_empty());
    }
}
