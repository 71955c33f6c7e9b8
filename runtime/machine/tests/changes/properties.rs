//! Random machines and wishes: the steps lead there, nothing is left to do, and there is a way back from
//! every point between.

use crate::model::{Model, instance, machine, state_after, uuid, wish};
use ent_machine::changes::{Changes, Operation};
use ent_machine::diff::diff;
use ent_machine::observed::{MigMode, ObservedInstance};
use ent_machine::state::{InstanceState, State};
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance, restore};
use ent_plan::device::{Layout, board, layouts};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const BOARDS: [&str; 4] = ["a30-24gb", "a100-80gb-pcie", "h100-80gb-sxm", "rtx-pro-6000-blackwell"];

static LAYOUTS: LazyLock<Vec<Vec<Layout>>> = LazyLock::new(|| {
    let of = |id: &str| {
        let board = board(id).unwrap();
        layouts(&board, |profile| board.profiles[profile].is_base)
    };
    BOARDS.into_iter().map(of).collect()
});

/// One GPU as it is and as it is to be.
#[derive(Clone, Debug)]
struct Case {
    board: usize,
    from: Index,
    to: Index,
    foreign: u16,
    orphans: u16,
    is_on: bool,
    is_pending: bool,
    is_cut: bool,
    is_persistent: bool,
    is_limited: bool,
    locked: Option<u32>,
    clock: u32,
}

fn case() -> impl Strategy<Value = Case> {
    let machine = (0..BOARDS.len(), any::<Index>(), any::<Index>());
    // Most instances are ours, or little could be planned.
    let bits = (any::<u16>(), any::<u16>(), any::<u16>());
    let modes = (prop::bool::weighted(0.7), prop::bool::weighted(0.1), prop::bool::weighted(0.7));
    let rest = (any::<bool>(), any::<bool>(), prop::option::of(0..3_u32), 0..3_u32);
    (machine, bits, modes, rest).prop_map(
        |(
            (board, from, to),
            (a, b, orphans),
            (is_on, is_pending, is_cut),
            (is_persistent, is_limited, locked, clock),
        )| {
            Case {
                board,
                from,
                to,
                foreign: a & b & b.rotate_left(3),
                orphans: orphans & a.rotate_left(5),
                is_on,
                is_pending,
                is_cut,
                is_persistent,
                is_limited,
                locked,
                clock,
            }
        },
    )
}

fn mhz(step: u32) -> u32 {
    1200 + 15 * step
}

/// The machine, what is ours on it, and the wish.
fn set_up(cases: &[Case]) -> (Model, State, Target) {
    let ids: Vec<&str> = cases.iter().map(|case| BOARDS[case.board]).collect();
    let mut model = machine(&ids);
    let mut state = State { boot_id: "boot-1".to_owned(), ..State::default() };
    let mut gpus = Vec::new();
    for (case, index) in cases.iter().zip(0..) {
        let board = board(BOARDS[case.board]).unwrap();
        let every = &LAYOUTS[case.board];
        let gpu = model.gpu(index);
        gpu.mig = Some(MigMode { current: case.is_on, pending: case.is_on != case.is_pending });
        gpu.is_persistent = Some(case.is_persistent);
        gpu.power_limit_mw = Some(if case.is_limited { 250_000 } else { 300_000 });
        let of_gpu = state.gpus.entry(uuid(index)).or_default();
        let from = if case.is_on { every[case.from.index(every.len())].clone() } else { Layout::new() };
        for (number, placed) in from.iter().enumerate() {
            let mut there = instance(&board, (&board.profiles[placed.profile].name, placed.start));
            if case.orphans & (1 << number) != 0 {
                there.compute_instances.clear();
            }
            if case.foreign & (1 << number) == 0 {
                of_gpu.instances.push(InstanceState {
                    profile: there.profile.clone(),
                    start: there.start,
                    size: there.size,
                    service: Some(format!("s{}", number % 2)),
                });
            }
            gpu.instances.push(there);
        }
        if let Some(locked) = case.locked {
            of_gpu.locked_sm_clock_mhz = Some((mhz(locked), mhz(locked)));
            model.locked.insert(uuid(index), (mhz(locked), mhz(locked)));
        }
        let instances = every[case.to.index(every.len())].iter().enumerate().map(|(number, placed)| {
            let profile = &board.profiles[placed.profile];
            TargetInstance {
                profile: profile.name.clone(),
                start: placed.start,
                size: profile.n_memory_slices,
                is_fixed: false,
                service: Some(format!("s{}", number % 2)),
            }
        });
        let target = TargetGpu {
            mig: Some(case.is_cut),
            services: if case.is_cut { Vec::new() } else { vec!["whole".to_owned()] },
            persistence: Some(true),
            instances: if case.is_cut { instances.collect() } else { Vec::new() },
            sm_clock: ClockTarget::Locked { min: mhz(case.clock), max: mhz(case.clock) },
            power_limit_mw: None,
        };
        gpus.push((index, target));
    }
    (model, state, wish(&gpus))
}

