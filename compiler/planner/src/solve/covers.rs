//! One service's points and prices → the cheapest sets of instances that serve its rate.
//!
//! A *cover* is a multiset of points whose admissible rates add up to at least the service's rate. With
//! an energy price the cheapest points are filled first, so only the last instance (the one with the
//! dearest energy) runs below its admissible rate. Searching covers instead of letting the solver round
//! instance counts is what makes the bound strong: the linear relaxation of "counts that cover a rate"
//! uses fractions of instances, that of "choose one cover" does not.

use super::kept::Kept;

/// A point with its prices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Index into the service's points.
    pub(crate) point: usize,
    /// Its cell; covers with the same cells compete.
    pub(crate) cell: usize,
    /// Price of one instance, however little it serves. Not negative.
    pub(crate) fixed: f64,
    /// Price of serving the whole rate of the service. Not negative.
    pub(crate) variable: f64,
    /// Share of the service's rate it can serve, at most 1.
    pub(crate) capacity: f64,
}

/// A multiset of points that serves the rate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cover {
    /// Points, the one with the dearest energy last; repeated for several instances.
    pub(crate) points: Vec<usize>,
    /// Its price.
    pub(crate) price: f64,
}

/// What a search may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    /// Least and most instances.
    pub(crate) replicas: (u32, u32),
    /// Only covers strictly cheaper than this.
    pub(crate) cutoff: f64,
    /// At most this many covers.
    pub(crate) keep: usize,
    /// At most this many search steps.
    pub(crate) steps: usize,
    /// Keep only the cheapest cover of each multiset of cells.
    pub(crate) one_per_cells: bool,
}

/// What a search found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Covers, cheapest first.
    pub(crate) covers: Vec<Cover>,
    /// Every cover cheaper than this is among `covers` (or beaten by one with the same cells).
    pub(crate) complete_below: f64,
}

/// Most instances of an enumerated cover: slow points make covers of thousands, and nobody wants them.
const MOST_INSTANCES: u32 = 32;

/// Slack of a rate that counts as served.
const SERVED: f64 = 1e-12;

/// Finds the cheapest covers.
pub(crate) fn covers(items: &[Item], search: Search) -> Found {
    let mut items: Vec<Item> = items.iter().copied().filter(|i| i.capacity > SERVED).collect();
    let ratio = |i: &Item| i.fixed / i.capacity + i.variable;
    items.sort_by(|a, b| {
        a.variable.total_cmp(&b.variable).then(ratio(a).total_cmp(&ratio(b))).then(a.point.cmp(&b.point))
    });
    // Least price per unit of rate from this item on: no completion can be cheaper.
    let mut least = vec![f64::INFINITY; items.len() + 1];
    for (index, item) in items.iter().enumerate().rev() {
        least[index] = ratio(item).min(least[index + 1]);
    }
    let completion = completion(&items);
    let mut state = State {
        items: &items,
        least: &least,
        completion: &completion,
        search,
        kept: Kept::new(search),
        steps: search.steps,
        stack: Vec::new(),
    };
    state.extend(0, 1.0, 0.0);
    state.finish()
}

/// Steps of the completion table.
const GRID: usize = 256;

/// A lower bound on the price of serving the last `j / GRID` of the rate, at index `j`: the covering
/// knapsack by dynamic programming, every capacity rounded up to the grid.
fn completion(items: &[Item]) -> Vec<f64> {
    let mut table = vec![0.0; GRID + 1];
    for j in 1..=GRID {
        let need = j as f64 / GRID as f64;
        let mut best = f64::INFINITY;
        for item in items {
            let covered = ((item.capacity * GRID as f64).ceil() as usize).max(1);
            let price =
                item.fixed + item.variable * item.capacity.min(need) + table[j.saturating_sub(covered)];
            best = best.min(price);
        }
        table[j] = best;
    }
    table
}

struct State<'a> {
    items: &'a [Item],
    least: &'a [f64],
    completion: &'a [f64],
    search: Search,
    kept: Kept,
    steps: usize,
    stack: Vec<usize>,
}

