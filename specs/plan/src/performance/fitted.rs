//! The fitted model of one neural network on one board, as its file holds it.
//!
//! Coefficients of the physical form, the residual's support points, the curves of the board they
//! were fitted with, and how well it fits. Owned by `ent-performance::fit`.

use crate::units::Megahertz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the file format of fitted models.
pub const FITTED_FORMAT_VERSION: &str = "1.0";

/// A file of fitted models of one board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedModels {
    /// [`FITTED_FORMAT_VERSION`].
    pub format_version: String,
    /// What other models on this board have taught; where the next fit starts from.
    pub knowledge: Option<BoardKnowledge>,
    /// The models.
    pub models: Vec<FittedModel>,
}

/// A fitted model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FittedModel {
    /// The neural network.
    pub model: String,
    /// The board's catalogue id.
    pub board: String,
    /// Where the measurements come from.
    pub source: String,
    /// Invented to illustrate; nobody measured it.
    #[serde(default)]
    pub is_illustration: bool,
    /// Measurements used.
    pub n_measurements: u32,
    /// Compute slices that were measured, ascending: proof that the model fits in their memory.
    pub slices: Vec<u32>,
    /// Batches it answers for, ascending.
    pub batches: Vec<u32>,
    /// Lowest and highest clock measured.
    pub clocks: [Megahertz; 2],
    /// Whether power was measured.
    pub has_power: bool,
    /// Coefficients of the physical form.
    pub coefficients: Coefficients,
    /// p99 batch latency over mean batch time.
    pub latency_ratio: f64,
    /// What the form leaves over.
    pub residual: Residual,
    /// How well it predicts what it has not seen.
    pub errors: FitErrors,
    /// The board's curves it was fitted with.
    pub curves: BoardCurves,
}

/// Coefficients of the physical form. With b requests, clock f in GHz:
///
/// - device time = (serial + (work_batch + work_each b) compute) / f + (memory_batch + memory_each b) memory
/// - host time = host_batch + host_each b; batch time = (device^8 + host^8)^(1/8)
/// - dynamic power = (energy_batch + energy_each b) voltage / batch time + slice_power slices overhead
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coefficients {
    /// ms GHz.
    pub serial: f64,
    /// ms GHz per request, on one compute slice.
    pub work_each: f64,
    /// ms GHz, on one compute slice.
    pub work_batch: f64,
    /// ms, on one memory slice.
    pub memory_batch: f64,
    /// ms per request, on one memory slice.
    pub memory_each: f64,
    /// ms.
    pub host_batch: f64,
    /// ms per request.
    pub host_each: f64,
    /// mJ at the reference clock.
    pub energy_batch: f64,
    /// mJ per request at the reference clock.
    pub energy_each: f64,
    /// W per busy compute slice at the reference clock.
    pub slice_power: f64,
}

/// How a board's sizes and clocks act on every model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardCurves {
    /// Compute slices → compute time relative to one slice.
    pub compute: Vec<(u32, f64)>,
    /// Compute slices of the base profile → memory time relative to one memory slice.
    pub memory: Vec<(u32, f64)>,
    /// Clock → energy relative to the reference clock: voltage squared.
    pub voltage: Vec<(Megahertz, f64)>,
    /// Clock → slice power relative to the reference clock.
    pub overhead: Vec<(Megahertz, f64)>,
}

/// A residual field's parameters; standard deviations and lengths in logarithms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidualField {
    /// Standard deviation of the part that is the same at every clock.
    pub fixed_sd: f64,
    /// Its length over log2 batch.
    pub fixed_batch: f64,
    /// Its length over log2 slices.
    pub fixed_slices: f64,
    /// Standard deviation of the part that changes with the clock.
    pub moving_sd: f64,
    /// Its length over log2 batch.
    pub moving_batch: f64,
    /// Its length over log2 slices.
    pub moving_slices: f64,
    /// Its length over ln clock.
    pub moving_clock: f64,
    /// Standard deviation of what no point shares with another.
    pub noise_sd: f64,
}

/// The residual: fields and the weights of their support points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Residual {
    /// Of ln batch time.
    pub time: ResidualField,
    /// Of ln dynamic power.
    pub power: ResidualField,
    /// Support points.
    pub support: Vec<SupportPoint>,
}

/// A point the residual is carried by, and its weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SupportPoint {
    /// Requests in the batch.
    pub batch: u32,
    /// Compute slices.
    pub slices: u32,
    /// SM clock.
    pub clock: Megahertz,
    /// Weight in ln time.
    pub time_weight: f64,
    /// Weight in ln power.
    pub power_weight: f64,
}

/// Errors on measurements the fit did not see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FitErrors {
    /// Measurements left out and predicted.
    pub n_held_out: u32,
    /// How they were left out, in words.
    pub method: String,
    /// Mean absolute relative error of throughput.
    pub throughput_mean: f64,
    /// Of p99 batch latency.
    pub latency_mean: f64,
    /// Of board power; `None` without power or base power.
    pub power_mean: Option<f64>,
    /// Of dynamic power.
    pub dynamic_power_mean: Option<f64>,
    /// Root mean square error of ln time.
    pub time_rms: f64,
    /// Root mean square error of ln dynamic power.
    pub power_rms: f64,
}

/// What models measured before say about the next one on the same board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardKnowledge {
    /// The board's catalogue id.
    pub board: String,
    /// Its curves.
    pub curves: BoardCurves,
    /// Residual of ln time.
    pub time: ResidualField,
    /// Residual of ln power.
    pub power: ResidualField,
    /// Mean of the log-coefficients, in the order of [`Coefficients`].
    pub mean: Vec<f64>,
    /// Their covariance, by rows.
    pub covariance: Vec<Vec<f64>>,
}
