//! Compute instances: how a GPU instance's compute slices are shared out.
//!
//! Profiles and counts are those of an A100 (NVIDIA/go-nvml 2f9e261, pkg/nvml/mock/gpus/a100.go; NVIDIA MIG
//! User Guide, Compute Instances): in a 2g 2x1c or 1x2c; in a 3g 3x1c, 1x2c, 1x3c; in a 4g 4x1c, 2x2c,
//! 1x4c; in a 7g 7x1c, 3x2c, 2x3c, 1x4c, 1x7c. Other boards are taken to do the same.

use super::gpu_instances::overlap;
use super::profiles::engines;
use super::state::{ComputeInstance, GpuInstance};
use super::{Answer, ComputeInstanceInfo, ComputeInstanceProfileInfo, Placement, Serial, Silicon};
use crate::returns::Return;

/// Compute slices by compute instance profile id, which is also its enum (`NVML_COMPUTE_INSTANCE_PROFILE_*`
/// of nvml.h: 1, 2, 3, 4, 7, 8 and 6 slices; 7 is a 1-slice variant that none of these boards has).
const SLICES: [u32; 7] = [1, 2, 3, 4, 7, 8, 6];

/// `NVML_COMPUTE_INSTANCE_PROFILE_COUNT` (nvml.h of CUDA 13; 8 up to CUDA 12.9).
const N_PROFILES: u32 = 9;

/// Where `n` of `width` compute slices may begin.
fn starts(n: u32, width: u32) -> Vec<u32> {
    let fits = |start: &u32| start + n <= width;
    match n {
        // A 4g has no 3c, though three slices would fit.
        _ if n == width => vec![0],
        1 => (0..width).collect(),
        2 => [0, 2, 4].into_iter().filter(fits).collect(),
        3 if width != 4 => [0, 4].into_iter().filter(fits).collect(),
        4 => [0].into_iter().filter(fits).collect(),
        _ => Vec::new(),
    }
}

/// What the driver answers about one profile of one GPU instance, with its possible starts.
struct Cut {
    info: ComputeInstanceProfileInfo,
    starts: Vec<u32>,
}

