//! MIG mode: when it changes at once, when it waits, what it takes with it. And the MIG devices it shows.

use super::state::{ComputeInstance, GpuInstance};
use super::{Answer, Attributes, Device, Serial, Silicon};
use crate::returns::Return;

impl Silicon {
    /// Current and pending MIG mode. When they differ, the change waits for a reset or a reboot.
    ///
    /// # Errors
    /// `NotSupported` when the board or its driver has no MIG, or on a MIG device.
    pub fn mig_mode(&self, device: Device) -> Answer<(bool, bool)> {
        let state = self.gpu_state(self.mig_gpu(device)?);
        Ok((state.mig, state.mig_pending))
    }

    /// Changes MIG mode. `Ok(None)`: it is active. `Ok(Some(code))`: the call succeeded, but the mode is only
    /// pending, and `code` is the activation status.
    ///
    /// - With a client on the GPU the activation status is `InUse`, and the change waits ("In use by another
    ///   client", NVIDIA MIG User Guide, Getting Started; nvml.h, `nvmlDeviceSetMigMode`). A GPU that still
    ///   has GPU instances counts as in use too: the header only says that the device must be idle, and who
    ///   destroys its instances first is right either way.
    /// - On Ampere the change resets the board: clocks and power limit are as shipped afterwards. In a
    ///   virtual machine there is no reset, the activation status is `ResetRequired` and the change waits
    ///   for a reboot (nvml.h). From Hopper on no reset is needed, in a virtual machine neither (NVIDIA MIG
    ///   User Guide, Getting Started).
    /// - Asking for the mode that is active withdraws what is pending.
    ///
    /// # Errors
    /// `NotSupported` when the board or its driver has no MIG, `NoPermission` without rights.
    pub fn set_mig_mode(&mut self, device: Device, is_enabled: bool) -> Answer<Option<Return>> {
        let gpu = self.mig_gpu(device)?;
        self.require_rights()?;
        let needs_reset = self.gpu(gpu).family.mig_mode_needs_reset();
        let is_in_vm = self.gpu(gpu).is_in_vm;
        let has_clients = self.has_clients(gpu, None);
        let state = self.gpu_state_mut(gpu);
        state.mig_pending = is_enabled;
        if state.mig == is_enabled {
            return Ok(None);
        }
        if has_clients || !state.instances.is_empty() {
            return Ok(Some(Return::InUse));
        }
        if needs_reset && is_in_vm {
            return Ok(Some(Return::ResetRequired));
        }
        if needs_reset {
            self.reset_gpu(gpu);
        } else {
            state.mig = is_enabled;
        }
        Ok(None)
    }

    /// The most MIG devices this GPU could have; 0 with MIG off or without it (nvml.h).
    ///
    /// # Errors
    /// `InvalidArgument` on a MIG device, `GpuIsLost`.
    pub fn max_mig_device_count(&self, device: Device) -> Answer<u32> {
        let (gpu, seat) = self.seat(device)?;
        if seat.is_some() {
            return Err(Return::InvalidArgument);
        }
        let is_on = self.gpu_state(gpu).mig && self.has_mig(gpu);
        Ok(if is_on { self.gpu(gpu).board.n_compute_slices() } else { 0 })
    }

    /// A MIG device by its index, which follows GPU instance ids and then compute instance ids, not the
    /// order of creation.
    ///
    /// # Errors
    /// `NotFound` when there is none at this index (nvml.h); `NotSupported` when the board has no MIG;
    /// `InvalidArgument` for an index that no GPU of this board could have.
    pub fn mig_device_by_index(&self, device: Device, index: u32) -> Answer<Device> {
        let gpu = self.mig_gpu(device)?;
        if index >= self.gpu(gpu).board.n_compute_slices() {
            return Err(Return::InvalidArgument);
        }
        let nth = usize::try_from(index).unwrap_or(usize::MAX);
        let device = self.mig_devices(gpu).get(nth).map(|(_, compute)| Device::Mig(compute.serial));
        device.ok_or(Return::NotFound)
    }

    /// Whether this is a MIG device, there or gone.
    #[must_use]
    pub fn is_mig_device(&self, device: Device) -> bool {
        matches!(device, Device::Mig(_))
    }

    /// The GPU of a MIG device.
    ///
    /// # Errors
    /// `InvalidArgument` when it is gone or a whole GPU.
    pub fn parent(&self, device: Device) -> Answer<Device> {
        self.mig_device(device, Return::InvalidArgument).map(|(gpu, _, _)| Device::Gpu(gpu))
    }

    /// The id of a MIG device's GPU instance.
    ///
    /// # Errors
    /// `InvalidArgument` when it is gone, `NotSupported` on a whole GPU.
    pub fn gpu_instance_id(&self, device: Device) -> Answer<u32> {
        self.mig_device(device, Return::NotSupported).map(|(_, instance, _)| instance.id)
    }

