//! A plan and a machine → the steps between, with everything that is to be known before they begin.

use super::wanted::Wanted;
use crate::exit::{Stop, Trouble};
use crate::machine;
use crate::render::changes::Shown;
use crate::report::machine::ChangesReport;
use ent_machine::bind::{Binding, bind, stale};
use ent_machine::changes::Changes;
use ent_machine::diff::diff;
use ent_machine::preflight::{Allowed, Radius, Warning, blast_radius, preflight, warnings};
use ent_machine::state::State;

/// Whether a plan that was made from a machine holds for other states of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Only for the modes and instances that it was made from.
    AsPlanned,
    /// Whatever the machine is now: it has been applied before, and is to hold again.
    AnyState,
}

/// The steps between a machine and a plan.
pub(super) struct Steps {
    /// Which planned board is which GPU.
    pub(super) binding: Binding,
    /// The steps.
    pub(super) changes: Changes,
    /// What stops.
    radius: Vec<Radius>,
    /// Why `apply` would refuse them.
    pub(super) refusals: Vec<Trouble>,
    /// What else is to be known.
    warnings: Vec<Warning>,
    title: String,
    is_bound_here: bool,
    has_boards_off: bool,
}

impl Steps {
    /// Binds the plan to the machine and finds the steps.
    ///
    /// # Errors
    /// When the plan is for another machine, or for another state of it, or cannot be reached.
    pub(super) fn between(
        wanted: &Wanted,
        state: &State,
        allowed: Allowed,
        strictness: Strictness,
    ) -> Result<Self, Stop> {
        crate::bug::processing("changes");
        let observed = &wanted.observed;
        let plan = wanted.plan.plan();
        // Of an earlier boot nothing on the machine is ours any more.
        let state = &state.on(observed);
        let binding = bind(&wanted.plan, &wanted.node, observed, state)
            .map_err(|fields| Stop::from(machine::stale(&fields)))?;
        let changes = diff(&binding.target, observed, state)
            .map_err(|refusals| Stop::World(machine::refusals(&refusals)))?;
        let is_strict = strictness == Strictness::AsPlanned && !changes.is_empty();
        if let Some(made_for) = plan.machine.as_ref().filter(|_| is_strict) {
            let fields = stale(made_for, &binding.target, observed);
            if !fields.is_empty() {
                return Err(machine::stale(&fields).into());
            }
        }
        let refusals = preflight(&changes, observed, allowed, wanted.machine.driver.is_privileged());
        Ok(Self {
            radius: blast_radius(&changes, observed, state),
            refusals: machine::refusals(&refusals),
            warnings: warnings(&changes, observed, state, Some((&wanted.plan, &binding))),
            title: format!("node {}", wanted.node),
            has_boards_off: plan.unused.iter().any(|u| u.node == wanted.node && u.is_off && u.count > 0),
            is_bound_here: plan.machine.is_none() && !changes.is_empty(),
            changes,
            binding,
        })
    }

    /// As drawn.
    pub(super) fn shown<'a>(&'a self, wanted: &'a Wanted) -> Shown<'a> {
        Shown {
            title: &self.title,
            changes: &self.changes,
            observed: &wanted.observed,
            radius: &self.radius,
            has_boards_off: self.has_boards_off,
            binding: self.is_bound_here.then_some(&self.binding),
            refusals: &self.refusals,
            warnings: &self.warnings,
        }
    }

    /// As JSON.
    pub(super) fn report(&self, wanted: &Wanted) -> ChangesReport {
        let plan = wanted.plan.plan().checksum.as_deref();
        ChangesReport::new(plan, &self.binding, &self.changes, &self.radius, &self.refusals, &self.warnings)
    }
}
