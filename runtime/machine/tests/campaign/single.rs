//! One thing at a time: what a command says, leaves behind and refuses.

use crate::judge::Start;
use crate::worker::{Action, Job, Said, said};
use crate::world::{Lab, World};
use ent_machine::apply::{Means, Outcome, Request, apply};
use ent_machine::changes::{Changes, Operation};
use ent_machine::diff::diff;
use ent_machine::error::{ApplyError, StoreError};
use ent_machine::journal::{Ending, Transaction};
use ent_machine::observed::GpuUuid;
use ent_machine::preflight::Allowed;
use ent_machine::rollback::rollback;
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_machine::{destroy, drift, import, resume, rollback as back};
use ent_nvml_sim::description::{DescribedGpu, DescribedInstance, Description};
use ent_nvml_sim::silicon::{Device, Placement, Silicon};
use serde_json::json;

pub(crate) const A100: &str = "a100-80gb-pcie";

/// A machine with one board like this for each list of foreign instances.
pub(crate) fn machine(lab: &Lab, board: &str, mig: bool, foreign: &[&[(&str, u32)]]) -> World {
    let gpu = |foreign: &&[(&str, u32)]| DescribedGpu {
        board: board.to_owned(),
        count: 1,
        mig,
        instances: foreign
            .iter()
            .map(|(profile, start)| DescribedInstance {
                profile: (*profile).to_owned(),
                start: Some(*start),
                compute: true,
            })
            .collect(),
        ..DescribedGpu::default()
    };
    let mut description = Description::of("590.10", &[]);
    description.gpu = foreign.iter().map(gpu).collect();
    lab.world(&description)
}

/// The wish for these instances, with persistence and a clock.
pub(crate) fn wish(world: &World, gpu: usize, instances: &[(&str, u32)]) -> Target {
    let instance = |(profile, start): &(&str, u32)| TargetInstance {
        profile: (*profile).to_owned(),
        start: *start,
        size: world.boards[gpu].profile(profile).unwrap().n_memory_slices,
        is_fixed: false,
        service: Some(format!("service-{start}")),
    };
    let wish = TargetGpu {
        mig: Some(true),
        services: Vec::new(),
        persistence: Some(true),
        instances: instances.iter().map(instance).collect(),
        sm_clock: ClockTarget::Locked { min: 1050, max: 1050 },
        power_limit_mw: None,
    };
    Target { gpus: [(world.uuids[gpu].clone(), wish)].into() }
}

pub(crate) fn run(world: &World, action: Action) -> Said {
    Job::new(world, action).run()
}

pub(crate) fn applied(world: &World, target: &Target) {
    let said = run(world, Action::Apply(target.clone()));
    assert_eq!((said.outcome.as_str(), &said.error), ("done", &None));
}

