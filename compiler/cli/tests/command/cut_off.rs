//! Applies that fail, crash or are stopped: the machine is as planned or as it was, or the journal says how
//! to get there.

use crate::machine::Bench;
use ent_machine::store::Store;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// The call that creates an instance.
const CREATE: &str = "nvmlDeviceCreateGpuInstanceWithPlacement";

#[test]
fn a_step_that_fails_takes_back_what_was_done() {
    let bench = Bench::planned();
    let before = bench.machine();
    bench.fault(CREATE, 1, "before", json!({ "error": "insufficient-resources" }));
    let (code, out, err) = bench.entc(&["apply", "a.json", "--allow-reset"]);
    assert_eq!(code, 3, "{err}");
    assert!(!out.contains("Applied"), "{out}");
    for words in [
        "error[insufficient-resources]",
        "create 4g.40gb at slice 0",
        CREATE,
        "now:  gone back",
        "failed ",
        "not started",
    ] {
        assert!(err.contains(words), "{words} is missing from {err}");
    }
    assert_eq!(bench.machine(), before);
    bench.no_faults();
    assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 0);
    assert_eq!(bench.entc(&["apply", "a.json", "--allow-reset"]).0, 0, "the same plan still holds");
}

#[test]
fn a_step_that_fails_is_left_when_asked_and_gone_on_from() {
    let bench = Bench::planned();
    bench.fault(CREATE, 1, "before", json!({ "error": "insufficient-resources" }));
    let (code, events) = bench.events(&["apply", "a.json", "--allow-reset", "--keep-going"]);
    assert_eq!(code, 4);
    let end = events.last().unwrap();
    assert_eq!(
        (&end["event"], &end["outcome"], &end["exit_code"]),
        (&json!("end"), &json!("open"), &json!(4))
    );
    assert_eq!(end["diagnostics"][0]["code"], "insufficient-resources");
    let journal = end["journal"].as_str().unwrap();
    assert!(std::path::Path::new(journal).is_file(), "{journal}");
    bench.no_faults();
    // Half way is known to everybody, and nothing else is begun on top of it.
    let (code, _, err) = bench.entc(&["observe"]);
    assert_eq!(code, 0);
    assert!(err.contains("warning[open-journal]"), "{err}");
    for arguments in [&["apply", "a.json", "--allow-reset"][..], &["destroy", "--auto-approve"], &["import"]]
    {
        let (code, _, err) = bench.entc(arguments);
        assert_eq!(code, 4, "{arguments:?}");
        for words in ["error[open-journal]", "--resume", "half way through an apply", "journal.jsonl"] {
            assert!(err.contains(words), "{arguments:?}: {words} is missing from {err}");
        }
        assert!(!err.contains("nothing was changed"), "{arguments:?}: {err}");
    }
    let (code, events) = bench.events(&["apply", "a.json", "--allow-reset"]);
    assert_eq!((code, &events[0]["outcome"], &events[0]["exit_code"]), (4, &json!("open"), &json!(4)));
    assert_eq!(events[0]["journal"], journal);
    assert_eq!(bench.entc(&["doctor"]).0, 1);
    let (code, out, err) = bench.entc(&["apply", "--resume"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("what was left to do") && out.contains("Applied"), "{out}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0"]);
    assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 0);
}

#[test]
fn a_crash_at_any_mutating_call_is_gone_on_from_or_back() {
    for (way, when) in [("on", "before"), ("back", "after")] {
        let mut crashes = 0;
        for occurrence in 1.. {
            let bench = Bench::planned();
            let before = bench.machine();
            bench.fault("mutating", occurrence, when, json!("kill"));
            let status = bench.command(&["apply", "a.json", "--allow-reset"]).output().unwrap().status;
            bench.no_faults();
            if status.code() == Some(0) {
                break;
            }
            assert_eq!(status.code(), None, "killed at call {occurrence}");
            crashes += 1;
            if way == "on" {
                let (code, _, err) = bench.entc(&["apply", "--resume", "--allow-reset"]);
                assert_eq!(code, 0, "{occurrence}: {err}");
                assert_eq!(bench.machine()[0].2, ["4g.40gb@0"], "{occurrence}");
            } else {
                let (code, _, err) = bench.entc(&["rollback", "--allow-reset"]);
                assert_eq!(code, 0, "{occurrence}: {err}");
                assert_eq!(bench.machine(), before, "{occurrence}");
            }
            assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 0, "{occurrence}");
        }
        assert!(crashes >= 4, "{way}: only {crashes} calls change the machine");
    }
}

