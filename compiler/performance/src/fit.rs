//! Performance table → fitted model.

use crate::predict::{PointKey, Prediction};
use ent_plan::device::Board;
use ent_plan::diagnostic::{Outcome, Span};
use ent_plan::performance::{FittedModel, PerformanceTable};

#[derive(Clone, Debug)]
pub(crate) struct FittedPerformance;

impl FittedPerformance {
    pub(crate) fn new(_model: &FittedModel) -> Option<Self> {
        None
    }

    pub(crate) fn points(&self, _board: &Board) -> Vec<PointKey> {
        Vec::new()
    }

    pub(crate) fn predict(&self, _board: &Board, _key: PointKey) -> Option<Prediction> {
        None
    }
}

/// Reads a file of fitted models.
pub(crate) fn read_models(_text: &str) -> Result<Vec<FittedModel>, String> {
    Err("fitted models are not read yet".to_owned())
}

/// Fits a table with what is known of its board.
pub(crate) fn fit_on_board(
    _table: &PerformanceTable,
    _board: &Board,
    _span: Span,
) -> Outcome<Option<FittedModel>> {
    Outcome { value: None, diagnostics: Vec::new() }
}
