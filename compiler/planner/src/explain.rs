//! Why there is no plan, and what to know about the one there is.

use crate::problem::Problem;
use crate::solve::{Control, SolverFault};
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Code, Diagnostic};
use ent_plan::plan::Plan;

/// The smallest set of requirements found that cannot hold together.
///
/// # Errors
/// When the solver fails.
pub fn conflict(
    program: &Program,
    _performance: &PerformanceSet,
    _problem: &Problem,
    _control: &mut Control<'_>,
) -> Result<Vec<Diagnostic>, SolverFault> {
    Ok(vec![Diagnostic::error(
        Code::ConflictingRequirements,
        program.objective.minimize.span,
        "these requirements cannot hold together",
    )])
}

/// What a person should know about a plan that holds.
pub(crate) fn warnings(_program: &Program, _plan: &Plan) -> Vec<Diagnostic> {
    Vec::new()
}
