//! A good plan without a solver: local search over boards, optimal assignment of services to their slots.
//!
//! Each service is cut into the fewest equal pieces that fit an instance. For given boards (clock and
//! layout) the cheapest assignment of pieces to slots is a linear assignment problem; the search changes,
//! adds and removes one board at a time. Large programs are cut into groups of services that do not
//! share boards, and large rates into equal parts, so that time grows with the number of services only.

use super::Control;
use super::assign::{Costs, Workspace, assign};
use super::config::{Config, MeanPower};
use crate::problem::{Assignment, Problem};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Pieces planned together.
const GROUP: usize = 14;
/// Rounds of improvement of one group.
const ROUNDS: usize = 60;

/// How long a group is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// One start, no shaking: for programs with many groups.
    Little,
    /// Several starts, each shaken.
    Much,
}

/// One equal part of a service's rate.
#[derive(Clone, Copy, Debug)]
struct Piece {
    service: usize,
    rate: f64,
}

/// Finds a plan, if the search meets one.
pub(super) fn solve(
    problem: &Problem,
    mean: &MeanPower<'_>,
    control: &mut Control<'_>,
) -> Option<Assignment> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut counts = Vec::new();
    for (service, s) in problem.services.iter().enumerate() {
        let most = s.points.iter().map(|p| p.admissible).fold(0.0, f64::max);
        let n = (s.rate / most - 1e-9).ceil().max(f64::from(s.replicas.0)).max(1.0);
        if !n.is_finite() || n > f64::from(s.replicas.1) {
            return None;
        }
        counts.push(n);
        // Beyond a few equal instances, plan a few and repeat the outcome.
        pieces.push(Piece { service, rate: s.rate / n });
    }
    let total: f64 = counts.iter().sum();
    let copies = (total / (4.0 * problem.services.len().max(GROUP) as f64)).floor().max(1.0);
    let mut all = Vec::new();
    for (piece, n) in pieces.iter().zip(&counts) {
        // `parts` pieces in each of `copies` copies of the plan.
        let parts = (n / copies).ceil().max(1.0);
        let rate = problem.services[piece.service].rate / (parts * copies);
        all.extend(std::iter::repeat_n(Piece { service: piece.service, rate }, parts as usize));
    }
    let left: Vec<f64> = problem.classes.iter().map(|c| (f64::from(c.count) / copies).floor()).collect();
    let mut left: Vec<u32> = left.iter().map(|&n| n as u32).collect();
    let mut plan = Grouped::default();
    // Deal the pieces so that each group has large and small ones.
    all.sort_by(|a, b| size(problem, b).total_cmp(&size(problem, a)).then(a.service.cmp(&b.service)));
    let n_groups = all.len().div_ceil(GROUP).max(1);
    for group in 0..n_groups {
        let own: Vec<Piece> = all.iter().skip(group).step_by(n_groups).copied().collect();
        let effort = if n_groups > 2 || control.is_over() { Effort::Little } else { Effort::Much };
        let group = Group::new(problem, own);
        let best = group.search(&left, effort)?;
        for &pattern in &best.boards {
            left[problem.patterns[pattern].class] -= 1;
        }
        plan.add(&group, &best);
    }
    plan.assignment(problem, mean, copies as u32)
}

/// How much of a board a piece needs at the least: to deal pieces evenly.
fn size(problem: &Problem, piece: &Piece) -> f64 {
    problem.services[piece.service]
        .points
        .iter()
        .filter(|p| p.admissible >= piece.rate)
        .map(|p| slot_cost(problem, p.cell))
        .fold(f64::INFINITY, f64::min)
}

/// The least share of a board that a slot of a cell takes.
fn slot_cost(problem: &Problem, cell: usize) -> f64 {
    let most = problem
        .patterns
        .iter()
        .flat_map(|p| p.places.iter().filter(|(c, _)| *c == cell).map(|(_, n)| f64::from(*n)))
        .fold(0.0, f64::max);
    if most > 0.0 { 1.0 / most } else { f64::INFINITY }
}

/// The outcome of all groups.
#[derive(Default)]
struct Grouped {
    boards: BTreeMap<usize, u32>,
    points: BTreeMap<usize, Vec<usize>>,
}

