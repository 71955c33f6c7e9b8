//! Problem → Solution with a bound: column generation, branching on boards, and an integer program over
//! the covers that can still matter.
//!
//! 1. The master over covers is solved with columns priced by [`super::covers`]; its value is a bound.
//! 2. Where the relaxation uses a fraction of a board, the search branches: on the number of boards, then
//!    on the number of boards at or below a clock. Few such numbers matter and each makes the bound much
//!    stronger, because base power is most of what a plan costs.
//! 3. At a node every cover whose reduced cost is below incumbent − bound is enumerated: a plan there with
//!    any other cover costs more than the incumbent. When they are few, an integer program over them
//!    settles the node; when they are many, the node is branched on.

use super::config::{Config, MeanPower, exact_value};
use super::integer::{self, Restricted};
use super::master::{Master, Relaxed};
use super::{Control, Progress, SolverFault};
use crate::problem::{Assignment, Problem, ServiceProblem, Solution};
use pricing::Powers;
use std::collections::BTreeSet;

/// Most covers given to one integer program.
const MOST_COVERS: usize = 8_000;
/// With no more covers than this the integer program beats branching.
const FEW_COVERS: usize = 1_500;
/// A service that needs more instances than this even on its fastest point is counted from the start.
const MOST_REPLICAS_ENUMERATED: f64 = 4.0;
/// Relative gap that counts as none: the feasibility tolerance of the solver.
pub(super) const NO_GAP: f64 = 1e-6;

/// The relaxation's value with the constant; `None` when it cannot serve everything.
pub(super) fn bound(
    problem: &Problem,
    mean: &MeanPower<'_>,
    control: &mut Control<'_>,
) -> Result<Option<f64>, SolverFault> {
    let mut search = ExactSearch::new(problem, mean, Energies::Linear, control)?;
    Ok(search.relax()?.map(|relaxed| relaxed.value + problem.objective.constant))
}

/// Which services are counted: those that need many instances even on their fastest point.
fn counted(problem: &Problem) -> Vec<bool> {
    let fastest = |s: &ServiceProblem| s.points.iter().map(|p| p.admissible).fold(0.0, f64::max);
    problem.services.iter().map(|s| s.rate > MOST_REPLICAS_ENUMERATED * fastest(s)).collect()
}

/// Solves to proven optimality as far as the limits allow.
pub(super) fn solve(
    problem: &Problem,
    mean: &MeanPower<'_>,
    energies: Energies,
    start: Start,
    control: &mut Control<'_>,
) -> Result<Solution, SolverFault> {
    let mut search = ExactSearch::new(problem, mean, energies, control)?;
    for assignment in start.assignment.into_iter().chain(start.others) {
        search.offer(assignment)?;
    }
    search.floor = start.floor.map_or(f64::NEG_INFINITY, |f| f - problem.objective.constant);
    search.run()
}

mod branch;
mod large;
mod pricing;

pub(super) use branch::{Branch, clocks_of};
pub(super) use pricing::Energies;

/// What is known before the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Start {
    /// A plan.
    pub(super) assignment: Option<Assignment>,
    /// More plans.
    pub(super) others: Vec<Assignment>,
    /// No plan is better than this, with the constant.
    pub(super) floor: Option<f64>,
}

struct ExactSearch<'a, 'c, 'd> {
    problem: &'a Problem,
    mean: &'a MeanPower<'a>,
    control: &'c mut Control<'d>,
    master: Master<'a>,
    counted: Vec<bool>,
    columns: Vec<Config>,
    /// Covers that are columns: service, points, and parts where the rate is shared in parts.
    known: BTreeSet<(usize, Vec<usize>)>,
    energies: Energies,
    powers: Powers,
    has_first_plan: bool,
    incumbent: Option<(f64, Assignment)>,
    constant: f64,
    /// A bound known before the search, without the constant.
    floor: f64,
}

