//! MIG mode, GPU instances, compute instances and MIG devices.

#![expect(unsafe_code, reason = "the library is C")]

use crate::client::{
    Client, IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT, NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED,
    SUCCESS, VERSION_MISMATCH,
};
use ent_nvml_sim::description::{DescribedInstance, Description};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper_sys::bindings::nvmlDevice_t;
use std::ffi::CStr;
use std::ptr::null_mut;

/// nvmlGpuInstanceProfileInfo_v2 and nvmlComputeInstanceProfileInfo_v2 of nvml.h.
const PROFILE_V2: u32 = 0x0200_0098;
const COMPUTE_PROFILE_V2: u32 = 0x0200_0088;

fn text(field: &[std::ffi::c_char]) -> &str {
    unsafe { CStr::from_ptr(field.as_ptr()) }.to_str().unwrap()
}

fn mig_mode(gpu: &nvml_wrapper::Device<'_>) -> (u32, u32) {
    let mode = gpu.mig_mode().unwrap();
    (mode.current, mode.pending)
}

#[test]
fn mig_mode_turns_on_and_off() {
    // Hopper and later need no reset (MIG User Guide, Getting Started).
    let client = Client::of(&Description::of("575.57.08", &[("h100-80gb-sxm", 1)]));
    let gpu = client.nvml.device_by_index(0).unwrap();
    assert_eq!(mig_mode(&gpu), (0, 0));
    assert_eq!(client.create(client.gpu(0), 19).err(), Some(NOT_SUPPORTED));
    assert_eq!(gpu.set_mig_mode(true).unwrap(), SUCCESS);
    assert_eq!(mig_mode(&gpu), (1, 1));
    assert!(client.create(client.gpu(0), 19).is_ok());
}

#[test]
fn the_menu_is_asked_by_enum_and_ordered_by_id() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    // NVML_GPU_INSTANCE_PROFILE_3_SLICE is 2; the id that creates it is 9.
    let three = client.profile(gpu, 2).unwrap();
    assert_eq!((three.id, three.sliceCount, three.instanceCount), (9, 3, 2));
    assert_eq!((three.multiprocessorCount, three.memorySizeMB), (42, 40192));
    let named = client.profile_v(gpu, 2, PROFILE_V2).unwrap();
    assert_eq!((named.id, text(&named.name)), (9, "MIG 3g.40gb"));
    assert_eq!(client.profile_v(gpu, 2, 0).err(), Some(VERSION_MISMATCH));
    assert_eq!(client.profile_v(gpu, 2, PROFILE_V2 + 1).err(), Some(VERSION_MISMATCH));
    // The walk over enums skips NOT_SUPPORTED and ends at INVALID_ARGUMENT.
    let walk: Vec<Result<u32, u32>> =
        (0..64).map(|profile| client.profile(gpu, profile).map(|info| info.id)).collect();
    let end = walk.iter().position(|answer| *answer == Err(INVALID_ARGUMENT)).unwrap();
    let ids: Vec<u32> = walk[..end].iter().filter_map(|answer| answer.ok()).collect();
    assert!(walk[..end].iter().all(|answer| !matches!(answer, Err(code) if *code != NOT_SUPPORTED)));
    assert_eq!(
        {
            let mut ids = ids.clone();
            ids.sort_unstable();
            ids
        },
        [0, 5, 9, 14, 15, 19, 20]
    );
    let by_id = client.lib().nvmlDeviceGetGpuInstanceProfileInfoByIdV.as_ref().unwrap();
    let mut info = named;
    info.version = PROFILE_V2;
    assert_eq!(unsafe { by_id(gpu, 19, &mut info) }, SUCCESS);
    assert_eq!(text(&info.name), "MIG 1g.10gb");
    info.version = 7;
    assert_eq!(unsafe { by_id(gpu, 19, &mut info) }, VERSION_MISMATCH);
}

#[test]
fn an_instance_lives_from_creation_to_destruction() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    assert_eq!(client.placements(gpu, 9), Ok(vec![(0, 4), (4, 4)]));
    assert_eq!(client.remaining(gpu, 9), Ok(2));
    let three = client.create_at(gpu, 9, (4, 4)).unwrap();
    assert_eq!(client.remaining(gpu, 9), Ok(1));
    assert_eq!(client.create_at(gpu, 9, (4, 4)).err(), Some(INSUFFICIENT_RESOURCES));
    assert_eq!(client.create_at(gpu, 9, (1, 4)).err(), Some(INVALID_ARGUMENT));
    assert_eq!(client.create_at(gpu, 77, (0, 4)).err(), Some(INVALID_ARGUMENT));
    let info = client.info(three).unwrap();
    assert_eq!((info.device, info.profileId), (gpu, 9));
    assert_eq!((info.placement.start, info.placement.size), (4, 4));
    assert_eq!(client.gpu_instances(gpu, 9), Ok(vec![three]));
    assert_eq!(client.gpu_instances(gpu, 19), Ok(vec![]));
    assert_eq!(client.gpu_instance_by_id(gpu, info.id), Ok(three));
    assert_eq!(client.gpu_instance_by_id(gpu, info.id + 90), Err(NOT_FOUND));
    assert_eq!(client.destroy(three), Ok(()));
    assert_eq!(client.remaining(gpu, 9), Ok(2));
    // A handle does not come to mean the next instance.
    let again = client.create_at(gpu, 9, (4, 4)).unwrap();
    assert_ne!(again, three);
    for stale in [client.info(three).err(), client.destroy(three).err()] {
        assert!(matches!(stale, Some(INVALID_ARGUMENT | NOT_FOUND)), "{stale:?}");
    }
    assert!(client.info(again).is_ok());
}

