//! Shares of an axis → a bar drawn to scale: memory slices of a MIG board, percentages of an MPS board.

use super::line::{Line, Role};
use super::symbols::Symbols;

/// One stretch of the axis.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Units it takes.
    pub(crate) units: u32,
    /// What is written in it, line by line; cut where it does not fit.
    pub(crate) lines: Vec<Line>,
    /// Whether nothing runs there.
    pub(crate) is_free: bool,
}

/// Columns inside each cell, to scale, when the whole bar (frames included) takes `width`. `None` when the
/// axis has more cells than the width can hold.
pub(crate) fn inner_widths(cells: &[Cell], width: usize) -> Option<Vec<usize>> {
    let total: u32 = cells.iter().map(|cell| cell.units).sum();
    if total == 0 || width < 2 * cells.len() + 1 {
        return None;
    }
    let column = |units: u32| (f64::from(units) * (width - 1) as f64 / f64::from(total)).round();
    let mut widths = Vec::with_capacity(cells.len());
    let mut units = 0;
    for cell in cells {
        let left = column(units);
        units += cell.units;
        let inner = column(units) - left - 1.0;
        if inner < 1.0 {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between one and the width of a terminal"
        )]
        widths.push(inner as usize);
    }
    Some(widths)
}

/// Whether every line of every cell fits in full.
pub(crate) fn fits(cells: &[Cell], widths: &[usize]) -> bool {
    cells
        .iter()
        .zip(widths)
        .all(|(cell, width)| cell.is_free || cell.lines.iter().all(|line| line.width() + 2 <= *width))
}

/// Keeps of each cell the first of its lines that fits, or else the last.
pub(crate) fn first_that_fits(cells: Vec<Cell>, widths: &[usize]) -> Vec<Cell> {
    let choose = |(cell, width): (Cell, &usize)| {
        let fitting = cell.lines.iter().find(|line| line.width() + 2 <= *width).or(cell.lines.last());
        Cell { lines: fitting.cloned().into_iter().collect(), ..cell }
    };
    cells.into_iter().zip(widths).map(choose).collect()
}

/// Draws the bar.
pub(crate) fn bar(cells: &[Cell], widths: &[usize], symbols: &Symbols) -> Vec<Line> {
    let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0).max(1);
    let mut lines = vec![edge(widths, symbols.top, symbols)];
    for row in 0..height {
        let mut line = Line::new();
        for (cell, width) in cells.iter().zip(widths) {
            line.push(Role::Faint, symbols.vertical.to_string());
            line = line.then(inside(cell, row, *width, symbols));
        }
        lines.push(line.and(Role::Faint, symbols.vertical.to_string()));
    }
    lines.push(edge(widths, symbols.bottom, symbols));
    lines
}

fn inside(cell: &Cell, row: usize, width: usize, symbols: &Symbols) -> Line {
    let text = cell.lines.get(row).cloned().unwrap_or_default();
    if cell.is_free {
        let shade = symbols.shade.to_string();
        if text.width() == 0 || text.width() + 2 > width {
            return Line::of(Role::Faint, shade.repeat(width));
        }
        let after = width - text.width() - 1;
        return Line::of(Role::Faint, &shade).then(text).and(Role::Faint, shade.repeat(after));
    }
    if width < 3 {
        return text.cut(width, symbols.ellipsis).padded(width);
    }
    Line::plain(" ").then(text.cut(width - 1, symbols.ellipsis)).padded(width)
}

fn edge(widths: &[usize], [left, tee, right]: [char; 3], symbols: &Symbols) -> Line {
    let strokes: Vec<String> =
        widths.iter().map(|width| symbols.horizontal.to_string().repeat(*width)).collect();
    Line::of(Role::Faint, format!("{left}{}{right}", strokes.join(&tee.to_string())))
}
