//! Operating point → batch times, power, and how far to trust them.

use crate::fit::FittedPerformance;
use crate::table::TablePerformance;
use ent_plan::device::Board;
use ent_plan::performance::{FittedModel, PerformanceTable};
use ent_plan::units::{Megahertz, Seconds, Watts};

/// What identifies an operating point of one model on one board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PointKey {
    /// Index into [`Board::profiles`].
    pub profile: usize,
    /// Worker processes sharing the MIG device.
    pub processes: u32,
    /// Largest batch.
    pub batch: u32,
    /// SM clock.
    pub clock: Megahertz,
}

/// What identifies an operating point on an MPS share of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareKey {
    /// Active-thread percentage of all its processes together, 1..=100.
    pub percent: u32,
    /// Worker processes of the share.
    pub processes: u32,
    /// Largest batch.
    pub batch: u32,
    /// SM clock.
    pub clock: Megahertz,
}

impl ShareKey {
    /// The share of the board's compute slices, not a whole number.
    pub(crate) fn slices(self, board: &Board) -> f64 {
        f64::from(board.n_compute_slices()) * f64::from(self.percent) / 100.0
    }
}

/// What is predicted (or measured) for an operating point.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Time of a batch of k requests, k = 1..=batch, one process of `processes` that are all busy.
    /// Strictly positive and finite. Between measured batches linear in k; below the smallest measured
    /// batch as long as that one, which is never too short.
    pub batch_times: Vec<Seconds>,
    /// Dynamic power of the whole instance while its processes all run batches of k; empty when the
    /// source has no power.
    pub dynamic_power: Vec<Watts>,
    /// 99th percentile of the full batch's execution latency.
    pub latency_p99: Seconds,
    /// Relative standard error of the times; 0 for measured tables.
    pub time_error: f64,
    /// Relative standard error of the dynamic power; 0 for measured tables.
    pub power_error: f64,
    /// `fitted`, `table` or `extrapolated`.
    pub source: &'static str,
}

impl Prediction {
    /// Rate at which the instance saturates with full batches: `processes * batch / t(batch)`. For a
    /// measured row this is its throughput, to the last digit where a time exists that gives it.
    #[must_use]
    pub fn capacity(&self, processes: u32) -> f64 {
        self.batch_times
            .last()
            .map_or(0.0, |t| f64::from(processes) * self.batch_times.len() as f64 / t.get())
    }
}

/// One model's performance on one board, ready to be asked.
#[derive(Clone, Debug)]
pub struct ModelPerformance {
    /// The board's id.
    pub board: String,
    /// Where the numbers come from, in words.
    pub provenance: String,
    /// Invented to illustrate; a plan made with it says so.
    pub is_illustration: bool,
    answers: Answers,
}

#[derive(Clone, Debug)]
enum Answers {
    Table(TablePerformance),
    Fitted(Box<FittedPerformance>),
}

impl ModelPerformance {
    /// Measured rows, used as they are.
    #[must_use]
    pub fn from_table(table: &PerformanceTable, board: &Board) -> Self {
        Self {
            board: board.id.clone(),
            provenance: table.source.clone(),
            is_illustration: table.is_illustration,
            answers: Answers::Table(TablePerformance::new(table, board)),
        }
    }

    /// A fitted model; `None` when its coefficients or support points are not those of a fit.
    #[must_use]
    pub fn from_fitted(model: &FittedModel, board: &Board) -> Option<Self> {
        Some(Self {
            board: board.id.clone(),
            provenance: model.source.clone(),
            is_illustration: model.is_illustration,
            answers: Answers::Fitted(Box::new(FittedPerformance::new(model)?)),
        })
    }

    /// Every operating point this source can answer for on this board: measured rows for a table
    /// (base profiles only), the measured batches and clocks on every profile for a fitted model.
    #[must_use]
    pub fn points(&self, board: &Board) -> Vec<PointKey> {
        match &self.answers {
            Answers::Table(table) => table.points(board),
            Answers::Fitted(fitted) => fitted.points(board),
        }
    }

    /// The prediction for a point; `None` when the source cannot answer for it.
    #[must_use]
    pub fn predict(&self, board: &Board, key: PointKey) -> Option<Prediction> {
        match &self.answers {
            Answers::Table(table) => table.predict(board, key),
            Answers::Fitted(fitted) => fitted.predict(board, key),
        }
    }

    /// The prediction for an MPS share of a board that is not cut: as a MIG device with that share of the
    /// board's compute slices, the shared curves and the measured sizes interpolated in the logarithm of
    /// slices; nothing that runs beside it interferes. Always `extrapolated`: nobody measured it.
    ///
    /// `None` for a share that is not 1..=100 %, and where the source cannot answer for the processes, the
    /// clock or a batch this large.
    #[must_use]
    pub fn predict_share(&self, board: &Board, share: ShareKey) -> Option<Prediction> {
        if !(1..=100).contains(&share.percent) || share.batch == 0 {
            return None;
        }
        match &self.answers {
            Answers::Table(table) => table.predict_share(board, share),
            Answers::Fitted(fitted) => fitted.predict_share(board, share),
        }
    }
}

/// The index of a board's base profile with this many compute slices.
pub(crate) fn base_profile_index(board: &Board, n_compute_slices: u32) -> Option<usize> {
    let base = board.base_profile(n_compute_slices)?;
    board.profiles.iter().position(|p| p.name == base.name)
}

/// Whether performance measured on the board with this id is that of `board`: the same board, or a spec's own
/// block that starts from it (the PCI ids stay). An illustration is no real board's kin.
pub(crate) fn is_measured_as(board: &Board, id: &str) -> bool {
    if board.id == id {
        return true;
    }
    !board.is_illustration
        && !board.pci_device_ids.is_empty()
        && ent_plan::device::board(id).is_some_and(|known| known.pci_device_ids == board.pci_device_ids)
}
