//! Ways out: what is left when a state, a permission, a GPU or the room that was counted on is gone.

use crate::judge::Start;
use crate::single::{A100, applied, destroyed, drifts, machine, run, wish, with};
use crate::worker::{Action, Job};
use crate::world::{Lab, World};
use ent_machine::apply::Outcome;
use ent_machine::drift;
use ent_machine::error::{ApplyError, StoreError};
use ent_machine::import;
use ent_machine::preflight::Allowed;
use ent_machine::rollback::rollback;
use ent_nvml_sim::silicon::{Device, Placement, Silicon};
use serde_json::json;

const GPU: Device = Device::Gpu(0);

/// Somebody makes an instance of the profile with this id.
fn made(world: &World, profile: u32, start: u32, size: u32) {
    world.change(|s| s.create_gpu_instance(GPU, profile, Some(Placement { start, size })).unwrap());
}

#[test]
fn a_reset_to_take_back_what_had_ended_is_to_be_allowed_anew() {
    let lab = Lab::new();
    let target = [("3g.40gb", 0), ("2g.20gb", 4)];
    let unallowed = |world: &World| {
        with(world, |means| {
            means.allowed = Allowed::default();
            rollback(means, false)
        })
    };
    let world = machine(&lab, A100, false, &[&[]]);
    applied(&world, &wish(&world, 0, &target));
    let ended = Start::of(&world);
    let (report, refused) = unallowed(&world);
    assert_eq!(report.outcome, Outcome::Unchanged);
    assert!(
        matches!(&refused, Err(ApplyError::Refused(all)) if all.iter().any(|r| r.code == "reset-required")),
        "{refused:?}"
    );
    assert!(ended.is_same(&world.snapshot()) && !world.is_open());
    assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
    // An open one was allowed it when it began.
    let world = machine(&lab, A100, false, &[&[]]);
    let start = Start::of(&world);
    let mut job = Job::new(&world, Action::Apply(wish(&world, 0, &target)));
    job.interrupt_after = Some(3);
    assert_eq!(job.run().outcome, "open");
    let (report, result) = unallowed(&world);
    assert_eq!((report.outcome, result.is_ok()), (Outcome::RolledBack, true));
    assert!(start.is_same(&world.snapshot()));
}

#[test]
fn what_stands_in_the_way_of_an_open_transaction_can_be_imported() {
    let lab = Lab::new();
    for is_cut in [false, true] {
        for (action, ending) in [(Action::Resume, "done"), (Action::Rollback, "rolled-back")] {
            let world = machine(&lab, A100, false, &[&[]]);
            let start = Start::of(&world);
            let target = wish(&world, 0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
            let mut job = Job::new(&world, Action::Apply(target.clone()));
            job.interrupt_after = Some(3);
            assert_eq!(job.run().outcome, "open");
            if is_cut {
                // Nothing proves that what is at slice 0 is entc's.
                let path = world.store().journal_path();
                let text = std::fs::read_to_string(&path).unwrap();
                std::fs::write(path, format!("{}\n", text.lines().next().unwrap())).unwrap();
            } else {
                made(&world, 9, 4, 4);
            }
            assert_eq!(run(&world, Action::Resume).codes, ["foreign-instance"]);
            assert_eq!(run(&world, Action::Rollback).codes, ["foreign-instance"]);
            let at = if is_cut { 0 } else { 4 };
            let (report, result) = with(&world, |means| import::import(means, None));
            assert_eq!((report.outcome, result.is_ok()), (Outcome::Open, true), "{result:?}");
            assert_eq!(report.notes[0], format!("3g.40gb at slice {at} of gpu 0 is entc's now"));
            assert!(report.notes[1].contains("entc rollback"), "{:?}", report.notes);
            // Nothing else is in the way, so nothing else is adopted.
            let (_, again) = with(&world, |means| import::import(means, None));
            assert!(matches!(again, Err(ApplyError::Refused(all)) if all[0].code == "open-journal"));
            let said = run(&world, action);
            assert_eq!((said.outcome.as_str(), said.error), (ending, None));
            if ending == "done" {
                start.is_plan(&target, &world.snapshot());
                assert_eq!(world.state().ours().len(), 2);
            } else {
                assert!(start.is_same(&world.snapshot()));
                assert!(world.state().gpus.is_empty());
            }
        }
    }
}

#[test]
fn how_a_gpu_was_that_is_given_up_is_not_forgotten() {
    let lab = Lab::new();
    let world = machine(&lab, A100, false, &[&[]]);
    let lost = json!({ "call": "nvmlDeviceSetGpuLockedClocks", "occurrence": 1, "when": "before",
                       "what": { "lost": 0 } });
    world.set_faults(&json!([lost]));
    assert_eq!(run(&world, Action::Apply(wish(&world, 0, &[("1g.10gb", 0)]))).outcome, "open");
    let (_, refused) = with(&world, |means| rollback(means, false));
    let Err(ApplyError::Refused(refusals)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusals[0].code, "gpu-lost");
    assert!(!refusals[0].help.contains('\n') && refusals[0].help.contains("--without-lost"));
    let (report, result) = with(&world, |means| rollback(means, true));
    assert_eq!((report.outcome, result.is_ok()), (Outcome::RolledBack, true));
    let before = world.state().gpus[&world.uuids[0]].before;
    assert_eq!((before.mig, before.persistence), (Some(false), Some(false)));
    world.set_faults(&json!([]));
    world.change(Silicon::reboot);
    // MIG mode of this board outlives the boot.
    assert!(drifts(&world).contains(&"MIG mode: off -> on".to_owned()), "{:?}", drifts(&world));
    destroyed(&world);
    assert!(!world.snapshot().gpus[0].mig && world.state().gpus.is_empty());
}

#[test]
fn instances_of_others_that_were_there_at_the_apply_are_no_drift() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[("1g.10gb", 6)]]);
    let target = wish(&world, 0, &[("3g.40gb", 0)]);
    applied(&world, &target);
    assert!(drifts(&world).is_empty(), "{:?}", drifts(&world));
    made(&world, 19, 4, 1);
    let found = drift::drift(&world.state(), &world.driver().observe().unwrap());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].found.contains("not entc's") && !found[0].is_reasserted, "{found:?}");
    // Another apply has seen it; it had nothing to do, and does not take the way back.
    let journal = std::fs::read(world.store().journal_path()).unwrap();
    applied(&world, &target);
    assert!(drifts(&world).is_empty(), "{:?}", drifts(&world));
    assert_eq!(std::fs::read(world.store().journal_path()).unwrap(), journal);
}

