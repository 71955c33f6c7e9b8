//! Every layout × every layout → the fewest instances that any placement of the wish destroys.

use crate::model::{At, Model, cut, machine, ours, wish};
use ent_machine::diff::diff;
use ent_plan::device::{Board, Layout, board, layouts, maximal_layouts};
use std::collections::BTreeMap;

fn names<'a>(board: &'a Board, layout: &Layout) -> Vec<At<'a>> {
    layout.iter().map(|placed| (board.profiles[placed.profile].name.as_str(), placed.start)).collect()
}

fn multiset(layout: &Layout) -> Vec<usize> {
    let mut profiles: Vec<usize> = layout.iter().map(|placed| placed.profile).collect();
    profiles.sort_unstable();
    profiles
}

/// All layouts of a board by multiset: every placement of a wish is one of them.
struct Placements<'a> {
    board: &'a Board,
    by_multiset: BTreeMap<Vec<usize>, Vec<Layout>>,
}

impl<'a> Placements<'a> {
    fn new(board: &'a Board, allowed: impl Fn(usize) -> bool) -> Self {
        let mut by_multiset: BTreeMap<Vec<usize>, Vec<Layout>> = BTreeMap::new();
        for layout in layouts(board, allowed) {
            by_multiset.entry(multiset(&layout)).or_default().push(layout);
        }
        Self { board, by_multiset }
    }

    /// The fewest of `ours` that any placement of the wish beside `foreign` destroys; `None` without one.
    fn least(&self, wish: &Layout, ours: &Layout, foreign: &Layout) -> Option<usize> {
        let all = multiset(&[wish.as_slice(), foreign.as_slice()].concat());
        let placements = self.by_multiset.get(&all)?.iter();
        let beside = placements.filter(|layout| foreign.iter().all(|other| layout.contains(other)));
        // A foreign instance is in the whole layout, and is none of those that realise the wish.
        let lost = |layout: &Layout| {
            let is_lost = |one: &&_| !layout.contains(one);
            ours.iter().filter(is_lost).count()
        };
        beside.map(lost).min()
    }
}

