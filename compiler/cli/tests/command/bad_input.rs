//! Files that are not what they should be: a code, exit 1, nothing written.

use crate::run::{SPEC, names, run, told};
use serde_json::Value;
use std::path::Path;

/// File name, code, and a word of the reason.
fn bad_files(folder: &Path) -> Vec<(&'static str, &'static str, &'static str)> {
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    write("empty.ent", b"");
    write("blank.ent", b"  \n\t\n");
    write("binary.ent", b"\x7fELF\x02\x01\x01\x00\x00\xff\xfe");
    write("zero.ent", b"service a {\0}");
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(SPEC.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    write("utf16.ent", &utf16);
    write("large.ent", &b"// ten megabytes\n".repeat(10_000_000 / 17 + 1));
    std::fs::create_dir(folder.join("folder.ent")).unwrap();
    vec![
        ("missing.ent", "missing-file", "missing.ent"),
        ("empty.ent", "unreadable-file", "empty"),
        ("blank.ent", "unreadable-file", "empty"),
        ("binary.ent", "unreadable-file", "not text"),
        ("zero.ent", "unreadable-file", "not text"),
        ("utf16.ent", "unreadable-file", "UTF-16"),
        ("large.ent", "unreadable-file", "bytes"),
        ("folder.ent", "unreadable-file", "folder"),
    ]
}

#[test]
fn files_that_are_not_specs_are_refused_with_their_reason_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let files = bad_files(folder.path());
    let before = names(folder.path());
    for (name, word, reason) in files {
        for arguments in [
            &["check", name][..],
            &["plan", name, "-o", "plan.json"],
            &["fmt", name],
            &["fmt", "--check", name],
            &["explain", name, "classify"],
            &["show", name],
        ] {
            // The limit on specs is not one on plans: a large comment is simply no plan.
            let word = if arguments[0] == "show" && name == "large.ent" { "invalid-plan" } else { word };
            let (code, out, err) = told(&run(folder.path(), arguments));
            assert_eq!(code, 1, "{arguments:?}: {err}");
            assert_eq!(out, "", "{arguments:?}");
            assert!(err.contains(&format!("error[{word}]")), "{arguments:?}: {err}");
            if word != "invalid-plan" {
                assert!(err.contains(reason), "{arguments:?}: {err}");
            }
        }
        assert_eq!(names(folder.path()), before, "{name}");
    }
}

#[test]
fn json_and_only_json_is_on_standard_output_for_bad_files_too() {
    let folder = tempfile::tempdir().unwrap();
    for (name, word, _) in bad_files(folder.path()) {
        for command in ["check", "plan"] {
            let (code, out, _) = told(&run(folder.path(), &[command, name, "--format", "json"]));
            assert_eq!(code, 1);
            let value: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(value["status"], "error");
            assert_eq!(value["diagnostics"][0]["code"], word, "{name}");
            assert!(value["diagnostics"][0]["help"].is_string(), "{name}");
        }
    }
}

#[test]
fn a_mistake_is_told_in_four_formats() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SPEC.replace("400 req/s", "400 ms");
    std::fs::write(folder.path().join("a.ent"), &spec).unwrap();
    let line = 1 + spec.lines().position(|line| line.contains("400 ms")).unwrap();
    let (code, out, err) = told(&run(folder.path(), &["check", "a.ent"]));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("error[unit-mismatch]") && err.contains(&format!("a.ent:{line}:")), "{err}");
    let (code, out, _) = told(&run(folder.path(), &["check", "a.ent", "--concise"]));
    assert_eq!(code, 1);
    assert!(out.starts_with(&format!("a.ent:{line}:13: unit-mismatch: ")), "{out}");
    let (code, out, _) = told(&run(folder.path(), &["check", "a.ent", "--format", "json"]));
    let value: Value = serde_json::from_str(&out).unwrap();
    let place = &value["diagnostics"][0]["place"];
    assert_eq!(code, 1);
    assert_eq!((place["line"].as_u64(), place["column"].as_u64()), (Some(line as u64), Some(13)));
    let (code, out, _) = told(&run(folder.path(), &["check", "a.ent", "--format", "sarif"]));
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1);
    assert_eq!(value["runs"][0]["results"][0]["ruleId"], "unit-mismatch");
}

#[test]
fn several_files_are_checked_each_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("good.ent"), SPEC).unwrap();
    std::fs::write(folder.path().join("bad.ent"), SPEC.replace("400 req/s", "400 ms")).unwrap();
    let (code, _, err) = told(&run(folder.path(), &["check", "good.ent", "bad.ent"]));
    assert_eq!(code, 1);
    assert!(err.contains("checked 2 files: 1 error"), "{err}");
    let (code, _, err) = told(&run(folder.path(), &["check", "good.ent"]));
    assert_eq!(code, 0, "{err}");
}

#[test]
fn the_data_folder_must_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SPEC.replace("a100_80gb_pcie.resnet50", "\"data:enertune/none.csv\"");
    std::fs::write(folder.path().join("a.ent"), spec).unwrap();
    let (code, _, err) = told(&run(folder.path(), &["check", "a.ent"]));
    assert_eq!(code, 1);
    assert!(err.contains("ENT_DATA"), "{err}");
}

#[test]
fn formatting_can_be_checked_without_being_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ent");
    let untidy = SPEC.replace("  rate    = 400 req/s", "rate=400 req/s // kept");
    std::fs::write(&path, &untidy).unwrap();
    let (code, out, _) = told(&run(folder.path(), &["fmt", "--check", "a.ent"]));
    assert_eq!((code, out.as_str()), (1, "a.ent\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), untidy, "--check writes nothing");
    let (code, ..) = told(&run(folder.path(), &["fmt", "a.ent"]));
    assert_eq!(code, 0);
    let tidy = std::fs::read_to_string(&path).unwrap();
    assert!(tidy.contains("// kept") && tidy != untidy, "{tidy}");
    let (code, out, _) = told(&run(folder.path(), &["fmt", "--check", "a.ent"]));
    assert_eq!((code, out.as_str()), (0, ""));
    std::fs::write(&path, "service {").unwrap();
    let (code, _, err) = told(&run(folder.path(), &["fmt", "a.ent"]));
    assert_eq!(code, 1, "{err}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "service {", "a broken file is left alone");
}

#[test]
fn recorded_arrivals_must_be_there_and_be_times() {
    let folder = tempfile::tempdir().unwrap();
    let spec = SPEC.replace("p99 <= 100 ms", "p99 <= 100 ms\n  arrivals = trace(\"azure.csv\")");
    std::fs::write(folder.path().join("a.ent"), spec).unwrap();
    let (code, _, err) = told(&run(folder.path(), &["check", "a.ent"]));
    assert_eq!(code, 1);
    assert!(err.contains("error[missing-file]") && err.contains("azure.csv"), "{err}");
    std::fs::write(folder.path().join("azure.csv"), "TIMESTAMP,Tokens\n2023-11-16 18:17:03.9799600,1\nx,2\n")
        .unwrap();
    let (code, _, err) = told(&run(folder.path(), &["check", "a.ent"]));
    assert_eq!(code, 1);
    assert!(err.contains("error[measurement-row]") && err.contains("row 3"), "{err}");
}
