//! Small machines and wishes → the exact text of the steps, or of the refusal.

use crate::model::{At, Model, cut, machine, ours, uuid, wish};
use ent_machine::changes::Changes;
use ent_machine::diff::diff;
use ent_machine::error::Refusal;
use ent_machine::observed::{Holder, MigMode, Observed, UnplacedInstance, UnreadableGpu};
use ent_machine::state::State;
use ent_machine::target::{ClockTarget, Target, TargetGpu, restore};

const A100: &str = "a100-80gb-pcie";
const H100: &str = "h100-80gb-sxm";

fn text(target: &Target, observed: &Observed, state: &State) -> String {
    diff(target, observed, state).unwrap().to_string()
}

fn refused(target: &Target, observed: &Observed, state: &State) -> Vec<(&'static str, String)> {
    let refusals: Vec<Refusal> = diff(target, observed, state).unwrap_err();
    assert!(refusals.iter().all(|refusal| !refusal.help.is_empty()));
    refusals.into_iter().map(|refusal| (refusal.code, refusal.message)).collect()
}

#[track_caller]
fn is(found: &str, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim_end).skip_while(|l| l.is_empty()).collect();
    let indent = expected.first().map_or(0, |first| first.len() - first.trim_start().len());
    let expected: Vec<&str> = expected.iter().map(|line| line.get(indent..).unwrap_or("")).collect();
    let found: Vec<&str> = found.lines().map(str::trim_end).collect();
    assert_eq!(found, expected.into_iter().filter(|l| !l.is_empty()).collect::<Vec<_>>(), "{found:#?}");
}

/// A wish of a plan: persistence mode and clock as well.
fn planned(mut gpu: TargetGpu, clock: u32) -> TargetGpu {
    gpu.persistence = Some(true);
    gpu.sm_clock = ClockTarget::Locked { min: clock, max: clock };
    gpu
}

fn whole(services: &[&str]) -> TargetGpu {
    TargetGpu {
        mig: Some(false),
        services: services.iter().map(|s| (*s).to_owned()).collect(),
        ..cut(A100, &[])
    }
}

/// Our instances are all there are on GPU 0.
fn all_ours(board: &str, instances: &[(At<'_>, &str)]) -> (Model, State) {
    let places: Vec<At<'_>> = instances.iter().map(|(at, _)| *at).collect();
    let model = machine(&[board]).with(0, &places);
    let of_gpu: Vec<(u32, At<'_>, &str)> = instances.iter().map(|(at, service)| (0, *at, *service)).collect();
    let state = ours(&model, &of_gpu);
    (model, state)
}

#[test]
fn a_fresh_ampere_machine_is_set_up_in_one_order() {
    let mut model = machine(&[A100, A100, H100]).without_mig(0).without_mig(2);
    model.gpu(0).is_persistent = Some(false);
    model.gpu(2).is_persistent = Some(false);
    let target = wish(&[
        (0, planned(cut(A100, &[(("3g.40gb", 0), "classify"), (("2g.20gb", 4), "search")]), 1050)),
        (2, planned(cut(H100, &[(("7g.80gb", 0), "chat")]), 1980)),
    ]);
    is(
        &text(&target, &model.observed, &State::default()),
        "
        1  gpu 0  turn MIG mode on (the board resets)  services classify and search need MIG instances
        2  gpu 2  turn MIG mode on                     service chat needs MIG instances
        3  gpu 0  turn persistence mode on             a locked clock is lost without it
        4  gpu 2  turn persistence mode on             a locked clock is lost without it
        5  gpu 0  create 3g.40gb at slice 0            service classify needs it
        6  gpu 0  create 2g.20gb at slice 4            service search needs it
        7  gpu 2  create 7g.80gb at slice 0            service chat needs it
        8  gpu 0  lock the SM clock to 1050 MHz        services classify and search need this clock
        9  gpu 2  lock the SM clock to 1980 MHz        service chat needs this clock
        untouched: GPU-1
        ",
    );
}

#[test]
fn what_fits_stays_and_the_rest_makes_room() {
    let (model, state) =
        all_ours(A100, &[(("2g.20gb", 0), "search"), (("1g.10gb", 2), "old"), (("1g.10gb", 4), "chat")]);
    let target = wish(&[(
        0,
        cut(A100, &[(("3g.40gb", 0), "classify"), (("2g.20gb", 4), "search"), (("1g.10gb", 6), "chat")]),
    )]);
    // Keeping the 2g at 0 costs the 1g at 4, for the 3g; keeping that and the other 1g costs the 2g.
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  destroy 1g.10gb at slice 4  in the way of 3g.40gb at slice 4
        2  gpu 0  create 3g.40gb at slice 4   service classify needs it
        kept on GPU-0: 2g.20gb at slice 0, service search
        kept on GPU-0: 1g.10gb at slice 2, service chat
        ",
    );
}

#[test]
fn an_instance_nobody_needs_goes() {
    let (model, state) = all_ours(A100, &[(("1g.10gb", 0), "chat"), (("1g.10gb", 1), "old")]);
    let target = wish(&[(0, cut(A100, &[(("1g.10gb", 5), "chat")]))]);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  destroy 1g.10gb at slice 1  no service needs it any more
        kept on GPU-0: 1g.10gb at slice 0, service chat
        ",
    );
}

#[test]
fn a_service_stays_where_it_is() {
    let (model, state) =
        all_ours(A100, &[(("1g.10gb", 0), "a"), (("1g.10gb", 1), "b"), (("1g.10gb", 2), "c")]);
    let target = wish(&[(0, cut(A100, &[(("1g.10gb", 0), "c"), (("1g.10gb", 1), "b")]))]);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  destroy 1g.10gb at slice 0  no service needs it any more
        kept on GPU-0: 1g.10gb at slice 1, service b
        kept on GPU-0: 1g.10gb at slice 2, service c
        ",
    );
}

