//! Finding devices, and what they are.

use super::boundary::{Pointer, Room, Text, Versioned, exports, text_field};
use super::handle::DeviceHandle;
use super::process::{Answer, change, look};
use crate::returns::Return;
use crate::silicon::{Device, Memory, Pci, Silicon};
use nvml_wrapper_sys::bindings::{
    nvmlBrandType_enum_NVML_BRAND_NVIDIA, nvmlBrandType_enum_NVML_BRAND_UNKNOWN, nvmlMemory_t,
    nvmlMemory_v2_t, nvmlPciInfo_t,
};
use std::ffi::{c_char, c_int, c_uint};

/// `nvmlPciInfo_t` before it had a longer bus id; the first version ends before the subsystem.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ShortPci<const N: usize> {
    bus_id: [c_char; 16],
    /// Domain, bus, device, combined device id, and the subsystem's from the second version on.
    numbers: [c_uint; N],
}

/// Version number and size of a structure, as nvml.h packs them (`NVML_STRUCT_VERSION`).
pub(super) const fn struct_version<T>(version: u32) -> c_uint {
    size_of::<T>() as u32 | version << 24
}

/// Finds a device and hands out its handle.
fn find(device: Pointer<DeviceHandle>, which: impl FnOnce(&Silicon) -> Answer<Device>) -> Answer<()> {
    device.check()?;
    device.set(DeviceHandle::of(look(which)?))
}

/// Asks something of a device.
pub(super) fn ask<T>(
    device: DeviceHandle,
    question: impl FnOnce(&Silicon, Device) -> Answer<T>,
) -> Answer<T> {
    let device = device.get()?;
    look(|machine| question(machine, device))
}

/// Asks something of a device and hands it out.
pub(super) fn tell<T: Copy>(
    device: DeviceHandle,
    out: Pointer<T>,
    question: impl FnOnce(&Silicon, Device) -> Answer<T>,
) -> Answer<()> {
    out.check()?;
    out.set(ask(device, question)?)
}

/// Requests a change of a device.
pub(super) fn request<T>(
    device: DeviceHandle,
    request: impl FnOnce(&mut Silicon, Device) -> Answer<T>,
) -> Answer<T> {
    let device = device.get()?;
    change(|machine| request(machine, device))
}

/// An on/off argument.
pub(super) fn switch(mode: c_uint) -> Answer<bool> {
    match mode {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Return::InvalidArgument),
    }
}

fn count(out: Pointer<c_uint>) -> Answer<()> {
    out.check()?;
    out.set(look(|machine| Ok(machine.n_gpus() as c_uint))?)
}

fn by_index(index: c_uint, device: Pointer<DeviceHandle>) -> Answer<()> {
    find(device, |machine| machine.gpu_by_index(index))
}

fn by_bus_id(bus_id: Text, device: Pointer<DeviceHandle>) -> Answer<()> {
    let bus_id = bus_id.get()?;
    find(device, |machine| machine.gpu_by_pci_bus_id(&bus_id))
}

