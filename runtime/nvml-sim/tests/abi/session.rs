//! Begin, end, and what is refused outside.

#![expect(unsafe_code, reason = "the library is C")]

use crate::client::{
    Client, DRIVER_NOT_LOADED, INSUFFICIENT_SIZE, INVALID_ARGUMENT, INVALID_STATE, SUCCESS, UNINITIALIZED,
    use_folder,
};
use ent_nvml_sim::description::Description;
use ent_nvml_sim::machine::SimulatedMachine;
use ent_nvml_sim::returns::Return;
use nvml_wrapper_sys::bindings::NvmlLib;
use std::ffi::{CStr, c_char, c_uint};
use std::ptr::{NonNull, null_mut};

fn machine() -> SimulatedMachine {
    SimulatedMachine::new(&Description::of("575.57.08", &[("a100-80gb-pcie", 1)])).unwrap()
}

fn raw(machine: &SimulatedMachine) -> NvmlLib {
    unsafe { NvmlLib::new(machine.library()) }.unwrap()
}

fn count(lib: &NvmlLib) -> u32 {
    let mut n = 0;
    unsafe { lib.nvmlDeviceGetCount_v2(&mut n) }
}

#[test]
fn initialisations_are_counted() {
    let machine = machine();
    assert_eq!(use_folder(&machine.library(), machine.state()), SUCCESS);
    let lib = raw(&machine);
    assert_eq!(count(&lib), UNINITIALIZED);
    assert_eq!(unsafe { lib.nvmlShutdown() }, UNINITIALIZED);
    assert_eq!(unsafe { lib.nvmlInit_v2() }, SUCCESS);
    assert_eq!(unsafe { lib.nvmlInitWithFlags(0) }, SUCCESS);
    assert_eq!(unsafe { lib.nvmlShutdown() }, SUCCESS);
    assert_eq!(count(&lib), SUCCESS);
    assert_eq!(unsafe { lib.nvmlShutdown() }, SUCCESS);
    assert_eq!(count(&lib), UNINITIALIZED);
    assert_eq!(unsafe { lib.nvmlInit_v2() }, SUCCESS);
    assert_eq!(count(&lib), SUCCESS);
}

#[test]
fn without_a_machine_no_driver_is_loaded() {
    let machine = machine();
    let empty = machine.state().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_eq!(use_folder(&machine.library(), &empty), SUCCESS);
    let lib = raw(&machine);
    assert_eq!(unsafe { lib.nvmlInit_v2() }, DRIVER_NOT_LOADED);
    assert_eq!(count(&lib), UNINITIALIZED);
    // The folder may be chosen again until something is initialised.
    assert_eq!(use_folder(&machine.library(), machine.state()), SUCCESS);
    assert_eq!(unsafe { lib.nvmlInit_v2() }, SUCCESS);
    assert_eq!(use_folder(&machine.library(), &empty), INVALID_STATE);
}

#[test]
fn a_reboot_ends_every_session() {
    let client = Client::of(&Description::of("575.57.08", &[("a100-80gb-pcie", 1)]));
    let boot = boot_id(&client);
    assert_eq!(boot, boot_id(&client));
    client.machine.reboot().unwrap();
    assert_ne!(boot, boot_id(&client));
    assert_eq!(count(client.lib()), UNINITIALIZED);
    assert_eq!(unsafe { client.lib().nvmlInit_v2() }, SUCCESS);
    assert_eq!(count(client.lib()), SUCCESS);
    // The machine can also be rebooted through C.
    let reboot = client.function::<unsafe extern "C" fn() -> u32>("entcSimReboot");
    let before = boot_id(&client);
    assert_eq!(unsafe { reboot() }, SUCCESS);
    assert_ne!(before, boot_id(&client));
}

fn boot_id(client: &Client) -> String {
    let function = client.function::<unsafe extern "C" fn(*mut c_char, c_uint) -> u32>("entcSimBootId");
    let mut text = [0; 96];
    assert_eq!(unsafe { function(text.as_mut_ptr(), text.len() as u32) }, SUCCESS);
    unsafe { CStr::from_ptr(text.as_ptr()) }.to_str().unwrap().to_owned()
}

#[test]
fn every_return_code_has_words() {
    let machine = machine();
    let lib = raw(&machine);
    let words = |code| unsafe { CStr::from_ptr(lib.nvmlErrorString(code)) }.to_str().unwrap().to_owned();
    let unknown = words(12345);
    assert_eq!(unknown, "Unknown Error");
    for code in Return::ALL.iter().filter(|code| **code != Return::Unknown) {
        assert_ne!(words(code.code()), unknown, "{code}");
    }
    assert_eq!(words(SUCCESS), "Success");
}

#[test]
fn versions_are_told_and_rooms_measured() {
    let client = Client::of(&Description::of("575.57.08", &[("a100-80gb-pcie", 1)]));
    assert_eq!(client.nvml.sys_driver_version().unwrap(), "575.57.08");
    assert_eq!(client.nvml.sys_nvml_version().unwrap(), "12.575.57.08");
    assert_eq!(client.nvml.sys_cuda_driver_version().unwrap(), 12090);
    let mut room = [1; 10];
    let lib = client.lib();
    assert_eq!(unsafe { lib.nvmlSystemGetDriverVersion(room.as_mut_ptr(), 9) }, INSUFFICIENT_SIZE);
    assert_eq!(room, [1; 10]);
    assert_eq!(unsafe { lib.nvmlSystemGetDriverVersion(room.as_mut_ptr(), 10) }, SUCCESS);
    assert_eq!(room[9], 0);
    assert_eq!(unsafe { lib.nvmlSystemGetDriverVersion(null_mut(), 10) }, INVALID_ARGUMENT);
}

#[test]
fn null_and_what_is_no_handle_is_refused() {
    let client = Client::of(&Description::of("575.57.08", &[("a100-80gb-pcie", 1)]));
    let lib = client.lib();
    let gpu = client.gpu(0);
    let mut number = 0;
    let mut local = 7_u64;
    let stray = NonNull::from(&mut local).cast().as_ptr();
    for bad in [null_mut(), stray] {
        assert_eq!(unsafe { lib.nvmlDeviceGetIndex(bad, &mut number) }, INVALID_ARGUMENT);
        assert_eq!(unsafe { lib.nvmlDeviceSetGpuLockedClocks(bad, 210, 210) }, INVALID_ARGUMENT);
    }
    assert_eq!(unsafe { lib.nvmlGpuInstanceDestroy(null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { lib.nvmlComputeInstanceDestroy(null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { lib.nvmlDeviceGetIndex(gpu, null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { lib.nvmlDeviceGetMigMode(gpu, &mut number, null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { lib.nvmlDeviceGetHandleByUUID(c"GPU-none".as_ptr(), null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { lib.nvmlDeviceGetHandleByIndex_v2(9, &mut null_mut()) }, INVALID_ARGUMENT);
    // Nothing was created for a caller who could not be told.
    assert_eq!(unsafe { lib.nvmlDeviceSetMigMode(gpu, 1, null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { lib.nvmlDeviceSetMigMode(gpu, 2, &mut number) }, INVALID_ARGUMENT);
    assert!(!client.nvml.device_by_index(0).unwrap().mig_mode().map(|m| m.current != 0).unwrap());
}
