//! What entc last made of a machine, with the values from before: the file `state.json`.
//!
//! What is not in it is not ours. It is written by atomic rename, after every transaction. Instances and
//! locked clocks do not survive a boot, so what is ours is ours in the boot it was made in: after
//! another, whatever sits in the same place was made by somebody else.

use crate::observed::{GpuUuid, Observed, ObservedInstance};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod after;

pub(crate) use after::{completed, restored, wished};

/// The version of the format that this crate writes: minor is additive, major is breaking.
pub const FORMAT_VERSION: &str = "1.0";

/// The instances that are ours: GPU, first memory slice, memory slices, profile.
pub type Ours = BTreeSet<(GpuUuid, u32, u32, String)>;

/// The file `state.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The format's version: minor is additive, major is breaking.
    pub format_version: String,
    /// The plan's checksum; `None` when what is ours was only imported.
    pub plan: Option<String>,
    /// The node of the plan that this machine is.
    pub node: Option<String>,
    /// The boot of the last transaction.
    pub boot_id: String,
    /// What is ours, by GPU.
    pub gpus: BTreeMap<GpuUuid, GpuState>,
}

/// What is ours on a GPU, and what we last made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuState {
    /// The boot in which we last made it so; empty: that of the whole state.
    #[serde(default)]
    pub boot_id: String,
    /// Our instances, by start.
    pub instances: Vec<InstanceState>,
    /// The instances of others when we last made it so, by start: that they are there is no drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<InstanceState>,
    /// The services that have the board whole or share it by MPS; empty under MIG.
    #[serde(default)]
    pub services: Vec<String>,
    /// The SM clock range that we locked (MHz).
    pub locked_sm_clock_mhz: Option<(u32, u32)>,
    /// The MIG mode that we set or rely on; `None`: neither.
    #[serde(default)]
    pub mig: Option<bool>,
    /// The persistence mode that we set; `None`: none.
    #[serde(default)]
    pub persistence: Option<bool>,
    /// The power management limit that we set, or found when we made it so (mW); `None`: not known.
    #[serde(default)]
    pub power_limit_mw: Option<u32>,
    /// As it was before entc first changed it; what `entc destroy` restores. `None`: never changed.
    pub before: Before,
}

/// The values from before entc first changed a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// MIG mode.
    pub mig: Option<bool>,
    /// Persistence mode.
    pub persistence: Option<bool>,
    /// Power management limit (mW).
    pub power_limit_mw: Option<u32>,
}

/// One of our instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceState {
    /// Its profile.
    pub profile: String,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub size: u32,
    /// The service it carries.
    pub service: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            format_version: FORMAT_VERSION.to_owned(),
            plan: None,
            node: None,
            boot_id: String::new(),
            gpus: BTreeMap::new(),
        }
    }
}

impl State {
    /// The instances that the file says are ours, whatever became of them.
    #[must_use]
    pub fn ours(&self) -> Ours {
        self.gpus.iter().flat_map(|(gpu, state)| state.ours(gpu)).collect()
    }

    /// What of it still holds on a machine as it is now: of an earlier boot no instances and no clocks.
    /// This is what [`diff`](crate::diff::diff) is to be given.
    #[must_use]
    pub fn on(&self, observed: &Observed) -> Self {
        let mut state = self.clone();
        for gpu in state.gpus.values_mut() {
            if self.boot_of(gpu) != observed.boot_id {
                gpu.instances.clear();
                gpu.locked_sm_clock_mhz = None;
            }
            gpu.boot_id.clone_from(&observed.boot_id);
        }
        state.boot_id.clone_from(&observed.boot_id);
        state
    }

    /// The boot that what is said of a GPU belongs to.
    #[must_use]
    pub fn boot_of<'a>(&'a self, gpu: &'a GpuState) -> &'a str {
        if gpu.boot_id.is_empty() { &self.boot_id } else { &gpu.boot_id }
    }
}

impl GpuState {
    fn ours<'a>(&'a self, gpu: &'a GpuUuid) -> impl Iterator<Item = (GpuUuid, u32, u32, String)> + 'a {
        self.instances.iter().map(|i| (gpu.clone(), i.start, i.size, i.profile.clone()))
    }
}

impl InstanceState {
    /// Whether an instance of this profile is in this very place.
    #[must_use]
    pub fn is_at(&self, instance: &ObservedInstance) -> bool {
        (self.start, self.size) == (instance.start, instance.size) && self.profile == instance.profile
    }
}