impl<'a, 'c, 'd> ExactSearch<'a, 'c, 'd> {
    fn new(
        problem: &'a Problem,
        mean: &'a MeanPower<'a>,
        energies: Energies,
        control: &'c mut Control<'d>,
    ) -> Result<Self, SolverFault> {
        let counted = counted(problem);
        Ok(Self {
            powers: Powers::new(problem, energies, &counted),
            energies,
            has_first_plan: false,
            problem,
            mean,
            control,
            master: Master::new(problem, &counted)?,
            counted,
            columns: Vec::new(),
            known: BTreeSet::new(),
            incumbent: None,
            constant: problem.objective.constant,
            floor: f64::NEG_INFINITY,
        })
    }

    fn upper(&self) -> f64 {
        self.incumbent.as_ref().map_or(f64::INFINITY, |(value, _)| *value)
    }

    /// Takes an assignment if it is feasible and better than the incumbent.
    fn offer(&mut self, assignment: Assignment) -> Result<(), SolverFault> {
        if !self.problem.violations(&assignment).is_empty() || !self.keeps_limits(&assignment) {
            return Ok(());
        }
        let value =
            exact_value(self.problem, &self.problem.objective, &assignment, self.mean) - self.constant;
        if value < self.upper() {
            for (service, shares) in assignment.shares.iter().enumerate() {
                if self.counted[service] {
                    continue;
                }
                let config = self.config_of(service, shares);
                if self.known.insert((service, self.key(&config))) {
                    self.master.add(&config)?;
                    self.columns.push(config);
                }
            }
            self.incumbent = Some((value, assignment));
        }
        Ok(())
    }

