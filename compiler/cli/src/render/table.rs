//! Rows of short texts → aligned columns, or one small paragraph per row where columns do not fit.

use super::line::{Line, Role};
use super::symbols::Symbols;

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Its heading.
    pub(crate) title: &'static str,
    /// Whether numbers stand right-aligned in it.
    pub(crate) is_number: bool,
    /// Whether its text may be cut when the table is too wide.
    pub(crate) may_shrink: bool,
}

impl Column {
    /// A column of names, which may be cut.
    pub(crate) const fn name(title: &'static str) -> Self {
        Self { title, is_number: false, may_shrink: true }
    }

    /// A column of short words.
    pub(crate) const fn word(title: &'static str) -> Self {
        Self { title, is_number: false, may_shrink: false }
    }

    /// A column of numbers.
    pub(crate) const fn number(title: &'static str) -> Self {
        Self { title, is_number: true, may_shrink: false }
    }
}

/// A name is never cut below this.
const LEAST_NAME: usize = 20;

/// Between columns.
const SPACE: usize = 2;

/// Draws a table within a width, indented.
pub(crate) fn table(
    columns: &[Column],
    rows: &[Vec<Line>],
    width: usize,
    indent: usize,
    symbols: &Symbols,
) -> Vec<Line> {
    let mut widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(i, column)| {
            let widest = rows.iter().filter_map(|row| row.get(i)).map(Line::width).max().unwrap_or(0);
            widest.max(Line::plain(column.title).width())
        })
        .collect();
    let spaces = indent + SPACE * columns.len().saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + spaces).saturating_sub(width);
    for (column, size) in columns.iter().zip(&mut widths) {
        if column.may_shrink && excess > 0 {
            let taken = excess.min(size.saturating_sub(LEAST_NAME));
            *size -= taken;
            excess -= taken;
        }
    }
    if excess > 0 {
        return paragraphs(columns, rows, width, indent, symbols);
    }
    let heading = columns.iter().map(|column| Line::of(Role::Faint, column.title)).collect();
    std::iter::once(&heading)
        .chain(rows)
        .map(|row: &Vec<Line>| {
            let mut line = Line::plain(" ".repeat(indent));
            for (i, (cell, (column, size))) in row.iter().zip(columns.iter().zip(&widths)).enumerate() {
                if i > 0 {
                    line.push(Role::Plain, " ".repeat(SPACE));
                }
                let cell = cell.clone().cut(*size, symbols.ellipsis);
                line =
                    line.then(if column.is_number { cell.right_aligned(*size) } else { cell.padded(*size) });
            }
            line
        })
        .collect()
}

/// Each row by itself: its first cells as a heading, then `title value` pairs.
fn paragraphs(
    columns: &[Column],
    rows: &[Vec<Line>],
    width: usize,
    indent: usize,
    symbols: &Symbols,
) -> Vec<Line> {
    let n_leading = columns.iter().take_while(|column| !column.is_number).count();
    let mut lines = Vec::new();
    for row in rows {
        let mut heading = Line::plain(" ".repeat(indent));
        for (i, cell) in row.iter().take(n_leading).enumerate() {
            if i > 0 {
                heading.push(Role::Plain, " ");
            }
            heading = heading.then(cell.clone());
        }
        lines.extend(heading.wrapped(width, indent + 2));
        let mut facts = Vec::new();
        for (cell, column) in row.iter().zip(columns).skip(n_leading) {
            if cell.width() > 0 {
                facts.push(Line::of(Role::Faint, format!("{} ", column.title)).then(cell.clone()));
            }
        }
        lines.extend(flow(facts, width, indent + 2, symbols));
    }
    lines
}

/// Facts one after the other, a dot between, as many on a line as fit.
pub(crate) fn flow(facts: Vec<Line>, width: usize, indent: usize, symbols: &Symbols) -> Vec<Line> {
    let separator =
        if symbols.is_unicode { format!(" {} ", symbols.dot) } else { format!("{} ", symbols.dot) };
    let mut lines = Vec::new();
    let mut line: Option<Line> = None;
    for fact in facts {
        line = Some(match line {
            Some(before) if before.width() + separator.chars().count() + fact.width() <= width => {
                before.and(Role::Faint, &separator).then(fact)
            }
            before => {
                lines.extend(before);
                Line::plain(" ".repeat(indent)).then(fact)
            }
        });
    }
    lines.extend(line);
    lines.into_iter().flat_map(|line| line.wrapped(width, indent + 2)).collect()
}
