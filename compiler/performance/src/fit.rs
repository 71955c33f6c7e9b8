//! Performance table → fitted model.
//!
//! The form (`form`) carries what GPUs do; a small random field (`residual`) carries what it leaves over;
//! other models measured on the same board say what to expect (`learn`) and what to measure (`design`).

mod answer;
mod carried;
mod curves;
mod design;
mod form;
mod joint;
mod learn;
mod observe;
mod residual;
mod search;
mod solve;

pub(crate) use answer::FittedPerformance;
pub use design::design;
pub use learn::{cold, learn};
pub use observe::Cell;

use crate::predict::is_measured_as;
use answer::LEAST_LATENCY_RATIO;
use ent_plan::device::{Board, board_ids};
use ent_plan::diagnostic::{Code, Diagnostic, Outcome, Span};
use ent_plan::performance::{
    BoardKnowledge, Coefficients, FITTED_FORMAT_VERSION, FitErrors, FittedModel, FittedModels,
    PerformanceTable, Residual, SupportPoint, catalogue,
};
use ent_plan::units::{Seconds, Watts};
use nalgebra::{DMatrix, DVector};
use observe::{Observation, observations};
use residual::{covariance, covariance_matrix};
use solve::{Prior, Solution, Whitened};
use std::collections::BTreeSet;

/// Fewest measurements that are fitted: with fewer, ten coefficients are the prior's and not the model's.
pub const MIN_MEASUREMENTS: usize = 5;

/// Most support points of a residual; from more measurements these carry all the others.
const MAX_SUPPORT: usize = 48;

/// Reads a file of fitted models: [`FittedModels`], or one [`FittedModel`].
///
/// # Errors
/// Why it is not one, in words.
pub fn read_models(text: &str) -> Result<Vec<FittedModel>, String> {
    read_file(text).map(|file| file.models)
}

fn read_file(text: &str) -> Result<FittedModels, String> {
    let file: FittedModels = serde_json::from_str(text)
        .map_err(|error| format!("the file is not one of fitted models: {error}"))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&file.format_version) != major(FITTED_FORMAT_VERSION) {
        return Err(format!(
            "the file has format version {}; this entc reads {FITTED_FORMAT_VERSION}",
            file.format_version
        ));
    }
    Ok(file)
}

/// What is known of a board: from the catalogue where models were measured on it, else [`cold`].
#[must_use]
pub fn knowledge(board: &Board) -> BoardKnowledge {
    board_ids()
        .filter(|id| is_measured_as(board, id))
        .find_map(catalogue)
        .and_then(|text| read_file(text).ok())
        .and_then(|file| file.knowledge)
        .unwrap_or_else(|| cold(board))
}

/// Fits a table with what is known of its board.
#[must_use]
pub fn fit_on_board(table: &PerformanceTable, board: &Board, span: Span) -> Outcome<Option<FittedModel>> {
    fit_model(table, board, &knowledge(board), span)
}

/// Fits a table. Rows with several processes and suspect rows are left out; when all rows lack power, so
/// does the model.
///
/// Errors: [`Code::TooFewMeasurements`].
#[must_use]
pub fn fit_model(
    table: &PerformanceTable,
    board: &Board,
    knowledge: &BoardKnowledge,
    span: Span,
) -> Outcome<Option<FittedModel>> {
    let observed = observations(table, board);
    let cells: BTreeSet<Cell> = observed.iter().map(|o| o.cell).collect();
    if cells.len() < MIN_MEASUREMENTS {
        let (model, n) = (&table.model, cells.len());
        let diagnostic = Diagnostic::error(
            Code::TooFewMeasurements,
            span,
            format!("`{model}` has {n} measurements that can be fitted; {MIN_MEASUREMENTS} are needed"),
        )
        .label("rows with several processes, at the power limit or made up do not count")
        .help("measure more points, or use `source = table` to plan with these alone");
        return Outcome { value: None, diagnostics: vec![diagnostic] };
    }
    match fit(table, &observed, board, knowledge) {
        Some(model) => Outcome { value: Some(model), diagnostics: Vec::new() },
        None => {
            let model = &table.model;
            let diagnostic = Diagnostic::error(
                Code::MeasurementRow,
                span,
                format!("the measurements of `{model}` cannot be fitted"),
            )
            .label("no coefficients describe them")
            .help("look for rows of another model or another board among them");
            Outcome { value: None, diagnostics: vec![diagnostic] }
        }
    }
}

