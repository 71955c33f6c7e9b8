//! Changes + machine → everything that is known to fail, before anything is changed.

use crate::changes::Changes;
use crate::error::Refusal;
use crate::observed::Observed;

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