#[test]
fn among_equals_the_busy_instance_stays() {
    let (mut model, state) = all_ours(A100, &[(("1g.10gb", 0), "a"), (("1g.10gb", 1), "a")]);
    let target = wish(&[(0, cut(A100, &[(("1g.10gb", 0), "a")]))]);
    let kept = |model: &Model| {
        let changes: Changes = diff(&target, &model.observed, &state).unwrap();
        changes.kept.iter().map(|one| one.start).collect::<Vec<_>>()
    };
    assert_eq!(kept(&model), [0], "where the plan puts it");
    let id = model.gpu(0).instances[1].gpu_instance_id;
    model.gpu(0).holders.push(Holder { pid: 7, name: None, gpu_instance_id: Some(id) });
    assert_eq!(kept(&model), [1], "a process sits there");
}

#[test]
fn a_half_made_instance_is_completed_and_a_badly_cut_one_made_anew() {
    let (mut model, state) = all_ours(A100, &[(("3g.40gb", 0), "a"), (("3g.40gb", 4), "b")]);
    model.gpu(0).instances[0].compute_instances.clear();
    model.gpu(0).instances[1].compute_instances[0].is_whole = false;
    let target = wish(&[(0, cut(A100, &[(("3g.40gb", 0), "a"), (("3g.40gb", 4), "b")]))]);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  destroy 3g.40gb at slice 4  its compute instances leave part of it unused
        2  gpu 0  create 3g.40gb at slice 0   service a needs it; its compute instance is missing
        3  gpu 0  create 3g.40gb at slice 4   service b needs it
        ",
    );
    // Going back to a machine that had it so does not touch it.
    let back = restore(&model.observed, &state, &[uuid(0)].into());
    is(
        &text(&back, &model.observed, &state),
        "
        1  gpu 0  create 3g.40gb at slice 0  it was there before; its compute instance is missing
        kept on GPU-0: 3g.40gb at slice 4
        ",
    );
}

#[test]
fn a_half_made_instance_that_is_not_wanted_goes() {
    let (mut model, state) = all_ours(A100, &[(("3g.40gb", 0), "a")]);
    model.gpu(0).instances[0].compute_instances.clear();
    let target = wish(&[(0, cut(A100, &[(("7g.80gb", 0), "b")]))]);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  destroy 3g.40gb at slice 0  in the way of 7g.80gb at slice 0
        2  gpu 0  create 7g.80gb at slice 0   service b needs it
        ",
    );
}

#[test]
fn what_is_ours_and_gone_is_created_again() {
    let (_, state) = all_ours(A100, &[(("2g.20gb", 2), "a")]);
    let target = wish(&[(0, cut(A100, &[(("2g.20gb", 2), "a")]))]);
    is(
        &text(&target, &machine(&[A100]).observed, &state),
        "
        1  gpu 0  create 2g.20gb at slice 2  service a needs it
        ",
    );
}

#[test]
fn a_board_that_is_to_be_whole_is_cleared_before_its_mode_goes_off() {
    let (mut model, state) = all_ours(A100, &[(("3g.40gb", 0), "a"), (("1g.10gb", 6), "b")]);
    model.gpu(0).power_limit_mw = Some(250_000);
    let target = wish(&[(0, planned(whole(&["a", "b", "c"]), 1410))]);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  destroy 3g.40gb at slice 0            MIG mode goes off
        2  gpu 0  destroy 1g.10gb at slice 6            MIG mode goes off
        3  gpu 0  turn MIG mode off (the board resets)  services a, b and c need the whole board
        4  gpu 0  turn persistence mode on              the reset may turn it off
        5  gpu 0  lock the SM clock to 1410 MHz         services a, b and c need this clock
        6  gpu 0  set the power limit to 250 W          the reset sets it back
        ",
    );
}