/// Goes from one layout, of which some instances are foreign, to another and compares with the trial of all
/// placements.
fn compare(all: &Placements<'_>, model: &Model, from: &Layout, to: &Layout, foreign_bits: u32) -> bool {
    let board = all.board;
    let is_foreign = |index: usize| foreign_bits & (1 << index) != 0;
    let (foreign, own): (Vec<_>, Vec<_>) =
        from.iter().cloned().enumerate().partition(|(index, _)| is_foreign(*index));
    let strip = |list: Vec<(usize, _)>| -> Layout { list.into_iter().map(|(_, placed)| placed).collect() };
    let (foreign, own) = (strip(foreign), strip(own));
    let mut before = model.clone().with(0, &names(board, from));
    let state: Vec<(u32, At<'_>, &str)> = names(board, &own).into_iter().map(|at| (0, at, "")).collect();
    let state = ours(&before, &state);
    let wished: Vec<(At<'_>, &str)> = names(board, to).into_iter().map(|at| (at, "a")).collect();
    let target = wish(&[(0, cut(&board.id, &wished))]);
    let least = all.least(to, &own, &foreign);
    match diff(&target, &before.observed, &state) {
        Err(refusals) => {
            assert_eq!(least, None, "{} {from:?} -> {to:?}: {refusals:?}", board.id);
            assert!(refusals.iter().all(|refusal| refusal.code == "foreign-instance"), "{refusals:?}");
            false
        }
        Ok(changes) => {
            assert_eq!(Some(changes.n_destroyed()), least, "{} {from:?} -> {to:?}\n{changes}", board.id);
            before.perform(&changes.steps);
            let after: Layout = to_layout(board, &before);
            assert_eq!(multiset(&after), multiset(&[to.as_slice(), foreign.as_slice()].concat()));
            assert!(foreign.iter().all(|other| after.contains(other)), "a foreign instance was touched");
            true
        }
    }
}

fn to_layout(board: &Board, model: &Model) -> Layout {
    let instances = &model.observed.gpus[0].instances;
    let index = |name: &str| board.profiles.iter().position(|p| p.name == name).unwrap();
    instances
        .iter()
        .map(|i| ent_plan::device::PlacedProfile { profile: index(&i.profile), start: i.start })
        .collect()
}

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

#[test]
fn every_layout_of_an_a30_is_reached_from_every_other_with_the_fewest_destroyed() {
    let a30 = board("a30-24gb").unwrap();
    let model = machine(&["a30-24gb"]);
    let all = Placements::new(&a30, base(&a30));
    let every = layouts(&a30, base(&a30));
    let (mut reached, mut refused) = (0, 0);
    for from in &every {
        for to in &every {
            // Each subset of what is there in turn is somebody else's.
            for foreign in 0..1_u32 << from.len() {
                if compare(&all, &model, from, to, foreign) {
                    reached += 1;
                } else {
                    assert_ne!(foreign, 0);
                    refused += 1;
                }
            }
        }
    }
    assert_eq!(every.len(), 26);
    assert!(reached > 1000 && refused > 1000, "{reached} reached, {refused} refused");
}

#[test]
fn media_extensions_count_among_what_must_be_legal() {
    let a30 = board("a30-24gb").unwrap();
    let model = machine(&["a30-24gb"]);
    let all = Placements::new(&a30, |_| true);
    let every = layouts(&a30, |_| true);
    for (number, from) in every.iter().enumerate() {
        for to in every.iter().skip(number % 7).step_by(7) {
            for foreign in [0, 1, 2] {
                compare(&all, &model, from, to, foreign & ((1 << from.len()) - 1));
            }
        }
    }
}

#[test]
fn every_maximal_layout_of_an_a100_is_reached_from_every_other_with_the_fewest_destroyed() {
    for id in ["a100-80gb-pcie", "h100-80gb-sxm"] {
        let board = board(id).unwrap();
        let model = machine(&[id]);
        let all = Placements::new(&board, plain(&board));
        let maximal = maximal_layouts(&board, plain(&board));
        assert_eq!(maximal.len(), 19);
        for from in &maximal {
            for to in &maximal {
                assert!(compare(&all, &model, from, to, 0));
            }
        }
    }
}

/// The step between pairs that are tried; `ENT_EXHAUSTIVE=1` tries all.
fn stride(sampled: usize) -> usize {
    if std::env::var_os("ENT_EXHAUSTIVE").is_some() { 1 } else { sampled }
}

#[test]
fn any_layout_of_an_a100_is_reached_from_any_other_with_the_fewest_destroyed() {
    let a100 = board("a100-80gb-pcie").unwrap();
    let model = machine(&["a100-80gb-pcie"]);
    for (all, every, sampled) in [
        (Placements::new(&a100, plain(&a100)), layouts(&a100, plain(&a100)), 23),
        (Placements::new(&a100, base(&a100)), layouts(&a100, base(&a100)), 211),
    ] {
        let pairs = every.len() * every.len();
        for pair in (0..pairs).step_by(stride(sampled)) {
            let (from, to) = (&every[pair / every.len()], &every[pair % every.len()]);
            assert!(compare(&all, &model, from, to, 0));
            // Some of it is somebody else's: which, is the pair's own number.
            let bits = u32::try_from(pair % (1 << from.len())).unwrap();
            compare(&all, &model, from, to, bits);
        }
    }
}

#[test]
fn quarter_boards_with_twelve_slices_are_cut_as_well() {
    let rtx = board("rtx-pro-6000-blackwell").unwrap();
    let model = machine(&["rtx-pro-6000-blackwell"]);
    let all = Placements::new(&rtx, base(&rtx));
    let every = layouts(&rtx, base(&rtx));
    for from in &every {
        for to in &every {
            assert!(compare(&all, &model, from, to, 0));
        }
    }
}