impl State<'_> {
    fn extend(&mut self, from: usize, need: f64, price: f64) {
        for index in from..self.items.len() {
            // INVARIANT: `least` does not decrease with the index, so no later item can do better.
            let lower = price + need * self.least[index];
            if lower >= self.kept.cutoff {
                return;
            }
            if self.steps == 0 {
                self.kept.miss(lower);
                return;
            }
            self.steps -= 1;
            let item = self.items[index];
            let served = item.capacity.min(need);
            let with = price + item.fixed + item.variable * served;
            if with >= self.kept.cutoff {
                continue;
            }
            let left = need - served;
            if with + self.completion[(left.max(0.0) * GRID as f64) as usize] >= self.kept.cutoff {
                continue;
            }
            self.stack.push(index);
            let count = u32::try_from(self.stack.len()).unwrap_or(u32::MAX);
            if left <= SERVED && count >= self.search.replicas.0 {
                self.record(with);
            } else if count >= MOST_INSTANCES.max(self.search.replicas.0) {
                self.kept.miss(with);
            } else if count < self.search.replicas.1 {
                self.extend(index, left.max(0.0), with);
            }
            self.stack.pop();
        }
    }

    fn record(&mut self, price: f64) {
        self.kept.record(price, &self.stack, |index| self.items[index].cell);
    }

    fn finish(self) -> Found {
        let (kept, complete_below) = self.kept.finish();
        let cover = |(price, stack): (f64, Vec<usize>)| Cover {
            points: stack.iter().map(|&i| self.items[i].point).collect(),
            price,
        };
        Found { covers: kept.into_iter().map(cover).collect(), complete_below }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(point: usize, fixed: f64, variable: f64, capacity: f64) -> Item {
        Item { point, cell: point, fixed, variable, capacity }
    }

    fn search(cutoff: f64) -> Search {
        Search { replicas: (1, 8), cutoff, keep: 1000, steps: 1_000_000, one_per_cells: false }
    }

    #[test]
    fn one_instance_beats_two_when_it_is_cheaper() {
        let items = [item(0, 5.0, 0.0, 1.0), item(1, 3.0, 0.0, 0.6)];
        let found = covers(&items, search(100.0));
        assert_eq!(found.covers[0], Cover { points: vec![0], price: 5.0 });
        assert_eq!(found.covers[1], Cover { points: vec![1, 1], price: 6.0 });
    }

    #[test]
    fn dearest_energy_runs_last_and_partly() {
        let items = [item(0, 0.0, 10.0, 0.7), item(1, 0.0, 2.0, 0.6)];
        let found = covers(&items, search(100.0));
        // 0.6 at 2 and 0.4 at 10; two of the cheap one are better still.
        assert_eq!(found.covers[0].points, vec![1, 1]);
        assert!((found.covers[0].price - 2.0).abs() < 1e-12);
        let mixed = found.covers.iter().find(|c| c.points == vec![1, 0]).unwrap();
        assert!((mixed.price - 5.2).abs() < 1e-12);
    }

    #[test]
    fn cheapest_cover_equals_exhaustive_search() {
        // Deterministic pseudo-random instances, compared with all multisets of up to four.
        let mut state = 7u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        for _ in 0..50 {
            let items: Vec<Item> = (0..6).map(|p| item(p, next(), next(), 0.26 + 0.8 * next())).collect();
            let found = covers(&items, Search { replicas: (1, 4), ..search(1e9) });
            let mut best = f64::INFINITY;
            let mut stack = vec![Vec::new()];
            while let Some(set) = stack.pop() {
                let last = set.last().copied().unwrap_or(0);
                if set.len() < 4 {
                    for next in last..items.len() {
                        let mut bigger: Vec<usize> = set.clone();
                        bigger.push(next);
                        stack.push(bigger);
                    }
                }
                let mut order: Vec<Item> = set.iter().map(|&i| items[i]).collect();
                order.sort_by(|a, b| a.variable.total_cmp(&b.variable));
                let mut need = 1.0;
                let mut price = 0.0;
                for i in order {
                    let served = i.capacity.min(1.0).min(need);
                    price += i.fixed + i.variable * served;
                    need -= served;
                }
                if need <= 1e-12 {
                    best = best.min(price);
                }
            }
            assert!((found.covers[0].price - best).abs() < 1e-9, "{} {best}", found.covers[0].price);
        }
    }

    #[test]
    fn completeness_is_claimed_only_as_far_as_searched() {
        let items: Vec<Item> = (0..20).map(|p| item(p, 1.0 + p as f64, 0.0, 0.51)).collect();
        let all = covers(&items, search(1e9));
        assert!(all.complete_below >= 1e9);
        let few = covers(&items, Search { keep: 5, ..search(1e9) });
        assert_eq!(few.covers.len(), 5);
        assert!(few.complete_below <= all.covers[5].price + 1e-12);
        assert!(few.covers.iter().all(|c| c.price <= few.complete_below));
    }
}
