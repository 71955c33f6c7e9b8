//! Driver → `Observed`: the whole machine, read without rights and without changing it.
//!
//! What a GPU cannot say is nothing; what this process may not see is said to be unseen; a GPU that is
//! lost is listed as such. Only an answer that would make the rest misleading is an error: to miss an
//! instance is worse than to fail.

use super::profiles::{self, Entry};
use super::raw::{Answer, GpuInstance, GpuInstanceInfo, INVALID_ARGUMENT, RawDevice, wrapped};
use super::{Driver, optional, refusal};
use crate::error::{DeviceError, DeviceErrorKind};
use crate::holders;
use crate::observed::{
    GpuUuid, Holder, MigDeviceUuid, MigMode, Observed, ObservedComputeInstance, ObservedGpu,
    ObservedInstance, ObservedProfile, UnplacedInstance, UnreadableGpu,
};
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::Clock;
use std::collections::{BTreeMap, BTreeSet};

/// Where the kernel module lists GPU instances, one folder each, for everybody to see: also those
/// without a compute instance (MIG User Guide, "Device Nodes and Capabilities").
const CAPABILITIES: &str = "/proc/driver/nvidia/capabilities";

pub(super) fn machine(driver: &Driver) -> Result<Observed, DeviceError> {
    let nvml = &driver.nvml;
    let about_machine = |operation: &str, refused| refusal(None, operation, refused);
    let driver_version = wrapped("nvmlSystemGetDriverVersion", nvml.sys_driver_version())
        .map_err(|refused| about_machine("read the driver's version", refused))?;
    let n_gpus = wrapped("nvmlDeviceGetCount_v2", nvml.device_count())
        .map_err(|refused| about_machine("count GPUs", refused))?;
    // A simulated machine's processes have no device files open.
    let files = if driver.is_simulated { BTreeMap::new() } else { holders::device_files() };
    let mut gpus = Vec::new();
    let mut unreadable = Vec::new();
    for index in 0..n_gpus {
        match gpu(driver, index, &files) {
            Ok(gpu) => gpus.push(gpu),
            Err(error) if error.kind == DeviceErrorKind::Lost => {
                unreadable.push(UnreadableGpu { index, uuid: error.gpu, reason: error.kind.words() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Observed {
        driver_version,
        library: driver.name.clone(),
        is_simulated: driver.is_simulated,
        boot_id: driver.boot_id(),
        gpus,
        unreadable,
    })
}

/// One GPU, by its index of this moment.
fn gpu(
    driver: &Driver,
    index: u32,
    files: &BTreeMap<u32, Vec<holders::Process>>,
) -> Result<ObservedGpu, DeviceError> {
    let opened = wrapped("nvmlDeviceGetHandleByIndex_v2", driver.nvml.device_by_index(index));
    let device = opened.map_err(|refused| refusal(None, format!("open gpu {index}"), refused))?;
    let uuid = wrapped("nvmlDeviceGetUUID", device.uuid());
    let uuid =
        GpuUuid(uuid.map_err(|refused| refusal(None, format!("read the UUID of gpu {index}"), refused))?);
    let about = |operation: &'static str| {
        let uuid = uuid.clone();
        move |refused| refusal(Some(&uuid), operation, refused)
    };
    let name = wrapped("nvmlDeviceGetName", device.name()).map_err(about("read the name"))?;
    let pci = wrapped("nvmlDeviceGetPciInfo_v3", device.pci_info()).map_err(about("read the PCI id"))?;
    let pci_device_id = format!("0x{:08X}", pci.pci_device_id);
    let board = driver.board(&pci_device_id);
    let raw = RawDevice::of(&driver.nvml, &device);
    let mig = mig_mode(&device).map_err(about("read MIG mode"))?;
    let menu = match profiles::menu(&raw, board) {
        Err(refused) if refused.kind == DeviceErrorKind::NoPermission => Vec::new(),
        answer => answer.map_err(about("read the menu of profiles"))?,
    };
    let reading = about("read the GPU");
    let readings = readings(&device, &raw).map_err(reading)?;
    let is_cut = mig.is_some_and(|mode| mode.current);
    let mig_devices =
        if is_cut { mig_devices(&device).map_err(about("list MIG devices"))? } else { Vec::new() };
    let listed = if is_cut { instances(&raw, &menu, &mig_devices) } else { Ok(Vec::new()) };
    let minor = optional(wrapped("nvmlDeviceGetMinorNumber", device.minor_number())).ok().flatten();
    let (instances, unplaced) = match listed {
        Err(refused) if refused.kind == DeviceErrorKind::NoPermission => {
            let listed_by_kernel =
                minor.filter(|_| !driver.is_simulated).map(ids_of_kernel).unwrap_or_default();
            (Vec::new(), unplaced(&mig_devices, &listed_by_kernel))
        }
        answer => (answer.map_err(about("list GPU instances"))?, Vec::new()),
    };
    let opened_by = minor.and_then(|minor| files.get(&minor)).map_or(&[][..], Vec::as_slice);
    Ok(ObservedGpu {
        index,
        name,
        pci_bus_id: pci.bus_id,
        pci_device_id,
        board: board.map(|board| board.id.clone()),
        mig,
        is_persistent: readings.is_persistent,
        sm_clock_mhz: readings.sm_clock_mhz,
        supported_sm_clocks_mhz: readings.supported_sm_clocks_mhz,
        power_limit_mw: readings.power_limit_mw,
        default_power_limit_mw: readings.default_power_limit_mw,
        power_mw: readings.power_mw,
        energy_mj: readings.energy_mj,
        profiles: menu.iter().map(observed_profile).collect(),
        instances,
        unplaced,
        holders: holders_of(driver, &device, &mig_devices, opened_by).map_err(about("list processes"))?,
        uuid,
    })
}

fn observed_profile(entry: &Entry) -> ObservedProfile {
    ObservedProfile {
        name: entry.name.clone(),
        id: entry.profile.id,
        n_compute_slices: entry.profile.n_slices,
        max_instances: entry.profile.max_instances,
        n_sms: entry.profile.n_sms,
        memory_mib: entry.profile.memory_mib,
    }
}

/// MIG mode; nothing when the GPU or its driver has none.
pub(super) fn mig_mode(device: &Device<'_>) -> Answer<Option<MigMode>> {
    match wrapped("nvmlDeviceGetMigMode", device.mig_mode()) {
        Ok(mode) => Ok(Some(MigMode { current: mode.current != 0, pending: mode.pending != 0 })),
        Err(refused)
            if [DeviceErrorKind::NotSupported, DeviceErrorKind::MissingSymbol].contains(&refused.kind) =>
        {
            Ok(None)
        }
        Err(refused) => Err(refused),
    }
}

/// What a GPU may or may not be able to say.
struct Readings {
    is_persistent: Option<bool>,
    sm_clock_mhz: Option<u32>,
    supported_sm_clocks_mhz: Vec<u32>,
    power_limit_mw: Option<u32>,
    default_power_limit_mw: Option<u32>,
    power_mw: Option<u32>,
    energy_mj: Option<u64>,
}

fn readings(device: &Device<'_>, raw: &RawDevice<'_>) -> Answer<Readings> {
    Ok(Readings {
        is_persistent: optional(wrapped("nvmlDeviceGetPersistenceMode", device.is_in_persistent_mode()))?,
        sm_clock_mhz: optional(wrapped("nvmlDeviceGetClockInfo", device.clock_info(Clock::SM)))?,
        supported_sm_clocks_mhz: supported_sm_clocks(device, raw)?,
        power_limit_mw: optional(wrapped(
            "nvmlDeviceGetPowerManagementLimit",
            device.power_management_limit(),
        ))?,
        default_power_limit_mw: optional(wrapped(
            "nvmlDeviceGetPowerManagementDefaultLimit",
            device.power_management_limit_default(),
        ))?,
        power_mw: optional(wrapped("nvmlDeviceGetPowerUsage", device.power_usage()))?,
        energy_mj: optional(wrapped(
            "nvmlDeviceGetTotalEnergyConsumption",
            device.total_energy_consumption(),
        ))?,
    })
}

/// The SM clocks at the highest memory clock, ascending: those at which work is done.
pub(super) fn supported_sm_clocks(device: &Device<'_>, raw: &RawDevice<'_>) -> Answer<Vec<u32>> {
    let memory = wrapped("nvmlDeviceGetSupportedMemoryClocks", device.supported_memory_clocks());
    let Some(highest) = optional(memory)?.and_then(|clocks| clocks.into_iter().max()) else {
        return Ok(Vec::new());
    };
    let mut clocks = optional(raw.supported_sm_clocks(highest))?.unwrap_or_default();
    clocks.sort_unstable();
    clocks.dedup();
    Ok(clocks)
}

/// A MIG device, and what it is made of.
pub(super) struct MigDevice<'nvml> {
    device: Device<'nvml>,
    uuid: MigDeviceUuid,
    gpu_instance_id: u32,
    compute_instance_id: u32,
}

/// The MIG devices of a GPU. Indices have holes (nvml.h, `nvmlDeviceGetMigDeviceHandleByIndex`).
pub(super) fn mig_devices<'nvml>(device: &Device<'nvml>) -> Answer<Vec<MigDevice<'nvml>>> {
    let most = match wrapped("nvmlDeviceGetMaxMigDeviceCount", device.mig_device_count()) {
        Err(refused) if refused.kind == DeviceErrorKind::NotSupported => 0,
        answer => answer?,
    };
    let mut found = Vec::new();
    for index in 0..most {
        match mig_device(device, index) {
            Ok(mig) => found.push(mig),
            // A hole, or one that was destroyed while we looked.
            Err(refused) if [DeviceErrorKind::NotFound, INVALID_ARGUMENT].contains(&refused.kind) => {}
            Err(refused) if refused.kind == DeviceErrorKind::NotSupported => break,
            Err(refused) => return Err(refused),
        }
    }
    Ok(found)
}

