//! Usher: groups of models with opposite needs, searched whole, packed by compute and memory use.
//!
//! As EnerTune re-made it from Usher (OSDI'24): profiled utilisation in place of the kernel regressor, one
//! kind of board, batches from the profile. Models are grouped so that compute and memory use balance; every
//! choice of batches and replicas of a group is tried; the first with the fewest new boards that carries the
//! group's rates is kept.

mod adapter;
mod grouping;
mod placing;
mod search;

pub use adapter::{NAME, plan};

use crate::published::Mode;
use placing::Board;

/// Replicas are tried at these multiples of the least that carry the rate.
const MULTIPLES: u32 = 6;

/// Batches with a greater memory utilisation are not used to find the least replicas.
const BUSY_MEMORY: f64 = 0.9;

/// What a model does at one batch, alone on the whole board.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Profile {
    /// Requests in the batch.
    pub batch: u32,
    /// Share of the multiprocessors in use, 0..=1.
    pub compute: f64,
    /// Share of the L2 bandwidth in use, 0..=1.
    pub l2: f64,
    /// Share of the memory bandwidth in use, 0..=1. Usher regards it as a share of the memory as well.
    pub memory: f64,
}

/// A model, its demand, and what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Offered rate (req/s).
    pub rate: f64,
    /// Latency promise (ms).
    pub bound_ms: f64,
    /// Utilisation by batch, ascending. A model without any is dropped.
    pub profiles: Vec<Profile>,
    /// Batch and latency (ms) on the whole board, ascending. Linear in between, constant beyond. A model
    /// without any is dropped.
    pub latencies: Vec<(u32, f64)>,
}

impl Model {
    /// Latency of a batch (ms): linear between measured batches, constant beyond them.
    #[must_use]
    pub fn latency(&self, batch: u32) -> f64 {
        let above = self.latencies.partition_point(|(b, _)| *b < batch);
        match (above.checked_sub(1).and_then(|i| self.latencies.get(i)), self.latencies.get(above)) {
            (_, Some((b, latency))) if *b == batch => *latency,
            (Some((b0, l0)), Some((b1, l1))) => l0 + (l1 - l0) * f64::from(batch - b0) / f64::from(b1 - b0),
            (None, Some((_, latency))) | (Some((_, latency)), None) => *latency,
            (None, None) => f64::INFINITY,
        }
    }

    /// Requests per second of one replica with full batches, if nothing interferes.
    fn capacity(&self, batch: u32) -> f64 {
        1000.0 * f64::from(batch) / self.latency(batch)
    }
}

/// What Usher decides from.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The models, in the order given. Ties are broken by it.
    pub models: Vec<Model>,
    /// Interference of the two busiest models of a board, the busiest first:
    /// `c4 + c0 l2_first + c1 l2_second + c2 memory_first + c3 memory_second`, within 1..=3.
    pub constants: [f64; 5],
    /// Memory of a board (MB).
    pub memory_mb: f64,
}

/// One replica on a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Index into [`Input::models`].
    pub model: usize,
    /// Its batch.
    pub batch: u32,
    /// Its number among the model's replicas, from 0.
    pub replica: u32,
    /// Its MPS percentage.
    pub percent: u32,
}

/// A board and what is on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// Sum of compute shares.
    pub compute: f64,
    /// Memory that Usher regards as taken (MB).
    pub memory_mb: f64,
    /// How much longer batches take, at least 1.
    pub interference: f64,
    /// Its replicas, in the order placed.
    pub replicas: Vec<Replica>,
}

/// What was chosen for one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index into [`Input::models`].
    pub model: usize,
    /// Its batch.
    pub batch: u32,
    /// How many replicas.
    pub replicas: u32,
}

/// A group of models and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Indices into [`Input::models`].
    pub models: Vec<usize>,
    /// The least replicas of each that carry its rate at its best batch.
    pub least: Vec<u32>,
    /// Configurations there are.
    pub configurations: u64,
    /// The one kept; empty when none carries the rates: the group is left out.
    pub chosen: Vec<Choice>,
    /// Boards opened for it.
    pub added: u32,
}

/// What Usher decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The boards, in the order opened.
    pub gpus: Vec<Gpu>,
    /// The groups, in the order planned.
    pub groups: Vec<Group>,
    /// Models that could not be regarded at all: nothing is known of them. The original crashes.
    pub unknown: Vec<usize>,
    /// Models none of whose batches is within the promise; only [`Mode::Native`] looks.
    pub too_slow: Vec<usize>,
}

impl Decision {
    /// Models that got no board: of groups that were left out, or unknown.
    #[must_use]
    pub fn dropped(&self) -> Vec<usize> {
        let left_out =
            self.groups.iter().filter(|g| g.chosen.is_empty()).flat_map(|g| g.models.iter().copied());
        let mut all: Vec<usize> =
            left_out.chain(self.unknown.iter().chain(&self.too_slow).copied()).collect();
        all.sort_unstable();
        all
    }
}

/// Decides like Usher. [`Mode::Native`] also leaves out batches that take longer than the promise, which the
/// original forgets once the least replicas are known.
#[must_use]
pub fn decide(input: &Input, mode: Mode) -> Decision {
    let is_known = |m: &Model| {
        !m.profiles.is_empty()
            && m.latencies.iter().all(|(_, l)| *l > 0.0 && l.is_finite())
            && !m.latencies.is_empty()
            && m.rate.is_finite()
            && m.profiles.iter().all(|p| p.compute.is_finite() && p.l2.is_finite() && p.memory.is_finite())
    };
    let (known, unknown): (Vec<usize>, Vec<usize>) =
        (0..input.models.len()).partition(|&m| is_known(&input.models[m]));
    let keeps = |m: &Model| m.profiles.iter().any(|p| m.latency(p.batch) <= m.bound_ms);
    let (known, too_slow): (Vec<usize>, Vec<usize>) =
        known.into_iter().partition(|&m| mode == Mode::Conformant || keeps(&input.models[m]));
    let mut boards: Vec<Board> = Vec::new();
    let mut groups = Vec::new();
    for models in grouping::groups(input, &known) {
        groups.push(search::plan(input, mode, &models, &mut boards));
    }
    let gpus = boards.into_iter().map(|board| board.gpu(input)).collect();
    Decision { gpus, groups, unknown, too_slow }
}

/// The least replicas that carry the rate at the best batch within the promise.
fn least_replicas(model: &Model) -> u32 {
    let best = model
        .profiles
        .iter()
        .filter(|p| p.memory < BUSY_MEMORY && model.latency(p.batch) <= model.bound_ms)
        .map(|p| model.capacity(p.batch))
        .reduce(f64::max)
        .or_else(|| model.profiles.first().map(|p| model.capacity(p.batch)))
        .unwrap_or(f64::INFINITY);
    // Saturates: nobody has that many boards.
    ((model.rate / best).ceil() as u32).max(1)
}

#[cfg(test)]
mod tests;
