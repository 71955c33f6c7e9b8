//! The machine itself: what each GPU is, what it may become, and what it refuses.
//!
//! All rules of the hardware live below this file, each with its source. A method that changes something
//! either does all of it or returns an error and does nothing. Nothing here reads a clock, a file or an
//! environment: [`crate::store`] brings the time and keeps the state.

mod boot;
mod clocks;
mod compute_instances;
mod gpu_instances;
mod machine;
mod mig_mode;
mod power;
mod processes;
mod profiles;
pub mod state;
#[cfg(test)]
pub(crate) mod trial;

use crate::returns::Return;
use machine::{Gpu, uuid};
use state::{GpuState, State};
use std::sync::Arc;

pub(crate) use machine::Machine;

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
    /// Compute slices of its GPU instance: the `3g` in `3g.40gb`.
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

/// A machine at a moment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Silicon {
    machine: Arc<Machine>,
    state: Arc<State>,
    /// Now (ns since the epoch).
    now_ns: u64,
    /// When a process started, in any unit that tells two with the same id apart; `None` when there is none.
    started: fn(u32) -> Option<u64>,
    is_privileged: bool,
}

type Answer<T> = Result<T, Return>;

impl Silicon {
    /// A machine with a state that it has come to. The two must be of the same boards.
    pub(crate) fn new(
        machine: Arc<Machine>,
        state: State,
        now_ns: u64,
        started: fn(u32) -> Option<u64>,
    ) -> Self {
        let is_privileged = machine.is_privileged;
        Self { machine, state: Arc::new(state), now_ns, started, is_privileged }
    }

    /// What is to be kept of it.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The same machine at another moment, and as it is described by then.
    pub(crate) fn at(&self, machine: &Arc<Machine>, now_ns: u64) -> Self {
        let (machine, state) = (Arc::clone(machine), Arc::clone(&self.state));
        let is_privileged = machine.is_privileged;
        Self { machine, state, now_ns, started: self.started, is_privileged }
    }

    /// The driver's version.
    #[must_use]
    pub fn driver_version(&self) -> &str {
        &self.machine.driver_version
    }

    /// GPUs of the machine, those that fell off the bus included.
    #[must_use]
    pub fn n_gpus(&self) -> usize {
        self.machine.gpus.len()
    }

