//! How planning time grows: services × boards → seconds, gap, memory.
//!
//! `cargo bench -p ent-planner --bench scale -- [11x10 11x10000 200x1000 1000x5000] [--queueing]`
//!
//! Services are drawn from the eleven models of the catalogue by a seeded generator: rate × 0.1–2,
//! promise × 0.8–3 of the published workload's. With `ENT_DATA` set, the measured table is used;
//! without it, the fitted models. Boards are at least 1.2 × the relaxation's bound.
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a benchmark")]

use ent_lang::{Options, Program};
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::Sources;
use ent_plan::plan::{LatencyRule, Metric, check};
use ent_plan::text::LoadError;
use ent_planner::{Control, PlanOptions, Planner};
use std::ops::ControlFlow;
use std::time::Instant;

/// Rates (req/s) and promises (ms) of the published workload: UT-SysML/EnerTune, scheduler_inputs.csv.
const WORKLOAD: [(&str, f64, f64); 11] = [
    ("resnet50", 1391.97, 47.57630825042726),
    ("mobilenet_v3_large", 981.59, 25.970196723937992),
    ("vgg11", 744.65, 12.486314773559576),
    ("resnet152", 278.36, 128.05020809173587),
    ("densenet169", 254.07, 93.69852542877194),
    ("densenet161", 234.19, 97.31435775756836),
    ("vgg19", 169.54, 17.524337768554688),
    ("diffusion_1024_1024", 0.0923146137935218, 25358.9243824928),
    ("diffusion_256_256", 0.41497842657583255, 8284.92834284923),
    ("whisper", 3.29843852958, 5509.2905923409234),
    ("gpt", 0.16192860916956147, 18385.29834294),
];

/// A small linear congruential generator, so that the workloads are the same everywhere.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn text(services: usize, boards: u32) -> String {
    let mut random = Random(20261130);
    let mut text = String::from(
        "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n",
    );
    for (model, ..) in WORKLOAD {
        text += &format!("model {model} {{ performance = a100_80gb_pcie.{model} }}\n");
    }
    for index in 0..services {
        let (model, rate, promise) = WORKLOAD[index % WORKLOAD.len()];
        let (rate, promise) = if services == WORKLOAD.len() {
            (rate, promise)
        } else {
            (rate * (0.1 + 1.9 * random.unit()), promise * (0.8 + 2.2 * random.unit()))
        };
        text += &format!(
            "service s{index} {{ model = {model}, rate = {rate} req/s, latency = p99 <= {promise} ms }}\n"
        );
    }
    text += &format!("hardware {{ node \"box\" {{ gpu = a100_80gb_pcie x {boards}, unused = off }} }}\n");
    text + "objective { minimize energy }\n"
}

fn program(services: usize, boards: u32) -> (Program, PerformanceSet) {
    let source = text(services, boards);
    let mut sources = Sources::default();
    let mut load = |name: &str| {
        if name == "scale.ent" { Ok(source.clone().into_bytes()) } else { Err(LoadError::Missing) }
    };
    let compiled = ent_lang::compile("scale.ent", &Options::default(), &mut load, &mut sources);
    let program = compiled.value.unwrap();
    let set = match std::env::var("ENT_DATA") {
        Ok(data) => {
            let table = std::fs::read(format!("{data}/enertune/model_datastore.csv")).unwrap();
            PerformanceSet::from_table(&program, "table", &table, &mut sources).value
        }
        Err(_) => ent_performance::load(&program, &mut load, &mut sources).value,
    };
    (program, set)
}

/// Peak resident memory of this process (MiB).
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|k| k.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let rule = if arguments.iter().any(|a| a == "--queueing") {
        LatencyRule::Queueing
    } else {
        LatencyRule::Execution
    };
    let metric = if arguments.iter().any(|a| a == "--power") { Metric::Power } else { Metric::Energy };
    let mut sizes: Vec<(usize, u32)> = arguments
        .iter()
        .filter_map(|a| a.split_once('x').and_then(|(s, b)| Some((s.parse().ok()?, b.parse().ok()?))))
        .collect();
    if sizes.is_empty() {
        sizes = vec![(11, 10), (11, 10_000), (200, 1000), (1000, 5000)];
    }
    println!(
        "services boards planner  status      mean W     bound W    gap %   boards used  seconds  MiB  check"
    );
    for (services, boards) in sizes {
        let (program, set) = program(services, boards);
        for planner in [Planner::Greedy, Planner::Optimal] {
            let started = Instant::now();
            let elapsed = || started.elapsed().as_secs_f64();
            let is_loud = std::env::var_os("ENT_LOUD").is_some();
            let mut progress = |p: ent_planner::Progress| {
                if is_loud {
                    eprintln!("  {:7.2} {p:?}", elapsed());
                }
                ControlFlow::Continue(())
            };
            let mut control = Control {
                gap: if services > 11 { 0.01 } else { 0.0 },
                time_limit: Some(60.0),
                node_limit: None,
                elapsed: &elapsed,
                progress: &mut progress,
                is_stopped: false,
            };
            let options = PlanOptions { planner, metric: Some(metric), rule };
            let plan = ent_planner::plan(&program, &set, options, &mut control).unwrap().value;
            let seconds = elapsed();
            let scale = if metric == Metric::Energy { 3600.0 } else { 1.0 };
            let watts = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{:.1}", v / scale));
            println!(
                "{services:8} {boards:6} {:8} {:11} {:>10} {:>10} {:>8} {:13} {seconds:8.2} {:4.0}  {}",
                plan.planner,
                format!("{:?}", plan.status),
                watts(plan.objective.value),
                watts(plan.objective.bound),
                plan.objective.gap.map_or("-".to_owned(), |g| format!("{:.3}", 100.0 * g)),
                plan.metrics.gpus,
                peak_memory(),
                match check(plan.clone()) {
                    Ok(_) => "ok".to_owned(),
                    Err(faults) => format!("{} faults: {}", faults.len(), faults[0]),
                }
            );
        }
    }
}
