//! Power (mW) and energy (mJ); and the sensors that are not simulated.

use super::boundary::{Pointer, Versioned, exports};
use super::device::{ask, request, struct_version, tell};
use super::handle::DeviceHandle;
use crate::returns::Return;
use nvml_wrapper_sys::bindings::{NVML_POWER_SCOPE_GPU, nvmlPowerValue_v2_t, nvmlUtilization_t};
use std::ffi::{c_uint, c_ulonglong};

exports! {
    fn nvmlDeviceGetPowerUsage(device: DeviceHandle, milliwatts: Pointer<c_uint>) {
        tell(device, milliwatts, |machine, device| machine.power_usage(device))
    }

    fn nvmlDeviceGetTotalEnergyConsumption(device: DeviceHandle, millijoules: Pointer<c_ulonglong>) {
        tell(device, millijoules, |machine, device| machine.total_energy(device))
    }

    fn nvmlDeviceGetPowerManagementLimit(device: DeviceHandle, milliwatts: Pointer<c_uint>) {
        tell(device, milliwatts, |machine, device| machine.power_limit(device))
    }

    fn nvmlDeviceGetPowerManagementDefaultLimit(device: DeviceHandle, milliwatts: Pointer<c_uint>) {
        tell(device, milliwatts, |machine, device| machine.default_power_limit(device))
    }

    fn nvmlDeviceGetEnforcedPowerLimit(device: DeviceHandle, milliwatts: Pointer<c_uint>) {
        tell(device, milliwatts, |machine, device| machine.enforced_power_limit(device))
    }

    fn nvmlDeviceGetPowerManagementLimitConstraints(
        device: DeviceHandle,
        min: Pointer<c_uint>,
        max: Pointer<c_uint>,
    ) {
        min.check()?;
        max.check()?;
        let range = ask(device, |machine, device| machine.power_limit_range(device))?;
        min.set(range.min)?;
        max.set(range.max)
    }

    fn nvmlDeviceSetPowerManagementLimit(device: DeviceHandle, milliwatts: c_uint) {
        request(device, |machine, device| machine.set_power_limit(device, milliwatts))
    }

    fn nvmlDeviceSetPowerManagementLimit_v2(device: DeviceHandle, limit: Versioned) {
        if limit.version()? != struct_version::<nvmlPowerValue_v2_t>(2) {
            return Err(Return::ArgumentVersionMismatch);
        }
        let limit = limit.as_type::<nvmlPowerValue_v2_t>().get()?;
        // Module and memory have limits of their own on a few boards; none is simulated.
        if u32::from(limit.powerScope) != NVML_POWER_SCOPE_GPU {
            return Err(Return::NotSupported);
        }
        request(device, |machine, device| machine.set_power_limit(device, limit.powerValueMw))
    }

    // Temperature is not simulated, and a made-up one would be believed.
    fn nvmlDeviceGetTemperature(device: DeviceHandle, _sensor: c_uint, celsius: Pointer<c_uint>) {
        tell(device, celsius, |machine, device| machine.index(device).and(Err(Return::NotSupported)))
    }

    // nvml.h: not supported on MIG-enabled GPUs. On others nothing says how busy a simulated one is.
    fn nvmlDeviceGetUtilizationRates(device: DeviceHandle, utilisation: Pointer<nvmlUtilization_t>) {
        tell(device, utilisation, |machine, device| machine.index(device).and(Err(Return::NotSupported)))
    }
}
