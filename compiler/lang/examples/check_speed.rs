//! How long a large program takes to check: `cargo run --release -p ent-lang --example check_speed -- 1000`.
//!
//! Writes a program with this many services (a model each), then compiles it ten times and prints the
//! median. With a second argument, checks that file instead.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example that reports to a terminal")]

use ent_lang::{Options, compile};
use ent_plan::diagnostic::Sources;
use ent_plan::text::LoadError;
use std::fmt::Write as _;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let n_services: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let text = match arguments.next() {
        Some(path) => std::fs::read(path).unwrap_or_default(),
        None => program(n_services).into_bytes(),
    };
    let mut times = Vec::new();
    let mut shown = String::new();
    for _ in 0..10 {
        let mut sources = Sources::default();
        let start = Instant::now();
        let mut load =
            |name: &str| if name == "main.ent" { Ok(text.clone()) } else { Err(LoadError::Missing) };
        let outcome = compile("main.ent", &Options::default(), &mut load, &mut sources);
        times.push(start.elapsed());
        shown = outcome.diagnostics.iter().take(5).fold(String::new(), |mut shown, d| {
            let (line, column) = sources.position(d.primary.span);
            let help = d.help.as_deref().unwrap_or("");
            let name = sources.get(d.primary.span.file).map_or("", |f| f.name.as_str());
            let _ = writeln!(
                shown,
                "{name}:{line}:{column}: [{}] {} ({}) help: {help}",
                d.code.word(),
                d.message,
                d.primary.text
            );
            shown
        });
        if let Some(program) = outcome.value {
            let _ = writeln!(shown, "{} services, {} models", program.services.len(), program.models.len());
        }
    }
    let start = Instant::now();
    let ast = ent_lang::parse(ent_plan::diagnostic::FileId(0), std::str::from_utf8(&text).unwrap_or(""));
    println!("parse alone {:?}", start.elapsed());
    let start = Instant::now();
    drop(ast);
    println!("drop {:?}", start.elapsed());
    times.sort();
    println!(
        "{shown}{} bytes checked in {:?} (median of {})",
        text.len(),
        times[times.len() / 2],
        times.len()
    );
}

fn program(n_services: usize) -> String {
    let mut text = String::from(
        "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n\nparam load = 100%\n",
    );
    for i in 0..n_services {
        let _ = write!(
            text,
            "\n// service {i}\nmodel model_{i} {{\n  performance = a100_80gb_pcie.resnet50\n  memory      = 4 GiB\n}}\n\
             service service_{i} {{\n  model    = model_{i}\n  rate     = min(load, 100%) * {}.25 req/s\n  \
             latency  = p99 <= 47.57630825042726 ms // promised\n  arrivals = poisson\n  replicas = 1..6\n}}\n",
            i + 1
        );
    }
    text.push_str("\nhardware {\n  node \"box-0\" {\n    gpu = a100_80gb_pcie x 12\n  }\n}\n\nobjective {\n  minimize energy\n}\n");
    text
}
