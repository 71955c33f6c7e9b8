//! A file of performance data → its models, and the curves of one as a small table.
//!
//! The catalogue's models are read once; a user's files are read when they are asked about.

use ent_performance::fit::read_models;
use ent_performance::{ModelPerformance, PointKey};
use ent_plan::device::{self, Board};
use ent_plan::performance::{FittedModel, catalogue};
use ent_plan::units::Megahertz;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A user's file of fitted models larger than this is not looked at while typing.
const MAX_BYTES: u64 = 4 << 20;

/// Rows of batches that are shown.
const MAX_BATCHES: usize = 4;

/// The fitted models of a file, as programs name it; empty for measured rows and what cannot be read.
fn fitted(file: &str) -> Arc<Vec<FittedModel>> {
    static CATALOGUE: OnceLock<Mutex<BTreeMap<String, Arc<Vec<FittedModel>>>>> = OnceLock::new();
    if let Some(board) = file.strip_prefix("catalog:performance/") {
        let mut known = CATALOGUE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let Some(text) = catalogue(board) else { return Arc::default() };
        let read = || Arc::new(read_models(text).unwrap_or_default());
        return known.entry(board.to_owned()).or_insert_with(read).clone();
    }
    if !file.ends_with(".json") || std::fs::metadata(file).is_ok_and(|m| m.len() > MAX_BYTES) {
        return Arc::default();
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    Arc::new(read_models(&text).unwrap_or_default())
}

/// The names of the models in a file, in its order.
pub(crate) fn entries(file: &str) -> Vec<String> {
    if file.ends_with(".csv") {
        return measured(file);
    }
    fitted(file).iter().map(|model| model.model.clone()).collect()
}

/// The models that the rows of a CSV file name in a column of that name.
fn measured(file: &str) -> Vec<String> {
    if std::fs::metadata(file).is_ok_and(|m| m.len() > MAX_BYTES) {
        return Vec::new();
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty());
    let header: Vec<&str> = lines.next().unwrap_or("").split(',').map(str::trim).collect();
    let Some(column) = header.iter().position(|name| *name == "model") else { return Vec::new() };
    let mut found: Vec<String> = Vec::new();
    for name in lines.filter_map(|l| l.split(',').nth(column)).map(|n| n.trim().trim_matches('"')) {
        if !found.iter().any(|f| f == name) && !name.is_empty() {
            found.push(name.to_owned());
        }
    }
    found
}

/// What is known of a model: where from, its curves on every size, and how far to trust them. Markdown.
/// `board` is what the program says of the model's board.
pub(crate) fn describe(file: &str, entry: &str, board: Option<&Board>) -> Option<String> {
    let models = fitted(file);
    let model = models.iter().find(|m| m.model == entry)?;
    let known = match board {
        Some(board) => board.clone(),
        None => device::board(&model.board)?,
    };
    let mut text = format!("**{}** on {}\n\n", model.model, model.board);
    let _ = writeln!(text, "{}: {} measurements.", sentence(&model.source), model.n_measurements);
    if model.is_illustration {
        text.push_str("The measurements are invented to illustrate.\n");
    }
    text.push('\n');
    text.push_str(&table(model, &known)?);
    text.push('\n');
    text.push_str(&errors(model));
    Some(text.trim_end().to_owned())
}

/// Batch time, throughput and watts of each size at the highest measured clock.
fn table(model: &FittedModel, board: &Board) -> Option<String> {
    let performance = ModelPerformance::from_fitted(model, board)?;
    let points = performance.points(board);
    let clock = points.iter().map(|p| p.clock).max()?;
    let lowest = points.iter().map(|p| p.clock).min()?;
    let batches = few(&model.batches);
    let mut text =
        format!("At {clock}, a batch takes (ms), the rate (req/s), dynamic power (W):\n\n```text\n");
    let _ = write!(text, "{:<10}", "");
    for batch in &batches {
        let _ = write!(text, "{:>24}", format!("batch {batch}"));
    }
    text.push('\n');
    for (index, profile) in board.profiles.iter().enumerate() {
        let is_shown = board.base_profile(profile.n_compute_slices).is_some_and(|p| p.name == profile.name);
        if !is_shown || !model.slices.contains(&profile.n_compute_slices) {
            continue;
        }
        let _ = write!(text, "{:<10}", profile.name);
        for batch in &batches {
            let _ = write!(text, "{:>24}", cell(&performance, board, index, *batch, clock));
        }
        text.push('\n');
    }
    text.push_str("```\n");
    let _ = write!(text, "Clocks {lowest} to {clock}");
    let band = points.iter().find(|p| p.clock == clock).and_then(|p| performance.predict(board, *p));
    if let Some(band) = band {
        let _ = write!(
            text,
            "; error band ± {:.1} % of time, ± {:.1} % of dynamic power (one standard deviation)",
            band.time_error * 100.0,
            band.power_error * 100.0
        );
    }
    text.push_str(".\n");
    Some(text)
}

fn cell(
    performance: &ModelPerformance,
    board: &Board,
    profile: usize,
    batch: u32,
    clock: Megahertz,
) -> String {
    let key = PointKey { profile, processes: 1, batch, clock };
    let Some(prediction) = performance.predict(board, key) else { return "-".to_owned() };
    let time = prediction.batch_times.last().map_or(0.0, |t| t.millis());
    let rate = prediction.capacity(1);
    match prediction.dynamic_power.last() {
        Some(watts) => format!("{} {} {:.1}", short(time), short(rate), watts.get()),
        None => format!("{} {}", short(time), short(rate)),
    }
}

/// How well it predicts what it has not seen.
fn errors(model: &FittedModel) -> String {
    let errors = &model.errors;
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let mut text = format!(
        "Mean error on {} measurements it had not seen ({}): throughput {}, p99 batch latency {}",
        errors.n_held_out,
        errors.method,
        percent(errors.throughput_mean),
        percent(errors.latency_mean)
    );
    if let Some(power) = errors.dynamic_power_mean {
        let _ = write!(text, ", dynamic power {}", percent(power));
    }
    text.push_str(".\n");
    text
}

/// The first, the last and some between.
fn few(batches: &[u32]) -> Vec<u32> {
    if batches.len() <= MAX_BATCHES {
        return batches.to_vec();
    }
    let last = batches.len() - 1;
    let at = |i: usize| batches.get(i * last / (MAX_BATCHES - 1)).copied();
    (0..MAX_BATCHES).filter_map(at).collect()
}

fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_of_the_catalogue_is_described_with_its_source_curves_and_errors() {
        let text = describe("catalog:performance/a100-80gb-pcie", "resnet50", None).unwrap();
        for part in
            ["EnerTune", "measurements", "batch 32", "2g.20gb", "7g.80gb", "error band ±", "it had not seen"]
        {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn entries_are_the_models_of_a_file() {
        let names = entries("catalog:performance/a100-80gb-pcie");
        assert!(names.contains(&"whisper".to_owned()) && names.len() > 10, "{names:?}");
        assert!(entries("catalog:performance/none").is_empty() && entries("/no/such.json").is_empty());
    }

    #[test]
    fn few_batches_keep_the_first_and_the_last() {
        assert_eq!(few(&[1, 2, 4, 8, 16, 32]), [1, 2, 8, 32]);
        assert_eq!(few(&[1, 2]), [1, 2]);
    }
}