    /// Whether limits hold by the mean powers of this search.
    fn keeps_limits(&self, assignment: &Assignment) -> bool {
        self.problem.limits.iter().all(|limit| {
            let value = exact_value(self.problem, &limit.weights, assignment, self.mean);
            value <= limit.at_most + 1e-9 * limit.at_most.abs().max(1.0)
        })
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
        let root = Branch::root(self.problem);
        let Some(mut free) = self.relax()? else {
            return self.without_relaxation();
        };
        free.value = free.value.max(self.floor);
        self.report("relaxed", free.value);
        let mut stopped_by = None;
        let mut open = vec![Node { branch: root.clone(), bound: free.value, number: 0 }];
        let is_large =
            free.boards > MOST_BOARDS_BRANCHED || self.problem.services.len() > MOST_SERVICES_BRANCHED;
        if is_large {
            self.round_and_improve(&root, &free)?;
        } else {
            // A first plan, from the columns around the relaxed number of boards.
            let near = self.branch_on_boards(&root, &free)?;
            if !near.is_empty() {
                open = near;
            }
        }
        let bound = self.least(&open);
        if !is_large && !self.is_closed(bound) && !self.control.is_over() {
            let branch = Branch { boards: hull(&open), ..root };
            self.integer(&branch, None, bound, QUICK_SECONDS)?;
            self.report("first plan", bound);
        }
        self.has_first_plan = true;
        let mut given_up = f64::INFINITY;
        let mut numbered = open.len();
        let mut nodes = 0;
        while let Some(next) = pick(&open) {
            let bound = self.least(&open).min(given_up);
            if self.is_closed(bound) || open[next].bound >= self.upper() {
                break;
            }
            if self.control.is_over() {
                stopped_by = Some("time limit");
                break;
            }
            if self.control.node_limit.is_some_and(|limit| nodes >= limit) {
                stopped_by = Some("node limit");
                break;
            }
            nodes += 1;
            let node = open.swap_remove(next);
            match self.settle(&node)? {
                Settled::Closed => {}
                Settled::Bounded(bound, stop) => {
                    // Nothing more can be done here within the limits.
                    given_up = given_up.min(bound);
                    stopped_by = stopped_by.or(stop);
                }
                Settled::Branched(children) => {
                    for (branch, bound) in children {
                        open.push(Node { branch, bound, number: numbered });
                        numbered += 1;
                    }
                }
            }
            let bound = self.least(&open).min(given_up);
            self.report("proving", bound);
        }
        let bound = self.least(&open).min(given_up).min(self.upper());
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

    /// Nothing serves everything: proof that nothing can, unless rates are shared in parts. Those lose a
    /// little of what instances can carry.
    fn without_relaxation(mut self) -> Result<Solution, SolverFault> {
        let mut solution = Solution { incumbent: None, bound: None, is_infeasible: true, stopped_by: None };
        if self.energies == Energies::Linear {
            return Ok(solution);
        }
        if self.incumbent.is_none() {
            let (assignment, is_infeasible, stop) = integer::compact(self.problem, self.control)?;
            if let Some(assignment) = assignment {
                self.offer(assignment)?;
            }
            solution.is_infeasible = is_infeasible;
            solution.stopped_by = stop;
        }
        if let Some((value, assignment)) = self.incumbent {
            solution.is_infeasible = false;
            solution.bound = self.floor.is_finite().then_some(self.floor.min(value) + self.constant);
            solution.incumbent = Some(assignment);
        }
        Ok(solution)
    }

    fn least(&self, open: &[Node]) -> f64 {
        open.iter().map(|n| n.bound).fold(f64::INFINITY, f64::min).min(self.upper())
    }

    /// One node per number of boards near the relaxed one, and one for each tail.
    ///
    /// The relaxation's value is convex in the number of boards and least at `free.boards`: walking out
    /// from there, it never falls again, so a whole tail is bounded by the last number looked at.
    fn branch_on_boards(&mut self, root: &Branch, free: &Relaxed) -> Result<Vec<Node>, SolverFault> {
        let most = root.boards.1;
        let low = (free.boards + 1e-6).floor().clamp(0.0, f64::from(most)) as u32;
        let mut found: Vec<Node> = Vec::new();
        for up in [true, false] {
            let side: Vec<u32> = if up { (low + 1..=most).collect() } else { (0..=low).rev().collect() };
            let mut walked = 0;
            for &k in &side {
                let branch = Branch { boards: (k, k), ..root.clone() };
                self.master.restrict(&branch)?;
                let Some(relaxed) = self.relax()? else { break };
                let bound = relaxed.value.max(free.value);
                found.push(Node { branch, bound, number: found.len() });
                walked += 1;
                let tail = if up { (k < most).then(|| (k + 1, most)) } else { (k > 0).then(|| (0, k - 1)) };
                if bound >= self.upper() || walked == MOST_BRANCHES || self.control.is_over() {
                    if let Some(boards) = tail {
                        found.push(Node {
                            branch: Branch { boards, ..root.clone() },
                            bound,
                            number: found.len(),
                        });
                    }
                    break;
                }
            }
        }
        self.master.restrict(root)?;
        Ok(found)
    }

    /// Closes a node, branches on it, or says how far it is proven.
    fn settle(&mut self, node: &Node) -> Result<Settled, SolverFault> {
        self.master.restrict(&node.branch)?;
        let Some(relaxed) = self.relax()? else { return Ok(Settled::Closed) };
        let bound = relaxed.value.max(node.bound);
        if bound >= self.upper() || self.is_closed(bound) && bound >= self.upper() {
            return Ok(Settled::Closed);
        }
        let upper = self.upper();
        let room = if upper.is_finite() { upper - relaxed.value } else { f64::INFINITY };
        let split = self.split(&node.branch, &relaxed);
        let most_covers = if split.is_some() { FEW_COVERS } else { MOST_COVERS };
        let (columns, complete) = self.enumerate(&relaxed, room, most_covers);
        if complete < room
            && let Some(children) = split
        {
            return Ok(Settled::Branched(children.into_iter().map(|b| (b, bound)).collect()));
        }
        let (proven, stop) = self.integer(&node.branch, Some(&columns), relaxed.value, f64::INFINITY)?;
        // A plan with a cover that was left out costs at least the relaxed value plus its reduced cost.
        let proven = bound.max(proven.min(relaxed.value + complete.max(0.0)));
        if proven >= self.upper() || stop.is_none() && complete >= room {
            return Ok(if self.is_proven(proven) { Settled::Closed } else { Settled::Bounded(proven, stop) });
        }
        Ok(Settled::Bounded(proven, stop))
    }

    /// Whether a bound leaves nothing between it and the incumbent.
    fn is_proven(&self, bound: f64) -> bool {
        bound >= self.upper() - NO_GAP * (self.upper() + self.constant).abs()
    }

    /// The two parts of a branch around a fraction of a board in its relaxation: first by how many boards
    /// run at or below a clock, then by how many have a layout.
    fn split(&self, branch: &Branch, relaxed: &Relaxed) -> Option<[Branch; 2]> {
        let fraction = |value: f64| (value - value.floor()).min(value.ceil() - value);
        let mut best: Option<(f64, usize, usize, f64)> = None;
        for (class, values) in relaxed.at_or_below.iter().enumerate() {
            for (at, &value) in values.iter().enumerate() {
                let (low, high) = branch.clocks[class][at];
                let part = fraction(value);
                if low < high && part > 1e-5 && best.is_none_or(|(p, ..)| part > p + 1e-9) {
                    best = Some((part, class, at, value));
                }
            }
        }
        if let Some((_, class, at, value)) = best {
            let (mut below, mut above) = (branch.clone(), branch.clone());
            below.clocks[class][at].1 = value.floor() as u32;
            above.clocks[class][at].0 = value.ceil() as u32;
            return Some([below, above]);
        }
        let mut best: Option<(f64, usize, f64)> = None;
        for (pattern, &value) in relaxed.patterns.iter().enumerate() {
            let (low, high) = branch.patterns[pattern];
            let part = fraction(value);
            if low < high && part > 1e-5 && best.is_none_or(|(p, ..)| part > p + 1e-9) {
                best = Some((part, pattern, value));
            }
        }
        best.map(|(_, pattern, value)| {
            let (mut below, mut above) = (branch.clone(), branch.clone());
            below.patterns[pattern].1 = value.floor() as u32;
            above.patterns[pattern].0 = value.ceil() as u32;
            [below, above]
        })
    }

    /// The integer program over the columns at hand. Returns what it proves and what stopped it.
    fn integer(
        &mut self,
        branch: &Branch,
        columns: Option<&[Config]>,
        bound: f64,
        seconds: f64,
    ) -> Result<(f64, Option<&'static str>), SolverFault> {
        let result = integer::restricted(
            Restricted {
                problem: self.problem,
                columns: columns.unwrap_or(&self.columns),
                counted: &self.counted,
                branch,
                fixed: &BTreeSet::new(),
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
}

/// Above this many boards, fixing their number gains nothing over the relaxation.
const MOST_BOARDS_BRANCHED: f64 = 40.0;
/// With more services than this, plans are rounded and improved before the search branches.
pub(super) const MOST_SERVICES_BRANCHED: usize = 60;
/// How many numbers of boards are looked at on each side of the relaxation's own.
const MOST_BRANCHES: usize = 3;
/// Time for the first integer program (s).
const QUICK_SECONDS: f64 = 3.0;

#[derive(Clone, Debug)]
struct Node {
    branch: Branch,
    bound: f64,
    number: usize,
}

enum Settled {
    /// Nothing here beats the incumbent.
    Closed,
    /// Proven this far, stopped by a limit if any.
    Bounded(f64, Option<&'static str>),
    /// Parts with their bounds.
    Branched(Vec<(Branch, f64)>),
}

/// The open node with the least bound, the oldest among equals.
fn pick(open: &[Node]) -> Option<usize> {
    (0..open.len())
        .min_by(|&a, &b| open[a].bound.total_cmp(&open[b].bound).then(open[a].number.cmp(&open[b].number)))
}

/// The numbers of boards of all single-number nodes, or of all nodes.
fn hull(open: &[Node]) -> (u32, u32) {
    let single = |n: &&Node| n.branch.boards.0 == n.branch.boards.1;
    let any = open.iter().any(|n| single(&n));
    let considered = || open.iter().filter(|n| !any || single(n)).map(|n| n.branch.boards);
    (considered().map(|b| b.0).min().unwrap_or(0), considered().map(|b| b.1).max().unwrap_or(0))
}
