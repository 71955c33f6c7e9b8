//! The machine itself: what each GPU is, what it may become, and what it refuses.
//!
//! All rules of the hardware live below this file, each with its source. A method that changes something
//! either does all of it or returns an error and does nothing. Nothing here reads a clock, a file or an
//! environment: [`crate::store`] brings the time and keeps the state.

use crate::returns::Return;

/// Names a GPU instance or compute instance for as long as it exists; never used again afterwards.
pub type Serial = u64;

/// What a device handle stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Device {
    /// A whole GPU, by index.
    Gpu(usize),
    /// A MIG device: the compute instance with this serial.
    Mig(Serial),
}

/// A kind of clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Graphics; the same clock as the SMs'.
    Graphics,
    /// The SMs.
    Sm,
    /// Memory.
    Memory,
    /// Video engines.
    Video,
}

/// Where a GPU instance lies in memory slices, or a compute instance in compute slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct Placement {
    /// First slice.
    pub start: u32,
    /// Slices occupied.
    pub size: u32,
}

/// One entry of a GPU's menu (`nvmlGpuInstanceProfileInfo_v2_t` and `_v3_t`). What nobody captured is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInstanceProfileInfo {
    /// What creating takes; not the profile enum.
    pub id: u32,
    /// `MIG 1g.10gb`.
    pub name: String,
    /// Compute slices.
    pub slice_count: u32,
    /// At most this many on one GPU.
    pub instance_count: u32,
    /// Streaming multiprocessors.
    pub multiprocessor_count: u32,
    /// Copy engines.
    pub copy_engine_count: u32,
    /// Decoders.
    pub decoder_count: u32,
    /// Encoders.
    pub encoder_count: u32,
    /// JPEG engines.
    pub jpeg_count: u32,
    /// Optical flow engines.
    pub ofa_count: u32,
    /// Memory (MiB).
    pub memory_size_mib: u64,
    /// `NVML_GPU_INSTANCE_PROFILE_CAPS_*`.
    pub capabilities: u32,
}

/// One way to cut a GPU instance's compute (`nvmlComputeInstanceProfileInfo_v2_t` and `_v3_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputeInstanceProfileInfo {
    /// What creating takes.
    pub id: u32,
    /// `MIG 1c.2g.20gb`.
    pub name: String,
    /// Compute slices.
    pub slice_count: u32,
    /// At most this many in this GPU instance.
    pub instance_count: u32,
    /// Streaming multiprocessors.
    pub multiprocessor_count: u32,
    /// Copy engines, shared with the GPU instance's other compute instances.
    pub shared_copy_engine_count: u32,
    /// Decoders, shared likewise.
    pub shared_decoder_count: u32,
    /// Encoders, shared likewise.
    pub shared_encoder_count: u32,
    /// JPEG engines, shared likewise.
    pub shared_jpeg_count: u32,
    /// Optical flow engines, shared likewise.
    pub shared_ofa_count: u32,
}

/// A GPU instance (`nvmlGpuInstanceInfo_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuInstanceInfo {
    /// Its GPU's index.
    pub gpu: usize,
    /// Its id on that GPU.
    pub id: u32,
    /// Its profile's id.
    pub profile_id: u32,
    /// Memory slices occupied.
    pub placement: Placement,
}

/// A compute instance (`nvmlComputeInstanceInfo_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComputeInstanceInfo {
    /// Its GPU's index.
    pub gpu: usize,
    /// Its GPU instance.
    pub gpu_instance: Serial,
    /// Its GPU instance's id.
    pub gpu_instance_id: u32,
    /// Its id within its GPU instance.
    pub id: u32,
    /// Its profile's id.
    pub profile_id: u32,
    /// Compute slices occupied.
    pub placement: Placement,
}

