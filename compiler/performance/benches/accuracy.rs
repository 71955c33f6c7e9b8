//! How well models predict what was not measured: power, throughput and latency by number of samples.
//!
//! Run with `ENT_DATA=FOLDER cargo bench -p ent-performance --bench accuracy`. Samples are chosen from
//! inputs only; curves, prior and residual fields come from other model families only; the error is the
//! mean absolute percentage error over all cells not sampled, suspect rows left out, then the mean over
//! models.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot run"
)]

use ent_performance::{fit, import};
use ent_plan::device::Board;
use ent_plan::diagnostic::{FileId, Span};
use ent_plan::performance::{BoardKnowledge, Measurement, PerformanceTable};
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
    for (family, members) in FAMILIES {
        let others: Vec<&PerformanceTable> =
            tables.iter().filter(|t| !members.contains(&t.model.as_str())).collect();
        let knowledge = fit::learn(&others, &board);
        if std::env::var_os("VERBOSE").is_some() {
            println!("{family}: {knowledge:?}");
        }
        for table in tables.iter().filter(|t| members.contains(&t.model.as_str())) {
            for n in SAMPLES {
                if let Some(errors) = errors(table, &board, &knowledge, *n) {
                    results.push((table.model.clone(), fit::cells(table, &board).len(), *n, errors));
                }
            }
        }
    }
    print(&results);
}

/// Mean absolute percentage errors of board power, throughput, p99 latency.
type Errors = [f64; 3];

fn errors(table: &PerformanceTable, board: &Board, knowledge: &BoardKnowledge, n: usize) -> Option<Errors> {
    let cells = fit::cells(table, board);
    if cells.len() <= n {
        return None;
    }
    let chosen: BTreeSet<fit::Cell> =
        fit::design(knowledge, &cells, n).into_iter().map(|i| cells[i]).collect();
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

fn print(results: &[(String, usize, usize, Errors)]) {
    println!("mean absolute percentage error: power / throughput / p99 latency");
    print!("{:<22}{:>6}", "model", "cells");
    for n in SAMPLES {
        print!("{:>24}", format!("{n} samples"));
    }
    println!();
    let models: BTreeSet<(&str, usize)> = results.iter().map(|(m, cells, ..)| (m.as_str(), *cells)).collect();
    for (model, cells) in models {
        print!("{model:<22}{cells:>6}");
        for n in SAMPLES {
            match results.iter().find(|r| r.0 == model && r.2 == *n) {
                Some((_, _, _, [p, t, l])) => print!("{:>24}", format!("{p:.2} / {t:.2} / {l:.2}")),
                None => print!("{:>24}", "-"),
            }
        }
        println!();
    }
    print!("{:<28}", "mean");
    for n in SAMPLES {
        let of: Vec<&Errors> = results.iter().filter(|r| r.2 == *n).map(|r| &r.3).collect();
        let mean = |i: usize| of.iter().map(|e| e[i]).sum::<f64>() / of.len() as f64;
        print!("{:>24}", format!("{:.2} / {:.2} / {:.2}", mean(0), mean(1), mean(2)));
    }
    println!();
}
