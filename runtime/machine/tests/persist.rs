//! The systemd unit: its text, its installation through a `systemctl`, and systems without one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use ent_machine::persist::{PersistError, UNIT, install, remove, unit};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the folder for units to the child, and what it is to do.
const FOLDER: &str = "ENT_TEST_UNITS";
const TASK: &str = "ENT_TEST_TASK";

fn command() -> Vec<String> {
    ["/usr/bin/entc", "apply", "--reassert", "--state", "/var/lib/my \"entc\" 100%/$HOME"]
        .map(str::to_owned)
        .into()
}

#[test]
fn a_unit_runs_one_command_after_persistenced_and_before_kubelet() {
    let text = unit(&command());
    let exec =
        r#"ExecStart="/usr/bin/entc" "apply" "--reassert" "--state" "/var/lib/my \"entc\" 100%%/$$HOME""#;
    assert!(text.lines().any(|line| line == exec), "{text}");
    for line in ["Type=oneshot", "Before=kubelet.service", "WantedBy=multi-user.target"] {
        assert!(text.lines().any(|found| found == line), "{line}");
    }
    assert!(text.contains("nvidia-persistenced.service"));
}

/// What a child does, in whose `PATH` there is the `systemctl` of a test; nothing when the tests are run.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let words = match std::env::var(TASK).unwrap().as_str() {
        "install" => in_words(install(folder, &command())),
        _ => in_words(remove(folder)),
    };
    println!("<{words}>");
}

fn in_words<T: std::fmt::Debug>(result: Result<T, PersistError>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => error.to_string(),
    }
}

/// A folder for units, and one for programs with a `systemctl` that writes down how it is called.
fn system(script: Option<&str>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (units, programs) = (folder.path().join("units"), folder.path().join("programs"));
    std::fs::create_dir(&units).unwrap();
    std::fs::create_dir(&programs).unwrap();
    if let Some(script) = script {
        let path = programs.join("systemctl");
        let log = folder.path().join("log");
        std::fs::write(&path, format!("#!/bin/sh\necho \"$@\" >> {}\n{script}\n", log.display())).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    (folder, units)
}

fn said(folder: &Path, task: &str) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["child", "--exact", "--nocapture", "--quiet"]);
    child.env(FOLDER, folder.join("units")).env(TASK, task).env("PATH", folder.join("programs"));
    let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
    output.split(['<', '>']).nth(1).unwrap_or_else(|| panic!("{output}")).to_owned()
}

#[test]
fn a_unit_is_written_enabled_disabled_and_removed() {
    let (folder, units) = system(Some("exit 0"));
    assert_eq!(said(folder.path(), "remove"), "false");
    assert_eq!(said(folder.path(), "install"), format!("{:?}", units.join(UNIT)));
    assert_eq!(std::fs::read_to_string(units.join(UNIT)).unwrap(), unit(&command()));
    assert_eq!(std::fs::metadata(units.join(UNIT)).unwrap().permissions().mode() & 0o777, 0o644);
    // Again, over the old one.
    said(folder.path(), "install");
    assert_eq!(said(folder.path(), "remove"), "true");
    assert_eq!(std::fs::read_dir(&units).unwrap().count(), 0);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let calls: Vec<&str> = log.lines().collect();
    let enable = format!("enable {UNIT}");
    let disable = format!("disable {UNIT}");
    assert_eq!(calls, ["daemon-reload", &enable, "daemon-reload", &enable, &disable, "daemon-reload"]);
}

#[test]
fn without_systemd_it_is_said_that_nothing_starts_the_unit() {
    let (folder, units) = system(None);
    let words = said(folder.path(), "install");
    assert!(words.contains("no `systemctl`") && words.contains(units.to_str().unwrap()), "{words}");
    assert!(units.join(UNIT).exists());
    assert_eq!(said(folder.path(), "remove"), "true");
    assert!(!units.join(UNIT).exists());
}

#[test]
fn where_systemd_does_not_run_the_unit_is_written_and_removed() {
    // What systemctl says in a container.
    let said_so = "System has not been booted with systemd as init system (PID 1). Can not operate.";
    let (folder, units) = system(Some(&format!("echo '{said_so}' >&2; exit 1")));
    let words = said(folder.path(), "install");
    assert!(words.contains("not booted with systemd") && words.contains(units.to_str().unwrap()), "{words}");
    assert!(words.contains(&format!("systemctl enable {UNIT}")), "{words}");
    assert!(units.join(UNIT).exists());
    assert_eq!(said(folder.path(), "remove"), "true");
    assert!(!units.join(UNIT).exists());
}

#[test]
fn what_systemctl_refuses_is_told_in_its_words() {
    let (folder, units) = system(Some("echo 'Access denied' >&2; exit 4"));
    assert_eq!(said(folder.path(), "install"), "`systemctl daemon-reload` failed: Access denied");
    assert_eq!(said(folder.path(), "remove"), format!("`systemctl disable {UNIT}` failed: Access denied"));
    assert!(units.join(UNIT).exists(), "it may still be enabled");
    let nowhere = tempfile::tempdir().unwrap();
    assert!(said(nowhere.path(), "install").starts_with("cannot write `"));
}
