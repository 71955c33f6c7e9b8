//! What becomes of a machine: everything that changes, as `state.json` holds it.

use super::{Placement, Serial};
use serde::{Deserialize, Serialize};

/// The format that this library reads and writes.
pub const VERSION: u32 = 1;

/// A machine's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Of the format.
    pub version: u32,
    /// Number of this boot, from 1.
    pub boot: u64,
    /// The next serial to give away.
    pub next_serial: Serial,
    /// Processes with an initialised NVML.
    pub sessions: Vec<Session>,
    /// Its GPUs, by index.
    pub gpus: Vec<GpuState>,
}

/// A process with an initialised NVML.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Its process id.
    pub pid: u32,
    /// When it started, in the system's own unit: the same id can come again.
    pub started: u64,
}

/// A GPU's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuState {
    /// Its board, to see that the machine is still the same.
    pub board: String,
    /// MIG mode.
    pub mig: bool,
    /// MIG mode after the next reset.
    pub mig_pending: bool,
    /// Persistence mode.
    pub is_persistent: bool,
    /// Locked SM clocks (MHz): lowest and highest.
    pub locked_clocks: Option<(u32, u32)>,
    /// Locked memory clocks (MHz): lowest and highest.
    pub locked_memory_clocks: Option<(u32, u32)>,
    /// Power limit (mW); `None`: as shipped.
    pub power_limit_mw: Option<u32>,
    /// Fallen off the bus.
    pub is_lost: bool,
    /// GPU instances, in the order of creation.
    pub instances: Vec<GpuInstance>,
    /// Who has it open.
    pub processes: Vec<Process>,
    /// What it has drawn.
    pub energy: Energy,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuInstance {
    /// Its own for all time.
    pub serial: Serial,
    /// Its id on its GPU.
    pub id: u32,
    /// Its profile's id.
    pub profile_id: u32,
    /// Its memory slices.
    pub placement: Placement,
    /// Its compute instances, in the order of creation.
    pub compute_instances: Vec<ComputeInstance>,
}

/// A compute instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeInstance {
    /// Its own for all time.
    pub serial: Serial,
    /// Its id within its GPU instance.
    pub id: u32,
    /// Its profile's id.
    pub profile_id: u32,
    /// Its compute slices.
    pub placement: Placement,
}

/// A process that has a GPU open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// When it started; `None` for one that was described and need not exist.
    pub started: Option<u64>,
    /// Its name.
    pub name: String,
    /// The compute instance it sits on; `None`: the whole GPU.
    pub on: Option<Serial>,
    /// What it draws beyond the base power (W).
    pub dynamic_w: f64,
}

/// What a GPU has drawn since it was booted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// Up to `since_ns` (mJ).
    pub millijoules: f64,
    /// When that was (ns since the epoch).
    pub since_ns: u64,
    /// Earlier values of both, for a sensor with a window; oldest first.
    #[serde(default)]
    pub history: Vec<(u64, f64)>,
}

impl GpuState {
    /// A GPU as it is when it was just booted for the first time.
    pub(crate) fn new(board: &str, mig: bool, is_persistent: bool, now_ns: u64) -> Self {
        Self {
            board: board.to_owned(),
            mig,
            mig_pending: mig,
            is_persistent,
            locked_clocks: None,
            locked_memory_clocks: None,
            power_limit_mw: None,
            is_lost: false,
            instances: Vec::new(),
            processes: Vec::new(),
            energy: Energy { since_ns: now_ns, ..Energy::default() },
        }
    }
}
