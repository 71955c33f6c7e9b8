//! A plan → its picture: boards to scale, services, totals, assumptions, warnings.
//!
//! The same words at any width and without colour; no line is wider than the canvas.

use super::line::page;
use super::symbols::Symbols;
use super::{board, services, totals};
use ent_plan::plan::Plan;

/// How much is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Status and totals.
    Summary,
    /// Boards and services too.
    Boards,
    /// And the numbers behind every choice.
    Explain,
}

impl Detail {
    /// Whether reasons are shown.
    pub(crate) fn explains(self) -> bool {
        self == Self::Explain
    }
}

/// What is drawn on, and how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Canvas {
    /// Columns.
    pub(crate) width: usize,
    /// Whether colour may be used.
    pub(crate) color: bool,
    /// The characters.
    pub(crate) symbols: &'static Symbols,
    /// How much is drawn.
    pub(crate) detail: Detail,
}

/// Draws a plan. The time it took to make is the caller's to know; a saved plan has none.
pub(crate) fn plan(plan: &Plan, solve_seconds: Option<f64>, canvas: &Canvas) -> String {
    let mut lines = totals::status(plan, solve_seconds, canvas);
    lines.push(super::line::Line::new());
    if canvas.detail != Detail::Summary {
        lines.extend(board::boards(plan, canvas));
        lines.extend(services::services(plan, canvas));
    }
    lines.extend(totals::totals(plan, canvas));
    if canvas.detail != Detail::Summary {
        lines.extend(totals::assumptions(plan, canvas));
    }
    lines.extend(totals::notes(plan, canvas));
    while lines.last().is_some_and(|line| line.width() == 0) {
        lines.pop();
    }
    page(&lines, canvas.color)
}

/// The status alone, where there is no plan to draw.
pub(crate) fn status(plan: &Plan, solve_seconds: Option<f64>, canvas: &Canvas) -> String {
    page(&totals::status(plan, solve_seconds, canvas), canvas.color)
}

#[cfg(test)]
mod tests;
