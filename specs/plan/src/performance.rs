//! Performance data: measured tables and fitted models, as files hold them.
//!
//! The types only; fitting and predicting are `ent-performance`.

use crate::units::{Megahertz, PerSecond, Seconds, Watts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod fitted;
pub use fitted::*;

/// The built-in fitted models, embedded: board id and JSON text.
const CATALOGUE: &[(&str, &str)] =
    &[("a100-80gb-pcie", include_str!("../../performance/a100-80gb-pcie.json"))];

/// The built-in fitted models measured on a board, as JSON text; `None` when there are none.
#[must_use]
pub fn catalogue(board: &str) -> Option<&'static str> {
    CATALOGUE.iter().find(|(id, _)| *id == board).map(|(_, text)| *text)
}

/// One measured operating point. Closed loop: one batch in flight per process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// Compute slices of the MIG device it ran on.
    pub n_compute_slices: u32,
    /// Processes sharing the MIG device.
    pub processes: u32,
    /// Requests per batch.
    pub batch: u32,
    /// Locked SM clock; `None` when the source does not say (then the board's highest).
    pub clock: Option<Megahertz>,
    /// Requests per second, all processes together.
    pub throughput: PerSecond,
    /// The 99th percentile of batch latency.
    pub latency_p99: Seconds,
    /// Mean power of the whole board.
    pub board_power: Option<Watts>,
    /// Board power less base power.
    pub dynamic_power: Option<Watts>,
    /// Row (one-based, header included) in the source file.
    pub row: usize,
    /// Known not to be a plain measurement: at the power cap, or synthetic. Kept out of fits.
    pub is_suspect: bool,
}

/// The measurements of one model on one board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerformanceTable {
    /// The neural network.
    pub model: String,
    /// The board's catalogue id.
    pub board: String,
    /// Where it comes from.
    pub source: String,
    /// Invented to illustrate; nobody measured it.
    #[serde(default)]
    pub is_illustration: bool,
    /// The rows.
    pub measurements: Vec<Measurement>,
}