impl Silicon {
    /// What a compute instance of a profile gets, by the profile's *enum*.
    ///
    /// # Errors
    /// `InvalidArgument` past the last enum, for another engine profile than the shared one (0), or when
    /// the GPU instance is gone; `NotSupported` when this GPU instance has no such profile (nvml.h).
    pub fn compute_instance_profile(
        &self,
        gpu_instance: Serial,
        profile: u32,
        engine_profile: u32,
    ) -> Answer<ComputeInstanceProfileInfo> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        if profile >= N_PROFILES || engine_profile != 0 {
            return Err(Return::InvalidArgument);
        }
        self.cut(gpu, instance, profile).map(|cut| cut.info)
    }

    /// Everywhere a compute instance of this profile may lie in the GPU instance, in compute slices.
    ///
    /// # Errors
    /// As [`Self::compute_instance_profile`], and `NoPermission` without rights.
    pub fn compute_instance_placements(
        &self,
        gpu_instance: Serial,
        profile_id: u32,
    ) -> Answer<Vec<Placement>> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        let cut = self.cut(gpu, instance, profile_id)?;
        self.require_rights()?;
        let size = cut.info.slice_count;
        Ok(cut.starts.into_iter().map(|start| Placement { start, size }).collect())
    }

    /// How many more of this profile would fit now.
    ///
    /// # Errors
    /// As [`Self::compute_instance_placements`].
    pub fn compute_instance_remaining_capacity(&self, gpu_instance: Serial, profile_id: u32) -> Answer<u32> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        let cut = self.cut(gpu, instance, profile_id)?;
        self.require_rights()?;
        let free = cut.starts.iter().filter(|start| is_free(instance, **start, cut.info.slice_count));
        Ok(u32::try_from(free.count()).unwrap_or(u32::MAX))
    }

    /// Makes a compute instance, at a place or at the first free one. With it comes the MIG device.
    ///
    /// # Errors
    /// `InvalidArgument` for an impossible place or when the GPU instance is gone; `NotSupported` for
    /// another profile; `NoPermission` without rights; `InsufficientResources` when nothing is free.
    pub fn create_compute_instance(
        &mut self,
        gpu_instance: Serial,
        profile_id: u32,
        placement: Option<Placement>,
    ) -> Answer<Serial> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        let cut = self.cut(gpu, instance, profile_id)?;
        let size = cut.info.slice_count;
        if placement.is_some_and(|p| p.size != size || !cut.starts.contains(&p.start)) {
            return Err(Return::InvalidArgument);
        }
        self.require_rights()?;
        let wanted = placement.map_or(cut.starts, |p| vec![p.start]);
        let start = wanted.into_iter().find(|start| is_free(instance, *start, size));
        let placement = Placement { start: start.ok_or(Return::InsufficientResources)?, size };
        let is_taken = |id: &u32| instance.compute_instances.iter().any(|c| c.id == *id);
        let id = (0..).find(|id| !is_taken(id)).unwrap_or(u32::MAX);
        let serial = self.next_serial();
        let instances = &mut self.gpu_state_mut(gpu).instances;
        if let Some(instance) = instances.iter_mut().find(|i| i.serial == gpu_instance) {
            instance.compute_instances.push(ComputeInstance { serial, id, profile_id, placement });
        }
        Ok(serial)
    }

    /// The compute instances of this profile, by id.
    ///
    /// # Errors
    /// As [`Self::compute_instance_placements`].
    pub fn compute_instances(&self, gpu_instance: Serial, profile_id: u32) -> Answer<Vec<Serial>> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        self.cut(gpu, instance, profile_id)?;
        self.require_rights()?;
        let mut found: Vec<_> =
            instance.compute_instances.iter().filter(|c| c.profile_id == profile_id).collect();
        found.sort_by_key(|c| c.id);
        Ok(found.into_iter().map(|c| c.serial).collect())
    }

    /// The compute instance with this id.
    ///
    /// # Errors
    /// `NoPermission` without rights, `NotFound` when there is none, `InvalidArgument` when the GPU
    /// instance is gone.
    pub fn compute_instance_by_id(&self, gpu_instance: Serial, id: u32) -> Answer<Serial> {
        let (_, instance) = self.find_gpu_instance(gpu_instance)?;
        self.require_rights()?;
        let found = instance.compute_instances.iter().find(|c| c.id == id);
        found.map(|c| c.serial).ok_or(Return::NotFound)
    }

    /// What a compute instance is.
    ///
    /// # Errors
    /// `InvalidArgument` when it is gone, `GpuIsLost`.
    pub fn compute_instance(&self, compute_instance: Serial) -> Answer<ComputeInstanceInfo> {
        let (gpu, instance, compute) = self.find_compute_instance(compute_instance)?;
        Ok(ComputeInstanceInfo {
            gpu,
            gpu_instance: instance.serial,
            gpu_instance_id: instance.id,
            id: compute.id,
            profile_id: compute.profile_id,
            placement: compute.placement,
        })
    }

    /// Destroys a compute instance, and the MIG device with it.
    ///
    /// # Errors
    /// `InUse` while a process sits on it; `NoPermission` without rights; `InvalidArgument` when it is gone
    /// (nvml.h).
    pub fn destroy_compute_instance(&mut self, compute_instance: Serial) -> Answer<()> {
        let (gpu, instance, _) = self.find_compute_instance(compute_instance)?;
        let gpu_instance = instance.serial;
        self.require_rights()?;
        if self.has_clients(gpu, Some(compute_instance)) {
            return Err(Return::InUse);
        }
        if let Some(instance) =
            self.gpu_state_mut(gpu).instances.iter_mut().find(|i| i.serial == gpu_instance)
        {
            instance.compute_instances.retain(|c| c.serial != compute_instance);
        }
        Ok(())
    }

    /// The GPU, the GPU instance and the compute instance with a serial.
    pub(crate) fn find_compute_instance(
        &self,
        serial: Serial,
    ) -> Answer<(usize, &GpuInstance, &ComputeInstance)> {
        for (gpu, state) in self.state.gpus.iter().enumerate() {
            for instance in &state.instances {
                if let Some(compute) = instance.compute_instances.iter().find(|c| c.serial == serial) {
                    self.present(gpu)?;
                    return Ok((gpu, instance, compute));
                }
            }
        }
        Err(Return::InvalidArgument)
    }

    /// One way to cut a GPU instance.
    fn cut(&self, gpu: usize, instance: &GpuInstance, profile: u32) -> Answer<Cut> {
        let whole = self.profile(gpu, instance.profile_id)?;
        let n = usize::try_from(profile).ok().and_then(|p| SLICES.get(p)).copied();
        let n = n.ok_or(Return::NotSupported)?;
        let starts = starts(n, whole.n_compute_slices);
        if starts.is_empty() {
            return Err(Return::NotSupported);
        }
        let engines = engines(self.gpu(gpu), whole);
        let is_whole = n == whole.n_compute_slices;
        let short = whole.name.as_str();
        // On an A100 a compute slice is 14 SMs wherever it lies. Elsewhere a part of an instance is taken
        // to have as many as that many 1g; nobody captured it.
        let part = || self.gpu(gpu).board.base_profile(1).and_then(|p| p.n_sms).map(|sms| sms * n);
        let n_sms = if is_whole { whole.n_sms } else { part() };
        Ok(Cut {
            info: ComputeInstanceProfileInfo {
                id: profile,
                name: if is_whole { format!("MIG {short}") } else { format!("MIG {n}c.{short}") },
                slice_count: n,
                instance_count: u32::try_from(starts.len()).unwrap_or(u32::MAX),
                multiprocessor_count: n_sms.unwrap_or(0),
                shared_copy_engine_count: engines.copy,
                shared_decoder_count: engines.decoders,
                shared_encoder_count: engines.encoders,
                shared_jpeg_count: engines.jpeg,
                shared_ofa_count: engines.ofa,
            },
            starts,
        })
    }

    /// What a compute instance got.
    pub(crate) fn compute_instance_cut(
        &self,
        gpu: usize,
        instance: &GpuInstance,
        compute: &ComputeInstance,
    ) -> Answer<ComputeInstanceProfileInfo> {
        self.cut(gpu, instance, compute.profile_id).map(|cut| cut.info)
    }
}

