//! Coefficients of every model and the curves they share, moved together.
//!
//! Gauss-Newton on all whitened residuals at once; the models' own coefficients are eliminated (Schur
//! complement), so that what remains is one small system in the curves.

use super::form::{self, FormValue, LogCoefficients, N_COEFFICIENTS};
use super::learn::reference;
use super::observe::{Observation, place};
use super::solve::{Prior, Whitened};
use ent_plan::device::Board;
use ent_plan::performance::BoardCurves;
use nalgebra::{DMatrix, DVector};

const STEPS: usize = 8;
/// Curves stay within a factor of about this (as a logarithm) of what SMs and slices say.
const SIZE_SPREAD: f64 = 0.05;
const CLOCK_SPREAD: f64 = 0.3;
/// Holds the values that are 1 by definition.
const PINNED: f64 = 1e-4;

/// Curve values in one vector: compute, memory, voltage, overhead.
fn flat(curves: &BoardCurves) -> Vec<f64> {
    let sizes = curves.compute.iter().chain(&curves.memory).map(|(_, v)| v.ln());
    sizes.chain(curves.voltage.iter().chain(&curves.overhead).map(|(_, v)| v.ln())).collect()
}

fn unflat(shape: &BoardCurves, values: &[f64]) -> BoardCurves {
    let mut values = values.iter().map(|v| v.exp());
    let mut curves = shape.clone();
    let mut next = || values.next().unwrap_or(1.0);
    curves.compute.iter_mut().for_each(|(_, v)| *v = next());
    curves.memory.iter_mut().for_each(|(_, v)| *v = next());
    curves.voltage.iter_mut().for_each(|(_, v)| *v = next());
    curves.overhead.iter_mut().for_each(|(_, v)| *v = next());
    curves
}

/// Where a cell's four curve values are in the flat vector.
fn columns(curves: &BoardCurves, o: &Observation) -> Option<[usize; 4]> {
    let n_sizes = curves.compute.len();
    let n_clocks = curves.voltage.len();
    let size = curves.compute.iter().position(|(s, _)| *s == o.cell.slices)?;
    let clock = curves.voltage.iter().position(|(c, _)| *c == o.cell.clock)?;
    Some([size, n_sizes + size, 2 * n_sizes + clock, 2 * n_sizes + n_clocks + clock])
}

/// Moves curves and coefficients; leaves `whitened` placed on the new curves.
pub(crate) fn curves(
    all: &[Vec<Observation>],
    whitened: &mut [Whitened],
    logs: &mut [LogCoefficients],
    prior: &Prior,
    start: &BoardCurves,
    board: &Board,
) -> Option<BoardCurves> {
    let cold = super::curves::cold(board, &start.voltage.iter().map(|(c, _)| *c).collect::<Vec<_>>());
    let anchor = flat(&cold);
    let mut values = flat(start);
    let spread = spreads(start, board);
    let places: Vec<Vec<[usize; 4]>> = all
        .iter()
        .map(|observations| observations.iter().map(|o| columns(start, o)).collect::<Option<_>>())
        .collect::<Option<_>>()?;
    let cost = |whitened: &[Whitened], logs: &[LogCoefficients], values: &[f64]| -> Option<f64> {
        let mut sum = 0.0;
        for (w, l) in whitened.iter().zip(logs) {
            sum += w.whitened_residuals(l)?.norm_squared();
            sum += (&prior.whiten * (DVector::from_column_slice(l) - &prior.mean)).norm_squared();
        }
        sum += (0..values.len()).map(|i| ((values[i] - anchor[i]) / spread[i]).powi(2)).sum::<f64>();
        sum.is_finite().then_some(sum)
    };
    let mut damping = 1e-3;
    let mut current = cost(whitened, logs, &values)?;
    for _ in 0..STEPS {
        let systems: Vec<System> = whitened
            .iter()
            .zip(logs.iter())
            .zip(&places)
            .map(|((w, l), p)| System::new(w, l, p, values.len(), prior))
            .collect::<Option<_>>()?;
        let (steps, shared) = eliminate(&systems, &values, &anchor, &spread, damping)?;
        let mut next_logs = logs.to_vec();
        for (l, step) in next_logs.iter_mut().zip(&steps) {
            for i in 0..N_COEFFICIENTS {
                l[i] += step[i].clamp(-2.0, 2.0);
            }
        }
        let next_values: Vec<f64> =
            values.iter().zip(shared.iter()).map(|(v, s)| v + s.clamp(-0.3, 0.3)).collect();
        let next_curves = unflat(start, &next_values);
        let mut next_whitened = whitened.to_vec();
        for (w, observations) in next_whitened.iter_mut().zip(all) {
            for (point, o) in w.points.iter_mut().zip(observations) {
                *point = place(&next_curves, o.cell)?.0;
            }
        }
        match cost(&next_whitened, &next_logs, &next_values) {
            Some(next) if next < current => {
                let gain = current - next;
                current = next;
                values = next_values;
                logs.copy_from_slice(&next_logs);
                whitened.clone_from_slice(&next_whitened);
                damping = (damping * 0.3).max(1e-8);
                if gain < 1e-4 * current {
                    break;
                }
            }
            Some(_) | None => damping *= 10.0,
        }
    }
    Some(unflat(start, &values))
}

