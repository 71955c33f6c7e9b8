//! Clocks, power and energy.

#![expect(unsafe_code, reason = "the library is C")]

use crate::client::{
    Client, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, SUCCESS,
    VERSION_MISMATCH,
};
use ent_nvml_sim::description::Description;
use nvml_wrapper::enum_wrappers::device::{Clock, ClockId};
use nvml_wrapper::enums::device::GpuLockedClocksSetting;
use nvml_wrapper_sys::bindings::{nvmlFieldValue_t, nvmlPowerValue_v2_t};
use std::ptr::null_mut;

fn one(board: &str) -> Client {
    Client::of(&Description::of("575.57.08", &[(board, 1)]))
}

#[test]
fn supported_clocks_are_a_ladder_from_the_top() {
    let client = one("a100-80gb-pcie");
    let gpu = client.nvml.device_by_index(0).unwrap();
    assert_eq!(gpu.supported_memory_clocks().unwrap(), [1512]);
    let clocks = gpu.supported_graphics_clocks(1512).unwrap();
    // 210..1410 step 15, of the catalogue.
    assert_eq!((clocks.first(), clocks.last(), clocks.len()), (Some(&1410), Some(&210), 81));
    assert!(clocks.is_sorted_by(|a, b| a > b));
    let function = client.lib().nvmlDeviceGetSupportedGraphicsClocks.as_ref().unwrap();
    let (handle, mut n, mut room) = (client.gpu(0), 0, [0_u32; 81]);
    assert_eq!(unsafe { function(handle, 1512, &mut n, null_mut()) }, INSUFFICIENT_SIZE);
    assert_eq!(n, 81);
    n = 80;
    assert_eq!(unsafe { function(handle, 1512, &mut n, room.as_mut_ptr()) }, INSUFFICIENT_SIZE);
    assert_eq!((n, room[0]), (81, 0));
    assert_eq!(unsafe { function(handle, 1512, &mut n, room.as_mut_ptr()) }, SUCCESS);
    assert_eq!(room[0], 1410);
    assert_eq!(unsafe { function(handle, 1513, &mut n, room.as_mut_ptr()) }, NOT_FOUND);
    assert_eq!(unsafe { function(handle, 1512, null_mut(), room.as_mut_ptr()) }, INVALID_ARGUMENT);
}

#[test]
fn a_locked_clock_holds_until_it_is_reset() {
    let client = one("a100-80gb-pcie");
    let mut gpu = client.nvml.device_by_index(0).unwrap();
    assert_eq!(gpu.max_clock_info(Clock::SM).unwrap(), 1410);
    gpu.set_gpu_locked_clocks(GpuLockedClocksSetting::Numeric { min_clock_mhz: 1050, max_clock_mhz: 1050 })
        .unwrap();
    assert_eq!(gpu.clock_info(Clock::SM).unwrap(), 1050);
    assert_eq!(gpu.clock_info(Clock::Graphics).unwrap(), 1050);
    assert_eq!(gpu.clock(Clock::SM, ClockId::Current).unwrap(), 1050);
    gpu.reset_gpu_locked_clocks().unwrap();
    client.machine.reboot().unwrap();
    assert_eq!(unsafe { client.lib().nvmlInit_v2() }, SUCCESS);
    assert_ne!(gpu.clock_info(Clock::SM).unwrap(), 1050);
    gpu.set_mem_locked_clocks(1512, 1512).unwrap();
    assert_eq!(gpu.clock_info(Clock::Memory).unwrap(), 1512);
    gpu.reset_mem_locked_clocks().unwrap();
    let function = client.lib().nvmlDeviceSetGpuLockedClocks.as_ref().unwrap();
    assert_eq!(unsafe { function(client.gpu(0), 1410, 210) }, INVALID_ARGUMENT);
}

#[test]
fn clocks_outlive_the_last_client_only_with_persistence_mode() {
    // nvml.h, nvmlDeviceSetPersistenceMode: without it the driver is unloaded with its last client.
    let client = one("a100-80gb-pcie");
    let lib = client.lib();
    for (mode, is_kept) in [(0, false), (1, true)] {
        assert_eq!(unsafe { lib.nvmlDeviceSetPersistenceMode(client.gpu(0), mode) }, SUCCESS);
        assert_eq!(unsafe { lib.nvmlDeviceSetGpuLockedClocks(client.gpu(0), 1050, 1050) }, SUCCESS);
        assert_eq!(unsafe { lib.nvmlShutdown() }, SUCCESS);
        assert_eq!(unsafe { lib.nvmlInit_v2() }, SUCCESS);
        let clock = client.nvml.device_by_index(0).unwrap().clock_info(Clock::SM).unwrap();
        assert_eq!(clock == 1050, is_kept, "{clock} MHz with persistence mode {mode}");
    }
}

#[test]
fn clocks_are_locked_by_who_may() {
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1)]);
    description.privileged = false;
    let client = Client::of(&description);
    let (lib, gpu) = (client.lib(), client.gpu(0));
    assert_eq!(unsafe { lib.nvmlDeviceSetGpuLockedClocks(gpu, 1050, 1050) }, NO_PERMISSION);
    assert_eq!(unsafe { lib.nvmlDeviceResetGpuLockedClocks(gpu) }, NO_PERMISSION);
    assert_eq!(unsafe { lib.nvmlDeviceSetPowerManagementLimit(gpu, 200_000) }, NO_PERMISSION);
}

