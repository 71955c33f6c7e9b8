//! Board → the ways it can be cut.
//!
//! A GPU instance occupies memory slices `[start, start + size)`; instances must not overlap
//! (nvml.h, `nvmlDeviceGetGpuInstancePossiblePlacements_v2`). Beside that, a profile has a largest count,
//! at most one instance carries `+me` (NVIDIA MIG User Guide, supported profiles), and `+me.all` tolerates
//! only `-me` instances beside it (nvml.h, `NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME`).
//! Every part of a legal layout is itself legal. All answers are in a fixed order.

use super::{Board, GpuInstanceProfile};
use std::collections::BTreeSet;

/// The longest placement axis that is understood; the longest known is 12 (RTX PRO 6000 Blackwell).
pub const MAX_MEMORY_SLICES: u32 = 16;

/// A profile at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedProfile {
    /// Index into [`Board::profiles`].
    pub profile: usize,
    /// First memory slice.
    pub start: u32,
}

/// A legal set of instances, by start.
pub type Layout = Vec<PlacedProfile>;

/// All legal layouts that use only profiles `allowed` says yes to, partial ones and the empty one included.
///
/// There are 723 on an A100 with its six base profiles; allow `+me` and `+gfx` variants only with need,
/// for each doubles and more. Empty for a board whose axis is longer than [`MAX_MEMORY_SLICES`].
pub fn layouts(board: &Board, allowed: impl Fn(usize) -> bool) -> Vec<Layout> {
    let Some(menu) = Menu::new(board, allowed) else { return Vec::new() };
    let mut found = Vec::new();
    menu.extend(0, &mut Vec::new(), &mut vec![0; board.profiles.len()], &mut found);
    found
}

/// The layouts to which nothing can be added.
pub fn maximal_layouts(board: &Board, allowed: impl Fn(usize) -> bool) -> Vec<Layout> {
    let Some(menu) = Menu::new(board, &allowed) else { return Vec::new() };
    let mut all = layouts(board, &allowed);
    all.retain(|layout| {
        let mut counts = vec![0; board.profiles.len()];
        let mut occupied = 0;
        for placed in layout {
            counts[placed.profile] += 1;
            occupied |= mask(&board.profiles[placed.profile], placed.start);
        }
        !menu.options.iter().any(|o| o.mask & occupied == 0 && menu.can_add(&counts, o.profile))
    });
    all
}

/// The legal multisets of profiles that are contained in no other legal multiset, as counts per index of
/// [`Board::profiles`], in descending order.
///
/// A planner needs no others: what fits a board fits one of these. A multiset of a maximal layout can be
/// missing here, because another placement of it leaves more room (3g+2g+1g on an A100 is part of
/// 3g+2g+1g+1g). Much faster than going through [`layouts`].
pub fn maximal_multisets(board: &Board, allowed: impl Fn(usize) -> bool) -> Vec<Vec<u32>> {
    let Some(menu) = Menu::new(board, allowed) else { return Vec::new() };
    // Reachable counts by how much of the axis is decided: what a prefix holds matters only by its counts.
    let axis = board.n_memory_slices as usize;
    let mut reached = vec![BTreeSet::new(); axis + 1];
    reached[0].insert(vec![0_u32; board.profiles.len()]);
    for at in 0..axis {
        let here = std::mem::take(&mut reached[at]);
        for option in menu.options.iter().filter(|o| o.start as usize == at) {
            let end = at + board.profiles[option.profile].n_memory_slices as usize;
            for counts in here.iter().filter(|counts| menu.can_add(counts, option.profile)) {
                let mut more = counts.clone();
                more[option.profile] += 1;
                reached[end].insert(more);
            }
        }
        reached[at + 1].extend(here);
    }
    let all = std::mem::take(&mut reached[axis]);
    // In ascending lexicographic order whatever contains a multiset comes after it.
    let mut maximal: Vec<Vec<u32>> = Vec::new();
    for counts in all.into_iter().rev() {
        if !maximal.iter().any(|other| counts.iter().zip(other).all(|(a, b)| a <= b)) {
            maximal.push(counts);
        }
    }
    maximal
}

