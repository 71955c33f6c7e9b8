//! What is refused before anything is changed: who says no, why, and what to do.

use crate::machine::{Bench, QUICK};
use crate::run::{entc, names, told};
use ent_plan::plan::{Plan, seal};
use serde_json::{Value, json};
use std::path::Path;

/// Edits a plan as if a planner had made it so.
fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut plan: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    change(&mut plan);
    let mut plan: Plan = serde_json::from_value(plan).unwrap();
    seal(&mut plan);
    std::fs::write(path, serde_json::to_string(&plan).unwrap()).unwrap();
}

#[track_caller]
fn refused(bench: &Bench, arguments: &[&str], exit: i32, words: &[&str]) {
    let before = bench.machine();
    let (code, _, err) = bench.entc(arguments);
    assert_eq!(code, exit, "{arguments:?}: {err}");
    for word in words {
        assert!(err.contains(word), "{arguments:?}: {word} is missing from {err}");
    }
    assert_eq!(bench.machine(), before, "{arguments:?}");
}

#[test]
fn a_stale_plan_is_refused_with_every_field_that_differs() {
    let bench = Bench::planned();
    let path = bench.path().join("a.json");
    let fresh = std::fs::read(&path).unwrap();
    for (place, value, words) in [
        (
            "/machine/driver_version",
            json!("550.54.15"),
            &["driver version", "planned 550.54.15", "observed 580"][..],
        ),
        ("/gpus/0/uuid", json!("GPU-0"), &["uuid", "planned GPU-0", "observed GPU-"]),
        ("/machine/is_simulated", json!(false), &["machine", "planned real", "observed simulated"]),
        ("/machine/gpus/0/mig", json!(true), &["MIG mode of gpu 0", "planned on", "observed off"]),
        (
            "/machine/gpus/0/instances",
            json!(["3g.40gb@4"]),
            &["instances of gpu 0", "planned 3g.40gb@4", "observed none"],
        ),
    ] {
        std::fs::write(&path, &fresh).unwrap();
        edit(&path, |plan| *plan.pointer_mut(place).unwrap() = value);
        let all = [&["error[stale-plan]", "nothing was changed", "plan again"], words].concat();
        refused(&bench, &["apply", "a.json", "--allow-reset"], 3, &all);
        let (code, _, err) = bench.entc(&["diff", "a.json"]);
        assert_eq!(code, 1, "a command that only reads: {err}");
    }
    // What another plan did since makes a plan stale as well.
    std::fs::write(&path, &fresh).unwrap();
    bench.plan("b");
    assert_eq!(bench.entc(&["apply", "b.json", "--allow-reset"]).0, 0);
    refused(&bench, &["apply", "a.json"], 3, &["instances of gpu 0: planned none, observed 7g.80gb@0"]);
}

#[test]
fn an_edited_plan_is_refused_as_a_wrong_file_and_not_as_a_wrong_machine() {
    let bench = Bench::planned();
    let path = bench.path().join("a.json");
    let fresh = std::fs::read_to_string(&path).unwrap();
    let apply = ["apply", "a.json", "--allow-reset"];
    std::fs::write(&path, fresh.replace("\"sm_clock_mhz\": 420", "\"sm_clock_mhz\": 1410")).unwrap();
    refused(&bench, &apply, 1, &["error[plan-checksum]", "sha256:"]);
    for (place, value) in [
        ("/gpus/0/instances/0/start", json!(1)),
        ("/gpus/0/instances/0/profile", json!("4g.41gb")),
        ("/gpus/0/sm_clock_mhz", json!(421)),
    ] {
        std::fs::write(&path, &fresh).unwrap();
        edit(&path, |plan| *plan.pointer_mut(place).unwrap() = value);
        refused(&bench, &apply, 1, &["error[plan-check-failed]"]);
    }
    std::fs::write(&path, fresh.replace("\"format_version\": \"1.", "\"format_version\": \"2.")).unwrap();
    refused(&bench, &apply, 1, &["error[invalid-plan]"]);
    std::fs::write(&path, &fresh[..fresh.len() / 2]).unwrap();
    refused(&bench, &apply, 1, &["error[invalid-plan]", "ends here"]);
    refused(&bench, &["apply", "none.json"], 1, &["error[missing-file]"]);
    refused(&bench, &["apply", "a.json", "--planner", "greedy"], 1, &["error[usage]"]);
}