#[test]
fn compute_instances_share_a_gpu_instance() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    let instance = client.create_at(gpu, 9, (0, 4)).unwrap();
    // A 3g has 1c, 2c and 3c (NVIDIA MIG User Guide, compute instances); enum 3 is 4c.
    let whole = client.compute_profile(instance, 2, COMPUTE_PROFILE_V2).unwrap();
    assert_eq!((whole.id, whole.sliceCount, whole.multiprocessorCount), (2, 3, 42));
    assert_eq!(client.compute_profile(instance, 3, COMPUTE_PROFILE_V2).err(), Some(NOT_SUPPORTED));
    assert_eq!(client.compute_profile(instance, 2, 1).err(), Some(VERSION_MISMATCH));
    assert_eq!(client.compute_remaining(instance, 0), Ok(3));
    assert_eq!(client.compute_placements(instance, 0), Ok(vec![(0, 1), (1, 1), (2, 1)]));
    let one = client.create_compute_at(instance, 0, (1, 1)).unwrap();
    let two = client.create_compute(instance, 0).unwrap();
    assert_eq!(client.create_compute(instance, 2).err(), Some(INSUFFICIENT_RESOURCES));
    assert_eq!(client.compute_instances(instance, 0).map(|all| all.len()), Ok(2));
    let info = client.compute_info(one).unwrap();
    assert_eq!((info.device, info.gpuInstance, info.profileId), (gpu, instance, 0));
    assert_eq!((info.placement.start, info.placement.size), (1, 1));
    assert_eq!(client.compute_instance_by_id(instance, info.id), Ok(one));
    // A GPU instance goes only when its compute instances are gone.
    assert_eq!(client.destroy(instance), Err(IN_USE));
    assert_eq!(client.destroy_compute(one), Ok(()));
    assert_eq!(client.destroy_compute(two), Ok(()));
    assert!(matches!(client.destroy_compute(two), Err(INVALID_ARGUMENT | NOT_FOUND)));
    assert_eq!(client.destroy(instance), Ok(()));
}

/// Walks MIG devices as nvml.h says: NOT_FOUND is a hole.
fn mig_devices(client: &Client) -> Vec<nvml_wrapper::Device<'_>> {
    let gpu = client.nvml.device_by_index(0).unwrap();
    let handle = |index| {
        let device = gpu.mig_device_by_index(index);
        if matches!(device, Err(NvmlError::NotFound)) { None } else { Some(device.unwrap()) }
    };
    (0..gpu.mig_device_count().unwrap()).filter_map(handle).collect()
}

#[test]
fn a_mig_device_is_what_cuda_sees() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    let board = client.nvml.device_by_index(0).unwrap();
    let instance = client.create_at(gpu, 14, (2, 2)).unwrap();
    // Without a compute instance there is nothing for CUDA.
    assert!(mig_devices(&client).is_empty());
    let compute = client.create_compute(instance, 1).unwrap();
    let devices = mig_devices(&client);
    let [device] = devices.as_slice() else { panic!("{} MIG devices", devices.len()) };
    let handle = unsafe { device.handle() };
    let uuid = device.uuid().unwrap();
    assert!(uuid.starts_with("MIG-"), "{uuid}");
    assert!(device.mig_is_mig_device_handle().unwrap() && !board.mig_is_mig_device_handle().unwrap());
    assert_eq!(unsafe { device.mig_parent_device().unwrap().handle() }, gpu);
    assert_eq!(unsafe { client.nvml.device_by_uuid(uuid.as_str()).unwrap().handle() }, handle);
    let lib = client.lib();
    let mut id = 0;
    assert_eq!(unsafe { lib.nvmlDeviceGetGpuInstanceId(handle, &mut id) }, SUCCESS);
    assert_eq!(Ok(id), client.info(instance).map(|info| info.id));
    assert_eq!(unsafe { lib.nvmlDeviceGetComputeInstanceId(handle, &mut id) }, SUCCESS);
    assert_eq!(Ok(id), client.compute_info(compute).map(|info| info.id));
    let has = device.attributes().unwrap();
    assert_eq!((has.multiprocessor_count, has.gpu_instance_slice_count), (28, 2));
    assert_eq!((has.compute_instance_slice_count, has.memory_size_mb), (2, 19968));
    // Clocks and power belong to the board.
    assert_eq!(unsafe { lib.nvmlDeviceGetPowerUsage(handle, &mut id) }, NOT_SUPPORTED);
    assert_eq!(unsafe { lib.nvmlDeviceGetTotalEnergyConsumption(handle, &mut 0) }, NOT_SUPPORTED);
    for code in [
        unsafe { lib.nvmlDeviceSetGpuLockedClocks(handle, 1050, 1050) },
        unsafe { lib.nvmlDeviceResetGpuLockedClocks(handle) },
        unsafe { lib.nvmlDeviceSetPowerManagementLimit(handle, 200_000) },
        unsafe { lib.nvmlDeviceSetMigMode(handle, 0, &mut id) },
    ] {
        assert!(matches!(code, INVALID_ARGUMENT | NOT_SUPPORTED), "{code}");
    }
    // Its handle dies with it.
    client.destroy_compute(compute).unwrap();
    assert_eq!(unsafe { lib.nvmlDeviceGetGpuInstanceId(handle, &mut id) }, INVALID_ARGUMENT);
}