    /// The id of a MIG device's compute instance.
    ///
    /// # Errors
    /// As [`Self::gpu_instance_id`].
    pub fn compute_instance_id(&self, device: Device) -> Answer<u32> {
        self.mig_device(device, Return::NotSupported).map(|(_, _, compute)| compute.id)
    }

    /// What a MIG device has.
    ///
    /// # Errors
    /// `InvalidArgument` when it is gone, `NotSupported` on a whole GPU (nvml.h: "only supports MIG device
    /// handles").
    pub fn attributes(&self, device: Device) -> Answer<Attributes> {
        let (gpu, instance, compute) = self.mig_device(device, Return::NotSupported)?;
        let profile = self.profile(gpu, instance.profile_id)?;
        let cut = self.compute_instance_cut(gpu, instance, compute)?;
        Ok(Attributes {
            multiprocessor_count: cut.multiprocessor_count,
            shared_copy_engine_count: cut.shared_copy_engine_count,
            shared_decoder_count: cut.shared_decoder_count,
            shared_encoder_count: cut.shared_encoder_count,
            shared_jpeg_count: cut.shared_jpeg_count,
            shared_ofa_count: cut.shared_ofa_count,
            gpu_instance_slice_count: profile.n_compute_slices,
            compute_instance_slice_count: cut.slice_count,
            memory_size_mib: super::profiles::memory_mib(profile),
        })
    }

    /// All MIG devices of a GPU, by index.
    pub(crate) fn mig_devices(&self, gpu: usize) -> Vec<(&GpuInstance, &ComputeInstance)> {
        let mut instances: Vec<&GpuInstance> = self.gpu_state(gpu).instances.iter().collect();
        instances.sort_by_key(|i| i.id);
        let mut devices = Vec::new();
        for instance in instances {
            let mut computes: Vec<&ComputeInstance> = instance.compute_instances.iter().collect();
            computes.sort_by_key(|c| c.id);
            devices.extend(computes.into_iter().map(|compute| (instance, compute)));
        }
        devices
    }

    /// The parts of a MIG device; `otherwise` on a whole GPU.
    pub(crate) fn mig_device(
        &self,
        device: Device,
        otherwise: Return,
    ) -> Answer<(usize, &GpuInstance, &ComputeInstance)> {
        match device {
            Device::Mig(serial) => self.find_compute_instance(serial),
            Device::Gpu(gpu) => {
                self.present(gpu)?;
                Err(otherwise)
            }
        }
    }

