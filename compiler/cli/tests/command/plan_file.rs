//! `plan.json`: written whole or not at all, read only when it holds.

use crate::run::{SPEC, names, run, told};
use ent_plan::plan::sample;
use serde_json::Value;
use std::path::Path;

fn saved(folder: &Path) -> Value {
    let plan = serde_json::to_value(sample::plan()).unwrap();
    write(folder, &plan);
    plan
}

fn write(folder: &Path, plan: &Value) {
    std::fs::write(folder.join("plan.json"), plan.to_string()).unwrap();
}

#[test]
fn a_saved_plan_is_shown_in_any_width_without_colour() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    for columns in ["40", "80", "300"] {
        let mut command = crate::run::entc(folder.path(), &["show", "plan.json"]);
        let (code, out, err) = told(&command.env("COLUMNS", columns).output().unwrap());
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.contains("classify") && out.contains("MIG") && !out.contains('\u{1b}'), "{out}");
        let width: usize = columns.parse().unwrap();
        assert!(out.lines().all(|line| line.chars().count() <= width), "{out}");
    }
}

#[test]
fn colour_and_characters_follow_flags_and_environment() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    let show = |arguments: &[&str], variable: Option<(&str, &str)>| {
        let mut command = crate::run::entc(folder.path(), &[&["show", "plan.json"], arguments].concat());
        command.envs(variable);
        told(&command.output().unwrap()).1
    };
    assert!(show(&["--color", "always"], None).contains('\u{1b}'));
    assert!(show(&[], Some(("CLICOLOR_FORCE", "1"))).contains('\u{1b}'));
    assert!(!show(&["--color", "never"], Some(("CLICOLOR_FORCE", "1"))).contains('\u{1b}'));
    assert!(!show(&[], Some(("NO_COLOR", "1"))).contains('\u{1b}'));
    assert!(show(&["--ascii"], None).is_ascii());
    assert!(show(&[], Some(("LC_ALL", "C"))).is_ascii());
    assert!(!show(&[], None).is_ascii());
}

#[test]
fn a_plan_that_does_not_hold_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = saved(folder.path());
    let refused = |what: &str, word: &str| {
        let (code, out, err) = told(&run(folder.path(), &["show", "plan.json"]));
        assert_eq!((code, out.as_str()), (1, ""), "{what}");
        assert!(err.contains(&format!("error[{word}]")), "{what}: {err}");
        let (code, out, _) = told(&run(folder.path(), &["show", "plan.json", "--format", "json"]));
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, value["diagnostics"][0]["code"].as_str()), (1, Some(word)), "{what}");
    };
    let text = good.to_string();
    std::fs::write(folder.path().join("plan.json"), &text[..text.len() / 2]).unwrap();
    refused("cut short", "invalid-plan");
    std::fs::write(folder.path().join("plan.json"), "[1, 2]").unwrap();
    refused("another JSON", "invalid-plan");
    for version in ["2.0", "0.9", "x"] {
        let mut plan = good.clone();
        plan["format_version"] = version.into();
        write(folder.path(), &plan);
        refused(version, "invalid-plan");
    }
    let mut plan = good.clone();
    plan["gpus"][0]["instances"][1]["start"] = 3.into();
    write(folder.path(), &plan);
    refused("overlapping placements", "plan-check-failed");
    let mut plan = good.clone();
    plan["metrics"]["power_w"] = 1.0.into();
    write(folder.path(), &plan);
    refused("a sum that is not one", "plan-check-failed");
}

#[test]
fn numbers_survive_the_way_through_json() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = saved(folder.path());
    let (_, out, _) = told(&run(folder.path(), &["show", "plan.json", "--format", "json"]));
    let mut shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["metrics"].take(), plan["metrics"].take());
    assert_eq!(shown["gpus"].take(), plan["gpus"].take());
}

#[test]
fn a_plan_is_written_whole_and_the_same_each_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    let plan = || {
        run(folder.path(), &["plan", "a.ent", "-o", "plan.json", "--detailed-exitcode", "--format", "json"])
    };
    let (code, out, err) = told(&plan());
    assert_eq!(code, 2, "a first plan is a change: {err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let first = std::fs::read(folder.path().join("plan.json")).unwrap();
    let saved: Value = serde_json::from_slice(&first).unwrap();
    assert!(report["solve_seconds"].is_f64() && report["planned_at"].is_string());
    assert!(saved.get("solve_seconds").is_none() && saved.get("planned_at").is_none());
    assert_eq!(report["gpus"], saved["gpus"]);
    let (code, ..) = told(&plan());
    assert_eq!(code, 0, "the same plan is none");
    assert_eq!(std::fs::read(folder.path().join("plan.json")).unwrap(), first);
    assert_eq!(names(folder.path()), ["a.ent", "plan.json"]);
    let (code, ..) = told(&run(folder.path(), &["show", "plan.json"]));
    assert_eq!(code, 0);
}

#[test]
fn an_infeasible_spec_writes_no_plan_and_says_so_in_json() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC.replace("400 req/s", "20000 req/s")).unwrap();
    let (code, out, err) = told(&run(
        folder.path(),
        &["plan", "a.ent", "-o", "plan.json", "--format", "json", "--latency-rule", "execution"],
    ));
    assert_eq!(code, 1, "{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["status"], "infeasible");
    assert!(report["diagnostics"].as_array().is_some_and(|list| !list.is_empty()), "{out}");
    assert_eq!(names(folder.path()), ["a.ent"]);
}

#[test]
fn a_plan_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    for target in ["no/such/folder/plan.json", "."] {
        let (code, out, err) =
            told(&run(folder.path(), &["plan", "a.ent", "-o", target, "--latency-rule", "execution"]));
        assert_eq!((code, out.as_str()), (1, ""), "{target}");
        assert!(err.contains("error[cannot-write]"), "{err}");
    }
    assert_eq!(names(folder.path()), ["a.ent"]);
}

#[test]
fn every_form_on_the_way_can_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    for (form, word) in [
        ("ast", "items"),
        ("program", "classify"),
        ("problem", "patterns"),
        ("solution", "incumbent"),
        ("lp", "Subject To"),
        ("plan", "\"format_version\""),
    ] {
        let arguments = ["plan", "a.ent", "--emit", form, "--latency-rule", "execution"];
        let (code, out, err) = told(&run(folder.path(), &arguments));
        assert_eq!(code, 0, "{form}: {err}");
        assert!(out.contains(word), "{form}");
    }
}

#[test]
fn a_service_is_explained_by_what_else_would_have_cost() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    let explain = |service: &str| {
        told(&run(folder.path(), &["explain", "a.ent", service, "--latency-rule", "execution"]))
    };
    let (code, out, err) = explain("classify");
    assert_eq!(code, 0, "{err}");
    let alternatives = out.split("instead").nth(1).unwrap();
    assert!(alternatives.contains("on 7g.80gb") && alternatives.contains("with batch"), "{out}");
    // The plan is optimal: no alternative is better.
    assert!(alternatives.contains('+') && !alternatives.contains(" -"), "{out}");
    let (code, _, err) = explain("clasify");
    assert_eq!(code, 1);
    assert!(err.contains("did you mean `classify`?"), "{err}");
}