/// `%04X:%02X:%02X.0`, which older clients show (NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT).
fn legacy_bus_id(pci: &Pci) -> [c_char; 16] {
    text_field(&format!("{:04X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.slot))
}

fn memory(memory: Memory) -> nvmlMemory_t {
    nvmlMemory_t { total: memory.total, used: memory.used, free: memory.total.saturating_sub(memory.used) }
}

exports! {
    fn nvmlDeviceGetCount(n: Pointer<c_uint>) { count(n) }

    fn nvmlDeviceGetCount_v2(n: Pointer<c_uint>) { count(n) }

    fn nvmlDeviceGetHandleByIndex(index: c_uint, device: Pointer<DeviceHandle>) { by_index(index, device) }

    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: Pointer<DeviceHandle>) { by_index(index, device) }

    fn nvmlDeviceGetHandleByUUID(uuid: Text, device: Pointer<DeviceHandle>) {
        let uuid = uuid.get()?;
        find(device, |machine| machine.device_by_uuid(&uuid))
    }

    fn nvmlDeviceGetHandleBySerial(serial: Text, device: Pointer<DeviceHandle>) {
        let serial = serial.get()?;
        find(device, |machine| machine.gpu_by_serial(&serial))
    }

    fn nvmlDeviceGetHandleByPciBusId(bus_id: Text, device: Pointer<DeviceHandle>) { by_bus_id(bus_id, device) }

    fn nvmlDeviceGetHandleByPciBusId_v2(bus_id: Text, device: Pointer<DeviceHandle>) {
        by_bus_id(bus_id, device)
    }

    fn nvmlDeviceGetName(device: DeviceHandle, name: Room, length: c_uint) {
        name.set(length, &ask(device, |machine, device| machine.name(device))?)
    }

    // NVIDIA's own mock of a DGX A100 says NVIDIA; of the RTX boards nobody has captured it.
    fn nvmlDeviceGetBrand(device: DeviceHandle, brand: Pointer<c_uint>) {
        tell(device, brand, |machine, device| {
            let is_data_centre = !machine.name(device)?.contains("RTX");
            Ok(if is_data_centre {
                nvmlBrandType_enum_NVML_BRAND_NVIDIA
            } else {
                nvmlBrandType_enum_NVML_BRAND_UNKNOWN
            })
        })
    }

    fn nvmlDeviceGetSerial(device: DeviceHandle, serial: Room, length: c_uint) {
        serial.set(length, &ask(device, |machine, device| machine.serial(device))?)
    }

    fn nvmlDeviceGetUUID(device: DeviceHandle, uuid: Room, length: c_uint) {
        uuid.set(length, &ask(device, |machine, device| machine.uuid(device))?)
    }

    fn nvmlDeviceGetIndex(device: DeviceHandle, index: Pointer<c_uint>) {
        tell(device, index, |machine, device| machine.index(device))
    }

    fn nvmlDeviceGetMinorNumber(device: DeviceHandle, number: Pointer<c_uint>) {
        tell(device, number, |machine, device| machine.minor_number(device))
    }

    fn nvmlDeviceGetPciInfo(device: DeviceHandle, pci: Pointer<ShortPci<4>>) {
        tell(device, pci, |machine, device| {
            let pci = machine.pci(device)?;
            let numbers = [pci.domain, pci.bus, pci.slot, pci.device_id];
            Ok(ShortPci { bus_id: legacy_bus_id(&pci), numbers })
        })
    }

    fn nvmlDeviceGetPciInfo_v2(device: DeviceHandle, pci: Pointer<ShortPci<5>>) {
        tell(device, pci, |machine, device| {
            let pci = machine.pci(device)?;
            let numbers = [pci.domain, pci.bus, pci.slot, pci.device_id, pci.subsystem_id];
            Ok(ShortPci { bus_id: legacy_bus_id(&pci), numbers })
        })
    }

    fn nvmlDeviceGetPciInfo_v3(device: DeviceHandle, pci: Pointer<nvmlPciInfo_t>) {
        tell(device, pci, |machine, device| {
            let pci = machine.pci(device)?;
            Ok(nvmlPciInfo_t {
                busIdLegacy: legacy_bus_id(&pci),
                domain: pci.domain,
                bus: pci.bus,
                device: pci.slot,
                pciDeviceId: pci.device_id,
                pciSubSystemId: pci.subsystem_id,
                busId: text_field(&pci.bus_id),
            })
        })
    }

    fn nvmlDeviceGetMemoryInfo(device: DeviceHandle, info: Pointer<nvmlMemory_t>) {
        tell(device, info, |machine, device| machine.memory(device).map(memory))
    }

    fn nvmlDeviceGetMemoryInfo_v2(device: DeviceHandle, info: Versioned) {
        let version = info.version()?;
        if version != struct_version::<nvmlMemory_v2_t>(2) {
            return Err(Return::ArgumentVersionMismatch);
        }
        tell(device, info.as_type(), |machine, device| {
            let nvmlMemory_t { total, free, used } = memory(machine.memory(device)?);
            Ok(nvmlMemory_v2_t { version, total, reserved: 0, free, used })
        })
    }

    fn nvmlDeviceGetArchitecture(device: DeviceHandle, architecture: Pointer<c_uint>) {
        tell(device, architecture, |machine, device| machine.architecture(device))
    }

    fn nvmlDeviceGetCudaComputeCapability(device: DeviceHandle, major: Pointer<c_int>, minor: Pointer<c_int>) {
        major.check()?;
        minor.check()?;
        let (first, second) = ask(device, |machine, device| machine.compute_capability(device))?;
        major.set(first)?;
        minor.set(second)
    }

    fn nvmlDeviceGetPersistenceMode(device: DeviceHandle, mode: Pointer<c_uint>) {
        tell(device, mode, |machine, device| machine.persistence_mode(device).map(c_uint::from))
    }

    fn nvmlDeviceSetPersistenceMode(device: DeviceHandle, mode: c_uint) {
        let is_enabled = switch(mode)?;
        request(device, |machine, device| machine.set_persistence_mode(device, is_enabled))
    }
}
