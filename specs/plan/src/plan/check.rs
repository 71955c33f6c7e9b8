//! Plan → CheckedPlan, by something that did not make it.
//!
//! From the numbers in the plan alone: geometry, clocks, memory, rates, promises, power, metrics, limits
//! and the claims about the objective. It takes the batch times and energies as given (recomputing them
//! needs the performance models) and cannot know whether the bound is true, only whether it is possible.

use super::{FORMAT_VERSION, Gpu, Instance, Plan, Status};
use crate::device::Board;

mod geometry;
mod numbers;
mod service;
mod sums;

#[cfg(test)]
mod tests;

/// The largest gap at which a plan may call itself optimal: HiGHS's own tolerance for integer problems.
pub const OPTIMAL_GAP: f64 = 1e-6;

/// One thing a plan gets wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where in the plan: `gpus[0].instances[2]`.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
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

    /// The plan, no longer known to be right once changed.
    #[must_use]
    pub fn into_plan(self) -> Plan {
        self.0
    }
}

/// Proves geometry, clocks, memory, rates, limits and sums from the numbers in the plan.
///
/// # Errors
/// Everything that is wrong with it. Numbers that are not numbers, unknown boards and wrong lengths are
/// reported alone: nothing else can be said before they are mended.
pub fn check(plan: Plan) -> Result<CheckedPlan, Vec<Fault>> {
    let mut faults = Faults::default();
    version(&plan, &mut faults);
    numbers::check(&plan, &mut faults);
    geometry::boards(&plan, &mut faults);
    if faults.0.is_empty() {
        match plan.status {
            Status::Optimal | Status::WithinGap | Status::Feasible => {
                geometry::check(&plan, &mut faults);
                service::check(&plan, &mut faults);
                sums::check(&plan, &mut faults);
            }
            Status::Infeasible | Status::Unknown => no_plan(&plan, &mut faults),
        }
    }
    if faults.0.is_empty() { Ok(CheckedPlan(plan)) } else { Err(faults.0) }
}

/// The part of [`check`] that is about boards alone: whether they can be set up as the plan says, whatever
/// then runs on them.
#[must_use]
pub fn check_boards(plan: &Plan) -> Vec<Fault> {
    let mut faults = Faults::default();
    geometry::boards(plan, &mut faults);
    if faults.0.is_empty() {
        geometry::check(plan, &mut faults);
    }
    faults.0
}

/// The faults found so far.
#[derive(Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault { place: place.into(), message: message.into() });
    }

    /// A number that must be what the other numbers make it.
    fn equal(&mut self, place: impl Into<String>, what: &str, stated: f64, computed: f64) {
        if !close(stated, computed) {
            self.add(place, format!("{what} is {stated}, but {computed} by its parts"));
        }
    }

    /// The same for a number that is unknown exactly when one of its parts is.
    fn equal_if_known(
        &mut self,
        place: impl Into<String>,
        what: &str,
        stated: Option<f64>,
        computed: Option<f64>,
    ) {
        match (stated, computed) {
            (Some(stated), Some(computed)) => self.equal(place, what, stated, computed),
            (Some(stated), None) => {
                self.add(place, format!("{what} is {stated}, but it cannot be known from its parts"));
            }
            (None, Some(computed)) => {
                self.add(place, format!("{what} is absent, but {computed} by its parts"))
            }
            (None, None) => {}
        }
    }
}

/// Equal but for rounding in sums of many terms.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-12
}

/// Not above, but for rounding.
fn at_most(value: f64, limit: f64) -> bool {
    value <= limit || close(value, limit)
}

/// The format's major version must be ours; minor versions only add.
fn version(plan: &Plan, faults: &mut Faults) {
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&plan.format_version) != major(FORMAT_VERSION) {
        let found = &plan.format_version;
        faults.add("format_version", format!("`{found}` is not a version of {FORMAT_VERSION}"));
    }
}

/// An answer without a plan must not look like one.
fn no_plan(plan: &Plan, faults: &mut Faults) {
    if !plan.gpus.is_empty() {
        faults.add("gpus", "boards are used although no plan was found");
    }
    if plan.objective.value.is_some() || plan.objective.gap.is_some() {
        faults.add("objective", "there is a value or a gap although no plan was found");
    }
    if plan.status == Status::Infeasible && plan.objective.bound.is_some() {
        faults.add("objective.bound", "there is a bound although no plan exists");
    }
    if plan.metrics.gpus != 0 {
        faults.add("metrics.gpus", "boards are counted although no plan was found");
    }
    for (index, service) in plan.services.iter().enumerate() {
        if service.served_rps != 0.0 || service.replicas != 0 {
            faults.add(format!("services[{index}]"), "it is served although no plan was found");
        }
    }
}

/// The board of a used GPU. Numbers are checked first, so that it is there.
fn board_of<'a>(plan: &'a Plan, gpu: &Gpu) -> Option<&'a Board> {
    plan.boards.iter().find(|b| b.id == gpu.board)
}

/// All instances with their places.
fn instances(plan: &Plan) -> impl Iterator<Item = (String, &Instance)> {
    plan.gpus.iter().enumerate().flat_map(|(g, gpu)| {
        gpu.instances
            .iter()
            .enumerate()
            .map(move |(i, instance)| (format!("gpus[{g}].instances[{i}]"), instance))
    })
}