/// Does something with what every transaction needs.
pub(crate) fn with<T>(world: &World, act: impl FnOnce(&mut Means<'_>) -> T) -> T {
    let (driver, store) = (world.driver(), world.lock());
    let mut means = Means {
        driver: &driver,
        store: &store,
        allowed: Allowed { reset: true },
        is_privileged: true,
        keep_going: false,
        is_interrupted: &|| false,
        tell: &mut |_| {},
    };
    act(&mut means)
}

pub(crate) fn drifts(world: &World) -> Vec<String> {
    let observed = world.driver().observe().unwrap();
    let found = drift::drift(&world.state(), &observed);
    found.iter().map(|d| format!("{}: {} -> {}", d.field, d.expected, d.found)).collect()
}

#[test]
fn an_apply_is_written_down_verified_and_can_be_taken_back_after_it_ended() {
    let lab = Lab::new();
    let world = machine(&lab, A100, false, &[&[]]);
    let start = Start::of(&world);
    let target = wish(&world, 0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
    let said = run(&world, Action::Apply(target.clone()));
    // Mode, persistence, two instances, clock.
    assert_eq!((said.outcome.as_str(), said.steps), ("done", [5, 0, 0, 0]));
    start.is_plan(&target, &world.snapshot());
    assert!(drifts(&world).is_empty(), "{:?}", drifts(&world));
    let state = world.state();
    let gpu = &state.gpus[&world.uuids[0]];
    assert_eq!((state.plan.as_deref(), state.node.as_deref()), (Some("sha256:campaign"), Some("node")));
    assert_eq!(gpu.locked_sm_clock_mhz, Some((1050, 1050)));
    assert_eq!((gpu.before.mig, gpu.before.persistence), (Some(false), Some(false)));
    let services: Vec<_> = gpu.instances.iter().map(|i| (i.start, i.service.as_deref().unwrap())).collect();
    assert_eq!(services, [(0, "service-0"), (4, "service-4")]);
    // Applying again does nothing, and does not take the way back.
    let journal = std::fs::read(world.store().journal_path()).unwrap();
    let said = run(&world, Action::Apply(target));
    assert_eq!((said.outcome.as_str(), said.steps), ("done", [0; 4]));
    assert_eq!(std::fs::read(world.store().journal_path()).unwrap(), journal);
    let said = run(&world, Action::Rollback);
    assert_eq!((said.outcome.as_str(), said.error), ("rolled-back", None));
    assert!(start.is_same(&world.snapshot()));
    assert_eq!(world.state(), start.state);
    // Once is enough.
    assert_eq!(run(&world, Action::Rollback).codes, ["nothing-to-roll-back"]);
    assert_eq!(run(&world, Action::Resume).codes, ["nothing-to-resume"]);
}

#[test]
fn a_machine_that_is_not_the_one_that_was_looked_at_is_refused_by_the_field_that_differs() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[], &[]]);
    let target = wish(&world, 0, &[("1g.10gb", 0)]);
    let observed = world.driver().observe().unwrap();
    let changes = diff(&target, &observed, &world.state().on(&observed)).unwrap();
    let refused = |change: &dyn Fn(&mut Silicon)| {
        let copy = world.copy(&lab);
        copy.change(change);
        let start = Start::of(&copy);
        let (report, result) = with(&copy, |means| {
            let request = Request::without_plan(Transaction::Apply, &observed, &target, &changes);
            apply(means, &request)
        });
        assert_eq!(report.outcome, Outcome::Unchanged);
        assert_eq!((report.not_started.len(), report.done.len()), (changes.steps.len(), 0));
        assert_eq!(copy.store().journal().unwrap(), None);
        assert!(start.is_same(&copy.snapshot()));
        match result {
            Err(ApplyError::Refused(refusals)) => {
                assert!(refusals.iter().all(|refusal| refusal.code == "stale"), "{refusals:?}");
                refusals[0].message.clone()
            }
            other => panic!("{other:?}"),
        }
    };
    let gpu = Device::Gpu(0);
    let place = |start, size| Some(Placement { start, size });
    assert!(
        refused(&|s| {
            s.create_gpu_instance(gpu, 9, place(4, 4)).unwrap();
        })
        .contains("what is on instances of gpu 0 is 3g.40gb@4 (0 compute instances), and was none")
    );
    assert!(
        refused(&|s| s.set_persistence_mode(gpu, true).unwrap()).contains("persistence mode of gpu 0 is on")
    );
    assert!(refused(&|s| s.set_power_limit(gpu, 200_000).unwrap()).contains("power limit of gpu 0 is 200 W"));
    assert!(
        refused(&|s| {
            s.set_mig_mode(gpu, false).unwrap();
        })
        .contains("MIG mode of gpu 0 is off, and was on")
    );
    assert!(refused(&Silicon::reboot).contains("rebooted"));
    assert!(refused(&|s| s.lose(0).unwrap()).contains("not on this machine any more"));
}

#[test]
fn what_is_ours_must_still_be_what_diff_was_told() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[("1g.10gb", 6)]]);
    let target = wish(&world, 0, &[("1g.10gb", 0)]);
    let observed = world.driver().observe().unwrap();
    let changes = diff(&target, &observed, &world.state().on(&observed)).unwrap();
    // Another entc takes the foreign instance over, which changes nothing that NVML tells.
    let (report, result) = with(&world, |means| import::import(means, None));
    assert!(result.is_ok() && report.notes == ["1g.10gb at slice 6 of gpu 0 is entc's now"], "{report:?}");
    let (report, result) = with(&world, |means| {
        let request = Request::without_plan(Transaction::Apply, &observed, &target, &changes);
        apply(means, &request)
    });
    assert_eq!((report.outcome, result.is_err()), (Outcome::Unchanged, true));
}

