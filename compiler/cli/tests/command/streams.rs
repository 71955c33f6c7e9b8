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
