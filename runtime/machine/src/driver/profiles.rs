//! The driver's menu of profiles → names and ids of one GPU.
//!
//! Profile numbers, profile ids and names are three things. Numbers are walked, ids are passed to every
//! other call, names are what plans say. All three are asked of each GPU anew: two boards in one machine
//! may give one name two ids.

use super::raw::{Answer, ComputeProfile, GpuInstance, INVALID_ARGUMENT, Profile, RawDevice};
use crate::error::DeviceErrorKind;
use ent_plan::device::Board;

/// Numbers that are asked whatever the driver says of those before: nvml.h of driver 580 has 0 to 17
/// (`NVML_GPU_INSTANCE_PROFILE_*`).
const KNOWN_NUMBERS: u32 = 18;
/// Numbers that are asked at most, should a driver never say that it has no more.
const MOST_NUMBERS: u32 = 64;
/// The same for compute profiles: nvml.h has 0 to 8 (`NVML_COMPUTE_INSTANCE_PROFILE_*`).
const KNOWN_COMPUTE_NUMBERS: u32 = 9;

/// A profile with the name that people use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// What the driver says of it.
    pub(super) profile: Profile,
    /// `1g.10gb`.
    pub(super) name: String,
}

/// The menu of a GPU, by id. Empty on a GPU without one.
///
/// # Errors
/// Any refusal but "not on this GPU".
pub(super) fn menu(device: &RawDevice<'_>, board: Option<&Board>) -> Answer<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    for number in 0..MOST_NUMBERS {
        match device.profile(number) {
            Ok(profile) if entries.iter().any(|entry| entry.profile.id == profile.id) => {}
            Ok(profile) => entries.push(Entry { name: name_of(&profile, board), profile }),
            Err(refused) if refused.kind == DeviceErrorKind::NotSupported => {}
            // The end of the enum; a hole before what nvml.h knows is a hole.
            Err(refused) if refused.kind == INVALID_ARGUMENT && number < KNOWN_NUMBERS => {}
            Err(refused) if refused.kind == INVALID_ARGUMENT => break,
            // A driver from before MIG has no menu.
            Err(refused) if refused.kind == DeviceErrorKind::MissingSymbol => break,
            Err(refused) => return Err(refused),
        }
    }
    entries.sort_by_key(|entry| entry.profile.id);
    Ok(entries)
}

/// The name of a profile: the driver's own, else the catalogue's for this board and id, else its id.
fn name_of(profile: &Profile, board: Option<&Board>) -> String {
    if let Some(name) = profile.name.as_deref() {
        return without_prefix(name).to_owned();
    }
    let known = board.and_then(|b| b.profiles.iter().find(|p| p.gi_profile_id == Some(profile.id)));
    known.map_or_else(|| format!("id {}", profile.id), |known| known.name.clone())
}

/// `MIG 1g.10gb` → `1g.10gb`.
fn without_prefix(name: &str) -> &str {
    let name = name.trim();
    name.strip_prefix("MIG ").unwrap_or(name).trim()
}

/// The profile in the name of a MIG device: `NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb` → `3g.20gb`.
pub(super) fn profile_in_device_name(name: &str) -> Option<String> {
    let (_, profile) = name.rsplit_once("MIG ")?;
    let profile = profile.trim();
    let whole = match profile.split_once('.') {
        Some((share, rest)) if share.ends_with('c') => rest,
        _ => profile,
    };
    (!whole.is_empty()).then(|| whole.to_owned())
}

/// The entry for a name on this GPU. Where the driver calls a profile otherwise than the catalogue does
/// (drivers have renamed profiles), the catalogue's id for the name holds, if the slices agree.
pub(super) fn resolve<'a>(menu: &'a [Entry], board: Option<&Board>, name: &str) -> Option<&'a Entry> {
    if let Some(entry) = menu.iter().find(|entry| entry.name == name) {
        return Some(entry);
    }
    let known = board?.profile(name)?;
    menu.iter().find(|entry| {
        Some(entry.profile.id) == known.gi_profile_id && entry.profile.n_slices == known.n_compute_slices
    })
}

