//! What a machine is now, as its driver tells it. Nothing here is remembered or wished.
//!
//! GPU instances are listed, not MIG devices: an instance without a compute instance is no MIG device,
//! and would be overlooked. NVML has no call that reads locked clocks back; what is known of them is the
//! current clock here, and what entc's own state remembers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The UUID of a GPU: `GPU-…`. State, journal and changes name GPUs by it and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GpuUuid(pub String);

impl std::fmt::Display for GpuUuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The UUID of a MIG device: `MIG-…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct MigDeviceUuid(pub String);

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Observed {
    /// The driver's version, `575.57.08`.
    pub driver_version: String,
    /// The NVML library that answered.
    pub library: String,
    /// Whether that library is entc's simulated one.
    pub is_simulated: bool,
    /// Changes at every boot; locked clocks and (on most boards) MIG mode do not survive it.
    pub boot_id: String,
    /// Its GPUs, by index.
    pub gpus: Vec<ObservedGpu>,
    /// GPUs that are there and cannot be read, by index: they have fallen off the bus.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableGpu>,
}

/// A GPU that the driver counts and cannot reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableGpu {
    /// Its index for NVML at this moment.
    pub index: u32,
    /// Its UUID; `null` when even that cannot be read.
    pub uuid: Option<GpuUuid>,
    /// What the driver said, in words.
    pub reason: String,
}

impl Observed {
    /// The GPU with this UUID.
    #[must_use]
    pub fn gpu(&self, uuid: &GpuUuid) -> Option<&ObservedGpu> {
        self.gpus.iter().find(|gpu| gpu.uuid == *uuid)
    }
}

/// MIG mode of a GPU: when they differ, the change waits for a reset or a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MigMode {
    /// Whether it is on.
    pub current: bool,
    /// Whether it will be on after the next reset.
    pub pending: bool,
}

impl MigMode {
    /// Whether a change waits for a reset or a reboot.
    #[must_use]
    pub fn is_pending(self) -> bool {
        self.current != self.pending
    }
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedGpu {
    /// Its UUID.
    pub uuid: GpuUuid,
    /// Its index for NVML at this moment.
    pub index: u32,
    /// The driver's name for it, `NVIDIA A100 80GB PCIe`.
    pub name: String,
    /// Its PCI bus id, `00000000:07:00.0`.
    pub pci_bus_id: String,
    /// Its combined PCI device id, `0x20B510DE`.
    pub pci_device_id: String,
    /// The catalogue's id of it; `null` when the catalogue does not know it.
    pub board: Option<String>,
    /// MIG mode; `null` when it has none.
    pub mig: Option<MigMode>,
    /// Whether the driver stays loaded without clients; `null` when the driver does not say.
    pub is_persistent: Option<bool>,
    /// The SM clock now (MHz).
    pub sm_clock_mhz: Option<u32>,
    /// SM clocks it can run at (MHz), ascending; empty when the driver does not say.
    pub supported_sm_clocks_mhz: Vec<u32>,
    /// The power management limit (mW).
    pub power_limit_mw: Option<u32>,
    /// The limit it shipped with (mW).
    pub default_power_limit_mw: Option<u32>,
    /// Power now (mW), measured by the board.
    pub power_mw: Option<u32>,
    /// Energy since the driver was loaded (mJ), measured by the board.
    pub energy_mj: Option<u64>,
    /// The driver's own menu of GPU instance profiles, by id. Empty when it has none.
    pub profiles: Vec<ObservedProfile>,
    /// Its GPU instances, by first memory slice.
    pub instances: Vec<ObservedInstance>,
    /// GPU instances that exist, but that this process may not look at: listing GPU instances needs
    /// rights (nvml.h, `nvmlDeviceGetGpuInstances`: privileged user). Where they sit is not known, so
    /// nothing can be decided about this GPU while there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unplaced: Vec<UnplacedInstance>,
    /// Who has it open, by pid.
    pub holders: Vec<Holder>,
}

/// One entry of the driver's menu of profiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedProfile {
    /// `1g.10gb`.
    pub name: String,
    /// What `nvmlDeviceCreateGpuInstance…` takes; not the profile enum.
    pub id: u32,
    /// Compute slices.
    pub n_compute_slices: u32,
    /// At most this many on one GPU.
    pub max_instances: u32,
    /// Streaming multiprocessors.
    pub n_sms: u32,
    /// Memory (MiB).
    pub memory_mib: u64,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedInstance {
    /// Its id for the driver. Follows neither creation nor place.
    pub gpu_instance_id: u32,
    /// Its profile, `1g.10gb`; `id 99` when the driver names none.
    pub profile: String,
    /// The profile's id.
    pub profile_id: u32,
    /// First memory slice.
    pub start: u32,
    /// Memory slices occupied.
    pub size: u32,
    /// Its compute instances, by id.
    pub compute_instances: Vec<ObservedComputeInstance>,
}

impl ObservedInstance {
    /// The MIG device that CUDA sees, when its one compute instance is as wide as itself.
    #[must_use]
    pub fn mig_device(&self) -> Option<&MigDeviceUuid> {
        match self.compute_instances.as_slice() {
            [whole] if whole.is_whole => whole.uuid.as_ref(),
            _ => None,
        }
    }
}

/// A GPU instance of which only the outside can be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnplacedInstance {
    /// Its id for the driver.
    pub gpu_instance_id: u32,
    /// Its profile, as far as the names of its MIG devices tell it; `null` when it has none.
    pub profile: Option<String>,
    /// Its MIG devices.
    pub mig_devices: Vec<MigDeviceUuid>,
}

/// A compute instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedComputeInstance {
    /// Its id within its GPU instance.
    pub id: u32,
    /// Whether it has all compute slices of its GPU instance.
    pub is_whole: bool,
    /// The MIG device; `null` when the driver lists none for it.
    pub uuid: Option<MigDeviceUuid>,
}

/// A process that has a GPU or an instance of it open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Its process id.
    pub pid: u32,
    /// Its name; `null` when it may not be read.
    pub name: Option<String>,
    /// The GPU instance it sits on; `null` for the whole GPU.
    pub gpu_instance_id: Option<u32>,
}
