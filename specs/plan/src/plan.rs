//! The plan: a desired deployment, with its numbers and its reasons.
//!
//! `plan.json` is this type and nothing else: no date, no elapsed time, so that the same program
//! gives the same bytes. Every number here is recomputed by [`check`] from the instances; the one
//! that cannot be is [`Objective::bound`], which is the planner's claim.

use crate::device::Board;
use crate::units::Megahertz;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod check;
mod checksum;
mod metrics;
pub mod sample;

pub use check::{CheckedPlan, Fault, OPTIMAL_GAP, check, check_boards};
pub use checksum::{ChecksumFault, checksum_fault, checksum_fault_in, seal};
pub use metrics::gap;

/// The version of the plan format this crate writes: minor is additive, major is breaking.
pub const FORMAT_VERSION: &str = "1.1";

/// How far a plan is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Nothing better exists, within the solver's tolerance.
    Optimal,
    /// The gap is within the limit that was asked for.
    WithinGap,
    /// Stopped by a limit, with a plan.
    Feasible,
    /// No plan exists.
    Infeasible,
    /// Stopped by a limit before any plan was found.
    Unknown,
}

/// What a plan can be judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Provisioned power, everything busy at once (W).
    Power,
    /// Energy at the offered load over the horizon (J).
    Energy,
    /// Emissions over the horizon (gCO2).
    Carbon,
    /// Boards used.
    Gpus,
    /// Cost over the horizon (USD).
    Cost,
}

impl Metric {
    /// The word in the language and in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Energy => "energy",
            Self::Carbon => "carbon",
            Self::Gpus => "gpus",
            Self::Cost => "cost",
        }
    }

    /// All metrics.
    pub const ALL: [Self; 5] = [Self::Power, Self::Energy, Self::Carbon, Self::Gpus, Self::Cost];
}

/// Which latency a promise is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyRule {
    /// Batch-formation wait, queueing and execution together: what a client sees.
    Queueing,
    /// Execution of a full batch only: the published papers' rule.
    Execution,
}

/// The objective and what is known about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Objective {
    /// What was minimised.
    pub metric: Metric,
    /// Its value for this plan: W for power, J over the horizon for energy, g for carbon.
    pub value: Option<f64>,
    /// No plan can be better than this; claimed by the planner. `null` when it proves none.
    pub bound: Option<f64>,
    /// `|value - bound| / |value|`, a fraction. `null` without a bound.
    pub gap: Option<f64>,
}

/// All metrics of a plan, whatever was minimised. `null` where a fact is missing (no power data, no
/// price, no carbon intensity).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    /// Provisioned power (W), predicted.
    pub power_w: Option<f64>,
    /// Mean power at the offered load (W), predicted.
    pub mean_power_w: Option<f64>,
    /// Energy per hour at the offered load (J), predicted.
    pub energy_j_per_hour: Option<f64>,
    /// Emissions per hour, mean over the horizon (gCO2), predicted.
    pub carbon_g_per_hour: Option<f64>,
    /// Boards used.
    pub gpus: u32,
    /// Cost per hour (USD).
    pub cost_per_hour: Option<f64>,
}

/// How a board is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Cut into MIG instances.
    Mig,
    /// Processes share by MPS percentages.
    Mps,
    /// One service has the whole board.
    Whole,
}

/// One operating point bound to one MIG device, MPS share or whole board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Instance {
    /// MIG profile name; `null` outside MIG.
    pub profile: Option<String>,
    /// First memory slice; `null` outside MIG.
    pub start: Option<u32>,
    /// Memory slices occupied; `null` outside MIG.
    pub size: Option<u32>,
    /// MPS active-thread percentage; `null` inside MIG.
    pub mps_percent: Option<u32>,
    /// The service it carries.
    pub service: String,
    /// The neural network.
    pub model: String,
    /// Worker processes on it.
    pub processes: u32,
    /// Largest batch.
    pub batch: u32,
    /// The oldest request waits at most this long for its batch to fill (ms).
    pub max_wait_ms: f64,
    /// Time of a batch of k requests (ms), for k = 1..batch.
    pub batch_times_ms: Vec<f64>,
    /// Dynamic energy of a batch of k requests (J), for k = 1..batch; empty without power data. Of one
    /// process's batch: `dynamic_power_w` is `processes * energy / time` of a full one.
    pub batch_energy_j: Vec<f64>,
    /// Offered rate (req/s).
    pub rate_rps: f64,
    /// Rate at which it saturates (req/s).
    pub capacity_rps: f64,
    /// The highest rate at which the promise holds (req/s).
    pub admissible_rps: f64,
    /// `rate / capacity`.
    pub utilisation: f64,
    /// Predicted latency at the promised percentile (ms).
    pub predicted_latency_ms: f64,
    /// The promise (ms).
    pub promised_latency_ms: f64,
    /// Dynamic power when always busy with full batches (W), predicted.
    pub dynamic_power_w: Option<f64>,
    /// Mean dynamic power at the offered rate (W), predicted.
    pub mean_dynamic_power_w: Option<f64>,
    /// Memory its processes need (bytes), where the model declares it.
    pub memory_bytes: Option<f64>,
    /// Relative error band of the predicted times, one standard deviation; 0 for measured tables.
    pub time_error: f64,
    /// Relative error band of the predicted dynamic power, one standard deviation.
    pub power_error: f64,
    /// Where the numbers come from: `fitted`, `table`, `extrapolated`.
    pub source: String,
}

