//! A board's menu: profile enums, ids, names, and what an instance gets.
//!
//! NVML has two numbers for a GPU instance profile. `nvmlDeviceGetGpuInstanceProfileInfo` takes the *enum*
//! (`NVML_GPU_INSTANCE_PROFILE_*`) and returns the *id* in its answer; creating, placements and capacity
//! take the id. They never agree here either: 1g is enum 0 and id 19 on a 7-slice board.

use super::machine::{Family, Gpu, Machine};
use super::{Answer, Device, GpuInstanceProfileInfo, Silicon};
use crate::returns::Return;
use ent_plan::device::GpuInstanceProfile;

/// `NVML_GPU_INSTANCE_PROFILE_COUNT` (nvml.h of CUDA 13; 17 up to CUDA 12.9).
const N_ENUMS: u32 = 18;

/// `NVML_GPU_INSTANCE_PROFILE_CAPS_GFX` (nvml.h).
const CAPS_GFX: u32 = 0x2;

/// The enum of a profile (nvml.h, `NVML_GPU_INSTANCE_PROFILE_*`).
fn profile_enum(gpu: &Gpu, profile: &GpuInstanceProfile) -> Option<u32> {
    let (n, name) = (profile.n_compute_slices, profile.name.as_str());
    let has_double_memory =
        || gpu.board.base_profile(n).is_some_and(|base| base.n_memory_slices < profile.n_memory_slices);
    match n {
        // ..._ALL_ME, ..._NO_ME, ..._GFX, then _REV1 with media extensions and _REV2 with double memory.
        1 if name.ends_with("+me.all") => Some(15),
        2 if name.ends_with("+me.all") => Some(16),
        1 if name.ends_with("-me") => Some(13),
        2 if name.ends_with("-me") => Some(14),
        1 if name.ends_with("+gfx") => Some(10),
        2 if name.ends_with("+gfx") => Some(11),
        3 if name.ends_with("+gfx") => Some(17),
        4 if name.ends_with("+gfx") => Some(12),
        1 if name.ends_with("+me") => Some(7),
        2 if name.ends_with("+me") => Some(8),
        1 if has_double_memory() => Some(9),
        1 => Some(0),
        2 => Some(1),
        3 => Some(2),
        4 => Some(3),
        7 => Some(4),
        8 => Some(5),
        6 => Some(6),
        _ => None,
    }
}

/// Whether the driver knows the profile yet (NVIDIA MIG User Guide, supported profiles: `1g+me` from R470
/// on, the double-memory 1g and the A30's `2g+me` from R525 on).
fn is_known_to_driver(machine: &Machine, gpu: &Gpu, profile: &GpuInstanceProfile) -> bool {
    match profile_enum(gpu, profile) {
        Some(7) => machine.has_driver("470"),
        Some(8 | 9) => machine.has_driver("525"),
        _ => true,
    }
}

/// Engines of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Engines {
    pub(crate) copy: u32,
    pub(crate) decoders: u32,
    pub(crate) encoders: u32,
    pub(crate) jpeg: u32,
    pub(crate) ofa: u32,
}

/// Engines by board and profile, from `nvidia-smi mig -lgip` where it was captured (A30, A100, H100, H200,
/// GH200 96GB, RTX PRO 6000) and the NVIDIA MIG User Guide's tables (copy engines of B200 and its kin,
/// decoders of B200). What nobody captured is 0.
pub(crate) fn engines(gpu: &Gpu, profile: &GpuInstanceProfile) -> Engines {
    let (id, name, n) = (gpu.board.id.as_str(), profile.name.as_str(), profile.n_compute_slices);
    let is_whole = n == gpu.board.n_compute_slices();
    let media = u32::from(name.ends_with("+me") || is_whole);
    let of = |copy, decoders, encoders, jpeg, ofa| Engines { copy, decoders, encoders, jpeg, ofa };
    if id.starts_with("rtx") {
        return match name {
            _ if name.ends_with("+me.all") => of(n, 4, 4, 4, 1),
            _ if name.ends_with("-me") => of(n, 0, 0, 0, 0),
            _ => of(n, n, n, n, media),
        };
    }
    match gpu.family {
        Family::Ampere if id.starts_with("a30") && n == 1 => of(1, media, 0, media, media),
        Family::Ampere if id.starts_with("a30") => of(n, n, 0, media, media),
        Family::Ampere => {
            let double = u32::from(n == 1 && profile.n_memory_slices == 2);
            let decoders = match n {
                1 => media + double,
                2 => 1,
                7 => 5,
                _ => 2,
            };
            of(n, decoders, 0, media, media)
        }
        Family::Hopper => {
            let copy = if is_whole { 8 } else { n };
            let known = u32::from(id != "gh200-144gb");
            of(copy, n * known, 0, n * known, media * known)
        }
        Family::Blackwell => {
            let copy = match n {
                1 => 2,
                2 => 3,
                3 => 6,
                4 => 8,
                _ => 16,
            };
            let known = u32::from(id == "b200-180gb");
            of(copy, known, 0, known, media * known)
        }
    }
}

