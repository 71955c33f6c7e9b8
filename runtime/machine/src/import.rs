//! Machine + state → a state in which foreign instances are ours.

use crate::apply::{Ended, Means};
use crate::observed::{GpuUuid, Observed};
use crate::state::{Ours, State};

/// The foreign instances that [`import`] would take over; on these GPUs, or on all.
#[must_use]
pub fn foreign(state: &State, observed: &Observed, gpus: Option<&[GpuUuid]>) -> Ours {
    let _ = (state, observed, gpus);
    Ours::new()
}

/// Takes foreign instances over into the state, with the values from before; the machine is not changed.
///
/// # Errors
/// When a transaction is open, the machine cannot be read or the state not be written.
pub fn import(means: &mut Means<'_>, gpus: Option<&[GpuUuid]>) -> Ended {
    let _ = (means, gpus);
    crate::apply::unimportant()
}
