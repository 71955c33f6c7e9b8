//! Problem → Solution, several ways.

use crate::problem::{Assignment, Problem, Solution};
use ent_plan::plan::LatencyRule;
use exact::Energies;
use std::ops::ControlFlow;

mod assign;
mod config;
pub(crate) mod covers;

mod exact;
pub(crate) mod greedy;
mod integer;
mod kept;
mod master;
mod parts;

pub use config::MeanPower;

/// What a long search tells while it runs. Values are in the objective's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub phase: &'static str,
    /// Value of the best plan so far.
    pub incumbent: Option<f64>,
    /// No plan is better than this.
    pub bound: Option<f64>,
}

/// Limits of a search, and how it talks to whoever waits. The planner reads no clock: `elapsed` does.
pub struct Control<'a> {
    /// Stop when this relative gap is proven; 0 asks for proof of optimality.
    pub gap: f64,
    /// Stop after this many seconds.
    pub time_limit: Option<f64>,
    /// Most branch-and-bound nodes of one integer program; keeps runs reproducible.
    pub node_limit: Option<u32>,
    /// Seconds since the start.
    pub elapsed: &'a dyn Fn() -> f64,
    /// Told about progress; says whether to go on.
    pub progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// Set once `progress` said to stop.
    pub is_stopped: bool,
}

impl Control<'_> {
    /// Seconds left; infinite without a limit.
    #[must_use]
    pub fn seconds_left(&self) -> f64 {
        self.time_limit.map_or(f64::INFINITY, |limit| (limit - (self.elapsed)()).max(0.0))
    }

    /// Whether it is time to stop.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_stopped || self.seconds_left() <= 0.0
    }

    /// Tells how far the search is.
    pub(crate) fn report(&mut self, progress: Progress) {
        if (self.progress)(progress).is_break() {
            self.is_stopped = true;
        }
    }
}

/// Something went wrong inside the solver: never the user's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SolverFault {
    /// HiGHS returned an error.
    #[error("HiGHS: {0}")]
    Highs(String),
    /// HiGHS ended in a state that should not happen.
    #[error("HiGHS ended with {0}")]
    Status(String),
    /// The model was given away and did not come back.
    #[error("the solver lost its model")]
    Lost,
}

impl From<highs::HighsStatus> for SolverFault {
    fn from(status: highs::HighsStatus) -> Self {
        Self::Highs(format!("{status:?}"))
    }
}

impl From<highs::TrySetOptionError> for SolverFault {
    fn from(error: highs::TrySetOptionError) -> Self {
        Self::Highs(format!("{error:?}"))
    }
}

/// Solves to proven optimality as far as the limits allow, from a greedy start.
///
/// # Errors
/// When HiGHS fails.
pub fn optimal(
    problem: &Problem,
    mean: &MeanPower<'_>,
    control: &mut Control<'_>,
) -> Result<Solution, SolverFault> {
    let is_small = problem.services.len() <= exact::MOST_SERVICES_BRANCHED;
    let mut start = exact::Start::default();
    if is_small {
        start.assignment = greedy::solve(problem, mean, control);
    }
    let mut energies = Energies::Linear;
    if problem.rule == LatencyRule::Queueing && config::uses_mean(problem) {
        energies = Energies::AtLeast;
        // Exact mean powers take an evaluation of a queue each. Points know a lower bound on theirs: a
        // search with those is quick, its bound holds, and its plan is where the exact search starts.
        let optimistic =
            |service: usize, point: usize, rate: f64| problem.services[service].points[point].energy * rate;
        let time_limit =
            control.time_limit.map(|_| (control.elapsed)() + QUICK_SHARE * control.seconds_left());
        let mut quick = Control {
            gap: control.gap.max(QUICK_GAP),
            time_limit,
            node_limit: control.node_limit,
            elapsed: control.elapsed,
            progress: &mut |_| ControlFlow::Continue(()),
            is_stopped: control.is_stopped,
        };
        let found = exact::solve(problem, &optimistic, Energies::Linear, start.clone(), &mut quick)?;
        if found.is_infeasible {
            return Ok(found);
        }
        start.floor = found.bound;
        start.others.extend(found.incumbent);
    }
    let mut solution = exact::solve(problem, mean, energies, start, control)?;
    if solution.incumbent.is_none() && !solution.is_infeasible && !is_small {
        // With many services rounding the relaxation is both quicker and better; this is the last resort.
        solution.incumbent = greedy::solve(problem, mean, control);
    }
    Ok(solution)
}

/// Share of the time for the search with optimistic mean powers, and the gap at which it ends.
const QUICK_SHARE: f64 = 0.35;
const QUICK_GAP: f64 = 2e-3;

/// What the relaxation alone proves, in the objective's unit; `None` when it proves that there is no plan.
///
/// # Errors
/// When HiGHS fails.
pub fn bound(problem: &Problem, control: &mut Control<'_>) -> Result<Option<f64>, SolverFault> {
    let optimistic =
        |service: usize, point: usize, rate: f64| problem.services[service].points[point].energy * rate;
    // The bound is worth a few seconds beyond the deadline: without it a plan says nothing of itself.
    let started = (control.elapsed)();
    let mut own = Control {
        gap: control.gap,
        time_limit: Some(started + (BOUND_SHARE * control.seconds_left()).max(BOUND_SECONDS)),
        node_limit: control.node_limit,
        elapsed: control.elapsed,
        progress: &mut |_| ControlFlow::Continue(()),
        is_stopped: false,
    };
    exact::bound(problem, &optimistic, &mut own)
}

/// Share of the time left that is given to the bound of a large program.
const BOUND_SHARE: f64 = 0.4;
/// Least time given to it (s).
const BOUND_SECONDS: f64 = 3.0;

/// A good plan without a solver, and no bound.
#[must_use]
pub fn greedy(problem: &Problem, mean: &MeanPower<'_>, control: &mut Control<'_>) -> Option<Assignment> {
    greedy::solve(problem, mean, control)
}
