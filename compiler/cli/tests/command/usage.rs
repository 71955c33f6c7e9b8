//! Usage errors, help, and the commands that need no spec.

use crate::run::{run, told};
use serde_json::Value;

#[test]
fn usage_errors_exit_with_1_and_leave_standard_output_alone() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &[][..],
        &["no-such-command"],
        &["plan"],
        &["plan", "a.ent", "--no-such-flag"],
        &["plan", "a.ent", "--gap", "7"],
        &["plan", "a.ent", "--time-limit", "soon"],
        &["plan", "a.ent", "--set", "load"],
        &["plan", "a.ent", "--minimize", "beauty"],
        &["plan", "a.ent", "--planner", "oracle"],
        &["plan", "a.ent", "--explain", "--summary"],
        &["check", "a.ent", "--quiet", "--verbose"],
        &["schema", "nothing"],
        &["explain", "no-such-code"],
        &["observe", "--nvml", "simulatd"],
        &["apply"],
        &["apply", "plan.json", "--resume"],
        &["apply", "plan.json", "--lock-timeout", "soon"],
        &["apply", "a.ent", "--unit-dir", "/tmp"],
    ] {
        let (code, out, err) = told(&run(folder.path(), arguments));
        assert_eq!(code, 1, "{arguments:?}: {err}");
        assert_eq!(out, "", "{arguments:?}");
        assert!(!err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_usage_error_is_json_where_json_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["plan", "a.ent", "--format", "json", "--gap", "7"][..], &["check", "--format=json"]] {
        let (code, out, _) = told(&run(folder.path(), arguments));
        assert_eq!(code, 1);
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["status"], "error");
        assert_eq!(value["diagnostics"][0]["code"], "usage");
    }
}

#[test]
fn a_usage_error_of_a_command_that_tells_lines_is_one() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["apply", "--format", "json-lines"][..],
        &["destroy", "--format=json", "--no-such-flag"],
        &["rollback", "--format", "json", "--lock-timeout", "soon"],
    ] {
        let (code, out, _) = told(&run(folder.path(), arguments));
        assert_eq!((code, out.lines().count()), (1, 1), "{arguments:?}: {out}");
        let event: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((event["event"].as_str(), event["exit_code"].as_u64()), (Some("end"), Some(1)), "{out}");
        assert_eq!(event["diagnostics"][0]["code"], "usage");
    }
}

#[test]
fn help_and_version_are_results() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["--help"][..], &["--version"], &["plan", "--help"], &["help", "plan"]] {
        let (code, out, err) = told(&run(folder.path(), arguments));
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        assert!(!out.is_empty());
    }
    let (_, out, _) = told(&run(folder.path(), &["--help"]));
    assert!(out.contains("Exit codes"), "{out}");
    for code in [0, 1, 2, 3, 4, 101, 130] {
        assert!(out.contains(&format!("\n  {code:<3}  ")), "{code} is missing from {out}");
    }
}

#[test]
fn a_code_is_explained_and_a_mistyped_one_corrected() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) = told(&run(folder.path(), &["explain", "unit-mismatch"]));
    assert_eq!(code, 0);
    assert!(out.starts_with("# unit-mismatch"), "{out}");
    let (code, _, err) = told(&run(folder.path(), &["explain", "unit-mismach"]));
    assert_eq!(code, 1);
    assert!(err.contains("did you mean `unit-mismatch`?"), "{err}");
}

#[test]
fn schemas_are_json_schema_2020_12() {
    let folder = tempfile::tempdir().unwrap();
    for of in [
        "plan",
        "report",
        "diagnostics",
        "performance",
        "simulation",
        "comparison",
        "exploration",
        "observation",
        "changes",
        "drift",
        "imported",
        "findings",
        "event",
    ] {
        let (code, out, _) = told(&run(folder.path(), &["schema", of]));
        assert_eq!(code, 0);
        let schema: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{of}");
        assert!(schema["properties"]["format_version"].is_object(), "{of}");
    }
    let (_, out, _) = told(&run(folder.path(), &["schema", "report"]));
    let report: Value = serde_json::from_str(&out).unwrap();
    for field in ["solve_seconds", "planned_at", "objective", "gpus", "diagnostics", "format_version"] {
        assert!(report["properties"][field].is_object(), "{field}");
    }
    let (_, out, _) = told(&run(folder.path(), &["schema", "plan"]));
    let plan: Value = serde_json::from_str(&out).unwrap();
    assert!(plan["properties"].get("solve_seconds").is_none(), "a plan file has no elapsed time");
}

#[test]
fn completions_and_the_manual_are_written() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, out, _) = told(&run(folder.path(), &["completions", shell]));
        assert_eq!(code, 0);
        for command in ["performance", "observe", "apply", "rollback", "destroy", "import", "drift", "doctor"]
        {
            assert!(out.contains(command), "{shell}: {command}");
        }
    }
    let (code, out, _) = told(&run(folder.path(), &["man"]));
    assert_eq!(code, 0);
    assert!(out.contains(".TH entc") && out.contains("apply") && out.contains("Exit codes"), "{out}");
}
