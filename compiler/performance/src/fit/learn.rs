//! Tables of several models on one board → what they say about the next: curves, prior, residual fields.
//!
//! Rounds of three steps: coefficients of every model and the board's curves together; the population of
//! coefficients; the residual fields' parameters by their likelihood.

use super::curves::{self, reference_clock};
use super::form::{self, LogCoefficients, N_COEFFICIENTS};
use super::observe::{Observation, observations};
use super::residual::{Field, log_likelihood};
use super::search::minimise;
use super::solve::{Prior, Whitened, solve};
use ent_plan::device::Board;
use ent_plan::performance::{BoardCurves, BoardKnowledge, PerformanceTable};
use ent_plan::units::Megahertz;
use nalgebra::{DMatrix, DVector};
use std::collections::BTreeSet;

/// Rounds of the three steps; the curves move by less than their error after the second.
const ROUNDS: usize = 3;
/// At most this many cells of a model teach; more cost time cubed and say little about eleven shared numbers.
const MAX_CELLS: usize = 160;

/// Where a fit starts when no other model was measured on the board: broad.
#[must_use]
pub fn cold(board: &Board) -> BoardKnowledge {
    let clocks: Vec<Megahertz> = match &board.base_power {
        Some(base) => base.points.iter().map(|(c, _)| *c).collect(),
        None => board.clocks.clone(),
    };
    knowledge_from(board, curves::cold(board, &clocks))
}

fn knowledge_from(board: &Board, curves: BoardCurves) -> BoardKnowledge {
    // A network of 10 ms whose batch is half weights, half requests; energy for some tens of watts. The
    // spread covers 0.01 ms to 10 s.
    let mut mean = vec![0.0; N_COEFFICIENTS];
    for (i, value) in [0.5, 1.0, 0.5, 0.5, 0.5, 0.5, 0.05, 50.0, 100.0, 1.0].into_iter().enumerate() {
        mean[i] = f64::ln(value);
    }
    let mut covariance = vec![vec![0.0; N_COEFFICIENTS]; N_COEFFICIENTS];
    for (i, row) in covariance.iter_mut().enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            let is_scaled = |k: usize| k != form::SLICE_POWER;
            if is_scaled(i) && is_scaled(j) {
                *value += 9.0;
            }
            if i == j {
                *value += 2.25;
            }
        }
    }
    BoardKnowledge {
        board: board.id.clone(),
        curves,
        time: anchor_field(),
        power: anchor_field(),
        mean,
        covariance,
    }
}

/// Learns from models measured on a board. Falls back to [`cold`] when there is nothing to learn from.
#[must_use]
pub fn learn(tables: &[&PerformanceTable], board: &Board) -> BoardKnowledge {
    let all: Vec<Vec<Observation>> =
        tables.iter().map(|t| thin(observations(t, board))).filter(|o| o.len() >= N_COEFFICIENTS).collect();
    let clocks: Vec<Megahertz> =
        all.iter().flatten().map(|o| o.cell.clock).collect::<BTreeSet<_>>().into_iter().collect();
    if all.is_empty() || clocks.is_empty() {
        return cold(board);
    }
    let mut knowledge = knowledge_from(board, curves::cold(board, &clocks));
    for round in 0..ROUNDS {
        let Some(next) = improve(&all, &knowledge, board, round) else { break };
        knowledge = next;
    }
    knowledge
}

/// Every k-th cell, the step coprime to the grid's sides so that all sizes, batches and clocks stay.
fn thin(observations: Vec<Observation>) -> Vec<Observation> {
    let n = observations.len();
    if n <= MAX_CELLS {
        return observations;
    }
    let share = MAX_CELLS as f64 / n as f64;
    // The golden ratio spreads the kept cells evenly over rows, columns and diagonals alike.
    let golden = 0.618_033_988_749_895;
    observations
        .into_iter()
        .enumerate()
        .filter(|(i, _)| (*i as f64 * golden).fract() < share)
        .map(|(_, o)| o)
        .collect()
}