#[test]
fn an_interrupt_finishes_the_step_and_leaves_a_journal_to_go_on_from() {
    let lab = Lab::new();
    for (action, ending) in [(Action::Resume, "done"), (Action::Rollback, "rolled-back")] {
        let world = machine(&lab, A100, false, &[&[]]);
        let start = Start::of(&world);
        let target = wish(&world, 0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
        let mut job = Job::new(&world, Action::Apply(target.clone()));
        job.interrupt_after = Some(0);
        let said = job.run();
        assert_eq!((said.outcome.as_str(), said.steps), ("unchanged", [0, 0, 5, 0]));
        assert!(!world.is_open() && start.is_same(&world.snapshot()));
        job.interrupt_after = Some(3);
        let said = job.run();
        assert_eq!((said.outcome.as_str(), said.steps), ("open", [3, 0, 2, 0]));
        assert_eq!(said.error.as_deref(), Some("interrupted"));
        // Nothing else is begun meanwhile.
        let observed = world.driver().observe().unwrap();
        let (_, refused) = with(&world, |means| {
            let request = Request {
                transaction: Transaction::Apply,
                plan: None,
                node: None,
                observed: &observed,
                target: &Target::default(),
                changes: &Changes::default(),
            };
            apply(means, &request)
        });
        assert!(matches!(refused, Err(ApplyError::Refused(refusals)) if refusals[0].code == "open-journal"));
        let (_, refused) = with(&world, |means| import::import(means, None));
        assert!(matches!(refused, Err(ApplyError::Refused(refusals)) if refusals[0].code == "open-journal"));
        assert_eq!(resume::preview(&world.store(), &observed).unwrap().steps.len(), 2);
        assert_eq!(back::preview(&world.store(), &observed).unwrap().0.steps.len(), 3);
        let said = run(&world, action);
        assert_eq!((said.outcome.as_str(), said.error), (ending, None));
        if ending == "done" {
            start.is_plan(&target, &world.snapshot());
        } else {
            assert!(start.is_same(&world.snapshot()));
        }
    }
}

#[test]
fn a_step_that_fails_is_gone_back_from_or_left_as_it_is() {
    let lab = Lab::new();
    let fault = json!([{ "call": "nvmlGpuInstanceCreateComputeInstance", "occurrence": 2, "when": "before",
                         "what": { "error": "insufficient-resources" } }]);
    for keep_going in [false, true] {
        let world = machine(&lab, A100, true, &[&[("1g.10gb", 6)]]);
        let start = Start::of(&world);
        let target = wish(&world, 0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
        world.set_faults(&fault);
        let mut job = Job::new(&world, Action::Apply(target.clone()));
        job.keep_going = keep_going;
        let said = job.run();
        assert!(said.error.as_ref().is_some_and(|error| error.contains("no room")), "{said:?}");
        if keep_going {
            assert_eq!((said.outcome.as_str(), said.steps), ("open", [2, 1, 1, 0]));
            let said = run(&world, Action::Resume);
            assert_eq!((said.outcome.as_str(), said.steps), ("done", [2, 0, 0, 0]));
            start.is_plan(&target, &world.snapshot());
        } else {
            assert_eq!((said.outcome.as_str(), said.steps), ("rolled-back", [2, 1, 1, 2]));
            assert!(start.is_same(&world.snapshot()));
            assert_eq!(world.store().journal().unwrap().unwrap().ending(), Some(Ending::RolledBack));
        }
        start.is_clean(&world.snapshot());
    }
}

#[test]
fn after_a_reboot_ours_comes_back_and_what_others_lost_is_said() {
    let lab = Lab::new();
    // Hopper: the reboot takes MIG mode, too.
    let world = machine(&lab, "h100-80gb-sxm", true, &[&[("1g.10gb", 6)], &[]]);
    applied(&world, &wish(&world, 0, &[("1g.10gb", 0)]));
    let start = Start::of(&world);
    let mut job = Job::new(&world, Action::Apply(wish(&world, 1, &[("7g.80gb", 0)])));
    job.interrupt_after = Some(1);
    assert_eq!(job.run().outcome, "open");
    world.change(Silicon::reboot);
    let said = run(&world, Action::Rollback);
    assert_eq!((said.outcome.as_str(), &said.error), ("rolled-back", &None));
    assert_eq!(
        said.notes,
        ["the reboot took from gpu 0 what is not entc's and entc does not make again: 1g.10gb at slice 6"]
    );
    // GPU 0 was not touched; what was ours on it is there again all the same.
    let now = world.snapshot();
    let places: Vec<_> = now.gpus[0].instances.iter().map(|i| i.place()).collect();
    assert_eq!(places, [(0, 1, "1g.10gb")]);
    start.is_state_true(&world.state(), &now, &world.boot_id());
    assert!(drifts(&world).is_empty(), "{:?}", drifts(&world));
}

#[test]
fn a_gpu_that_is_gone_holds_the_journal_open_until_it_is_given_up() {
    let lab = Lab::new();
    for is_given_up in [false, true] {
        let world = machine(&lab, A100, true, &[&[], &[]]);
        let start = Start::of(&world);
        let mut target = wish(&world, 0, &[("1g.10gb", 0)]);
        target.gpus.extend(wish(&world, 1, &[("2g.20gb", 0)]).gpus);
        // In the middle of the last step, which is on GPU 1.
        let lost = json!({ "call": "nvmlDeviceSetGpuLockedClocks", "occurrence": 2, "when": "before",
                           "what": { "lost": 1 } });
        world.set_faults(&json!([lost]));
        let said = run(&world, Action::Apply(target));
        assert_eq!((said.outcome.as_str(), said.steps), ("open", [5, 1, 0, 3]), "{said:?}");
        let error = said.error.unwrap();
        assert!(error.contains("fallen off the bus") && error.contains("going back failed too"), "{error}");
        // GPU 0 is as it was; GPU 1 keeps the journal open.
        assert!(world.snapshot().gpus[0].instances.is_empty());
        assert_eq!(run(&world, Action::Rollback).codes, ["gpu-lost"]);
        if is_given_up {
            let (report, result) = with(&world, |means| rollback(means, true));
            assert_eq!((report.outcome, result.is_ok()), (Outcome::RolledBack, true));
        } else {
            world.change(Silicon::reboot);
            assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
            start.is_before(&world.store().journal().unwrap().unwrap(), &world.snapshot());
        }
        assert!(!world.is_open());
    }
}

#[test]
fn what_cannot_be_read_refuses_every_command_and_changes_nothing() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[]]);
    let target = wish(&world, 0, &[("1g.10gb", 0)]);
    let mut job = Job::new(&world, Action::Apply(target.clone()));
    job.interrupt_after = Some(2);
    assert_eq!(job.run().outcome, "open");
    let whole = std::fs::read(world.store().journal_path()).unwrap();
    let machine = world.snapshot();
    let newer = String::from_utf8(whole.clone()).unwrap().replacen("\"1.0\"", "\"2.0\"", 1);
    let damages: [(&str, Vec<u8>); 3] = [
        ("not whole", whole[..whole.len() / 3].to_vec()),
        ("not whole", Vec::new()),
        ("format 2.0", newer.into()),
    ];
    for (words, bytes) in damages {
        std::fs::write(world.store().journal_path(), bytes).unwrap();
        for action in [Action::Resume, Action::Rollback, Action::Apply(target.clone())] {
            let said = run(&world, action);
            assert_eq!(said.outcome, "unchanged");
            assert!(said.error.as_ref().is_some_and(|error| error.contains(words)), "{said:?}");
        }
        assert_eq!(world.snapshot(), machine);
    }
    std::fs::write(world.store().journal_path(), whole).unwrap();
    std::fs::write(world.store().state_path(), "{\"format_version\": \"9.0\"}").unwrap();
    // The way back does not need the state: the journal has the one from before.
    assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
    std::fs::write(world.store().state_path(), "{\"format_version\": \"9.0\"}").unwrap();
    let (driver, store) = (world.driver(), world.lock());
    assert!(matches!(store.state(), Err(StoreError::Newer { .. })));
    drop((driver, store));
}