fn fit(
    table: &PerformanceTable,
    observed: &[Observation],
    board: &Board,
    knowledge: &BoardKnowledge,
) -> Option<FittedModel> {
    let prior = Prior::of(knowledge)?;
    let data = Whitened::new(observed, &knowledge.curves, &knowledge.time, &knowledge.power)?;
    let solution = solve::solve(&data, &prior)?;
    let residual = carry(observed, &data, &solution, knowledge)?;
    let set = |values: BTreeSet<u32>| values.into_iter().collect::<Vec<u32>>();
    let batches = batches(observed);
    let clocks = observed.iter().map(|o| o.cell.clock);
    let ratio = median(observed.iter().map(|o| o.latency_ratio)).unwrap_or(LEAST_LATENCY_RATIO);
    let c = solution.logs.map(f64::exp);
    let mut model = FittedModel {
        model: table.model.clone(),
        board: board.id.clone(),
        source: table.source.clone(),
        is_illustration: table.is_illustration,
        n_measurements: u32::try_from(observed.len()).unwrap_or(u32::MAX),
        slices: set(observed.iter().map(|o| o.cell.slices).collect()),
        batches,
        clocks: [clocks.clone().min()?, clocks.max()?],
        has_power: observed.iter().any(|o| o.ln_power.is_some()),
        coefficients: Coefficients {
            serial: c[form::SERIAL],
            work_each: c[form::WORK_EACH],
            work_batch: c[form::WORK_BATCH],
            memory_batch: c[form::MEMORY_BATCH],
            memory_each: c[form::MEMORY_EACH],
            host_batch: c[form::HOST_BATCH],
            host_each: c[form::HOST_EACH],
            energy_batch: c[form::ENERGY_BATCH],
            energy_each: c[form::ENERGY_EACH],
            slice_power: c[form::SLICE_POWER],
        },
        latency_ratio: ratio.max(LEAST_LATENCY_RATIO),
        residual,
        errors: FitErrors {
            n_held_out: 0,
            method: String::new(),
            throughput_mean: 0.0,
            latency_mean: 0.0,
            power_mean: None,
            dynamic_power_mean: None,
            time_rms: 0.0,
            power_rms: 0.0,
        },
        curves: knowledge.curves.clone(),
    };
    model.errors = held_out(observed, &data, &solution, knowledge, model.latency_ratio)?;
    Some(model)
}

