//! Usher's plans, as the published program makes them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops, and says why, when what it needs is not there"
)]

use ent_planner::published::Mode;
use ent_planner::published::usher::{Decision, Input, Model, Profile, decide};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {variable} is not set");
    }
    folder
}

fn rows(path: PathBuf) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    reader.deserialize().map(Result::unwrap).collect()
}

fn number(row: &BTreeMap<String, String>, name: &str) -> f64 {
    row[name].parse().unwrap()
}

/// What the published program reads, the rates times `load`.
fn input(data: &std::path::Path, load: f64) -> Input {
    let mut profiles: BTreeMap<String, BTreeMap<u32, Profile>> = BTreeMap::new();
    for row in rows(data.join("usher/profile.csv")) {
        let share = |name| number(&row, name) / 100.0;
        let batch = number(&row, "batch_size") as u32;
        let profile = Profile { batch, compute: share("sm"), l2: share("l2"), memory: share("mem") };
        // A later row of the same model and batch replaces the earlier one.
        profiles.entry(row["model"].clone()).or_default().insert(batch, profile);
    }
    let mut latencies: BTreeMap<String, BTreeMap<u32, f64>> = BTreeMap::new();
    for row in rows(data.join("usher/latency.csv")) {
        if row["partition"] == "100" {
            let latency = number(&row, "latency_ms");
            latencies.entry(row["model"].clone()).or_default().insert(number(&row, "batch") as u32, latency);
        }
    }
    let constants = rows(data.join("usher/int_const.csv")).remove(0);
    let constants = ["l2_util_m1", "l2_util_m2", "dram_util_m1", "dram_util_m2", "constant"]
        .map(|name| number(&constants, name));
    let models = rows(data.join("enertune/scheduler_inputs.csv"))
        .into_iter()
        .filter(|row| profiles.contains_key(&row["Model"]))
        .map(|row| Model {
            name: row["Model"].clone(),
            rate: number(&row, "RPS") * load,
            bound_ms: number(&row, "SLO"),
            profiles: profiles[&row["Model"]].values().copied().collect(),
            latencies: latencies[&row["Model"]].iter().map(|(b, l)| (*b, *l)).collect(),
        })
        .collect();
    Input { models, constants, memory_mb: 81_920.0 }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

fn compare(input: &Input, decision: &Decision, case: &Value) {
    let name = |m: usize| input.models[m].name.clone();
    let gpus = case["gpus"].as_array().unwrap();
    assert_eq!(decision.gpus.len(), gpus.len());
    for (gpu, wanted) in decision.gpus.iter().zip(gpus) {
        let replicas: Vec<(String, u64, u64, u64)> = gpu
            .replicas
            .iter()
            .map(|r| (name(r.model), u64::from(r.batch), u64::from(r.replica), u64::from(r.percent)))
            .collect();
        let wanted_replicas: Vec<(String, u64, u64, u64)> = wanted["models"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| {
                let of = |key: &str| m[key].as_u64().unwrap();
                (m["model"].as_str().unwrap().to_owned(), of("batch"), of("replica"), of("mps_pct"))
            })
            .collect();
        assert_eq!(replicas, wanted_replicas);
        assert!(close(gpu.compute, wanted["compute"].as_f64().unwrap()));
        assert!(close(gpu.memory_mb, wanted["mem_mb"].as_f64().unwrap()));
        assert!(close(gpu.interference, wanted["interference"].as_f64().unwrap()));
    }
    let groups = case["groups"].as_array().unwrap();
    assert_eq!(decision.groups.len(), groups.len());
    for (group, wanted) in decision.groups.iter().zip(groups) {
        let models: Vec<String> = group.models.iter().map(|m| name(*m)).collect();
        let wanted_models: Vec<&str> =
            wanted["models"].as_array().unwrap().iter().map(|m| m.as_str().unwrap()).collect();
        assert_eq!(models, wanted_models);
        assert_eq!(u64::from(group.added), wanted["added_gpus"].as_u64().unwrap());
        for (model, least) in models.iter().zip(&group.least) {
            assert_eq!(u64::from(*least), wanted["cl"][model].as_u64().unwrap(), "{model}");
        }
        // The number tried is the number there are, when the reference program counts them.
        if let Some(tried) = wanted["configs_tried"].as_u64() {
            assert_eq!(group.configurations, tried);
        }
        for (choice, wanted) in group.chosen.iter().zip(wanted["chosen"].as_array().unwrap()) {
            assert_eq!(name(choice.model), wanted[0].as_str().unwrap());
            assert_eq!(u64::from(choice.batch), wanted[1].as_u64().unwrap());
            assert_eq!(u64::from(choice.replicas), wanted[2].as_u64().unwrap());
        }
    }
}

#[test]
fn every_case_comes_out_as_published() {
    let (Some(data), Some(cases)) = (folder("ENT_DATA"), folder("ENT_CASES")) else { return };
    let mut done = 0;
    for entry in std::fs::read_dir(cases.join("usher")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("load") || !name.ends_with(".json") {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let load = case["load"].as_f64().unwrap();
        let input = input(&data, load / 100.0);
        compare(&input, &decide(&input, Mode::Conformant), &case);
        println!("{name}: the same");
        done += 1;
    }
    assert!(done > 0, "no cases");
}

#[test]
fn the_authors_own_plan_comes_out() {
    let (Some(data), Some(cases)) = (folder("ENT_DATA"), folder("ENT_CASES")) else { return };
    let text = std::fs::read_to_string(cases.join("usher/published_load50.json")).unwrap();
    let case: Value = serde_json::from_str(&text).unwrap();
    for (load, wanted) in case.as_object().unwrap() {
        let input = input(&data, load.parse::<f64>().unwrap() / 100.0);
        let decision = decide(&input, Mode::Conformant);
        let placed: Vec<Vec<(String, u64, String, String)>> = decision
            .gpus
            .iter()
            .map(|gpu| {
                gpu.replicas
                    .iter()
                    .map(|r| {
                        let model = &input.models[r.model];
                        let profile = model.profiles.iter().find(|p| p.batch == r.batch).unwrap();
                        let percent = |share: f64| format!("{:.1}", 100.0 * share);
                        // The authors write hyphens in some names.
                        let name = model.name.replace('-', "_");
                        (name, u64::from(r.batch), percent(profile.compute), percent(profile.memory))
                    })
                    .collect()
            })
            .collect();
        let published: Vec<Vec<(String, u64, String, String)>> = wanted["gpus"]
            .as_array()
            .unwrap()
            .iter()
            .map(|gpu| {
                gpu.as_array()
                    .unwrap()
                    .iter()
                    .map(|m| {
                        let name = m["model"].as_str().unwrap().replace('-', "_");
                        let percent = |key: &str| format!("{:.1}", m[key].as_f64().unwrap());
                        (
                            name,
                            m["batch"].as_u64().unwrap(),
                            percent("compute_percent"),
                            percent("memory_percent"),
                        )
                    })
                    .collect()
            })
            .collect();
        assert_eq!(placed, published, "load {load}");
    }
}

#[test]
fn every_load_is_planned() {
    let Some(data) = folder("ENT_DATA") else { return };
    // Published: 4, 4 and 5 boards for loads of 25, 50 and from 75 %.
    for (load, boards) in [(25.0, 4), (50.0, 4), (75.0, 5), (100.0, 5)] {
        let input = input(&data, load / 100.0);
        let decision = decide(&input, Mode::Conformant);
        assert_eq!(decision.gpus.len(), boards, "load {load}");
        assert!(decision.dropped().is_empty());
    }
}