fn spreads(curves: &BoardCurves, board: &Board) -> Vec<f64> {
    let mut spread = Vec::new();
    let pinned_size = |i: usize| if i == 0 { PINNED } else { SIZE_SPREAD };
    spread.extend((0..curves.compute.len()).map(pinned_size));
    spread.extend((0..curves.memory.len()).map(pinned_size));
    let reference = reference(curves, board);
    let pinned_clock = |i: usize| if i == reference { PINNED } else { CLOCK_SPREAD };
    spread.extend((0..curves.voltage.len()).map(pinned_clock));
    spread
        .extend((0..curves.overhead.len()).map(|i| if i == reference { PINNED } else { 2.0 * CLOCK_SPREAD }));
    spread
}

/// The normal equations of one model: its own coefficients, the shared curves, and both.
struct System {
    own: DMatrix<f64>,
    both: DMatrix<f64>,
    shared: DMatrix<f64>,
    own_gradient: DVector<f64>,
    shared_gradient: DVector<f64>,
}

impl System {
    fn new(
        data: &Whitened,
        logs: &LogCoefficients,
        places: &[[usize; 4]],
        n_shared: usize,
        prior: &Prior,
    ) -> Option<Self> {
        let values: Vec<FormValue> = data.points.iter().map(|p| form::evaluate(logs, p)).collect();
        let n = N_COEFFICIENTS + n_shared;
        let mut time = DMatrix::zeros(values.len(), n);
        let mut power = DMatrix::zeros(data.with_power.len(), n);
        for (i, value) in values.iter().enumerate() {
            for j in 0..N_COEFFICIENTS {
                time[(i, j)] = value.time_by[j];
            }
            let [compute, memory, ..] = places[i];
            time[(i, N_COEFFICIENTS + compute)] += value.time_by_compute;
            time[(i, N_COEFFICIENTS + memory)] += value.time_by_memory;
        }
        for (k, i) in data.with_power.iter().enumerate() {
            let value = &values[*i];
            for j in 0..N_COEFFICIENTS {
                power[(k, j)] = value.power_by[j];
            }
            let [compute, memory, voltage, overhead] = places[*i];
            // Work's power falls with the time that the size sets.
            power[(k, N_COEFFICIENTS + compute)] -= value.power_by_voltage * value.time_by_compute;
            power[(k, N_COEFFICIENTS + memory)] -= value.power_by_voltage * value.time_by_memory;
            power[(k, N_COEFFICIENTS + voltage)] += value.power_by_voltage;
            power[(k, N_COEFFICIENTS + overhead)] += value.power_by_overhead;
        }
        let jacobian = data.stack(&time, &power)?;
        let residuals = data.whitened_residuals(logs)?;
        let normal = jacobian.tr_mul(&jacobian);
        let gradient = jacobian.tr_mul(&residuals);
        let away = &prior.whiten * (DVector::from_column_slice(logs) - &prior.mean);
        Some(Self {
            own: normal.view((0, 0), (N_COEFFICIENTS, N_COEFFICIENTS)).into_owned()
                + prior.whiten.tr_mul(&prior.whiten),
            both: normal.view((0, N_COEFFICIENTS), (N_COEFFICIENTS, n_shared)).into_owned(),
            shared: normal.view((N_COEFFICIENTS, N_COEFFICIENTS), (n_shared, n_shared)).into_owned(),
            own_gradient: gradient.rows(0, N_COEFFICIENTS).into_owned() - prior.whiten.tr_mul(&away),
            shared_gradient: gradient.rows(N_COEFFICIENTS, n_shared).into_owned(),
        })
    }
}

/// Solves for the steps of every model and of the curves.
fn eliminate(
    systems: &[System],
    values: &[f64],
    anchor: &[f64],
    spread: &[f64],
    damping: f64,
) -> Option<(Vec<DVector<f64>>, DVector<f64>)> {
    let n = values.len();
    let mut matrix = DMatrix::zeros(n, n);
    let mut right = DVector::zeros(n);
    for i in 0..n {
        matrix[(i, i)] = spread[i].powi(-2);
        right[i] = (anchor[i] - values[i]) * spread[i].powi(-2);
    }
    let damped = |own: &DMatrix<f64>| {
        let mut own = own.clone();
        for i in 0..own.nrows() {
            own[(i, i)] *= 1.0 + damping;
        }
        own
    };
    let factors: Vec<_> = systems.iter().map(|s| damped(&s.own).cholesky()).collect::<Option<_>>()?;
    for (s, factor) in systems.iter().zip(&factors) {
        matrix += &s.shared - s.both.tr_mul(&factor.solve(&s.both));
        right += &s.shared_gradient - s.both.tr_mul(&factor.solve(&s.own_gradient));
    }
    for i in 0..n {
        matrix[(i, i)] *= 1.0 + damping;
    }
    let shared = matrix.cholesky()?.solve(&right);
    let steps =
        systems.iter().zip(&factors).map(|(s, f)| f.solve(&(&s.own_gradient - &s.both * &shared))).collect();
    Some((steps, shared))
}
