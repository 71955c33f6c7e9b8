//! What entc last made of a machine, with the values from before: the file `state.json`.
//!
//! What is not in it is not ours. It is written by atomic rename, after every transaction.

use crate::observed::GpuUuid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The instances that are ours: GPU, first memory slice, memory slices, profile.
pub type Ours = BTreeSet<(GpuUuid, u32, u32, String)>;

/// The file `state.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The format's version: minor is additive, major is breaking.
    pub format_version: String,
    /// The plan's checksum; `None` when what is ours was only imported.
    pub plan: Option<String>,
    /// The node of the plan that this machine is.
    pub node: Option<String>,
    /// The boot in which it was applied.
    pub boot_id: String,
    /// What is ours, by GPU.
    pub gpus: BTreeMap<GpuUuid, GpuState>,
}

/// What is ours on a GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuState {
    /// Our instances, by start.
    pub instances: Vec<InstanceState>,
    /// The SM clock range that we locked (MHz).
    pub locked_sm_clock_mhz: Option<(u32, u32)>,
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

impl State {
    /// The instances that are ours.
    #[must_use]
    pub fn ours(&self) -> Ours {
        let of = |(gpu, state): (&GpuUuid, &GpuState)| -> Vec<(GpuUuid, u32, u32, String)> {
            let all = state.instances.iter();
            all.map(|i| (gpu.clone(), i.start, i.size, i.profile.clone())).collect()
        };
        self.gpus.iter().flat_map(of).collect()
    }
}