    /// Whether callers may change things.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        self.is_privileged
    }

    /// The GPU at an index.
    ///
    /// # Errors
    /// `InvalidArgument` when there is none (nvml.h), `GpuIsLost`.
    pub fn gpu_by_index(&self, index: u32) -> Answer<Device> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.present(index).map(|()| Device::Gpu(index))
    }

    /// The device with a UUID, `GPU-…` or `MIG-…`.
    ///
    /// # Errors
    /// `NotFound` when there is none, `GpuIsLost`.
    pub fn device_by_uuid(&self, uuid: &str) -> Answer<Device> {
        if let Some(gpu) = self.machine.gpus.iter().position(|g| g.uuid == uuid) {
            return self.present(gpu).map(|()| Device::Gpu(gpu));
        }
        let seats = (0..self.n_gpus()).flat_map(|gpu| {
            let instances = self.gpu_state(gpu).instances.iter();
            instances.flat_map(|i| &i.compute_instances).map(move |c| (gpu, c.serial))
        });
        let (gpu, serial) =
            seats.into_iter().find(|(gpu, s)| self.mig_uuid(*gpu, *s) == uuid).ok_or(Return::NotFound)?;
        self.present(gpu).map(|()| Device::Mig(serial))
    }

    /// The GPU at a PCI bus id: `00000000:07:00.0`, `0000:07:00.0` or `07:00.0`.
    ///
    /// # Errors
    /// `NotFound` when there is none, `GpuIsLost`.
    pub fn gpu_by_pci_bus_id(&self, bus_id: &str) -> Answer<Device> {
        let wanted = bus_id.to_ascii_uppercase();
        let is_it = |gpu: &usize| {
            let pci = self.pci_of(*gpu);
            let short = format!("{:02X}:{:02X}.0", pci.bus, pci.slot);
            wanted == pci.bus_id
                || wanted == format!("{:04X}:{short}", pci.domain)
                || (pci.domain == 0 && wanted == short)
        };
        let gpu = (0..self.n_gpus()).find(is_it).ok_or(Return::NotFound)?;
        self.present(gpu).map(|()| Device::Gpu(gpu))
    }

    /// The GPU with a board serial.
    ///
    /// # Errors
    /// `NotFound` when there is none, `GpuIsLost`.
    pub fn gpu_by_serial(&self, serial: &str) -> Answer<Device> {
        let gpu = self.machine.gpus.iter().position(|g| g.serial == serial).ok_or(Return::NotFound)?;
        self.present(gpu).map(|()| Device::Gpu(gpu))
    }

    /// A GPU's index, or a MIG device's index on its GPU (nvml.h, `nvmlDeviceGetIndex`).
    ///
    /// # Errors
    /// `InvalidArgument` when it is gone, `GpuIsLost`.
    pub fn index(&self, device: Device) -> Answer<u32> {
        let (gpu, seat) = self.seat(device)?;
        let nth = seat.map_or(Some(gpu), |serial| {
            self.mig_devices(gpu).iter().position(|(_, compute)| compute.serial == serial)
        });
        nth.and_then(|n| u32::try_from(n).ok()).ok_or(Return::Unknown)
    }

    /// `GPU-…` or `MIG-…`. A MIG device has a new one each time it is made.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn uuid(&self, device: Device) -> Answer<String> {
        let (gpu, seat) = self.seat(device)?;
        Ok(seat.map_or_else(|| self.gpu(gpu).uuid.clone(), |serial| self.mig_uuid(gpu, serial)))
    }

    /// `NVIDIA A100 80GB PCIe`, or `NVIDIA A100 80GB PCIe MIG 1g.10gb`.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn name(&self, device: Device) -> Answer<String> {
        let (gpu, seat) = self.seat(device)?;
        let title = self.gpu(gpu).board.title.clone();
        let Some(serial) = seat else { return Ok(title) };
        let (_, instance, compute) = self.find_compute_instance(serial)?;
        let cut = self.compute_instance_cut(gpu, instance, compute)?;
        Ok(format!("{title} {}", cut.name))
    }

    /// The board's serial.
    ///
    /// # Errors
    /// As [`Self::index`]; `NotSupported` on a MIG device.
    pub fn serial(&self, device: Device) -> Answer<String> {
        Ok(self.gpu(self.whole_gpu(device)?).serial.clone())
    }

    /// Where it sits; for a MIG device, where its GPU does.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn pci(&self, device: Device) -> Answer<Pci> {
        self.seat(device).map(|(gpu, _)| self.pci_of(gpu))
    }

    /// The N of `/dev/nvidiaN`.
    ///
    /// # Errors
    /// As [`Self::index`]; `NotSupported` on a MIG device.
    pub fn minor_number(&self, device: Device) -> Answer<u32> {
        u32::try_from(self.whole_gpu(device)?).map_err(|_| Return::Unknown)
    }

    /// Memory; a MIG device's is that of its GPU instance.
    ///
    /// # Errors
    /// As [`Self::index`]; `NotSupported` when nobody captured it.
    pub fn memory(&self, device: Device) -> Answer<Memory> {
        let (gpu, seat) = self.seat(device)?;
        let whole = || self.gpu(gpu).board.memory;
        let part = |serial: Serial| {
            let (_, instance, _) = self.find_compute_instance(serial).ok()?;
            self.profile(gpu, instance.profile_id).ok()?.memory
        };
        let bytes = seat.map_or_else(whole, part).ok_or(Return::NotSupported)?;
        Ok(Memory { total: profiles::mib(bytes.get()) << 20, used: 0 })
    }

    /// `NVML_DEVICE_ARCH_*`: 7 Ampere, 9 Hopper, 10 Blackwell.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn architecture(&self, device: Device) -> Answer<u32> {
        self.seat(device).map(|(gpu, _)| self.gpu(gpu).family.architecture())
    }

    /// CUDA's compute capability.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn compute_capability(&self, device: Device) -> Answer<(i32, i32)> {
        self.seat(device).map(|(gpu, _)| self.gpu(gpu).compute_capability())
    }

    fn gpu(&self, gpu: usize) -> &Gpu {
        &self.machine.gpus[gpu]
    }

    fn gpu_state(&self, gpu: usize) -> &GpuState {
        &self.state.gpus[gpu]
    }

    fn state_mut(&mut self) -> &mut State {
        Arc::make_mut(&mut self.state)
    }

    fn gpu_state_mut(&mut self, gpu: usize) -> &mut GpuState {
        &mut self.state_mut().gpus[gpu]
    }

    fn next_serial(&mut self) -> Serial {
        let state = self.state_mut();
        state.next_serial += 1;
        state.next_serial - 1
    }

    fn mig_uuid(&self, gpu: usize, serial: Serial) -> String {
        uuid("MIG", self.machine.seed, &format!("{} {serial}", self.gpu(gpu).uuid))
    }

    /// Eight bus numbers apart, 32 to a domain: like no machine in particular.
    fn pci_of(&self, gpu: usize) -> Pci {
        let n = u32::try_from(gpu).unwrap_or(u32::MAX);
        let (domain, bus) = (n / 32, n % 32 * 8 + 7);
        let device_id = self.gpu(gpu).board.pci_device_ids.first();
        let hex = device_id.and_then(|id| u32::from_str_radix(id.trim_start_matches("0x"), 16).ok());
        Pci {
            bus_id: format!("{domain:08X}:{bus:02X}:00.0"),
            domain,
            bus,
            slot: 0,
            device_id: hex.unwrap_or(0),
            subsystem_id: 0,
        }
    }

    /// Whether the GPU is there and answers.
    fn present(&self, gpu: usize) -> Answer<()> {
        match self.state.gpus.get(gpu) {
            None => Err(Return::InvalidArgument),
            Some(state) if state.is_lost => Err(Return::GpuIsLost),
            Some(_) => Ok(()),
        }
    }

    /// The GPU of a call that no MIG device has.
    fn whole_gpu(&self, device: Device) -> Answer<usize> {
        match self.seat(device)? {
            (gpu, None) => Ok(gpu),
            (_, Some(_)) => Err(Return::NotSupported),
        }
    }

    fn has_mig(&self, gpu: usize) -> bool {
        let own = self.gpu(gpu);
        !own.board.profiles.is_empty() && own.oldest_mig_driver().is_none_or(|v| self.machine.has_driver(v))
    }

    /// The GPU of a call that needs a board with MIG.
    fn mig_gpu(&self, device: Device) -> Answer<usize> {
        let gpu = self.whole_gpu(device)?;
        if self.has_mig(gpu) { Ok(gpu) } else { Err(Return::NotSupported) }
    }

    /// The GPU of a call that needs MIG mode.
    fn gpu_in_mig_mode(&self, device: Device) -> Answer<usize> {
        let gpu = self.mig_gpu(device)?;
        if self.gpu_state(gpu).mig { Ok(gpu) } else { Err(Return::NotSupported) }
    }

    fn require_rights(&self) -> Answer<()> {
        if self.is_privileged { Ok(()) } else { Err(Return::NoPermission) }
    }
}

