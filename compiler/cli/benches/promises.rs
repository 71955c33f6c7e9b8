//! How well promises are predicted: for every example's plan, the promised percentile as predicted and as
//! simulated, pooled over 20 seeds; and how fast the simulator is.
//!
//! `cargo bench -p entc --bench promises`. Examples whose data is not here (`ENT_DATA`) are skipped and named.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What examples are asked beside their specs as they are.
const ASKED: [(&str, &[&str]); 3] = [
    ("enertune", &["--set", "load=25%"]),
    ("enertune", &["--set", "load=50%"]),
    ("enertune", &["--set", "load=50%", "--minimize", "power"]),
];

fn entc(arguments: &[&str]) -> (bool, String, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_entc")).args(arguments).current_dir(root).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// Errors of prediction, and of how many promises.
#[derive(Default)]
struct Found {
    n: usize,
    n_kept: usize,
    low: f64,
    high: f64,
    watts: Vec<f64>,
}

fn one(example: &str, asked: &[&str], plan: &Path, found: &mut Found) {
    let program = format!("examples/{example}/program.ent");
    let path = plan.to_str().unwrap();
    println!("\n{example} {}", asked.join(" "));
    let (is_planned, _, why) = entc(&[&["plan", &program, "-o", path, "--summary"], asked].concat());
    if !is_planned {
        println!(
            "  no plan: {}",
            why.lines().find(|l| l.contains("error")).unwrap_or("see `entc plan`").trim()
        );
        return;
    }
    let (_, out, why) = entc(&["simulate", path, "--seeds", "20", "--format", "json"]);
    let Ok(report) = serde_json::from_str::<Value>(&out) else {
        println!("  not simulated: {why}");
        return;
    };
    let titles = ["service", "busy", "predicted", "simulated", "error", "promised"];
    let [service, busy, predicted, simulated, error, promised] = titles;
    println!("  {service:22} {busy:>6} {predicted:>12} {simulated:>12} {error:>8} {promised:>12}");
    for service in report["services"].as_array().unwrap() {
        let at = |name: &str| service[name].as_f64().unwrap_or(f64::NAN);
        let error = at("predicted_latency_ms") / at("latency_ms") - 1.0;
        let is_kept = service["is_kept"].as_bool().unwrap();
        println!(
            "  {:22} {:>5.0}% {:>9.3} ms {:>9.3} ms {:>+7.1}% {:>9.3} ms {}",
            service["name"].as_str().unwrap(),
            100.0 * at("utilisation"),
            at("predicted_latency_ms"),
            at("latency_ms"),
            100.0 * error,
            at("promised_latency_ms"),
            if is_kept { "kept" } else { "BROKEN" }
        );
        found.n += 1;
        found.n_kept += usize::from(is_kept);
        found.low = found.low.min(error);
        found.high = found.high.max(error);
    }
    let watts = |name: &str| report[name].as_f64();
    if let (Some(seen), Some(predicted)) = (watts("mean_power_w"), watts("predicted_mean_power_w")) {
        println!("  mean power: {predicted:.2} W predicted, {seen:.2} W simulated");
        found.watts.push(predicted / seen - 1.0);
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let plan: PathBuf = folder.path().join("plan.json");
    let mut found = Found::default();
    for example in examples() {
        one(&example, &[], &plan, &mut found);
    }
    for (example, asked) in ASKED {
        one(example, asked, &plan, &mut found);
    }
    let worst = found.watts.iter().fold(0.0_f64, |worst, off| worst.max(off.abs()));
    println!(
        "\n{} of {} promises kept; predicted latency {:+.1} % .. {:+.1} % of simulated; mean power within {:.1} %",
        found.n_kept,
        found.n,
        100.0 * found.low,
        100.0 * found.high,
        100.0 * worst
    );
    // One seed runs on one core.
    let path = plan.to_str().unwrap();
    entc(&["plan", "examples/enertune/program.ent", "--planner", "greedy", "-o", path]);
    let long = ["simulate", path, "--seeds", "1", "--requests", "1000000", "--format", "json"];
    if let Ok(report) = serde_json::from_str::<Value>(&entc(&long).1) {
        let of = |name: &str| report[name].as_f64().unwrap();
        let speed = of("requests") / of("simulate_seconds") / 1e6;
        println!("simulator: {speed:.1} million requests a second on one core");
    }
}
