//! Handles: what C sees as pointers, and never looks behind.
//!
//! A handle is a number that says what it stands for, so that it needs no table, is the same at every
//! call, and does not come to mean another instance when its own is gone: serials are never used again.
//! Its upper bits make it an address that no process can have, so that a pointer to anything is not
//! mistaken for a handle.

use super::process::Answer;
use crate::returns::Return;
use crate::silicon::{Device, Serial};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlGpuInstance_t};

const MARK: usize = 0x4E56 << 48;
const KIND: u32 = 40;
const NUMBER: usize = (1 << KIND) - 1;

#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    Gpu = 1,
    Mig,
    GpuInstance,
    ComputeInstance,
}

fn encode(kind: Kind, number: Serial) -> usize {
    MARK | (kind as usize) << KIND | (number as usize & NUMBER)
}

fn decode(handle: usize, kind: Kind) -> Option<Serial> {
    (handle & !NUMBER == encode(kind, 0)).then_some((handle & NUMBER) as Serial)
}

/// `nvmlDevice_t`: a GPU or a MIG device.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct DeviceHandle(usize);

impl DeviceHandle {
    pub(super) fn of(device: Device) -> Self {
        Self(match device {
            Device::Gpu(index) => encode(Kind::Gpu, index as Serial),
            Device::Mig(serial) => encode(Kind::Mig, serial),
        })
    }

    /// What it stands for; whether that is still there, the machine knows.
    pub(super) fn get(self) -> Answer<Device> {
        let gpu = decode(self.0, Kind::Gpu).map(|index| Device::Gpu(index as usize));
        gpu.or_else(|| decode(self.0, Kind::Mig).map(Device::Mig)).ok_or(Return::InvalidArgument)
    }

    /// As it stands in structures.
    pub(super) fn pointer(self) -> nvmlDevice_t {
        std::ptr::without_provenance_mut(self.0)
    }
}

/// `nvmlGpuInstance_t`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct GpuInstanceHandle(usize);

impl GpuInstanceHandle {
    pub(super) fn of(serial: Serial) -> Self {
        Self(encode(Kind::GpuInstance, serial))
    }

    pub(super) fn get(self) -> Answer<Serial> {
        decode(self.0, Kind::GpuInstance).ok_or(Return::InvalidArgument)
    }

    pub(super) fn pointer(self) -> nvmlGpuInstance_t {
        std::ptr::without_provenance_mut(self.0)
    }
}

/// `nvmlComputeInstance_t`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ComputeInstanceHandle(usize);

impl ComputeInstanceHandle {
    pub(super) fn of(serial: Serial) -> Self {
        Self(encode(Kind::ComputeInstance, serial))
    }

    pub(super) fn get(self) -> Answer<Serial> {
        decode(self.0, Kind::ComputeInstance).ok_or(Return::InvalidArgument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_stands_for_what_it_was_made_of_and_nothing_else() {
        for device in [Device::Gpu(0), Device::Gpu(999), Device::Mig(0), Device::Mig(123_456)] {
            assert_eq!(DeviceHandle::of(device).get(), Ok(device));
        }
        let instance = GpuInstanceHandle::of(5);
        assert_eq!(instance.get(), Ok(5));
        assert!(DeviceHandle(instance.0).get().is_err());
        assert!(ComputeInstanceHandle(instance.0).get().is_err());
        let local = 0_u32;
        assert!(DeviceHandle(0).get().is_err());
        assert!(DeviceHandle(std::ptr::from_ref(&local).addr()).get().is_err());
    }
}
