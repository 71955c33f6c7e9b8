//! Plan + machine → target: which planned board is which GPU, by UUID from here on.
//!
//! A plan made from an observed machine names UUIDs and says what it saw; one made offline is bound by
//! index. A plan for another machine is refused with every field that differs.

use crate::error::Stale;
use crate::observed::{GpuUuid, Observed};
use crate::state::State;
use crate::target::Target;
use ent_plan::plan::{CheckedPlan, Machine};

/// A plan's boards and the GPUs they became.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The node of the plan that this machine is.
    pub node: String,
    /// Planned index → GPU, by index.
    pub gpus: Vec<(u32, GpuUuid)>,
    /// What the machine is wanted to be.
    pub target: Target,
}

/// Binds the boards that a plan has on `node` to the GPUs of a machine.
///
/// A GPU that the plan leaves unused is part of the target only where `state` has something of ours on it,
/// which is then to go.
///
/// # Errors
/// Every field in which the plan and the machine differ.
pub fn bind(
    _plan: &CheckedPlan,
    _node: &str,
    _observed: &Observed,
    _state: &State,
) -> Result<Binding, Vec<Stale>> {
    Err(Vec::new())
}

/// The modes and instances that are not as they were when the plan was made, on the GPUs of the target.
///
/// Apart from [`bind`], because it matters only while there is something to do: a machine that already is
/// what the plan says is no longer what the plan was made from, and applying again does nothing.
#[must_use]
pub fn stale(_machine: &Machine, _target: &Target, _observed: &Observed) -> Vec<Stale> {
    Vec::new()
}
