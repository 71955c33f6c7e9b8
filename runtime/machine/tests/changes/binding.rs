//! A plan and machines it is for, or is not for.

use crate::model::{Model, machine, ours, uuid};
use ent_machine::bind::{Binding, bind, stale};
use ent_machine::error::Stale;
use ent_machine::observed::{MigMode, UnreadableGpu};
use ent_machine::state::State;
use ent_machine::target::ClockTarget;
use ent_plan::plan::{CheckedPlan, Machine, MachineGpu, Plan, check, sample};

const A100: &str = "a100-80gb-pcie";

fn two_a100() -> Model {
    machine(&[A100, A100])
}

/// The sample: `classify` on `3g.40gb` at 0 and `search` on `2g.20gb` at 4 of GPU 0 of `box`, at 1050 MHz.
fn plan(change: impl FnOnce(&mut Plan)) -> CheckedPlan {
    let mut plan = sample::plan();
    change(&mut plan);
    check(plan).unwrap()
}

/// The machine as `two_a100` is, as a plan remembers it.
fn remembered() -> Machine {
    let gpu = |index: u32| MachineGpu {
        index,
        uuid: uuid(index).0,
        board: Some(A100.to_owned()),
        mig: Some(true),
        instances: Vec::new(),
    };
    Machine {
        node: "box".to_owned(),
        driver_version: "575.57.08".to_owned(),
        is_simulated: true,
        gpus: vec![gpu(0), gpu(1)],
    }
}

fn differing(result: Result<Binding, Vec<Stale>>) -> Vec<(String, String, String)> {
    let faults = result.expect_err("the plan is not for this machine");
    faults.into_iter().map(|fault| (fault.field, fault.planned, fault.observed)).collect()
}

fn field(name: &str, planned: &str, observed: &str) -> (String, String, String) {
    (name.to_owned(), planned.to_owned(), observed.to_owned())
}

#[test]
fn an_offline_plan_is_bound_by_index() {
    let binding = bind(&plan(|_| {}), "box", &two_a100().observed, &State::default()).unwrap();
    assert_eq!(binding.gpus, [(0, uuid(0))]);
    assert_eq!(binding.target.gpus.keys().collect::<Vec<_>>(), [&uuid(0)], "the unused one is left alone");
    let wish = &binding.target.gpus[&uuid(0)];
    assert_eq!((wish.mig, wish.persistence, wish.power_limit_mw), (Some(true), Some(true), None));
    assert_eq!(wish.sm_clock, ClockTarget::Locked { min: 1050, max: 1050 });
    let instances: Vec<_> = wish
        .instances
        .iter()
        .map(|i| (i.profile.as_str(), i.start, i.size, i.is_fixed, i.service.as_deref().unwrap()))
        .collect();
    assert_eq!(instances, [("3g.40gb", 0, 4, false, "classify"), ("2g.20gb", 4, 2, false, "search")]);
}

#[test]
fn a_board_that_is_not_cut_has_its_mode_off() {
    use ent_plan::plan::{Sharing, check_boards};
    let mut shared = sample::plan();
    shared.gpus[0].sharing = Sharing::Mps;
    for instance in &mut shared.gpus[0].instances {
        (instance.profile, instance.start, instance.size) = (None, None, None);
        instance.mps_percent = Some(40);
    }
    assert_eq!(check_boards(&shared), []);
    let binding = bind(&check(shared).unwrap(), "box", &two_a100().observed, &State::default()).unwrap();
    let wish = &binding.target.gpus[&uuid(0)];
    assert_eq!((wish.mig, wish.instances.len()), (Some(false), 0));
    assert_eq!(wish.services, ["classify", "search"]);
}

#[test]
fn what_is_ours_on_an_unused_board_is_released() {
    let model = two_a100().with(1, &[("1g.10gb", 0)]);
    let mut state = ours(&model, &[(1, ("1g.10gb", 0), "old")]);
    // Nothing is left on a GPU that only had its mode changed, or that is not there.
    state.gpus.entry(uuid(9)).or_default().locked_sm_clock_mhz = Some((210, 210));
    let binding = bind(&plan(|_| {}), "box", &model.observed, &state).unwrap();
    assert_eq!(binding.target.gpus.keys().collect::<Vec<_>>(), [&uuid(0), &uuid(1)]);
    let wish = &binding.target.gpus[&uuid(1)];
    assert!(wish.instances.is_empty());
    assert_eq!((wish.mig, wish.persistence, wish.sm_clock), (None, None, ClockTarget::Unlocked));
}