fn improve(
    all: &[Vec<Observation>],
    knowledge: &BoardKnowledge,
    board: &Board,
    round: usize,
) -> Option<BoardKnowledge> {
    let prior = Prior::of(knowledge)?;
    let whitened: Option<Vec<Whitened>> =
        all.iter().map(|o| Whitened::new(o, &knowledge.curves, &knowledge.time, &knowledge.power)).collect();
    let mut whitened = whitened?;
    let mut logs: Vec<LogCoefficients> =
        whitened.iter().map(|w| Some(solve(w, &prior)?.logs)).collect::<Option<_>>()?;
    let curves = super::joint::curves(all, &mut whitened, &mut logs, &prior, &knowledge.curves, board)?;
    let solutions: Vec<_> = whitened.iter().map(|w| solve(w, &prior)).collect::<Option<_>>()?;
    let (mean, covariance) =
        population(&solutions.iter().map(|s| (s.logs, &s.covariance)).collect::<Vec<_>>());
    let residuals: Vec<_> = whitened.iter().zip(&solutions).map(|(w, s)| w.residuals(&s.logs)).collect();
    let time_seen: Vec<_> =
        whitened.iter().zip(&residuals).map(|(w, (t, _))| (w.fields.clone(), t)).collect();
    let power_seen: Vec<_> = whitened
        .iter()
        .zip(&residuals)
        .map(|(w, (_, p))| (w.with_power.iter().map(|i| w.fields[*i]).collect::<Vec<_>>(), p))
        .collect();
    let budget = if round == 0 { 150 } else { 100 };
    let better = |field: &Field, seen: &[(Vec<super::residual::FieldPoint>, &DVector<f64>)]| {
        let least = minimise(&to_vector(field), 0.3, budget, |x| {
            let field = from_vector(x);
            let penalty: f64 = x.iter().zip(to_vector(&anchor_field())).map(|(a, b)| (a - b).powi(2)).sum();
            let likelihood: Option<f64> = seen.iter().map(|(p, r)| log_likelihood(&field, p, r)).sum();
            likelihood.map_or(f64::INFINITY, |l| penalty - l)
        });
        from_vector(&least)
    };
    Some(BoardKnowledge {
        board: knowledge.board.clone(),
        time: better(&knowledge.time, &time_seen),
        power: better(&knowledge.power, &power_seen),
        curves,
        mean: mean.as_slice().to_vec(),
        covariance: (0..N_COEFFICIENTS).map(|i| covariance.row(i).iter().copied().collect()).collect(),
    })
}

/// A residual field before anything was seen, in round numbers: a twentieth, over a doubling of batch, of
/// slices, or of clock. It also keeps the likelihood from running to infinite lengths.
fn anchor_field() -> Field {
    Field {
        fixed_sd: 0.05,
        fixed_batch: 1.0,
        fixed_slices: 1.0,
        moving_sd: 0.05,
        moving_batch: 1.0,
        moving_slices: 1.0,
        moving_clock: std::f64::consts::LN_2,
        noise_sd: 0.02,
    }
}

fn to_vector(field: &Field) -> [f64; 8] {
    [
        field.fixed_sd,
        field.fixed_batch,
        field.fixed_slices,
        field.moving_sd,
        field.moving_batch,
        field.moving_slices,
        field.moving_clock,
        field.noise_sd,
    ]
    .map(f64::ln)
}

fn from_vector(x: &[f64]) -> Field {
    Field {
        fixed_sd: x[0].exp(),
        fixed_batch: x[1].exp(),
        fixed_slices: x[2].exp(),
        moving_sd: x[3].exp(),
        moving_batch: x[4].exp(),
        moving_slices: x[5].exp(),
        moving_clock: x[6].exp(),
        noise_sd: x[7].exp(),
    }
}

/// Mean and covariance of coefficients over models, with the spread of a few models not overtrusted.
fn population(models: &[(LogCoefficients, &DMatrix<f64>)]) -> (DVector<f64>, DMatrix<f64>) {
    let n = models.len() as f64;
    let mut mean = DVector::zeros(N_COEFFICIENTS);
    for (logs, _) in models {
        mean += DVector::from_column_slice(logs) / n;
    }
    // As if three more models had been seen that differ by a factor of two in every coefficient.
    let (pseudo, spread) = (3.0, std::f64::consts::LN_2.powi(2));
    let mut sum = DMatrix::identity(N_COEFFICIENTS, N_COEFFICIENTS) * (pseudo * spread);
    for (logs, covariance) in models {
        let away = DVector::from_column_slice(logs) - &mean;
        sum += &away * away.transpose() + *covariance;
    }
    let mut covariance = sum / (n + pseudo);
    // A network may be larger or smaller than any seen: one more e-fold, of time and energy together.
    for i in 0..form::SLICE_POWER {
        for j in 0..form::SLICE_POWER {
            covariance[(i, j)] += 1.0;
        }
    }
    (mean, covariance)
}

/// Index of the reference clock among a board's measured clocks.
pub(crate) fn reference(curves: &BoardCurves, board: &Board) -> usize {
    let clocks: Vec<Megahertz> = curves.voltage.iter().map(|(c, _)| *c).collect();
    let highest = board.clocks.last().or(clocks.last()).map_or(1.0, |c| f64::from(c.0));
    reference_clock(&clocks, highest)
}
