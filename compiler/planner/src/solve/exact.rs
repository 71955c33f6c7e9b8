//! Problem → Solution with a bound: column generation, branching on the number of boards, and an integer
//! program over the covers that can still matter.
//!
//! 1. The master over covers is solved with columns priced by [`super::covers`]; its value is a bound.
//! 2. The bound as a function of the number of boards `k` is convex, and much stronger at an integer
//!    `k`; only the `k` whose bound is below the incumbent are left.
//! 3. For each such `k`, every cover whose reduced cost is below incumbent − bound is enumerated: a plan
//!    with any other cover costs more than the incumbent. The integer program over those covers then
//!    finds the best plan or proves that the incumbent is it. If they are too many, the cheapest are
//!    kept and the bound says so.

use super::config::{Config, MeanPower, exact_value, points_of};
use super::covers::{Cover, Found, Item, Search, covers};
use super::integer::{self, Restricted};
use super::master::{Master, Prices, Relaxed};
use super::{Control, Progress, SolverFault};
use crate::problem::{Assignment, Problem, Solution};
use std::collections::BTreeSet;

/// Covers priced into the master per service and round.
const COVERS_PER_ROUND: usize = 8;
/// Search steps per service and round; beyond this the service is counted instead.
const PRICING_STEPS: usize = 400_000;
/// Most covers given to one integer program.
const MOST_COVERS: usize = 12_000;
/// A service that needs more instances than this even on its fastest point is counted from the start.
const MOST_REPLICAS_ENUMERATED: f64 = 4.0;
/// Relative gap that counts as none: the feasibility tolerance of the solver.
pub(super) const NO_GAP: f64 = 1e-6;

/// Solves to proven optimality as far as the limits allow.
pub(super) fn solve(
    problem: &Problem,
    mean: &MeanPower<'_>,
    start: Option<Assignment>,
    control: &mut Control<'_>,
) -> Result<Solution, SolverFault> {
    let counted: Vec<bool> = problem
        .services
        .iter()
        .map(|s| {
            let fastest = s.points.iter().map(|p| p.admissible).fold(0.0, f64::max);
            s.rate > MOST_REPLICAS_ENUMERATED * fastest
        })
        .collect();
    let mut search = ExactSearch::new(problem, mean, counted, control)?;
    if let Some(start) = start {
        search.offer(start)?;
    }
    search.run()
}

struct ExactSearch<'a, 'c, 'd> {
    problem: &'a Problem,
    mean: &'a MeanPower<'a>,
    control: &'c mut Control<'d>,
    master: Master<'a>,
    counted: Vec<bool>,
    columns: Vec<Config>,
    known: BTreeSet<(usize, Vec<usize>)>,
    incumbent: Option<(f64, Assignment)>,
    constant: f64,
}

impl<'a, 'c, 'd> ExactSearch<'a, 'c, 'd> {
    fn new(
        problem: &'a Problem,
        mean: &'a MeanPower<'a>,
        counted: Vec<bool>,
        control: &'c mut Control<'d>,
    ) -> Result<Self, SolverFault> {
        Ok(Self {
            problem,
            mean,
            control,
            master: Master::new(problem, &counted)?,
            counted,
            columns: Vec::new(),
            known: BTreeSet::new(),
            incumbent: None,
            constant: problem.objective.constant,
        })
    }

    /// Boards there are.
    fn most(&self) -> u32 {
        self.problem.classes.iter().map(|c| c.count).fold(0, u32::saturating_add)
    }

    fn upper(&self) -> f64 {
        self.incumbent.as_ref().map_or(f64::INFINITY, |(value, _)| *value)
    }

    /// Takes an assignment if it is feasible and better than the incumbent.
    fn offer(&mut self, assignment: Assignment) -> Result<(), SolverFault> {
        if !self.problem.violations(&assignment).is_empty() {
            return Ok(());
        }
        let value = exact_value(self.problem, &self.problem.objective, &assignment, self.mean) - self.constant;
        if value < self.upper() {
            for (service, shares) in assignment.shares.iter().enumerate() {
                let points = points_of(shares);
                if !self.counted[service] && self.known.insert((service, points.clone())) {
                    let config = Config::new(self.problem, service, &points, self.mean);
                    self.master.add(&config)?;
                    self.columns.push(config);
                }
            }
            self.incumbent = Some((value, assignment));
        }
        Ok(())
    }