fn is_free(instance: &GpuInstance, start: u32, size: u32) -> bool {
    !instance.compute_instances.iter().any(|c| overlap(c.placement, Placement { start, size }))
}

#[cfg(test)]
mod tests {
    use super::super::Device;
    use super::super::trial::{cut, of};
    use super::*;

    const GPU: Device = Device::Gpu(0);

    #[test]
    fn counts_are_those_of_an_a100() {
        // Profile id of the GPU instance; how many 1c, 2c, 3c, 4c, 7c.
        let expected = [
            (19, [1, 0, 0, 0, 0]),
            (14, [2, 1, 0, 0, 0]),
            (9, [3, 1, 1, 0, 0]),
            (5, [4, 2, 0, 1, 0]),
            (0, [7, 3, 2, 1, 1]),
        ];
        for (profile, counts) in expected {
            let mut a100 = cut("a100-40gb");
            let instance = a100.create_gpu_instance(GPU, profile, None).unwrap();
            for (compute, count) in counts.into_iter().enumerate() {
                let found = a100.compute_instance_profile(instance, compute as u32, 0);
                assert_eq!(found.map_or(0, |f| f.instance_count), count, "{profile} {compute}");
                let made = |mut s: Silicon| {
                    std::iter::from_fn(|| s.create_compute_instance(instance, compute as u32, None).ok())
                        .count()
                };
                assert_eq!(made(a100.clone()), count as usize, "{profile} {compute}");
            }
        }
    }

    #[test]
    fn profiles_are_named_and_end() {
        let mut a100 = cut("a100-40gb");
        let instance = a100.create_gpu_instance(GPU, 9, None).unwrap();
        let part = a100.compute_instance_profile(instance, 0, 0).unwrap();
        assert_eq!((part.name.as_str(), part.multiprocessor_count), ("MIG 1c.3g.20gb", 14));
        let whole = a100.compute_instance_profile(instance, 2, 0).unwrap();
        assert_eq!((whole.name.as_str(), whole.multiprocessor_count), ("MIG 3g.20gb", 42));
        assert_eq!(a100.compute_instance_profile(instance, 3, 0), Err(Return::NotSupported));
        assert_eq!(a100.compute_instance_profile(instance, 7, 0), Err(Return::NotSupported));
        assert_eq!(a100.compute_instance_profile(instance, 9, 0), Err(Return::InvalidArgument));
        assert_eq!(a100.compute_instance_profile(instance, 0, 1), Err(Return::InvalidArgument));
        assert_eq!(a100.compute_instance_profile(99, 0, 0), Err(Return::InvalidArgument));
    }

