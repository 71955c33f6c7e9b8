//! Steps and the machines on which they are known to fail.

use crate::model::{Model, cut, machine, ours, uuid, wish};
use ent_machine::bind::bind;
use ent_machine::changes::{Changes, Operation, Step};
use ent_machine::diff::diff;
use ent_machine::observed::{Holder, MigMode};
use ent_machine::preflight::{Allowed, Radius, blast_radius, preflight, warnings};
use ent_machine::state::State;
use ent_machine::target::ClockTarget;
use ent_plan::plan::{check, sample};

const A100: &str = "a100-80gb-pcie";
const NO_RESET: Allowed = Allowed { reset: false };
const RESET: Allowed = Allowed { reset: true };

fn step(index: u32, operation: Operation) -> Step {
    Step { gpu: uuid(index), index, operation, reason: "a test".to_owned() }
}

fn create(profile: &str, start: u32, size: u32) -> Operation {
    Operation::CreateInstance { profile: profile.to_owned(), start, size }
}

fn destroy(profile: &str, start: u32, size: u32) -> Operation {
    Operation::DestroyInstance { profile: profile.to_owned(), start, size }
}

fn changes(operations: &[Operation]) -> Changes {
    Changes { steps: operations.iter().map(|o| step(0, o.clone())).collect(), ..Changes::default() }
}

fn holder(pid: u32, name: &str, gpu_instance_id: Option<u32>) -> Holder {
    Holder { pid, name: Some(name.to_owned()), gpu_instance_id }
}

/// Codes and messages; help is always there.
fn found(steps: &Changes, model: &Model, allowed: Allowed) -> Vec<(&'static str, String)> {
    let refusals = preflight(steps, &model.observed, allowed, true);
    assert!(refusals.iter().all(|refusal| !refusal.help.is_empty()));
    refusals.into_iter().map(|refusal| (refusal.code, refusal.message)).collect()
}

#[test]
fn without_rights_only_nothing_can_be_done() {
    let model = machine(&[A100]);
    let none = changes(&[]);
    assert_eq!(preflight(&none, &model.observed, NO_RESET, false), []);
    let some = changes(&[create("1g.10gb", 0, 1)]);
    assert_eq!(preflight(&some, &model.observed, NO_RESET, true), []);
    let refusals = preflight(&some, &model.observed, NO_RESET, false);
    assert_eq!(refusals.len(), 1);
    assert_eq!((refusals[0].code, &refusals[0].gpu), ("no-permission", &None));
    assert!(refusals[0].help.starts_with("run the same command as root"), "{}", refusals[0].help);
}

#[test]
fn a_process_on_an_instance_that_must_go_is_named() {
    let mut model = machine(&[A100]).with(0, &[("3g.40gb", 0), ("2g.20gb", 4)]);
    let id = |model: &mut Model, at: usize| Some(model.gpu(0).instances[at].gpu_instance_id);
    let (first, second) = (id(&mut model, 0), id(&mut model, 1));
    model.gpu(0).holders = vec![
        holder(41, "python", first),
        Holder { pid: 42, name: None, gpu_instance_id: first },
        holder(43, "other", second),
        holder(44, "dcgmi", None),
    ];
    let steps = changes(&[destroy("3g.40gb", 0, 4)]);
    let to_go = "runs on 3g.40gb at slice 0 of GPU 0, which is to be destroyed";
    assert_eq!(
        found(&steps, &model, NO_RESET),
        [("in-use", format!("python (pid 41) {to_go}")), ("in-use", format!("a process (pid 42) {to_go}"))]
    );
    // What has the whole GPU open may or may not stand in the way.
    let known = warnings(&steps, &model.observed, &State::default(), None);
    assert_eq!(known.len(), 1);
    assert_eq!(
        (known[0].code, known[0].message.as_str()),
        ("may-be-in-use", "dcgmi (pid 44) has GPU 0 open, and may keep its instances from being destroyed")
    );
    let gone = changes(&[destroy("1g.10gb", 6, 1)]);
    assert_eq!(
        found(&gone, &model, NO_RESET),
        [("stale", "1g.10gb at slice 6 of GPU 0 is to be destroyed, and is not there".to_owned())]
    );
}

