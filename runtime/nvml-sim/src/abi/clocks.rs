//! Clocks (MHz), and why they are what they are.

use super::boundary::{Items, Pointer, exports};
use super::device::{ask, request, tell};
use super::handle::DeviceHandle;
use super::process::Answer;
use crate::returns::Return;
use crate::silicon::Clock;
use nvml_wrapper_sys::bindings::{
    nvmlClockId_enum_NVML_CLOCK_ID_APP_CLOCK_DEFAULT, nvmlClockId_enum_NVML_CLOCK_ID_APP_CLOCK_TARGET,
    nvmlClockId_enum_NVML_CLOCK_ID_CURRENT, nvmlClockId_enum_NVML_CLOCK_ID_CUSTOMER_BOOST_MAX,
    nvmlClockType_enum_NVML_CLOCK_GRAPHICS, nvmlClockType_enum_NVML_CLOCK_MEM,
    nvmlClockType_enum_NVML_CLOCK_SM, nvmlClockType_enum_NVML_CLOCK_VIDEO,
    nvmlClocksEventReasonApplicationsClocksSetting, nvmlClocksEventReasonGpuIdle,
    nvmlClocksEventReasonSwPowerCap,
};
use std::ffi::{c_uint, c_ulonglong};

/// The reasons that the simulated machine can have.
const REASONS: c_uint = nvmlClocksEventReasonGpuIdle
    | nvmlClocksEventReasonApplicationsClocksSetting
    | nvmlClocksEventReasonSwPowerCap;

fn clock(kind: c_uint) -> Answer<Clock> {
    #[expect(non_upper_case_globals, reason = "the names are bindgen's")]
    match kind {
        nvmlClockType_enum_NVML_CLOCK_GRAPHICS => Ok(Clock::Graphics),
        nvmlClockType_enum_NVML_CLOCK_SM => Ok(Clock::Sm),
        nvmlClockType_enum_NVML_CLOCK_MEM => Ok(Clock::Memory),
        nvmlClockType_enum_NVML_CLOCK_VIDEO => Ok(Clock::Video),
        _ => Err(Return::InvalidArgument),
    }
}

fn reasons(device: DeviceHandle, out: Pointer<c_ulonglong>) -> Answer<()> {
    tell(device, out, |machine, device| machine.clocks_event_reasons(device))
}

fn supported_reasons(device: DeviceHandle, out: Pointer<c_ulonglong>) -> Answer<()> {
    tell(device, out, |machine, device| machine.clocks_event_reasons(device).map(|_| REASONS.into()))
}

exports! {
    fn nvmlDeviceGetClockInfo(device: DeviceHandle, kind: c_uint, mhz: Pointer<c_uint>) {
        let kind = clock(kind)?;
        tell(device, mhz, |machine, device| machine.clock(device, kind))
    }

    fn nvmlDeviceGetMaxClockInfo(device: DeviceHandle, kind: c_uint, mhz: Pointer<c_uint>) {
        let kind = clock(kind)?;
        tell(device, mhz, |machine, device| machine.max_clock(device, kind))
    }

    // Application clocks are deprecated since CUDA 13.0 (nvml.h), and not simulated.
    fn nvmlDeviceGetClock(device: DeviceHandle, kind: c_uint, id: c_uint, mhz: Pointer<c_uint>) {
        let kind = clock(kind)?;
        #[expect(non_upper_case_globals, reason = "the names are bindgen's")]
        tell(device, mhz, |machine, device| match id {
            nvmlClockId_enum_NVML_CLOCK_ID_CURRENT => machine.clock(device, kind),
            nvmlClockId_enum_NVML_CLOCK_ID_CUSTOMER_BOOST_MAX => machine.max_clock(device, kind),
            nvmlClockId_enum_NVML_CLOCK_ID_APP_CLOCK_TARGET
            | nvmlClockId_enum_NVML_CLOCK_ID_APP_CLOCK_DEFAULT => Err(Return::NotSupported),
            _ => Err(Return::InvalidArgument),
        })
    }

    fn nvmlDeviceGetSupportedMemoryClocks(device: DeviceHandle, n: Pointer<c_uint>, mhz: Items<c_uint>) {
        n.check()?;
        mhz.fill_counted(n, &ask(device, |machine, device| machine.supported_memory_clocks(device))?)
    }

    fn nvmlDeviceGetSupportedGraphicsClocks(
        device: DeviceHandle,
        memory_mhz: c_uint,
        n: Pointer<c_uint>,
        mhz: Items<c_uint>,
    ) {
        n.check()?;
        let clocks = ask(device, |machine, device| machine.supported_graphics_clocks(device, memory_mhz))?;
        mhz.fill_counted(n, &clocks)
    }

    fn nvmlDeviceSetGpuLockedClocks(device: DeviceHandle, min_mhz: c_uint, max_mhz: c_uint) {
        request(device, |machine, device| machine.set_gpu_locked_clocks(device, min_mhz, max_mhz))
    }

    fn nvmlDeviceResetGpuLockedClocks(device: DeviceHandle) {
        request(device, |machine, device| machine.reset_gpu_locked_clocks(device))
    }

    fn nvmlDeviceSetMemoryLockedClocks(device: DeviceHandle, min_mhz: c_uint, max_mhz: c_uint) {
        request(device, |machine, device| machine.set_memory_locked_clocks(device, min_mhz, max_mhz))
    }

    fn nvmlDeviceResetMemoryLockedClocks(device: DeviceHandle) {
        request(device, |machine, device| machine.reset_memory_locked_clocks(device))
    }

    fn nvmlDeviceGetCurrentClocksEventReasons(device: DeviceHandle, bits: Pointer<c_ulonglong>) {
        reasons(device, bits)
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: DeviceHandle, bits: Pointer<c_ulonglong>) {
        reasons(device, bits)
    }

    fn nvmlDeviceGetSupportedClocksEventReasons(device: DeviceHandle, bits: Pointer<c_ulonglong>) {
        supported_reasons(device, bits)
    }

    fn nvmlDeviceGetSupportedClocksThrottleReasons(device: DeviceHandle, bits: Pointer<c_ulonglong>) {
        supported_reasons(device, bits)
    }

    fn nvmlDeviceGetPerformanceState(device: DeviceHandle, state: Pointer<c_uint>) {
        tell(device, state, |machine, device| machine.performance_state(device))
    }

    fn nvmlDeviceGetPowerState(device: DeviceHandle, state: Pointer<c_uint>) {
        tell(device, state, |machine, device| machine.performance_state(device))
    }
}
