//! CSV text → performance tables, carbon series and arrival traces, with every fault at its row.
//!
//! Three layouts of measurements are known by their header: entc's own, EnerTune's profile files and
//! ParvaGPU's. What leaves here is finite, positive and SI: units are checked by arithmetic
//! (throughput x latency / batch is 1 in a closed loop), not by trust in the header.

use ent_plan::device::Board;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Outcome, Span};
use ent_plan::performance::PerformanceTable;

mod carbon;
mod column;
mod judge;
mod repeat;
mod row;
mod trace;
mod utilisation;

pub use carbon::carbon;
pub use trace::{Trace, trace};
pub use utilisation::{ModelUtilisation, utilisation};

/// What the text itself does not say.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The boards rows may be about, for base power, clock ladder and MIG menu.
    pub boards: &'a [Board],
    /// The board of rows that name none; an index into `boards`.
    pub board: Option<usize>,
    /// The model of rows that name none.
    pub model: Option<&'a str>,
    /// Where the measurements come from, unless a `# source:` line says so.
    pub source: &'a str,
}

/// At most this many faulty rows of a file are reported one by one.
const MAX_ROW_FAULTS: usize = 20;

/// Reads measurements, one table per model and board, in the order of first appearance.
///
/// Lines that start with `#` are comments; `# source: TEXT` names the source and `# illustration` marks
/// invented numbers. Errors: [`Code::MeasurementColumn`], [`Code::MeasurementRow`],
/// [`Code::MeasurementUnits`], [`Code::DuplicateMeasurement`], [`Code::ClockOffLadder`].
#[must_use]
pub fn measurements(text: &str, file: FileId, context: &Context<'_>) -> Outcome<Vec<PerformanceTable>> {
    let mut faults = Faults::new(file);
    let comments = Comments::of(text);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut lines = LineFinder::new(text, file);
    let mut records = reader.records();
    let header = match records.next() {
        Some(Ok(record)) => record,
        Some(Err(error)) => {
            faults.error(Code::MeasurementColumn, lines.whole(), "the file is not CSV", error.to_string());
            return faults.finish(Vec::new());
        }
        None => {
            faults.error(Code::MeasurementColumn, lines.whole(), "the file has no header", "no row at all");
            return faults.finish(Vec::new());
        }
    };
    let header_line = lines.find(header.position());
    let Some(columns) = column::detect(&header, &header_line, context, &mut faults) else {
        return faults.finish(Vec::new());
    };
    let mut rows = Vec::new();
    for record in records {
        match record {
            Ok(record) => {
                let line = lines.find(record.position());
                if let Some(row) = row::read(&record, &line, &columns, context, &mut faults) {
                    rows.push(row);
                }
            }
            Err(error) => {
                faults.row(Code::MeasurementRow, lines.whole(), "a row cannot be read", error.to_string());
            }
        }
    }
    if rows.is_empty() && !faults.has_errors() {
        faults.error(
            Code::MeasurementRow,
            header_line.span,
            "the file has no measurements",
            "nothing below the header that ran",
        );
    }
    judge::judge(&mut rows, &columns, context, &mut faults);
    let tables = repeat::tables(rows, &comments, context, &mut faults);
    faults.finish(tables)
}

/// What comment lines say about the whole file.
struct Comments {
    source: Option<String>,
    is_illustration: bool,
}

impl Comments {
    fn of(text: &str) -> Self {
        let mut found = Self { source: None, is_illustration: false };
        for line in text.lines().filter_map(|l| l.trim_start().strip_prefix('#')) {
            let line = line.trim();
            if let Some(source) = line.strip_prefix("source:") {
                found.source = Some(source.trim().to_owned());
            }
            found.is_illustration |=
                line.split(|c: char| !c.is_alphanumeric()).next() == Some("illustration");
        }
        found
    }
}

/// One line of the text.
#[derive(Clone, Debug)]
struct Line<'a> {
    /// The line without its end.
    text: &'a str,
    /// Where it is.
    span: Span,
    /// One-based, header and comments included: what an editor shows.
    number: usize,
}

