//! State + machine → the wish to have everything as it was before entc.

use crate::observed::Observed;
use crate::state::State;
use crate::target::{ClockTarget, Target, TargetGpu};

/// What `entc destroy` wishes for, and what it cannot give back, in words. [`diff`](crate::diff::diff) it,
/// show the steps, and [`apply`](crate::apply::apply) them as
/// [`Transaction::Destroy`](crate::journal::Transaction::Destroy). Foreign instances stay, and so does
/// the MIG mode that they need.
#[must_use]
pub fn target(state: &State, observed: &Observed) -> (Target, Vec<String>) {
    let state = state.on(observed);
    let ours = state.ours();
    let (mut target, mut notes) = (Target::default(), Vec::new());
    for (uuid, made) in &state.gpus {
        let Some(gpu) = observed.gpu(uuid) else {
            notes.push(format!(
                "{uuid} is not on this machine any more; what is recorded of it stays recorded"
            ));
            continue;
        };
        let is_foreign = |i: &&crate::observed::ObservedInstance| {
            !ours.contains(&(uuid.clone(), i.start, i.size, i.profile.clone()))
        };
        let n_foreign = gpu.instances.iter().filter(is_foreign).count() + gpu.unplaced.len();
        let mut mig = made.before.mig;
        if mig == Some(false) && n_foreign > 0 {
            mig = None;
            notes.push(format!(
                "MIG mode of gpu {} stays on: {n_foreign} of its instances are not entc's",
                gpu.index
            ));
        }
        let sm_clock =
            if made.locked_sm_clock_mhz.is_some() { ClockTarget::Unlocked } else { ClockTarget::Leave };
        let wish = TargetGpu {
            mig,
            persistence: made.before.persistence,
            instances: Vec::new(),
            services: Vec::new(),
            sm_clock,
            power_limit_mw: made.before.power_limit_mw,
        };
        target.gpus.insert(uuid.clone(), wish);
    }
    (target, notes)
}
