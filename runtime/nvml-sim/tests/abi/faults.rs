//! What is told to go wrong goes wrong, at the call it was told of.

#![expect(unsafe_code, reason = "the library is C")]

use crate::client::{Client, INSUFFICIENT_RESOURCES, SUCCESS, UNINITIALIZED, use_folder};
use crate::crash::{check, start};
use ent_nvml_sim::description::Description;
use ent_nvml_sim::faults::{Fault, Faults, What, When};
use ent_nvml_sim::machine::SimulatedMachine;
use ent_nvml_sim::returns::Return;
use nvml_wrapper_sys::bindings::NvmlLib;
use std::os::unix::process::ExitStatusExt;

fn fault(call: &str, occurrence: u64, when: When, what: What) -> Faults {
    Faults(vec![Fault { call: call.to_owned(), occurrence, when, what, seen: 0 }])
}

#[test]
fn an_error_comes_at_its_call_and_once() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    let error = What::Error(Return::InsufficientResources);
    let create = "nvmlDeviceCreateGpuInstance";
    client.machine.set_faults(&fault(create, 2, When::Before, error)).unwrap();
    let created: Vec<bool> = (0..3).map(|_| client.create(gpu, 19).is_ok()).collect();
    assert_eq!(created, [true, false, true]);
    assert_eq!(client.gpu_instances(gpu, 19).map(|all| all.len()), Ok(2));
    assert_eq!(client.machine.faults().unwrap().0[0].seen, 2);
    // Afterwards: it was done, and the caller is told that it was not.
    client.machine.set_faults(&fault(create, 1, When::After, error)).unwrap();
    assert_eq!(client.create(gpu, 19).err(), Some(INSUFFICIENT_RESOURCES));
    assert_eq!(client.gpu_instances(gpu, 19).map(|all| all.len()), Ok(3));
}

#[test]
fn initialising_can_fail_too() {
    let machine = SimulatedMachine::new(&Description::of("575.57.08", &[("a100-80gb-pcie", 1)])).unwrap();
    let error = What::Error(Return::DriverNotLoaded);
    machine.set_faults(&fault("nvmlInit_v2", 1, When::Before, error)).unwrap();
    assert_eq!(use_folder(&machine.library(), machine.state()), SUCCESS);
    let lib = unsafe { NvmlLib::new(machine.library()) }.unwrap();
    assert_eq!(unsafe { lib.nvmlInit_v2() }, Return::DriverNotLoaded.code());
    assert_eq!(unsafe { lib.nvmlShutdown() }, UNINITIALIZED);
    assert_eq!(unsafe { lib.nvmlInit_v2() }, SUCCESS);
}

#[test]
fn a_process_dies_before_or_after_the_effect_of_a_call() {
    const SIGKILL: i32 = 9;
    let create = "nvmlDeviceCreateGpuInstanceWithPlacement";
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1)]);
    description.gpu[0].mig = true;
    // A round of the process creates, and destroys again before the next: what is there is what it left.
    for (when, what, n_left) in [
        (When::Before, What::Kill, 0),
        (When::After, What::Kill, 1),
        // Instances do not survive a reboot, and on Ampere MIG mode does.
        (When::After, What::Reboot, 0),
    ] {
        let machine = SimulatedMachine::new(&description).unwrap();
        machine.set_faults(&fault(create, 2, when, what)).unwrap();
        let (mut child, rounds) = start(&machine, 2);
        // Rounds 3 and 4 create a 1g at slice 1 and a 7g.
        assert_eq!(rounds.collect::<Vec<String>>(), ["round 3"]);
        assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
        assert_eq!(machine.look(check).unwrap(), n_left, "{when:?} {what:?}");
        let boots = machine.look(ent_nvml_sim::silicon::Silicon::boot).unwrap();
        assert_eq!(boots, if what == What::Reboot { 2 } else { 1 });
    }
}