#[test]
fn a_machine_that_is_as_wished_has_nothing_to_do() {
    let (mut model, mut state) = all_ours(A100, &[(("3g.40gb", 4), "a")]);
    let target = wish(&[(0, planned(cut(A100, &[(("3g.40gb", 0), "a")]), 1050))]);
    state.gpus.get_mut(&uuid(0)).unwrap().locked_sm_clock_mhz = Some((1050, 1050));
    model.gpu(0).sm_clock_mhz = Some(1050);
    let as_wished = "
        nothing to do
        kept on GPU-0: 3g.40gb at slice 4, service a
        untouched: GPU-0
        ";
    is(&text(&target, &model.observed, &state), as_wished);
    // Heat or the power limit keeps it lower.
    model.gpu(0).sm_clock_mhz = Some(900);
    is(&text(&target, &model.observed, &state), as_wished);
    // Faster than the lock allows: somebody unlocked it.
    model.gpu(0).sm_clock_mhz = Some(1410);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  lock the SM clock to 1050 MHz  it runs at 1410 MHz: the lock is gone
        kept on GPU-0: 3g.40gb at slice 4, service a
        ",
    );
    model.gpu(0).sm_clock_mhz = Some(1050);
    model.gpu(0).is_persistent = Some(false);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  turn persistence mode on       a locked clock is lost without it
        2  gpu 0  lock the SM clock to 1050 MHz  without persistence mode the lock may have been lost
        kept on GPU-0: 3g.40gb at slice 4, service a
        ",
    );
}

#[test]
fn after_a_reboot_everything_is_set_up_again() {
    let (mut model, mut state) = all_ours(H100, &[(("3g.40gb", 0), "a")]);
    state.gpus.get_mut(&uuid(0)).unwrap().locked_sm_clock_mhz = Some((1980, 1980));
    model.observed.boot_id = "boot-2".to_owned();
    model.gpu(0).instances.clear();
    model.gpu(0).mig = Some(MigMode { current: false, pending: false });
    let target = wish(&[(0, planned(cut(H100, &[(("3g.40gb", 0), "a")]), 1980))]);
    is(
        &text(&target, &model.observed, &state),
        "
        1  gpu 0  turn MIG mode on               service a needs MIG instances
        2  gpu 0  create 3g.40gb at slice 0      service a needs it
        3  gpu 0  lock the SM clock to 1980 MHz  the lock was lost at the reboot
        ",
    );
}

#[test]
fn what_sits_in_our_place_after_a_reboot_is_not_ours() {
    let (mut model, state) = all_ours(A100, &[(("3g.40gb", 0), "a")]);
    model.observed.boot_id = "boot-2".to_owned();
    let target = wish(&[(0, cut(A100, &[(("7g.80gb", 0), "a")]))]);
    assert_eq!(refused(&target, &model.observed, &state)[0].0, "foreign-instance");
}

#[test]
fn a_mode_that_waits_for_a_reset_is_taken_back() {
    let mut model = machine(&[A100]);
    model.gpu(0).mig = Some(MigMode { current: true, pending: false });
    let target = wish(&[(0, cut(A100, &[(("7g.80gb", 0), "a")]))]);
    is(
        &text(&target, &model.observed, &State::default()),
        "
        1  gpu 0  turn MIG mode on           it would be turned off at the next reset
        2  gpu 0  create 7g.80gb at slice 0  service a needs it
        ",
    );
}

#[test]
fn the_way_back_says_so() {
    let before = machine(&[A100]).without_mig(0);
    let (mut now, mut state) = all_ours(A100, &[(("3g.40gb", 0), "a")]);
    now.gpu(0).power_limit_mw = Some(200_000);
    state.gpus.get_mut(&uuid(0)).unwrap().locked_sm_clock_mhz = Some((1050, 1050));
    let back = restore(&before.observed, &State::default(), &[uuid(0)].into());
    is(
        &text(&back, &now.observed, &state),
        "
        1  gpu 0  destroy 3g.40gb at slice 0            MIG mode goes off
        2  gpu 0  turn MIG mode off (the board resets)  it was off before
        3  gpu 0  turn persistence mode on              the reset may turn it off
        4  gpu 0  unlock the SM clock                   as before
        5  gpu 0  set the power limit to 300 W          as before
        ",
    );
    let (was, had) = all_ours(A100, &[(("2g.20gb", 2), "b")]);
    let back = restore(&was.observed, &had, &[uuid(0)].into());
    is(
        &text(&back, &now.observed, &state),
        "
        1  gpu 0  destroy 3g.40gb at slice 0    in the way of 2g.20gb at slice 2
        2  gpu 0  create 2g.20gb at slice 2     it was there before
        3  gpu 0  unlock the SM clock           as before
        4  gpu 0  set the power limit to 300 W  as before
        ",
    );
}