/// Mebibytes of a profile's memory; 0 when nobody captured it.
pub(crate) fn memory_mib(profile: &GpuInstanceProfile) -> u64 {
    profile.memory.map_or(0, |bytes| mib(bytes.get()))
}

/// Bytes → mebibytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "memory is positive and small")]
pub(crate) fn mib(bytes: f64) -> u64 {
    (bytes / 1_048_576.0).round() as u64
}

fn info(gpu: &Gpu, profile: &GpuInstanceProfile) -> Option<GpuInstanceProfileInfo> {
    let engines = engines(gpu, profile);
    Some(GpuInstanceProfileInfo {
        id: profile.gi_profile_id?,
        name: format!("MIG {}", profile.name),
        slice_count: profile.n_compute_slices,
        instance_count: profile.max_instances,
        multiprocessor_count: profile.n_sms.unwrap_or(0),
        copy_engine_count: engines.copy,
        decoder_count: engines.decoders,
        encoder_count: engines.encoders,
        jpeg_count: engines.jpeg,
        ofa_count: engines.ofa,
        memory_size_mib: memory_mib(profile),
        capabilities: if profile.name.ends_with("+gfx") { CAPS_GFX } else { 0 },
    })
}

impl Silicon {
    /// What an instance of a profile gets, by the profile's *enum*. Needs neither rights nor MIG mode.
    ///
    /// # Errors
    /// `InvalidArgument` past the last enum, which is how callers find the end of the menu; `NotSupported`
    /// for an enum that this board or driver has no profile for (nvml.h).
    pub fn gpu_instance_profile(&self, device: Device, profile: u32) -> Answer<GpuInstanceProfileInfo> {
        let index = self.mig_gpu(device)?;
        if profile >= N_ENUMS {
            return Err(Return::InvalidArgument);
        }
        let gpu = self.gpu(index);
        let found = self.menu(index).find(|p| profile_enum(gpu, p) == Some(profile));
        found.and_then(|p| info(gpu, p)).ok_or(Return::NotSupported)
    }

    /// The same by the profile's id.
    ///
    /// # Errors
    /// `InvalidArgument` when this board or driver has no profile with this id.
    pub fn gpu_instance_profile_by_id(&self, device: Device, id: u32) -> Answer<GpuInstanceProfileInfo> {
        let index = self.mig_gpu(device)?;
        let profile = self.profile(index, id)?;
        info(self.gpu(index), profile).ok_or(Return::InvalidArgument)
    }

    /// The profiles that this board and driver have.
    pub(crate) fn menu(&self, gpu: usize) -> impl Iterator<Item = &GpuInstanceProfile> {
        let (machine, gpu) = (&self.machine, self.gpu(gpu));
        gpu.board
            .profiles
            .iter()
            .filter(move |p| p.gi_profile_id.is_some() && is_known_to_driver(machine, gpu, p))
    }