#[test]
fn a_reset_must_be_allowed_and_nothing_may_run() {
    let mut model = machine(&[A100]).without_mig(0);
    let on = changes(&[Operation::SetMigMode { enabled: true, resets: true }]);
    assert_eq!(
        found(&on, &model, NO_RESET),
        [("reset-required", "turning MIG mode on resets GPU 0; nothing runs on it".to_owned())]
    );
    assert_eq!(found(&on, &model, RESET), []);
    model.gpu(0).holders = vec![holder(7, "nvidia-persistenced", None)];
    let open = "nvidia-persistenced (pid 7) has GPU 0 open, whose MIG mode is to be turned on";
    assert_eq!(
        found(&on, &model, NO_RESET),
        [
            ("in-use", open.to_owned()),
            (
                "reset-required",
                "turning MIG mode on resets GPU 0; nvidia-persistenced (pid 7) runs on it".to_owned()
            )
        ]
    );
    // To allow the reset does not make it possible.
    assert_eq!(found(&on, &model, RESET), [("in-use", open.to_owned())]);
    let help = &preflight(&on, &model.observed, RESET, true)[0].help;
    assert!(help.ends_with("\n  systemctl stop nvidia-persistenced"), "{help}");
}

#[test]
fn a_mode_that_waits_for_a_reset_is_named_both_ways() {
    let mut model = machine(&[A100]);
    model.gpu(0).mig = Some(MigMode { current: false, pending: true });
    let steps = changes(&[Operation::LockClocks { min: 1050, max: 1050 }]);
    assert_eq!(
        found(&steps, &model, NO_RESET),
        [("reset-required", "MIG mode of GPU 0 is off, and on after the next reset".to_owned())]
    );
    assert_eq!(found(&steps, &model, RESET), []);
    assert_eq!(found(&changes(&[]), &model, NO_RESET), [], "nothing is done to it");
}

#[test]
fn a_gpu_that_is_gone_or_unknown_is_refused() {
    let mut model = machine(&[A100]);
    let mut steps = changes(&[create("1g.10gb", 0, 1), create("1g.10gb", 1, 1)]);
    model.gpu(0).board = None;
    assert_eq!(found(&steps, &model, NO_RESET)[0].0, "unknown-board");
    steps.steps.iter_mut().for_each(|step| step.gpu = uuid(9));
    assert_eq!(
        found(&steps, &model, NO_RESET),
        [("gpu-lost", "GPU 0 (GPU-9) is not on this machine any more".to_owned())]
    );
}

#[test]
fn a_driver_must_be_new_enough_for_the_board_and_for_4g_beside_3g() {
    let on_driver = |board: &str, version: &str| {
        let mut model = machine(&[board]);
        model.observed.driver_version = version.to_owned();
        model
    };
    let one = changes(&[create("1g.10gb", 0, 1)]);
    assert_eq!(
        found(&one, &on_driver("h100-80gb-sxm", "525.60.13"), NO_RESET),
        [(
            "driver-too-old",
            "MIG on GPU 0 (NVIDIA H100 80GB HBM3) needs driver 525.85.12; here is 525.60.13".to_owned()
        )]
    );
    assert_eq!(found(&one, &on_driver("h100-80gb-sxm", "525.85.12"), NO_RESET), []);
    assert_eq!(found(&one, &on_driver(A100, "470.57.02"), NO_RESET), []);
    let both = changes(&[create("4g.40gb", 0, 4), create("3g.40gb", 4, 4)]);
    let refused =
        [("driver-too-old", "4g and 3g side by side on GPU 0 need driver 510; here is 470.57.02".to_owned())];
    assert_eq!(found(&both, &on_driver(A100, "470.57.02"), NO_RESET), refused);
    assert_eq!(found(&both, &on_driver(A100, "510.39.01"), NO_RESET), []);
    // One of them may be there already, and may go.
    let beside = on_driver(A100, "470.57.02").with(0, &[("4g.40gb", 0)]);
    let mut more = changes(&[create("3g.40gb", 4, 4)]);
    assert_eq!(found(&more, &beside, NO_RESET), refused);
    more.steps.insert(0, step(0, destroy("4g.40gb", 0, 4)));
    assert_eq!(found(&more, &beside, NO_RESET), []);
    // Where there is no MIG to do, a driver too old for it will do.
    let clock = changes(&[Operation::LockClocks { min: 1980, max: 1980 }]);
    assert_eq!(found(&clock, &on_driver("h100-80gb-sxm", "525.60.13"), NO_RESET), []);
}

