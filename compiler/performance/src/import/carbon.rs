//! CSV text → a carbon intensity series in g/kWh.
//!
//! A missing value is an error: a zero in its place would look like free electricity.

use super::{Faults, LineFinder};
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Outcome, Span};
use ent_plan::units::GramsPerKilowattHour;

/// Beyond this (g/kWh) a value is not a grid's intensity: hard coal with the worst losses stays below.
const MAX_INTENSITY: f64 = 3000.0;

/// Reads a series: one column, or a timestamp and a value; a header line is optional. Where there are
/// more columns, exactly one header must speak of carbon intensity.
///
/// Errors: [`Code::MeasurementColumn`] when the column cannot be told, [`Code::MeasurementRow`] for a
/// value that is missing, not a number, negative, or absurd.
#[must_use]
pub fn carbon(text: &str, file: FileId) -> Outcome<Vec<GramsPerKilowattHour>> {
    let mut faults = Faults::new(file);
    let mut lines = LineFinder::new(text, file);
    let mut values = Vec::new();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut column = None;
    let mut n_columns = 0;
    for (index, record) in reader.records().enumerate() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                faults.row(Code::MeasurementRow, lines.whole(), "a row cannot be read", error.to_string());
                continue;
            }
        };
        let line = lines.find(record.position());
        if index == 0 {
            n_columns = record.len();
            let is_header = record.iter().all(|cell| cell.parse::<f64>().is_err());
            let Some(found) = value_column(&record, is_header, line.span, &mut faults) else {
                return faults.finish(Vec::new());
            };
            column = Some(found);
            if is_header {
                continue;
            }
        }
        let row = line.number;
        let span = line.cell(column.unwrap_or(0));
        let cell = record.get(column.unwrap_or(0)).unwrap_or("");
        if record.len() != n_columns {
            let has = record.len();
            faults.row(
                Code::MeasurementRow,
                line.span,
                format!("row {row} has {has} values"),
                format!("the first row has {n_columns}"),
            );
            continue;
        }
        let (message, help) = match cell.parse::<f64>() {
            Ok(value) if value.is_finite() && (0.0..=MAX_INTENSITY).contains(&value) => {
                values.push(GramsPerKilowattHour(value));
                continue;
            }
            Ok(value) if value.is_finite() && value < 0.0 => ("is negative", "give intensity in gCO2/kWh"),
            Ok(value) if value.is_finite() => {
                ("is not a grid's carbon intensity", "give intensity in gCO2/kWh")
            }
            Ok(_) => ("is not a finite number", "give intensity in gCO2/kWh"),
            Err(_)
                if cell.is_empty()
                    || cell.eq_ignore_ascii_case("n/a")
                    || cell.eq_ignore_ascii_case("nan") =>
            {
                ("is missing", "fill the gap, or shorten the series: a gap is never taken as zero")
            }
            Err(_) => ("is not a number", "give intensity in gCO2/kWh"),
        };
        faults.row_with_help(
            Code::MeasurementRow,
            span,
            format!("row {row}: the carbon intensity {message}"),
            if cell.is_empty() { "no value here".to_owned() } else { format!("`{cell}`") },
            help,
        );
    }
    if n_columns == 1 {
        blank_lines(text, &mut faults, file);
    }
    if values.is_empty() && !faults.has_errors() {
        faults.error(Code::MeasurementRow, lines.whole(), "the series has no values", "nothing to plan with");
    }
    faults.finish(values)
}

/// A blank line in a single column is a missing value, which a CSV reader passes over in silence.
fn blank_lines(text: &str, faults: &mut Faults, file: FileId) {
    let body = text.trim_end();
    let mut start = 0;
    for (index, line) in body.split('\n').enumerate() {
        if line.trim().is_empty() && start > 0 {
            let at = u32::try_from(start).unwrap_or(u32::MAX);
            faults.row_with_help(
                Code::MeasurementRow,
                Span { file, start: at, end: at },
                format!("row {}: the carbon intensity is missing", index + 1),
                "no value here",
                "fill the gap, or shorten the series: a gap is never taken as zero",
            );
        }
        start += line.len() + 1;
    }
}

fn value_column(
    first: &csv::StringRecord,
    is_header: bool,
    span: Span,
    faults: &mut Faults,
) -> Option<usize> {
    if first.len() == 1 {
        return Some(0);
    }
    if is_header {
        let matches: Vec<usize> = (0..first.len())
            .filter(|i| {
                let name = first[*i].to_lowercase();
                name.contains("intensity") || name.contains("g/kwh") || name.contains("eq/kwh")
            })
            .collect();
        if let [one] = matches.as_slice() {
            return Some(*one);
        }
        if matches.is_empty() && first.len() == 2 {
            return Some(1);
        }
        let label = if matches.is_empty() {
            "no column speaks of carbon intensity".to_owned()
        } else {
            format!("{} columns speak of carbon intensity", matches.len())
        };
        faults.push(
            Diagnostic::error(Code::MeasurementColumn, span, "the column of carbon intensity cannot be told")
                .label(label)
                .help("keep the one column to use, or a timestamp and that column"),
        );
        return None;
    }
    if first.len() == 2 {
        return Some(1);
    }
    faults.push(
        Diagnostic::error(Code::MeasurementColumn, span, "the column of carbon intensity cannot be told")
            .label(format!("{} columns and no header", first.len()))
            .help("keep one column, or a timestamp and a value"),
    );
    None
}
