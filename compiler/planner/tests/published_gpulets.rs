//! GPUlets' plans, as the published program makes them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops, and says why, when what it needs is not there"
)]

use ent_planner::published::Mode;
use ent_planner::published::gpulets::{Decision, Ending, Input, Model, decide};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {variable} is not set");
    }
    folder
}

/// The models by task id.
const MODELS: [&str; 7] =
    ["resnet50", "mobilenet_v3_large", "vgg11", "resnet152", "densenet169", "densenet161", "vgg19"];

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The fields of each line, by commas.
fn lines(path: PathBuf) -> Vec<Vec<String>> {
    let text = read(path);
    text.lines().map(|line| line.split(',').map(|f| f.trim().to_owned()).collect()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// What the published program reads.
fn input(data: &Path, load: u64, boards: u64, interference: u64) -> Input {
    let data = data.join("gpulets");
    let config: Value =
        serde_json::from_str(&read(data.join(format!("cfg/n{boards}_int{interference}.json")))).unwrap();
    let memory: Value = serde_json::from_str(&read(data.join("mem-config.json"))).unwrap();
    let memory = |model: &str| {
        let all = memory["models"].as_array().unwrap();
        all.iter().find(|m| m["name"] == model).unwrap()["mem"].as_f64().unwrap()
    };
    let latencies = lines(data.join("a100/latency.csv"));
    let utilisation = lines(data.join("a100/UTIL.CSV"));
    let batching: Vec<f64> = lines(data.join("3_224_224.txt")).iter().map(|l| 1.9 * number(&l[1])).collect();
    let constants = &lines(data.join("a100/INT_MODEL_CONSTANT.CSV"))[1];
    let constants: Vec<f64> = constants.iter().take(5).map(|c| number(c)).collect();
    let models = lines(data.join(format!("tasks/load{load}.csv")))
        .iter()
        .skip(1)
        .filter(|line| line.len() >= 3)
        .map(|line| {
            let name = MODELS[line[0].parse::<usize>().unwrap()];
            Model {
                name: name.to_owned(),
                rate: number(&line[1]),
                bound_ms: number(&line[2]),
                memory_mb: memory(name),
                request_bytes: 3.0 * 224.0 * 224.0,
                latencies: latencies
                    .iter()
                    .filter(|l| l[0] == name)
                    .map(|l| (number(&l[1]) as u32, number(&l[2]) as u32, number(&l[3])))
                    .collect(),
                batching_ms: batching.clone(),
                utilisation: utilisation
                    .iter()
                    .filter(|l| l[0] == name)
                    .map(|l| (number(&l[1]) as u32, number(&l[4]) / 100.0, number(&l[5]) / 100.0))
                    .collect(),
                most_batch: 32,
            }
        })
        .collect();
    Input {
        models,
        boards: config["GPUs"][0]["Num"].as_u64().unwrap() as usize,
        partitions: vec![43, 57, 100],
        latency_ratio: config["Latency Ratio"].as_f64().unwrap(),
        interference: (config["Interference"] == 1).then(|| constants.try_into().unwrap()),
        most_models: config["Max Model"].as_u64().unwrap() as usize,
        is_self_tuning: false,
        memory_mb: 81_920.0,
        network: Some(Input::NETWORK),
    }
}

/// Board, percentage, second half, model or `reserved`, and batch, a line each.
fn rows(input: &Input, decision: &Decision) -> Vec<(String, f64)> {
    let mut rows = Vec::new();
    for (index, gpu) in decision.gpus.iter().enumerate() {
        for share in &gpu.gpulets {
            let start = format!("{index},{},{}", share.percent, u32::from(share.is_second_half));
            if share.tenants.is_empty() {
                rows.push((format!("{start},reserved,32"), 0.0));
            }
            for tenant in &share.tenants {
                let model = &input.models[tenant.model].name;
                rows.push((format!("{start},{model},{}", tenant.batch), share.duty_ms));
            }
        }
    }
    rows
}

fn close(a: f64, b: f64, relative: f64) -> bool {
    (a - b).abs() <= relative * a.abs().max(b.abs())
}

fn differences(input: &Input, decision: &Decision, case: &Value) -> Vec<String> {
    if case["status"] == "EMPTY" {
        let is_empty = matches!(decision.ending, Ending::Empty { .. });
        return if is_empty { Vec::new() } else { vec![format!("{:?}, not empty", decision.ending)] };
    }
    if decision.ending != Ending::Scheduled {
        return vec![format!("{:?}, not scheduled", decision.ending)];
    }
    let mut all = Vec::new();
    let rows = rows(input, decision);
    let wanted = case["modellist"].as_array().unwrap();
    for at in 0..rows.len().max(wanted.len()) {
        let own = rows.get(at);
        let theirs = wanted.get(at).and_then(Value::as_str).and_then(|row| row.rsplit_once(','));
        let is_same = own.zip(theirs).is_some_and(|((row, duty), (text, their_duty))| {
            row == text && close(*duty, number(their_duty), 1e-6)
        });
        if !is_same {
            all.push(format!("{own:?} for {theirs:?}"));
        }
    }
    let gpus = case["gpus"].as_array().unwrap();
    for (gpu, wanted) in decision.gpus.iter().zip(gpus) {
        let used = gpu.gpulets.iter().filter(|g| !g.tenants.is_empty());
        for (share, wanted) in used.zip(wanted["gpulets"].as_array().unwrap()) {
            if !close(share.occupancy, wanted["occupancy"].as_f64().unwrap(), 1e-3) {
                all.push(format!("occupancy {} for {}", share.occupancy, wanted["occupancy"]));
            }
            for (tenant, wanted) in share.tenants.iter().zip(wanted["tasks"].as_array().unwrap()) {
                if !close(tenant.throughput, wanted["throughput"].as_f64().unwrap(), 1e-3)
                    || !close(tenant.rate, wanted["request_rate"].as_f64().unwrap(), 1e-3)
                {
                    all.push(format!("{tenant:?} for {wanted}"));
                }
            }
        }
    }
    all
}

#[test]
fn every_case_comes_out_as_published() {
    let (Some(data), Some(cases)) = (folder("ENT_DATA"), folder("ENT_CASES")) else { return };
    let cases: Value = serde_json::from_str(&read(cases.join("gpulets/a100_vision7.json"))).unwrap();
    let cases = cases.as_array().unwrap();
    let mut n_wrong = 0;
    for case in cases {
        let of = |key: &str| case[key].as_u64().unwrap();
        let (load, boards, interference) = (of("load"), of("num_gpus"), of("interference"));
        let input = input(&data, load, boards, interference);
        let differences = differences(&input, &decide(&input, Mode::Conformant), case);
        for difference in &differences {
            println!("load {load}, {boards} boards, interference {interference}: {difference}");
        }
        n_wrong += usize::from(!differences.is_empty());
    }
    println!("{} of {} cases the same", cases.len() - n_wrong, cases.len());
    assert_eq!(n_wrong, 0);
    assert!(!cases.is_empty());
}

#[test]
fn every_load_needs_the_boards_that_were_measured() {
    let Some(data) = folder("ENT_DATA") else { return };
    // With 12 boards to choose from: boards and sum of shares of the published program's plans.
    let measured = [(25, 6, 315), (50, 8, 386), (75, 7, 400), (100, 11, 557), (125, 11, 543), (150, 10, 557)];
    for (load, boards, percent) in measured {
        let decision = decide(&input(&data, load, 12, 0), Mode::Conformant);
        let used =
            |gpu: &&ent_planner::published::gpulets::Gpu| gpu.gpulets.iter().any(|s| !s.tenants.is_empty());
        assert_eq!(decision.gpus.iter().filter(used).count(), boards, "load {load}");
        let shares = decision.gpus.iter().flat_map(|g| &g.gpulets).filter(|s| !s.tenants.is_empty());
        assert_eq!(shares.map(|s| s.percent).sum::<u32>(), percent, "load {load}");
    }
    // Four boards are enough for a load of 25 % only.
    for load in [50, 75, 100, 125, 150] {
        assert_ne!(
            decide(&input(&data, load, 4, 0), Mode::Conformant).ending,
            Ending::Scheduled,
            "load {load}"
        );
    }
}