#[test]
fn a_damaged_line_in_the_middle_is_no_hindrance() {
    let lab = Lab::new();
    for action in [Action::Resume, Action::Rollback] {
        let world = machine(&lab, A100, false, &[&[]]);
        let start = Start::of(&world);
        let target = wish(&world, 0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
        let mut job = Job::new(&world, Action::Apply(target.clone()));
        job.interrupt_after = Some(4);
        assert_eq!(job.run().outcome, "open");
        let text = std::fs::read_to_string(world.store().journal_path()).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        // Of all lines after the first only the last can be read.
        for line in 1..lines.len() - 1 {
            lines[line].truncate(9);
        }
        std::fs::write(world.store().journal_path(), lines.join("\n") + "\n").unwrap();
        let is_resumed = matches!(action, Action::Resume);
        let said = run(&world, action);
        assert_eq!(said.error, None);
        assert!(said.notes[0].contains("cannot be read"), "{:?}", said.notes);
        let now = world.snapshot();
        start.is_clean(&now);
        if is_resumed { start.is_plan(&target, &now) } else { assert!(start.is_same(&now)) }
    }
}

#[test]
fn of_two_applies_at_once_one_waits_and_neither_disturbs_the_other() {
    let lab = Lab::new();
    let world = machine(&lab, A100, false, &[&[], &[]]);
    let start = Start::of(&world);
    let targets = [wish(&world, 0, &[("3g.40gb", 0)]), wish(&world, 1, &[("2g.20gb", 0), ("1g.10gb", 6)])];
    let saids: Vec<Option<Said>> = std::thread::scope(|scope| {
        let begun = targets.each_ref().map(|target| {
            let mut job = Job::new(&world, Action::Apply(target.clone()));
            job.lock_timeout_s = 60;
            scope.spawn(move || job.run_apart(&[]))
        });
        begun.into_iter().map(|job| job.join().unwrap()).collect()
    });
    for said in saids {
        assert_eq!(said.as_ref().map(|said| said.outcome.as_str()), Some("done"), "{said:?}");
    }
    let both = Target { gpus: targets.into_iter().flat_map(|target| target.gpus).collect() };
    start.is_plan(&both, &world.snapshot());
    start.is_state_true(&world.state(), &world.snapshot(), &world.boot_id());
    // Without waiting, the holder is named.
    let _held = world.lock();
    let said = Job::new(&world, Action::Apply(both)).run_apart(&[]).unwrap();
    let name = format!("another entc is at work: pid {}, `test`", std::process::id());
    assert_eq!(said.error.as_deref(), Some(name.as_str()));
}

#[test]
fn when_the_disk_is_full_the_journal_stays_true() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[]]);
    let target = wish(&world, 0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
    let trial = world.copy(&lab);
    applied(&trial, &target);
    let lines = std::fs::read(trial.store().journal_path()).unwrap();
    let header = lines.iter().position(|byte| *byte == b'\n').unwrap();
    // Files may grow to so many blocks of 512 bytes; those of the simulated machine stay below.
    let blocks = [header / 512 - 1].into_iter().chain(header / 512 + 1..=lines.len() / 512 + 1);
    let mut seen = std::collections::BTreeSet::new();
    for block in blocks {
        let world = world.copy(&lab);
        let start = Start::of(&world);
        let limit = format!("trap '' XFSZ; ulimit -f {block}; exec \"$@\"");
        let mut job = Job::new(&world, Action::Apply(target.clone()));
        job.is_disk_full = true;
        let said = job.run_apart(&["sh", "-c", &limit, "sh"]).unwrap();
        seen.insert(said.outcome.clone());
        let error = said.error.clone().unwrap_or_default();
        match said.outcome.as_str() {
            "unchanged" => {
                assert!(error.contains("journal.jsonl") && !world.is_open(), "{said:?}");
                assert!(start.is_same(&world.snapshot()));
            }
            "open" => {
                assert!(error.contains("cannot write"), "{said:?}");
                let journal = world.store().journal().unwrap().unwrap();
                assert!(!journal.is_torn && journal.damaged_lines.is_empty());
                crate::judge::is_explained(&start.machine, &journal, &world.snapshot());
                let action = if block % 2 == 0 { Action::Resume } else { Action::Rollback };
                assert_eq!(run(&world, action).error, None);
            }
            _ => assert_eq!(said.error, None),
        }
        start.is_clean(&world.snapshot());
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["done", "open", "unchanged"]);
}

