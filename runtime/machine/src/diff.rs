//! Machine + target → changes: as few instances destroyed as any placement of the wish allows.

use crate::changes::Changes;
use crate::error::Refusal;
use crate::observed::Observed;
use crate::state::State;
use crate::target::Target;

/// The steps from a machine to a target.
///
/// `state` says what is ours, which services it carries and which clocks are locked. What is not in it is
/// not ours and is never destroyed. After a crash it must also hold what an open journal began.
///
/// # Errors
/// What makes the target unreachable: foreign instances in the way, unknown profiles, GPUs that are gone.
pub fn diff(_target: &Target, _observed: &Observed, _state: &State) -> Result<Changes, Vec<Refusal>> {
    Ok(Changes::default())
}