#[test]
fn without_rights_everything_is_seen_and_nothing_changed() {
    let bench = Bench::planned();
    let toml = bench.sim().join("machine.toml");
    let text = std::fs::read_to_string(&toml).unwrap();
    std::fs::write(&toml, text.replace("privileged = true", "privileged = false")).unwrap();
    assert_eq!(bench.entc(&["observe"]).0, 0);
    let (code, out, err) = bench.entc(&["diff", "a.json"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("no-permission"), "{out}");
    refused(
        &bench,
        &["apply", "a.json", "--allow-reset"],
        3,
        &["error[no-permission]", "nothing was changed"],
    );
    // Whoever asks may have to ask again as root: a warning, no problem of the machine.
    let (code, findings) = bench.json(&["doctor"]);
    let is_rights = |check: &&Value| check["name"] == "rights";
    let rights = findings["checks"].as_array().unwrap().iter().find(is_rights).unwrap();
    assert_eq!((code, &rights["verdict"]), (1, &json!("problem")), "{findings}");
    assert!(rights["fix"].is_string());
}

#[test]
fn without_a_library_the_simulated_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["observe", "drift"] {
        let (code, out, err) =
            told(&entc(folder.path(), &[command, "--nvml", "./no-such.so"]).output().unwrap());
        assert_eq!((code, out.as_str()), (1, ""));
        assert!(err.contains("error[no-library]") && err.contains("--nvml simulated"), "{err}");
    }
    let (code, _, err) =
        told(&entc(folder.path(), &["rollback", "--nvml", "./no-such.so"]).output().unwrap());
    assert_eq!(code, 3, "a command that would change the machine: {err}");
    std::fs::write(folder.path().join("text.so"), "no library").unwrap();
    let (code, _, err) = told(&entc(folder.path(), &["observe", "--nvml", "./text.so"]).output().unwrap());
    assert_eq!(code, 1);
    assert!(err.contains("error[library-not-loadable]"), "{err}");
    let mut command = entc(folder.path(), &["observe", "--nvml", "simulated", "--sim-state", "sim"]);
    let (code, _, err) = told(&command.output().unwrap());
    assert_eq!(code, 1);
    assert!(
        err.contains("error[no-simulated-machine]") && err.contains("entc plan FILE --nvml simulated"),
        "{err}"
    );
    assert!(!folder.path().join("sim").exists(), "looking makes nothing");
}