impl Grouped {
    fn add(&mut self, group: &Group<'_>, state: &State) {
        for &pattern in &state.boards {
            *self.boards.entry(pattern).or_default() += 1;
        }
        for (piece, slot) in group.pieces.iter().zip(&state.slots) {
            if let Some((_, point)) = slot {
                self.points.entry(piece.service).or_default().push(*point);
            }
        }
    }

    fn assignment(self, problem: &Problem, mean: &MeanPower<'_>, copies: u32) -> Option<Assignment> {
        let boards = self.boards.into_iter().map(|(p, n)| (p, n * copies)).collect();
        let shares = (0..problem.services.len())
            .map(|service| {
                let one = self.points.get(&service).cloned().unwrap_or_default();
                let all: Vec<usize> = std::iter::repeat_n(one, copies as usize).flatten().collect();
                Config::new(problem, service, &all, mean).shares()
            })
            .collect();
        let assignment = Assignment { boards, shares };
        problem.violations(&assignment).is_empty().then_some(assignment)
    }
}

/// Pieces that are planned together.
struct Group<'a> {
    problem: &'a Problem,
    pieces: Vec<Piece>,
    /// By piece and cell: the cheapest point that carries it, and its cost.
    costs: Vec<Vec<(f64, usize)>>,
    /// Cost of leaving a piece out.
    unplaced: f64,
    /// Room for the assignments, kept between them.
    room: RefCell<(Vec<f64>, Workspace)>,
}

/// Boards and what is on them.
#[derive(Clone, Debug)]
struct State {
    /// Patterns, one entry per board.
    boards: Vec<usize>,
    /// By piece: cell and point, if it has a slot.
    slots: Vec<Option<(usize, usize)>>,
    cost: f64,
}

impl<'a> Group<'a> {
    fn new(problem: &'a Problem, pieces: Vec<Piece>) -> Self {
        let mut costs = Vec::new();
        let mut dearest = 0.0f64;
        for piece in &pieces {
            let mut row = vec![(f64::INFINITY, usize::MAX); problem.cells.len()];
            for (index, point) in problem.services[piece.service].points.iter().enumerate() {
                if point.admissible < piece.rate * (1.0 - 1e-12) {
                    continue;
                }
                let w = problem.objective.classes[problem.cells[point.cell].class];
                let cost = w.dynamic * point.dynamic + w.mean * point.energy * piece.rate;
                if cost < row[point.cell].0 {
                    row[point.cell] = (cost, index);
                }
            }
            dearest += row.iter().map(|c| c.0).filter(|c| c.is_finite()).fold(0.0, f64::max);
            costs.push(row);
        }
        let board = problem.patterns.iter().map(|p| board_cost(problem, p.class, p.base)).fold(0.0, f64::max);
        Self {
            problem,
            pieces,
            costs,
            unplaced: 10.0 * (dearest + board * 8.0 + 1.0),
            room: RefCell::default(),
        }
    }

    /// The cheapest assignment of pieces to the slots of these boards.
    fn evaluate(&self, boards: &[usize], best: f64) -> Option<State> {
        let mut cost = 0.0;
        let mut slots = Vec::new();
        for &pattern in boards {
            let p = &self.problem.patterns[pattern];
            cost += board_cost(self.problem, p.class, p.base);
            for &(cell, n) in &p.places {
                slots.extend(std::iter::repeat_n(cell, n as usize));
            }
        }
        if cost >= best {
            return None;
        }
        let columns = slots.len();
        let mut room = self.room.borrow_mut();
        let (matrix, work) = &mut *room;
        matrix.clear();
        for row in &self.costs {
            matrix.extend(slots.iter().map(|&cell| row[cell].0));
        }
        let costs = Costs { matrix, columns, none: self.unplaced, budget: best - cost };
        let (total, placed) = assign(self.pieces.len(), &costs, work)?;
        let slots = placed
            .iter()
            .zip(&self.costs)
            .map(|(column, row)| column.map(|c| (slots[c], row[slots[c]].1)))
            .collect();
        Some(State { boards: boards.to_vec(), slots, cost: cost + total })
    }