    fn report(&mut self, phase: &'static str, bound: f64) {
        let incumbent = self.incumbent.as_ref().map(|(v, _)| v + self.constant);
        self.control.report(Progress { phase, incumbent, bound: Some(bound + self.constant) });
    }

    fn is_closed(&self, bound: f64) -> bool {
        let upper = self.upper() + self.constant;
        upper.is_finite() && upper - (bound + self.constant) <= self.control.gap.max(NO_GAP) * upper.abs()
    }

    fn run(mut self) -> Result<Solution, SolverFault> {
        let Some(free) = self.relax()? else {
            return Ok(Solution { incumbent: None, bound: None, is_infeasible: true, stopped_by: None });
        };
        let mut bound = free.value;
        self.report("relaxed", bound);
        let most = self.most();
        let mut candidates = self.candidates(&free, most)?;
        bound = candidates.iter().map(|c| c.bound).fold(f64::INFINITY, f64::min).max(bound);
        // A first plan from the columns at hand: quick, and it decides how many covers can matter.
        if !self.is_closed(bound) && !self.control.is_over() {
            let range = range_of(&candidates);
            self.integer(range, None, bound, QUICK_SECONDS)?;
            self.report("first plan", bound);
        }
        let mut stopped_by = None;
        for round in 0..candidates.len() {
            candidates.sort_by(|a, b| a.bound.total_cmp(&b.bound).then(a.boards.cmp(&b.boards)));
            bound = candidates.iter().map(|c| c.bound).fold(self.upper(), f64::min);
            if self.is_closed(bound) {
                break;
            }
            let Some(next) = candidates.iter().position(|c| !c.is_done) else { break };
            if self.control.is_over() {
                stopped_by = Some("time limit");
                break;
            }
            let candidate = candidates[next].clone();
            let (proven, stop) = self.close(candidate)?;
            candidates[next].bound = candidates[next].bound.max(proven);
            candidates[next].is_done = true;
            stopped_by = stopped_by.or(stop);
            bound = candidates.iter().map(|c| c.bound).fold(self.upper(), f64::min);
            self.report("proving", bound);
            let _ = round;
        }
        bound = candidates.iter().map(|c| c.bound).fold(self.upper(), f64::min);
        if self.incumbent.is_none() {
            // No plan among covers: ask the compact formulation, which leaves nothing out.
            let (assignment, infeasible, stop) = integer::compact(self.problem, self.control)?;
            if let Some(assignment) = assignment {
                self.offer(assignment)?;
            }
            if self.incumbent.is_none() && infeasible {
                return Ok(Solution { incumbent: None, bound: None, is_infeasible: true, stopped_by: None });
            }
            stopped_by = stopped_by.or(stop);
        }
        let closed = self.is_closed(bound);
        let bound = if bound.is_finite() { Some(bound + self.constant) } else { None };
        Ok(Solution {
            incumbent: self.incumbent.map(|(_, a)| a),
            bound,
            is_infeasible: false,
            stopped_by: if closed { None } else { stopped_by.or(Some("search limit")) },
        })
    }

    /// Column generation at the master's present bounds; `None` when it cannot serve everything.
    fn relax(&mut self) -> Result<Option<Relaxed>, SolverFault> {
        loop {
            let (relaxed, unserved) = self.master.solve()?;
            let mut added = 0;
            let mut bound_loss = 0.0;
            for service in 0..self.problem.services.len() {
                if self.counted[service] {
                    continue;
                }
                let (configs, least) = self.price(service, &relaxed.prices, 0.0, COVERS_PER_ROUND);
                bound_loss += least.min(0.0);
                for config in configs {
                    self.master.add(&config)?;
                    self.columns.push(config);
                    added += 1;
                }
            }
            if added > 0 && !self.control.is_over() {
                continue;
            }
            if unserved > 1e-7 {
                if self.master.raise_penalty()? {
                    continue;
                }
                return Ok(None);
            }
            // Unpriced covers (search limits, deadline) lower what is proven by their reduced cost.
            return Ok(Some(Relaxed { value: relaxed.value + bound_loss, ..relaxed }));
        }
    }