#[test]
fn a_power_limit_stays_within_its_range() {
    let client = one("a100-80gb-pcie");
    let mut gpu = client.nvml.device_by_index(0).unwrap();
    let range = gpu.power_management_limit_constraints().unwrap();
    assert_eq!((range.min_limit, range.max_limit), (150_000, 300_000));
    assert_eq!(gpu.power_management_limit_default().unwrap(), 300_000);
    gpu.set_power_management_limit(200_000).unwrap();
    assert_eq!(gpu.power_management_limit().unwrap(), 200_000);
    assert_eq!(gpu.enforced_power_limit().unwrap(), 200_000);
    let handle = client.gpu(0);
    for wrong in [149_999, 300_001] {
        let code = unsafe { client.lib().nvmlDeviceSetPowerManagementLimit(handle, wrong) };
        assert_eq!(code, INVALID_ARGUMENT);
    }
    let function = client.lib().nvmlDeviceSetPowerManagementLimit_v2.as_ref().unwrap();
    let mut value = nvmlPowerValue_v2_t { version: 0, powerScope: 0, powerValueMw: 250_000 };
    assert_eq!(unsafe { function(handle, &mut value) }, VERSION_MISMATCH);
    // nvmlPowerValue_v2 of nvml.h.
    value.version = 0x0200_000C;
    assert_eq!(unsafe { function(handle, &mut value) }, SUCCESS);
    assert_eq!(gpu.power_management_limit().unwrap(), 250_000);
    value.powerScope = 1;
    assert_eq!(unsafe { function(handle, &mut value) }, NOT_SUPPORTED);
}

#[test]
fn load_is_drawn_and_counted() {
    let client = one("a100-80gb-pcie");
    let gpu = client.nvml.device_by_index(0).unwrap();
    let uuid = gpu.uuid().unwrap();
    let idle = gpu.power_usage().unwrap();
    let pid = std::process::id();
    assert_eq!(client.attach(&uuid, pid, "worker"), SUCCESS);
    assert_eq!(client.draw("entcSimLoad", &uuid, pid, 100.0), SUCCESS);
    let busy = gpu.power_usage().unwrap();
    assert!(busy >= idle + 90_000, "{idle} mW idle, {busy} mW with 100 W of load");
    let before = gpu.total_energy_consumption().unwrap();
    assert_eq!(client.draw("entcSimSpend", &uuid, pid, 5000.0), SUCCESS);
    let after = gpu.total_energy_consumption().unwrap();
    assert!(after >= before + 5_000_000, "{before} mJ, {after} mJ");
    assert_eq!(client.draw("entcSimLoad", &uuid, pid, f64::NAN), INVALID_ARGUMENT);
    assert_eq!(client.draw("entcSimSpend", &uuid, pid, -1.0), INVALID_ARGUMENT);
}

fn field(client: &Client, id: u32) -> (u32, u64) {
    let mut value: nvmlFieldValue_t = unsafe { std::mem::zeroed() };
    value.fieldId = id;
    let function = client.lib().nvmlDeviceGetFieldValues.as_ref().unwrap();
    assert_eq!(unsafe { function(client.gpu(0), 1, &mut value) }, SUCCESS);
    assert!(value.timestamp > 0);
    (value.nvmlReturn, unsafe { value.value.ullVal })
}

#[test]
fn fields_answer_each_for_itself() {
    let a100 = one("a100-80gb-pcie");
    let mut description = Description::of("575.57.08", &[("h100-80gb-sxm", 1)]);
    // Nobody has captured its base power; a board without one has no power sensor either.
    assert_eq!(field(&Client::of(&description), 186).0, NOT_SUPPORTED);
    description.gpu[0].idle_power_w = Some(71.5);
    let h100 = Client::of(&description);
    // nvml.h: the averaged power exists on Ampere and later, but not on GA100.
    assert_eq!(field(&a100, 185).0, NOT_SUPPORTED);
    assert_eq!(field(&h100, 185).0, SUCCESS);
    for client in [&a100, &h100] {
        let gpu = client.nvml.device_by_index(0).unwrap();
        let range = gpu.power_management_limit_constraints().unwrap();
        assert_eq!(field(client, 187), (SUCCESS, range.min_limit.into()));
        assert_eq!(field(client, 188), (SUCCESS, range.max_limit.into()));
        assert_eq!(field(client, 189), (SUCCESS, gpu.power_management_limit_default().unwrap().into()));
        assert_eq!(field(client, 190), (SUCCESS, gpu.enforced_power_limit().unwrap().into()));
        assert_eq!(field(client, 192), (SUCCESS, gpu.power_management_limit().unwrap().into()));
        assert_eq!(field(client, 83).0, SUCCESS);
        assert_eq!(field(client, 186).0, SUCCESS);
        assert_eq!(field(client, 1).0, NOT_SUPPORTED);
    }
    let function = a100.lib().nvmlDeviceGetFieldValues.as_ref().unwrap();
    assert_eq!(unsafe { function(a100.gpu(0), 1, null_mut()) }, INVALID_ARGUMENT);
    assert_eq!(unsafe { function(a100.gpu(0), -1, null_mut()) }, INVALID_ARGUMENT);
}

#[test]
fn what_is_not_simulated_is_not_made_up() {
    let client = one("a100-80gb-pcie");
    let (lib, gpu) = (client.lib(), client.gpu(0));
    let mut utilisation = unsafe { std::mem::zeroed() };
    assert_eq!(unsafe { lib.nvmlDeviceGetUtilizationRates(gpu, &mut utilisation) }, NOT_SUPPORTED);
    assert_eq!(unsafe { lib.nvmlDeviceGetTemperature(gpu, 0, &mut 0) }, NOT_SUPPORTED);
    assert!(lib.nvmlDeviceGetFanSpeed.is_err());
    assert!(lib.nvmlDeviceSetApplicationsClocks.is_err());
}
