//! Which devices there are, and what they say of themselves.

#![expect(unsafe_code, reason = "the library is C")]

use crate::client::{Client, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, SUCCESS, VERSION_MISMATCH};
use ent_nvml_sim::description::Description;
use nvml_wrapper::enum_wrappers::device::Brand;
use nvml_wrapper::enums::device::DeviceArchitecture;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlMemory_v2_t, nvmlProcessInfo_t};
use std::ffi::{CString, c_char, c_uint};
use std::ptr::null_mut;

fn pair() -> Client {
    Client::of(&Description::of("575.57.08", &[("a100-80gb-pcie", 1), ("h100-80gb-sxm", 1)]))
}

#[test]
fn devices_are_found_by_all_their_names() {
    let client = pair();
    assert_eq!(client.nvml.device_count().unwrap(), 2);
    for index in 0..2 {
        let gpu = client.nvml.device_by_index(index).unwrap();
        let uuid = gpu.uuid().unwrap();
        assert!(uuid.starts_with("GPU-"), "{uuid}");
        assert_eq!(gpu.index().unwrap(), index);
        assert_eq!(client.nvml.device_by_uuid(uuid.as_str()).unwrap().index().unwrap(), index);
        let pci = gpu.pci_info().unwrap();
        assert_eq!(client.nvml.device_by_pci_bus_id(pci.bus_id.as_str()).unwrap().index().unwrap(), index);
        let serial = CString::new(gpu.serial().unwrap()).unwrap();
        let mut handle = null_mut();
        let code = unsafe { client.lib().nvmlDeviceGetHandleBySerial(serial.as_ptr(), &mut handle) };
        // Handles are the same at every call.
        assert_eq!((code, handle), (SUCCESS, client.gpu(index)));
    }
    assert!(client.nvml.device_by_uuid("GPU-nobody").is_err());
    let mut handle: nvmlDevice_t = null_mut();
    let nobody = unsafe { client.lib().nvmlDeviceGetHandleByUUID(c"GPU-nobody".as_ptr(), &mut handle) };
    assert_eq!(nobody, NOT_FOUND);
    assert!(handle.is_null());
}

#[test]
fn a_board_says_what_the_catalogue_says() {
    let client = pair();
    let a100 = client.nvml.device_by_index(0).unwrap();
    let h100 = client.nvml.device_by_index(1).unwrap();
    assert_eq!(a100.name().unwrap(), "NVIDIA A100 80GB PCIe");
    assert_eq!(a100.brand().unwrap(), Brand::Nvidia);
    assert_eq!(a100.architecture().unwrap(), DeviceArchitecture::Ampere);
    assert_eq!(h100.architecture().unwrap(), DeviceArchitecture::Hopper);
    let capability = |gpu: &nvml_wrapper::Device<'_>| {
        let capability = gpu.cuda_compute_capability().unwrap();
        (capability.major, capability.minor)
    };
    assert_eq!((capability(&a100), capability(&h100)), ((8, 0), (9, 0)));
    assert_eq!(a100.pci_info().unwrap().pci_device_id, 0x20B5_10DE);
    assert_ne!(a100.minor_number().unwrap(), h100.minor_number().unwrap());
    let memory = a100.memory_info().unwrap();
    assert_eq!(memory.total, 81920 << 20);
    assert_eq!(memory.total, memory.free + memory.used);
}

#[test]
fn memory_asks_for_the_right_version() {
    let client = pair();
    let mut memory: nvmlMemory_v2_t = unsafe { std::mem::zeroed() };
    let function = client.lib().nvmlDeviceGetMemoryInfo_v2.as_ref().unwrap();
    assert_eq!(unsafe { function(client.gpu(0), &mut memory) }, VERSION_MISMATCH);
    // nvmlMemory_v2 of nvml.h.
    memory.version = 0x0200_0028;
    assert_eq!(unsafe { function(client.gpu(0), &mut memory) }, SUCCESS);
    assert_eq!(memory.total, 81920 << 20);
}

