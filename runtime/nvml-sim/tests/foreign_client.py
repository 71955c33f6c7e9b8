"""What NVIDIA's own Python binding (nvidia-ml-py) sees of a simulated machine, as one JSON object.

Nothing here knows that the machine is simulated: the library comes from LD_LIBRARY_PATH. Profiles are
walked by enum, as nvml.h says: NOT_SUPPORTED is a gap, INVALID_ARGUMENT the end.
"""

import ctypes
import json

import pynvml as nvml


def profiles(device):
    for enum in range(64):
        try:
            yield nvml.nvmlDeviceGetGpuInstanceProfileInfo(device, enum)
        except nvml.NVMLError_NotSupported:
            continue
        except nvml.NVMLError_InvalidArgument:
            return


def gpu_instances(device):
    for profile in profiles(device):
        room = (nvml.c_nvmlGpuInstance_t * profile.instanceCount)()
        count = ctypes.c_uint(0)
        nvml.nvmlDeviceGetGpuInstances(device, profile.id, room, ctypes.byref(count))
        for instance in room[: count.value]:
            info = nvml.nvmlGpuInstanceGetInfo(instance)
            placement = {"start": info.placement.start, "size": info.placement.size}
            yield {"profile": profile.name, "id": info.id, **placement}


def mig_devices(device):
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(device)):
        try:
            mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, index)
        except nvml.NVMLError_NotFound:
            continue
        parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
        yield {
            "uuid": nvml.nvmlDeviceGetUUID(mig),
            "name": nvml.nvmlDeviceGetName(mig),
            "is_mig": nvml.nvmlDeviceIsMigDeviceHandle(mig).value,
            "parent": nvml.nvmlDeviceGetUUID(parent),
            "gpu_instance": nvml.nvmlDeviceGetGpuInstanceId(mig),
            "compute_instance": nvml.nvmlDeviceGetComputeInstanceId(mig),
            "sms": nvml.nvmlDeviceGetAttributes(mig).multiprocessorCount,
        }


def report(device):
    memory_clocks = nvml.nvmlDeviceGetSupportedMemoryClocks(device)
    graphics_clocks = nvml.nvmlDeviceGetSupportedGraphicsClocks(device, memory_clocks[0])
    energy = nvml.nvmlDeviceGetFieldValues(device, [nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION])[0]
    has_mig = nvml.nvmlDeviceGetMigMode(device)[0] == nvml.NVML_DEVICE_MIG_ENABLE
    return {
        "name": nvml.nvmlDeviceGetName(device),
        "uuid": nvml.nvmlDeviceGetUUID(device),
        "bus": nvml.nvmlDeviceGetPciInfo(device).busId,
        "memory": nvml.nvmlDeviceGetMemoryInfo(device).total,
        "memory_v2": nvml.nvmlDeviceGetMemoryInfo(device, nvml.nvmlMemory_v2).total,
        "mig": nvml.nvmlDeviceGetMigMode(device),
        "instances": list(gpu_instances(device)) if has_mig else [],
        "mig_devices": list(mig_devices(device)) if has_mig else [],
        "sm_clock": nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
        "memory_clocks": memory_clocks,
        "graphics_clocks": [graphics_clocks[0], graphics_clocks[-1], len(graphics_clocks)],
        "power": nvml.nvmlDeviceGetPowerUsage(device),
        "power_limit": nvml.nvmlDeviceGetPowerManagementLimit(device),
        "power_limits": nvml.nvmlDeviceGetPowerManagementLimitConstraints(device),
        "energy_return": energy.nvmlReturn,
        "processes": [process.pid for process in nvml.nvmlDeviceGetComputeRunningProcesses(device)],
    }


def create(device, name, start, size):
    profile = next(p for p in profiles(device) if p.name == name)
    placement = nvml.c_nvmlGpuInstancePlacement_t(start, size)
    instance = nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, profile.id, ctypes.byref(placement))
    whole = next(
        info
        for info in compute_profiles(instance)
        if info.sliceCount == profile.sliceCount
    )
    nvml.nvmlGpuInstanceCreateComputeInstance(instance, whole.id)


def compute_profiles(instance):
    for enum in range(nvml.NVML_COMPUTE_INSTANCE_PROFILE_COUNT):
        try:
            yield nvml.nvmlGpuInstanceGetComputeInstanceProfileInfo(
                instance, enum, nvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED
            )
        except nvml.NVMLError_NotSupported:
            continue


def refused(call, *arguments):
    try:
        call(*arguments)
    except nvml.NVMLError as error:
        return str(error)
    return "nothing"


def main():
    before = refused(nvml.nvmlDeviceGetCount)
    nvml.nvmlInit()
    devices = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    first = devices[0]
    result = {
        "before_init": before,
        "driver": nvml.nvmlSystemGetDriverVersion(),
        "cuda": nvml.nvmlSystemGetCudaDriverVersion(),
        "devices": [report(device) for device in devices],
        "absent": refused(nvml.nvmlDeviceGetFanSpeed, first),
        "temperature": refused(nvml.nvmlDeviceGetTemperature, first, nvml.NVML_TEMPERATURE_GPU),
    }
    create(first, "MIG 2g.20gb", 2, 2)
    nvml.nvmlDeviceSetGpuLockedClocks(first, 1050, 1050)
    result["after"] = report(first)
    mig = nvml.nvmlDeviceGetHandleByUUID(result["after"]["mig_devices"][-1]["uuid"])
    result["mig_clock"] = refused(nvml.nvmlDeviceSetGpuLockedClocks, mig, 1050, 1050)
    nvml.nvmlShutdown()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