/// Starts for a multiset of profiles (indices into [`Board::profiles`]), in the order given; the
/// lexicographically first legal one. `None` when the multiset has no legal placement.
#[must_use]
pub fn place(board: &Board, profiles: &[usize]) -> Option<Vec<u32>> {
    let menu = Menu::new(board, |profile| profiles.contains(&profile))?;
    let mut counts = vec![0; board.profiles.len()];
    for &profile in profiles {
        if profile >= board.profiles.len() || !menu.can_add(&counts, profile) {
            return None;
        }
        counts[profile] += 1;
    }
    let slices: u64 = profiles.iter().map(|&p| u64::from(board.profiles[p].n_memory_slices)).sum();
    if slices > u64::from(board.n_memory_slices) {
        return None;
    }
    let mut starts = Vec::with_capacity(profiles.len());
    menu.place(profiles, 0, &mut starts, &mut BTreeSet::new()).then_some(starts)
}

/// The memory slices an instance occupies, as bits.
fn mask(profile: &GpuInstanceProfile, start: u32) -> u32 {
    ((1 << profile.n_memory_slices) - 1) << start
}

/// One profile at one of its legal starts.
struct PlaceOption {
    profile: usize,
    start: u32,
    mask: u32,
}

/// What may be put where, by start and then by profile.
struct Menu<'a> {
    board: &'a Board,
    options: Vec<PlaceOption>,
}

impl<'a> Menu<'a> {
    fn new(board: &'a Board, allowed: impl Fn(usize) -> bool) -> Option<Self> {
        if board.n_memory_slices > MAX_MEMORY_SLICES {
            return None;
        }
        let mut options = Vec::new();
        for (profile, p) in board.profiles.iter().enumerate().filter(|(index, _)| allowed(*index)) {
            let fits = |start: u32| {
                p.n_memory_slices > 0
                    && start.checked_add(p.n_memory_slices).is_some_and(|end| end <= board.n_memory_slices)
            };
            let mut starts: Vec<u32> = p.starts.iter().copied().filter(|&start| fits(start)).collect();
            starts.sort_unstable();
            starts.dedup();
            options.extend(starts.into_iter().map(|start| PlaceOption {
                profile,
                start,
                mask: mask(p, start),
            }));
        }
        options.sort_by_key(|o| (o.start, o.profile));
        Some(Self { board, options })
    }

    /// Whether one more of a profile is legal beside these counts, wherever it is put.
    fn can_add(&self, counts: &[u32], profile: usize) -> bool {
        let added = &self.board.profiles[profile];
        let present =
            || self.board.profiles.iter().zip(counts).filter(|(_, count)| **count > 0).map(|(p, _)| p);
        counts[profile] < added.max_instances
            && !(carries_media(added) && present().any(carries_media))
            && present().all(|other| tolerates(added, other) && tolerates(other, added))
    }

    fn extend(&self, from: u32, chosen: &mut Layout, counts: &mut Vec<u32>, found: &mut Vec<Layout>) {
        found.push(chosen.clone());
        for option in self.options.iter().filter(|o| o.start >= from) {
            if self.can_add(counts, option.profile) {
                let end = option.start + self.board.profiles[option.profile].n_memory_slices;
                chosen.push(PlacedProfile { profile: option.profile, start: option.start });
                counts[option.profile] += 1;
                self.extend(end, chosen, counts, found);
                counts[option.profile] -= 1;
                chosen.pop();
            }
        }
    }

    /// Depth first, smallest starts first; what failed once with the same slices taken is not tried again.
    fn place(
        &self,
        profiles: &[usize],
        occupied: u32,
        starts: &mut Vec<u32>,
        failed: &mut BTreeSet<(usize, u32)>,
    ) -> bool {
        let Some(&profile) = profiles.get(starts.len()) else { return true };
        if failed.contains(&(starts.len(), occupied)) {
            return false;
        }
        for option in self.options.iter().filter(|o| o.profile == profile && o.mask & occupied == 0) {
            starts.push(option.start);
            if self.place(profiles, occupied | option.mask, starts, failed) {
                return true;
            }
            starts.pop();
        }
        failed.insert((starts.len(), occupied));
        false
    }
}

