//! CSV text → how much of a board each model uses by itself, as shares from 0 to 1.

use super::{Faults, LineFinder};
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Outcome};

/// How a model uses a board that it has for itself, at one batch.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelUtilisation {
    /// The model's name.
    pub model: String,
    /// Requests in the batch.
    pub batch: u32,
    /// Share of the multiprocessors in use, 0..=1.
    pub compute: f64,
    /// Share of the L2 bandwidth in use, 0..=1.
    pub l2: f64,
    /// Share of the memory bandwidth in use, 0..=1.
    pub memory: f64,
}

/// The columns, by the words a header may use for them.
const COLUMNS: [&[&str]; 5] =
    [&["model"], &["batch_size", "batch"], &["sm", "compute"], &["l2"], &["mem", "memory", "dram"]];

/// Reads utilisations in per cent; a header names the columns `model`, `batch`, `sm`, `l2` and `mem`, in any
/// order. Further columns are not looked at.
///
/// Errors: [`Code::MeasurementColumn`] when a column is missing, [`Code::MeasurementRow`] for a value that
/// is not a number from 0 to 100.
#[must_use]
pub fn utilisation(text: &str, file: FileId) -> Outcome<Vec<ModelUtilisation>> {
    let mut faults = Faults::new(file);
    let mut lines = LineFinder::new(text, file);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut columns: Option<Vec<usize>> = None;
    let mut rows = Vec::new();
    for record in reader.records() {
        let Ok(record) = record else {
            faults.row(Code::MeasurementRow, lines.whole(), "a row cannot be read", "not CSV");
            continue;
        };
        let line = lines.find(record.position());
        let Some(columns) = &columns else {
            let find = |words: &&[&str]| {
                words.iter().find_map(|word| record.iter().position(|cell| cell.eq_ignore_ascii_case(word)))
            };
            let found: Vec<Option<usize>> = COLUMNS.iter().map(find).collect();
            let missing: Vec<&str> =
                found.iter().zip(COLUMNS).filter(|(at, _)| at.is_none()).map(|(_, words)| words[0]).collect();
            if !missing.is_empty() {
                faults.push(
                    Diagnostic::error(
                        Code::MeasurementColumn,
                        line.span,
                        "a column of utilisation is missing",
                    )
                    .label(format!("no column `{}`", missing.join("`, `")))
                    .help("name the columns `model,batch,sm,l2,mem`; shares are in per cent"),
                );
                return faults.finish(Vec::new());
            }
            columns = Some(found.into_iter().flatten().collect());
            continue;
        };
        let cell = |i: usize| record.get(columns[i]).unwrap_or("");
        let share = |i: usize| cell(i).parse::<f64>().ok().filter(|v| (0.0..=100.0).contains(v));
        let wrong = (2..5).find(|i| share(*i).is_none());
        let batch = cell(1).parse::<u32>().ok().filter(|b| *b > 0);
        match (batch, wrong, cell(0)) {
            (Some(batch), None, model) if !model.is_empty() => {
                let at = |i: usize| share(i).unwrap_or(0.0) / 100.0;
                rows.push(ModelUtilisation {
                    model: model.to_owned(),
                    batch,
                    compute: at(2),
                    l2: at(3),
                    memory: at(4),
                });
            }
            (batch, wrong, _) => {
                let at = wrong.filter(|_| batch.is_some()).unwrap_or(usize::from(batch.is_none()));
                let row = line.number;
                faults.row(
                    Code::MeasurementRow,
                    line.cell(columns[at]),
                    format!("row {row}: the {} cannot be used", COLUMNS[at][0].replace('_', " ")),
                    format!("`{}`", cell(at)),
                );
            }
        }
    }
    if rows.is_empty() && !faults.has_errors() {
        faults.error(Code::MeasurementRow, lines.whole(), "the file has no utilisation", "no row");
    }
    faults.finish(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Outcome<Vec<ModelUtilisation>> {
        utilisation(text, FileId(0))
    }

    #[test]
    fn shares_are_read_from_per_cent_in_any_order_of_columns() {
        let outcome = read("mem,model,batch_size,sm,l2,note\n10,net,4,25,50,x\n");
        assert!(!outcome.has_errors());
        let row = ModelUtilisation { model: "net".to_owned(), batch: 4, compute: 0.25, l2: 0.5, memory: 0.1 };
        assert_eq!(outcome.value, [row]);
    }

    #[test]
    fn what_is_missing_or_out_of_range_is_named() {
        for (text, code, words) in [
            ("model,batch,sm,l2\nnet,1,1,1\n", Code::MeasurementColumn, "missing"),
            ("model,batch,sm,l2,mem\nnet,1,1,101,1\n", Code::MeasurementRow, "row 2: the l2"),
            ("model,batch,sm,l2,mem\nnet,0,1,1,1\n", Code::MeasurementRow, "row 2: the batch size"),
            ("model,batch,sm,l2,mem\n,2,1,1,1\n", Code::MeasurementRow, "row 2: the model"),
            ("model,batch,sm,l2,mem\nnet,2,nan,1,1\n", Code::MeasurementRow, "row 2: the sm"),
            ("model,batch,sm,l2,mem\n", Code::MeasurementRow, "no utilisation"),
            ("", Code::MeasurementRow, "no utilisation"),
        ] {
            let outcome = read(text);
            let first = &outcome.diagnostics[0];
            assert_eq!(first.code, code, "{text}");
            assert!(first.message.contains(words), "{text}: {}", first.message);
        }
    }
}