/// Powers of two within the measured batches, and the measured ones.
fn batches(observed: &[Observation]) -> Vec<u32> {
    let mut batches: BTreeSet<u32> = observed.iter().map(|o| o.cell.batch).collect();
    if let (Some(least), Some(most)) = (batches.first().copied(), batches.last().copied()) {
        batches.extend((0..31).map(|k| 1_u32 << k).filter(|b| (least..=most).contains(b)));
    }
    batches.into_iter().collect()
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The residual fields, carried by at most [`MAX_SUPPORT`] of the cells.
fn carry(
    observed: &[Observation],
    data: &Whitened,
    solution: &Solution,
    knowledge: &BoardKnowledge,
) -> Option<Residual> {
    let mut residual = Residual { time: knowledge.time, power: knowledge.power, support: Vec::new() };
    let put = |cell: Cell, time_weight: f64, power_weight: f64| SupportPoint {
        batch: cell.batch,
        slices: cell.slices,
        clock: cell.clock,
        time_weight,
        power_weight,
    };
    if observed.len() <= MAX_SUPPORT {
        let (time, power) = data.weights(&solution.logs)?;
        residual.support = observed.iter().enumerate().map(|(i, o)| put(o.cell, time[i], 0.0)).collect();
        for (k, i) in data.with_power.iter().enumerate() {
            residual.support[*i].power_weight = power[k];
        }
        return Some(residual);
    }
    let cells: Vec<Cell> = observed.iter().map(|o| o.cell).collect();
    let chosen = design(knowledge, &cells, MAX_SUPPORT);
    let (time, power) = data.residuals(&solution.logs);
    let all: Vec<usize> = (0..observed.len()).collect();
    let time_weights = project(data, &chosen, &all, &time, &knowledge.time)?;
    let power_weights = project(data, &chosen, &data.with_power, &power, &knowledge.power)?;
    residual.support =
        chosen.iter().enumerate().map(|(k, i)| put(cells[*i], time_weights[k], power_weights[k])).collect();
    Some(residual)
}

/// Weights on a few cells that best reproduce the residuals of all (subset of regressors).
fn project(
    data: &Whitened,
    chosen: &[usize],
    seen: &[usize],
    residuals: &DVector<f64>,
    field: &residual::Field,
) -> Option<DVector<f64>> {
    let between = DMatrix::from_fn(seen.len(), chosen.len(), |i, k| {
        covariance(field, &data.fields[seen[i]], &data.fields[chosen[k]])
    });
    let support: Vec<_> = chosen.iter().map(|i| data.fields[*i]).collect();
    let noise = field.noise_sd.powi(2);
    let own = covariance_matrix(&residual::Field { noise_sd: 1e-6, ..*field }, &support);
    let normal = own * noise + between.tr_mul(&between);
    Some(normal.cholesky()?.solve(&between.tr_mul(residuals)))
}

/// Errors at cells the fit did not see: each left out in turn, or a fifth at a time where there are many.
fn held_out(
    observed: &[Observation],
    data: &Whitened,
    solution: &Solution,
    knowledge: &BoardKnowledge,
    latency_ratio: f64,
) -> Option<FitErrors> {
    let (method, errors) = if observed.len() <= MAX_SUPPORT {
        let errors = leave_one_out(data, solution, knowledge)?;
        ("each measurement left out in turn, coefficients linearised", errors)
    } else {
        (
            "a fifth of the measurements left out in turn and predicted from the rest",
            fifths(observed, knowledge)?,
        )
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let rms = |values: &mut dyn Iterator<Item = f64>| mean(&values.map(|v| v * v).collect::<Vec<_>>()).sqrt();
    let throughput: Vec<f64> = errors.iter().map(|(time, _)| (time.exp() - 1.0).abs()).collect();
    let latency: Vec<f64> = observed
        .iter()
        .zip(&errors)
        .map(|(o, (time, _))| ((-time).exp() * latency_ratio / o.latency_ratio - 1.0).abs())
        .collect();
    let with_power: Vec<(&Observation, f64)> =
        observed.iter().zip(&errors).filter_map(|(o, (_, power))| Some((o, (*power)?))).collect();
    let dynamic: Vec<f64> = with_power.iter().map(|(_, e)| ((-e).exp() - 1.0).abs()).collect();
    let total: Option<Vec<f64>> = with_power
        .iter()
        .zip(&dynamic)
        .map(|((o, _), e)| {
            let watts = o.ln_power?.exp();
            Some(e * watts / (watts + o.base_power?))
        })
        .collect();
    Some(FitErrors {
        n_held_out: u32::try_from(observed.len()).unwrap_or(u32::MAX),
        method: method.to_owned(),
        throughput_mean: mean(&throughput),
        latency_mean: mean(&latency),
        power_mean: total.filter(|t| !t.is_empty()).map(|t| mean(&t)),
        dynamic_power_mean: (!dynamic.is_empty()).then(|| mean(&dynamic)),
        time_rms: rms(&mut errors.iter().map(|(time, _)| *time)),
        power_rms: rms(&mut with_power.iter().map(|(_, power)| *power)),
    })
}

/// Errors of ln time and ln power (seen less predicted) of every point left out in turn, in closed form:
/// coefficients and residual fields are one normal distribution once the form is linearised.
fn leave_one_out(
    data: &Whitened,
    solution: &Solution,
    knowledge: &BoardKnowledge,
) -> Option<Vec<(f64, Option<f64>)>> {
    let (n, m) = (data.points.len(), data.with_power.len());
    let values: Vec<form::FormValue> =
        data.points.iter().map(|p| form::evaluate(&solution.logs, p)).collect();
    let jacobian = DMatrix::from_fn(n + m, form::N_COEFFICIENTS, |i, j| match i.checked_sub(n) {
        None => values[i].time_by[j],
        Some(k) => values[data.with_power[k]].power_by[j],
    });
    let prior =
        DMatrix::from_fn(form::N_COEFFICIENTS, form::N_COEFFICIENTS, |i, j| knowledge.covariance[i][j]);
    let mut k = &jacobian * prior * jacobian.transpose();
    let power_fields: Vec<_> = data.with_power.iter().map(|i| data.fields[*i]).collect();
    let add = |k: &mut DMatrix<f64>, at: usize, own: DMatrix<f64>| {
        let (rows, columns) = own.shape();
        let mut view = k.view_mut((at, at), (rows, columns));
        view += own;
    };
    add(&mut k, 0, covariance_matrix(&knowledge.time, &data.fields));
    add(&mut k, n, covariance_matrix(&knowledge.power, &power_fields));
    let (time, power) = data.residuals(&solution.logs);
    let away = DVector::from_fn(form::N_COEFFICIENTS, |j, _| solution.logs[j] - knowledge.mean[j]);
    let mut seen = &jacobian * away;
    for i in 0..n {
        seen[i] += time[i];
    }
    for i in 0..m {
        seen[n + i] += power[i];
    }
    let inverse = k.cholesky()?.inverse();
    let weights = &inverse * seen;
    let mut errors: Vec<(f64, Option<f64>)> = (0..n).map(|i| (weights[i] / inverse[(i, i)], None)).collect();
    for (k, i) in data.with_power.iter().enumerate() {
        // Time and power of the point are left out together.
        let (t, p) = (*i, n + k);
        let (tt, tp, pp) = (inverse[(t, t)], inverse[(t, p)], inverse[(p, p)]);
        let determinant = tt * pp - tp * tp;
        errors[t] = (
            (pp * weights[t] - tp * weights[p]) / determinant,
            Some((tt * weights[p] - tp * weights[t]) / determinant),
        );
    }
    Some(errors)
}

/// The same by fitting again without a fifth of the points.
fn fifths(observed: &[Observation], knowledge: &BoardKnowledge) -> Option<Vec<(f64, Option<f64>)>> {
    const FOLDS: usize = 5;
    let prior = Prior::of(knowledge)?;
    let mut errors = vec![(0.0, None); observed.len()];
    for fold in 0..FOLDS {
        let rest: Vec<Observation> =
            observed.iter().enumerate().filter(|(i, _)| i % FOLDS != fold).map(|(_, o)| *o).collect();
        let data = Whitened::new(&rest, &knowledge.curves, &knowledge.time, &knowledge.power)?;
        let solution = solve::solve(&data, &prior)?;
        let residual = carry(&rest, &data, &solution, knowledge)?;
        for (i, o) in observed.iter().enumerate().filter(|(i, _)| i % FOLDS == fold) {
            let answer = answer::answer(&solution.logs, &knowledge.curves, &residual, o.cell, o.cell.slices)?;
            errors[i] = (o.ln_time - answer.ln_time, o.ln_power.map(|p| p - answer.ln_power));
        }
    }
    Some(errors)
}

/// A file of fitted models, as it is written.
#[must_use]
pub fn file(knowledge: Option<BoardKnowledge>, models: Vec<FittedModel>) -> FittedModels {
    FittedModels { format_version: FITTED_FORMAT_VERSION.to_owned(), knowledge, models }
}

/// What a fitted model says of a cell, whether or not it may be planned with.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Mean batch time.
    pub batch_time: Seconds,
    /// p99 batch latency.
    pub latency_p99: Seconds,
    /// Dynamic power; `None` when the model has none.
    pub dynamic_power: Option<Watts>,
}

/// Evaluates a fitted model at a cell, outside the measured range too; `None` for slices its board lacks.
#[must_use]
pub fn estimate(model: &FittedModel, cell: Cell) -> Option<Estimate> {
    let logs = answer::coefficients(model).map(f64::ln);
    let answer = answer::answer(&logs, &model.curves, &model.residual, cell, cell.slices)?;
    let time = answer.ln_time.exp() / 1e3;
    Some(Estimate {
        batch_time: Seconds(time),
        latency_p99: Seconds(time * model.latency_ratio),
        dynamic_power: model.has_power.then(|| Watts(answer.ln_power.exp())),
    })
}

/// Cells of a table that a fit can use, in its order.
#[must_use]
pub fn cells(table: &PerformanceTable, board: &Board) -> Vec<Cell> {
    observations(table, board).iter().map(|o| o.cell).collect()
}

#[cfg(test)]
mod tests;
