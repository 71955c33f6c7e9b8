//! GPU instances: where one may lie, which may lie beside each other, making and destroying them.
//!
//! This is a referee of its own: it does not ask the planner's enumeration of layouts, but looks at the
//! memory slices that are taken.

use super::machine::{Family, Gpu};
use super::state::{GpuInstance, GpuState};
use super::{Answer, Device, GpuInstanceInfo, Placement, Serial, Silicon};
use crate::returns::Return;
use ent_plan::device::GpuInstanceProfile;

/// Whether two stretches of slices share one.
pub(crate) fn overlap(a: Placement, b: Placement) -> bool {
    a.start < b.start + b.size && b.start < a.start + a.size
}

/// The id of an instance by its place. It is that of the instance's node when the board's halves, quarters
/// and eighths are numbered from the whole on: 7g is 0; 3g and 4g are 1 and 2; two slices wide are 3 to 6;
/// one slice wide are 7 to 13 (`nvidia-smi mig -lgi` on A100: NVIDIA MIG User Guide, Getting Started, and
/// NVIDIA/go-nvml issue 146). On an H100 PCIe (driver 570) seven 1g got 9, 7, 8, 11, 12, 13, 14: there the
/// last four are one higher, by which slice is not known. Nobody may rely on it.
fn instance_id(gpu: &Gpu, placement: Placement) -> u32 {
    let n_of_this_size = gpu.board.n_memory_slices / placement.size;
    let place = placement.start / placement.size;
    let is_shifted = gpu.family != Family::Ampere && n_of_this_size == 8 && place >= 3;
    n_of_this_size - 1 + place + u32::from(is_shifted)
}

/// The starts of a profile in the order in which the driver tries them when the caller names none.
///
/// On an A100 1g went to 6, 4, 5, 0, 1, 2, 3, 2g to 4 and 3g to 4 first (NVIDIA MIG User Guide, Getting
/// Started): the right half before the left, and what has no slice beside it first. Hence the documented
/// failure of 1g, 1g, 2g, 3g in this order, and the success of 3g, 1g, 2g, 1g. On an H100 PCIe the order
/// was another one; on other boards nobody looked, and it is ascending.
fn preference(gpu: &Gpu, profile: &GpuInstanceProfile) -> Vec<u32> {
    let mut starts = profile.starts.clone();
    if gpu.board.n_memory_slices != 8 {
        return starts;
    }
    match (gpu.family, profile.n_memory_slices) {
        (Family::Ampere, 1 | 2) => starts.sort_by_key(|s| (*s != 6, *s < 4, *s)),
        (Family::Hopper | Family::Blackwell, 1) => starts.sort_by_key(|s| (*s != 2, *s)),
        _ => starts.sort_by_key(|s| (*s < 4, *s)),
    }
    starts
}

impl Silicon {
    /// Everywhere an instance of this profile may lie, whatever lies there already. MIG mode need not be
    /// on.
    ///
    /// # Errors
    /// `NoPermission` without rights (nvml.h: "Requires privileged user"); `InvalidArgument` for an unknown
    /// id.
    pub fn possible_placements(&self, device: Device, profile_id: u32) -> Answer<Vec<Placement>> {
        let gpu = self.mig_gpu(device)?;
        let profile = self.profile(gpu, profile_id)?;
        self.require_rights()?;
        let size = profile.n_memory_slices;
        Ok(profile.starts.iter().map(|start| Placement { start: *start, size }).collect())
    }

    /// How many more of this profile would fit now.
    ///
    /// # Errors
    /// `NotSupported` with MIG mode off, `NoPermission` without rights, `InvalidArgument` for an unknown id
    /// (nvml.h).
    pub fn remaining_capacity(&self, device: Device, profile_id: u32) -> Answer<u32> {
        let gpu = self.gpu_in_mig_mode(device)?;
        let profile = self.profile(gpu, profile_id)?;
        self.require_rights()?;
        if !self.tolerated(gpu, profile) {
            return Ok(0);
        }
        let free = profile.starts.iter().filter(|start| self.is_free(gpu, profile, **start)).count();
        let left = profile.max_instances.saturating_sub(self.count(gpu, profile_id));
        Ok(left.min(u32::try_from(free).unwrap_or(u32::MAX)))
    }

