//! How well models predict what was not measured: power, throughput and latency by number of samples.
//!
//! Run with `ENT_DATA=FOLDER cargo bench -p ent-performance --bench accuracy`. Samples are chosen from
//! inputs only; curves, prior and residual fields come from other model families only; the error is the
//! mean absolute percentage error over all cells not sampled, suspect rows left out, then the mean over
//! models. Two columns say what each part is worth: ten samples drawn at random (mean of ten seeds), and
//! ten chosen samples with nothing learned from other models.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot run"
)]

use ent_performance::{fit, import};
use ent_plan::device::Board;
use ent_plan::diagnostic::{FileId, Span};
use ent_plan::performance::{BoardKnowledge, Measurement, PerformanceTable};
use rand::SeedableRng;
use std::collections::BTreeSet;

/// Models that may not teach each other.
const FAMILIES: &[(&str, &[&str])] = &[
    ("vgg", &["vgg11", "vgg19"]),
    ("densenet", &["densenet161", "densenet169"]),
    ("resnet", &["resnet50", "resnet152"]),
    ("diffusion", &["diffusion_256_256", "diffusion_1024_1024"]),
    ("mobilenet", &["mobilenet_v3_large"]),
    ("whisper", &["whisper"]),
    ("gpt", &["gpt"]),
];

const SAMPLES: &[usize] = &[6, 10, 20, 45];

const N_SEEDS: u64 = 10;

fn main() {
    let Some(root) = std::env::var_os("ENT_DATA") else {
        println!("skipped: ENT_DATA does not name the folder of the public measurements");
        return;
    };
    let path = std::path::Path::new(&root).join("enertune/model_datastore.csv");
    let text = std::fs::read_to_string(path).expect("the public measurements can be read");
    let board = ent_plan::device::board("a100-80gb-pcie").expect("the board is in the catalogue");
    let boards = [board.clone()];
    let context = import::Context { boards: &boards, board: Some(0), model: None, source: "EnerTune" };
    let tables = import::measurements(&text, FileId(0), &context).value;

    let mut results = Vec::new();
    for (_, members) in FAMILIES {
        let others: Vec<&PerformanceTable> =
            tables.iter().filter(|t| !members.contains(&t.model.as_str())).collect();
        let knowledge = fit::learn(&others, &board);
        let cold = fit::cold(&board);
        for table in tables.iter().filter(|t| members.contains(&t.model.as_str())) {
            let cells = fit::cells(table, &board);
            for (i, n) in SAMPLES.iter().enumerate() {
                let chosen = fit::design(&knowledge, &cells, *n);
                if let Some(errors) = errors(table, &board, &knowledge, &chosen) {
                    results.push((table.model.clone(), cells.len(), i, errors));
                }
            }
            let seeds = 0..N_SEEDS;
            let drawn: Option<Vec<Errors>> =
                seeds.map(|seed| errors(table, &board, &knowledge, &draw(cells.len(), 10, seed))).collect();
            let drawn = drawn.expect("every model has more than ten cells");
            let mean = [0, 1, 2].map(|i| drawn.iter().map(|e| e[i]).sum::<f64>() / N_SEEDS as f64);
            results.push((table.model.clone(), cells.len(), SAMPLES.len(), mean));
            let chosen = fit::design(&cold, &cells, 10);
            let alone = errors(table, &board, &cold, &chosen).expect("every model has more than ten cells");
            results.push((table.model.clone(), cells.len(), SAMPLES.len() + 1, alone));
        }
    }
    print(&results);
}

/// Different cells at random.
fn draw(n_cells: usize, n: usize, seed: u64) -> Vec<usize> {
    let mut generator = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    rand::seq::index::sample(&mut generator, n_cells, n.min(n_cells)).into_vec()
}

/// Mean absolute percentage errors of board power, throughput, p99 latency.
type Errors = [f64; 3];

/// `None` when the samples are all there is.
fn errors(
    table: &PerformanceTable,
    board: &Board,
    knowledge: &BoardKnowledge,
    samples: &[usize],
) -> Option<Errors> {
    let cells = fit::cells(table, board);
    if cells.len() <= samples.len() {
        return None;
    }
    let chosen: BTreeSet<fit::Cell> = samples.iter().map(|i| cells[*i]).collect();
    let cell =
        |m: &Measurement| Some(fit::Cell { slices: m.n_compute_slices, batch: m.batch, clock: m.clock? });
    let is_chosen = |m: &&Measurement| cell(m).is_some_and(|c| chosen.contains(&c));
    let plain = || table.measurements.iter().filter(|m| !m.is_suspect);
    let sampled =
        PerformanceTable { measurements: plain().filter(is_chosen).cloned().collect(), ..table.clone() };
    let model = fit::fit_model(&sampled, board, knowledge, Span::default()).value?;
    let base = board.base_power.as_ref()?;
    let mut sums = [0.0; 3];
    let mut count = 0.0;
    for m in plain().filter(|m| !is_chosen(m)) {
        let estimate = fit::estimate(&model, cell(m)?)?;
        let power = base.at(m.clock?)?.get() + estimate.dynamic_power?.get();
        let limit = board.power_limits?.default.get();
        let throughput = f64::from(m.batch) / estimate.batch_time.get();
        sums[0] += (power.min(limit) / m.board_power?.get() - 1.0).abs();
        sums[1] += (throughput / m.throughput.get() - 1.0).abs();
        sums[2] += (estimate.latency_p99.get() / m.latency_p99.get() - 1.0).abs();
        count += 1.0;
    }
    Some(sums.map(|s| 100.0 * s / count))
}

/// Model, its cells, which column, errors.
type Row = (String, usize, usize, Errors);

fn print(results: &[Row]) {
    println!("mean absolute percentage error: power / throughput / p99 latency");
    print!("{:<22}{:>6}", "model", "cells");
    let columns: Vec<String> = SAMPLES
        .iter()
        .map(|n| format!("{n} samples"))
        .chain(["10 at random".to_owned(), "10, no others".to_owned()])
        .collect();
    for title in &columns {
        print!("{title:>22}");
    }
    println!();
    let show = |[p, t, l]: &Errors| format!("{p:.2} / {t:.2} / {l:.2}");
    let models: BTreeSet<(&str, usize)> = results.iter().map(|(m, cells, ..)| (m.as_str(), *cells)).collect();
    for (model, cells) in &models {
        print!("{model:<22}{cells:>6}");
        for column in 0..columns.len() {
            let found = results.iter().find(|r| r.0 == *model && r.2 == column);
            print!("{:>22}", found.map_or("-".to_owned(), |r| show(&r.3)));
        }
        println!();
    }
    for (title, least_cells) in [("mean of all models", 0), ("mean of models with 90 cells", 90)] {
        print!("{title:<28}");
        for column in 0..columns.len() {
            let of: Vec<&Errors> =
                results.iter().filter(|r| r.2 == column && r.1 >= least_cells).map(|r| &r.3).collect();
            print!(
                "{:>22}",
                show(&[0, 1, 2].map(|i| of.iter().map(|e| e[i]).sum::<f64>() / of.len() as f64))
            );
        }
        println!();
    }
}
