//! A resolved program: what is promised, on what hardware, at what objective.
//!
//! Meaning first. A *service* promises to answer requests of one *model* at an offered rate within a
//! latency percentile. *Nodes* are classes of interchangeable boards. The *objective* says what to
//! minimise and what may not be exceeded. Everything that came from the text knows where.
//!
//! Names, units and the device catalogue are settled here; measurements are not read, nothing is
//! known of solvers or of machines. All quantities are finite and in range.

use ent_plan::device::Board;
use ent_plan::diagnostic::{Located, Span};
use ent_plan::plan::{LatencyRule, Metric};
use ent_plan::units::{Bytes, Dollars, Grams, GramsPerKilowattHour, Megahertz, PerSecond, Seconds};
use std::collections::BTreeMap;

/// A resolved program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The main file's name as the user gave it.
    pub name: String,
    /// Every `param` of the main file and its imports with its final value, as it would be written.
    pub params: BTreeMap<String, String>,
    /// The models that services use.
    pub models: Vec<Model>,
    /// The services, in the order written.
    pub services: Vec<Service>,
    /// The hardware.
    pub nodes: Vec<Node>,
    /// The boards that nodes refer to, catalogue entries with the spec's own changes applied.
    pub boards: Vec<Board>,
    /// What is known of the electricity's carbon.
    pub carbon: Carbon,
    /// What to minimise, within what.
    pub objective: Objective,
    /// The latency rule the spec or the caller asks for; the planner's default when `None`.
    pub latency_rule: Option<LatencyRule>,
}

/// A neural network and where its performance is known from.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name in the spec.
    pub name: Located<String>,
    /// Performance data, at most one per board.
    pub performance: Vec<Located<PerformanceRef>>,
    /// TorchScript file; only `apply` needs it.
    pub artifact: Option<Located<String>>,
    /// Memory of one process, weights and activations at the largest batch.
    pub memory: Option<Located<Bytes>>,
}

/// Where performance data comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerformanceRef {
    /// The file: `catalog:performance/a100-80gb-pcie`, a path relative to the main file's folder
    /// (already joined to the importing file's folder), or `data:…` below the data folder.
    pub file: String,
    /// The entry in the file; `None` when the file holds one model or names match the model's.
    pub entry: Option<String>,
    /// Use measured rows directly instead of a fitted model.
    pub source: PerformanceSource,
}

/// How performance data is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PerformanceSource {
    /// A fitted model; a CSV file is fitted when it is read.
    Fitted,
    /// Measured rows only, nothing in between.
    Table,
}

/// A promise.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name.
    pub name: Located<String>,
    /// Index into [`Program::models`].
    pub model: Located<usize>,
    /// Offered rate.
    pub rate: Located<PerSecond>,
    /// The latency promise.
    pub slo: Located<Slo>,
    /// How requests arrive. `poisson` unless the spec says otherwise.
    pub arrivals: Located<Arrivals>,
    /// Least and most instances.
    pub replicas: Option<Located<Replicas>>,
    /// A pinned operating point, as far as it is pinned.
    pub pin: Option<Located<Pin>>,
    /// No other service on its boards.
    pub isolate: Option<Located<bool>>,
    /// Replicas apart from each other.
    pub spread: Option<Located<Spread>>,
}

/// A latency promise: this percentile of latency within this bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    /// 0.99 for p99; in (0, 1).
    pub percentile: f64,
    /// The bound.
    pub bound: Seconds,
}

/// An arrival process.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Evenly spaced.
    Uniform,
    /// Memoryless.
    Poisson,
    /// Gamma-distributed gaps with this coefficient of variation; 1 is Poisson.
    Gamma {
        /// Standard deviation of the gaps over their mean; > 0.
        cv: f64,
    },
    /// Gaps read from a file.
    Trace {
        /// The file, as in [`PerformanceRef::file`].
        file: String,
    },
}

/// Bounds on the number of instances of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// A pinned operating point; `None` fields are free.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pin {
    /// MIG profile by name.
    pub profile: Option<Located<String>>,
    /// Largest batch.
    pub batch: Option<Located<u32>>,
    /// SM clock of its boards.
    pub clock: Option<Located<Megahertz>>,
    /// Processes per instance.
    pub processes: Option<Located<u32>>,
    /// Name of the node.
    pub node: Option<Located<String>>,
}

/// What replicas must not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// A board.
    Gpu,
    /// A node.
    Node,
}

/// A class of interchangeable boards.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: Located<String>,
    /// Index into [`Program::boards`].
    pub board: Located<usize>,
    /// How many boards it has.
    pub count: Located<u32>,
    /// What unused boards do. `Idle` unless the spec says otherwise.
    pub unused: UnusedBoards,
    /// How its boards may be shared. `Mig` unless the spec says otherwise.
    pub sharing: ent_plan::plan::Sharing,
    /// Price of one board-hour.
    pub price: Option<Located<Dollars>>,
    /// Power usage effectiveness; 1 unless the spec says otherwise.
    pub pue: f64,
    /// Clocks the planner may choose; all with a known base power when `None`.
    pub clocks: Option<Located<Vec<Megahertz>>>,
}

/// What a board that carries nothing does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedBoards {
    /// Draws its base power at the lowest clock.
    Idle,
    /// Draws nothing.
    Off,
}

/// What is known of the electricity's carbon.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carbon {
    /// Intensity over time.
    pub intensity: Option<Located<Intensity>>,
    /// Embodied carbon of one board, spread over its life.
    pub embodied: Option<Located<Embodied>>,
}

/// Carbon intensity over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Intensity {
    /// The same all the time.
    Constant(GramsPerKilowattHour),
    /// A series read from a CSV file by the caller (`cli`), one value per step, repeated when the
    /// horizon is longer.
    Series {
        /// The file, as in [`PerformanceRef::file`].
        file: String,
        /// Start of the first step (RFC 3339 text).
        start: Option<String>,
        /// Length of a step.
        step: Seconds,
        /// The values, once read.
        values: Vec<GramsPerKilowattHour>,
    },
}

/// Embodied carbon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embodied {
    /// Of one board.
    pub per_gpu: Grams,
    /// Spread over this long.
    pub lifetime: Seconds,
}

/// What to minimise, within what.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// What to minimise.
    pub minimize: Located<Metric>,
    /// Over how long energy, carbon and cost are counted; 1 h unless the spec says otherwise.
    pub horizon: Seconds,
    /// Upper limits on metrics: W, J over the horizon, g over the horizon, boards, USD over the horizon.
    pub limits: Vec<Limit>,
}

impl Default for Objective {
    fn default() -> Self {
        Self {
            minimize: Located::new(Metric::Energy, Span::default()),
            horizon: Seconds(3600.0),
            limits: Vec::new(),
        }
    }
}

/// An upper limit on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The metric.
    pub metric: Metric,
    /// Not above this, in the metric's unit.
    pub at_most: f64,
    /// Where it is written.
    pub span: Span,
}
