//! The life of a machine under entc: planned, applied, changed, taken back, given back.

use crate::machine::{Bench, QUICK};
use serde_json::{Value, json};

/// Every command says which library it talks to, also when little is to be said.
const SAID: &str = "nvml: simulated machine in ";

#[test]
fn a_machine_goes_from_plan_to_plan_and_back_to_what_it_was() {
    let bench = Bench::new();
    let (code, _, err) = bench.entc(&[&["plan", "a.ent", "-o", "a.json", "--quiet"], &QUICK[..]].concat());
    assert_eq!(code, 0);
    assert!(err.contains("made a simulated machine with 2 x a100-80gb-pcie") && err.contains(SAID), "{err}");
    let untouched = bench.machine();

    let (code, out, err) = bench.entc(&["diff", "a.json", "--detailed-exitcode"]);
    assert_eq!(code, 2, "{err}");
    assert!(out.contains("+ create 4g.40gb at slice 0") && out.contains("left as they are: gpu 1"), "{out}");
    assert!(out.contains("--allow-reset"), "what apply would refuse is said: {out}");
    assert_eq!(bench.machine(), untouched, "diff changes nothing");

    let (code, out, err) = bench.entc(&["apply", "a.json", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Applied") && out.contains("reads back as planned"), "{out}");
    assert!(err.contains("1/4  gpu 0: turn MIG mode on (the board resets)") && err.contains(SAID), "{err}");
    let first = bench.machine();
    assert_eq!(first[0].2, ["4g.40gb@0"]);
    assert_eq!((&first[0].1, &first[1]), (&json!(420), &untouched[1]), "the other board is left alone");

    let (code, out, _) = bench.entc(&["observe"]);
    assert_eq!(code, 0);
    for words in ["4g.40gb", "ours", "classify", "W simulated", "420 MHz", "MIG-"] {
        assert!(out.contains(words), "{words} is missing from {out}");
    }
    assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 0);

    let (code, out, _) = bench.entc(&["apply", "a.json"]);
    assert_eq!(code, 0);
    assert!(out.contains("nothing to do"), "{out}");
    assert_eq!(bench.machine(), first);

    bench.plan("b");
    let (code, _, err) = bench.entc(&["apply", "b.json"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine()[0].2, ["7g.80gb@0"]);
    let (code, out, err) = bench.entc(&["rollback"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Rolled back"), "{out}");
    assert_eq!(bench.machine(), first, "back to the first plan");
    assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 0);

    let (code, _, err) = bench.entc(&["destroy", "--auto-approve"]);
    assert_eq!(code, 3);
    assert!(err.contains("error[reset-required]") && err.contains("nothing was changed"), "{err}");
    let (code, out, err) = bench.entc(&["destroy", "--auto-approve", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Given back"), "{out}");
    assert_eq!(bench.machine(), untouched, "as if entc had never been here");
}

#[test]
fn every_step_is_told_as_a_line_of_json_and_the_last_line_says_how_it_ended() {
    let bench = Bench::planned();
    let (code, events) = bench.events(&["apply", "a.json", "--allow-reset"]);
    assert_eq!(code, 0);
    assert!(events.iter().all(|event| event["format_version"] == "1.0"));
    let words: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let steps = events[0]["steps"].as_array().unwrap();
    assert_eq!((words[0], words[words.len() - 2], words[words.len() - 1]), ("start", "verifying", "end"));
    let started: Vec<&Value> =
        events.iter().filter(|e| e["event"] == "step-started").map(|e| &e["step"]).collect();
    assert_eq!(started, steps.iter().collect::<Vec<_>>(), "what was said is what is done");
    let end = events.last().unwrap();
    assert_eq!((&end["outcome"], &end["exit_code"]), (&json!("done"), &json!(0)));
    assert_eq!(end["done"].as_array().unwrap(), steps);
    // A refusal is a line too, and the only one.
    bench.plan("b");
    let plan = std::fs::read_to_string(bench.path().join("b.json")).unwrap();
    std::fs::write(bench.path().join("b.json"), plan.replace("780", "1410")).unwrap();
    let (code, events) = bench.events(&["apply", "b.json"]);
    assert_eq!((code, events.len()), (1, 1));
    assert_eq!(events[0]["outcome"], "unchanged");
    assert_eq!(events[0]["diagnostics"][0]["code"], "plan-checksum");
}

#[test]
fn reports_are_json_with_a_version() {
    let bench = Bench::planned();
    let (code, diff) = bench.json(&["diff", "a.json"]);
    assert_eq!((code, &diff["has_changes"], &diff["n_destroyed"]), (0, &json!(true), &json!(0)));
    assert_eq!(diff["refusals"][0]["code"], "reset-required");
    assert_eq!(diff["untouched"].as_array().unwrap().len(), 1);
    assert_eq!(bench.entc(&["apply", "a.json", "--allow-reset", "--quiet"]).0, 0);
    let (_, seen) = bench.json(&["observe"]);
    assert_eq!(seen["ours"][0]["service"], "classify");
    assert_eq!(seen["node"], "box");
    assert!(seen["open_journal"].is_null() && seen["observed"]["is_simulated"] == true);
    let (_, drift) = bench.json(&["drift"]);
    assert_eq!((&drift["has_drifted"], &drift["plan"]), (&json!(false), &seen["plan"]));
    let (_, imported) = bench.json(&["import"]);
    assert_eq!(imported["imported"], json!([]));
    let (code, findings) = bench.json(&["doctor"]);
    assert_eq!((code, &findings["is_ready"]), (0, &json!(true)));
    for value in [diff, seen, drift, imported, findings] {
        assert_eq!(value["format_version"], "1.0", "{value}");
    }
}

#[test]
fn a_spec_is_planned_shown_and_applied_at_once_when_nobody_is_to_be_asked() {
    let bench = Bench::new();
    let arguments = [&["apply", "a.ent", "--auto-approve", "--allow-reset"], &QUICK[..]].concat();
    let (code, out, err) = bench.entc(&arguments);
    assert_eq!(code, 0, "{err}");
    for words in ["p99", "+ create 4g.40gb at slice 0", "Applied: 4 steps"] {
        assert!(out.contains(words), "{words} is missing from {out}");
    }
    let (code, out, _) = bench.entc(&[&["diff", "a.ent", "--detailed-exitcode"], &QUICK[..]].concat());
    assert_eq!(code, 0);
    assert!(out.contains("nothing to do"), "{out}");
}

#[test]
fn what_somebody_else_changes_is_drift_and_is_brought_back() {
    let bench = Bench::applied();
    let before = bench.machine();
    let store = bench.store();
    let gone = store.with_mut(|silicon| {
        let gpu = silicon.gpu_by_index(0).unwrap();
        let profile = silicon.gpu_instance_profile(gpu, 3).unwrap().id;
        let instance = silicon.gpu_instances(gpu, profile).unwrap()[0];
        for serial in silicon.compute_instances(instance, 3).unwrap() {
            silicon.destroy_compute_instance(serial).unwrap();
        }
        silicon.destroy_gpu_instance(instance)
    });
    gone.unwrap().unwrap();
    let (code, out, _) = bench.entc(&["drift", "--detailed-exitcode"]);
    assert_eq!(code, 2);
    assert!(out.contains("4g.40gb"), "{out}");
    let (code, report) = bench.json(&["drift"]);
    assert_eq!((code, &report["has_drifted"]), (0, &json!(true)));
    let (code, _, err) = bench.entc(&["apply", "--reassert"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine(), before);
    assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 0);
}

#[test]
fn a_boot_takes_instances_and_reassert_brings_them_back() {
    let bench = Bench::applied();
    let before = bench.machine();
    bench.reboot();
    assert_eq!(bench.entc(&["drift", "--detailed-exitcode"]).0, 2);
    let (code, _, err) = bench.entc(&["apply", "--reassert"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine(), before);
}

#[test]
fn reassert_takes_the_plan_that_holds_after_a_rollback() {
    let bench = Bench::applied();
    let first = bench.machine();
    bench.plan("b");
    assert_eq!(bench.entc(&["apply", "b.json"]).0, 0);
    let second = bench.machine();
    bench.reboot();
    assert_eq!(bench.entc(&["apply", "--reassert"]).0, 0);
    assert_eq!(bench.machine(), second);
    // What was undone is the re-assertion: the plan that holds is still the second.
    bench.plan("a");
    assert_eq!(bench.entc(&["apply", "a.json"]).0, 0);
    assert_eq!(bench.machine(), first);
    assert_eq!(bench.entc(&["rollback"]).0, 0);
    bench.reboot();
    let (code, _, err) = bench.entc(&["apply", "--reassert"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine(), second, "the plan before the one that was rolled back");
}

#[test]
fn foreign_instances_are_left_alone_until_they_are_imported() {
    let bench = Bench::new();
    std::fs::create_dir(bench.sim()).unwrap();
    let machine = "driver_version = \"580.82.07\"\n[[gpu]]\nboard = \"a100-80gb-pcie\"\ncount = 2\nmig = true\n\
                   instances = [{ profile = \"1g.10gb\", start = 6 }]\n";
    std::fs::write(bench.sim().join("machine.toml"), machine).unwrap();
    bench.plan("a");
    let (code, _, err) = bench.entc(&["apply", "a.json"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0", "1g.10gb@6"], "it fits beside, and stays");
    let (_, out, _) = bench.entc(&["observe"]);
    assert!(out.contains("ours") && out.contains("foreign"), "{out}");
    bench.plan("b");
    let (code, _, err) = bench.entc(&["apply", "b.json"]);
    assert_eq!(code, 3);
    assert!(err.contains("foreign") && err.contains("entc import"), "{err}");
    let (code, report) = bench.json(&["import", "--gpu", "0"]);
    assert_eq!(code, 0);
    assert_eq!(report["imported"].as_array().unwrap().len(), 1, "{report}");
    let (code, _, err) = bench.entc(&["apply", "b.json"]);
    assert_eq!(code, 0, "{err}");
    let now = bench.machine();
    assert_eq!(
        (now[0].2.as_slice(), now[1].2.as_slice()),
        (&["7g.80gb@0".to_owned()][..], &["1g.10gb@6".to_owned()][..])
    );
    let (code, _, err) = bench.entc(&["import", "--gpu", "7"]);
    assert_eq!(code, 1);
    assert!(err.contains("no GPU `7`") && err.contains("GPU-"), "{err}");
}

#[test]
fn a_plan_made_offline_is_bound_to_the_machine_and_says_so() {
    let bench = Bench::new();
    let mut offline =
        crate::run::entc(bench.path(), &[&["plan", "a.ent", "-o", "a.json"], &QUICK[..]].concat());
    assert!(offline.output().unwrap().status.success());
    let plan: Value = serde_json::from_slice(&std::fs::read(bench.path().join("a.json")).unwrap()).unwrap();
    assert!(plan["machine"].is_null() && plan["gpus"][0]["uuid"].is_null());
    let (code, out, err) = bench.entc(&["apply", "a.json", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("planned offline; bound here: gpu 0 = GPU-"), "{out}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0"]);
    // Planned for the machine, a plan has its UUIDs and what it was.
    bench.plan("b");
    let plan: Value = serde_json::from_slice(&std::fs::read(bench.path().join("b.json")).unwrap()).unwrap();
    assert_eq!(plan["machine"]["gpus"][0]["instances"], json!(["4g.40gb@0"]));
    assert_eq!(plan["machine"]["gpus"][0]["uuid"], plan["gpus"][0]["uuid"]);
    assert_eq!(plan["machine"]["is_simulated"], true);
}

#[test]
fn a_unit_applies_the_plan_after_every_boot_until_the_machine_is_given_back() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::planned();
    let (units, programs) = (bench.path().join("units"), bench.path().join("bin"));
    std::fs::create_dir(&units).unwrap();
    std::fs::create_dir(&programs).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = bench.command(&[arguments, &["--unit-dir", "units"]].concat());
        crate::run::told(&command.env("PATH", &programs).output().unwrap())
    };
    let unit = units.join("entc-reassert.service");
    // A system without systemd: the machine is as planned, and that nothing will bring it back is said.
    let (code, out, err) = run(&["apply", "a.json", "--allow-reset", "--persist"]);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("Applied") && err.contains("error[not-persistent]"), "{err}");
    let systemctl = programs.join("systemctl");
    std::fs::write(&systemctl, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, _, err) = run(&["apply", "a.json", "--allow-reset", "--persist"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("applied again after every boot"), "{err}");
    let text = std::fs::read_to_string(&unit).unwrap();
    let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<&str> = start.split_whitespace().map(|word| word.trim_matches('"')).collect();
    assert_eq!(words[1..3], ["apply", "--reassert"], "{text}");
    // What it would run works, without the environment and the folder of whoever installed it.
    bench.reboot();
    let status = std::process::Command::new(words[0]).args(&words[1..]).env_clear().current_dir("/").output();
    let (code, _, err) = crate::run::told(&status.unwrap());
    assert_eq!(code, 0, "{err}");
    assert_eq!(bench.machine()[0].2, ["4g.40gb@0"]);
    // What systemd says does not change that the machine is given back.
    std::fs::write(&systemctl, "#!/bin/sh\necho 'no bus' >&2\nexit 1\n").unwrap();
    let (code, out, err) = run(&["destroy", "--auto-approve", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("Given back") && (err.contains("no bus") || !unit.exists()), "{err}");
    std::fs::write(&systemctl, "#!/bin/sh\nexit 0\n").unwrap();
    let (code, _, err) = run(&["destroy", "--auto-approve", "--allow-reset"]);
    assert_eq!(code, 0, "{err}");
    assert!(!unit.exists(), "nothing brings it back");
}
