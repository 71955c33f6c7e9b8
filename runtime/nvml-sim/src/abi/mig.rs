//! MIG mode, and MIG devices: what CUDA sees of a GPU instance with a compute instance.

use super::boundary::{Pointer, exports};
use super::device::{ask, request, switch, tell};
use super::handle::DeviceHandle;
use crate::returns::Return;
use crate::silicon::Attributes;
use nvml_wrapper_sys::bindings::nvmlDeviceAttributes_t;
use std::ffi::c_uint;

/// The first version ends before the memory.
fn counts(has: &Attributes) -> [c_uint; 8] {
    [
        has.multiprocessor_count,
        has.shared_copy_engine_count,
        has.shared_decoder_count,
        has.shared_encoder_count,
        has.shared_jpeg_count,
        has.shared_ofa_count,
        has.gpu_instance_slice_count,
        has.compute_instance_slice_count,
    ]
}

exports! {
    fn nvmlDeviceGetMigMode(device: DeviceHandle, current: Pointer<c_uint>, pending: Pointer<c_uint>) {
        current.check()?;
        pending.check()?;
        let (is, will_be) = ask(device, |machine, device| machine.mig_mode(device))?;
        current.set(is.into())?;
        pending.set(will_be.into())
    }

    fn nvmlDeviceSetMigMode(device: DeviceHandle, mode: c_uint, activation: Pointer<c_uint>) {
        activation.check()?;
        let is_enabled = switch(mode)?;
        let status = request(device, |machine, device| machine.set_mig_mode(device, is_enabled))?;
        activation.set(status.map_or(0, Return::code))
    }

    fn nvmlDeviceIsMigDeviceHandle(device: DeviceHandle, is_mig_device: Pointer<c_uint>) {
        tell(device, is_mig_device, |machine, device| Ok(machine.is_mig_device(device).into()))
    }

    fn nvmlDeviceGetMaxMigDeviceCount(device: DeviceHandle, n: Pointer<c_uint>) {
        tell(device, n, |machine, device| machine.max_mig_device_count(device))
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(
        device: DeviceHandle,
        index: c_uint,
        mig_device: Pointer<DeviceHandle>,
    ) {
        tell(device, mig_device, |machine, device| {
            machine.mig_device_by_index(device, index).map(DeviceHandle::of)
        })
    }

    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig_device: DeviceHandle, device: Pointer<DeviceHandle>) {
        tell(mig_device, device, |machine, mig_device| machine.parent(mig_device).map(DeviceHandle::of))
    }

    fn nvmlDeviceGetGpuInstanceId(mig_device: DeviceHandle, id: Pointer<c_uint>) {
        tell(mig_device, id, |machine, mig_device| machine.gpu_instance_id(mig_device))
    }

    fn nvmlDeviceGetComputeInstanceId(mig_device: DeviceHandle, id: Pointer<c_uint>) {
        tell(mig_device, id, |machine, mig_device| machine.compute_instance_id(mig_device))
    }

    fn nvmlDeviceGetAttributes(mig_device: DeviceHandle, attributes: Pointer<[c_uint; 8]>) {
        tell(mig_device, attributes, |machine, mig_device| Ok(counts(&machine.attributes(mig_device)?)))
    }

    fn nvmlDeviceGetAttributes_v2(mig_device: DeviceHandle, attributes: Pointer<nvmlDeviceAttributes_t>) {
        tell(mig_device, attributes, |machine, mig_device| {
            let has = machine.attributes(mig_device)?;
            Ok(nvmlDeviceAttributes_t {
                multiprocessorCount: has.multiprocessor_count,
                sharedCopyEngineCount: has.shared_copy_engine_count,
                sharedDecoderCount: has.shared_decoder_count,
                sharedEncoderCount: has.shared_encoder_count,
                sharedJpegCount: has.shared_jpeg_count,
                sharedOfaCount: has.shared_ofa_count,
                gpuInstanceSliceCount: has.gpu_instance_slice_count,
                computeInstanceSliceCount: has.compute_instance_slice_count,
                memorySizeMB: has.memory_size_mib,
            })
        })
    }
}
