//! `entc simulate`: promises judged by simulated arrivals, the same for the same seeds.

use crate::run::{SPEC, run, told};
use ent_plan::plan::{sample, seal};
use serde_json::Value;
use std::path::Path;

fn saved(folder: &Path) {
    let mut plan = sample::plan();
    seal(&mut plan);
    std::fs::write(folder.join("plan.json"), serde_json::to_string(&plan).unwrap()).unwrap();
}

/// The report, without the one number that is true of one run only.
fn report(folder: &Path, arguments: &[&str]) -> Value {
    let (code, out, err) = told(&run(folder, &[arguments, &["--format", "json"]].concat()));
    assert_eq!(code, 0, "{err}");
    let mut value: Value = serde_json::from_str(&out).unwrap();
    value.as_object_mut().unwrap().remove("simulate_seconds");
    value
}

#[test]
fn the_same_seeds_give_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    let of = |seed: &str| {
        report(
            folder.path(),
            &["simulate", "plan.json", "--seeds", "3", "--requests", "5000", "--seed", seed],
        )
    };
    assert_eq!(of("7"), of("7"));
    assert_ne!(of("7"), of("8"));
    let value = of("7");
    let service = &value["services"][0];
    let at = |name: &str| service[name].as_f64().unwrap();
    assert!(at("p50_ms") <= at("p95_ms") && at("p95_ms") <= at("p99_ms"), "{service}");
    assert!(at("attainment") <= 1.0 && at("utilisation") > 0.0 && at("mean_batch") >= 1.0);
    assert_eq!(service["is_kept"].as_bool().unwrap(), at("attainment") >= at("percentile"));
    assert_eq!(value["seeds"], 3);
}

#[test]
fn a_simulation_is_drawn_in_any_width() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    for columns in ["40", "100", "200"] {
        let mut command = crate::run::entc(folder.path(), &["simulate", "plan.json", "--requests", "2000"]);
        let (code, out, err) = told(&command.env("COLUMNS", columns).output().unwrap());
        assert_eq!((code, err.as_str()), (0, ""));
        let width: usize = columns.parse().unwrap();
        assert!(out.contains("classify") && out.lines().all(|line| line.chars().count() <= width), "{out}");
    }
}

#[test]
fn a_recording_that_comes_in_bursts_breaks_a_promise_and_the_exit_code_tells() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    let bursts: String = (0..200).map(|second| format!("{second}\n").repeat(400)).collect();
    std::fs::write(folder.path().join("bursts.csv"), bursts).unwrap();
    let even: String = (0..2000).map(|i| format!("{i}\n")).collect();
    std::fs::write(folder.path().join("even.csv"), even).unwrap();
    let exit =
        |arguments: &[&str]| told(&run(folder.path(), &[&["simulate", "plan.json"], arguments].concat())).0;
    assert_eq!(exit(&["--trace", "bursts.csv", "--detailed-exitcode"]), 2);
    assert_eq!(exit(&["--trace", "bursts.csv"]), 0);
    assert_eq!(exit(&["--trace", "classify=even.csv"]), 0);
}

#[test]
fn recordings_that_cannot_be_used_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("one.csv", "TIMESTAMP\n2023-11-16 18:17:03.9799600\n");
    write("empty.csv", "");
    write("words.csv", "timestamp\n1\nsoon\n");
    for (trace, words) in [
        ("one.csv", "one arrival"),
        ("empty.csv", "empty"),
        ("words.csv", "row 3"),
        ("none.csv", "not found"),
        ("nobody=one.csv", "no service `nobody`"),
    ] {
        let (code, out, err) = told(&run(folder.path(), &["simulate", "plan.json", "--trace", trace]));
        assert_eq!((code, out.as_str()), (1, ""), "{trace}");
        assert!(err.contains(words), "{trace}: {err}");
    }
    write("unsorted.csv", "timestamp\n3\n1\n2\n");
    let (code, _, err) = told(&run(folder.path(), &["simulate", "plan.json", "--trace", "unsorted.csv"]));
    assert_eq!(code, 0);
    assert!(err.contains("not in the order of time"), "{err}");
}

#[test]
fn a_saved_plan_is_not_asked_other_questions() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    for arguments in
        [&["--set", "load=50%"][..], &["--minimize", "power"], &["--requests", "1"], &["--seeds", "0"]]
    {
        let (code, out, _) = told(&run(folder.path(), &[&["simulate", "plan.json"], arguments].concat()));
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
    }
}

#[test]
fn a_spec_with_recorded_arrivals_is_planned_with_their_variation_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SPEC.replace("p99 <= 100 ms", "p99 <= 100 ms\n  arrivals = trace(\"day.csv\")");
    std::fs::write(folder.path().join("a.ent"), spec).unwrap();
    let day: String = (0..3000).map(|i| format!("{}\n", i / 2)).collect();
    std::fs::write(folder.path().join("day.csv"), format!("arrival\n{day}")).unwrap();
    let (code, out, err) =
        told(&run(folder.path(), &["plan", "a.ent", "--planner", "greedy", "--format", "json"]));
    assert_eq!(code, 0, "{err}");
    let plan: Value = serde_json::from_str(&out).unwrap();
    let arrivals = plan["services"][0]["arrivals"].as_str().unwrap();
    assert!(arrivals.starts_with("gamma(cv = 0.99") || arrivals.starts_with("gamma(cv = 1"), "{arrivals}");
    let told_of = |a: &Value| a.as_str().is_some_and(|a| a.contains("day.csv") && a.contains("gamma"));
    assert!(plan["assumptions"].as_array().unwrap().iter().any(told_of), "{plan:#}");
    let value = report(folder.path(), &["simulate", "a.ent", "--planner", "greedy", "--requests", "5000"]);
    assert_eq!(value["services"][0]["arrivals"], "trace");
    assert_eq!(value["program"], "a.ent");
}
