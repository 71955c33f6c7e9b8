//! What is known of a board + cells that could be measured → the few worth measuring.
//!
//! Chosen from inputs only: greedily, the cell that most lowers the mean posterior variance of ln time and
//! of ln power over all cells (I-optimal), for a model that is the population's mean.

use super::form::{self, LogCoefficients, N_COEFFICIENTS};
use super::observe::{Cell, place};
use super::residual::covariance;
use super::solve::Prior;
use ent_plan::performance::BoardKnowledge;
use nalgebra::{DMatrix, DVector};

/// Weight of ln power's variance beside ln time's: dynamic power is about half of board power, and is to be
/// known less well.
const POWER_WEIGHT: f64 = 0.25;

/// Chooses `n` cells; indices into `cells`, in the order chosen. Fewer when there are fewer.
#[must_use]
pub fn design(knowledge: &BoardKnowledge, cells: &[Cell], n: usize) -> Vec<usize> {
    let Some(prior) = Prior::of(knowledge) else { return (0..cells.len().min(n)).collect() };
    let mut mean: LogCoefficients = [0.0; N_COEFFICIENTS];
    mean.copy_from_slice(prior.mean.as_slice());
    let placed: Option<Vec<_>> = cells.iter().map(|c| place(&knowledge.curves, *c)).collect();
    let Some(placed) = placed else { return (0..cells.len().min(n)).collect() };
    let count = cells.len();
    // Rows: ln time of every cell, then ln power of every cell.
    let mut jacobian = DMatrix::zeros(2 * count, N_COEFFICIENTS);
    for (i, (point, _)) in placed.iter().enumerate() {
        let value = form::evaluate(&mean, point);
        for j in 0..N_COEFFICIENTS {
            jacobian[(i, j)] = value.time_by[j];
            jacobian[(count + i, j)] = value.power_by[j];
        }
    }
    let prior_covariance =
        DMatrix::from_fn(N_COEFFICIENTS, N_COEFFICIENTS, |i, j| knowledge.covariance[i][j]);
    let mut posterior = &jacobian * prior_covariance * jacobian.transpose();
    for i in 0..count {
        for j in 0..count {
            posterior[(i, j)] += covariance(&knowledge.time, &placed[i].1, &placed[j].1);
            posterior[(count + i, count + j)] += covariance(&knowledge.power, &placed[i].1, &placed[j].1);
        }
    }
    let noise = [knowledge.time.noise_sd.powi(2), knowledge.power.noise_sd.powi(2)];
    let mut chosen = Vec::new();
    while chosen.len() < n.min(count) {
        let best = (0..count)
            .filter(|i| !chosen.contains(i))
            .map(|i| (gain(&posterior, i, count, noise), i))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let Some((_, cell)) = best else { break };
        observe(&mut posterior, cell, noise[0]);
        observe(&mut posterior, count + cell, noise[1]);
        chosen.push(cell);
    }
    chosen
}

/// How much the weighted variance falls when both quantities of a cell are seen.
fn gain(posterior: &DMatrix<f64>, cell: usize, count: usize, noise: [f64; 2]) -> f64 {
    let (t, p) = (posterior.column(cell), posterior.column(count + cell));
    let (tt, tp, pp) = (t[cell] + noise[0], t[count + cell], p[count + cell] + noise[1]);
    let determinant = tt * pp - tp * tp;
    let mut sum = 0.0;
    for i in 0..2 * count {
        let (a, b) = (t[i], p[i]);
        let fall = (a * a * pp - 2.0 * a * b * tp + b * b * tt) / determinant;
        sum += if i < count { fall } else { POWER_WEIGHT * fall };
    }
    sum
}

/// Conditions on one quantity.
fn observe(posterior: &mut DMatrix<f64>, index: usize, noise: f64) {
    let column: DVector<f64> = posterior.column(index).into_owned();
    let variance = column[index] + noise;
    posterior.ger(-1.0 / variance, &column, &column, 1.0);
}