#[test]
fn exactly_the_foreign_instances_in_the_way_are_named() {
    let model = machine(&[A100]).with(0, &[("1g.10gb", 0), ("1g.10gb", 4), ("1g.10gb", 5)]);
    let state = State { boot_id: "boot-1".to_owned(), ..State::default() };
    let target = wish(&[(0, cut(A100, &[(("3g.40gb", 0), "a"), (("2g.20gb", 4), "b")]))]);
    // Without the one at 0 there is room for the 3g, but then none for the 2g, which may not be at 6. Without
    // the other two the 3g fits at 4 and the 2g at 2.
    let named = |start: u32| {
        let what = format!("1g.10gb at slice {start} of GPU 0");
        ("foreign-instance", format!("{what} is not entc's, and leaves no room for 3g.40gb, 2g.20gb"))
    };
    assert_eq!(refused(&target, &model.observed, &state), [named(4), named(5)]);
    let off = wish(&[(0, whole(&["a"]))]);
    assert_eq!(
        refused(&off, &model.observed, &state)[0].1,
        "1g.10gb at slice 0 of GPU 0 is not entc's, and would be lost with MIG mode"
    );
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let none = State::default();
    let model = machine(&[A100, A100]);
    let one = |refusals: Vec<(&'static str, String)>| {
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        refusals.into_iter().next().unwrap()
    };
    let three = cut(A100, &[(("3g.40gb", 0), "a"), (("3g.40gb", 4), "a"), (("1g.10gb", 0), "b")]);
    assert_eq!(
        one(refused(&wish(&[(0, three)]), &model.observed, &none)),
        ("impossible-layout", "GPU 0 cannot be cut into 2 x 3g.40gb, 1g.10gb".to_owned())
    );
    let gone = wish(&[(7, cut(A100, &[]))]);
    assert_eq!(
        one(refused(&gone, &model.observed, &none)),
        ("gpu-lost", "GPU-7 is not on this machine any more".to_owned())
    );
    let mut lost = model.clone();
    let unreadable = UnreadableGpu { index: 7, uuid: Some(uuid(7)), reason: "it is lost".to_owned() };
    lost.observed.unreadable.push(unreadable);
    assert_eq!(
        one(refused(&gone, &lost.observed, &none)),
        ("gpu-lost", "GPU 7 (GPU-7) cannot be read: it is lost".to_owned())
    );
    let mut twice = model.clone();
    twice.gpu(1).index = 0;
    assert_eq!(
        one(refused(&wish(&[(0, cut(A100, &[]))]), &twice.observed, &none)),
        ("duplicate-gpu", "GPU 0 (GPU-1) is there twice".to_owned())
    );
    let alien = wish(&[(0, cut(A100, &[(("1g.5gb", 0), "a")]))]);
    assert_eq!(
        one(refused(&alien, &model.observed, &none)),
        ("unknown-profile", "GPU 0 (NVIDIA A100 80GB PCIe) has no profile 1g.5gb".to_owned())
    );
    // The catalogue has it, and this driver does not.
    let mut old = model.clone();
    old.gpu(0).profiles.retain(|profile| profile.name != "1g.20gb");
    let double = wish(&[(0, cut(A100, &[(("1g.20gb", 6), "a")]))]);
    assert_eq!(one(refused(&double, &old.observed, &none)).0, "unknown-profile");
    let mut unknown = model.clone();
    unknown.gpu(0).board = None;
    assert_eq!(
        one(refused(&double, &unknown.observed, &none)),
        (
            "unknown-board",
            "GPU 0 (NVIDIA A100 80GB PCIe, PCI 0x20B510DE) is a board that entc does not know".to_owned()
        )
    );
    let mut plain = model.clone();
    plain.gpu(0).mig = None;
    assert_eq!(one(refused(&double, &plain.observed, &none)).0, "not-supported");
    let mut hidden = model;
    let unplaced = UnplacedInstance { gpu_instance_id: 3, profile: None, mig_devices: Vec::new() };
    hidden.gpu(0).unplaced.push(unplaced);
    assert_eq!(
        one(refused(&double, &hidden.observed, &none)),
        ("no-permission", "this process may not see where the instances of GPU 0 sit (1 of them)".to_owned())
    );
}