#[test]
fn what_is_imported_is_ours_to_destroy_and_the_import_can_be_taken_back() {
    let lab = Lab::new();
    let world = machine(&lab, A100, true, &[&[("1g.10gb", 6), ("2g.20gb", 0)], &[("7g.80gb", 0)]]);
    let gpus = [world.uuids[0].clone()];
    let (report, result) = with(&world, |means| import::import(means, Some(&gpus)));
    assert_eq!((report.outcome, result.is_ok(), report.notes.len()), (Outcome::Done, true, 2));
    let state = world.state();
    assert_eq!((state.ours().len(), state.gpus.len()), (2, 1));
    assert_eq!(state.gpus[&gpus[0]].before.mig, Some(true));
    assert!(drifts(&world).is_empty(), "{:?}", drifts(&world));
    let again = with(&world, |means| import::import(means, Some(&gpus)));
    assert!(again.1.is_ok() && again.0.notes[0].contains("nothing to import"));
    let unknown = [GpuUuid("GPU-0".to_owned())];
    let (_, refused) = with(&world, |means| import::import(means, Some(&unknown)));
    assert!(matches!(refused, Err(ApplyError::Refused(refusals)) if refusals[0].code == "unknown-gpu"));
    // Now a plan may do away with them.
    let target = wish(&world, 0, &[("3g.40gb", 0)]);
    applied(&world, &target);
    assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
    assert_eq!(world.state(), state);
    let world = machine(&lab, A100, true, &[&[("1g.10gb", 6)]]);
    assert!(with(&world, |means| import::import(means, None)).1.is_ok());
    assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
    assert!(world.state().gpus.is_empty());
}

