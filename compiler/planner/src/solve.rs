//! Problem → Solution, several ways.

use crate::problem::{Assignment, Problem, Solution};
use std::ops::ControlFlow;

mod assign;
mod config;
pub(crate) mod covers;
mod exact;
pub(crate) mod greedy;
mod integer;
mod master;

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
    if problem.services.len() <= exact::MOST_SERVICES_BRANCHED {
        let start = greedy::solve(problem, mean, control);
        return exact::solve(problem, mean, start, control);
    }
    // With many services rounding the relaxation is both quicker and better; greedy is the last resort.
    let mut solution = exact::solve(problem, mean, None, control)?;
    if solution.incumbent.is_none() && !solution.is_infeasible {
        solution.incumbent = greedy::solve(problem, mean, control);
    }
    Ok(solution)
}

/// A good plan without a solver, and no bound.
#[must_use]
pub fn greedy(problem: &Problem, mean: &MeanPower<'_>, control: &mut Control<'_>) -> Option<Assignment> {
    greedy::solve(problem, mean, control)
}
