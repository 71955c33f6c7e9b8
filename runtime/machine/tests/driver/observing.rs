//! What a machine is: everything that the silicon knows, and nothing that this process may not see.

use crate::{GPU, bench, boot, cut, description, instance, layout, process, uncut};
use ent_machine::observed::{Holder, MigMode};
use ent_nvml_sim::description::{DescribedGpu, DescribedInstance, Description};

#[test]
fn every_board_of_the_catalogue_is_recognised() {
    for id in ent_plan::device::board_ids() {
        let board = ent_plan::device::board(id).unwrap();
        let gpu = bench(cut(id)).gpu();
        assert_eq!(gpu.board.as_deref(), Some(id));
        assert!(board.pci_device_ids.contains(&gpu.pci_device_id), "{id}: {}", gpu.pci_device_id);
        let mut known: Vec<&str> = board.profiles.iter().map(|p| p.name.as_str()).collect();
        let mut told: Vec<&str> = gpu.profiles.iter().map(|p| p.name.as_str()).collect();
        known.sort_unstable();
        told.sort_unstable();
        assert_eq!(known, told, "{id}");
        assert!(gpu.profiles.is_sorted_by_key(|p| p.id), "{id}");
        for profile in &gpu.profiles {
            let known = board.profile(&profile.name).unwrap();
            assert_eq!(known.gi_profile_id, Some(profile.id), "{id} {}", profile.name);
            assert_eq!(known.max_instances, profile.max_instances, "{id} {}", profile.name);
        }
        let clocks: Vec<u32> = board.clocks.iter().map(|clock| clock.0).collect();
        assert_eq!(gpu.supported_sm_clocks_mhz, clocks, "{id}");
    }
}

#[test]
fn a_gpu_without_mig_mode_on_has_a_mode_and_no_instances() {
    let gpu = bench(uncut("a100-80gb-pcie")).gpu();
    assert_eq!(gpu.mig, Some(MigMode { current: false, pending: false }));
    assert_eq!((gpu.instances, gpu.unplaced, gpu.holders), (vec![], vec![], vec![]));
    assert!(gpu.power_mw.is_some() && gpu.energy_mj.is_some() && gpu.power_limit_mw.is_some());
    assert_eq!(gpu.power_limit_mw, gpu.default_power_limit_mw);
}

#[test]
fn what_a_gpu_cannot_say_is_nothing() {
    // Nobody captured what this board draws when it idles, so the simulated one does not say.
    let gpu = bench(uncut("b200-180gb")).gpu();
    assert_eq!((gpu.power_mw, gpu.energy_mj), (None, None));
    assert_eq!(gpu.supported_sm_clocks_mhz, Vec::<u32>::new());
}

#[test]
fn instances_are_listed_by_start_with_their_mig_devices() {
    let instances = vec![instance("1g.10gb", 6), instance("3g.40gb", 0), instance("2g.20gb", 4)];
    let bench = bench(DescribedGpu { instances, ..cut("a100-80gb-pcie") });
    let gpu = bench.gpu();
    assert_eq!(layout(&gpu), [("3g.40gb", 0, 4, true), ("2g.20gb", 4, 2, true), ("1g.10gb", 6, 1, true)]);
    for observed in &gpu.instances {
        let uuid = observed.mig_device().unwrap();
        let silicon = bench.machine.look(|silicon| {
            let device = silicon.device_by_uuid(&uuid.0).unwrap();
            silicon.gpu_instance_id(device).unwrap()
        });
        assert_eq!(silicon.unwrap(), observed.gpu_instance_id, "the UUID is this instance's");
    }
}

#[test]
fn an_instance_without_a_compute_instance_is_seen() {
    let orphan = DescribedInstance { compute: false, ..instance("2g.20gb", 2) };
    let gpu =
        bench(DescribedGpu { instances: vec![orphan, instance("1g.10gb", 0)], ..cut("a100-80gb-pcie") })
            .gpu();
    assert_eq!(layout(&gpu), [("1g.10gb", 0, 1, true), ("2g.20gb", 2, 2, false)]);
    assert_eq!(gpu.instances[1].compute_instances, []);
}