#[cfg(test)]
mod tests {
    use super::trial::{cut, machine, of};
    use super::*;
    use std::collections::BTreeSet;

    const GPU: Device = Device::Gpu(0);

    #[test]
    fn a_gpu_is_found_by_all_its_names() {
        let eight = of("a100-80gb-pcie", |d| d.gpu[0].count = 40);
        for index in [0, 7, 35] {
            let gpu = eight.gpu_by_index(index).unwrap();
            assert_eq!(eight.index(gpu), Ok(index));
            assert_eq!(eight.device_by_uuid(&eight.uuid(gpu).unwrap()), Ok(gpu));
            assert_eq!(eight.gpu_by_serial(&eight.serial(gpu).unwrap()), Ok(gpu));
            let pci = eight.pci(gpu).unwrap();
            assert_eq!(pci.device_id, 0x20B5_10DE);
            assert_eq!(eight.gpu_by_pci_bus_id(&pci.bus_id), Ok(gpu));
            assert_eq!(eight.gpu_by_pci_bus_id(&pci.bus_id.to_lowercase()[4..]), Ok(gpu));
            assert_eq!(eight.minor_number(gpu), Ok(index));
        }
        assert_eq!(eight.pci(GPU).unwrap().bus_id, "00000000:07:00.0");
        assert_eq!(eight.gpu_by_pci_bus_id("0f:00.0"), Ok(Device::Gpu(1)));
        assert_eq!(eight.gpu_by_index(40), Err(Return::InvalidArgument));
        assert_eq!(eight.device_by_uuid("GPU-0"), Err(Return::NotFound));
        assert_eq!(eight.gpu_by_serial(""), Err(Return::NotFound));
        assert_eq!(eight.gpu_by_pci_bus_id("fe:00.0"), Err(Return::NotFound));
        let named = of("a30-24gb", |d| d.gpu[0].uuid = Some("GPU-mine".to_owned()));
        assert_eq!(named.device_by_uuid("GPU-mine"), Ok(GPU));
    }

