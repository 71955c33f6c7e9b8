//! One record → one row in SI units, or the fault that keeps it out.

use super::column::{Columns, Field, Layout};
use super::{Context, Faults, Line};
use crate::predict::is_measured_as;
use ent_plan::diagnostic::{Code, Span};
use ent_plan::performance::Measurement;
use ent_plan::units::{PerSecond, Seconds, Watts};

/// A row with the names it belongs under and its place.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) model: String,
    /// Index into the context's boards.
    pub(super) board: usize,
    pub(super) measurement: Measurement,
    pub(super) span: Span,
    /// Throughput x latency / batch, per process: 1 in a closed loop when all units are right.
    pub(super) closed_loop: f64,
    /// The clock as written; a clock in GHz is not whole.
    pub(super) clock: Option<f64>,
}

/// The largest batch and process count that are believed. Beyond it a column was swapped.
const MAX_COUNT: f64 = 1e4;

/// One request in eleven days, and a billion a second; latencies in any unit from ns to s that has them.
const THROUGHPUTS: std::ops::RangeInclusive<f64> = 1e-6..=1e9;
const LATENCIES: std::ops::RangeInclusive<f64> = 1e-9..=1e15;
/// In mW too, so that a wrong unit is told as one.
const MAX_POWER: f64 = 1e7;

struct Reader<'a, 'b> {
    record: &'a csv::StringRecord,
    line: &'a Line<'b>,
    columns: &'a Columns,
    faults: &'a mut Faults,
}

impl Reader<'_, '_> {
    fn text(&self, field: Field) -> Option<&str> {
        let text = self.record.get(self.columns.at(field)?)?;
        let is_absent =
            text.is_empty() || text.eq_ignore_ascii_case("n/a") || text.eq_ignore_ascii_case("na");
        (!is_absent).then_some(text)
    }

    fn span(&self, field: Field) -> Span {
        self.columns.at(field).map_or(self.line.span, |column| self.line.cell(column))
    }

    fn fault(&mut self, field: Field, message: String, label: String) {
        let span = self.span(field);
        self.faults.row(Code::MeasurementRow, span, message, label);
    }

    /// A finite number, not negative. `Ok(None)` when the cell is empty.
    fn number(&mut self, field: Field) -> Result<Option<f64>, ()> {
        let Some(text) = self.text(field) else { return Ok(None) };
        let text = text.to_owned();
        let name = self.columns.name(field);
        let row = self.line.number;
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && (value >= 0.0 || field == Field::DynamicPower) => {
                Ok(Some(value))
            }
            Ok(value) if value.is_finite() => {
                self.fault(field, format!("row {row}: `{name}` is negative"), format!("{value}"));
                Err(())
            }
            Ok(_) => {
                self.fault(field, format!("row {row}: `{name}` is not a finite number"), text);
                Err(())
            }
            Err(_) => {
                self.fault(field, format!("row {row}: `{name}` is not a number"), format!("`{text}`"));
                Err(())
            }
        }
    }

    fn required(&mut self, field: Field) -> Result<f64, ()> {
        match self.number(field)? {
            Some(value) => Ok(value),
            None => {
                let name = self.columns.name(field);
                let row = self.line.number;
                self.fault(field, format!("row {row}: `{name}` is missing"), "no value here".to_owned());
                Err(())
            }
        }
    }

    /// A count of at least 1; `2.0` is 2.
    fn count(&mut self, field: Field) -> Result<u32, ()> {
        let value = self.required(field)?;
        if (1.0..=MAX_COUNT).contains(&value) && value.fract() == 0.0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number, 1..=1e4"
            )]
            return Ok(value as u32);
        }
        let name = self.columns.name(field);
        let row = self.line.number;
        self.fault(
            field,
            format!("row {row}: `{name}` is not a whole number from 1 to 10000"),
            value.to_string(),
        );
        Err(())
    }
}