fn mig_device<'nvml>(parent: &Device<'nvml>, index: u32) -> Answer<MigDevice<'nvml>> {
    let device = wrapped("nvmlDeviceGetMigDeviceHandleByIndex", parent.mig_device_by_index(index))?;
    let raw = RawDevice::of(parent.nvml(), &device);
    Ok(MigDevice {
        uuid: MigDeviceUuid(wrapped("nvmlDeviceGetUUID", device.uuid())?),
        gpu_instance_id: raw.gpu_instance_id()?,
        compute_instance_id: raw.compute_instance_id()?,
        device,
    })
}

/// The handles of all GPU instances of a GPU with what they are, by first memory slice. Profile by
/// profile, because there is no other list that has those without a compute instance.
pub(super) fn gpu_instances<'nvml>(
    raw: &RawDevice<'nvml>,
    menu: &[Entry],
) -> Answer<Vec<(GpuInstanceInfo, GpuInstance<'nvml>)>> {
    let mut found = Vec::new();
    for entry in menu {
        let listed = match raw.gpu_instances(entry.profile.id) {
            // MIG mode is off.
            Err(refused) if refused.kind == DeviceErrorKind::NotSupported => continue,
            answer => answer?,
        };
        for instance in listed {
            found.push((instance.info()?, instance));
        }
    }
    found.sort_by_key(|(info, _)| (info.placement.start, info.id));
    found.dedup_by_key(|(info, _)| info.id);
    Ok(found)
}