/// Whether a profile is a `+me` one: media extensions exist once on a board.
pub(crate) fn carries_media(profile: &GpuInstanceProfile) -> bool {
    profile.name.ends_with("+me")
}

/// Whether `profile` can stand having `other` beside it.
pub(crate) fn tolerates(profile: &GpuInstanceProfile, other: &GpuInstanceProfile) -> bool {
    !profile.name.ends_with("+me.all") || other.name.ends_with("-me")
}

#[cfg(test)]
mod tests {
    use super::super::{Board, board, board_ids};
    use super::*;

    fn base(board: &Board) -> impl Fn(usize) -> bool {
        |profile| board.profiles[profile].is_base
    }

    /// The base profiles but the double-memory 1g.
    fn plain(board: &Board) -> impl Fn(usize) -> bool {
        |profile| {
            let p = &board.profiles[profile];
            board.base_profile(p.n_compute_slices).is_some_and(|b| b.name == p.name)
        }
    }

    fn names(board: &Board, counts: &[u32]) -> String {
        let repeat = |(p, n): (&GpuInstanceProfile, &u32)| vec![p.n_compute_slices.to_string(); *n as usize];
        board.profiles.iter().zip(counts).rev().flat_map(repeat).collect::<Vec<_>>().join("+")
    }

    #[test]
    fn an_a100_has_nineteen_maximal_layouts_of_fourteen_multisets() {
        let a100 = board("a100-80gb-pcie").unwrap();
        assert_eq!(layouts(&a100, plain(&a100)).len(), 298);
        let maximal = maximal_layouts(&a100, plain(&a100));
        assert_eq!(maximal.len(), 19);
        let multisets: BTreeSet<Vec<usize>> = maximal
            .iter()
            .map(|layout| {
                let mut profiles: Vec<usize> = layout.iter().map(|p| p.profile).collect();
                profiles.sort_unstable();
                profiles
            })
            .collect();
        assert_eq!(multisets.len(), 14);
    }

    #[test]
    fn double_memory_makes_seventy_eight_of_nineteen() {
        for id in ["a100-40gb", "a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb", "b300"] {
            let board = board(id).unwrap();
            assert_eq!(layouts(&board, base(&board)).len(), 723, "{id}");
            assert_eq!(maximal_layouts(&board, base(&board)).len(), 78, "{id}");
        }
    }

    #[test]
    fn quarter_boards_have_five_maximal_layouts() {
        for id in ["a30-24gb", "rtx-pro-6000-blackwell"] {
            let board = board(id).unwrap();
            assert_eq!(layouts(&board, base(&board)).len(), 26, "{id}");
            assert_eq!(maximal_layouts(&board, base(&board)).len(), 5, "{id}");
        }
    }

    #[test]
    fn a_multiset_that_another_contains_is_not_maximal() {
        let a100 = board("a100-80gb-pcie").unwrap();
        let found: Vec<String> =
            maximal_multisets(&a100, plain(&a100)).iter().map(|m| names(&a100, m)).collect();
        assert_eq!(found.len(), 12, "{found:?}");
        for expected in ["7", "4+3", "3+3", "3+2+2", "3+2+1+1", "3+1+1+1+1", "1+1+1+1+1+1+1"] {
            assert!(found.iter().any(|m| m == expected), "{expected} is missing in {found:?}");
        }
        assert!(!found.contains(&"3+2+1".to_owned()) && !found.contains(&"3+1+1+1".to_owned()));
    }

    #[test]
    fn maximal_multisets_are_the_undominated_ones_of_all_layouts() {
        for id in board_ids() {
            let board = board(id).unwrap();
            let all: BTreeSet<Vec<u32>> = layouts(&board, |_| true)
                .iter()
                .map(|layout| {
                    let mut counts = vec![0; board.profiles.len()];
                    layout.iter().for_each(|p| counts[p.profile] += 1);
                    counts
                })
                .collect();
            let contains = |a: &Vec<u32>, b: &Vec<u32>| a != b && a.iter().zip(b).all(|(x, y)| x >= y);
            let expected: Vec<Vec<u32>> =
                all.iter().rev().filter(|m| !all.iter().any(|o| contains(o, m))).cloned().collect();
            assert_eq!(maximal_multisets(&board, |_| true), expected, "{id}");
        }
    }

