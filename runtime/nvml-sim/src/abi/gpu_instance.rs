//! GPU instances: the menu, what is left of it, and what was ordered.
//!
//! Profile *enums* ask for the menu; profile *ids*, which the menu tells, are for everything else.

use super::boundary::{Items, Pointer, Versioned, exports, text_field};
use super::device::{ask, request, struct_version, tell};
use super::handle::{DeviceHandle, GpuInstanceHandle};
use super::process::{Answer, change, look};
use crate::returns::Return;
use crate::silicon::{Device, GpuInstanceProfileInfo, Placement};
use nvml_wrapper_sys::bindings::{
    NVML_GPU_INSTANCE_PROFILE_CAPS_P2P, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t, nvmlGpuInstanceProfileInfo_v3_t,
};
use std::ffi::c_uint;

fn is_p2p(info: &GpuInstanceProfileInfo) -> c_uint {
    (info.capabilities & NVML_GPU_INSTANCE_PROFILE_CAPS_P2P != 0).into()
}

/// A structure of one form of the call: the forms are alike in these fields, and of different types.
macro_rules! profile_info {
    ($form:ident, $info:expr, $($field:ident: $value:expr),*) => {
        $form {
            id: $info.id,
            sliceCount: $info.slice_count,
            instanceCount: $info.instance_count,
            multiprocessorCount: $info.multiprocessor_count,
            copyEngineCount: $info.copy_engine_count,
            decoderCount: $info.decoder_count,
            encoderCount: $info.encoder_count,
            jpegCount: $info.jpeg_count,
            ofaCount: $info.ofa_count,
            memorySizeMB: $info.memory_size_mib,
            $($field: $value,)*
        }
    };
}

fn first(info: &GpuInstanceProfileInfo) -> nvmlGpuInstanceProfileInfo_t {
    profile_info!(nvmlGpuInstanceProfileInfo_t, info, isP2pSupported: is_p2p(info))
}

const SECOND: c_uint = struct_version::<nvmlGpuInstanceProfileInfo_v2_t>(2);
const THIRD: c_uint = struct_version::<nvmlGpuInstanceProfileInfo_v3_t>(3);

/// Answers in the version that the caller's structure says it is of.
fn versioned(out: Versioned, info: impl FnOnce() -> Answer<GpuInstanceProfileInfo>) -> Answer<()> {
    let version = out.version()?;
    match version {
        SECOND => {
            let info = info()?;
            let (is_p2p, name) = (is_p2p(&info), text_field(&info.name));
            let form = profile_info!(
                nvmlGpuInstanceProfileInfo_v2_t, info, version: version, isP2pSupported: is_p2p, name: name
            );
            out.as_type().set(form)
        }
        THIRD => {
            let info = info()?;
            let (capabilities, name) = (info.capabilities, text_field(&info.name));
            let form = profile_info!(
                nvmlGpuInstanceProfileInfo_v3_t, info, version: version, capabilities: capabilities, name: name
            );
            out.as_type().set(form)
        }
        _ => Err(Return::ArgumentVersionMismatch),
    }
}

fn placements(
    device: DeviceHandle,
    profile_id: c_uint,
    items: Items<nvmlGpuInstancePlacement_t>,
    n: Pointer<c_uint>,
) -> Answer<()> {
    n.check()?;
    let possible = ask(device, |machine, device| machine.possible_placements(device, profile_id))?;
    n.set(possible.len() as c_uint)?;
    if items.is_null() {
        return Ok(());
    }
    let place = |p: &Placement| nvmlGpuInstancePlacement_t { start: p.start, size: p.size };
    items.fill(&possible.iter().map(place).collect::<Vec<_>>())
}

fn create(
    device: DeviceHandle,
    profile_id: c_uint,
    placement: Option<Placement>,
    instance: Pointer<GpuInstanceHandle>,
) -> Answer<()> {
    instance.check()?;
    let serial =
        request(device, |machine, device| machine.create_gpu_instance(device, profile_id, placement))?;
    instance.set(GpuInstanceHandle::of(serial))
}