#[test]
fn clocks_and_profiles_must_be_on_the_drivers_lists() {
    let mut model = machine(&[A100]);
    let steps = changes(&[
        create("1g.5gb", 0, 1),
        Operation::LockClocks { min: 1050, max: 1999 },
        Operation::UnlockClocks,
    ]);
    let expected = [
        (
            "unknown-profile",
            "1g.5gb at slice 0 of GPU 0 is to be created, and the driver has no such profile".to_owned(),
        ),
        ("clock-not-supported", "GPU 0 has no SM clock of 1999 MHz".to_owned()),
    ];
    assert_eq!(found(&steps, &model, NO_RESET), expected);
    model.gpu(0).profiles.clear();
    model.gpu(0).supported_sm_clocks_mhz.clear();
    assert_eq!(found(&steps, &model, NO_RESET), []);
}

#[test]
fn warnings_say_what_will_not_hold() {
    let mut model = machine(&[A100, A100]).with(0, &[("1g.10gb", 6)]);
    let id = model.gpu(0).instances[0].gpu_instance_id;
    model.gpu(0).holders.push(holder(5, "train", Some(id)));
    model.gpu(0).is_persistent = None;
    model.gpu(0).power_limit_mw = Some(100_000);
    let none = State::default();
    let plan = check(sample::plan()).unwrap();
    let binding = bind(&plan, "box", &model.observed, &none).unwrap();
    let steps = diff(&binding.target, &model.observed, &none).unwrap();
    let known = warnings(&steps, &model.observed, &none, Some((&plan, &binding)));
    assert!(known.iter().all(|warning| warning.gpu == Some(uuid(0)) && !warning.help.is_empty()));
    let known: Vec<(&str, &str)> = known.iter().map(|w| (w.code, w.message.as_str())).collect();
    assert_eq!(
        known,
        [
            (
                "persistence-off",
                "GPU 0 forgets the locked clock when nothing has it open: no persistence mode"
            ),
            (
                "clock-reaches-others",
                "the clock of GPU 0 is also that of 1g.10gb at slice 6, which is not entc's, where train \
                 (pid 5) runs"
            ),
            (
                "power-limit-too-low",
                "the plan draws up to 110 W on GPU 0, whose power limit is 100 W: it will not keep its clock"
            ),
        ]
    );
    model.gpu(0).power_limit_mw = Some(300_000);
    model.gpu(0).is_persistent = Some(false);
    model.gpu(0).instances.clear();
    let steps = diff(&binding.target, &model.observed, &none).unwrap();
    assert_eq!(warnings(&steps, &model.observed, &none, Some((&plan, &binding))), [], "a step turns it on");
}

#[test]
fn the_blast_radius_names_what_stops() {
    let mut model =
        machine(&[A100, A100, A100]).with(0, &[("3g.40gb", 0), ("1g.10gb", 4)]).with(1, &[("2g.20gb", 0)]);
    let state = ours(&model, &[(0, ("3g.40gb", 0), "a"), (0, ("1g.10gb", 4), "b"), (1, ("2g.20gb", 0), "c")]);
    let id = model.gpu(0).instances[0].gpu_instance_id;
    let python = holder(9, "python", Some(id));
    let monitor = holder(3, "dcgmi", None);
    model.gpu(0).holders = vec![python.clone(), monitor.clone()];
    let target = wish(&[
        (0, cut(A100, &[(("4g.40gb", 0), "a"), (("1g.10gb", 4), "d")])),
        (1, cut(A100, &[(("2g.20gb", 0), "c"), (("2g.20gb", 2), "c")])),
    ]);
    let steps = diff(&target, &model.observed, &state).unwrap();
    let radius = |resets, destroyed: &[&str], services: &[&str], processes: &[&Holder]| Radius {
        gpu: uuid(0),
        index: 0,
        resets,
        destroyed: destroyed.iter().map(|s| (*s).to_owned()).collect(),
        services: services.iter().map(|s| (*s).to_owned()).collect(),
        processes: processes.iter().map(|h| (*h).clone()).collect(),
    };
    // The 1g stays and changes hands; nothing stops on GPU 1, and GPU 2 is not touched.
    assert_eq!(
        blast_radius(&steps, &model.observed, &state),
        [radius(false, &["3g.40gb@0"], &["a", "b"], &[&python])]
    );
    let mut whole = cut(A100, &[]);
    whole.mig = Some(false);
    whole.sm_clock = ClockTarget::Unlocked;
    let steps = diff(&wish(&[(0, whole)]), &model.observed, &state).unwrap();
    assert_eq!(
        blast_radius(&steps, &model.observed, &state),
        [radius(true, &["3g.40gb@0", "1g.10gb@4"], &["a", "b"], &[&monitor, &python])]
    );
}