/// Gives the machine back, as `entc destroy` does.
pub(crate) fn destroyed(world: &World) -> Vec<String> {
    let observed = world.driver().observe().unwrap();
    let state = world.state();
    let (target, notes) = destroy::target(&state, &observed);
    let changes = diff(&target, &observed, &state.on(&observed)).unwrap();
    let ended = with(world, |means| {
        let request = Request::without_plan(Transaction::Destroy, &observed, &target, &changes);
        apply(means, &request)
    });
    assert_eq!(said(&ended).outcome, "done", "{ended:?}");
    let unlocks = changes.steps.iter().any(|step| matches!(step.operation, Operation::UnlockClocks));
    assert_eq!(ended.0.notes.iter().any(|note| note.contains("such a lock is not restored")), unlocks);
    notes
}

#[test]
fn destroying_gives_back_what_was_recorded_and_can_be_taken_back() {
    let lab = Lab::new();
    let world = machine(&lab, A100, false, &[&[]]);
    let start = Start::of(&world);
    let mut first = wish(&world, 0, &[("3g.40gb", 0)]);
    first.gpus.values_mut().for_each(|wish| wish.power_limit_mw = Some(200_000));
    applied(&world, &first);
    // A second apply does not forget how it was before the first.
    applied(&world, &wish(&world, 0, &[("1g.10gb", 0), ("1g.10gb", 1)]));
    let (state, machine) = (world.state(), Start::of(&world));
    assert!(destroyed(&world).is_empty());
    assert!(start.is_same(&world.snapshot()));
    assert!(world.state().gpus.is_empty() && world.state().plan.is_none());
    assert_eq!(run(&world, Action::Rollback).outcome, "rolled-back");
    assert!(machine.is_same(&world.snapshot()));
    assert_eq!(world.state(), state);
}