    /// Makes an instance, at a place or wherever the driver likes.
    ///
    /// # Errors
    /// `NotSupported` with MIG mode off; `InvalidArgument` for an unknown id or an impossible place;
    /// `NoPermission` without rights; `InsufficientResources` when the place is taken, no place is free, or
    /// what is there tolerates no such instance (nvml.h).
    pub fn create_gpu_instance(
        &mut self,
        device: Device,
        profile_id: u32,
        placement: Option<Placement>,
    ) -> Answer<Serial> {
        let gpu = self.gpu_in_mig_mode(device)?;
        let profile = self.profile(gpu, profile_id)?;
        let size = profile.n_memory_slices;
        if placement.is_some_and(|p| p.size != size || !profile.starts.contains(&p.start)) {
            return Err(Return::InvalidArgument);
        }
        self.require_rights()?;
        if !self.tolerated(gpu, profile) || self.count(gpu, profile_id) >= profile.max_instances {
            return Err(Return::InsufficientResources);
        }
        let wanted = placement.map_or_else(|| preference(self.gpu(gpu), profile), |p| vec![p.start]);
        let start = wanted.into_iter().find(|start| self.is_free(gpu, profile, *start));
        let placement = Placement { start: start.ok_or(Return::InsufficientResources)?, size };
        let id = instance_id(self.gpu(gpu), placement);
        let serial = self.next_serial();
        self.gpu_state_mut(gpu).instances.push(GpuInstance {
            serial,
            id,
            profile_id,
            placement,
            compute_instances: Vec::new(),
        });
        Ok(serial)
    }

    /// The instances of this profile, by id.
    ///
    /// # Errors
    /// As [`Self::remaining_capacity`].
    pub fn gpu_instances(&self, device: Device, profile_id: u32) -> Answer<Vec<Serial>> {
        let gpu = self.gpu_in_mig_mode(device)?;
        self.profile(gpu, profile_id)?;
        self.require_rights()?;
        let mut found: Vec<_> =
            self.gpu_state(gpu).instances.iter().filter(|i| i.profile_id == profile_id).collect();
        found.sort_by_key(|i| i.id);
        Ok(found.into_iter().map(|i| i.serial).collect())
    }

    /// The instance with this id.
    ///
    /// # Errors
    /// `NotSupported` with MIG mode off, `NoPermission` without rights, `NotFound` when there is none.
    pub fn gpu_instance_by_id(&self, device: Device, id: u32) -> Answer<Serial> {
        let gpu = self.gpu_in_mig_mode(device)?;
        self.require_rights()?;
        let found = self.gpu_state(gpu).instances.iter().find(|i| i.id == id);
        found.map(|i| i.serial).ok_or(Return::NotFound)
    }

