//! `entc compare`: planners side by side, whatever each of them can and cannot do.

use crate::run::{SPEC, names, run, told};
use serde_json::Value;
use std::path::Path;

const SHORT: [&str; 6] = ["--requests", "2000", "--seeds", "2", "--time-limit", "20s"];

fn compared(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    told(&run(folder, &[&["compare", "a.ent"], arguments, &SHORT].concat()))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    folder
}

/// Sets every time that was measured to zero.
fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if name == "plan_seconds" { *value = 0.into() } else { without_times(value) }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn rates_are_scaled_where_the_spec_has_no_load() {
    let folder = folder();
    let json = || {
        let (code, out, err) = compared(
            folder.path(),
            &["--loads", "50%,1", "--planners", "optimal,greedy", "--format", "json"],
        );
        assert_eq!((code, err.as_str()), (0, ""));
        let mut value: Value = serde_json::from_str(&out).unwrap();
        without_times(&mut value);
        value
    };
    let value = json();
    let rate = |at: usize| value["loads"][at]["plans"][0]["services"][0]["rate_rps"].as_f64().unwrap();
    assert_eq!((rate(0), rate(1)), (200.0, 400.0));
    for at in value["loads"].as_array().unwrap() {
        assert_eq!(at["plans"][0]["ratio"], 1.0);
        assert!(at["plans"][1]["ratio"].as_f64().unwrap() >= 1.0 - 1e-9);
        assert_eq!(at["plans"][0]["services"][0]["is_kept_verified"], true);
        assert_eq!(at["plans"][0]["services"][0]["is_kept_simulated"], true);
    }
    assert_eq!(value, json(), "the same but for times");
}

#[test]
fn a_param_called_load_is_set_and_not_given_twice() {
    let folder = folder();
    let spec = format!("param load = 100%\n{}", SPEC.replace("400 req/s", "load * 300 req/s"));
    std::fs::write(folder.path().join("a.ent"), spec).unwrap();
    let (code, out, err) =
        compared(folder.path(), &["--loads", "50%", "--planners", "greedy", "--format", "json"]);
    assert_eq!(code, 0, "{err}");
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["loads"][0]["plans"][0]["services"][0]["rate_rps"], 150.0);
    assert_eq!(value["loads"][0]["plans"][0]["ratio"], Value::Null, "nothing to measure by");
    let (code, out, err) = compared(folder.path(), &["--loads", "50%", "--set", "load=1"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("twice"), "{err}");
}

#[test]
fn every_planner_has_its_say_and_one_that_cannot_plan_stops_nobody() {
    let folder = folder();
    let (code, out, err) = compared(folder.path(), &["--format", "csv"]);
    assert_eq!(code, 0, "{err}");
    let rows: Vec<&str> = out.lines().skip(1).collect();
    let planners: Vec<&str> = rows.iter().filter_map(|row| row.split(',').nth(1)).collect();
    assert_eq!(planners, ["optimal", "greedy", "enertune", "parvagpu", "gpulets", "usher", "fgd"]);
    // Usher packs by utilisation, and nobody has measured any.
    assert!(rows[5].contains("utilisation"), "{}", rows[5]);
    assert!(rows[..2].iter().all(|row| row.contains(",true,")), "{rows:?}");
    std::fs::write(
        folder.path().join("u.csv"),
        "model,batch,sm,l2,mem\nresnet50,2,20,15,15\nresnet50,32,80,60,60\n",
    )
    .unwrap();
    let (code, out, err) =
        compared(folder.path(), &["--planners", "usher", "--utilisation", "u.csv", "--format", "csv"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.lines().nth(1).unwrap().contains(",feasible,"), "{out}");
}

#[test]
fn pictures_and_pages_are_written_whole() {
    let folder = folder();
    let files =
        ["--svg", "w.svg", "--html", "w.html", "--planners", "optimal,parvagpu", "--loads", "50%,100%"];
    let (code, out, err) = compared(folder.path(), &files);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("load 50 %") && out.contains("parvagpu"), "{out}");
    assert_eq!(names(folder.path()), ["a.ent", "w.html", "w.svg"]);
    let page = std::fs::read_to_string(folder.path().join("w.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("parvagpu") && !page.contains("src="), "{page}");
    let (code, out, err) = compared(folder.path(), &["--planners", "greedy", "--svg", "no/such/w.svg"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("cannot write"), "{err}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let folder = folder();
    for arguments in [
        &["--planners", "oracle"][..],
        &["--loads", "0%"],
        &["--loads", "half"],
        &["--utilisation", "none.csv"],
        &["--table", "none.csv"],
    ] {
        let (code, out, err) = compared(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(!err.is_empty());
    }
}

#[test]
fn a_published_plan_that_does_not_hold_is_shown_and_not_written() {
    let folder = folder();
    // More than FGD's one instance can carry.
    std::fs::write(
        folder.path().join("a.ent"),
        SPEC.replace("400 req/s", "9000 req/s").replace("x 2", "x 8"),
    )
    .unwrap();
    let (code, out, err) =
        told(&run(folder.path(), &["plan", "a.ent", "--planner", "fgd", "-o", "plan.json"]));
    assert_eq!(code, 1);
    assert!(out.contains("classify") && err.contains("error[plan-check-failed]"), "{out}\n{err}");
    assert_eq!(names(folder.path()), ["a.ent"]);
    let (code, _, err) = told(&run(folder.path(), &["plan", "a.ent", "--planner", "fgd", "--emit", "lp"]));
    assert_eq!(code, 1);
    assert!(err.contains("has no such form"), "{err}");
}