    /// The profile with this id.
    pub(crate) fn profile(&self, gpu: usize, id: u32) -> Answer<&GpuInstanceProfile> {
        self.menu(gpu).find(|p| p.gi_profile_id == Some(id)).ok_or(Return::InvalidArgument)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{machine, of};
    use super::*;
    use std::collections::BTreeSet;

    fn ids(silicon: &Silicon, enums: &[u32]) -> Vec<u32> {
        enums.iter().map(|e| silicon.gpu_instance_profile(Device::Gpu(0), *e).unwrap().id).collect()
    }

    #[test]
    fn an_id_is_not_its_enum() {
        let a100 = machine("a100-80gb-pcie");
        // 1g, 2g, 3g, 4g, 7g, 1g+me, double-memory 1g.
        assert_eq!(ids(&a100, &[0, 1, 2, 3, 4, 7, 9]), [19, 14, 9, 5, 0, 20, 15]);
        let a30 = machine("a30-24gb");
        assert_eq!(ids(&a30, &[0, 1, 3, 7, 8]), [14, 5, 0, 21, 6]);
        let rtx = machine("rtx-pro-6000-blackwell");
        assert_eq!(
            ids(&rtx, &[0, 1, 3, 7, 10, 11, 12, 13, 14, 15, 16]),
            [14, 5, 0, 21, 47, 35, 32, 67, 66, 65, 64]
        );
    }

    #[test]
    fn the_menu_ends_with_an_invalid_argument_and_has_gaps() {
        let a100 = machine("a100-80gb-pcie");
        assert_eq!(a100.gpu_instance_profile(Device::Gpu(0), 5), Err(Return::NotSupported));
        assert_eq!(a100.gpu_instance_profile(Device::Gpu(0), 17), Err(Return::NotSupported));
        assert_eq!(a100.gpu_instance_profile(Device::Gpu(0), 18), Err(Return::InvalidArgument));
        assert_eq!(a100.gpu_instance_profile_by_id(Device::Gpu(0), 1), Err(Return::InvalidArgument));
        assert_eq!(a100.gpu_instance_profile(Device::Gpu(1), 0), Err(Return::InvalidArgument));
    }

    #[test]
    fn every_profile_of_every_board_is_on_the_menu_once() {
        for id in ent_plan::device::board_ids() {
            let silicon = machine(id);
            let found: BTreeSet<String> = (0..N_ENUMS)
                .filter_map(|e| silicon.gpu_instance_profile(Device::Gpu(0), e).ok())
                .map(|info| {
                    assert_eq!(silicon.gpu_instance_profile_by_id(Device::Gpu(0), info.id).unwrap(), info);
                    info.name.replace("MIG ", "")
                })
                .collect();
            let expected: BTreeSet<String> =
                ent_plan::device::board(id).unwrap().profiles.into_iter().map(|p| p.name).collect();
            assert_eq!(found, expected, "{id}");
        }
    }

    #[test]
    fn an_instance_gets_what_was_captured() {
        let info = machine("h100-80gb-sxm").gpu_instance_profile(Device::Gpu(0), 2).unwrap();
        assert_eq!(
            (info.name.as_str(), info.multiprocessor_count, info.memory_size_mib),
            ("MIG 3g.40gb", 60, 40448)
        );
        assert_eq!(
            (info.copy_engine_count, info.decoder_count, info.jpeg_count, info.ofa_count),
            (3, 3, 3, 0)
        );
        let whole = machine("a100-40gb").gpu_instance_profile(Device::Gpu(0), 4).unwrap();
        assert_eq!((whole.copy_engine_count, whole.decoder_count, whole.ofa_count), (7, 5, 1));
        let all = machine("rtx-pro-6000-blackwell").gpu_instance_profile(Device::Gpu(0), 16).unwrap();
        assert_eq!((all.decoder_count, all.encoder_count, all.ofa_count, all.capabilities), (4, 4, 1, 0));
        let gfx = machine("rtx-pro-6000-blackwell").gpu_instance_profile(Device::Gpu(0), 12).unwrap();
        assert_eq!(gfx.capabilities, CAPS_GFX);
    }

    #[test]
    fn an_old_driver_lacks_the_younger_profiles() {
        let r460 = of("a100-40gb", |d| d.driver_version = "460.73.01".to_owned());
        let r470 = of("a100-40gb", |d| d.driver_version = "470.57.02".to_owned());
        assert_eq!(r460.gpu_instance_profile(Device::Gpu(0), 7), Err(Return::NotSupported));
        assert_eq!(r470.gpu_instance_profile(Device::Gpu(0), 7).unwrap().id, 20);
        assert_eq!(r470.gpu_instance_profile(Device::Gpu(0), 9), Err(Return::NotSupported));
        assert_eq!(r470.gpu_instance_profile_by_id(Device::Gpu(0), 15), Err(Return::InvalidArgument));
    }

    #[test]
    fn a_driver_older_than_the_board_cuts_nothing() {
        let h100 = of("h100-80gb-sxm", |d| d.driver_version = "515.65.01".to_owned());
        assert_eq!(h100.gpu_instance_profile(Device::Gpu(0), 0), Err(Return::NotSupported));
    }
}