    /// Local search from several starts.
    fn search(&self, left: &[u32], effort: Effort) -> Option<State> {
        let (n_starts, shakes) = match effort {
            Effort::Little => (1, false),
            Effort::Much => (3, true),
        };
        let mut starts: Vec<State> = Vec::new();
        // One board of each pattern at a time, repeated until everything has a slot.
        for (index, pattern) in self.problem.patterns.iter().enumerate() {
            let most = left[pattern.class].min(self.pieces.len() as u32);
            let per_board: u32 = pattern.places.iter().map(|p| p.1).sum();
            let need = (self.pieces.len() as u32).div_ceil(per_board.max(1)).min(most);
            for n in need.max(1)..=(need + 1).min(most.max(1)) {
                if n <= most
                    && pattern.isolated.is_none()
                    && let Some(state) = self.evaluate(&vec![index; n as usize], f64::INFINITY)
                {
                    starts.push(state);
                }
            }
        }
        if starts.is_empty() {
            starts.extend(self.evaluate(&[], f64::INFINITY));
        }
        starts.sort_by(|a, b| a.cost.total_cmp(&b.cost).then_with(|| a.boards.cmp(&b.boards)));
        // Starts at different clocks, best first.
        let mut seen = Vec::new();
        starts.retain(|s| {
            let clock = s.boards.first().map(|&b| self.problem.patterns[b].clock);
            let fresh = !seen.contains(&clock);
            seen.push(clock);
            fresh
        });
        let best = starts
            .into_iter()
            .take(n_starts)
            .map(|start| {
                let found = self.descend(start, left);
                if shakes { self.shake(found, left) } else { found }
            })
            .min_by(|a, b| a.cost.total_cmp(&b.cost).then_with(|| a.boards.cmp(&b.boards)))?;
        best.slots.iter().all(Option::is_some).then_some(best)
    }

    /// Takes one board away, or two, and lets the rest adapt, while that helps.
    fn shake(&self, mut best: State, left: &[u32]) -> State {
        for _ in 0..ROUNDS {
            let mut improved = false;
            let n = best.boards.len();
            let singles = (0..n).map(|i| (i, i));
            let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
            for (i, j) in singles.chain(pairs) {
                let boards: Vec<usize> = best
                    .boards
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| *at != i && *at != j)
                    .map(|(_, &b)| b)
                    .collect();
                let Some(fewer) = self.evaluate(&boards, f64::INFINITY) else { continue };
                let found = self.descend(fewer, left);
                if found.cost < best.cost - 1e-9 {
                    best = found;
                    improved = true;
                    break;
                }
            }
            if !improved {
                break;
            }
        }
        best
    }

    fn descend(&self, mut state: State, left: &[u32]) -> State {
        let patterns = &self.problem.patterns;
        for _ in 0..ROUNDS {
            let before = state.cost;
            let mut used = vec![0u32; left.len()];
            for &b in &state.boards {
                used[patterns[b].class] += 1;
            }
            // Remove, change, add: each the best of its kind for one board at a time.
            let mut position = 0;
            while position <= state.boards.len() {
                let mut best: Option<State> = None;
                let bound = |b: &Option<State>| b.as_ref().map_or(state.cost, |s| s.cost) - 1e-9;
                let here = state.boards.get(position).copied();
                if here.is_some() {
                    let mut fewer = state.boards.clone();
                    fewer.remove(position);
                    if let Some(found) = self.evaluate(&fewer, bound(&best)) {
                        best = Some(found);
                    }
                }
                for (index, pattern) in patterns.iter().enumerate() {
                    let returned = u32::from(here.is_some_and(|h| patterns[h].class == pattern.class));
                    if used[pattern.class] - returned >= left[pattern.class] {
                        continue;
                    }
                    let mut changed = state.boards.clone();
                    match changed.get_mut(position) {
                        Some(board) => *board = index,
                        None => changed.push(index),
                    }
                    if let Some(found) = self.evaluate(&changed, bound(&best)) {
                        best = Some(found);
                    }
                }
                if let Some(found) = best {
                    state = found;
                    used = vec![0u32; left.len()];
                    for &b in &state.boards {
                        used[patterns[b].class] += 1;
                    }
                }
                position += 1;
            }
            if state.cost >= before - 1e-9 {
                break;
            }
        }
        state
    }
}

/// What a used board costs before anything runs on it.
fn board_cost(problem: &Problem, class: usize, base: f64) -> f64 {
    let w = problem.objective.classes[class];
    w.board + w.base * base
}