    #[test]
    fn exactly_the_multisets_of_layouts_can_be_placed() {
        let a100 = board("a100-80gb-pcie").unwrap();
        let all: BTreeSet<Vec<usize>> = layouts(&a100, |_| true)
            .iter()
            .map(|layout| {
                let mut profiles: Vec<usize> = layout.iter().map(|p| p.profile).collect();
                profiles.sort_unstable();
                profiles
            })
            .collect();
        let mut tried = vec![vec![]];
        for _ in 0..4 {
            for profiles in &tried {
                assert_eq!(place(&a100, profiles).is_some(), all.contains(profiles), "{profiles:?}");
            }
            tried = tried
                .iter()
                .flat_map(|m: &Vec<usize>| {
                    let from = m.last().copied().unwrap_or(0);
                    (from..a100.profiles.len()).map(move |p| [m.as_slice(), &[p]].concat())
                })
                .collect();
        }
    }

    #[test]
    fn placement_is_the_first_legal_one_in_the_order_given() {
        let a100 = board("a100-80gb-pcie").unwrap();
        let index = |name: &str| a100.profiles.iter().position(|p| p.name == name).unwrap();
        let by_name = |names: &[&str]| {
            let profiles: Vec<usize> = names.iter().map(|n| index(n)).collect();
            place(&a100, &profiles)
        };
        assert_eq!(by_name(&[]), Some(vec![]));
        assert_eq!(by_name(&["1g.10gb", "3g.40gb", "2g.20gb"]), Some(vec![0, 4, 2]));
        // A 3g at 0 would leave the 4g no room, and gives way.
        assert_eq!(by_name(&["3g.40gb", "4g.40gb"]), Some(vec![4, 0]));
        assert_eq!(by_name(&["2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb"]), Some(vec![0, 2, 4, 6]));
        assert_eq!(by_name(&["1g.10gb"; 7]), Some(vec![0, 1, 2, 3, 4, 5, 6]));
        // The driver's own refusal: seven compute slices, but 3g occupies four of eight memory slices.
        assert_eq!(by_name(&["3g.40gb", "3g.40gb", "1g.10gb"]), None);
        assert_eq!(by_name(&["1g.10gb"; 8]), None);
        assert_eq!(by_name(&["4g.40gb", "4g.40gb"]), None);
        assert_eq!(place(&a100, &[99]), None);
    }

    #[test]
    fn at_most_one_instance_has_media_extensions() {
        let a30 = board("a30-24gb").unwrap();
        let index = |name: &str| a30.profiles.iter().position(|p| p.name == name).unwrap();
        assert_eq!(place(&a30, &[index("1g.6gb+me"), index("1g.6gb")]), Some(vec![0, 1]));
        assert_eq!(place(&a30, &[index("1g.6gb+me"), index("2g.12gb+me")]), None);
        assert_eq!(place(&a30, &[index("1g.6gb+me"), index("1g.6gb+me")]), None);
    }

    #[test]
    fn all_media_engines_tolerate_only_instances_without_any() {
        let rtx = board("rtx-pro-6000-blackwell").unwrap();
        let index = |name: &str| rtx.profiles.iter().position(|p| p.name == name).unwrap();
        let all = index("1g.24gb+me.all");
        assert_eq!(place(&rtx, &[all, index("1g.24gb-me"), index("2g.48gb-me")]), Some(vec![0, 3, 6]));
        assert_eq!(place(&rtx, &[all, index("1g.24gb")]), None);
        assert_eq!(place(&rtx, &[index("2g.48gb+gfx"), all]), None);
        assert_eq!(place(&rtx, &[all, index("2g.48gb+me.all")]), None);
    }
}