    #[test]
    fn a_mig_device_has_names_of_its_own_new_each_time() {
        let mut a100 = cut("a100-80gb-pcie");
        let instance = a100.create_gpu_instance(GPU, 9, None).unwrap();
        let mut uuids = BTreeSet::new();
        for _ in 0..3 {
            let part = Device::Mig(a100.create_compute_instance(instance, 0, None).unwrap());
            let whole_uuid = a100.uuid(part).unwrap();
            assert!(whole_uuid.starts_with("MIG-"));
            assert_eq!(a100.device_by_uuid(&whole_uuid), Ok(part));
            assert_eq!(a100.name(part).unwrap(), "NVIDIA A100 80GB PCIe MIG 1c.3g.40gb");
            assert_eq!(a100.pci(part), a100.pci(GPU));
            assert_eq!(a100.serial(part), Err(Return::NotSupported));
            assert_eq!(a100.memory(part).unwrap().total, 40192 << 20);
            let Device::Mig(serial) = part else { unreachable!() };
            a100.destroy_compute_instance(serial).unwrap();
            assert_eq!(a100.uuid(part), Err(Return::InvalidArgument));
            assert_eq!(a100.device_by_uuid(&whole_uuid), Err(Return::NotFound));
            uuids.insert(whole_uuid);
        }
        assert_eq!(uuids.len(), 3);
        let whole = Device::Mig(a100.create_compute_instance(instance, 2, None).unwrap());
        assert_eq!(
            (a100.name(whole).unwrap().as_str(), a100.index(whole)),
            ("NVIDIA A100 80GB PCIe MIG 3g.40gb", Ok(0))
        );
    }

    #[test]
    fn a_board_says_what_it_is() {
        let facts = |id| {
            let silicon = machine(id);
            let memory = silicon.memory(GPU).map(|m| m.total >> 20);
            (silicon.architecture(GPU).unwrap(), silicon.compute_capability(GPU).unwrap(), memory)
        };
        assert_eq!(facts("a30-24gb"), (7, (8, 0), Ok(24576)));
        assert_eq!(facts("h200-141gb"), (9, (9, 0), Ok(143_771)));
        assert_eq!(facts("b200-180gb"), (10, (10, 0), Err(Return::NotSupported)));
        assert_eq!(facts("rtx-pro-6000-blackwell").1, (12, 0));
    }
}
