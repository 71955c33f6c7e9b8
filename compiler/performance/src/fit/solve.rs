//! Observations + what is known of the board → the most probable coefficients.
//!
//! Levenberg-Marquardt on residuals whitened by the residual fields' covariance, with the population of
//! other models as prior.

use super::form::{self, FormPoint, LogCoefficients, N_COEFFICIENTS};
use super::observe::{Observation, place};
use super::residual::{Field, FieldPoint, covariance_matrix};
use ent_plan::performance::{BoardCurves, BoardKnowledge};
use nalgebra::{DMatrix, DVector};

/// Normal distribution of log-coefficients.
#[derive(Clone, Debug)]
pub(crate) struct Prior {
    pub(crate) mean: DVector<f64>,
    /// Inverse of the lower factor of the covariance.
    pub(crate) whiten: DMatrix<f64>,
}

impl Prior {
    /// `None` when the covariance is not one.
    pub(crate) fn of(knowledge: &BoardKnowledge) -> Option<Self> {
        let n = N_COEFFICIENTS;
        let is_square =
            knowledge.covariance.len() == n && knowledge.covariance.iter().all(|row| row.len() == n);
        if knowledge.mean.len() != n || !is_square {
            return None;
        }
        let covariance = DMatrix::from_fn(n, n, |i, j| knowledge.covariance[i][j]);
        let factor = covariance.cholesky()?.unpack();
        let whiten = factor.solve_lower_triangular(&DMatrix::identity(n, n))?;
        Some(Self { mean: DVector::from_column_slice(&knowledge.mean), whiten })
    }
}

/// Observations placed on the curves and whitened.
#[derive(Clone, Debug)]
pub(crate) struct Whitened {
    pub(crate) points: Vec<FormPoint>,
    pub(crate) fields: Vec<FieldPoint>,
    pub(crate) ln_time: DVector<f64>,
    /// Those with power: index into the points, and value.
    pub(crate) with_power: Vec<usize>,
    pub(crate) ln_power: DVector<f64>,
    /// Lower factors of the covariances.
    time_factor: DMatrix<f64>,
    power_factor: DMatrix<f64>,
}

impl Whitened {
    /// `None` when a slice count is not on the curves, or a covariance is not positive definite.
    pub(crate) fn new(
        observations: &[Observation],
        curves: &BoardCurves,
        time: &Field,
        power: &Field,
    ) -> Option<Self> {
        let placed: Option<Vec<_>> = observations.iter().map(|o| place(curves, o.cell)).collect();
        let (points, fields): (Vec<_>, Vec<_>) = placed?.into_iter().unzip();
        let with_power: Vec<usize> =
            (0..observations.len()).filter(|i| observations[*i].ln_power.is_some()).collect();
        let power_fields: Vec<FieldPoint> = with_power.iter().map(|i| fields[*i]).collect();
        Some(Self {
            ln_time: DVector::from_iterator(observations.len(), observations.iter().map(|o| o.ln_time)),
            ln_power: DVector::from_iterator(
                with_power.len(),
                observations.iter().filter_map(|o| o.ln_power),
            ),
            time_factor: covariance_matrix(time, &fields).cholesky()?.unpack(),
            power_factor: covariance_matrix(power, &power_fields).cholesky()?.unpack(),
            points,
            fields,
            with_power,
        })
    }

    /// What the form leaves over: of ln time, of ln power.
    pub(crate) fn residuals(&self, logs: &LogCoefficients) -> (DVector<f64>, DVector<f64>) {
        let values: Vec<form::FormValue> = self.points.iter().map(|p| form::evaluate(logs, p)).collect();
        let time = DVector::from_fn(values.len(), |i, _| self.ln_time[i] - values[i].ln_time);
        let power = DVector::from_fn(self.with_power.len(), |k, _| {
            self.ln_power[k] - values[self.with_power[k]].ln_power
        });
        (time, power)
    }

    /// Whitened residuals, time above power.
    pub(crate) fn whitened_residuals(&self, logs: &LogCoefficients) -> Option<DVector<f64>> {
        let (time, power) = self.residuals(logs);
        self.stack(&DMatrix::from_columns(&[time]), &DMatrix::from_columns(&[power]))
            .map(|m| m.column(0).into_owned())
    }

    /// Whitens columns of time rows and power rows, and stacks them.
    pub(crate) fn stack(&self, time: &DMatrix<f64>, power: &DMatrix<f64>) -> Option<DMatrix<f64>> {
        let time = self.time_factor.solve_lower_triangular(time)?;
        let power = self.power_factor.solve_lower_triangular(power)?;
        let (n, m) = (time.nrows(), power.nrows());
        let mut both = DMatrix::zeros(n + m, time.ncols());
        both.rows_mut(0, n).copy_from(&time);
        both.rows_mut(n, m).copy_from(&power);
        Some(both)
    }

