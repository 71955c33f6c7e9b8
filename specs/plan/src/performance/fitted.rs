//! The fitted model of one neural network on one board, as its file holds it.
//!
//! Coefficients of the physical form, the residual's support points, the curves of the board they
//! were fitted with, and how well it fits. Owned by `ent-performance::fit`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fitted model. (Placeholder fields; the fit defines the rest.)
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
}
