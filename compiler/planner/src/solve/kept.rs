//! Covers as a search finds them → the cheapest of them, and from which price on some are missing.
//!
//! A cover is here what the search calls it: a list of indices. Twice as many as asked for are held before the
//! dearest go, so that sorting is rare.

use super::covers::Search;
use std::collections::BTreeMap;

/// The cheapest covers so far.
pub(super) struct Kept {
    search: Search,
    found: Vec<(f64, Vec<usize>)>,
    by_cells: BTreeMap<Vec<usize>, (f64, Vec<usize>)>,
    /// Only covers strictly cheaper than this are still wanted.
    pub(super) cutoff: f64,
    /// Every cover cheaper than this is held, or beaten by one with the same cells.
    pub(super) incomplete_from: f64,
}

impl Kept {
    pub(super) fn new(search: Search) -> Self {
        Self {
            search,
            found: Vec::new(),
            by_cells: BTreeMap::new(),
            cutoff: search.cutoff,
            incomplete_from: search.cutoff,
        }
    }

    /// Says that covers from this price on may be missing.
    pub(super) fn miss(&mut self, price: f64) {
        self.incomplete_from = self.incomplete_from.min(price);
    }

    /// Takes a cover; `cell` tells the cell of each of its indices.
    pub(super) fn record(&mut self, price: f64, stack: &[usize], cell: impl Fn(usize) -> usize) {
        let (keep, most) = (self.search.keep, self.search.keep.saturating_mul(2));
        if self.search.one_per_cells {
            let mut cells: Vec<usize> = stack.iter().map(|&index| cell(index)).collect();
            cells.sort_unstable();
            match self.by_cells.get_mut(&cells) {
                Some(best) if best.0 <= price => {}
                Some(best) => *best = (price, stack.to_vec()),
                None => {
                    self.by_cells.insert(cells, (price, stack.to_vec()));
                }
            }
            if self.by_cells.len() > most {
                let mut all: Vec<_> = std::mem::take(&mut self.by_cells).into_iter().collect();
                all.sort_by(|a, b| a.1.0.total_cmp(&b.1.0).then_with(|| a.0.cmp(&b.0)));
                self.tighten(all.get(keep).map(|c| c.1.0));
                all.truncate(keep);
                self.by_cells = all.into_iter().collect();
            }
        } else {
            self.found.push((price, stack.to_vec()));
            if self.found.len() > most {
                self.found.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
                self.tighten(self.found.get(keep).map(|c| c.0));
                self.found.truncate(keep);
            }
        }
    }

    /// Covers from this price on are no longer all kept.
    fn tighten(&mut self, price: Option<f64>) {
        if let Some(price) = price {
            self.cutoff = self.cutoff.min(price);
            self.miss(price);
        }
    }

    /// Prices and covers, cheapest first, and the price below which none is missing.
    pub(super) fn finish(mut self) -> (Vec<(f64, Vec<usize>)>, f64) {
        let mut all = std::mem::take(&mut self.found);
        all.extend(std::mem::take(&mut self.by_cells).into_values());
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        self.tighten(all.get(self.search.keep).map(|c| c.0));
        all.truncate(self.search.keep);
        (all, self.incomplete_from)
    }
}