/// What a MIG device has (`nvmlDeviceAttributes_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Streaming multiprocessors.
    pub multiprocessor_count: u32,
    /// Copy engines, shared.
    pub shared_copy_engine_count: u32,
    /// Decoders, shared.
    pub shared_decoder_count: u32,
    /// Encoders, shared.
    pub shared_encoder_count: u32,
    /// JPEG engines, shared.
    pub shared_jpeg_count: u32,
    /// Optical flow engines, shared.
    pub shared_ofa_count: u32,
    /// Memory slices of its GPU instance.
    pub gpu_instance_slice_count: u32,
    /// Compute slices of its compute instance.
    pub compute_instance_slice_count: u32,
    /// Memory (MiB).
    pub memory_size_mib: u64,
}

/// Where a GPU sits (`nvmlPciInfo_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pci {
    /// `00000000:07:00.0`.
    pub bus_id: String,
    /// Domain.
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Slot on the bus.
    pub slot: u32,
    /// Combined device and vendor id, `0x20B510DE`.
    pub device_id: u32,
    /// Combined subsystem id; 0, for nobody captured it.
    pub subsystem_id: u32,
}

/// Memory of a device (bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total: u64,
    /// Taken.
    pub used: u64,
}

/// A process on a device (`nvmlProcessInfo_t`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningProcess {
    /// Its process id.
    pub pid: u32,
    /// Its name, as it gave it.
    pub name: String,
    /// The GPU instance it sits on; `None` for the whole GPU (NVML: 0xFFFFFFFF).
    pub gpu_instance_id: Option<u32>,
    /// The compute instance it sits on.
    pub compute_instance_id: Option<u32>,
}

/// Power limits (mW).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLimitRange {
    /// Lowest settable.
    pub min: u32,
    /// Highest settable.
    pub max: u32,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Silicon {}

type Answer<T> = Result<T, Return>;

#[expect(unused_variables, reason = "bodies follow")]
impl Silicon {
    // Machine.
    /// Number of this boot, from 1; a handle of an earlier boot is dead (its process would be, too).
    pub fn boot(&self) -> u64 {
        0
    }
    /// Text that differs at each boot.
    pub fn boot_id(&self) -> String {
        String::new()
    }
    /// `575.57.08`
    pub fn driver_version(&self) -> &str {
        ""
    }
    /// GPUs of the machine, lost ones included.
    pub fn n_gpus(&self) -> usize {
        0
    }
    /// Whether callers may change things.
    pub fn is_privileged(&self) -> bool {
        true
    }
    /// Name of a process that is known to the driver.
    pub fn process_name(&self, pid: u32) -> Answer<String> {
        Err(Return::NotFound)
    }

    // Finding devices.
    /// Checks an index (INVALID_ARGUMENT).
    pub fn gpu_by_index(&self, index: u32) -> Answer<Device> {
        Err(Return::NotFound)
    }
    /// By `GPU-…` or `MIG-…`.
    pub fn device_by_uuid(&self, uuid: &str) -> Answer<Device> {
        Err(Return::NotFound)
    }
    /// By PCI bus id, long or short form.
    pub fn gpu_by_pci_bus_id(&self, bus_id: &str) -> Answer<Device> {
        Err(Return::NotFound)
    }
    /// By board serial.
    pub fn gpu_by_serial(&self, serial: &str) -> Answer<Device> {
        Err(Return::NotFound)
    }

