//! Closed, full and broken streams; standard input.

use crate::run::{SPEC, entc, told};
use std::io::Write;
use std::process::Stdio;

#[test]
fn a_closed_standard_output_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = entc(folder.path(), &["schema", "plan"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The reader is gone before anything is written, as with `entc … | true`.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(told(&output), (0, String::new(), String::new()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output =
        entc(folder.path(), &["schema", "plan"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let (code, _, err) = told(&output);
    assert_eq!(code, 1);
    assert!(err.contains("cannot write standard output"), "{err}");
}

#[test]
fn a_spec_may_come_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = entc(folder.path(), &["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SPEC.as_bytes()).unwrap();
    let (code, out, err) = told(&child.wait_with_output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("service classify"), "{out}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_plan_ends_with_130_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ent"), SPEC).unwrap();
    let mut child = entc(folder.path(), &["plan", "-", "-o", "plan.json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _open = child.stdin.take();
    // The spec never comes: the command is sure to be waiting for it when the signal arrives. It may not
    // listen yet; the signal then ends it in the ordinary way.
    let status = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let output = child.wait_with_output().unwrap();
    let is_ended_by_signal = output.status.code().is_none();
    assert!(is_ended_by_signal || output.status.code() == Some(130), "{output:?}");
    assert!(!folder.path().join("plan.json").exists());
}