#[test]
fn a_state_that_is_lost_is_not_one_of_an_untouched_machine() {
    let lab = Lab::new();
    let world = machine(&lab, A100, false, &[&[]]);
    let start = Start::of(&world);
    applied(&world, &wish(&world, 0, &[("3g.40gb", 0)]));
    std::fs::remove_file(world.store().state_path()).unwrap();
    let error = world.store().state().unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
    assert_eq!(error.word(), "state-missing");
    assert!(error.help().contains("entc rollback"));
    // The journal alone is the way back.
    assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
    assert!(start.is_same(&world.snapshot()));
    // What was rolled back to nothing, or is open and has not written one yet, has no state to lose.
    std::fs::remove_file(world.store().state_path()).unwrap();
    assert!(world.state().gpus.is_empty());
    let mut job = Job::new(&world, Action::Apply(wish(&world, 0, &[("1g.10gb", 0)])));
    job.interrupt_after = Some(1);
    assert_eq!(job.run().outcome, "open");
    assert!(world.state().gpus.is_empty());
}

#[test]
fn a_power_limit_that_somebody_changes_is_drift_and_comes_back() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[]]);
    let start = Start::of(&world);
    applied(&world, &wish(&world, 0, &[("3g.40gb", 0)]));
    world.change(|s| s.set_power_limit(GPU, 200_000).unwrap());
    assert_eq!(drifts(&world), ["power limit: 300 W -> 200 W"]);
    destroyed(&world);
    assert_eq!(world.snapshot().gpus[0].power_limit_mw, start.machine.gpus[0].power_limit_mw);
    assert!(world.state().gpus.is_empty());
}

#[test]
fn it_is_said_once_that_the_lock_of_somebody_else_does_not_come_back() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[], &[]]);
    let n_said =
        |notes: &[String]| notes.iter().filter(|n| n.contains("such a lock is not restored")).count();
    let mut both = wish(&world, 0, &[("3g.40gb", 0)]);
    both.gpus.extend(wish(&world, 1, &[("3g.40gb", 0)]).gpus);
    applied(&world, &both);
    assert_eq!(n_said(&run(&world, Action::Rollback).notes), 1);
    // Over a lock of ours nothing is lost.
    applied(&world, &both);
    let mut other = wish(&world, 0, &[("3g.40gb", 0)]);
    other
        .gpus
        .values_mut()
        .for_each(|w| w.sm_clock = ent_machine::target::ClockTarget::Locked { min: 900, max: 900 });
    applied(&world, &other);
    assert_eq!(n_said(&run(&world, Action::Rollback).notes), 0);
}