    /// The serial of the compute instance that a process on this device sits on.
    pub(crate) fn seat(&self, device: Device) -> Answer<(usize, Option<Serial>)> {
        match device {
            Device::Gpu(gpu) => self.present(gpu).map(|()| (gpu, None)),
            Device::Mig(serial) => self.find_compute_instance(serial).map(|(gpu, _, _)| (gpu, Some(serial))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{cut, machine, of};
    use super::*;

    const GPU: Device = Device::Gpu(0);

    #[test]
    fn ampere_resets_and_is_active_at_once_when_idle() {
        let mut a100 = machine("a100-80gb-pcie");
        a100.set_power_limit(GPU, 200_000).unwrap();
        a100.set_gpu_locked_clocks(GPU, 705, 705).unwrap();
        assert_eq!(a100.set_mig_mode(GPU, true), Ok(None));
        assert_eq!(a100.mig_mode(GPU), Ok((true, true)));
        assert_eq!(a100.power_limit(GPU), Ok(300_000));
        assert_eq!(a100.clock(GPU, super::super::Clock::Sm), Ok(210));
    }

    #[test]
    fn hopper_does_not_reset() {
        let mut h100 = machine("h100-80gb-sxm");
        h100.set_power_limit(GPU, 500_000).unwrap();
        assert_eq!(h100.set_mig_mode(GPU, true), Ok(None));
        assert_eq!((h100.mig_mode(GPU), h100.power_limit(GPU)), (Ok((true, true)), Ok(500_000)));
    }

    #[test]
    fn with_a_client_the_change_waits() {
        for board in ["a100-80gb-pcie", "h100-80gb-sxm"] {
            let mut silicon = machine(board);
            silicon.attach(GPU, 7, "nv-hostengine").unwrap();
            assert_eq!(silicon.set_mig_mode(GPU, true), Ok(Some(Return::InUse)));
            assert_eq!(silicon.mig_mode(GPU), Ok((false, true)));
            assert_eq!(silicon.create_gpu_instance(GPU, 19, None), Err(Return::NotSupported));
            // Withdrawn, asked for again, and done once the client is gone.
            assert_eq!(silicon.set_mig_mode(GPU, false), Ok(None));
            assert_eq!(silicon.mig_mode(GPU), Ok((false, false)));
            assert_eq!(silicon.set_mig_mode(GPU, true), Ok(Some(Return::InUse)));
            silicon.detach(GPU, 7).unwrap();
            assert_eq!(silicon.mig_mode(GPU), Ok((false, true)));
            assert_eq!(silicon.set_mig_mode(GPU, true), Ok(None));
            assert_eq!(silicon.mig_mode(GPU), Ok((true, true)));
        }
    }

    #[test]
    fn a_gpu_with_instances_is_in_use() {
        let mut a100 = cut("a100-80gb-pcie");
        let instance = a100.create_gpu_instance(GPU, 19, None).unwrap();
        assert_eq!(a100.set_mig_mode(GPU, false), Ok(Some(Return::InUse)));
        assert!(a100.gpu_instance(instance).is_ok());
        a100.destroy_gpu_instance(instance).unwrap();
        assert_eq!(a100.set_mig_mode(GPU, false), Ok(None));
    }

    #[test]
    fn in_a_virtual_machine_ampere_waits_for_a_reboot() {
        let mut a100 = of("a100-80gb-pcie", |d| d.gpu[0].vm = true);
        assert_eq!(a100.set_mig_mode(GPU, true), Ok(Some(Return::ResetRequired)));
        assert_eq!(a100.mig_mode(GPU), Ok((false, true)));
        assert_eq!(a100.reset(GPU), Err(Return::NotSupported));
        a100.reboot();
        assert_eq!(a100.mig_mode(GPU), Ok((true, true)));
        let mut h100 = of("h100-80gb-sxm", |d| d.gpu[0].vm = true);
        assert_eq!(h100.set_mig_mode(GPU, true), Ok(None));
    }

    #[test]
    fn changing_the_mode_needs_rights_and_a_driver() {
        let mut user = of("a100-80gb-pcie", |d| d.privileged = false);
        assert_eq!(user.set_mig_mode(GPU, true), Err(Return::NoPermission));
        assert_eq!(user.mig_mode(GPU), Ok((false, false)));
        let old = of("h200-141gb", |d| d.driver_version = "535.104.05".to_owned());
        assert_eq!(old.mig_mode(GPU), Err(Return::NotSupported));
        assert_eq!(old.max_mig_device_count(GPU), Ok(0));
    }

    #[test]
    fn mig_devices_follow_instance_ids() {
        let mut a100 = cut("a100-80gb-pcie");
        let mut devices = Vec::new();
        for _ in 0..4 {
            let instance = a100.create_gpu_instance(GPU, 19, None).unwrap();
            devices.push(Device::Mig(a100.create_compute_instance(instance, 0, None).unwrap()));
        }
        // Slots 6, 4, 5, 0 have ids 13, 11, 12, 7.
        let listed: Vec<Device> = (0..4).map(|i| a100.mig_device_by_index(GPU, i).unwrap()).collect();
        assert_eq!(listed, [devices[3], devices[1], devices[2], devices[0]]);
        assert_eq!(a100.mig_device_by_index(GPU, 4), Err(Return::NotFound));
        assert_eq!(a100.mig_device_by_index(GPU, 7), Err(Return::InvalidArgument));
        assert_eq!(a100.max_mig_device_count(GPU), Ok(7));
        assert_eq!(machine("a100-80gb-pcie").max_mig_device_count(GPU), Ok(0));
        assert_eq!(a100.gpu_instance_id(listed[0]), Ok(7));
        assert_eq!(a100.compute_instance_id(listed[0]), Ok(0));
        assert_eq!(a100.parent(listed[0]), Ok(GPU));
        assert_eq!(a100.gpu_instance_id(GPU), Err(Return::NotSupported));
        assert_eq!(a100.parent(GPU), Err(Return::InvalidArgument));
        assert_eq!(a100.mig_mode(listed[0]), Err(Return::NotSupported));
        assert_eq!(a100.max_mig_device_count(listed[0]), Err(Return::InvalidArgument));
    }

    #[test]
    fn attributes_are_of_the_part() {
        let mut a100 = cut("a100-80gb-pcie");
        let instance = a100.create_gpu_instance(GPU, 9, None).unwrap();
        let compute = a100.create_compute_instance(instance, 1, None).unwrap();
        let a = a100.attributes(Device::Mig(compute)).unwrap();
        assert_eq!((a.gpu_instance_slice_count, a.compute_instance_slice_count), (3, 2));
        assert_eq!((a.multiprocessor_count, a.memory_size_mib, a.shared_copy_engine_count), (28, 40192, 3));
        assert_eq!(a100.attributes(GPU), Err(Return::NotSupported));
    }
}