#[test]
fn older_pci_structures_are_not_overrun() {
    let client = pair();
    type Function = unsafe extern "C" fn(nvmlDevice_t, *mut [u8; 80]) -> u32;
    for (name, length) in [("nvmlDeviceGetPciInfo", 32), ("nvmlDeviceGetPciInfo_v2", 36)] {
        let mut bytes = [0xAA; 80];
        assert_eq!(unsafe { client.function::<Function>(name)(client.gpu(0), &mut bytes) }, SUCCESS);
        assert!(bytes.starts_with(b"0000:"), "{bytes:?}");
        assert_eq!(bytes[28..32], 0x20B5_10DE_u32.to_le_bytes());
        assert!(bytes[length..].iter().all(|byte| *byte == 0xAA), "{name} wrote past its structure");
    }
}

#[test]
fn processes_are_listed_by_size_then_content() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    let uuid = client.nvml.device_by_index(0).unwrap().uuid().unwrap();
    let list = client.lib().nvmlDeviceGetComputeRunningProcesses_v3.as_ref().unwrap();
    let mut n = 0;
    // Nothing runs: an empty room is large enough.
    assert_eq!(unsafe { list(gpu, &mut n, null_mut()) }, SUCCESS);
    // A process that has ended holds nothing, so it must be one that there is.
    let pid = std::process::id();
    assert_eq!(client.attach(&uuid, pid, "python"), SUCCESS);
    assert_eq!(unsafe { list(gpu, &mut n, null_mut()) }, INSUFFICIENT_SIZE);
    assert_eq!(n, 1);
    let mut there = [unsafe { std::mem::zeroed::<nvmlProcessInfo_t>() }; 3];
    n = 3;
    assert_eq!(unsafe { list(gpu, &mut n, there.as_mut_ptr()) }, SUCCESS);
    assert_eq!((n, there[0].pid, there[0].gpuInstanceId), (1, pid, u32::MAX));
    assert_eq!(client.nvml.sys_process_name(pid, 64).unwrap(), "python");
    let running = client.nvml.device_by_index(0).unwrap().running_compute_processes().unwrap();
    assert_eq!(running.iter().map(|p| p.pid).collect::<Vec<u32>>(), [pid]);
    assert!(client.nvml.device_by_index(0).unwrap().running_graphics_processes().unwrap().is_empty());
    // The first version knows no instances.
    let mut first = [u64::MAX; 4];
    type First = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut u64) -> u32;
    let function = client.function::<First>("nvmlDeviceGetComputeRunningProcesses");
    n = 1;
    assert_eq!(unsafe { function(gpu, &mut n, first.as_mut_ptr()) }, SUCCESS);
    assert_eq!(first[0] as u32, pid);
    assert_eq!(first[2..], [u64::MAX; 2]);
    assert_eq!(client.detach(&uuid, pid), SUCCESS);
    assert!(client.nvml.device_by_index(0).unwrap().running_compute_processes().unwrap().is_empty());
}

#[test]
fn persistence_mode_is_set_by_who_may() {
    let client = pair();
    let mut gpu = client.nvml.device_by_index(0).unwrap();
    assert!(!gpu.is_in_persistent_mode().unwrap());
    gpu.set_persistent(true).unwrap();
    assert!(gpu.is_in_persistent_mode().unwrap());
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1)]);
    description.privileged = false;
    let client = Client::of(&description);
    let mut gpu = client.nvml.device_by_index(0).unwrap();
    let refused = gpu.set_persistent(true).unwrap_err();
    assert!(matches!(refused, nvml_wrapper::error::NvmlError::NoPermission), "{refused}");
}

#[test]
fn a_text_must_have_room() {
    let client = pair();
    let mut room = [0 as c_char; 41];
    let function = client.lib().nvmlDeviceGetUUID.as_ref().unwrap();
    assert_eq!(unsafe { function(client.gpu(0), room.as_mut_ptr(), 40) }, INSUFFICIENT_SIZE);
    assert_eq!(unsafe { function(client.gpu(0), room.as_mut_ptr(), 41) }, SUCCESS);
    assert_eq!(unsafe { function(client.gpu(0), null_mut(), 41) }, INVALID_ARGUMENT);
}
