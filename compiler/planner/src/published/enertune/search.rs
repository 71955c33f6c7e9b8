//! The cheapest combination of rows, one for each service, within the free slices of a board.
//!
//! The original prices the full product. Here rows that another row makes pointless are left out, and
//! branches that cannot be cheaper are not followed; the result is the same, the first of equals too.

use super::cost::Price;

/// A row that a service could use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    /// Index into the service's rows.
    pub(super) row: usize,
    pub(super) slices: u32,
    pub(super) own: f64,
    pub(super) latency: f64,
}

/// Leaves out rows that are no better than another in anything. Between rows that could cost the same,
/// the first stays.
pub(super) fn undominated(candidates: &[Candidate]) -> Vec<Candidate> {
    let beats = |a: &Candidate, b: &Candidate| {
        a.slices <= b.slices && a.own <= b.own && a.latency <= b.latency && (a.own < b.own || a.row < b.row)
    };
    candidates.iter().filter(|c| !candidates.iter().any(|other| beats(other, c))).copied().collect()
}

/// What is already on the board.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    pub(super) own: f64,
    pub(super) latency: f64,
}

pub(super) struct Search<'a> {
    price: Price,
    lists: &'a [&'a [Candidate]],
    /// Least slices, and least own part, of the lists from here on.
    least: Vec<(u32, f64)>,
    chosen: Vec<usize>,
    best: Option<(f64, Vec<usize>)>,
    pub(super) work: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(price: Price, lists: &'a [&'a [Candidate]]) -> Self {
        let mut least = vec![(0u32, 0.0f64)];
        for list in lists.iter().rev() {
            let slices = list.iter().map(|c| c.slices).min().unwrap_or(u32::MAX);
            let own = list.iter().map(|c| c.own).fold(f64::INFINITY, f64::min);
            let (s, o) = least.last().copied().unwrap_or_default();
            least.push((s.saturating_add(slices), o + own));
        }
        least.reverse();
        Self { price, lists, least, chosen: Vec::new(), best: None, work: 0 }
    }

    /// The least cost, and one row for each list; `None` when nothing fits.
    pub(super) fn run(
        mut self,
        present: Present,
        free: u32,
        max_work: u64,
    ) -> (Option<(f64, Vec<usize>)>, u64) {
        self.descend(present, free, max_work);
        (self.best, self.work)
    }

    fn descend(&mut self, so_far: Present, free: u32, max_work: u64) {
        let depth = self.chosen.len();
        let (slices, own) = self.least[depth];
        let bound = self.price.of(so_far.own + own, so_far.latency);
        if slices > free || self.work >= max_work || self.best.as_ref().is_some_and(|b| bound >= b.0) {
            return;
        }
        self.work += 1;
        let lists = self.lists;
        let Some(list) = lists.get(depth) else {
            self.best = Some((bound, self.chosen.clone()));
            return;
        };
        for candidate in list.iter().filter(|c| c.slices <= free) {
            self.chosen.push(candidate.row);
            let next =
                Present { own: so_far.own + candidate.own, latency: so_far.latency.max(candidate.latency) };
            self.descend(next, free - candidate.slices, max_work);
            self.chosen.pop();
        }
    }
}
