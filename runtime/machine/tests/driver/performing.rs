//! One step at a time: it comes about and is read back, twice is once, and a refusal says what it left.

use crate::{GPU, bench, boot, create, cut, description, destroy, instance, layout, process, set_mig, uncut};
use ent_machine::changes::{Operation, Step};
use ent_machine::error::DeviceErrorKind;
use ent_machine::observed::{GpuUuid, MigMode};
use ent_nvml_sim::description::{DescribedGpu, DescribedInstance, Description};

#[test]
fn every_profile_of_every_board_is_made_and_unmade_at_each_of_its_places() {
    for id in ent_plan::device::board_ids() {
        let board = ent_plan::device::board(id).unwrap();
        let bench = bench(cut(id));
        for profile in &board.profiles {
            for &start in &profile.starts {
                let size = profile.n_memory_slices;
                bench.perform(create(&profile.name, start, size)).unwrap();
                assert_eq!(layout(&bench.gpu()), [(profile.name.as_str(), start, size, true)], "{id}");
                bench.perform(destroy(&profile.name, start, size)).unwrap();
                assert_eq!(layout(&bench.gpu()), [], "{id}");
            }
        }
    }
}

#[test]
fn what_is_already_done_is_done() {
    let bench = bench(cut("a100-80gb-pcie"));
    let twice = |operation: Operation| {
        bench.perform(operation.clone()).unwrap();
        let once = bench.gpu();
        bench.perform(operation).unwrap();
        let again = bench.gpu();
        assert_eq!(
            (&once.instances, once.mig, once.is_persistent),
            (&again.instances, again.mig, again.is_persistent)
        );
        assert_eq!(once.power_limit_mw, again.power_limit_mw);
    };
    bench.perform(create("2g.20gb", 2, 2)).unwrap();
    twice(Operation::SetPersistence { enabled: true });
    twice(Operation::SetPowerLimit { milliwatts: 250_000 });
    twice(Operation::LockClocks { min: 900, max: 900 });
    twice(Operation::UnlockClocks);
    twice(destroy("2g.20gb", 2, 2));
    twice(set_mig(false));
    twice(set_mig(true));
}

#[test]
fn an_instance_that_is_there_when_it_is_to_be_made_is_somebody_elses() {
    let bench = bench(DescribedGpu { instances: vec![instance("2g.20gb", 2)], ..cut("a100-80gb-pcie") });
    let before = bench.gpu().instances;
    let error = bench.perform(create("2g.20gb", 2, 2)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::AlreadyThere);
    assert_eq!(bench.gpu().instances, before);
}

#[test]
fn a_gpu_instance_without_compute_gets_what_it_lacks() {
    let orphan = DescribedInstance { compute: false, ..instance("2g.20gb", 2) };
    let bench = bench(DescribedGpu { instances: vec![orphan], ..cut("a100-80gb-pcie") });
    let before = bench.gpu().instances[0].gpu_instance_id;
    bench.perform(create("2g.20gb", 2, 2)).unwrap();
    let gpu = bench.gpu();
    assert_eq!(layout(&gpu), [("2g.20gb", 2, 2, true)]);
    assert_eq!(gpu.instances[0].gpu_instance_id, before, "the same GPU instance");
    bench.perform(destroy("2g.20gb", 2, 2)).unwrap();
    assert_eq!(layout(&bench.gpu()), []);
}

#[test]
fn an_instance_in_many_parts_goes_with_all_of_them() {
    let orphan = DescribedInstance { compute: false, ..instance("3g.40gb", 0) };
    let bench = bench(DescribedGpu { instances: vec![orphan], ..cut("a100-80gb-pcie") });
    let made = bench.machine.change(|silicon| {
        let gpu_instance = silicon.gpu_instances(GPU, 9).unwrap()[0];
        // Compute profile 1 is two slices, 0 is one.
        silicon.create_compute_instance(gpu_instance, 1, None).unwrap();
        silicon.create_compute_instance(gpu_instance, 0, None).unwrap();
    });
    made.unwrap();
    // It cannot be made whole while parts of it are taken, and says so.
    let error = bench.perform(create("3g.40gb", 0, 4)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::InsufficientResources);
    bench.perform(destroy("3g.40gb", 0, 4)).unwrap();
    assert_eq!(layout(&bench.gpu()), []);
}