/// One used board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// The node it is in.
    pub node: String,
    /// Its index in the node.
    pub index: u32,
    /// Its UUID; `null` when planned offline.
    pub uuid: Option<String>,
    /// Catalogue id.
    pub board: String,
    /// How it is shared.
    pub sharing: Sharing,
    /// Its one SM clock.
    pub sm_clock_mhz: Megahertz,
    /// Base power at that clock (W); `null` when unknown.
    pub base_power_w: Option<f64>,
    /// Mean power at the offered load (W), predicted.
    pub mean_power_w: Option<f64>,
    /// Provisioned power (W), predicted.
    pub power_w: Option<f64>,
    /// What runs on it, by start.
    pub instances: Vec<Instance>,
}

/// Boards of a node that carry nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unused {
    /// The node.
    pub node: String,
    /// Catalogue id.
    pub board: String,
    /// How many.
    pub count: u32,
    /// Whether they are switched off (no power) or left idle at the lowest clock.
    pub is_off: bool,
    /// Idle power of one (W); 0 when off, `null` when unknown.
    pub power_w: Option<f64>,
}

/// What a service gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// The rate it asks for (req/s).
    pub rate_rps: f64,
    /// The rate that is served (req/s).
    pub served_rps: f64,
    /// The promised percentile, 0.99 for p99.
    pub percentile: f64,
    /// Arrival process in words: `poisson`, `uniform`, `gamma(cv = 2)`.
    pub arrivals: String,
    /// Worst predicted latency over its replicas (ms).
    pub predicted_latency_ms: Option<f64>,
    /// The promise (ms).
    pub promised_latency_ms: f64,
    /// Instances that carry it.
    pub replicas: u32,
}

/// A limit the program sets on a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// The metric.
    pub metric: Metric,
    /// Not above this: W mean over everything busy for `power`, J and g over the horizon, boards, USD
    /// over the horizon.
    pub at_most: f64,
}

/// The facts about the site that carbon and cost were computed with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Accounting {
    /// Length of the horizon (s).
    pub horizon_s: f64,
    /// Mean carbon intensity over the horizon (gCO2/kWh).
    pub carbon_intensity_g_per_kwh: Option<f64>,
    /// Embodied carbon of one board per hour of use (g).
    pub embodied_g_per_gpu_hour: f64,
    /// Power usage effectiveness per node; 1 for a node that is not listed.
    pub pue: std::collections::BTreeMap<String, f64>,
    /// Price of one board-hour per node (USD).
    pub price_per_gpu_hour: std::collections::BTreeMap<String, f64>,
}

/// A warning that travels with the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// `error` or `warning`.
    pub severity: String,
    /// The diagnostic's code.
    pub code: String,
    /// What is to be known.
    pub message: String,
    /// Where in the program: `file:line:column`; `null` when it is about no place.
    pub location: Option<String>,
    /// What to do.
    pub help: Option<String>,
}

/// The machine that a plan was made from, as it was then: what `apply` compares to find the plan stale.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// The node of the plan that it is.
    pub node: String,
    /// Its driver's version.
    pub driver_version: String,
    /// Whether it is a simulated one.
    pub is_simulated: bool,
    /// Its GPUs, by index.
    pub gpus: Vec<MachineGpu>,
}

/// A GPU of the machine that a plan was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineGpu {
    /// Its index.
    pub index: u32,
    /// Its UUID.
    pub uuid: String,
    /// Its catalogue id.
    pub board: Option<String>,
    /// Whether MIG mode was on; `null` when it has none.
    pub mig: Option<bool>,
    /// Its GPU instances as `profile@start`, by start.
    pub instances: Vec<String>,
}

/// The file of a neural network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelFile {
    /// The network's name in the program.
    pub name: String,
    /// Its TorchScript file; a path that is not absolute is relative to the folder that the plan was made in.
    pub artifact: String,
}

/// A desired deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// The version of entc that made it.
    pub entc_version: String,
    /// Name of the program's file.
    pub program: String,
    /// The params it was planned with, as text.
    pub params: std::collections::BTreeMap<String, String>,
    /// How far it is proven.
    pub status: Status,
    /// Which limit stopped the planner, if one did: `time limit`, `node limit`.
    pub stopped_by: Option<String>,
    /// The objective.
    pub objective: Objective,
    /// Who made it: `optimal`, `greedy`, …
    pub planner: String,
    /// Which latency the promises are about.
    pub latency_rule: LatencyRule,
    /// All metrics.
    pub metrics: Metrics,
    /// Limits that were set.
    pub limits: Vec<Limit>,
    /// Site facts.
    pub accounting: Accounting,
    /// What is known of the boards that `gpus` and `unused` name, with the program's own changes: a plan
    /// stands alone, without the catalogue of the version that made it.
    pub boards: Vec<Board>,
    /// Used boards, by node and index.
    pub gpus: Vec<Gpu>,
    /// Boards that carry nothing.
    pub unused: Vec<Unused>,
    /// The services, in the program's order.
    pub services: Vec<Service>,
    /// Files of the networks that services use, of those that the program names one for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelFile>,
    /// What the numbers rest on, in words.
    pub assumptions: Vec<String>,
    /// Warnings.
    pub diagnostics: Vec<Note>,
    /// The machine it was made from; `null` when it was planned offline.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// `sha256:` and the hash of everything else here (RFC 8785, SHA-256), so that an edited plan is not
    /// applied; `null` in plans of format 1.0.
    #[serde(default)]
    pub checksum: Option<String>,
}
