//! Measured rows → what a fit looks at: logarithms of batch time and dynamic power.

use super::curves;
use super::form::FormPoint;
use super::residual::FieldPoint;
use ent_plan::device::Board;
use ent_plan::performance::{BoardCurves, PerformanceTable};
use ent_plan::units::{Megahertz, Watts};

/// One cell of the grid of operating points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Compute slices.
    pub slices: u32,
    /// Requests per batch.
    pub batch: u32,
    /// SM clock.
    pub clock: Megahertz,
}

/// What was seen at a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) cell: Cell,
    /// ln ms.
    pub(crate) ln_time: f64,
    /// ln W of dynamic power.
    pub(crate) ln_power: Option<f64>,
    /// p99 batch latency over mean batch time.
    pub(crate) latency_ratio: f64,
    /// Base power (W), where the board's is known.
    pub(crate) base_power: Option<f64>,
}

/// Dynamic power below this (W) is lost in the meter's noise and says nothing in a logarithm.
const LEAST_POWER: f64 = 0.2;

/// The rows a fit can use: one process, not suspect, at a clock.
pub(crate) fn observations(table: &PerformanceTable, board: &Board) -> Vec<Observation> {
    let highest = crate::table::highest_clock(board);
    table
        .measurements
        .iter()
        .filter(|m| m.processes == 1 && !m.is_suspect)
        .filter_map(|m| {
            let clock = m.clock.or(highest)?;
            let base_power = board.base_power.as_ref().and_then(|b| b.at(clock)).map(Watts::get);
            let dynamic = m
                .dynamic_power
                .map(Watts::get)
                .or_else(|| Some(m.board_power?.get() - base_power?))
                .filter(|w| *w > LEAST_POWER);
            let ms = 1e3 * f64::from(m.batch) / m.throughput.get();
            (ms.is_finite() && ms > 0.0).then(|| Observation {
                cell: Cell { slices: m.n_compute_slices, batch: m.batch, clock },
                ln_time: ms.ln(),
                ln_power: dynamic.map(f64::ln),
                latency_ratio: m.latency_p99.get() * 1e3 / ms,
                base_power,
            })
        })
        .collect()
}

/// A cell in the form's and the fields' coordinates.
pub(crate) fn place(curves: &BoardCurves, cell: Cell) -> Option<(FormPoint, FieldPoint)> {
    let form = curves::form_point(curves, cell.batch, cell.slices, cell.slices, cell.clock)?;
    Some((form, field_point(cell)))
}

/// A cell in the fields' coordinates.
pub(crate) fn field_point(cell: Cell) -> FieldPoint {
    FieldPoint {
        log2_batch: f64::from(cell.batch).log2(),
        log2_slices: f64::from(cell.slices).log2(),
        ln_ghz: (f64::from(cell.clock.0) / 1e3).ln(),
    }
}