#[test]
fn a_taken_place_is_no_room_and_nothing_changes() {
    let bench = bench(DescribedGpu { instances: vec![instance("2g.20gb", 2)], ..cut("a100-80gb-pcie") });
    let error = bench.perform(create("3g.40gb", 0, 4)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::InsufficientResources);
    assert_eq!(error.call, "nvmlDeviceCreateGpuInstanceWithPlacement");
    assert_eq!(error.gpu, Some(bench.gpu().uuid));
    assert!(error.to_string().starts_with("create 3g.40gb at slice 0"), "{error}");
    assert_eq!(layout(&bench.gpu()), [("2g.20gb", 2, 2, true)]);
}

#[test]
fn an_instance_with_a_process_on_it_stays_whole() {
    let bench = bench(DescribedGpu {
        instances: vec![instance("2g.20gb", 2), instance("1g.10gb", 0)],
        processes: vec![process("server", 700_001, Some(0))],
        ..cut("a100-80gb-pcie")
    });
    let error = bench.perform(destroy("2g.20gb", 2, 2)).unwrap_err();
    assert_eq!((error.kind, error.call), (DeviceErrorKind::InUse, "nvmlComputeInstanceDestroy"));
    assert_eq!(layout(&bench.gpu()), [("1g.10gb", 0, 1, true), ("2g.20gb", 2, 2, true)]);
    bench.perform(destroy("1g.10gb", 0, 1)).unwrap();
    assert_eq!(layout(&bench.gpu()), [("2g.20gb", 2, 2, true)]);
}

#[test]
fn another_profile_at_that_place_is_not_touched() {
    let bench = bench(DescribedGpu { instances: vec![instance("1g.20gb", 2)], ..cut("a100-80gb-pcie") });
    bench.perform(destroy("2g.20gb", 2, 2)).unwrap();
    assert_eq!(layout(&bench.gpu()), [("1g.20gb", 2, 2, true)]);
}

#[test]
fn profiles_are_resolved_on_the_gpu_they_are_made_on() {
    // 14 is 1g.6gb on an A30 and 2g.20gb on an A100 80GB.
    let bench = boot(&description(vec![cut("a30-24gb"), cut("a100-80gb-pcie"), cut("h100-80gb-sxm")]));
    bench.perform_on(0, create("1g.6gb", 3, 1)).unwrap();
    bench.perform_on(1, create("2g.20gb", 4, 2)).unwrap();
    bench.perform_on(2, create("1g.10gb", 6, 1)).unwrap();
    let gpus = bench.observe().gpus;
    assert_eq!(layout(&gpus[0]), [("1g.6gb", 3, 1, true)]);
    assert_eq!(layout(&gpus[1]), [("2g.20gb", 4, 2, true)]);
    assert_eq!(layout(&gpus[2]), [("1g.10gb", 6, 1, true)]);
    assert_eq!(gpus[0].instances[0].profile_id, gpus[1].instances[0].profile_id);
    let error = bench.perform_on(0, create("2g.20gb", 0, 2)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::NotFound);
    assert!(error.to_string().contains("1g.6gb"), "it lists what there is: {error}");
}

#[test]
fn a_mode_change_with_a_client_is_refused_and_its_request_taken_back() {
    for board in ["a100-80gb-pcie", "h100-80gb-sxm"] {
        let bench =
            bench(DescribedGpu { processes: vec![process("nv-hostengine", 700_002, None)], ..uncut(board) });
        let error = bench.perform(set_mig(true)).unwrap_err();
        assert_eq!(error.kind, DeviceErrorKind::InUse, "{board}");
        assert!(error.to_string().contains("taken back"), "{error}");
        assert_eq!(bench.gpu().mig, Some(MigMode { current: false, pending: false }), "{board}");
    }
}

#[test]
fn a_mode_change_that_waits_for_a_reboot_is_refused_and_its_request_taken_back() {
    let bench = bench(DescribedGpu { vm: true, ..uncut("a100-80gb-pcie") });
    let error = bench.perform(set_mig(true)).unwrap_err();
    assert_eq!(error.kind, DeviceErrorKind::ResetRequired);
    assert_eq!(bench.gpu().mig, Some(MigMode { current: false, pending: false }));
}

