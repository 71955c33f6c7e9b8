//! Several processes change one machine, and some are killed: what is there is always a machine.

#![expect(unsafe_code, reason = "the library is C")]

use crate::client::{Client, SUCCESS, use_folder};
use ent_nvml_sim::description::Description;
use ent_nvml_sim::machine::SimulatedMachine;
use ent_nvml_sim::silicon::{Device, Silicon};
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlGpuInstancePlacement_t};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr::null_mut;

/// Tells a process of this test to hammer a machine: its library, its folder, and after which round to begin.
const LIBRARY: &str = "ENT_TEST_HAMMER_LIBRARY";
const FOLDER: &str = "ENT_TEST_HAMMER_FOLDER";
const ROUND: &str = "ENT_TEST_HAMMER_ROUND";

/// The profile ids of an A100 80GB, and how many memory slices each takes.
const SIZES: [(u32, u32); 7] = [(19, 1), (20, 1), (15, 2), (14, 2), (9, 4), (5, 4), (0, 8)];

fn hammer(library: &Path, folder: &Path, mut round: u32) {
    assert_eq!(use_folder(library, folder), SUCCESS);
    let lib = unsafe { NvmlLib::new(library) }.unwrap();
    assert_eq!(unsafe { lib.nvmlInit_v2() }, SUCCESS);
    let mut gpu = null_mut();
    assert_eq!(unsafe { lib.nvmlDeviceGetHandleByIndex_v2(0, &mut gpu) }, SUCCESS);
    loop {
        round += 1;
        let (profile_id, size) = SIZES[(round * 5) as usize % SIZES.len()];
        let placement = nvmlGpuInstancePlacement_t { start: round * 3 % 8 / size * size, size };
        let mut instance = null_mut();
        let create = lib.nvmlDeviceCreateGpuInstanceWithPlacement.as_ref().unwrap();
        if unsafe { create(gpu, profile_id, &placement, &mut instance) } == SUCCESS {
            let mut compute = null_mut();
            let compute_profile = if profile_id == 0 { 4 } else { 0 };
            unsafe { lib.nvmlGpuInstanceCreateComputeInstance(instance, compute_profile, &mut compute) };
            unsafe { lib.nvmlDeviceSetGpuLockedClocks(gpu, 210 + round % 80 * 15, 1410) };
            unsafe { lib.nvmlComputeInstanceDestroy(compute) };
            unsafe { lib.nvmlGpuInstanceDestroy(instance) };
        }
        // The test harness has begun a line of its own.
        println!("\nround {round}");
    }
}

/// Not a test by itself: the other one starts it as a process, and it never returns then.
#[test]
fn hammering_process() {
    let (Some(library), Some(folder)) = (std::env::var_os(LIBRARY), std::env::var_os(FOLDER)) else {
        return;
    };
    let round = std::env::var(ROUND).unwrap().parse().unwrap();
    hammer(Path::new(&library), Path::new(&folder), round);
}

pub(crate) fn start(machine: &SimulatedMachine, round: u32) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::hammering_process", "--nocapture", "--test-threads=1"])
        .env(LIBRARY, machine.library())
        .env(FOLDER, machine.state())
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    (child, lines.filter(|line| line.starts_with("round")))
}

/// Instances lie apart, and every compute instance in a GPU instance that there is.
pub(crate) fn check(silicon: &Silicon) -> usize {
    let gpu = silicon.gpu_by_index(0).unwrap();
    let mut occupied = [0; 8];
    let mut n = 0;
    for (profile_id, size) in SIZES {
        for serial in silicon.gpu_instances(gpu, profile_id).unwrap() {
            let info = silicon.gpu_instance(serial).unwrap();
            assert_eq!((info.profile_id, info.placement.size), (profile_id, size));
            let (start, end) = (info.placement.start as usize, (info.placement.start + size) as usize);
            occupied[start..end].iter_mut().for_each(|slice| *slice += 1);
            for profile in 0..8 {
                let Ok(menu) = silicon.compute_instance_profile(serial, profile, 0) else { continue };
                for compute in silicon.compute_instances(serial, menu.id).unwrap() {
                    assert_eq!(silicon.compute_instance(compute).unwrap().gpu_instance, serial);
                }
            }
            n += 1;
        }
    }
    assert!(occupied.iter().all(|n| *n <= 1), "{occupied:?}");
    n
}

#[test]
fn processes_that_are_killed_leave_a_whole_machine() {
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1)]);
    description.gpu[0].mig = true;
    let machine = SimulatedMachine::new(&description).unwrap();
    let mut most = 0;
    for kill in 0..6 {
        let mut two = [start(&machine, 0), start(&machine, 3)];
        // Each has got somewhere, and is somewhere else in its round at every kill.
        for (_, rounds) in &mut two {
            assert!(rounds.nth(5 + kill * 3).is_some(), "a hammering process ended by itself");
        }
        for _ in 0..20 {
            most = most.max(machine.look(check).unwrap());
        }
        for (child, _) in &mut two {
            child.kill().unwrap();
            child.wait().unwrap();
            most = most.max(machine.look(check).unwrap());
        }
    }
    assert!(most > 0, "nothing was ever seen that could have been half done");
    // Whoever comes next can tidy up and build anything.
    machine
        .change(|silicon| {
            let gpu = Device::Gpu(0);
            for (profile_id, _) in SIZES {
                for serial in silicon.gpu_instances(gpu, profile_id).unwrap() {
                    for profile in 0..8 {
                        let Ok(menu) = silicon.compute_instance_profile(serial, profile, 0) else { continue };
                        for compute in silicon.compute_instances(serial, menu.id).unwrap() {
                            silicon.destroy_compute_instance(compute).unwrap();
                        }
                    }
                    silicon.destroy_gpu_instance(serial).unwrap();
                }
            }
            silicon.create_gpu_instance(gpu, 0, None).unwrap();
        })
        .unwrap();
    assert_eq!(machine.look(check).unwrap(), 1);
}

#[test]
fn one_client_sees_at_once_what_another_did() {
    let client = Client::with_mig("a100-80gb-pcie");
    let copy = client.machine.state().join("another.so");
    std::fs::copy(client.machine.library(), &copy).unwrap();
    assert_eq!(use_folder(&copy, client.machine.state()), SUCCESS);
    let other = unsafe { NvmlLib::new(&copy) }.unwrap();
    assert_eq!(unsafe { other.nvmlInit_v2() }, SUCCESS);
    let mut gpu = null_mut();
    assert_eq!(unsafe { other.nvmlDeviceGetHandleByIndex_v2(0, &mut gpu) }, SUCCESS);
    let mut left = 0;
    let mut remaining = || {
        let code = unsafe { other.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 19, &mut left) };
        (code, left)
    };
    assert_eq!(remaining(), (SUCCESS, 7));
    let instance = client.create(client.gpu(0), 19).unwrap();
    assert_eq!(remaining(), (SUCCESS, 6));
    assert_eq!(client.destroy(instance), Ok(()));
    assert_eq!(remaining(), (SUCCESS, 7));
}
