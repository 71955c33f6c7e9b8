//! A fitted model → predictions at the points it may be asked about.

use super::carried::Carried;
use super::curves::{form_point, memory_like, share_point};
use super::form::{self, FormPoint, LogCoefficients, N_COEFFICIENTS};
use super::observe::{Cell, field_point};
use super::residual::{FieldPoint, covariance};
use crate::predict::{PointKey, Prediction, ShareKey};
use crate::table::between;
use ent_plan::device::Board;
use ent_plan::performance::{BoardCurves, FittedModel, Residual};
use ent_plan::units::{Megahertz, Seconds, Watts};

/// p99 latency is at least this much above the mean batch time: the least seen on an A100 at rest.
pub(crate) const LEAST_LATENCY_RATIO: f64 = 1.006;

/// A fitted model, ready to be asked.
#[derive(Clone, Debug)]
pub(crate) struct FittedPerformance {
    model: FittedModel,
    logs: LogCoefficients,
    time: Carried,
    power: Carried,
}

/// ln of milliseconds and of watts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) ln_time: f64,
    pub(crate) ln_power: f64,
}

impl FittedPerformance {
    /// `None` when a number of the file is not one of a fit: not finite, not positive, out of order.
    pub(crate) fn new(model: &FittedModel) -> Option<Self> {
        let coefficients = coefficients(model);
        let is_positive = |v: &f64| v.is_finite() && *v > 0.0;
        let curves = &model.curves;
        let sizes = curves.compute.iter().chain(&curves.memory).map(|(_, v)| v);
        let clocks = curves.voltage.iter().chain(&curves.overhead).map(|(_, v)| v);
        let is_ascending = |curve: &[(Megahertz, f64)]| curve.windows(2).all(|w| w[0].0 < w[1].0);
        let residual = &model.residual;
        let fields = [residual.time, residual.power];
        let is_field = fields.iter().all(|f| {
            [f.fixed_sd, f.fixed_batch, f.fixed_slices, f.moving_sd, f.moving_batch, f.moving_slices]
                .iter()
                .chain([&f.moving_clock, &f.noise_sd])
                .all(is_positive)
        });
        let is_supported = residual.support.iter().all(|s| {
            s.batch > 0
                && s.slices > 0
                && s.clock.0 > 0
                && s.time_weight.is_finite()
                && s.power_weight.is_finite()
        });
        let is_sound = coefficients.iter().all(is_positive)
            && sizes.chain(clocks).all(is_positive)
            && is_ascending(&curves.voltage)
            && is_ascending(&curves.overhead)
            && is_field
            && is_supported
            && is_positive(&model.latency_ratio)
            && model.errors.time_rms.is_finite()
            && model.errors.power_rms.is_finite()
            && !model.batches.is_empty()
            && model.batches.iter().all(|b| (1..=10_000).contains(b))
            && model.batches.windows(2).all(|w| w[0] < w[1]);
        if !is_sound {
            return None;
        }
        let support: Vec<FieldPoint> = residual
            .support
            .iter()
            .map(|s| field_point(Cell { slices: s.slices, batch: s.batch, clock: s.clock }))
            .collect();
        let log2_batches: Vec<f64> = model.batches.iter().map(|b| f64::from(*b).log2()).collect();
        Some(Self {
            logs: coefficients.map(f64::ln),
            time: Carried::new(
                residual.time,
                &support,
                residual.support.iter().map(|s| s.time_weight).collect(),
                &log2_batches,
            )?,
            power: Carried::new(
                residual.power,
                &support,
                residual.support.iter().map(|s| s.power_weight).collect(),
                &log2_batches,
            )?,
            model: model.clone(),
        })
    }

    /// Every measured size (and double-memory kin), batch, and clock with a base power in the measured range.
    pub(crate) fn points(&self, board: &Board) -> Vec<PointKey> {
        let [low, high] = self.model.clocks;
        let known: Vec<Megahertz> = match &board.base_power {
            Some(base) => base.points.iter().map(|(c, _)| *c).collect(),
            // Without base power only the measured ends are safe to name.
            None => board.clocks.clone(),
        };
        let clocks: Vec<Megahertz> = known
            .into_iter()
            .filter(|c| (low..=high).contains(c) && (board.clocks.is_empty() || board.clocks.contains(c)))
            .collect();
        let mut points = Vec::new();
        for profile in 0..board.profiles.len() {
            if !self.answers_for(board, profile) {
                continue;
            }
            for batch in &self.model.batches {
                points.extend(clocks.iter().map(|clock| PointKey {
                    profile,
                    processes: 1,
                    batch: *batch,
                    clock: *clock,
                }));
            }
        }
        points
    }

    fn answers_for(&self, board: &Board, profile: usize) -> bool {
        let Some(p) = board.profiles.get(profile) else { return false };
        // Smaller than the smallest that was measured, it may not fit in memory.
        p.is_base
            && self.model.slices.first().is_some_and(|least| p.n_compute_slices >= *least)
            && memory_like(board, profile)
                .is_some_and(|m| self.model.curves.memory.iter().any(|(s, _)| *s == m))
    }