/// The GPU instances of a GPU with their compute instances.
fn instances(
    raw: &RawDevice<'_>,
    menu: &[Entry],
    mig_devices: &[MigDevice<'_>],
) -> Answer<Vec<ObservedInstance>> {
    let all = gpu_instances(raw, menu)?;
    all.iter().map(|(info, instance)| observed_instance(*info, instance, menu, mig_devices)).collect()
}

/// A GPU instance with its compute instances.
pub(super) fn observed_instance(
    info: GpuInstanceInfo,
    instance: &GpuInstance<'_>,
    menu: &[Entry],
    mig_devices: &[MigDevice<'_>],
) -> Answer<ObservedInstance> {
    let offered = profiles::compute_menu(instance)?;
    let width = profiles::whole(&offered).map(|whole| whole.n_slices);
    let mut compute_instances = Vec::new();
    for profile in &offered {
        let listed = match instance.compute_instances(profile.id) {
            Err(refused) if refused.kind == DeviceErrorKind::NotSupported => continue,
            answer => answer?,
        };
        for compute in listed {
            let id = compute.id()?;
            let is_it =
                |mig: &&MigDevice<'_>| (mig.gpu_instance_id, mig.compute_instance_id) == (info.id, id);
            compute_instances.push(ObservedComputeInstance {
                id,
                is_whole: Some(profile.n_slices) == width,
                uuid: mig_devices.iter().find(is_it).map(|mig| mig.uuid.clone()),
            });
        }
    }
    compute_instances.sort_by_key(|compute| compute.id);
    compute_instances.dedup_by_key(|compute| compute.id);
    let name = menu.iter().find(|entry| entry.profile.id == info.profile_id);
    Ok(ObservedInstance {
        gpu_instance_id: info.id,
        profile: name.map_or_else(|| format!("id {}", info.profile_id), |entry| entry.name.clone()),
        profile_id: info.profile_id,
        start: info.placement.start,
        size: info.placement.size,
        compute_instances,
    })
}

/// GPU instances that can be seen but not looked at: through their MIG devices, and in the kernel
/// module's folders.
fn unplaced(mig_devices: &[MigDevice<'_>], ids_of_kernel: &BTreeSet<u32>) -> Vec<UnplacedInstance> {
    let mut ids = ids_of_kernel.clone();
    ids.extend(mig_devices.iter().map(|mig| mig.gpu_instance_id));
    ids.into_iter()
        .map(|id| {
            let within: Vec<&MigDevice<'_>> =
                mig_devices.iter().filter(|m| m.gpu_instance_id == id).collect();
            let name = within.first().and_then(|mig| mig.device.name().ok());
            UnplacedInstance {
                gpu_instance_id: id,
                profile: name.as_deref().and_then(profiles::profile_in_device_name),
                mig_devices: within.iter().map(|mig| mig.uuid.clone()).collect(),
            }
        })
        .collect()
}

/// The GPU instances that the kernel module has a folder for: `gpu0/mig/gi7`.
fn ids_of_kernel(minor: u32) -> BTreeSet<u32> {
    let folder = std::fs::read_dir(format!("{CAPABILITIES}/gpu{minor}/mig"));
    let names =
        folder.into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("gi")?.parse().ok()).collect()
}

/// Who has a GPU open: processes with a context on it or on an instance, and processes that only have its
/// device file open.
fn holders_of(
    driver: &Driver,
    device: &Device<'_>,
    mig_devices: &[MigDevice<'_>],
    opened_by: &[holders::Process],
) -> Answer<Vec<Holder>> {
    let mut found: BTreeSet<(u32, Option<u32>)> = processes(device)?.into_iter().collect();
    // Without rights a GPU in MIG mode tells nothing of its instances; each instance tells of itself.
    for mig in mig_devices {
        found.extend(processes(&mig.device)?.into_iter().map(|(pid, _)| (pid, Some(mig.gpu_instance_id))));
    }
    let on_instances: BTreeSet<u32> =
        found.iter().filter(|(_, on)| on.is_some()).map(|(pid, _)| *pid).collect();
    found.retain(|(pid, on)| on.is_some() || !on_instances.contains(pid));
    let mut holders: Vec<Holder> = found
        .into_iter()
        .map(|(pid, on)| Holder { pid, name: process_name(driver, pid), gpu_instance_id: on })
        .collect();
    let is_new = |process: &&holders::Process| holders.iter().all(|holder| holder.pid != process.pid);
    let others: Vec<Holder> = opened_by
        .iter()
        .filter(|process| process.name != holders::PERSISTENCE_DAEMON)
        .filter(is_new)
        .map(|process| Holder { pid: process.pid, name: Some(process.name.clone()), gpu_instance_id: None })
        .collect();
    holders.extend(others);
    holders.sort_by_key(|holder| (holder.pid, holder.gpu_instance_id));
    Ok(holders)
}

/// A process's name, from /proc or from the driver. A simulated machine's processes need not exist here,
/// and a process that does exist here may be another one: there only the driver knows.
fn process_name(driver: &Driver, pid: u32) -> Option<String> {
    /// Longer than any path.
    const ROOM: usize = 4096;
    let asked = || {
        let path = driver.nvml.sys_process_name(pid, ROOM).ok()?;
        let file = path.rsplit('/').next().unwrap_or_default();
        (!file.is_empty()).then(|| file.to_owned())
    };
    if driver.is_simulated { asked() } else { holders::process_name(pid).or_else(asked) }
}

/// Processes with a context, and the GPU instance they are on.
fn processes(device: &Device<'_>) -> Answer<Vec<(u32, Option<u32>)>> {
    let lists = [
        wrapped("nvmlDeviceGetComputeRunningProcesses_v3", device.running_compute_processes()),
        wrapped("nvmlDeviceGetGraphicsRunningProcesses_v3", device.running_graphics_processes()),
        wrapped("nvmlDeviceGetMPSComputeRunningProcesses_v3", device.mps_running_compute_processes()),
    ];
    let mut found = Vec::new();
    for list in lists {
        let list = optional(list)?.unwrap_or_default();
        found.extend(list.into_iter().map(|process| (process.pid, process.gpu_instance_id)));
    }
    Ok(found)
}