    /// Priced items of a service.
    fn items(&self, service: usize, prices: &Prices) -> Vec<Item> {
        let problem = self.problem;
        let s = &problem.services[service];
        s.points
            .iter()
            .enumerate()
            .map(|(index, point)| {
                let class = problem.cells[point.cell].class;
                let mut fixed = prices.cells[point.cell];
                let mut variable = 0.0;
                let rows = std::iter::once((&problem.objective, 1.0))
                    .chain(problem.limits.iter().zip(&prices.limits).map(|(l, &p)| (&l.weights, p)));
                for (weights, price) in rows {
                    let w = weights.classes[class];
                    fixed += price * w.dynamic * point.dynamic;
                    variable += price * w.mean * point.energy * s.rate;
                }
                Item {
                    point: index,
                    cell: point.cell,
                    fixed: fixed.max(0.0),
                    variable: variable.max(0.0),
                    capacity: (point.admissible / s.rate).min(1.0),
                }
            })
            .collect()
    }

    fn search(&self, service: usize, prices: &Prices, cutoff: f64, keep: usize) -> Found {
        let s = &self.problem.services[service];
        covers(
            &self.items(service, prices),
            Search {
                replicas: s.replicas,
                cutoff: prices.services[service] + cutoff,
                keep,
                steps: PRICING_STEPS,
                one_per_cells: self.problem.limits.is_empty(),
            },
        )
    }

    /// New covers with reduced cost below `cutoff`, and a lower bound on the reduced cost of every cover
    /// that is neither returned nor known.
    fn price(&mut self, service: usize, prices: &Prices, cutoff: f64, keep: usize) -> (Vec<Config>, f64) {
        let mut keep = keep;
        loop {
            // A little below zero, so that columns at rest do not come again.
            let slack = 1e-9 * prices.services[service].abs().max(1e-6);
            let found = self.search(service, prices, cutoff - slack, keep);
            let mut new = Vec::new();
            for Cover { points, .. } in found.covers.iter() {
                let mut key = points.clone();
                key.sort_unstable();
                if !self.known.insert((service, key)) {
                    continue;
                }
                let config = Config::new(self.problem, service, points, self.mean);
                new.push(config);
            }
            let beyond = found.complete_below - prices.services[service];
            if new.is_empty() && found.covers.len() >= keep && keep < 4096 {
                // Every cover found is known already (its true cost is above its optimistic one): look further.
                keep *= 4;
                continue;
            }
            return (new, if beyond < cutoff - slack { beyond } else { 0.0 });
        }
    }

    /// The numbers of boards that can still matter, each with its own bound.
    ///
    /// The relaxation's value is convex in the number of boards and least at `free.boards`: walking out
    /// from there, it never falls again, so a whole tail is bounded by the last number looked at.
    fn candidates(&mut self, free: &Relaxed, most: u32) -> Result<Vec<Candidate>, SolverFault> {
        if free.boards > MOST_BOARDS_BRANCHED {
            return Ok(vec![Candidate { boards: (0, most), bound: free.value, is_done: false }]);
        }
        let low = (free.boards + 1e-6).floor().clamp(0.0, f64::from(most)) as u32;
        let mut found = Vec::new();
        for up in [true, false] {
            let side: Vec<u32> = if up { (low + 1..=most).collect() } else { (0..=low).rev().collect() };
            let mut walked = 0;
            for &k in &side {
                self.master.fix_boards((k, k))?;
                let Some(relaxed) = self.relax()? else { break };
                let bound = relaxed.value.max(free.value);
                found.push(Candidate { boards: (k, k), bound, is_done: false });
                walked += 1;
                let tail = if up { (k < most).then(|| (k + 1, most)) } else { (k > 0).then(|| (0, k - 1)) };
                if bound >= self.upper() || walked == MOST_BRANCHES || self.control.is_over() {
                    if let Some(boards) = tail {
                        found.push(Candidate { boards, bound, is_done: false });
                    }
                    break;
                }
            }
        }
        self.master.fix_boards((0, most))?;
        Ok(found)
    }

