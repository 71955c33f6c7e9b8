//! What a machine is wanted to be: GPU by GPU, the mode, the instances and the clock.
//!
//! Made from a plan by [`bind()`](crate::bind::bind), or from an earlier [`Observed`] by [`restore`] when the
//! wish is to go back. A GPU that is not named is left as it is.

use crate::observed::{GpuUuid, Observed, ObservedInstance};
use crate::state::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The wish for a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// GPUs that are to be a certain way.
    pub gpus: BTreeMap<GpuUuid, TargetGpu>,
}

/// The wish for a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetGpu {
    /// Whether MIG mode is on; `None` leaves it.
    pub mig: Option<bool>,
    /// The services that have the board whole or share it by MPS; empty under MIG, where each instance
    /// names its own, and when an earlier machine is restored.
    #[serde(default)]
    pub services: Vec<String>,
    /// Whether persistence mode is on; `None` leaves it. Without it locked clocks are lost with the last
    /// client.
    pub persistence: Option<bool>,
    /// The instances of ours there are to be, by start. Foreign ones are never part of a wish.
    pub instances: Vec<TargetInstance>,
    /// The SM clock.
    pub sm_clock: ClockTarget,
    /// The power management limit (mW); `None` leaves it.
    pub power_limit_mw: Option<u32>,
}

impl TargetGpu {
    /// What a GPU is to be that was ours and carries nothing from now on.
    #[must_use]
    pub fn released() -> Self {
        Self {
            mig: None,
            services: Vec::new(),
            persistence: None,
            instances: Vec::new(),
            sm_clock: ClockTarget::Unlocked,
            power_limit_mw: None,
        }
    }
}

/// The wish for a GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetInstance {
    /// Its profile, `1g.10gb`.
    pub profile: String,
    /// First memory slice: where the plan puts it. Another legal one realises the plan as well.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// Whether only this very place will do: when an earlier machine is restored.
    pub is_fixed: bool,
    /// The service it carries; `None` when an earlier machine is restored.
    pub service: Option<String>,
}

/// The wish for a GPU's SM clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockTarget {
    /// As it is.
    Leave,
    /// Not locked: the driver decides.
    Unlocked,
    /// Locked to a range (MHz).
    Locked {
        /// Lowest.
        min: u32,
        /// Highest.
        max: u32,
    },
}

/// The wish that the touched GPUs be as they were: mode, persistence, power limit, our instances at their
/// very places, and the clock that we had locked, or none.
///
/// Foreign instances are no part of it: they were never touched. A lock that somebody else had set cannot
/// be given back, because NVML does not tell it. GPUs that `before` does not have are left out.
#[must_use]
pub fn restore(before: &Observed, state_before: &State, touched: &BTreeSet<GpuUuid>) -> Target {
    let was = before.gpus.iter().filter(|gpu| touched.contains(&gpu.uuid));
    let gpus = was.map(|gpu| {
        let is_of_this_boot = crate::diff::is_of_this_boot(state_before, &gpu.uuid, before);
        let state = state_before.gpus.get(&gpu.uuid).filter(|_| is_of_this_boot);
        let is_ours = |instance: &&ObservedInstance| {
            state.is_some_and(|state| state.instances.iter().any(|ours| ours.is_at(instance)))
        };
        let mut instances: Vec<TargetInstance> = gpu
            .instances
            .iter()
            .filter(is_ours)
            .map(|instance| TargetInstance {
                profile: instance.profile.clone(),
                start: instance.start,
                size: instance.size,
                is_fixed: true,
                service: None,
            })
            .collect();
        instances.sort_by_key(|instance| instance.start);
        let locked = state.and_then(|state| state.locked_sm_clock_mhz);
        let wish = TargetGpu {
            mig: gpu.mig.map(|mode| mode.current),
            services: Vec::new(),
            persistence: gpu.is_persistent,
            instances,
            sm_clock: locked.map_or(ClockTarget::Unlocked, |(min, max)| ClockTarget::Locked { min, max }),
            power_limit_mw: gpu.power_limit_mw,
        };
        (gpu.uuid.clone(), wish)
    });
    Target { gpus: gpus.collect() }
}