    /// Covariance-weighted residuals: the weights that carry the residual fields.
    pub(crate) fn weights(&self, logs: &LogCoefficients) -> Option<(DVector<f64>, DVector<f64>)> {
        let (time, power) = self.residuals(logs);
        let solve = |factor: &DMatrix<f64>, r: &DVector<f64>| {
            let half = factor.solve_lower_triangular(r)?;
            factor.tr_solve_lower_triangular(&half)
        };
        Some((solve(&self.time_factor, &time)?, solve(&self.power_factor, &power)?))
    }
}

/// The most probable coefficients.
#[derive(Clone, Debug)]
pub(crate) struct Solution {
    pub(crate) logs: LogCoefficients,
    /// Their covariance, linearised there.
    pub(crate) covariance: DMatrix<f64>,
    pub(crate) cost: f64,
}

/// Finds the most probable coefficients, from the population's mean, from that mean scaled to the data, and
/// from the same with the host as the slower side at the shortest batch.
pub(crate) fn solve(data: &Whitened, prior: &Prior) -> Option<Solution> {
    let mut mean = [0.0; N_COEFFICIENTS];
    mean.copy_from_slice(prior.mean.as_slice());
    let scaled = scale(data, mean);
    let mut hosted = scaled;
    hosted[form::HOST_BATCH] = data.ln_time.min();
    let starts = [scaled, mean, hosted];
    starts.iter().filter_map(|start| descend(data, prior, *start)).min_by(|a, b| a.cost.total_cmp(&b.cost))
}

/// Moves a start to the data's own scale of time and power.
fn scale(data: &Whitened, mut logs: LogCoefficients) -> LogCoefficients {
    let (time, power) = data.residuals(&logs);
    let shift = if time.is_empty() { 0.0 } else { time.mean() };
    for i in form::TIMES {
        logs[i] += shift;
    }
    let power_shift = if power.is_empty() { 0.0 } else { power.mean() };
    logs[form::ENERGY_BATCH] += shift + power_shift;
    logs[form::ENERGY_EACH] += shift + power_shift;
    logs[form::SLICE_POWER] += power_shift;
    logs
}

const MAX_STEPS: usize = 80;
/// Log-coefficients outside this range are beyond any network on any board (e^40 ms).
const MAX_LOG: f64 = 40.0;

fn descend(data: &Whitened, prior: &Prior, start: LogCoefficients) -> Option<Solution> {
    let mut logs = start;
    let mut cost = cost_of(data, prior, &logs)?;
    let mut damping = 1e-3;
    for _ in 0..MAX_STEPS {
        let (normal, gradient) = normal_equations(data, prior, &logs)?;
        let mut improved = false;
        for _ in 0..12 {
            let mut damped = normal.clone();
            for i in 0..N_COEFFICIENTS {
                damped[(i, i)] *= 1.0 + damping;
            }
            let step = damped.cholesky()?.solve(&gradient);
            let mut next = logs;
            for i in 0..N_COEFFICIENTS {
                next[i] = (logs[i] + step[i]).clamp(-MAX_LOG, MAX_LOG);
            }
            match cost_of(data, prior, &next) {
                Some(next_cost) if next_cost < cost => {
                    improved = cost - next_cost > 1e-9 * (1.0 + cost);
                    (logs, cost) = (next, next_cost);
                    damping = (damping * 0.2).max(1e-9);
                    break;
                }
                Some(_) | None => damping *= 6.0,
            }
        }
        if !improved {
            break;
        }
    }
    let (normal, _) = normal_equations(data, prior, &logs)?;
    Some(Solution { logs, covariance: normal.cholesky()?.inverse(), cost })
}

fn from_mean(prior: &Prior, logs: &LogCoefficients) -> DVector<f64> {
    &prior.whiten * (DVector::from_column_slice(logs) - &prior.mean)
}

fn cost_of(data: &Whitened, prior: &Prior, logs: &LogCoefficients) -> Option<f64> {
    let cost = data.whitened_residuals(logs)?.norm_squared() + from_mean(prior, logs).norm_squared();
    cost.is_finite().then_some(cost)
}

fn normal_equations(
    data: &Whitened,
    prior: &Prior,
    logs: &LogCoefficients,
) -> Option<(DMatrix<f64>, DVector<f64>)> {
    let values: Vec<form::FormValue> = data.points.iter().map(|p| form::evaluate(logs, p)).collect();
    let time = DMatrix::from_fn(values.len(), N_COEFFICIENTS, |i, j| values[i].time_by[j]);
    let power = DMatrix::from_fn(data.with_power.len(), N_COEFFICIENTS, |k, j| {
        values[data.with_power[k]].power_by[j]
    });
    let jacobian = data.stack(&time, &power)?;
    let residuals = data.whitened_residuals(logs)?;
    let normal = jacobian.tr_mul(&jacobian) + prior.whiten.tr_mul(&prior.whiten);
    let gradient = jacobian.tr_mul(&residuals) - prior.whiten.tr_mul(&from_mean(prior, logs));
    Some((normal, gradient))
}