/// The compute profiles that a GPU instance offers, by number.
///
/// # Errors
/// Any refusal but "not on this instance".
pub(super) fn compute_menu(instance: &GpuInstance<'_>) -> Answer<Vec<ComputeProfile>> {
    let mut profiles: Vec<ComputeProfile> = Vec::new();
    for number in 0..MOST_NUMBERS {
        match instance.compute_profile(number) {
            Ok(profile) if profiles.iter().any(|other| other.id == profile.id) => {}
            Ok(profile) => profiles.push(profile),
            Err(refused) if refused.kind == DeviceErrorKind::NotSupported => {}
            Err(refused) if refused.kind == INVALID_ARGUMENT && number < KNOWN_COMPUTE_NUMBERS => {}
            Err(refused) if refused.kind == INVALID_ARGUMENT => break,
            Err(refused) => return Err(refused),
        }
    }
    Ok(profiles)
}

/// The compute profile that is as wide as its GPU instance: all slices, and of those the one with most
/// SMs and engines. Its id differs by instance (a 7g's is not its slice count), so it is never computed.
pub(super) fn whole(menu: &[ComputeProfile]) -> Option<&ComputeProfile> {
    let width = |p: &&ComputeProfile| (p.n_slices, p.n_sms, p.n_engines, std::cmp::Reverse(p.id));
    menu.iter().max_by_key(width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(id: u32, n_slices: u32, name: Option<&str>) -> Profile {
        let name = name.map(str::to_owned);
        Profile { id, n_slices, max_instances: 1, n_sms: 14 * n_slices, memory_mib: 4864, name }
    }

    #[test]
    fn the_drivers_name_comes_before_the_catalogues() {
        let board = ent_plan::device::board("a100-40gb");
        let named = |profile: &Profile| name_of(profile, board.as_ref());
        assert_eq!(named(&profile(19, 1, Some("MIG 1g.5gb"))), "1g.5gb");
        assert_eq!(named(&profile(20, 1, Some("MIG 1g.5gb+me"))), "1g.5gb+me");
        assert_eq!(named(&profile(19, 1, None)), "1g.5gb");
        assert_eq!(named(&profile(99, 1, None)), "id 99");
        assert_eq!(name_of(&profile(19, 1, None), None), "id 19");
    }

    #[test]
    fn a_renamed_profile_is_found_by_the_catalogues_id_if_its_slices_agree() {
        let board = ent_plan::device::board("gb200-186gb");
        let entry =
            |id, n_slices, name: &str| Entry { profile: profile(id, n_slices, None), name: name.into() };
        let menu = [entry(9, 3, "3g.95gb"), entry(5, 3, "odd")];
        let found = |name| resolve(&menu, board.as_ref(), name).map(|entry| entry.profile.id);
        assert_eq!(found("3g.95gb"), Some(9));
        assert_eq!(found("3g.93gb"), Some(9));
        assert_eq!(found("4g.93gb"), None, "the id is there, with other slices");
        assert_eq!(found("5g.1gb"), None);
    }

    #[test]
    fn a_mig_devices_name_tells_the_profile_of_its_gpu_instance() {
        let told = |name| profile_in_device_name(name);
        assert_eq!(told("NVIDIA A100-SXM4-40GB MIG 1g.5gb").as_deref(), Some("1g.5gb"));
        assert_eq!(told("NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb").as_deref(), Some("3g.20gb"));
        assert_eq!(told("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me").as_deref(), Some("1g.10gb+me"));
        assert_eq!(told("NVIDIA A100-SXM4-40GB"), None);
    }

    #[test]
    fn the_whole_compute_profile_has_all_slices_and_most_engines() {
        let of = |id, n_slices, n_engines| ComputeProfile { id, n_slices, n_sms: 14 * n_slices, n_engines };
        assert_eq!(whole(&[of(0, 1, 1), of(4, 7, 7), of(3, 4, 4)]).map(|p| p.id), Some(4));
        assert_eq!(whole(&[of(0, 1, 1), of(7, 1, 4)]).map(|p| p.id), Some(7));
        assert_eq!(whole(&[of(0, 1, 1), of(7, 1, 1)]).map(|p| p.id), Some(0));
        assert!(whole(&[]).is_none());
    }
}
