//! GPUlets: boards split in at most two shares, filled by elastic partitioning.
//!
//! As published (ATC'22), for one kind of board. Half of a promise is for waiting and half for execution;
//! each service gets shares at the size where throughput per size stops growing, and what is left over gets a
//! share it does not fill. Which neighbours may be hurt follows a linear model of L2 and memory use.

mod adapter;
mod board;
mod estimate;
mod measure;
mod schedule;

pub use adapter::{NAME, PARTITIONS, plan};

use crate::published::Mode;

/// Requests per second that count as served when they are left over.
pub const SLACK: f64 = 15.0;

/// Largest batch that is searched for.
pub const MOST_BATCH: u32 = 32;

/// A model, its demand, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Offered rate (req/s). The original reads whole numbers.
    pub rate: f64,
    /// Latency promise (ms). The original reads whole numbers.
    pub bound_ms: f64,
    /// Memory of one process (MB).
    pub memory_mb: f64,
    /// Input of one request (bytes).
    pub request_bytes: f64,
    /// Percentage, batch and latency (ms). For each percentage batches 1 and [`MOST_BATCH`] must be there.
    pub latencies: Vec<(u32, u32, f64)>,
    /// Time to gather batches of 1, 2, … (ms); the last counts for all above; none at all is nothing.
    pub batching_ms: Vec<f64>,
    /// Batch, L2 and memory utilisation, 0..=1, ascending. Without any nothing interferes.
    pub utilisation: Vec<(u32, f64, f64)>,
    /// Largest batch it may run, at most [`MOST_BATCH`].
    pub most_batch: u32,
}

/// What GPUlets decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The models. Ties go to the later one.
    pub models: Vec<Model>,
    /// Boards there are.
    pub boards: usize,
    /// Sizes of shares (%), 100 among them.
    pub partitions: Vec<u32>,
    /// Latencies are taken times this.
    pub latency_ratio: f64,
    /// Interference factor of a neighbour, at least 1: `c4 + c0 l2 p + c1 l2' q + c2 memory p + c3 memory' q`
    /// for shares p and q as fractions; `None` leaves it out.
    pub interference: Option<[f64; 5]>,
    /// Most models in one share.
    pub most_models: usize,
    /// Sizes are the least that carry the rate, and shares are not shared in time.
    pub is_self_tuning: bool,
    /// Memory of a board (MB).
    pub memory_mb: f64,
    /// Input that a board can take (bytes/s); `None` leaves it out. Looked at only where a share is readjusted.
    pub network: Option<f64>,
}

impl Input {
    /// The network the original reckons with: 3 Gibit/s per board, in bytes/s.
    pub const NETWORK: f64 = 3.0 * 1024.0 * 1024.0 * 1024.0 / 8.0;
}

/// What a model does in a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tenant {
    /// Index into [`Input::models`].
    pub model: usize,
    /// Its batch.
    pub batch: u32,
    /// What is served (req/s).
    pub throughput: f64,
    /// What was left to be served when it was placed (req/s).
    pub rate: f64,
}

/// A share of a board.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpulet {
    /// Its MPS percentage.
    pub percent: u32,
    /// The second half of a board split in halves.
    pub is_second_half: bool,
    /// Execution over duty cycle; 1 when saturated.
    pub occupancy: f64,
    /// Time between batches (ms); 0 while it is empty.
    pub duty_ms: f64,
    /// What runs in it; empty when it is reserved for nothing.
    pub tenants: Vec<Tenant>,
    /// Batches follow each other without pause.
    pub(crate) is_saturated: bool,
    /// A process has been started in it.
    pub(crate) is_loaded: bool,
}

/// A board and its shares.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// One share of 100 %, or two.
    pub gpulets: Vec<Gpulet>,
    /// Memory that is taken (MB).
    pub memory_mb: f64,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every model has its shares, as far as GPUlets can tell.
    Scheduled,
    /// This model could not be placed, and the original then plans nothing at all.
    Empty {
        /// Index into [`Input::models`].
        model: usize,
    },
    /// The original never ends: no inflated rate covers 99 % of this model's seconds.
    Hangs {
        /// Index into [`Input::models`].
        model: usize,
    },
    /// The original crashes: this model's inflated rate asks for no share.
    Crashes {
        /// Index into [`Input::models`].
        model: usize,
    },
    /// The original aborts: not even one request of this model is within its promise.
    Aborts {
        /// Index into [`Input::models`].
        model: usize,
    },
    /// A rate, promise or table of this model is no positive number or lacks a batch.
    Unusable {
        /// Index into [`Input::models`].
        model: usize,
    },
}

/// What GPUlets decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// How it ended.
    pub ending: Ending,
    /// The boards; none unless scheduled.
    pub gpus: Vec<Gpu>,
    /// Models without any share. Only [`Mode::Native`] goes on without them.
    pub dropped: Vec<usize>,
}

/// Decides like GPUlets. [`Mode::Native`] takes rates as real numbers, serves them to the last, searches
/// batches to the end, waits for no batch of one, and goes on without a model that cannot be placed.
#[must_use]
pub fn decide(input: &Input, mode: Mode) -> Decision {
    schedule::schedule(input, mode)
}

#[cfg(test)]
mod tests;