#[test]
fn a_process_keeps_its_instance() {
    let client = Client::with_mig("a100-80gb-pcie");
    let instance = client.create(client.gpu(0), 19).unwrap();
    let compute = client.create_compute(instance, 0).unwrap();
    let uuid = mig_devices(&client)[0].uuid().unwrap();
    let pid = std::process::id();
    assert_eq!(client.attach(&uuid, pid, "worker"), SUCCESS);
    let running = client.nvml.device_by_uuid(uuid.as_str()).unwrap().running_compute_processes().unwrap();
    assert_eq!((running.len(), running[0].pid), (1, pid));
    assert_eq!(running[0].gpu_instance_id, client.info(instance).ok().map(|info| info.id));
    assert_eq!(client.destroy_compute(compute), Err(IN_USE));
    assert_eq!(client.destroy(instance), Err(IN_USE));
    assert_eq!(client.detach(&uuid, pid), SUCCESS);
    assert_eq!(client.destroy_compute(compute), Ok(()));
    assert_eq!(client.destroy(instance), Ok(()));
}

#[test]
fn who_may_not_only_looks() {
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 1)]);
    description.gpu[0].mig = true;
    description.gpu[0].instances =
        vec![DescribedInstance { profile: "1g.10gb".to_owned(), start: Some(6), compute: true }];
    description.privileged = false;
    let client = Client::of(&description);
    let gpu = client.gpu(0);
    assert_eq!(mig_devices(&client).len(), 1);
    assert!(client.profile(gpu, 0).is_ok());
    assert_eq!(client.create(gpu, 19).err(), Some(NO_PERMISSION));
    assert_eq!(client.create_at(gpu, 19, (0, 1)).err(), Some(NO_PERMISSION));
    assert_eq!(unsafe { client.lib().nvmlDeviceSetMigMode(gpu, 0, &mut 0) }, NO_PERMISSION);
}

#[test]
fn a_lost_board_says_so_and_the_others_go_on() {
    let mut description = Description::of("575.57.08", &[("a100-80gb-pcie", 2)]);
    description.gpu[0].mig = true;
    let client = Client::of(&description);
    let (gone, there) = (client.gpu(0), client.gpu(1));
    let instance = client.create(gone, 19).unwrap();
    client.machine.change(|machine| machine.lose(0)).unwrap().unwrap();
    const GPU_IS_LOST: u32 = 15;
    let index = |gpu: nvmlDevice_t| unsafe { client.lib().nvmlDeviceGetPowerUsage(gpu, &mut 0) };
    assert_eq!((index(gone), index(there)), (GPU_IS_LOST, SUCCESS));
    assert_eq!(client.create(gone, 19).err(), Some(GPU_IS_LOST));
    assert_eq!(client.info(instance).err(), Some(GPU_IS_LOST));
    assert!(client.create(there, 19).is_ok());
}

#[test]
fn counts_need_no_room_and_lists_do() {
    let client = Client::with_mig("a100-80gb-pcie");
    let gpu = client.gpu(0);
    let lib = client.lib();
    client.create(gpu, 19).unwrap();
    let list = lib.nvmlDeviceGetGpuInstances.as_ref().unwrap();
    assert_eq!(unsafe { list(gpu, 19, null_mut(), &mut 0) }, INVALID_ARGUMENT);
    let mut room = [null_mut(); 7];
    assert_eq!(unsafe { list(gpu, 19, room.as_mut_ptr(), null_mut()) }, INVALID_ARGUMENT);
    let places = lib.nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref().unwrap();
    let mut n = 0;
    assert_eq!(unsafe { places(gpu, 19, null_mut(), &mut n) }, SUCCESS);
    assert_eq!(n, 7);
    assert_eq!(unsafe { places(gpu, 19, null_mut(), null_mut()) }, INVALID_ARGUMENT);
}
