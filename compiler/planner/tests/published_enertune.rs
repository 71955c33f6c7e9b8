//! EnerTune's own plans, as the published planner makes them.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use ent_planner::published::Mode;
use ent_planner::published::enertune::{Estimator, Input, MAX_WORK, PUBLISHED, Row, Service, decide};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {variable} is not set");
    }
    folder
}

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    reader.deserialize().map(Result::unwrap).collect()
}

fn number(row: &BTreeMap<String, String>, name: &str) -> f64 {
    row[name].parse().unwrap()
}

/// Four models whose rate the published runs never raise above the nominal one.
const CAPPED: [&str; 4] = ["resnet50", "diffusion_1024_1024", "diffusion_256_256", "gpt"];

fn input(data: &Path, load: f64, estimator: Estimator, max_boards: Option<usize>) -> Input {
    let mut measured: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows(&data.join("enertune/model_datastore.csv")) {
        measured.entry(row["model"].clone()).or_default().push(Row {
            slices: number(&row, "mig_slices") as u32,
            batch: number(&row, "batch_size") as u32,
            clock: number(&row, "frequency") as u32,
            dynamic: number(&row, "dynamic_power_draw"),
            throughput: number(&row, "throughput"),
            latency: number(&row, "latency"),
        });
    }
    let services = rows(&data.join("enertune/scheduler_inputs.csv"))
        .into_iter()
        .filter(|row| measured.contains_key(&row["Model"]))
        .map(|row| {
            let name = row["Model"].clone();
            let load = if CAPPED.contains(&name.as_str()) { load.min(1.0) } else { load };
            Service {
                rate: number(&row, "RPS") * load,
                bound: number(&row, "SLO"),
                rows: measured[&name].clone(),
                name,
            }
        })
        .collect();
    Input { services, clocks: PUBLISHED.to_vec(), max_boards, estimator, max_work: MAX_WORK }
}

fn estimator(metric: &str) -> Estimator {
    match metric {
        "power" => Estimator::Power,
        "energy" => Estimator::Energy,
        "carbon" => Estimator::Carbon,
        "additive" | "additive_power" | "additive_energy" => Estimator::Additive,
        other => panic!("unknown metric {other}"),
    }
}

/// Clock; model, slices and batch of each instance.
type Board = (u64, Vec<(String, u64, u64)>);

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

#[test]
fn enertune_plans_as_the_published_planner_does() {
    let (Some(data), Some(cases)) = (folder("ENT_DATA"), folder("ENT_CASES")) else { return };
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(cases.join("enertune")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in &files {
        let case: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let load: f64 = text(&case["load"]).parse::<f64>().unwrap() / 100.0;
        let max_boards = text(&case["num_gpus"]).parse().ok();
        let input = input(&data, load, estimator(text(&case["metric"])), max_boards);
        let decision = decide(&input, Mode::Conformant);
        let expected: Vec<Board> = list(&case["bins"])
            .iter()
            .map(|b| {
                let n = |v: &Value| v.as_u64().unwrap();
                let models = list(&b["models"]).iter();
                let models = models.map(|m| (text(&m["model"]).to_owned(), n(&m["slice"]), n(&m["batch"])));
                (n(&b["frequency_mhz"]), models.collect())
            })
            .collect();
        let ours: Vec<Board> = decision
            .boards
            .iter()
            .map(|b| {
                let members = b.members.iter().map(|(service, row)| {
                    let (service, row) = (&input.services[*service], input.services[*service].rows[*row]);
                    (service.name.clone(), u64::from(row.slices), u64::from(row.batch))
                });
                (u64::from(b.clock), members.collect())
            })
            .collect();
        assert_eq!(ours, expected, "{}", file.display());
        let total = case["reported_total"].as_f64().unwrap();
        assert!((decision.cost - total).abs() <= 1e-5 * total, "{}: {}", file.display(), decision.cost);
        assert_eq!(decision.is_over_limit, case["fell_back"].as_bool().unwrap(), "{}", file.display());
        assert!(!decision.is_stopped && decision.unserved.is_empty());
    }
}

/// Totals of further runs of the published planner, as its analysis gives them: load, most boards, total
/// of the estimator, all boards' power (W).
#[test]
fn enertune_reaches_the_published_totals() {
    let Some(data) = folder("ENT_DATA") else { return };
    let energy = [
        (0.25, 2_338_398.0, 632.7),
        (0.50, 2_338_442.0, 641.6),
        (0.75, 2_367_371.0, 779.7),
        (1.00, 2_411_424.0, 778.2),
        (1.25, 2_666_780.0, 877.6),
    ];
    for (load, total, watts) in energy {
        let input = input(&data, load, Estimator::Energy, Some(5));
        let decision = decide(&input, Mode::Conformant);
        let power: f64 = decision
            .boards
            .iter()
            .map(|b| {
                let base = PUBLISHED.iter().find(|c| c.clock == b.clock).unwrap().base();
                base + b.members.iter().map(|(s, r)| input.services[*s].rows[*r].dynamic).sum::<f64>()
            })
            .sum();
        assert!((decision.cost - total).abs() < 10.0, "{load}: {}", decision.cost);
        assert!((power - watts).abs() < 0.06, "{load}: {power}");
    }
    let power = [
        (0.25, 5, 417.7),
        (0.50, 5, 477.0),
        (0.75, 5, 602.3),
        (1.00, 5, 710.4),
        (1.25, 5, 851.6),
        (0.25, 4, 376.7),
        (0.50, 4, 442.1),
        (0.75, 4, 575.4),
        (1.00, 4, 900.0),
    ];
    for (load, boards, watts) in power {
        let decision = decide(&input(&data, load, Estimator::Power, Some(boards)), Mode::Conformant);
        assert!((decision.cost - watts).abs() < 0.06, "{load}, {boards}: {}", decision.cost);
        assert!(decision.boards.len() <= boards);
    }
    let unmet = decide(&input(&data, 1.25, Estimator::Power, Some(4)), Mode::Conformant);
    assert_eq!((unmet.boards.len(), unmet.is_over_limit), (5, true));
}
