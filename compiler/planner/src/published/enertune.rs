//! EnerTune's own planner (SOSP'26): one cheapest point a service, then boards are merged greedily.
//!
//! Every service gets the one measured row that is cheapest alone; rows of one clock share boards
//! first-fit (`merge`); then boards are tried on each other, from the highest clock into the lowest and
//! back, at the receiver's clock; and while there are more boards than allowed, the first two that fit on
//! one at all are joined, whatever that costs. One instance a service; the only MIG rule is that slices
//! add up to seven.

mod cost;
mod merge;
mod program;
mod search;

pub use cost::{ClockPower, Estimator, PUBLISHED};
pub use program::{NAME, plan};

use super::Mode;

/// Slices of a board.
pub(super) const CAPACITY: u32 = 7;

/// A measured operating point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Compute slices.
    pub slices: u32,
    /// Requests per batch.
    pub batch: u32,
    /// SM clock (MHz).
    pub clock: u32,
    /// Dynamic power, always busy (W).
    pub dynamic: f64,
    /// Requests per second.
    pub throughput: f64,
    /// Latency of a batch (ms).
    pub latency: f64,
}

/// A service and the rows of its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name. The original knows three models by name.
    pub name: String,
    /// Offered rate (req/s).
    pub rate: f64,
    /// Latency promise (ms).
    pub bound: f64,
    /// Rows; the first of equals wins.
    pub rows: Vec<Row>,
}

/// What to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The services, in the order they are placed.
    pub services: Vec<Service>,
    /// What a board draws besides its instances, by clock; rows at other clocks are not looked at.
    pub clocks: Vec<ClockPower>,
    /// Boards allowed; no limit when `None`.
    pub max_boards: Option<usize>,
    /// What is minimised.
    pub estimator: Estimator,
    /// At most this many combinations are priced; then the plan so far stands. The original takes as
    /// long as it takes.
    pub max_work: u64,
}

/// Combinations priced by default: far more than the published runs need.
pub const MAX_WORK: u64 = 50_000_000;

/// A board.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    /// Its clock (MHz).
    pub clock: u32,
    /// What it carries: index into the services, and into the service's rows.
    pub members: Vec<(usize, usize)>,
    /// What it costs, in the estimator's unit.
    pub cost: f64,
}

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// The boards, in the original's order of output.
    pub boards: Vec<Board>,
    /// The sum of their costs, in the estimator's unit.
    pub cost: f64,
    /// Services without a usable row. The original crashes on the first.
    pub unserved: Vec<usize>,
    /// More boards than allowed: no two could be joined any more. The original prints a line and returns
    /// the plan.
    pub is_over_limit: bool,
    /// The work limit stopped it.
    pub is_stopped: bool,
}

/// Decides like EnerTune's planner.
///
/// [`Mode::Conformant`]: a row is usable when its latency is within the promise and its throughput
/// reaches the rate, and three models are known by name. [`Mode::Native`]: every row whose throughput
/// reaches the rate is usable (the caller gives those that keep the promise), and no model is special.
#[must_use]
pub fn decide(input: &Input, mode: Mode) -> Decision {
    let mut clocks = input.clocks.clone();
    clocks.sort_by_key(|c| c.clock);
    clocks.dedup_by_key(|c| c.clock);
    let unlimited = Input { clocks, ..input.clone() };
    let mut merging = merge::Merging::new(&unlimited, mode);
    let mut boards = merging.first_fit();
    let unserved = std::mem::take(&mut merging.unserved);
    let mut best = merging.exchange(boards.clone());
    let mut is_over_limit = false;
    while input.max_boards.is_some_and(|max| best.len() > max) && !merging.is_stopped() {
        if !merging.join_first(&mut boards) {
            is_over_limit = true;
            break;
        }
        best = merging.exchange(boards.clone());
    }
    let boards: Vec<Board> = best.into_iter().map(|b| merging.named(b)).collect();
    Decision {
        cost: boards.iter().map(|b| b.cost).sum(),
        boards,
        unserved,
        is_over_limit,
        is_stopped: merging.is_stopped(),
    }
}

#[cfg(test)]
mod tests;