    /// The prediction for a point.
    pub(crate) fn predict(&self, board: &Board, key: PointKey) -> Option<Prediction> {
        let [low, high] = self.model.clocks;
        let is_known = self.answers_for(board, key.profile)
            && key.processes == 1
            && (low..=high).contains(&key.clock)
            && self.model.batches.contains(&key.batch);
        if !is_known {
            return None;
        }
        let slices = board.profiles.get(key.profile)?.n_compute_slices;
        let memory_as = memory_like(board, key.profile)?;
        let source = if memory_as == slices { "fitted" } else { "extrapolated" };
        self.prediction(board, key.batch, (f64::from(slices), key.clock), source, |batch| {
            form_point(&self.model.curves, batch, slices, memory_as, key.clock)
        })
    }

    /// The prediction for a share of a board.
    pub(crate) fn predict_share(&self, board: &Board, share: ShareKey) -> Option<Prediction> {
        let [low, high] = self.model.clocks;
        if share.processes != 1 || !(low..=high).contains(&share.clock) {
            return None;
        }
        let slices = share.slices(board);
        self.prediction(board, share.batch, (slices, share.clock), "extrapolated", |batch| {
            share_point(&self.model.curves, batch, slices, share.clock)
        })
    }

    /// Form plus residual for batches up to `batch`, linear between those that were measured; `None` for one
    /// above them.
    fn prediction(
        &self,
        board: &Board,
        batch: u32,
        (slices, clock): (f64, Megahertz),
        source: &'static str,
        point: impl Fn(u32) -> Option<FormPoint>,
    ) -> Option<Prediction> {
        let base = board.base_power.as_ref().and_then(|b| b.at(clock)).map(Watts::get);
        let room =
            board.power_limits.zip(base).map_or(f64::INFINITY, |(l, b)| (l.default.get() - b).max(1.0));
        let ln_ghz = (f64::from(clock.0) / 1e3).ln();
        let time_place = self.time.place(slices.log2(), ln_ghz);
        let power_place = self.power.place(slices.log2(), ln_ghz);
        let full = self.model.batches.iter().position(|b| *b >= batch)?;
        let last = self.model.batches.get(full).copied()?;
        let mut times = Vec::new();
        let mut powers = Vec::new();
        for (i, knot) in self.model.batches.iter().copied().enumerate().take(full + 1) {
            let value = form::evaluate(&self.logs, &point(knot)?);
            let ln_time = value.ln_time + self.time.value(&time_place, i);
            let ln_power = value.ln_power + self.power.value(&power_place, i);
            times.push((knot, ln_time.exp() / 1e3));
            powers.push((knot, ln_power.exp().min(room)));
        }
        let up_to = |knots: &[(u32, f64)]| {
            let mut values = between(knots, last);
            values.truncate(batch as usize);
            values
        };
        let batch_times = up_to(&times);
        let full_time = *batch_times.last()?;
        let is_finite = times.iter().all(|(_, t)| t.is_finite() && *t > 0.0);
        let has_power = self.model.has_power && powers.iter().all(|(_, w)| w.is_finite());
        // The support's own error where it is far, never below what held-out measurements showed.
        let time_error = self.time.error(&time_place, full).max(self.model.errors.time_rms);
        let power_error = self.power.error(&power_place, full).max(self.model.errors.power_rms);
        is_finite.then(|| Prediction {
            batch_times: batch_times.into_iter().map(Seconds).collect(),
            dynamic_power: if has_power {
                up_to(&powers).into_iter().map(Watts).collect()
            } else {
                Vec::new()
            },
            latency_p99: Seconds(full_time * self.model.latency_ratio.max(LEAST_LATENCY_RATIO)),
            time_error,
            power_error,
            source,
        })
    }
}

/// The coefficients in the form's order.
pub(crate) fn coefficients(model: &FittedModel) -> [f64; N_COEFFICIENTS] {
    let c = &model.coefficients;
    [
        c.serial,
        c.work_each,
        c.work_batch,
        c.memory_batch,
        c.memory_each,
        c.host_batch,
        c.host_each,
        c.energy_batch,
        c.energy_each,
        c.slice_power,
    ]
}

/// Form plus residual at a cell whose memory is that of `memory_as` compute slices.
pub(crate) fn answer(
    logs: &LogCoefficients,
    curves: &BoardCurves,
    residual: &Residual,
    cell: Cell,
    memory_as: u32,
) -> Option<Answer> {
    let point = form_point(curves, cell.batch, cell.slices, memory_as, cell.clock)?;
    let value = form::evaluate(logs, &point);
    let here = field_point(cell);
    let mut answer = Answer { ln_time: value.ln_time, ln_power: value.ln_power };
    for support in &residual.support {
        let place = field_point(Cell { slices: support.slices, batch: support.batch, clock: support.clock });
        answer.ln_time += support.time_weight * covariance(&residual.time, &here, &place);
        answer.ln_power += support.power_weight * covariance(&residual.power, &here, &place);
    }
    Some(answer)
}
