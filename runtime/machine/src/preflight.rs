//! Changes + machine → everything that is known to fail, before anything is changed.

use crate::bind::Binding;
use crate::changes::Changes;
use crate::error::Refusal;
use crate::observed::{GpuUuid, Holder, Observed};
use crate::state::State;
use ent_plan::plan::CheckedPlan;

/// What the user allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Boards may be reset (`--allow-reset`).
    pub reset: bool,
}

/// Everything that stands in the way; empty when the steps may begin.
#[must_use]
pub fn preflight(
    _changes: &Changes,
    _observed: &Observed,
    _allowed: Allowed,
    _is_privileged: bool,
) -> Vec<Refusal> {
    Vec::new()
}

/// What does not stop the steps and is to be known all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A word for scripts: `power-limit-too-low`, `persistence-off`, …
    pub code: &'static str,
    /// The GPU; `None` when it is about the machine.
    pub gpu: Option<GpuUuid>,
    /// What is to be known, one line.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// What is to be known before the steps begin. `plan` is the plan and its binding where the wish is one.
#[must_use]
pub fn warnings(
    _changes: &Changes,
    _observed: &Observed,
    _state: &State,
    _plan: Option<(&CheckedPlan, &Binding)>,
) -> Vec<Warning> {
    Vec::new()
}

/// What the steps do to whatever runs on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Radius {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Its index, for people.
    pub index: u32,
    /// Whether the board resets.
    pub resets: bool,
    /// Instances that go, as `profile@start`, by start.
    pub destroyed: Vec<String>,
    /// Services that stop, or lose an instance, in alphabetical order.
    pub services: Vec<String>,
    /// Processes that lose what they run on, by pid.
    pub processes: Vec<Holder>,
}

/// The reach of the steps, GPU by GPU, by index: only GPUs on which something stops or that reset.
#[must_use]
pub fn blast_radius(_changes: &Changes, _observed: &Observed, _state: &State) -> Vec<Radius> {
    Vec::new()
}