#[test]
fn a_simulated_machine_that_cannot_be_is_told_of_by_file_line_and_reason() {
    let bench = Bench::planned();
    let machine = bench.sim().join("machine.toml");
    let good = std::fs::read_to_string(&machine).unwrap();
    let place = format!("{}:1: ", machine.display());
    for (text, words) in [
        ("x = [\n".to_owned(), ["error[wrong-simulated-machine]", place.as_str()]),
        (good.replace("a100-80gb-pcie", "a100"), ["`a100` is no board", "machine.toml: "]),
    ] {
        std::fs::write(&machine, text).unwrap();
        for (command, exit) in [("observe", 1), ("import", 3)] {
            let (code, _, err) = bench.entc(&[command]);
            assert_eq!(code, exit, "{err}");
            assert!(words.iter().all(|word| err.contains(word)) && !err.contains("not loaded"), "{err}");
        }
        let (code, out, _) = bench.entc(&["doctor"]);
        assert!(code == 1 && out.contains("machine.toml") && !out.contains("modprobe"), "{out}");
    }
    std::fs::write(&machine, good).unwrap();
    std::fs::write(bench.sim().join("state.json"), "{").unwrap();
    let (code, _, err) = bench.entc(&["observe"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("error[wrong-simulated-machine]") && err.contains("state.json"), "{err}");
}

#[test]
fn a_spec_for_other_boards_is_refused_before_it_is_planned() {
    let bench = Bench::planned();
    let spec = std::fs::read_to_string(bench.path().join("a.ent")).unwrap();
    std::fs::write(bench.path().join("a.ent"), spec.replace("x 2", "x 3")).unwrap();
    let (code, out, err) = bench.entc(&["plan", "a.ent", "-o", "new.json"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(
        err.contains("error[other-hardware]") && err.contains("node `box` has 3 x a100-80gb-pcie"),
        "{err}"
    );
    assert!(err.contains("this machine has 2 x a100-80gb-pcie"), "{err}");
    assert!(!bench.path().join("new.json").exists());
    refused(&bench, &["apply", "a.ent", "--auto-approve"], 3, &["error[other-hardware]"]);
}

#[test]
fn a_machine_that_could_be_several_nodes_must_be_named() {
    let bench = Bench::new();
    let spec = std::fs::read_to_string(bench.path().join("a.ent")).unwrap();
    let node = "  node \"box\" {\n    gpu    = a100_80gb_pcie x 2\n    unused = off\n  }\n";
    assert!(spec.contains(node));
    let two = spec.replace(node, &format!("{node}{}", node.replace("box", "rack")));
    std::fs::write(bench.path().join("a.ent"), two).unwrap();
    let plan = |node: &[&str]| bench.entc(&[&["plan", "a.ent", "-o", "a.json"], &QUICK[..], node].concat());
    let (code, _, err) = plan(&[]);
    assert_eq!(code, 1);
    assert!(err.contains("error[unknown-node]") && err.contains("box, rack"), "{err}");
    let (code, _, err) = plan(&["--node", "shelf"]);
    assert_eq!(code, 1);
    assert!(err.contains("there is no node `shelf`"), "{err}");
    let (code, _, err) = plan(&["--node", "rack"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = bench.entc(&["diff", "a.json"]);
    assert_eq!(code, 1);
    assert!(err.contains("error[unknown-node]"), "{err}");
    assert_eq!(bench.entc(&["diff", "a.json", "--node", "rack"]).0, 0);
}

#[test]
fn a_spec_is_not_applied_without_a_yes() {
    let bench = Bench::planned();
    refused(&bench, &["apply", "a.ent"], 1, &["error[usage]", "--auto-approve"]);
    refused(&bench, &["apply", "a.ent", "--format", "json-lines"], 1, &["error[usage]", "--auto-approve"]);
    refused(&bench, &["destroy"], 1, &["error[usage]", "--auto-approve"]);
    assert!(!bench.state().exists(), "nothing was begun");
}

#[test]
fn only_a_whole_yes_on_a_terminal_is_one() {
    for (answer, exit) in [("yes\n", 0), ("y\n", 3), ("no\n", 3), ("\u{4}", 3)] {
        let bench = Bench::planned();
        let before = bench.machine();
        let terminal = Terminal::open();
        let arguments = [&["apply", "a.ent", "--allow-reset"], &QUICK[..]].concat();
        let mut command = bench.command(&arguments);
        let child = command
            .stdin(terminal.user_side())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // A terminal keeps what is typed until it is read.
        terminal.type_in(answer);
        let (code, _, err) = told(&child.wait_with_output().unwrap());
        assert_eq!(code, exit, "{answer:?}: {err}");
        assert!(err.contains("Take these 4 steps?"), "{err}");
        assert_eq!(bench.machine() == before, exit != 0, "{answer:?}");
    }
}

/// A terminal without a screen.
struct Terminal {
    controller: std::fs::File,
    path: std::ffi::CString,
}

impl Terminal {
    fn open() -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let path = ptsname(&controller, Vec::new()).unwrap();
        Self { controller: controller.into(), path }
    }

    fn user_side(&self) -> std::fs::File {
        let path = self.path.to_str().unwrap();
        std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap()
    }

    fn type_in(&self, text: &str) {
        use std::io::Write;
        (&self.controller).write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn a_state_of_a_newer_entc_or_a_damaged_one_is_not_touched() {
    let bench = Bench::applied();
    let path = bench.state().join("state.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut state: Value = serde_json::from_str(&good).unwrap();
    state["format_version"] = "9.0".into();
    for (text, word) in
        [(state.to_string(), "newer-state"), (good[..good.len() / 2].to_owned(), "damaged-state")]
    {
        std::fs::write(&path, &text).unwrap();
        let (code, _, err) = bench.entc(&["drift"]);
        assert_eq!(code, 1);
        assert!(err.contains(&format!("error[{word}]")) && err.contains("state.json"), "{err}");
        // The machine itself can be looked at; whose the instances are is not known.
        let (code, out, err) = bench.entc(&["observe"]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("unknown") && !out.contains("ours") && !out.contains("foreign"), "{out}");
        assert!(err.contains(&format!("warning[{word}]")) && err.contains("is not known"), "{err}");
        let (_, seen) = bench.json(&["observe"]);
        assert_eq!((&seen["ours"], &seen["warnings"][0]["code"]), (&json!([]), &json!(word)));
        let (code, findings) = bench.json(&["doctor"]);
        assert_eq!(
            (code, &findings["checks"].as_array().unwrap().last().unwrap()["verdict"]),
            (1, &json!("problem"))
        );
        for arguments in
            [&["apply", "a.json"][..], &["destroy", "--auto-approve"], &["import"], &["apply", "--reassert"]]
        {
            let (code, _, err) = bench.entc(arguments);
            assert_eq!(code, 3, "{arguments:?}: {err}");
            assert!(err.contains(&format!("error[{word}]")), "{arguments:?}: {err}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it is as it was");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_anything_is_changed() {
    let bench = Bench::planned();
    // A file stands where the folder should be: refused to everybody, root included.
    std::fs::write(bench.path().join("file"), "").unwrap();
    for folder in ["file", "file/deeper"] {
        let arguments = ["apply", "a.json", "--allow-reset", "--state", folder];
        refused(&bench, &arguments, 3, &["error[cannot-write]", "--state DIR", "nothing was changed"]);
    }
    let arguments = ["apply", "a.json", "--allow-reset", "--persist", "--unit-dir", "no/such"];
    refused(&bench, &arguments, 3, &["error[cannot-write]", "--unit-dir DIR"]);
}

#[test]
fn nothing_to_go_on_with_or_back_to_is_said() {
    let bench = Bench::planned();
    refused(&bench, &["apply", "--resume"], 3, &["error[", "nothing was changed"]);
    refused(&bench, &["rollback"], 3, &["error[nothing-to-roll-back]"]);
    refused(&bench, &["apply", "--reassert"], 3, &["error[nothing-applied]"]);
    let (code, out, _) = bench.entc(&["destroy", "--auto-approve"]);
    assert_eq!(code, 0);
    assert!(out.contains("nothing to do"), "{out}");
}

#[test]
fn what_entc_remembers_may_be_read_by_everybody_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::planned();
    let apply = bench.command(&["apply", "a.json", "--allow-reset"]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 077; exec \"$0\" \"$@\""]).arg(apply.get_program()).args(apply.get_args());
    shell.current_dir(bench.path()).envs(apply.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (code, _, err) = told(&shell.output().unwrap());
    assert_eq!(code, 0, "{err}");
    for (name, mode) in [("", 0o755), ("state.json", 0o644), ("journal.jsonl", 0o644)] {
        let found = std::fs::metadata(bench.state().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}: {found:o}");
    }
}

#[test]
fn two_plans_of_one_folder_do_not_leave_files_behind() {
    let bench = Bench::applied();
    let kept = names(&bench.state());
    assert_eq!(kept, ["journal.jsonl", "lock", "plan.json", "state.json"]);
    bench.plan("b");
    assert_eq!(bench.entc(&["apply", "b.json"]).0, 0);
    let more = names(&bench.state());
    assert_eq!(
        more,
        ["journal.jsonl", "journal.previous.jsonl", "lock", "plan.json", "plan.previous.json", "state.json"]
    );
}