exports! {
    fn nvmlDeviceGetGpuInstanceProfileInfo(
        device: DeviceHandle,
        profile: c_uint,
        info: Pointer<nvmlGpuInstanceProfileInfo_t>,
    ) {
        tell(device, info, |machine, device| Ok(first(&machine.gpu_instance_profile(device, profile)?)))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoV(device: DeviceHandle, profile: c_uint, info: Versioned) {
        versioned(info, || ask(device, |machine, device| machine.gpu_instance_profile(device, profile)))
    }

    fn nvmlDeviceGetGpuInstanceProfileInfoByIdV(device: DeviceHandle, profile_id: c_uint, info: Versioned) {
        versioned(info, || {
            ask(device, |machine, device| machine.gpu_instance_profile_by_id(device, profile_id))
        })
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements(
        device: DeviceHandle,
        profile_id: c_uint,
        items: Items<nvmlGpuInstancePlacement_t>,
        n: Pointer<c_uint>,
    ) {
        placements(device, profile_id, items, n)
    }

    fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device: DeviceHandle,
        profile_id: c_uint,
        items: Items<nvmlGpuInstancePlacement_t>,
        n: Pointer<c_uint>,
    ) {
        placements(device, profile_id, items, n)
    }

    fn nvmlDeviceGetGpuInstanceRemainingCapacity(device: DeviceHandle, profile_id: c_uint, n: Pointer<c_uint>) {
        tell(device, n, |machine, device| machine.remaining_capacity(device, profile_id))
    }

    fn nvmlDeviceCreateGpuInstance(
        device: DeviceHandle,
        profile_id: c_uint,
        instance: Pointer<GpuInstanceHandle>,
    ) {
        create(device, profile_id, None, instance)
    }

    fn nvmlDeviceCreateGpuInstanceWithPlacement(
        device: DeviceHandle,
        profile_id: c_uint,
        placement: Pointer<nvmlGpuInstancePlacement_t>,
        instance: Pointer<GpuInstanceHandle>,
    ) {
        let nvmlGpuInstancePlacement_t { start, size } = placement.get()?;
        create(device, profile_id, Some(Placement { start, size }), instance)
    }

    // nvml.h: the array must have room for all instances of the profile; the count is not read.
    fn nvmlDeviceGetGpuInstances(
        device: DeviceHandle,
        profile_id: c_uint,
        items: Items<GpuInstanceHandle>,
        n: Pointer<c_uint>,
    ) {
        n.check()?;
        let there = ask(device, |machine, device| machine.gpu_instances(device, profile_id))?;
        let handles: Vec<GpuInstanceHandle> = there.into_iter().map(GpuInstanceHandle::of).collect();
        items.fill(&handles)?;
        n.set(handles.len() as c_uint)
    }

    fn nvmlDeviceGetGpuInstanceById(device: DeviceHandle, id: c_uint, instance: Pointer<GpuInstanceHandle>) {
        tell(device, instance, |machine, device| {
            machine.gpu_instance_by_id(device, id).map(GpuInstanceHandle::of)
        })
    }

    fn nvmlGpuInstanceGetInfo(instance: GpuInstanceHandle, info: Pointer<nvmlGpuInstanceInfo_t>) {
        info.check()?;
        let serial = instance.get()?;
        let there = look(|machine| machine.gpu_instance(serial))?;
        info.set(nvmlGpuInstanceInfo_t {
            device: DeviceHandle::of(Device::Gpu(there.gpu)).pointer(),
            id: there.id,
            profileId: there.profile_id,
            placement: nvmlGpuInstancePlacement_t { start: there.placement.start, size: there.placement.size },
        })
    }

    fn nvmlGpuInstanceDestroy(instance: GpuInstanceHandle) {
        let serial = instance.get()?;
        change(|machine| machine.destroy_gpu_instance(serial))
    }
}