#[test]
fn an_instance_that_is_shared_out_is_no_whole_mig_device() {
    let orphan = DescribedInstance { compute: false, ..instance("3g.40gb", 0) };
    let bench = bench(DescribedGpu { instances: vec![orphan], ..cut("a100-80gb-pcie") });
    let made = bench.machine.change(|silicon| {
        // Profile 9 is 3g, compute profile 0 one of its slices.
        let gpu_instance = silicon.gpu_instances(GPU, 9).unwrap()[0];
        silicon.create_compute_instance(gpu_instance, 0, None).unwrap();
        silicon.create_compute_instance(gpu_instance, 0, None).unwrap();
    });
    made.unwrap();
    let gpu = bench.gpu();
    assert_eq!(layout(&gpu), [("3g.40gb", 0, 4, false)]);
    let parts = &gpu.instances[0].compute_instances;
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| !part.is_whole && part.uuid.is_some()), "{parts:?}");
    assert_ne!(parts[0].uuid, parts[1].uuid);
}

#[test]
fn holders_are_named_and_placed() {
    let bench = bench(DescribedGpu {
        instances: vec![instance("1g.10gb", 6), instance("3g.40gb", 0)],
        processes: vec![process("server", 700_001, Some(1)), process("nv-hostengine", 700_002, None)],
        ..cut("a100-80gb-pcie")
    });
    let gpu = bench.gpu();
    let on = gpu.instances.iter().find(|i| i.profile == "3g.40gb").unwrap().gpu_instance_id;
    let named =
        |pid, name: &str, gpu_instance_id| Holder { pid, name: Some(name.to_owned()), gpu_instance_id };
    assert_eq!(gpu.holders, [named(700_001, "server", Some(on)), named(700_002, "nv-hostengine", None)]);
}

#[test]
fn without_rights_instances_are_counted_and_their_places_unknown() {
    let gpu = DescribedGpu {
        instances: vec![instance("1g.10gb", 6), instance("3g.40gb", 0)],
        processes: vec![process("server", 700_001, Some(1))],
        ..cut("a100-80gb-pcie")
    };
    let privileged = bench(gpu.clone());
    let seen = privileged.gpu();
    let user = boot(&Description { privileged: false, ..description(vec![gpu]) });
    assert!(privileged.driver.is_privileged() && !user.driver.is_privileged());
    let gpu = user.gpu();
    assert_eq!(gpu.instances, []);
    let mut hidden: Vec<(u32, Option<&str>, usize)> =
        gpu.unplaced.iter().map(|i| (i.gpu_instance_id, i.profile.as_deref(), i.mig_devices.len())).collect();
    hidden.sort_unstable();
    let mut there: Vec<(u32, Option<&str>, usize)> =
        seen.instances.iter().map(|i| (i.gpu_instance_id, Some(i.profile.as_str()), 1)).collect();
    there.sort_unstable();
    assert_eq!(hidden, there);
    assert_eq!(gpu.holders.len(), 1, "the process is seen through its MIG device");
    assert_eq!(gpu.holders[0].gpu_instance_id, seen.holders[0].gpu_instance_id);
    assert_eq!(gpu.profiles, seen.profiles, "the menu needs no rights");
    assert_eq!(gpu.mig, seen.mig);
}

#[test]
fn without_rights_an_empty_machine_is_seen_whole() {
    let gpus = vec![cut("h200-141gb"), uncut("a30-24gb")];
    let user = boot(&Description { privileged: false, ..description(gpus.clone()) });
    let root = boot(&description(gpus));
    let (mut seen, mut all) = (user.observe(), root.observe());
    // Two machines differ in what the clock and the folder make of them, and in nothing else.
    for observed in [&mut seen, &mut all] {
        observed.library.clear();
        observed.boot_id.clear();
        for gpu in &mut observed.gpus {
            (gpu.energy_mj, gpu.power_mw) = (None, None);
        }
    }
    assert_eq!(seen, all);
}

#[test]
fn a_gpu_that_falls_off_the_bus_does_not_hide_the_others() {
    let bench = boot(&description(vec![cut("a100-80gb-pcie"), cut("a100-80gb-pcie"), cut("a30-24gb")]));
    bench.machine.change(|silicon| silicon.lose(1)).unwrap().unwrap();
    let observed = bench.observe();
    let indices: Vec<u32> = observed.gpus.iter().map(|gpu| gpu.index).collect();
    assert_eq!(indices, [0, 2]);
    let lost: Vec<(u32, &str)> = observed.unreadable.iter().map(|g| (g.index, g.reason.as_str())).collect();
    assert_eq!(lost, [(1, "the GPU has fallen off the bus")]);
}

#[test]
fn what_is_observed_survives_its_file() {
    let bench = bench(DescribedGpu { instances: vec![instance("1g.10gb", 6)], ..cut("a100-80gb-pcie") });
    let observed = bench.observe();
    let text = serde_json::to_string(&observed).unwrap();
    assert_eq!(serde_json::from_str::<ent_machine::observed::Observed>(&text).unwrap(), observed);
}
