//! Many readings in one call, each with its own return code.

use super::boundary::{Items, exports};
use super::handle::DeviceHandle;
use super::process::{Answer, look};
use crate::returns::Return;
use crate::silicon::{Device, Silicon};
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_ENERGY, NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_CURRENT_LIMIT,
    NVML_FI_DEV_POWER_DEFAULT_LIMIT, NVML_FI_DEV_POWER_INSTANT, NVML_FI_DEV_POWER_MAX_LIMIT,
    NVML_FI_DEV_POWER_MIN_LIMIT, NVML_FI_DEV_POWER_REQUESTED_LIMIT, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION,
};
use nvml_wrapper_sys::bindings::{
    NVML_DEVICE_ARCH_AMPERE, NVML_POWER_SCOPE_GPU, nvmlFieldValue_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT, nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG,
};
use std::ffi::c_int;
use std::time::{SystemTime, UNIX_EPOCH};

enum Reading {
    Milliwatts(u32),
    Millijoules(u64),
}

// nvml.h, field identifiers. The 1 s average exists from Ampere on, GA100 excepted; every Ampere board
// of the catalogue is a GA100.
fn read(machine: &Silicon, device: Device, field: u32, scope: u32) -> Answer<Reading> {
    if scope != NVML_POWER_SCOPE_GPU {
        return Err(Return::NotSupported);
    }
    match field {
        NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION | NVML_FI_DEV_ENERGY => {
            machine.total_energy(device).map(Reading::Millijoules)
        }
        NVML_FI_DEV_POWER_AVERAGE if machine.architecture(device)? <= NVML_DEVICE_ARCH_AMPERE => {
            Err(Return::NotSupported)
        }
        NVML_FI_DEV_POWER_AVERAGE => machine.power_usage(device).map(Reading::Milliwatts),
        NVML_FI_DEV_POWER_INSTANT => machine.power_instant(device).map(Reading::Milliwatts),
        NVML_FI_DEV_POWER_MIN_LIMIT => Ok(Reading::Milliwatts(machine.power_limit_range(device)?.min)),
        NVML_FI_DEV_POWER_MAX_LIMIT => Ok(Reading::Milliwatts(machine.power_limit_range(device)?.max)),
        NVML_FI_DEV_POWER_DEFAULT_LIMIT => machine.default_power_limit(device).map(Reading::Milliwatts),
        NVML_FI_DEV_POWER_CURRENT_LIMIT => machine.enforced_power_limit(device).map(Reading::Milliwatts),
        NVML_FI_DEV_POWER_REQUESTED_LIMIT => machine.power_limit(device).map(Reading::Milliwatts),
        _ => Err(Return::NotSupported),
    }
}

/// Microseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

exports! {
    fn nvmlDeviceGetFieldValues(device: DeviceHandle, n: c_int, values: Items<nvmlFieldValue_t>) {
        let n = usize::try_from(n).ok().filter(|n| *n > 0).ok_or(Return::InvalidArgument)?;
        let device = device.get()?;
        look(|machine| {
            machine.index(device)?;
            values.change(n, |value| {
                value.timestamp = now();
                value.latencyUsec = 0;
                match read(machine, device, value.fieldId, value.scopeId) {
                    Ok(Reading::Milliwatts(power)) => {
                        value.nvmlReturn = 0;
                        value.valueType = nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT;
                        value.value = nvmlValue_t { ullVal: power.into() };
                    }
                    Ok(Reading::Millijoules(energy)) => {
                        value.nvmlReturn = 0;
                        value.valueType = nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
                        value.value = nvmlValue_t { ullVal: energy };
                    }
                    Err(refusal) => value.nvmlReturn = refusal.code(),
                }
            })
        })
    }
}
