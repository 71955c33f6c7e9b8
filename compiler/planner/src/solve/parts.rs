//! One service's cells and prices → the cheapest sets of instances that share its rate in equal parts.
//!
//! Mean power under queueing is no multiple of the rate, so a cover's price depends on who serves how
//! much. With a rate cut into a few parts, an instance that serves k of them has one price, whatever the
//! others do: a cover is a multiset of such *servings* whose parts add up, and its price is their sum.
//! The best completion of a partial cover is then known exactly, so that hardly a step of the search is
//! wasted.

use super::covers::Search;
use super::kept::Kept;
use crate::problem::RATE_PARTS;

/// An instance that serves some parts of the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    /// Index into the service's points.
    pub(super) point: usize,
    /// Its cell.
    pub(super) cell: usize,
    /// Parts it serves, 1 ..= [`RATE_PARTS`].
    pub(super) parts: usize,
    /// Its price. Not negative.
    pub(super) price: f64,
    /// Whether the price is exact, not a lower bound.
    pub(super) is_exact: bool,
}

/// Servings that together make the whole rate.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    pub(super) servings: Vec<Serving>,
    pub(super) price: f64,
}

/// What a search found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Covers, cheapest first.
    pub(super) covers: Vec<Cover>,
    /// Every cover cheaper than this is among `covers`, or beaten by one with the same cells.
    pub(super) complete_below: f64,
}

/// Finds the cheapest covers.
pub(super) fn covers(mut servings: Vec<Serving>, search: Search) -> Found {
    servings.sort_by(|a, b| {
        b.parts
            .cmp(&a.parts)
            .then(a.price.total_cmp(&b.price))
            .then(a.cell.cmp(&b.cell))
            .then(a.point.cmp(&b.point))
    });
    let first: Vec<usize> =
        (0..=RATE_PARTS).map(|parts| servings.partition_point(|s| s.parts > parts)).collect();
    let mut state = State {
        completion: completion(&servings, &first),
        servings: &servings,
        first: &first,
        search,
        kept: Kept::new(search),
        steps: search.steps,
        stack: Vec::new(),
    };
    state.extend(0, RATE_PARTS, 0.0);
    state.finish()
}

/// At `[most][left]`: the least price of serving `left` parts by servings of at most `most` each.
fn completion(servings: &[Serving], first: &[usize]) -> Vec<Vec<f64>> {
    let mut table = vec![vec![f64::INFINITY; RATE_PARTS + 1]; RATE_PARTS + 1];
    table[0][0] = 0.0;
    for most in 1..=RATE_PARTS {
        let mut own = table[most - 1].clone();
        // The cheapest serving of so many parts is the first of its kind.
        if let Some(serving) = servings.get(first[most]).filter(|s| s.parts == most) {
            for left in most..=RATE_PARTS {
                own[left] = own[left].min(own[left - most] + serving.price);
            }
        }
        table[most] = own;
    }
    table
}

struct State<'a> {
    servings: &'a [Serving],
    /// By number of parts: where the servings of so many begin.
    first: &'a [usize],
    completion: Vec<Vec<f64>>,
    search: Search,
    kept: Kept,
    steps: usize,
    stack: Vec<usize>,
}

impl State<'_> {
    /// Covers from a serving on, in order of falling parts.
    fn extend(&mut self, from: usize, left: usize, price: f64) {
        let count = self.stack.len();
        let more = (self.search.replicas.1 as usize).saturating_sub(count);
        let least = (self.search.replicas.0 as usize).saturating_sub(count);
        if more == 0 || left < least {
            return;
        }
        let widest = self.servings.get(from).map_or(0, |s| s.parts).min(left);
        for parts in (1..=widest).rev() {
            if more.saturating_mul(parts) < left {
                return;
            }
            let begin = self.first[parts].max(from);
            let end = self.first[parts - 1];
            for index in begin..end {
                let with = price + self.servings[index].price;
                let lower = with + self.completion[parts][left - parts];
                if lower >= self.kept.cutoff {
                    break;
                }
                if self.steps == 0 {
                    self.kept.miss(price + self.completion[parts][left]);
                    return;
                }
                self.steps -= 1;
                self.stack.push(index);
                if left > parts {
                    self.extend(index, left - parts, with);
                } else if least <= 1 {
                    self.record(with);
                }
                self.stack.pop();
            }
        }
    }

    fn record(&mut self, price: f64) {
        self.kept.record(price, &self.stack, |index| self.servings[index].cell);
    }

    fn finish(self) -> Found {
        let (kept, complete_below) = self.kept.finish();
        let cover = |(price, stack): (f64, Vec<usize>)| Cover {
            servings: stack.iter().map(|&i| self.servings[i]).collect(),
            price,
        };
        Found { covers: kept.into_iter().map(cover).collect(), complete_below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheapest_cover_equals_exhaustive_search() {
        let mut state = 11u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        for round in 0..60 {
            // Prices of any shape: nothing is assumed of how they grow with the parts.
            let mut servings = Vec::new();
            for cell in 0..3 {
                let most = 1 + (next() * RATE_PARTS as f64) as usize;
                servings.extend((1..=most.min(RATE_PARTS)).map(|parts| Serving {
                    point: cell,
                    cell,
                    parts,
                    price: 0.2 + next(),
                    is_exact: true,
                }));
            }
            let replicas = [(1, 3), (2, 3), (1, 1), (3, 3)][round % 4];
            let search =
                Search { replicas, cutoff: 1e9, keep: 100_000, steps: 10_000_000, one_per_cells: false };
            let found = covers(servings.clone(), search);
            let mut all: Vec<f64> = Vec::new();
            let mut stack = vec![(0, 0, 0u32, 0.0)];
            while let Some((from, parts, count, price)) = stack.pop() {
                if parts == RATE_PARTS && count >= replicas.0 {
                    all.push(price);
                }
                if count < replicas.1 {
                    for (at, s) in servings.iter().enumerate().skip(from) {
                        if parts + s.parts <= RATE_PARTS {
                            stack.push((at, parts + s.parts, count + 1, price + s.price));
                        }
                    }
                }
            }
            all.sort_by(f64::total_cmp);
            let prices: Vec<f64> = found.covers.iter().map(|c| c.price).collect();
            assert_eq!(prices.len(), all.len());
            assert!(prices.iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-9));
            // A cut search says how far it saw.
            let few = covers(servings, Search { keep: 3, ..search });
            let unseen = all.get(few.covers.len()).copied().unwrap_or(f64::INFINITY);
            assert!(few.complete_below <= unseen + 1e-9);
        }
    }
}
