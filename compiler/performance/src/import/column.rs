//! Header → which layout it is and which column holds what.

use super::{Context, Faults, Line};
use ent_plan::diagnostic::{Code, Diagnostic};

/// A layout of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// entc's own.
    Own,
    /// EnerTune's `*-perf-power-profile.csv` and `model_datastore.csv`: MHz, W, req/s, ms.
    EnerTune,
    /// ParvaGPU's: throughput per process, latency in seconds, no clock, no power, `0,0` did not fit.
    ParvaGpu,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    Model,
    Board,
    Slices,
    Processes,
    Batch,
    Clock,
    Throughput,
    Latency,
    BoardPower,
    DynamicPower,
}

/// Name, field, whether the layout must have it.
type Known = (&'static str, Field, bool);

const OWN: &[Known] = &[
    ("model", Field::Model, false),
    ("board", Field::Board, false),
    ("slices", Field::Slices, true),
    ("processes", Field::Processes, false),
    ("batch", Field::Batch, true),
    ("clock_mhz", Field::Clock, false),
    ("throughput_rps", Field::Throughput, true),
    ("latency_p99_ms", Field::Latency, true),
    ("board_power_w", Field::BoardPower, false),
    ("dynamic_power_w", Field::DynamicPower, false),
];

const ENERTUNE: &[Known] = &[
    ("model", Field::Model, false),
    ("batch_size", Field::Batch, true),
    ("mig_slices", Field::Slices, true),
    ("frequency", Field::Clock, true),
    ("avg_power_draw", Field::BoardPower, true),
    ("dynamic_power_draw", Field::DynamicPower, false),
    ("throughput", Field::Throughput, true),
    ("latency", Field::Latency, true),
];

const PARVAGPU: &[Known] = &[
    ("model", Field::Model, false),
    ("mig instance", Field::Slices, true),
    ("batch size", Field::Batch, true),
    ("workload number", Field::Processes, true),
    ("throughput", Field::Throughput, true),
    ("latency", Field::Latency, true),
];

impl Layout {
    fn known(self) -> &'static [Known] {
        match self {
            Self::Own => OWN,
            Self::EnerTune => ENERTUNE,
            Self::ParvaGpu => PARVAGPU,
        }
    }

    /// The layout in words.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Own => "entc's own layout",
            Self::EnerTune => "EnerTune's layout",
            Self::ParvaGpu => "ParvaGPU's layout",
        }
    }

    /// Milliseconds or seconds → seconds.
    pub(super) fn latency_scale(self) -> f64 {
        match self {
            Self::Own | Self::EnerTune => 1e-3,
            Self::ParvaGpu => 1.0,
        }
    }

    fn header(self) -> String {
        self.known().iter().map(|(name, _, _)| *name).collect::<Vec<_>>().join(",")
    }
}

/// Where the fields are.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) layout: Layout,
    pub(super) n_columns: usize,
    places: Vec<(Field, usize)>,
}

impl Columns {
    /// The column of a field.
    pub(super) fn at(&self, field: Field) -> Option<usize> {
        self.places.iter().find(|(f, _)| *f == field).map(|(_, column)| *column)
    }

    /// The column's name as this layout writes it.
    pub(super) fn name(&self, field: Field) -> &'static str {
        self.layout.known().iter().find(|(_, f, _)| *f == field).map_or("", |(name, _, _)| name)
    }
}

/// Recognises the layout; says what is missing, given twice, or not used.
pub(super) fn detect(
    header: &csv::StringRecord,
    line: &Line<'_>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Option<Columns> {
    let names: Vec<String> = header.iter().map(|n| n.trim().to_lowercase()).collect();
    let has = |name: &str| names.iter().any(|n| n == name);
    // Columns that only one layout has decide; a shared name such as `latency` does not.
    let score = |layout: Layout| {
        layout
            .known()
            .iter()
            .filter(|(name, _, _)| has(name) && !matches!(*name, "model" | "latency"))
            .count()
    };
    let layout =
        [Layout::Own, Layout::EnerTune, Layout::ParvaGpu].into_iter().rev().max_by_key(|l| score(*l))?;
    if score(layout) < 2 {
        let help = format!("begin the file with the header `{}`", Layout::Own.header());
        let what =
            if line.text.chars().any(|c| c.is_ascii_digit()) && !line.text.contains(char::is_alphabetic) {
                "this is a row of numbers, not a header"
            } else {
                "no known layout of measurements has these columns"
            };
        faults.push(
            Diagnostic::error(
                Code::MeasurementColumn,
                line.span,
                "the header of the measurements is not known",
            )
            .label(what)
            .help(help),
        );
        return None;
    }
    let mut places = Vec::new();
    let mut is_complete = true;
    for (name, field, is_required) in layout.known() {
        let found: Vec<usize> = (0..names.len()).filter(|i| names[*i] == *name).collect();
        match found.as_slice() {
            [] if *is_required => {
                is_complete = false;
                faults.push(
                    Diagnostic::error(
                        Code::MeasurementColumn,
                        line.span,
                        format!("the column `{name}` is missing"),
                    )
                    .label(format!("{} needs it", layout.title()))
                    .help(format!("add the column; the whole header is `{}`", layout.header())),
                );
            }
            [] => {}
            [column] => places.push((*field, *column)),
            [first, second, ..] => {
                is_complete = false;
                faults.push(
                    Diagnostic::error(
                        Code::MeasurementColumn,
                        line.cell(*second),
                        format!("the column `{name}` is given twice"),
                    )
                    .label("the second")
                    .and(line.cell(*first), "the first")
                    .help("delete one of them"),
                );
            }
        }
    }
    for (column, name) in names.iter().enumerate() {
        if !name.is_empty() && !layout.known().iter().any(|(known, _, _)| known == name) {
            faults.push(
                Diagnostic::warning(
                    Code::MeasurementColumn,
                    line.cell(column),
                    format!("the column `{name}` is not used"),
                )
                .label(format!("{} has no such column", layout.title()))
                .help("delete the column, or leave it: its values are ignored"),
            );
        }
    }
    let columns = Columns { layout, n_columns: names.len(), places };
    if columns.at(Field::Model).is_none() && context.model.is_none() {
        is_complete = false;
        faults.push(
            Diagnostic::error(Code::MeasurementColumn, line.span, "the column `model` is missing")
                .label("nothing says which model was measured")
                .help("add a column `model`, or name the model where the file is used"),
        );
    }
    if columns.at(Field::Board).is_none() && context.board.is_none() {
        is_complete = false;
        faults.push(
            Diagnostic::error(Code::MeasurementColumn, line.span, "nothing says which board was measured")
                .label("there is no column `board`, and more than one board it could be")
                .help("add a column `board` with the board's catalogue id, such as `a100-80gb-pcie`"),
        );
    }
    is_complete.then_some(columns)
}
