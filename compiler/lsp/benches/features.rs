//! How long features take on long specs: `cargo bench -p ent-lsp --bench features -- 2000 20000`.
//!
//! For each length, asks every feature at places all over the text, half of them while a line is being
//! typed, and prints the median, the 99th percentile and the longest, in milliseconds.

#![allow(clippy::print_stdout, reason = "a benchmark that reports to a terminal")]

use ent_lsp::features::{completion, hints, hover, navigate, symbols, tokens};
use ent_lsp::{Programs, Snapshot, Workspace};
use ent_plan::diagnostic::FileId;
use std::fmt::Write as _;
use std::hint::black_box;
use std::str::FromStr;
use std::time::Instant;

/// Places that are asked about.
const N_PLACES: usize = 400;

fn main() {
    let lengths: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let lengths = if lengths.is_empty() { vec![2_000] } else { lengths };
    println!("{:>7}  {:<12} {:>9} {:>9} {:>9}", "lines", "feature", "median", "p99", "longest");
    for length in lengths {
        measure(length);
    }
}

/// A spec with this many lines: values, models, services, nodes.
fn program(n_lines: usize) -> String {
    let mut text = String::from(
        "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\nparam load = 50%\n",
    );
    let mut number = 0;
    while text.lines().count() < n_lines.saturating_sub(4) {
        let _ = write!(
            text,
            "\nlet peak_{number} = {number} req/s + 100 req/s\n\
             model model_{number} {{ performance = a100_80gb_pcie.resnet50 }}\n\
             service service_{number} {{\n  model    = model_{number}\n  rate     = load * peak_{number}\n  \
             latency  = p99 <= 100 ms\n  replicas = 1..4\n  pin {{ profile = 3g.40gb }}\n}}\n"
        );
        number += 1;
    }
    text.push_str(
        "\nhardware { node \"box\" { gpu = a100_80gb_pcie x 8 } }\nobjective { minimize energy }\n",
    );
    text
}

fn opened(text: &str) -> (Workspace, Programs, FileId) {
    let mut workspace = Workspace::default();
    let mut programs = Programs::default();
    let Ok(uri) = lsp_types::Uri::from_str("file:///specs/program.ent") else { return Default::default() };
    let file = workspace.open(uri, 1, text.to_owned());
    programs.refresh(&mut workspace, file);
    (workspace, programs, file)
}

fn measure(n_lines: usize) {
    let whole = program(n_lines);
    // A line that is being typed, in the middle.
    let middle = whole.match_indices("\n  latency").nth(n_lines / 22).map_or(whole.len() / 2, |(at, _)| at);
    let mut typed = whole.clone();
    typed.insert_str(middle, "\n  rate = load * 5 ");
    let mut results: Vec<(&str, Vec<f64>)> = Vec::new();
    for text in [&whole, &typed] {
        let (workspace, programs, file) = opened(text);
        let Some(analysis) = programs.get(file) else { return };
        let snapshot = Snapshot { workspace: &workspace, analysis };
        let mut time = |name: &'static str, ask: &mut dyn FnMut()| {
            let started = Instant::now();
            ask();
            let millis = started.elapsed().as_secs_f64() * 1e3;
            match results.iter_mut().find(|(known, _)| *known == name) {
                Some((_, times)) => times.push(millis),
                None => results.push((name, vec![millis])),
            }
        };
        let step = (text.len() / N_PLACES).max(1);
        for at in (0..text.len()).step_by(step).filter(|at| text.is_char_boundary(*at)) {
            time("completion", &mut || {
                black_box(completion::completion(&snapshot, file, at, true));
            });
            time("hover", &mut || {
                black_box(hover::hover(&snapshot, None, file, at));
            });
            time("definition", &mut || {
                black_box(navigate::definition(&snapshot, file, at));
            });
        }
        for _ in 0..20 {
            time("tokens", &mut || {
                black_box(tokens::tokens(&snapshot, file, 0..text.len()));
            });
            time("symbols", &mut || {
                black_box(symbols::document(&snapshot, file));
            });
            time("hints", &mut || {
                black_box(hints::hints(&snapshot, None, file, 0..text.len()));
            });
        }
    }
    for (name, mut times) in results {
        times.sort_by(f64::total_cmp);
        let at = |part: f64| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a length")]
            let index = ((times.len() - 1) as f64 * part) as usize;
            times.get(index).copied().unwrap_or(f64::NAN)
        };
        let n_lines = whole.lines().count();
        println!("{n_lines:>7}  {name:<12} {:>9.3} {:>9.3} {:>9.3}", at(0.5), at(0.99), at(1.0));
    }
}