    // Facts of a device. All: GPU_IS_LOST; INVALID_ARGUMENT for a MIG device that is gone.
    pub fn index(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn uuid(&self, device: Device) -> Answer<String> {
        Err(Return::NotFound)
    }
    pub fn name(&self, device: Device) -> Answer<String> {
        Err(Return::NotFound)
    }
    pub fn serial(&self, device: Device) -> Answer<String> {
        Err(Return::NotFound)
    }
    pub fn pci(&self, device: Device) -> Answer<Pci> {
        Err(Return::NotFound)
    }
    pub fn minor_number(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn memory(&self, device: Device) -> Answer<Memory> {
        Err(Return::NotFound)
    }
    /// `NVML_DEVICE_ARCH_*` (7 Ampere, 9 Hopper, 10 Blackwell).
    pub fn architecture(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    /// CUDA compute capability.
    pub fn compute_capability(&self, device: Device) -> Answer<(i32, i32)> {
        Err(Return::NotFound)
    }
    pub fn attributes(&self, device: Device) -> Answer<Attributes> {
        Err(Return::NotFound)
    }

    // MIG mode and MIG devices.
    /// Current and pending.
    pub fn mig_mode(&self, device: Device) -> Answer<(bool, bool)> {
        Err(Return::NotFound)
    }
    /// `Ok(None)`: active now; `Ok(Some(code))`: the call succeeded, the activation status is this code.
    pub fn set_mig_mode(&mut self, device: Device, is_enabled: bool) -> Answer<Option<Return>> {
        Err(Return::NotFound)
    }
    pub fn max_mig_device_count(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    /// NOT_FOUND for a hole, as NVML says.
    pub fn mig_device_by_index(&self, device: Device, index: u32) -> Answer<Device> {
        Err(Return::NotFound)
    }
    pub fn is_mig_device(&self, device: Device) -> bool {
        false
    }
    /// The GPU of a MIG device.
    pub fn parent(&self, device: Device) -> Answer<Device> {
        Err(Return::NotFound)
    }
    pub fn gpu_instance_id(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn compute_instance_id(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }

    // GPU instances.
    /// By profile ENUM (`NVML_GPU_INSTANCE_PROFILE_*`).
    pub fn gpu_instance_profile(&self, device: Device, profile: u32) -> Answer<GpuInstanceProfileInfo> {
        Err(Return::NotFound)
    }
    /// By id.
    pub fn gpu_instance_profile_by_id(
        &self,
        device: Device,
        profile_id: u32,
    ) -> Answer<GpuInstanceProfileInfo> {
        Err(Return::NotFound)
    }
    pub fn possible_placements(&self, device: Device, profile_id: u32) -> Answer<Vec<Placement>> {
        Err(Return::NotFound)
    }
    pub fn remaining_capacity(&self, device: Device, profile_id: u32) -> Answer<u32> {
        Err(Return::NotFound)
    }
    /// With or without a placement.
    pub fn create_gpu_instance(
        &mut self,
        device: Device,
        profile_id: u32,
        placement: Option<Placement>,
    ) -> Answer<Serial> {
        Err(Return::NotFound)
    }
    pub fn gpu_instances(&self, device: Device, profile_id: u32) -> Answer<Vec<Serial>> {
        Err(Return::NotFound)
    }
    pub fn gpu_instance_by_id(&self, device: Device, id: u32) -> Answer<Serial> {
        Err(Return::NotFound)
    }
    pub fn gpu_instance(&self, gpu_instance: Serial) -> Answer<GpuInstanceInfo> {
        Err(Return::NotFound)
    }
    pub fn destroy_gpu_instance(&mut self, gpu_instance: Serial) -> Answer<()> {
        Err(Return::NotFound)
    }

    // Compute instances.
    /// By profile ENUM and engine profile (only SHARED = 0 exists).
    pub fn compute_instance_profile(
        &self,
        gpu_instance: Serial,
        profile: u32,
        engine_profile: u32,
    ) -> Answer<ComputeInstanceProfileInfo> {
        Err(Return::NotFound)
    }
    pub fn compute_instance_placements(
        &self,
        gpu_instance: Serial,
        profile_id: u32,
    ) -> Answer<Vec<Placement>> {
        Err(Return::NotFound)
    }
    pub fn compute_instance_remaining_capacity(&self, gpu_instance: Serial, profile_id: u32) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn create_compute_instance(
        &mut self,
        gpu_instance: Serial,
        profile_id: u32,
        placement: Option<Placement>,
    ) -> Answer<Serial> {
        Err(Return::NotFound)
    }
    pub fn compute_instances(&self, gpu_instance: Serial, profile_id: u32) -> Answer<Vec<Serial>> {
        Err(Return::NotFound)
    }
    pub fn compute_instance_by_id(&self, gpu_instance: Serial, id: u32) -> Answer<Serial> {
        Err(Return::NotFound)
    }
    pub fn compute_instance(&self, compute_instance: Serial) -> Answer<ComputeInstanceInfo> {
        Err(Return::NotFound)
    }
    pub fn destroy_compute_instance(&mut self, compute_instance: Serial) -> Answer<()> {
        Err(Return::NotFound)
    }

    // Clocks (MHz). NOT_SUPPORTED on a MIG device.
    /// Descending, as NVML lists them.
    pub fn supported_memory_clocks(&self, device: Device) -> Answer<Vec<u32>> {
        Err(Return::NotFound)
    }
    /// Descending. NOT_FOUND: no such memory clock.
    pub fn supported_graphics_clocks(&self, device: Device, memory_mhz: u32) -> Answer<Vec<u32>> {
        Err(Return::NotFound)
    }
    /// The clock now (`nvmlDeviceGetClockInfo`).
    pub fn clock(&self, device: Device, clock: Clock) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn max_clock(&self, device: Device, clock: Clock) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn set_gpu_locked_clocks(&mut self, device: Device, min_mhz: u32, max_mhz: u32) -> Answer<()> {
        Err(Return::NotFound)
    }
    pub fn reset_gpu_locked_clocks(&mut self, device: Device) -> Answer<()> {
        Err(Return::NotFound)
    }
    pub fn set_memory_locked_clocks(&mut self, device: Device, min_mhz: u32, max_mhz: u32) -> Answer<()> {
        Err(Return::NotFound)
    }
    pub fn reset_memory_locked_clocks(&mut self, device: Device) -> Answer<()> {
        Err(Return::NotFound)
    }
    /// `nvmlClocksEventReason*` bits.
    pub fn clocks_event_reasons(&self, device: Device) -> Answer<u64> {
        Err(Return::NotFound)
    }
    /// P-state: 0 when something runs or clocks are locked, 8 when idle.
    pub fn performance_state(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }

    // Power (mW) and energy (mJ). NOT_SUPPORTED on a MIG device.
    /// What `nvmlDeviceGetPowerUsage` says, sensor included.
    pub fn power_usage(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    /// Without the sensor's averaging.
    pub fn power_instant(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn total_energy(&self, device: Device) -> Answer<u64> {
        Err(Return::NotFound)
    }
    pub fn power_limit(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn default_power_limit(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn enforced_power_limit(&self, device: Device) -> Answer<u32> {
        Err(Return::NotFound)
    }
    pub fn power_limit_range(&self, device: Device) -> Answer<PowerLimitRange> {
        Err(Return::NotFound)
    }
    pub fn set_power_limit(&mut self, device: Device, milliwatts: u32) -> Answer<()> {
        Err(Return::NotFound)
    }

    // Persistence, processes, reset.
    pub fn persistence_mode(&self, device: Device) -> Answer<bool> {
        Err(Return::NotFound)
    }
    pub fn set_persistence_mode(&mut self, device: Device, is_enabled: bool) -> Answer<()> {
        Err(Return::NotFound)
    }
    /// On a GPU: all of it, instances included. On a MIG device: that one's.
    pub fn processes(&self, device: Device) -> Answer<Vec<RunningProcess>> {
        Err(Return::NotFound)
    }

    // What no real driver has: `entcSim…`.
    /// A process begins to use a device (as creating a CUDA context does).
    pub fn attach(&mut self, device: Device, pid: u32, name: &str) -> Answer<()> {
        Err(Return::NotFound)
    }
    pub fn detach(&mut self, device: Device, pid: u32) -> Answer<()> {
        Err(Return::NotFound)
    }
    /// From now on the process draws this much beyond the base power. 0: it idles.
    pub fn load(&mut self, device: Device, pid: u32, dynamic_watts: f64) -> Answer<()> {
        Err(Return::NotFound)
    }
    /// The process drew this much energy beyond what `load` says, at once.
    pub fn spend(&mut self, device: Device, pid: u32, joules: f64) -> Answer<()> {
        Err(Return::NotFound)
    }
    /// Turns the machine off and on.
    pub fn reboot(&mut self) {}
    /// Resets one GPU (`nvidia-smi --gpu-reset`): IN_USE with clients, NOT_SUPPORTED for a passed-through one.
    pub fn reset(&mut self, device: Device) -> Answer<()> {
        Err(Return::NotFound)
    }
    /// This GPU falls off the bus until the next boot.
    pub fn lose(&mut self, gpu: usize) -> Answer<()> {
        Err(Return::NotFound)
    }
}
