//! Wished profiles → all places they can have together, by trying; and so the fewest instances that must go.
//!
//! A second opinion: it knows neither `diff` nor the catalogue's enumeration of layouts, only where each
//! profile may start.

use ent_plan::device::{Board, Layout, PlacedProfile};
use std::collections::BTreeMap;

/// Profiles by index of [`Board::profiles`], ascending.
pub(crate) type Multiset = Vec<usize>;

pub(crate) fn multiset(layout: &Layout) -> Multiset {
    let mut profiles: Vec<usize> = layout.iter().map(|placed| placed.profile).collect();
    profiles.sort_unstable();
    profiles
}

/// All placements of the multisets that were asked for.
pub(crate) struct Placements<'a> {
    board: &'a Board,
    known: BTreeMap<Multiset, Vec<Layout>>,
}

impl<'a> Placements<'a> {
    pub(crate) fn of(board: &'a Board) -> Self {
        Self { board, known: BTreeMap::new() }
    }

    /// The fewest instances of `from` that are lost when it becomes what `to` consists of, wherever that goes.
    pub(crate) fn least(&mut self, from: &Layout, to: &Layout) -> usize {
        let profiles = multiset(to);
        let board = self.board;
        let all = self.known.entry(profiles).or_insert_with_key(|profiles| {
            let mut found = Vec::new();
            place(board, profiles, &mut Vec::new(), &mut found);
            found
        });
        let lost = |layout: &Layout| from.iter().filter(|one| !layout.contains(one)).count();
        all.iter().map(lost).min().expect("a layout is a placement of its own profiles")
    }
}

/// Puts the first profile everywhere it may start and does not overlap; equal ones in ascending order, so that
/// each placement is found once.
fn place(board: &Board, profiles: &[usize], placed: &mut Layout, found: &mut Vec<Layout>) {
    let Some((&profile, rest)) = profiles.split_first() else { return found.push(placed.clone()) };
    let size = |profile: usize| board.profiles[profile].n_memory_slices;
    for &start in &board.profiles[profile].starts {
        let is_behind = placed.last().is_none_or(|last| last.profile != profile || last.start < start);
        let overlaps =
            |one: &PlacedProfile| one.start < start + size(profile) && start < one.start + size(one.profile);
        if is_behind && !placed.iter().any(overlaps) {
            placed.push(PlacedProfile { profile, start });
            place(board, rest, placed, found);
            placed.pop();
        }
    }
}

#[test]
fn placements_of_small_wishes_are_as_counted_by_hand() {
    let a100 = ent_plan::device::board("a100-80gb-pcie").unwrap();
    let count = |names: &[&str]| {
        let index = |name: &&str| a100.profiles.iter().position(|p| p.name == *name).unwrap();
        let mut profiles: Multiset = names.iter().map(index).collect();
        profiles.sort_unstable();
        let mut found = Vec::new();
        place(&a100, &profiles, &mut Vec::new(), &mut found);
        found.len()
    };
    assert_eq!(count(&["1g.10gb"; 7]), 1);
    assert_eq!(count(&["1g.10gb"; 6]), 7);
    assert_eq!(count(&["3g.40gb", "4g.40gb"]), 1);
    // A 3g on the left leaves a 2g one place and a 1g three; on the right, two places of two slices each.
    assert_eq!(count(&["3g.40gb", "2g.20gb"]), 3);
    assert_eq!(count(&["3g.40gb", "3g.40gb", "1g.10gb"]), 0);
}