    #[test]
    fn compute_slices_are_given_away_once() {
        let mut a100 = cut("a100-40gb");
        let instance = a100.create_gpu_instance(GPU, 0, None).unwrap();
        let four = a100.create_compute_instance(instance, 3, None).unwrap();
        let three = a100.create_compute_instance(instance, 2, None).unwrap();
        assert_eq!(a100.compute_instance(three).unwrap().placement, Placement { start: 4, size: 3 });
        assert_eq!(a100.compute_instance_remaining_capacity(instance, 0), Ok(0));
        assert_eq!(a100.create_compute_instance(instance, 0, None), Err(Return::InsufficientResources));
        a100.destroy_compute_instance(four).unwrap();
        assert_eq!(a100.compute_instance_remaining_capacity(instance, 0), Ok(4));
        let wrong = Some(Placement { start: 1, size: 2 });
        assert_eq!(a100.create_compute_instance(instance, 1, wrong), Err(Return::InvalidArgument));
        let right = Some(Placement { start: 2, size: 2 });
        let two = a100.create_compute_instance(instance, 1, right).unwrap();
        // The lowest id that is free.
        let ids = [two, three].map(|serial| a100.compute_instance(serial).unwrap().id);
        assert_eq!(ids, [0, 1]);
        assert_eq!(a100.compute_instances(instance, 1).unwrap(), [two]);
        assert_eq!(a100.compute_instance_by_id(instance, 1), Ok(three));
        assert_eq!(a100.compute_instance_by_id(instance, 2), Err(Return::NotFound));
        assert_eq!(a100.compute_instance_placements(instance, 1).unwrap().len(), 3);
        assert_eq!(a100.compute_instance_placements(instance, 5), Err(Return::NotSupported));
        assert_eq!(a100.destroy_compute_instance(four), Err(Return::InvalidArgument));
    }

    #[test]
    fn changing_and_listing_need_rights() {
        let mut user = of("a100-40gb", |d| {
            d.privileged = false;
            d.gpu[0].mig = true;
            d.gpu[0].instances = vec![crate::description::DescribedInstance {
                profile: "1g.5gb".to_owned(),
                start: None,
                compute: true,
            }];
        });
        let instance = user.gpu_state(0).instances[0].clone();
        let compute = instance.compute_instances[0].serial;
        assert_eq!(user.create_compute_instance(instance.serial, 0, None), Err(Return::NoPermission));
        assert_eq!(user.destroy_compute_instance(compute), Err(Return::NoPermission));
        assert_eq!(user.compute_instances(instance.serial, 0), Err(Return::NoPermission));
        assert_eq!(user.compute_instance_by_id(instance.serial, 0), Err(Return::NoPermission));
        assert_eq!(user.compute_instance_placements(instance.serial, 0), Err(Return::NoPermission));
        assert_eq!(user.compute_instance_remaining_capacity(instance.serial, 0), Err(Return::NoPermission));
        assert!(user.compute_instance_profile(instance.serial, 0, 0).is_ok());
        assert_eq!(user.compute_instance(compute).unwrap().gpu_instance_id, 13);
    }

    #[test]
    fn a_compute_instance_in_use_stays() {
        let mut a100 = cut("a100-40gb");
        let instance = a100.create_gpu_instance(GPU, 19, None).unwrap();
        let compute = a100.create_compute_instance(instance, 0, None).unwrap();
        a100.attach(Device::Mig(compute), 7, "python").unwrap();
        assert_eq!(a100.destroy_compute_instance(compute), Err(Return::InUse));
        assert_eq!(a100.destroy_gpu_instance(instance), Err(Return::InUse));
        a100.detach(Device::Mig(compute), 7).unwrap();
        a100.destroy_compute_instance(compute).unwrap();
        a100.destroy_gpu_instance(instance).unwrap();
    }
}