/// Reads a record. `None` when it is at fault (and said so), or says that the point did not run.
pub(super) fn read(
    record: &csv::StringRecord,
    line: &Line<'_>,
    columns: &Columns,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Option<Row> {
    if record.len() != columns.n_columns {
        let (has, wants, row) = (record.len(), columns.n_columns, line.number);
        faults.row(
            Code::MeasurementRow,
            line.span,
            format!("row {row} has {has} values"),
            format!("the header has {wants}"),
        );
        return None;
    }
    read_fields(&mut Reader { record, line, columns, faults }, context).ok().flatten()
}

fn read_fields(reader: &mut Reader<'_, '_>, context: &Context<'_>) -> Result<Option<Row>, ()> {
    let layout = reader.columns.layout;
    let row = reader.line.number;
    let is_absent =
        |r: &Reader<'_, '_>| r.text(Field::Throughput).is_none() && r.text(Field::Latency).is_none();
    // ParvaGPU writes `0,0` (out of memory) and `N/A` for points that did not run.
    if layout == Layout::ParvaGpu && is_absent(reader) {
        return Ok(None);
    }
    let n_compute_slices = reader.count(Field::Slices)?;
    let batch = reader.count(Field::Batch)?;
    let processes =
        if reader.text(Field::Processes).is_some() { reader.count(Field::Processes)? } else { 1 };
    let throughput = reader.required(Field::Throughput)?;
    let latency = reader.required(Field::Latency)?;
    if throughput == 0.0 && latency == 0.0 && layout == Layout::ParvaGpu {
        return Ok(None);
    }
    if throughput == 0.0 || latency == 0.0 {
        let what = if throughput == 0.0 && latency == 0.0 {
            "throughput and latency are"
        } else {
            "one of the two is"
        };
        reader.fault(
            Field::Throughput,
            format!("row {row}: a measured point cannot have zero throughput or latency"),
            format!("{what} 0: the point did not run"),
        );
        return Err(());
    }
    for (field, value, range) in
        [(Field::Throughput, throughput, THROUGHPUTS), (Field::Latency, latency, LATENCIES)]
    {
        if !range.contains(&value) {
            let name = reader.columns.name(field);
            reader.fault(field, format!("row {row}: `{name}` is absurd"), value.to_string());
            return Err(());
        }
    }
    let clock = reader.number(Field::Clock)?;
    let board_power = reader.number(Field::BoardPower)?;
    if board_power == Some(0.0) {
        reader.fault(Field::BoardPower, format!("row {row}: board power is zero"), "0".to_owned());
        return Err(());
    }
    let dynamic_power = reader.number(Field::DynamicPower)?;
    for (field, value) in [(Field::BoardPower, board_power), (Field::DynamicPower, dynamic_power)] {
        if value.is_some_and(|v| v.abs() > MAX_POWER) {
            let name = reader.columns.name(field);
            reader.fault(
                field,
                format!("row {row}: `{name}` is absurd"),
                "no board draws as much".to_owned(),
            );
            return Err(());
        }
    }
    let model = reader.text(Field::Model).or(context.model).map(str::to_owned);
    let Some(model) = model else {
        reader.fault(Field::Model, format!("row {row}: `model` is missing"), "no value here".to_owned());
        return Err(());
    };
    let board = board_of(reader, context)?;
    let mut per_second = throughput;
    if layout == Layout::ParvaGpu {
        // Its throughput is that of one process; its own loader multiplies too.
        per_second *= f64::from(processes);
    }
    let seconds = latency * layout.latency_scale();
    let closed_loop = per_second * seconds / (f64::from(batch) * f64::from(processes));
    Ok(Some(Row {
        model,
        board,
        measurement: Measurement {
            n_compute_slices,
            processes,
            batch,
            clock: None,
            throughput: PerSecond(per_second),
            latency_p99: Seconds(seconds),
            board_power: board_power.map(Watts),
            dynamic_power: dynamic_power.map(Watts),
            row,
            is_suspect: false,
        },
        span: reader.line.span,
        closed_loop,
        clock,
    }))
}

fn board_of(reader: &mut Reader<'_, '_>, context: &Context<'_>) -> Result<usize, ()> {
    let row = reader.line.number;
    let Some(name) = reader.text(Field::Board) else {
        return context.board.ok_or_else(|| {
            reader.fault(Field::Board, format!("row {row}: `board` is missing"), "no value here".to_owned());
        });
    };
    let id = name.replace('_', "-").to_lowercase();
    let exact = context.boards.iter().position(|b| b.id == id);
    match exact.or_else(|| context.boards.iter().position(|b| is_measured_as(b, &id))) {
        Some(board) => Ok(board),
        None => {
            let known: Vec<&str> = context.boards.iter().map(|b| b.id.as_str()).collect();
            let label = format!("known here: {}", known.join(", "));
            let span = reader.span(Field::Board);
            reader.faults.row_with_help(
                Code::UnknownBoard,
                span,
                format!("row {row}: no board is called `{id}`"),
                label,
                "write the board's catalogue id",
            );
            Err(())
        }
    }
}
