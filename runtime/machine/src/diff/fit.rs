//! Wished instances + present ones → a place for each wish, with as few present ones lost as possible.
//!
//! Instances that must stay are bits that are taken. Every place of every wish has a worth of its own, so
//! the best whole is found exactly: the best for the wishes from one on depends only on the slices taken.

use crate::observed::ObservedInstance;
use crate::target::TargetInstance;
use ent_plan::device::{Board, MAX_MEMORY_SLICES};

/// An instance on the GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Present<'a> {
    /// As the driver tells it.
    pub(super) instance: &'a ObservedInstance,
    /// The service it carries, as our state says.
    pub(super) service: Option<&'a str>,
    /// Whether a process sits on it.
    pub(super) is_busy: bool,
}

impl Present<'_> {
    /// The memory slices it occupies, as bits.
    pub(super) fn mask(&self) -> u32 {
        mask(self.instance.start, self.instance.size)
    }

    /// Whether it lacks a compute instance, as after a creation that stopped half-way.
    pub(super) fn is_orphan(&self) -> bool {
        self.instance.compute_instances.is_empty()
    }

    /// Whether a wish can be had by leaving it, or by adding the compute instance it lacks. A compute
    /// instance that is too narrow will not do, except where an earlier machine is restored: entc creates
    /// none, so it was there before.
    fn realises(&self, wish: &TargetInstance) -> bool {
        let is_as_wished = self.instance.profile == wish.profile
            && (!wish.is_fixed || (self.instance.start, self.instance.size) == (wish.start, wish.size));
        let is_whole = matches!(self.instance.compute_instances.as_slice(), [] | [_])
            && self.instance.compute_instances.iter().all(|compute| compute.is_whole);
        is_as_wished && (is_whole || wish.is_fixed)
    }
}

/// Where a wish goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// First memory slice.
    pub(super) start: u32,
    /// Memory slices.
    pub(super) size: u32,
    /// The present instance (its index) that is it already.
    pub(super) present: Option<usize>,
}

/// The memory slices of an instance, as bits. What lies beyond the longest axis collides with nothing.
pub(super) fn mask(start: u32, size: u32) -> u32 {
    (start..start.saturating_add(size).min(MAX_MEMORY_SLICES)).fold(0, |bits, slice| bits | (1 << slice))
}

/// A place of one wish and what it is worth.
struct Choice {
    place: Place,
    mask: u32,
    worth: u64,
}

/// No placement of the remaining wishes exists.
const NONE: u64 = u64::MAX;
/// Not looked at yet.
const OPEN: u64 = u64::MAX - 1;

/// A place for every wish, in their order; `None` when they have none beside the slices already taken.
///
/// Best is, in this order: most `ours` kept (so fewest destroyed), most of them with the service they
/// carry already, most of them busy, most wishes where the plan puts them; among equals the wishes that come
/// first get the lowest starts. Without a `board` nothing can be created, only kept.
pub(super) fn fit(
    board: Option<&Board>,
    wishes: &[TargetInstance],
    ours: &[Present<'_>],
    taken: u32,
) -> Option<Vec<Place>> {
    let choices: Vec<Vec<Choice>> = wishes.iter().map(|wish| choices(board, wish, ours)).collect();
    let used = choices.iter().flatten().fold(taken, |bits, choice| bits | choice.mask);
    let axis = u32::BITS - used.leading_zeros();
    if wishes.len() > axis as usize {
        return None;
    }
    let mut search = Search { choices: &choices, axis, best: vec![OPEN; wishes.len() << axis] };
    let mut taken = taken;
    if search.worth(0, taken) == NONE {
        return None;
    }
    let mut places = Vec::with_capacity(wishes.len());
    for (index, choices) in choices.iter().enumerate() {
        let wanted = search.worth(index, taken);
        let choice = choices.iter().find(|choice| {
            choice.mask & taken == 0
                && search.worth(index + 1, taken | choice.mask).checked_add(choice.worth) == Some(wanted)
        })?;
        taken |= choice.mask;
        places.push(choice.place);
    }
    Some(places)
}

struct Search<'a> {
    choices: &'a [Vec<Choice>],
    axis: u32,
    /// The worth of the best placement by first wish and taken slices.
    best: Vec<u64>,
}

impl Search<'_> {
    /// The worth of the best placement of the wishes from `index` on.
    fn worth(&mut self, index: usize, taken: u32) -> u64 {
        let Some(choices) = self.choices.get(index) else { return 0 };
        let key = (index << self.axis) | taken as usize;
        if self.best[key] == OPEN {
            let mut best = None;
            for choice in choices.iter().filter(|choice| choice.mask & taken == 0) {
                let rest = self.worth(index + 1, taken | choice.mask);
                if rest != NONE {
                    best = best.max(Some(choice.worth + rest));
                }
            }
            self.best[key] = best.unwrap_or(NONE);
        }
        self.best[key]
    }
}

/// The places of one wish, by start: the legal ones of the catalogue, and every instance that is it already,
/// wherever the driver let it be.
fn choices(board: Option<&Board>, wish: &TargetInstance, ours: &[Present<'_>]) -> Vec<Choice> {
    // One digit for each criterion, wide enough for as many wishes as an axis has slices.
    let digit = |is_so: bool, at: u32| u64::from(is_so) << (8 * at);
    let kept =
        ours.iter().enumerate().filter(|(_, present)| present.realises(wish)).map(|(index, present)| {
            let same = wish.service.is_some() && present.service == wish.service.as_deref();
            let (start, size) = (present.instance.start, present.instance.size);
            Choice {
                place: Place { start, size, present: Some(index) },
                mask: present.mask(),
                worth: digit(true, 3)
                    + digit(same, 2)
                    + digit(present.is_busy, 1)
                    + digit(start == wish.start, 0),
            }
        });
    let mut choices: Vec<Choice> = kept.collect();
    if let Some((board, profile)) = board.and_then(|b| Some((b, b.profile(&wish.profile)?))) {
        let size = profile.n_memory_slices;
        for &start in &profile.starts {
            let is_inside = start.checked_add(size).is_some_and(|end| end <= board.n_memory_slices);
            let is_free = !choices.iter().any(|choice| choice.place.start == start);
            if is_inside && is_free && (!wish.is_fixed || start == wish.start) {
                let place = Place { start, size, present: None };
                choices.push(Choice { place, mask: mask(start, size), worth: digit(start == wish.start, 0) });
            }
        }
    }
    choices.retain(|choice| choice.mask != 0);
    choices.sort_by_key(|choice| choice.place.start);
    choices
}
