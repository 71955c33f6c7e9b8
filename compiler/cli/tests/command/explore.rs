//! `entc explore`: fronts of proven plans, their ends, and what stops the search.

use crate::run::{SPEC, entc, names, run, told};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn folder(spec: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), spec).unwrap();
    folder
}

const QUICK: [&str; 3] = ["--latency-rule", "execution", "--quiet"];

/// Explores, and checks what is true of every front.
fn front(folder: &std::path::Path, arguments: &[&str]) -> Value {
    let all = [&["explore", "a.ent", "--format", "json"], arguments, &QUICK[..]].concat();
    let (code, out, err) = told(&run(folder, &all));
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    let value: Value = serde_json::from_str(&out).unwrap();
    let points = value["points"].as_array().unwrap();
    assert!(!points.is_empty());
    let number = |point: &Value, name: &str| point[name].as_f64().unwrap();
    for pair in points.windows(2) {
        assert!(number(&pair[0], "limited") < number(&pair[1], "limited"), "{pair:?}");
        assert!(number(&pair[0], "minimized") > number(&pair[1], "minimized"), "{pair:?}");
    }
    for point in points {
        assert!(number(point, "bound") <= number(point, "minimized") * (1.0 + 1e-9), "{point}");
        assert!(number(point, "gap") <= 0.001 + 1e-9, "{point}");
        if let Some(limit) = point["at_most"].as_f64() {
            assert!(number(point, "limited") <= limit * (1.0 + 1e-9), "{point}");
        }
    }
    value
}

#[test]
fn the_ends_of_a_front_are_the_best_plans_of_either_metric() {
    let folder = folder(&SPEC.replace("400 req/s", "1500 req/s"));
    let value = front(folder.path(), &["--over", "power,energy", "--points", "4"]);
    let points = value["points"].as_array().unwrap();
    let planned = |metric: &str| {
        let plan = [&["plan", "a.ent", "--minimize", metric, "--format", "json"], &QUICK[..]].concat();
        let plan: Value = serde_json::from_str(&told(&run(folder.path(), &plan)).1).unwrap();
        plan["objective"]["value"].as_f64().unwrap()
    };
    // Proven within a thousandth.
    let is_near = |a: &Value, b: f64| (a.as_f64().unwrap() / b - 1.0).abs() <= 0.0011;
    assert!(is_near(&points.last().unwrap()["minimized"], planned("power")));
    assert!(is_near(&points[0]["limited"], planned("energy")));
    assert_eq!(value, front(folder.path(), &["--over", "power,energy", "--points", "4"]), "the same twice");
}

#[test]
fn promises_are_tightened_until_nothing_keeps_them() {
    let folder = folder(SPEC);
    let value =
        front(folder.path(), &["--over", "latency-slack,energy", "--slack", "1%..400%", "--points", "6"]);
    assert_eq!((&value["minimized"], &value["limited"]), (&"energy".into(), &"latency-slack".into()));
    for point in value["points"].as_array().unwrap() {
        assert_eq!(point["latency_slack"], point["limited"]);
    }
    let notes = value["notes"].to_string();
    assert!(notes.contains("and tighter no plan keeps them all"), "{notes}");
}

#[test]
fn boards_are_whole_and_each_plan_can_be_kept() {
    let folder = folder(&SPEC.replace("400 req/s", "1500 req/s").replace("x 2", "x 6"));
    let value = front(folder.path(), &["--over", "gpus,power", "--plans", "fronts/all"]);
    assert_eq!(value["limited"], "gpus");
    for point in value["points"].as_array().unwrap() {
        assert_eq!(point["limited"].as_f64().unwrap(), point["metrics"]["gpus"].as_f64().unwrap());
        let file = point["plan"].as_str().unwrap();
        let (code, out, err) = told(&run(folder.path(), &["show", file, "--format", "json"]));
        assert_eq!((code, err.as_str()), (0, ""));
        let plan: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(plan["objective"]["value"], point["minimized"]);
    }
    assert_eq!(names(&folder.path().join("fronts/all")).len(), value["points"].as_array().unwrap().len());
}

#[test]
fn a_front_is_told_drawn_and_written() {
    let folder = folder(SPEC);
    let asked = [
        "explore",
        "a.ent",
        "--over",
        "energy,latency-slack",
        "--points",
        "3",
        "--html",
        "f.html",
        "--svg",
        "f.svg",
    ];
    let (code, out, err) = told(&run(folder.path(), &[&asked[..], &QUICK].concat()));
    assert_eq!((code, err.as_str()), (0, ""));
    for words in ["energy against latency", "promises", "predicted", "100 %", "optimal"] {
        assert!(out.contains(words), "{words} is missing from {out}");
    }
    assert_eq!(names(folder.path()), ["a.ent", "f.html", "f.svg"]);
    let page = std::fs::read_to_string(folder.path().join("f.html")).unwrap();
    roxmltree::Document::parse(&crate::pictures::xml(&page)).unwrap();
    let svg = std::fs::read_to_string(folder.path().join("f.svg")).unwrap();
    roxmltree::Document::parse(&svg).unwrap();
}

#[test]
fn a_program_without_a_plan_is_explained_and_missing_facts_are_named() {
    let folder = folder(&SPEC.replace("400 req/s", "90000 req/s"));
    let asked = ["explore", "a.ent", "--over", "power,gpus"];
    let (code, out, err) = told(&run(folder.path(), &[&asked[..], &QUICK].concat()));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("conflicting-requirements"), "{err}");
    // Nobody has said what the electricity emits, or what a board costs.
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    for over in ["carbon,gpus", "energy,cost", "carbon,latency-slack"] {
        let (code, out, err) =
            told(&run(folder.path(), &[&["explore", "a.ent", "--over", over], &QUICK[..]].concat()));
        assert_eq!((code, out.as_str()), (1, ""), "{over}");
        assert!(err.contains("missing-attribute"), "{over}: {err}");
    }
    for wrong in ["power", "power,power", "power,watts", "latency-slack,latency-slack"] {
        let (code, out, err) = told(&run(folder.path(), &["explore", "a.ent", "--over", wrong]));
        assert_eq!((code, out.as_str()), (1, ""), "{wrong}");
        assert!(err.contains("latency-slack"), "{err}");
    }
}

#[test]
fn one_interrupt_gives_the_points_that_are_there() {
    let folder = folder(SPEC);
    let asked = [
        "explore",
        "a.ent",
        "--over",
        "energy,latency-slack",
        "--points",
        "200",
        "--slack",
        "100%..900%",
        "--format",
        "json",
        "--latency-rule",
        "execution",
        "--verbose",
    ];
    let mut child =
        entc(folder.path(), &asked).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("point 3 of")), "it never came to a third point");
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    lines.for_each(drop);
    let (code, out, _) = told(&child.wait_with_output().unwrap());
    assert_eq!(code, 130);
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["stopped_by"], "interrupted");
    assert!(!value["points"].as_array().unwrap().is_empty());
    assert!(value["notes"].to_string().contains("not complete"));
}
