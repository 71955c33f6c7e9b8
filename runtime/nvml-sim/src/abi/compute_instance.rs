//! Compute instances: how a GPU instance's compute is cut.

use super::boundary::{Items, Pointer, Versioned, exports, text_field};
use super::device::struct_version;
use super::handle::{ComputeInstanceHandle, DeviceHandle, GpuInstanceHandle};
use super::process::{Answer, change, look};
use crate::returns::Return;
use crate::silicon::{ComputeInstanceInfo, ComputeInstanceProfileInfo, Device, Placement, Serial, Silicon};
use nvml_wrapper_sys::bindings::{
    nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlComputeInstanceProfileInfo_v3_t, nvmlDevice_t,
    nvmlGpuInstance_t,
};
use std::ffi::c_uint;

/// `nvmlComputeInstanceInfo_t` before it told the placement.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ShortInfo {
    device: nvmlDevice_t,
    instance: nvmlGpuInstance_t,
    id: c_uint,
    profile_id: c_uint,
}

const SECOND: c_uint = struct_version::<nvmlComputeInstanceProfileInfo_v2_t>(2);
const THIRD: c_uint = struct_version::<nvmlComputeInstanceProfileInfo_v3_t>(3);

/// Asks something of a GPU instance.
fn ask<T>(instance: GpuInstanceHandle, question: impl FnOnce(&Silicon, Serial) -> Answer<T>) -> Answer<T> {
    let serial = instance.get()?;
    look(|machine| question(machine, serial))
}

/// Asks something of a GPU instance and hands it out.
fn tell<T: Copy>(
    instance: GpuInstanceHandle,
    out: Pointer<T>,
    question: impl FnOnce(&Silicon, Serial) -> Answer<T>,
) -> Answer<()> {
    out.check()?;
    out.set(ask(instance, question)?)
}

fn create(
    gpu_instance: GpuInstanceHandle,
    profile_id: c_uint,
    placement: Option<Placement>,
    instance: Pointer<ComputeInstanceHandle>,
) -> Answer<()> {
    instance.check()?;
    let serial = gpu_instance.get()?;
    let made = change(|machine| machine.create_compute_instance(serial, profile_id, placement))?;
    instance.set(ComputeInstanceHandle::of(made))
}

fn info(instance: ComputeInstanceHandle) -> Answer<ComputeInstanceInfo> {
    let serial = instance.get()?;
    look(|machine| machine.compute_instance(serial))
}

/// A structure of one form of the call: the forms are alike in these fields, and of different types.
macro_rules! profile_info {
    ($form:ident, $info:expr $(, $field:ident: $value:expr)*) => {
        $form {
            id: $info.id,
            sliceCount: $info.slice_count,
            instanceCount: $info.instance_count,
            multiprocessorCount: $info.multiprocessor_count,
            sharedCopyEngineCount: $info.shared_copy_engine_count,
            sharedDecoderCount: $info.shared_decoder_count,
            sharedEncoderCount: $info.shared_encoder_count,
            sharedJpegCount: $info.shared_jpeg_count,
            sharedOfaCount: $info.shared_ofa_count,
            $($field: $value,)*
        }
    };
}

fn first(info: &ComputeInstanceProfileInfo) -> nvmlComputeInstanceProfileInfo_t {
    profile_info!(nvmlComputeInstanceProfileInfo_t, info)
}

fn second(version: c_uint, info: &ComputeInstanceProfileInfo) -> nvmlComputeInstanceProfileInfo_v2_t {
    profile_info!(nvmlComputeInstanceProfileInfo_v2_t, info, version: version, name: text_field(&info.name))
}

fn third(version: c_uint, info: &ComputeInstanceProfileInfo) -> nvmlComputeInstanceProfileInfo_v3_t {
    let name = text_field(&info.name);
    profile_info!(nvmlComputeInstanceProfileInfo_v3_t, info, version: version, name: name, capabilities: 0)
}

