//! Processes on a device.

use super::boundary::{Items, Pointer, exports};
use super::device::ask;
use super::handle::DeviceHandle;
use super::process::Answer;
use crate::silicon::RunningProcess;
use nvml_wrapper_sys::bindings::{INVALID_GPU_INSTANCE_ID, nvmlProcessInfo_t, nvmlProcessInfo_v1_t};
use std::ffi::{c_uint, c_ulonglong};

/// The memory that a process uses is not simulated (NVML_VALUE_NOT_AVAILABLE).
const MEMORY: c_ulonglong = c_ulonglong::MAX;

type First = Items<nvmlProcessInfo_v1_t>;
/// Second and third version are one structure.
type Later = Items<nvmlProcessInfo_t>;

fn without_instances(process: &RunningProcess) -> nvmlProcessInfo_v1_t {
    nvmlProcessInfo_v1_t { pid: process.pid, usedGpuMemory: MEMORY }
}

fn with_instances(process: &RunningProcess) -> nvmlProcessInfo_t {
    nvmlProcessInfo_t {
        pid: process.pid,
        usedGpuMemory: MEMORY,
        gpuInstanceId: process.gpu_instance_id.unwrap_or(INVALID_GPU_INSTANCE_ID),
        computeInstanceId: process.compute_instance_id.unwrap_or(INVALID_GPU_INSTANCE_ID),
    }
}

fn list<T: Copy>(
    device: DeviceHandle,
    n: Pointer<c_uint>,
    items: Items<T>,
    entry: impl Fn(&RunningProcess) -> T,
) -> Answer<()> {
    n.check()?;
    let running = ask(device, |machine, device| machine.processes(device))?;
    items.fill_counted(n, &running.iter().map(entry).collect::<Vec<T>>())
}

/// Every simulated process computes; none draws, and none goes through an MPS server.
fn none<T: Copy>(device: DeviceHandle, n: Pointer<c_uint>, items: Items<T>) -> Answer<()> {
    n.check()?;
    ask(device, |machine, device| machine.processes(device))?;
    items.fill_counted(n, &[])
}

exports! {
    fn nvmlDeviceGetComputeRunningProcesses(device: DeviceHandle, n: Pointer<c_uint>, items: First) {
        list(device, n, items, without_instances)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(device: DeviceHandle, n: Pointer<c_uint>, items: Later) {
        list(device, n, items, with_instances)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(device: DeviceHandle, n: Pointer<c_uint>, items: Later) {
        list(device, n, items, with_instances)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses(device: DeviceHandle, n: Pointer<c_uint>, items: First) {
        none(device, n, items)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v2(device: DeviceHandle, n: Pointer<c_uint>, items: Later) {
        none(device, n, items)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: DeviceHandle, n: Pointer<c_uint>, items: Later) {
        none(device, n, items)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses(device: DeviceHandle, n: Pointer<c_uint>, items: First) {
        none(device, n, items)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(device: DeviceHandle, n: Pointer<c_uint>, items: Later) {
        none(device, n, items)
    }

    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(device: DeviceHandle, n: Pointer<c_uint>, items: Later) {
        none(device, n, items)
    }
}