#[test]
fn a_plan_from_this_machine_is_bound_to_its_uuids() {
    let made_here = plan(|plan| {
        plan.machine = Some(remembered());
        plan.gpus[0].uuid = Some(uuid(0).0);
    });
    assert!(bind(&made_here, "box", &two_a100().observed, &State::default()).is_ok());

    let mut swapped = two_a100();
    swapped.observed.gpus.swap(0, 1);
    swapped.observed.gpus[0].index = 0;
    swapped.observed.gpus[1].index = 1;
    assert_eq!(
        differing(bind(&made_here, "box", &swapped.observed, &State::default())),
        [field("uuid of gpu 0", "GPU-0", "GPU-1; the planned one is gpu 1 now")]
    );

    let mut other = two_a100();
    other.observed.driver_version = "580.1".to_owned();
    other.observed.is_simulated = false;
    other.gpu(0).uuid = uuid(5);
    let fields = [
        field("machine", "simulated", "real"),
        field("driver version", "575.57.08", "580.1"),
        field("uuid of gpu 0", "GPU-0", "GPU-5; the planned one is gone"),
    ];
    assert_eq!(differing(bind(&made_here, "box", &other.observed, &State::default())), fields);
    // The plan's own UUID may be missing; the machine that it remembers has it.
    let without = plan(|plan| plan.machine = Some(remembered()));
    assert_eq!(differing(bind(&without, "box", &other.observed, &State::default())), fields);
    // What another node was says nothing about this one.
    let elsewhere = plan(|plan| plan.machine = Some(Machine { node: "other".to_owned(), ..remembered() }));
    assert!(bind(&elsewhere, "box", &other.observed, &State::default()).is_ok());
}

#[test]
fn a_plan_for_another_machine_is_refused_by_field() {
    let none = State::default();
    let plan = plan(|_| {});
    assert_eq!(differing(bind(&plan, "crate", &two_a100().observed, &none)), [field("node", "box", "crate")]);
    assert_eq!(
        differing(bind(&plan, "box", &machine(&[]).observed, &none)),
        [field("gpu 0", A100, "no GPU")]
    );
    let mut lost = two_a100();
    lost.observed.gpus.remove(0);
    assert_eq!(differing(bind(&plan, "box", &lost.observed, &none)), [field("gpu 0", A100, "GPUs 1")]);
    let reason = "the GPU has fallen off the bus".to_owned();
    lost.observed.unreadable.push(UnreadableGpu { index: 0, uuid: None, reason });
    assert_eq!(
        differing(bind(&plan, "box", &lost.observed, &none)),
        [field("gpu 0", A100, "cannot be read: the GPU has fallen off the bus")]
    );
    assert_eq!(
        differing(bind(&plan, "box", &machine(&["h100-80gb-sxm"]).observed, &none)),
        [field("board of gpu 0", A100, "h100-80gb-sxm")]
    );
    let mut unknown = two_a100();
    unknown.gpu(0).board = None;
    assert_eq!(
        differing(bind(&plan, "box", &unknown.observed, &none)),
        [field("board of gpu 0", A100, "NVIDIA A100 80GB PCIe (0x20B510DE)")]
    );
    let mut odd = two_a100();
    odd.gpu(0).profiles.retain(|p| p.name == "1g.10gb" || p.name == "2g.20gb");
    odd.gpu(0).supported_sm_clocks_mhz = vec![210, 1410];
    assert_eq!(
        differing(bind(&plan, "box", &odd.observed, &none)),
        [
            field("profiles of gpu 0", "3g.40gb", "1g.10gb, 2g.20gb"),
            field("SM clock of gpu 0", "1050 MHz", "2 clocks from 210 to 1410 MHz"),
        ]
    );
    let mut plain = two_a100();
    plain.gpu(0).mig = None;
    assert_eq!(
        differing(bind(&plan, "box", &plain.observed, &none)),
        [field("MIG mode of gpu 0", "on", "it has none")]
    );
}

#[test]
fn what_the_driver_does_not_list_is_not_held_against_a_plan() {
    let mut silent = two_a100();
    silent.gpu(0).profiles.clear();
    silent.gpu(0).supported_sm_clocks_mhz.clear();
    assert!(bind(&plan(|_| {}), "box", &silent.observed, &State::default()).is_ok());
}

#[test]
fn a_machine_that_has_changed_since_is_named_by_field() {
    let model = two_a100();
    let target = bind(&plan(|_| {}), "box", &model.observed, &State::default()).unwrap().target;
    assert_eq!(stale(&remembered(), &target, &model.observed), []);
    let mut changed = model.with(0, &[("1g.10gb", 6), ("1g.10gb", 2)]);
    assert_eq!(
        stale(&remembered(), &target, &changed.observed),
        [Stale {
            field: "instances of gpu 0".to_owned(),
            planned: "none".to_owned(),
            observed: "1g.10gb@2, 1g.10gb@6".to_owned(),
        }]
    );
    changed = two_a100();
    changed.gpu(0).mig = Some(MigMode { current: false, pending: false });
    assert_eq!(stale(&remembered(), &target, &changed.observed)[0].field, "MIG mode of gpu 0");
    // The plan does not touch the other GPU, which may be what it likes.
    let other = two_a100().with(1, &[("7g.80gb", 0)]);
    assert_eq!(stale(&remembered(), &target, &other.observed), []);
}