#[test]
fn a_board_that_falls_off_the_bus_is_named_and_nothing_is_claimed() {
    let bench = Bench::planned();
    bench.fault(CREATE, 1, "before", json!({ "lost": 0 }));
    let (code, out, err) = bench.entc(&["apply", "a.json", "--allow-reset"]);
    assert_eq!(code, 4, "{err}");
    assert!(!out.contains("Applied") && err.contains("error[gpu-lost]") && err.contains("journal"), "{err}");
    bench.no_faults();
    let (code, out, _) = bench.entc(&["observe"]);
    assert_eq!(code, 0);
    assert!(out.contains("gpu 0: cannot be read"), "{out}");
    bench.reboot();
    let (code, _, err) = bench.entc(&["rollback", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn a_torn_journal_is_gone_on_from() {
    let bench = Bench::planned();
    bench.fault(CREATE, 1, "after", json!("kill"));
    assert_eq!(bench.command(&["apply", "a.json", "--allow-reset"]).output().unwrap().status.code(), None);
    bench.no_faults();
    let path = bench.state().join("journal.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    // The intent of a step that came about is missing, which no crash can do: what nobody wrote down is not
    // ours, and is not touched.
    std::fs::write(&path, &text[..text.len() - 9]).unwrap();
    let (code, _, err) = bench.entc(&["apply", "--resume"]);
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("error[foreign-instance]") && err.contains("half way through an apply"), "{err}");
    // A line that was cut short while it was written is what a crash leaves.
    std::fs::write(&path, format!("{text}{{\"event\":\"outco")).unwrap();
    let (code, _, err) = bench.entc(&["apply", "--resume"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0"]);
    // Without its first line a journal is none, and that is said.
    std::fs::write(&path, "{\"format_version\":").unwrap();
    for arguments in [&["rollback"][..], &["apply", "--resume"]] {
        let (code, _, err) = bench.entc(arguments);
        assert_eq!(code, 4, "{err}");
        assert!(err.contains("error[damaged-state]") && err.contains("perhaps half way"), "{err}");
    }
    // Looking at the machine goes on without entc's own files; whose the instances are is then not known.
    let (code, out, err) = bench.entc(&["observe"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("4g.40gb") && err.contains("warning[damaged-state]"), "{out}{err}");
    assert_eq!(bench.json(&["doctor"]).0, 1);
}

#[test]
fn a_mode_that_no_reset_brings_is_one_sentence_with_the_way_through_a_vm() {
    let bench = Bench::planned();
    let machine = bench.sim().join("machine.toml");
    let text = std::fs::read_to_string(&machine).unwrap();
    std::fs::write(&machine, text.replace("vm = false", "vm = true")).unwrap();
    let (code, _, err) = bench.entc(&["apply", "a.json", "--allow-reset"]);
    assert_eq!(code, 3, "{err}");
    let error = err.lines().find(|line| line.starts_with("error[")).unwrap();
    assert_eq!(error.matches("turn MIG mode on").count(), 1, "{error}");
    assert!(err.contains("reboot of the VM") && err.contains("nvidia-smi -mig 1"), "{err}");
}

/// A command that runs, and what it says on standard error.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits until it says something.
    fn wait_for(&mut self, words: &str) {
        let has_said = self.lines.by_ref().map(Result::unwrap).any(|line| line.contains(words));
        assert!(has_said, "it ended without saying `{words}`");
    }

    /// Ctrl-C.
    fn interrupt(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    /// Exit code and all that it said from here on.
    fn end(mut self) -> (Option<i32>, String) {
        let rest: Vec<String> = self.lines.by_ref().map(Result::unwrap).collect();
        (self.child.wait().unwrap().code(), rest.join("\n"))
    }
}

/// Starts an apply and holds the machine, so that it stays in its first step while `act` looks on.
fn in_the_first_step<T>(bench: &Bench, act: impl FnOnce(&mut Running) -> T) -> (T, Running) {
    // It has opened the library before it waits for its turn, and can be held at the first change.
    let turn = Store::open(&bench.state()).unwrap().lock("a test", Duration::ZERO).unwrap();
    let arguments = ["apply", "a.json", "--allow-reset", "--lock-timeout", "10m"];
    let mut running = Running::start(bench.command(&arguments));
    running.wait_for("nvml: simulated machine");
    let hold = |_: &mut ent_nvml_sim::silicon::Silicon| {
        drop(turn);
        running.wait_for("1/4");
        let acted = act(&mut running);
        (acted, running)
    };
    bench.store().with_mut(hold).unwrap()
}

#[test]
fn one_interrupt_finishes_the_step_and_saves() {
    let bench = Bench::planned();
    let ((), running) = in_the_first_step(&bench, |running| {
        running.interrupt();
        running.wait_for("the step that runs is finished first");
    });
    let (code, said) = running.end();
    assert_eq!(code, Some(4), "{said}");
    for words in [
        "error[interrupted]",
        "steps done 1, failed 0, not started 3",
        "--resume",
        "done        gpu 0: turn MIG",
    ] {
        assert!(said.contains(words), "{words} is missing from {said}");
    }
    assert_eq!(bench.machine()[0].0["current"], true, "the step is finished");
    let (code, _, err) = bench.entc(&["apply", "--resume"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0"]);
}

#[test]
fn two_interrupts_stop_at_once() {
    let bench = Bench::planned();
    let before = bench.machine();
    let (said, mut running) = in_the_first_step(&bench, |running| {
        running.interrupt();
        running.wait_for("the step that runs is finished first");
        running.interrupt();
        running.lines.by_ref().map(Result::unwrap).collect::<Vec<_>>().join("\n")
    });
    assert_eq!(running.child.wait().unwrap().code(), Some(4), "{said}");
    assert!(said.contains("journal.jsonl") && said.contains("entc rollback"), "{said}");
    let (code, _, err) = bench.entc(&["rollback", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine(), before);
}

#[test]
fn two_interrupts_at_any_moment_end_with_what_is_on_disk() {
    for moment in ["nvml: ", "1/4", "2/4", "3/4", "4/4", "reading the machine back"] {
        let bench = Bench::planned();
        let mut running = Running::start(bench.command(&["apply", "a.json", "--allow-reset"]));
        running.wait_for(moment);
        running.interrupt();
        running.interrupt();
        let (code, said) = running.end();
        let journal = Store::open(&bench.state()).unwrap().journal().unwrap();
        let is_half_way = journal.is_some_and(|journal| journal.is_open());
        assert_eq!(code == Some(4), is_half_way, "{moment}: {code:?} {said}");
        assert!(matches!(code, Some(0 | 4 | 130)), "{moment}: {code:?} {said}");
        assert_eq!(said.contains("journal.jsonl"), is_half_way, "{moment}: {said}");
    }
}

#[test]
fn a_second_apply_is_refused_by_name_or_waits() {
    let bench = Bench::planned();
    let turn = Store::open(&bench.state()).unwrap().lock("entc apply other.json", Duration::ZERO).unwrap();
    for arguments in [&["apply", "a.json", "--allow-reset"][..], &["rollback"], &["import"]] {
        let (code, _, err) = bench.entc(arguments);
        assert_eq!(code, 3, "{err}");
        let pid = format!("pid {}", std::process::id());
        for words in ["error[locked]", &pid, "entc apply other.json", "--lock-timeout"] {
            assert!(err.contains(words), "{words} is missing from {err}");
        }
    }
    // Looking needs no turn.
    for command in ["observe", "drift", "doctor"] {
        assert_eq!(bench.entc(&[command]).0, 0, "{command}");
    }
    let arguments = ["apply", "a.json", "--allow-reset", "--lock-timeout", "10m"];
    let mut waiting = Running::start(bench.command(&arguments));
    waiting.wait_for("nvml: simulated machine");
    assert!(waiting.child.try_wait().unwrap().is_none(), "it waits");
    drop(turn);
    let (code, said) = waiting.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0"]);
}