    /// What an instance is.
    ///
    /// # Errors
    /// `InvalidArgument` when it is gone, `GpuIsLost`.
    pub fn gpu_instance(&self, gpu_instance: Serial) -> Answer<GpuInstanceInfo> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        Ok(GpuInstanceInfo {
            gpu,
            id: instance.id,
            profile_id: instance.profile_id,
            placement: instance.placement,
        })
    }

    /// Destroys an instance.
    ///
    /// # Errors
    /// `InUse` while it has compute instances (and so while a process sits on it); `NoPermission` without
    /// rights; `InvalidArgument` when it is gone (nvml.h).
    pub fn destroy_gpu_instance(&mut self, gpu_instance: Serial) -> Answer<()> {
        let (gpu, instance) = self.find_gpu_instance(gpu_instance)?;
        self.require_rights()?;
        if !instance.compute_instances.is_empty() {
            return Err(Return::InUse);
        }
        self.gpu_state_mut(gpu).instances.retain(|i| i.serial != gpu_instance);
        Ok(())
    }

    /// The GPU and the instance with a serial.
    pub(crate) fn find_gpu_instance(&self, serial: Serial) -> Answer<(usize, &GpuInstance)> {
        let of = |(gpu, state): (usize, &GpuState)| {
            state.instances.iter().position(|i| i.serial == serial).map(|at| (gpu, at))
        };
        let found = self.state.gpus.iter().enumerate().find_map(of);
        let (gpu, at) = found.ok_or(Return::InvalidArgument)?;
        self.present(gpu)?;
        Ok((gpu, &self.gpu_state(gpu).instances[at]))
    }

    fn count(&self, gpu: usize, profile_id: u32) -> u32 {
        let same = self.gpu_state(gpu).instances.iter().filter(|i| i.profile_id == profile_id);
        u32::try_from(same.count()).unwrap_or(u32::MAX)
    }

    fn is_free(&self, gpu: usize, profile: &GpuInstanceProfile, start: u32) -> bool {
        let placement = Placement { start, size: profile.n_memory_slices };
        !self.gpu_state(gpu).instances.iter().any(|i| overlap(i.placement, placement))
    }

    /// Whether what is there lets an instance of this profile be made, wherever it would lie.
    ///
    /// - One instance with media extensions (`+me`) on a board: NVIDIA MIG User Guide, supported profiles.
    /// - Beside one with all media engines (`+me.all`) only ones with none (`-me`): nvml.h,
    ///   `NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME`.
    /// - 4g and 3g together from R510 on: NVIDIA MIG User Guide, Concepts.
    fn tolerated(&self, gpu: usize, profile: &GpuInstanceProfile) -> bool {
        let new = profile.name.as_str();
        let present =
            self.gpu_state(gpu).instances.iter().filter_map(|i| self.profile(gpu, i.profile_id).ok());
        let are_old_halves = |a: u32, b: u32| (a, b) == (3, 4) && !self.machine.has_driver("510");
        present.into_iter().all(|other| {
            let old = other.name.as_str();
            let (a, b) = (profile.n_compute_slices, other.n_compute_slices);
            let is_second_media = new.ends_with("+me") && old.ends_with("+me");
            let is_all_beside =
                |all: &str, beside: &str| all.ends_with("+me.all") && !beside.ends_with("-me");
            !is_second_media
                && !is_all_beside(new, old)
                && !is_all_beside(old, new)
                && !are_old_halves(a.min(b), a.max(b))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{cut, machine, of};
    use super::*;
    use ent_plan::device::{Layout, PlacedProfile, board, board_ids, layouts};
    use std::collections::BTreeSet;

    const GPU: Device = Device::Gpu(0);

    fn at(start: u32, size: u32) -> Option<Placement> {
        Some(Placement { start, size })
    }

    fn starts(silicon: &Silicon) -> Vec<(u32, u32)> {
        silicon.gpu_state(0).instances.iter().map(|i| (i.id, i.placement.start)).collect()
    }

    #[test]
    fn an_a100_places_as_documented_when_not_told_where() {
        let mut a100 = cut("a100-80gb-pcie");
        for _ in 0..7 {
            a100.create_gpu_instance(GPU, 19, None).unwrap();
        }
        assert_eq!(starts(&a100), [(13, 6), (11, 4), (12, 5), (7, 0), (8, 1), (9, 2), (10, 3)]);
        assert_eq!(a100.create_gpu_instance(GPU, 19, None), Err(Return::InsufficientResources));
    }

    #[test]
    fn an_h100_places_with_the_ids_that_were_seen() {
        let mut h100 = cut("h100-80gb-pcie");
        for _ in 0..7 {
            h100.create_gpu_instance(GPU, 19, None).unwrap();
        }
        let ids: Vec<u32> = starts(&h100).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [9, 7, 8, 11, 12, 13, 14]);
    }

    #[test]
    fn without_places_the_order_decides() {
        let create = |profiles: &[u32]| {
            let mut a100 = cut("a100-80gb-pcie");
            profiles.iter().map(|p| a100.create_gpu_instance(GPU, *p, None).map(|_| ())).collect::<Vec<_>>()
        };
        let refused = Err(Return::InsufficientResources);
        assert_eq!(create(&[19, 19, 14, 9]), [Ok(()), Ok(()), Ok(()), refused]);
        assert_eq!(create(&[9, 19, 14, 19]), [Ok(()), Ok(()), Ok(()), Ok(())]);
        assert_eq!(create(&[9, 9, 19]), [Ok(()), Ok(()), refused]);
        assert_eq!(create(&[5, 9]), [Ok(()), Ok(())]);
        // The first 3g goes to the right half, where a 4g may not lie.
        assert_eq!(create(&[9, 5]), [Ok(()), Ok(())]);
        assert_eq!(create(&[14, 5]), [Ok(()), Ok(())]);
    }

    #[test]
    fn ids_are_those_of_real_listings() {
        let mut a100 = cut("a100-80gb-pcie");
        for (profile, placement) in [(14, at(0, 2)), (14, at(2, 2)), (9, at(4, 4))] {
            a100.create_gpu_instance(GPU, profile, placement).unwrap();
        }
        assert_eq!(starts(&a100), [(3, 0), (4, 2), (2, 4)]);
        assert_eq!(a100.gpu_instances(GPU, 14).unwrap(), [1, 2]);
        assert_eq!(a100.gpu_instance_by_id(GPU, 2), Ok(3));
        assert_eq!(a100.gpu_instance_by_id(GPU, 7), Err(Return::NotFound));
        let info = a100.gpu_instance(3).unwrap();
        assert_eq!(
            (info.gpu, info.id, info.profile_id, info.placement),
            (0, 2, 9, Placement { start: 4, size: 4 })
        );
        let mut whole = cut("a100-80gb-pcie");
        whole.create_gpu_instance(GPU, 0, None).unwrap();
        assert_eq!(starts(&whole), [(0, 0)]);
        let mut rtx = cut("rtx-pro-6000-blackwell");
        for start in [9, 0, 3, 6] {
            rtx.create_gpu_instance(GPU, 14, at(start, 3)).unwrap();
        }
        assert_eq!(starts(&rtx), [(6, 9), (3, 0), (4, 3), (5, 6)]);
    }

    #[test]
    fn impossible_places_and_taken_places_are_told_apart() {
        let mut a100 = cut("a100-80gb-pcie");
        for (profile, placement) in [
            (9, at(2, 4)),
            (9, at(0, 3)),
            (19, at(7, 1)),
            (14, at(6, 2)),
            (5, at(4, 4)),
            (19, at(u32::MAX, 1)),
        ] {
            assert_eq!(a100.create_gpu_instance(GPU, profile, placement), Err(Return::InvalidArgument));
        }
        assert_eq!(a100.create_gpu_instance(GPU, 1, None), Err(Return::InvalidArgument));
        // The double-memory 1g alone may use the last slice.
        assert!(a100.create_gpu_instance(GPU, 15, at(6, 2)).is_ok());
        assert_eq!(a100.create_gpu_instance(GPU, 19, at(6, 1)), Err(Return::InsufficientResources));
        assert_eq!(a100.create_gpu_instance(GPU, 9, at(4, 4)), Err(Return::InsufficientResources));
        assert_eq!(starts(&a100), [(6, 6)]);
    }

    /// The layouts that the planner's own rules enumerate are exactly those that can be made, in any order
    /// of creation; what they leave out is refused.
    #[test]
    fn what_can_be_made_is_what_the_catalogue_enumerates() {
        for id in board_ids() {
            let board = board(id).unwrap();
            // All variants on the small boards; the base profiles and `+me` elsewhere.
            let all: BTreeSet<Layout> = layouts(&board, |_| true).into_iter().collect();
            let sampled = all.iter().enumerate().filter(|(n, _)| n % (1 + all.len() / 300) == 0);
            for (n, layout) in sampled {
                let mut silicon = cut(id);
                let placed = |p: &PlacedProfile| {
                    let profile = &board.profiles[p.profile];
                    (profile.gi_profile_id.unwrap(), at(p.start, profile.n_memory_slices))
                };
                let mut order: Vec<_> = layout.iter().map(placed).collect();
                let turn = n % order.len().max(1);
                order.rotate_left(turn);
                for (profile, placement) in order {
                    silicon.create_gpu_instance(GPU, profile, placement).unwrap();
                }
                for (index, profile) in board.profiles.iter().enumerate() {
                    for start in &profile.starts {
                        let mut more = layout.clone();
                        more.push(PlacedProfile { profile: index, start: *start });
                        more.sort_by_key(|p| (p.start, p.profile));
                        let is_legal = all.contains(&more);
                        let result = silicon.clone().create_gpu_instance(
                            GPU,
                            profile.gi_profile_id.unwrap(),
                            at(*start, profile.n_memory_slices),
                        );
                        assert_eq!(
                            result.is_ok(),
                            is_legal,
                            "{id}: {layout:?} and {} at {start}",
                            profile.name
                        );
                    }
                    let id = profile.gi_profile_id.unwrap();
                    let left = silicon.remaining_capacity(GPU, id).unwrap();
                    let mut filled = silicon.clone();
                    let made = std::iter::from_fn(|| filled.create_gpu_instance(GPU, id, None).ok()).count();
                    assert_eq!(left as usize, made, "{layout:?} {}", profile.name);
                }
            }
        }
    }

    #[test]
    fn four_and_three_need_r510() {
        let mut old = of("a100-40gb", |d| {
            d.driver_version = "470.57.02".to_owned();
            d.gpu[0].mig = true;
        });
        old.create_gpu_instance(GPU, 5, at(0, 4)).unwrap();
        assert_eq!(old.create_gpu_instance(GPU, 9, at(4, 4)), Err(Return::InsufficientResources));
        assert_eq!(old.remaining_capacity(GPU, 9), Ok(0));
        assert_eq!(old.remaining_capacity(GPU, 14), Ok(1));
    }

    #[test]
    fn placements_need_rights_but_not_mig_mode() {
        let a100 = machine("a100-80gb-pcie");
        let all = a100.possible_placements(GPU, 14).unwrap();
        assert_eq!(all, [0, 2, 4].map(|start| Placement { start, size: 2 }));
        assert_eq!(a100.remaining_capacity(GPU, 14), Err(Return::NotSupported));
        assert_eq!(a100.clone().create_gpu_instance(GPU, 14, None), Err(Return::NotSupported));
        assert_eq!(a100.gpu_instances(GPU, 14), Err(Return::NotSupported));
        let mut user = of("a100-80gb-pcie", |d| {
            d.privileged = false;
            d.gpu[0].mig = true;
            d.gpu[0].instances = vec![crate::description::DescribedInstance {
                profile: "1g.10gb".to_owned(),
                start: None,
                compute: true,
            }];
        });
        assert_eq!(user.possible_placements(GPU, 14), Err(Return::NoPermission));
        assert_eq!(user.remaining_capacity(GPU, 14), Err(Return::NoPermission));
        assert_eq!(user.gpu_instances(GPU, 14), Err(Return::NoPermission));
        assert_eq!(user.gpu_instance_by_id(GPU, 13), Err(Return::NoPermission));
        assert_eq!(user.create_gpu_instance(GPU, 14, None), Err(Return::NoPermission));
        let serial = user.gpu_state(0).instances[0].serial;
        assert_eq!(user.destroy_gpu_instance(serial), Err(Return::NoPermission));
        assert_eq!(user.gpu_instance(serial).map(|i| i.id), Ok(13));
    }

    #[test]
    fn an_instance_with_compute_instances_stays() {
        let mut a100 = cut("a100-80gb-pcie");
        let instance = a100.create_gpu_instance(GPU, 14, None).unwrap();
        let compute = a100.create_compute_instance(instance, 1, None).unwrap();
        assert_eq!(a100.destroy_gpu_instance(instance), Err(Return::InUse));
        a100.destroy_compute_instance(compute).unwrap();
        a100.destroy_gpu_instance(instance).unwrap();
        assert_eq!(a100.destroy_gpu_instance(instance), Err(Return::InvalidArgument));
        assert_eq!(a100.gpu_instance(instance), Err(Return::InvalidArgument));
        assert!(a100.create_gpu_instance(GPU, 14, None).unwrap() > compute, "serials are not used again");
    }
}