exports! {
    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        instance: GpuInstanceHandle,
        profile: c_uint,
        engine_profile: c_uint,
        info: Pointer<nvmlComputeInstanceProfileInfo_t>,
    ) {
        tell(instance, info, |machine, instance| {
            machine.compute_instance_profile(instance, profile, engine_profile).map(|info| first(&info))
        })
    }

    fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
        instance: GpuInstanceHandle,
        profile: c_uint,
        engine_profile: c_uint,
        info: Versioned,
    ) {
        let version = info.version()?;
        let found = || {
            ask(instance, |machine, instance| {
                machine.compute_instance_profile(instance, profile, engine_profile)
            })
        };
        match version {
            SECOND => info.as_type().set(second(version, &found()?)),
            THIRD => info.as_type().set(third(version, &found()?)),
            _ => Err(Return::ArgumentVersionMismatch),
        }
    }

    fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
        instance: GpuInstanceHandle,
        profile_id: c_uint,
        n: Pointer<c_uint>,
    ) {
        tell(instance, n, |machine, instance| {
            machine.compute_instance_remaining_capacity(instance, profile_id)
        })
    }

    fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
        instance: GpuInstanceHandle,
        profile_id: c_uint,
        items: Items<nvmlComputeInstancePlacement_t>,
        n: Pointer<c_uint>,
    ) {
        n.check()?;
        let possible =
            ask(instance, |machine, instance| machine.compute_instance_placements(instance, profile_id))?;
        n.set(possible.len() as c_uint)?;
        if items.is_null() {
            return Ok(());
        }
        let place = |p: &Placement| nvmlComputeInstancePlacement_t { start: p.start, size: p.size };
        items.fill(&possible.iter().map(place).collect::<Vec<_>>())
    }

    fn nvmlGpuInstanceCreateComputeInstance(
        gpu_instance: GpuInstanceHandle,
        profile_id: c_uint,
        instance: Pointer<ComputeInstanceHandle>,
    ) {
        create(gpu_instance, profile_id, None, instance)
    }

    fn nvmlGpuInstanceCreateComputeInstanceWithPlacement(
        gpu_instance: GpuInstanceHandle,
        profile_id: c_uint,
        placement: Pointer<nvmlComputeInstancePlacement_t>,
        instance: Pointer<ComputeInstanceHandle>,
    ) {
        let nvmlComputeInstancePlacement_t { start, size } = placement.get()?;
        create(gpu_instance, profile_id, Some(Placement { start, size }), instance)
    }

    // nvml.h: the array must have room for all instances of the profile; the count is not read.
    fn nvmlGpuInstanceGetComputeInstances(
        gpu_instance: GpuInstanceHandle,
        profile_id: c_uint,
        items: Items<ComputeInstanceHandle>,
        n: Pointer<c_uint>,
    ) {
        n.check()?;
        let there = ask(gpu_instance, |machine, instance| machine.compute_instances(instance, profile_id))?;
        let handles: Vec<ComputeInstanceHandle> =
            there.into_iter().map(ComputeInstanceHandle::of).collect();
        items.fill(&handles)?;
        n.set(handles.len() as c_uint)
    }

    fn nvmlGpuInstanceGetComputeInstanceById(
        gpu_instance: GpuInstanceHandle,
        id: c_uint,
        instance: Pointer<ComputeInstanceHandle>,
    ) {
        tell(gpu_instance, instance, |machine, gpu_instance| {
            machine.compute_instance_by_id(gpu_instance, id).map(ComputeInstanceHandle::of)
        })
    }

    fn nvmlComputeInstanceGetInfo(instance: ComputeInstanceHandle, out: Pointer<ShortInfo>) {
        out.check()?;
        let there = info(instance)?;
        out.set(ShortInfo {
            device: DeviceHandle::of(Device::Gpu(there.gpu)).pointer(),
            instance: GpuInstanceHandle::of(there.gpu_instance).pointer(),
            id: there.id,
            profile_id: there.profile_id,
        })
    }

    fn nvmlComputeInstanceGetInfo_v2(
        instance: ComputeInstanceHandle,
        out: Pointer<nvmlComputeInstanceInfo_t>,
    ) {
        out.check()?;
        let there = info(instance)?;
        out.set(nvmlComputeInstanceInfo_t {
            device: DeviceHandle::of(Device::Gpu(there.gpu)).pointer(),
            gpuInstance: GpuInstanceHandle::of(there.gpu_instance).pointer(),
            id: there.id,
            profileId: there.profile_id,
            placement: nvmlComputeInstancePlacement_t {
                start: there.placement.start,
                size: there.placement.size,
            },
        })
    }

    fn nvmlComputeInstanceDestroy(instance: ComputeInstanceHandle) {
        let serial = instance.get()?;
        change(|machine| machine.destroy_compute_instance(serial))
    }
}
