//! ParvaGPU's placements, as the original makes them.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use ent_planner::published::Mode;
use ent_planner::published::parvagpu::{Decision, Input, MAX_BOARDS, MAX_PROCESSES, Point, Service, decide};
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

fn rows(path: &Path, has_header: bool) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(has_header)
        .from_path(path)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect()
}

/// Profiles by model, alphabetical.
fn profiles(data: &Path) -> BTreeMap<String, Vec<Point>> {
    let mut profiles = BTreeMap::new();
    for entry in std::fs::read_dir(data.join("parvagpu")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "csv") || name.starts_with("SLO") {
            continue;
        }
        let points = rows(&path, true)
            .iter()
            .map(|row| Point {
                slices: row[0].parse().unwrap(),
                batch: row[1].parse().unwrap(),
                processes: row[2].parse().unwrap(),
                throughput: row[3].parse().unwrap(),
                latency: row[4].parse().unwrap(),
            })
            .collect();
        profiles.insert(name, points);
    }
    profiles
}

fn input(profiles: &BTreeMap<String, Vec<Point>>, wanted: impl Fn(usize, &str) -> (f64, f64)) -> Input {
    let services = profiles
        .iter()
        .enumerate()
        .map(|(index, (name, points))| {
            let (rate, bound) = wanted(index, name);
            Service { name: name.clone(), rate, bound, points: points.clone() }
        })
        .collect();
    Input { services, max_processes: MAX_PROCESSES, max_boards: MAX_BOARDS }
}

/// Node, board in node, model, label, slices, batch, processes.
type Row = (u64, u64, String, u64, u64, u64, u64);

/// As the original prints it, eight boards a node; and throughputs.
fn printed(input: &Input, decision: &Decision) -> Vec<(Row, f64)> {
    let mut all = Vec::new();
    for (index, board) in decision.boards.iter().enumerate() {
        for s in board {
            let (c, index) = (s.choice, index as u64);
            let row = (
                index / 8,
                index % 8,
                input.services[s.service].name.clone(),
                u64::from(s.label.unwrap()),
                u64::from(c.slices),
                u64::from(c.batch),
                u64::from(c.processes),
            );
            all.push((row, c.throughput));
        }
    }
    all
}

#[test]
fn parvagpu_places_the_published_scenarios_as_the_original_does() {
    let (Some(data), Some(cases)) = (folder("ENT_DATA"), folder("ENT_CASES")) else { return };
    let profiles = profiles(&data);
    let read = |name: &str| rows(&data.join("parvagpu").join(name), false);
    let (rates, bounds) = (read("SLO_req_rate.csv"), read("SLO_latency.csv"));
    let boards = [2, 3, 5];
    for (scenario, boards) in boards.into_iter().enumerate() {
        let number = |table: &[Vec<String>], column: usize| table[scenario][column].parse().unwrap_or(0.0);
        let input = input(&profiles, |column, _| (number(&rates, column), number(&bounds, column)));
        let decision = decide(&input, Mode::Conformant);
        let placement = cases.join(format!("parvagpu/SLO{}_placement.csv", scenario + 1));
        let expected: Vec<(Row, f64)> = rows(&placement, true)
            .iter()
            .map(|r| {
                let n = |at: usize| r[at].parse::<u64>().unwrap();
                ((n(1), n(2), r[3].clone(), n(5), n(4), n(6), n(7)), r[8].parse().unwrap())
            })
            .collect();
        let ours = printed(&input, &decision);
        assert_eq!(decision.boards.len(), boards);
        assert_eq!(
            ours.iter().map(|r| &r.0).collect::<Vec<_>>(),
            expected.iter().map(|r| &r.0).collect::<Vec<_>>()
        );
        for ((_, ours), (row, theirs)) in ours.iter().zip(&expected) {
            assert!((ours - theirs).abs() <= 1e-3 * theirs, "{row:?}: {ours} for {theirs}");
        }
    }
}

#[test]
fn parvagpu_places_random_scenarios_as_the_original_does() {
    let (Some(data), Some(cases)) = (folder("ENT_DATA"), folder("ENT_CASES")) else { return };
    let profiles = profiles(&data);
    let text = std::fs::read_to_string(cases.join("parvagpu/random_scenarios.json")).unwrap();
    let scenarios: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!scenarios.is_empty());
    let mut wrong = Vec::new();
    for scenario in &scenarios {
        let number = |key: &str, name: &str| scenario[key][name].as_f64().unwrap();
        let input = input(&profiles, |_, name| (number("req_rate", name), number("slo_ms", name)));
        let decision = decide(&input, Mode::Conformant);
        let expected: Vec<Row> = scenario["placement"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| {
                let n = |key: &str| r[key].as_u64().unwrap();
                let model = r["model"].as_str().unwrap().to_owned();
                (n("node"), n("gpu"), model, n("label"), n("slice"), n("batch"), n("procs"))
            })
            .collect();
        let ours: Vec<Row> = printed(&input, &decision).into_iter().map(|r| r.0).collect();
        if ours != expected || decision.boards.len() as u64 != scenario["gpus"].as_u64().unwrap() {
            wrong.push(scenario["case"].clone());
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ: {wrong:?}", wrong.len(), scenarios.len());
}