    /// The integer program over the columns at hand. Returns what it proves and what stopped it.
    fn integer(
        &mut self,
        boards: (u32, u32),
        columns: Option<&[Config]>,
        bound: f64,
        seconds: f64,
    ) -> Result<(f64, Option<&'static str>), SolverFault> {
        let result = integer::restricted(
            Restricted {
                problem: self.problem,
                columns: columns.unwrap_or(&self.columns),
                counted: &self.counted,
                boards,
                start: self.incumbent.as_ref().map(|(_, a)| a),
                bound,
            },
            self.control,
            seconds,
        )?;
        if let Some(assignment) = result.assignment {
            self.offer(assignment)?;
        }
        Ok((result.bound, result.stopped_by))
    }

    /// Proves the best plan with this many boards, or improves on it.
    fn close(&mut self, candidate: Candidate) -> Result<(f64, Option<&'static str>), SolverFault> {
        let range = candidate.boards;
        self.master.fix_boards(range)?;
        let mut proven = candidate.bound;
        let mut stopped = None;
        // First with the covers that matter most, which usually finds the plan; then with all that can.
        for (share, most_covers) in [(0.25, MOST_COVERS / 8), (1.0, MOST_COVERS)] {
            let Some(relaxed) = self.relax()? else {
                self.master.fix_boards((0, self.most()))?;
                return Ok((f64::INFINITY, None));
            };
            proven = proven.max(relaxed.value);
            let upper = self.upper();
            if proven >= upper || self.is_closed(proven) || self.control.is_over() {
                break;
            }
            let room = if upper.is_finite() { share * (upper - relaxed.value) } else { f64::INFINITY };
            let keep = most_covers;
            let mut columns: Vec<(f64, Config)> = Vec::new();
            let mut complete = room;
            for service in 0..self.problem.services.len() {
                if self.counted[service] {
                    continue;
                }
                let found = self.search(service, &relaxed.prices, room, keep);
                complete = complete.min(found.complete_below - relaxed.prices.services[service]);
                for cover in found.covers {
                    let reduced = cover.price - relaxed.prices.services[service];
                    let config = Config::new(self.problem, service, &cover.points, self.mean);
                    columns.push((reduced, config));
                }
            }
            columns.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.service.cmp(&b.1.service)));
            if columns.len() > most_covers {
                complete = complete.min(columns[most_covers].0);
                columns.truncate(most_covers);
            }
            let mut kept: Vec<Config> = columns.into_iter().map(|(_, c)| c).collect();
            let mut present: BTreeSet<(usize, Vec<usize>)> =
                kept.iter().map(|c| (c.service, c.sorted_points())).collect();
            for column in &self.columns {
                if present.insert((column.service, column.sorted_points())) {
                    kept.push(column.clone());
                }
            }
            let (bound, stop) = self.integer(range, Some(&kept), relaxed.value, f64::INFINITY)?;
            // A plan with a cover that was left out costs at least the relaxed value plus its reduced cost.
            proven = proven.max(bound.min(relaxed.value + complete.max(0.0)));
            stopped = stop;
            if stop.is_some() || self.is_closed(proven) || proven >= self.upper() {
                break;
            }
        }
        self.master.fix_boards((0, self.most()))?;
        Ok((proven.min(self.upper()).max(candidate.bound.min(self.upper())), stopped))
    }
}

/// Above this many boards, fixing their number gains nothing over the relaxation.
const MOST_BOARDS_BRANCHED: f64 = 40.0;
/// How many numbers of boards are looked at on each side of the relaxation's own.
const MOST_BRANCHES: usize = 3;
/// Time for the first integer program (s).
const QUICK_SECONDS: f64 = 3.0;

/// Numbers of boards still to be settled, and what is proven for them.
#[derive(Clone, Debug)]
struct Candidate {
    /// From, to.
    boards: (u32, u32),
    bound: f64,
    is_done: bool,
}

/// The range over the single numbers among the candidates.
fn range_of(candidates: &[Candidate]) -> (u32, u32) {
    let single = |c: &&Candidate| c.boards.0 == c.boards.1;
    let any = candidates.iter().any(|c| single(&c));
    let considered = || candidates.iter().filter(|c| !any || single(c));
    let low = considered().map(|c| c.boards.0).min().unwrap_or(0);
    let high = considered().map(|c| c.boards.1).max().unwrap_or(0);
    (low, high)
}