/// What is ours after some of the steps, as a journal tells it.
fn state_between(before: &State, changes: &Changes, n_done: usize) -> State {
    let mut state = before.clone();
    for step in &changes.steps[..n_done] {
        let gpu = state.gpus.entry(step.gpu.clone()).or_default();
        match &step.operation {
            Operation::CreateInstance { profile, start, size } => gpu.instances.push(InstanceState {
                profile: profile.clone(),
                start: *start,
                size: *size,
                service: None,
            }),
            Operation::LockClocks { min, max } => gpu.locked_sm_clock_mhz = Some((*min, *max)),
            Operation::SetMigMode { resets: true, .. } => gpu.locked_sm_clock_mhz = None,
            Operation::DestroyInstance { start, .. } => gpu.instances.retain(|i| i.start != *start),
            Operation::SetMigMode { .. }
            | Operation::SetPersistence { .. }
            | Operation::UnlockClocks
            | Operation::SetPowerLimit { .. } => {}
        }
    }
    state
}

/// The instances of a GPU that are not ours.
fn foreign<'a>(model: &'a Model, state: &State, index: u32) -> Vec<&'a ObservedInstance> {
    let gpu = model.observed.gpus.iter().find(|gpu| gpu.index == index).unwrap();
    let ours = &state.gpus[&gpu.uuid].instances;
    gpu.instances.iter().filter(|i| !ours.iter().any(|o| o.start == i.start)).collect()
}

/// Whether the machine is what the target says: every wish has an instance of its own, nothing else is ours.
fn assert_is(target: &Target, model: &Model, state: &State) {
    for (gpu, wish) in &target.gpus {
        let now = model.observed.gpu(gpu).unwrap();
        assert_eq!(now.mig, Some(MigMode { current: wish.mig.unwrap(), pending: wish.mig.unwrap() }));
        assert_eq!(now.is_persistent, wish.persistence);
        match wish.sm_clock {
            ClockTarget::Locked { min, max } => assert_eq!(model.locked.get(gpu), Some(&(min, max))),
            ClockTarget::Unlocked => assert_eq!(model.locked.get(gpu), None),
            ClockTarget::Leave => {}
        }
        let mut wished: Vec<(&str, Option<&str>)> =
            wish.instances.iter().map(|i| (i.profile.as_str(), i.service.as_deref())).collect();
        let mut there: Vec<(&str, Option<&str>)> =
            state.gpus[gpu].instances.iter().map(|i| (i.profile.as_str(), i.service.as_deref())).collect();
        wished.sort_unstable();
        there.sort_unstable();
        assert_eq!(wished, there);
        for ours in &state.gpus[gpu].instances {
            let is_it = |i: &&ObservedInstance| (&i.profile, i.start) == (&ours.profile, ours.start);
            let there = now.instances.iter().find(is_it).expect("it is there");
            assert_eq!(there.compute_instances.len(), 1, "it has a compute instance");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_steps_lead_to_the_wish_and_back_from_every_point(
        cases in prop::collection::vec(case(), 1..4), stop: Index,
    ) {
        let (before, state, target) = set_up(&cases);
        let changes = match diff(&target, &before.observed, &state) {
            Ok(changes) => changes,
            Err(refusals) => {
                prop_assert!(refusals.iter().all(|r| r.code == "foreign-instance"), "{refusals:?}");
                return Ok(());
            }
        };
        prop_assert_eq!(diff(&target, &before.observed, &state), Ok(changes.clone()));

        let mut after = before.clone();
        after.perform(&changes.steps);
        let state_now = state_after(&state, &target, &changes, &after);
        assert_is(&target, &after, &state_now);
        for (gpu, was) in after.observed.gpus.iter().zip(&before.observed.gpus) {
            prop_assert_eq!(gpu.power_limit_mw, was.power_limit_mw);
        }
        for index in 0..u32::try_from(cases.len()).unwrap() {
            prop_assert_eq!(foreign(&before, &state, index), foreign(&after, &state_now, index));
        }
        let again = diff(&target, &after.observed, &state_now).unwrap();
        prop_assert!(again.is_empty(), "{again}");

        // Back from any point, the end included.
        let n_done = stop.index(changes.steps.len() + 1);
        let mut between = before.clone();
        between.perform(&changes.steps[..n_done]);
        let touched: BTreeSet<_> = changes.steps.iter().map(|step| step.gpu.clone()).collect();
        let back = restore(&before.observed, &state, &touched);
        let state_between = state_between(&state, &changes, n_done);
        let steps = diff(&back, &between.observed, &state_between).unwrap();
        between.perform(&steps.steps);
        // A compute instance that was missing is made, and a mode that waited for a reset does not any more.
        let mut expected = before.clone();
        for gpu in expected.observed.gpus.iter_mut().filter(|gpu| touched.contains(&gpu.uuid)) {
            let board = board(gpu.board.as_ref().unwrap()).unwrap();
            let ours = &state.gpus[&gpu.uuid].instances;
            for there in gpu.instances.iter_mut().filter(|i| ours.iter().any(|o| o.start == i.start)) {
                *there = instance(&board, (&there.profile, there.start));
            }
            let mode = gpu.mig.as_mut().unwrap();
            mode.pending = mode.current;
        }
        prop_assert_eq!(between, expected);
    }
}