impl Line<'_> {
    /// Where the cell of a column is; the whole line when it is quoted, so that no comma misleads.
    fn cell(&self, column: usize) -> Span {
        if self.text.contains('"') {
            return self.span;
        }
        let mut start = 0;
        for (index, cell) in self.text.split(',').enumerate() {
            if index == column {
                let lead = cell.len() - cell.trim_start().len();
                let at = start + lead;
                let end = (at + cell.trim().len()).max(at);
                return Span {
                    start: self.span.start + u32::try_from(at).unwrap_or(0),
                    end: self.span.start + u32::try_from(end).unwrap_or(0),
                    ..self.span
                };
            }
            start += cell.len() + 1;
        }
        self.span
    }
}

/// Byte positions → lines, walking forward only.
struct LineFinder<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
    number: usize,
}

impl<'a> LineFinder<'a> {
    fn new(text: &'a str, file: FileId) -> Self {
        Self { text, file, at: 0, number: 1 }
    }

    fn whole(&self) -> Span {
        let end = self.text.find('\n').unwrap_or(self.text.len());
        Span { file: self.file, start: 0, end: u32::try_from(end).unwrap_or(u32::MAX) }
    }

    fn find(&mut self, position: Option<&csv::Position>) -> Line<'a> {
        let bytes = self.text.as_bytes();
        let mut start = position.map_or(self.at, |p| usize::try_from(p.byte()).unwrap_or(self.at));
        start = start.min(bytes.len());
        // The reader's position may lie before blank lines, comments and the second half of CRLF.
        while start < bytes.len() {
            match bytes[start] {
                b'\r' | b'\n' => start += 1,
                b'#' => {
                    start += bytes[start..].iter().position(|b| *b == b'\n').unwrap_or(bytes.len() - start)
                }
                _ => break,
            }
        }
        if start > self.at {
            self.number += bytes[self.at..start].iter().filter(|b| **b == b'\n').count();
            self.at = start;
        }
        let rest = self.text.get(self.at..).unwrap_or("");
        let text = rest.split(['\r', '\n']).next().unwrap_or("");
        let at = u32::try_from(self.at).unwrap_or(u32::MAX);
        let end = u32::try_from(self.at + text.len()).unwrap_or(u32::MAX);
        Line { text, span: Span { file: self.file, start: at, end }, number: self.number }
    }
}

/// Collects diagnostics; the twenty-first faulty row is counted, not told.
struct Faults {
    file: FileId,
    diagnostics: Vec<Diagnostic>,
    n_rows: usize,
    last_row: Span,
}

impl Faults {
    fn new(file: FileId) -> Self {
        Self { file, diagnostics: Vec::new(), n_rows: 0, last_row: Span { file, start: 0, end: 0 } }
    }

    fn has_errors(&self) -> bool {
        self.n_rows > 0
            || self.diagnostics.iter().any(|d| d.severity == ent_plan::diagnostic::Severity::Error)
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.push(Diagnostic::error(code, span, message).label(label));
    }

    fn row(&mut self, code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.row_with_help(code, span, message, label, "correct the row, or delete it if it did not run");
    }

    fn row_with_help(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.n_rows += 1;
        self.last_row = span;
        if self.n_rows <= MAX_ROW_FAULTS {
            self.push(Diagnostic::error(code, span, message).label(label).help(help));
        }
    }

    fn finish<T>(mut self, value: T) -> Outcome<T> {
        if self.n_rows > MAX_ROW_FAULTS {
            let more = self.n_rows - MAX_ROW_FAULTS;
            let span = Span { file: self.file, ..self.last_row };
            self.error(
                Code::MeasurementRow,
                span,
                format!("{more} more rows are at fault"),
                "the last of them",
            );
        }
        Outcome { value, diagnostics: self.diagnostics }
    }
}

#[cfg(test)]
mod tests;
