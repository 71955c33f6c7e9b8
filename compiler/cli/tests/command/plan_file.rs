//! `plan.json`: written whole or not at all, read only when it holds.

use crate::run::{SPEC, names, run, told};
use ent_plan::plan::{Plan, sample, seal};
use serde_json::Value;
use std::path::Path;

fn saved(folder: &Path) -> Value {
    let mut plan = sample::plan();
    seal(&mut plan);
    let plan = serde_json::to_value(plan).unwrap();
    write(folder, &plan);
    plan
}

/// Writes an edited plan as if a planner had made it so.
fn write_sealed(folder: &Path, plan: &Value) {
    let mut plan: Plan = serde_json::from_value(plan.clone()).unwrap();
    seal(&mut plan);
    write(folder, &serde_json::to_value(plan).unwrap());
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
    refused("edited", "plan-checksum");
    write_sealed(folder.path(), &plan);
    refused("overlapping placements", "plan-check-failed");
    let mut plan = good.clone();
    plan["metrics"]["power_w"] = 1.0.into();
    write_sealed(folder.path(), &plan);
    refused("a sum that is not one", "plan-check-failed");
    let mut plan = good.clone();
    plan["gpus"][0]["instances"][1]["profile"] = "2g.21gb".into();
    write_sealed(folder.path(), &plan);
    refused("a profile that the board does not have", "plan-check-failed");
    let mut plan = good.clone();
    plan["checksum"] = Value::Null;
    write(folder.path(), &plan);
    refused("a checksum taken out", "plan-checksum");
}

#[test]
fn a_plan_of_the_format_without_checksums_is_shown_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = saved(folder.path());
    plan["checksum"] = Value::Null;
    plan["format_version"] = "1.0".into();
    write(folder.path(), &plan);
    let (code, out, err) = told(&run(folder.path(), &["show", "plan.json"]));
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("classify") && err.contains("warning[plan-checksum]"), "{err}");
    let (code, _, err) = told(&run(folder.path(), &["apply", "plan.json"]));
    assert_eq!(code, 1);
    assert!(err.contains("error[plan-checksum]") && err.contains("plan again"), "{err}");
}

#[test]
fn fields_of_a_later_minor_version_are_kept_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = saved(folder.path());
    plan["later"] = "unknown".into();
    write(folder.path(), &plan);
    let (code, _, err) = told(&run(folder.path(), &["show", "plan.json"]));
    assert_eq!(code, 1);
    assert!(err.contains("error[plan-checksum]"), "{err}");
    // As the later version would have sealed it: over everything in the file.
    let mut rest = plan.clone();
    rest.as_object_mut().unwrap().remove("checksum");
    let bytes = serde_json_canonicalizer::to_vec(&rest).unwrap();
    let hash: String =
        sha2::Digest::finalize(sha2::Digest::chain_update(<sha2::Sha256 as sha2::Digest>::new(), bytes))
            .iter()
            .map(|byte: &u8| format!("{byte:02x}"))
            .collect();
    plan["checksum"] = format!("sha256:{hash}").into();
    write(folder.path(), &plan);
    let (code, out, err) = told(&run(folder.path(), &["show", "plan.json", "--format", "json"]));
    assert_eq!(code, 0, "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["later"], "unknown");
}

#[test]
fn a_report_is_not_taken_for_a_plan() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    let (code, out, err) = told(&run(
        folder.path(),
        &["plan", "a.ent", "-o", "plan.json", "--planner", "greedy", "--format", "json"],
    ));
    assert_eq!(code, 0, "{err}");
    let plan: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("plan.json")).unwrap()).unwrap();
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(plan["checksum"].as_str().is_some_and(|checksum| checksum.starts_with("sha256:")));
    assert_eq!(report["checksum"], plan["checksum"]);
    std::fs::write(folder.path().join("report.json"), out).unwrap();
    let (code, _, err) = told(&run(folder.path(), &["show", "report.json"]));
    assert_eq!(code, 1);
    assert!(err.contains("error[plan-checksum]") && err.contains("-o plan.json"), "{err}");
}

#[test]
fn what_no_planner_heeds_is_refused_and_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    saved(folder.path());
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    for arguments in [
        &["simulate", "plan.json", "--planner", "fgd"][..],
        &["simulate", "plan.json", "--conformant"],
        &["plan", "a.ent", "--conformant"],
        &["plan", "a.ent", "--planner", "greedy", "--conformant"],
        &["compare", "a.ent", "--planners", "optimal,greedy", "--conformant"],
    ] {
        let (code, out, err) = told(&run(folder.path(), arguments));
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.contains("error[usage]"), "{arguments:?}: {err}");
    }
}

#[test]
fn where_a_plan_is_to_be_written_is_looked_at_before_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    // A table that is not there is found only after the spec is read: whichever comes first is told.
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    let arguments = ["plan", "a.ent", "-o", "no/such/plan.json", "--table", "none.csv"];
    let (code, _, err) = told(&run(folder.path(), &arguments));
    assert_eq!(code, 1);
    assert!(err.contains("cannot-write") && !err.contains("none.csv"), "{err}");
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