#[test]
fn a_mode_that_somebody_left_pending_is_put_right() {
    let bench = bench(DescribedGpu { vm: true, ..uncut("a100-80gb-pcie") });
    bench.machine.change(|silicon| silicon.set_mig_mode(GPU, true)).unwrap().unwrap();
    assert_eq!(bench.gpu().mig, Some(MigMode { current: false, pending: true }));
    bench.perform(set_mig(false)).unwrap();
    assert_eq!(bench.gpu().mig, Some(MigMode { current: false, pending: false }));
}

#[test]
fn modes_change_on_every_board() {
    for id in ent_plan::device::board_ids() {
        let bench = bench(uncut(id));
        bench.perform(set_mig(true)).unwrap();
        assert_eq!(bench.gpu().mig, Some(MigMode { current: true, pending: true }), "{id}");
        bench.perform(set_mig(false)).unwrap();
        assert_eq!(bench.gpu().mig, Some(MigMode { current: false, pending: false }), "{id}");
    }
}

#[test]
fn clocks_limits_and_persistence_are_set() {
    let bench = bench(uncut("a100-80gb-pcie"));
    bench.perform(Operation::SetPersistence { enabled: true }).unwrap();
    bench.perform(Operation::SetPowerLimit { milliwatts: 200_000 }).unwrap();
    bench.perform(Operation::LockClocks { min: 1050, max: 1050 }).unwrap();
    let gpu = bench.gpu();
    assert_eq!(
        (gpu.is_persistent, gpu.power_limit_mw, gpu.sm_clock_mhz),
        (Some(true), Some(200_000), Some(1050))
    );
    bench.perform(Operation::UnlockClocks).unwrap();
    assert_ne!(bench.gpu().sm_clock_mhz, Some(1050));
    let beyond = bench.perform(Operation::SetPowerLimit { milliwatts: 1_000_000 }).unwrap_err();
    assert_eq!((beyond.kind, beyond.call), (DeviceErrorKind::Other(2), "nvmlDeviceSetPowerManagementLimit"));
    assert!(beyond.to_string().contains("an argument is invalid"), "{beyond}");
    assert_eq!(bench.gpu().power_limit_mw, Some(200_000));
}

#[test]
fn without_rights_every_step_is_refused_and_changes_nothing() {
    let gpu = DescribedGpu { instances: vec![instance("2g.20gb", 2)], ..cut("a100-80gb-pcie") };
    let user = boot(&Description { privileged: false, ..description(vec![gpu]) });
    let before = user.gpu();
    let steps = [
        set_mig(false),
        Operation::SetPersistence { enabled: !before.is_persistent.unwrap() },
        create("1g.10gb", 0, 1),
        destroy("2g.20gb", 2, 2),
        Operation::LockClocks { min: 900, max: 900 },
        Operation::UnlockClocks,
        Operation::SetPowerLimit { milliwatts: 200_000 },
    ];
    for operation in steps {
        let error = user.perform(operation.clone()).unwrap_err();
        assert_eq!(error.kind, DeviceErrorKind::NoPermission, "{operation}");
    }
    let after = user.gpu();
    assert_eq!(
        (after.unplaced, after.mig, after.is_persistent, after.power_limit_mw),
        (before.unplaced, before.mig, before.is_persistent, before.power_limit_mw)
    );
}

#[test]
fn a_gpu_that_is_gone_is_lost_and_one_that_never_was_is_not_found() {
    let bench = boot(&description(vec![cut("a100-80gb-pcie"), cut("a100-80gb-pcie")]));
    let uuid = bench.gpu().uuid;
    let step =
        |gpu: GpuUuid| Step { gpu, index: 0, operation: create("1g.10gb", 0, 1), reason: String::new() };
    bench.machine.change(|silicon| silicon.lose(0)).unwrap().unwrap();
    let lost = bench.driver.perform(&step(uuid.clone())).unwrap_err();
    assert_eq!((lost.kind, lost.gpu), (DeviceErrorKind::Lost, Some(uuid)));
    let unknown = bench.driver.perform(&step(GpuUuid("GPU-0".to_owned()))).unwrap_err();
    assert_eq!(unknown.kind, DeviceErrorKind::NotFound);
    bench.perform(create("1g.10gb", 0, 1)).unwrap();
}