#[test]
fn destroying_leaves_what_is_foreign_and_the_mode_that_it_needs() {
    let lab = Lab::new();
    let world = machine(&lab, A100, false, &[&[]]);
    applied(&world, &wish(&world, 0, &[("3g.40gb", 0)]));
    let place = Some(Placement { start: 6, size: 1 });
    let foreign = world.change(|s| s.create_gpu_instance(Device::Gpu(0), 19, place).unwrap());
    let notes = destroyed(&world);
    assert_eq!(notes, ["MIG mode of gpu 0 stays on: 1 of its instances are not entc's"]);
    let now = world.snapshot();
    assert!(now.gpus[0].mig && now.gpus[0].instances.len() == 1);
    assert_eq!(now.gpus[0].instances[0].serial, foreign);
    // It is not forgotten how the mode was.
    assert_eq!(world.state().gpus[&world.uuids[0]].before.mig, Some(false));
    world.change(|s| s.destroy_gpu_instance(foreign).unwrap());
    assert!(destroyed(&world).is_empty());
    assert!(!world.snapshot().gpus[0].mig && world.state().gpus.is_empty());
}

#[test]
fn what_is_no_longer_as_entc_left_it_is_named() {
    let lab = Lab::new();
    let world = machine(&lab, "h100-80gb-sxm", false, &[&[]]);
    let gpu = Device::Gpu(0);
    let mut target = wish(&world, 0, &[("3g.40gb", 0), ("1g.10gb", 6)]);
    target.gpus.values_mut().for_each(|wish| wish.power_limit_mw = Some(300_000));
    applied(&world, &target);
    assert!(drifts(&world).is_empty(), "{:?}", drifts(&world));
    world.change(|s| s.set_persistence_mode(gpu, false).unwrap());
    world.change(|s| s.set_power_limit(gpu, 400_000).unwrap());
    let serial = world.snapshot().gpus[0].instances[1].clone();
    world.change(|s| s.destroy_compute_instance(serial.compute[0]).unwrap());
    world.change(|s| {
        s.create_gpu_instance(gpu, 19, Some(Placement { start: 4, size: 1 })).unwrap();
    });
    let found = drifts(&world);
    for expected in [
        "persistence mode: on -> off",
        "power limit: 300 W -> 400 W",
        "instance at slice 6: 1g.10gb for service-6 -> 1g.10gb without a compute instance",
        "instance at slice 4: none -> 1g.10gb, not entc's",
    ] {
        assert!(found.iter().any(|found| found == expected), "{expected}: {found:?}");
    }
    world.change(|s| s.destroy_gpu_instance(serial.serial).unwrap());
    assert!(drifts(&world).contains(&"instance at slice 6: 1g.10gb for service-6 -> none".to_owned()));
    world.change(Silicon::reboot);
    let found = drifts(&world);
    for expected in [
        "MIG mode: on -> off",
        "SM clock: locked to 1050 MHz -> unlocked; the machine was rebooted",
        "instance at slice 0: 3g.40gb for service-0 -> none; the machine was rebooted",
    ] {
        assert!(found.iter().any(|found| found == expected), "{expected}: {found:?}");
    }
    // What somebody else then makes in the same place is not entc's, and an apply does not touch it.
    world.change(|s| s.set_mig_mode(gpu, true).unwrap());
    world.change(|s| {
        s.create_gpu_instance(gpu, 9, Some(Placement { start: 0, size: 4 })).unwrap();
    });
    assert!(drifts(&world).iter().any(|found| found.contains("made after a reboot by somebody else")));
    let said = run(&world, Action::Apply(wish(&world, 0, &[("7g.80gb", 0)])));
    assert_eq!((said.outcome.as_str(), said.codes), ("unchanged", vec!["foreign-instance".to_owned()]));
    world.change(|s| s.lose(0).unwrap());
    assert!(drifts(&world)[0].starts_with("gpu: present -> "), "{:?}", drifts(&world));
}
