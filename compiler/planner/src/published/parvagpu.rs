//! ParvaGPU (SC'24): the most efficient MIG segments of each service, packed best-fit.
//!
//! Every service is configured alone (`segments`): as many segments of its most efficient point as its
//! rate fills, and the smallest segment that carries the remainder. Segments are packed largest first
//! (`packing`); boards that stay less than 5/7 full are then broken up into segments of one and two
//! slices that fill the holes of the others.

mod packing;
mod program;
mod segments;

pub use program::{NAME, plan};
pub use segments::Choice;

use super::Mode;

/// Slice counts that the planner knows, ascending.
pub const SLICES: [u32; 5] = [1, 2, 3, 4, 7];

/// Boards that the original has room for.
pub const MAX_BOARDS: usize = 2000;

/// The limit on processes per segment with which the published results were made.
pub const MAX_PROCESSES: u32 = 5;

/// A profiled operating point of one service. One that did not fit in memory has no throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Compute slices.
    pub slices: u32,
    /// Requests per batch.
    pub batch: u32,
    /// MPS processes that share the segment.
    pub processes: u32,
    /// Requests per second of one process.
    pub throughput: f64,
    /// Time of a batch (s); the profiles resolve milliseconds.
    pub latency: f64,
}

/// A service and what is known of its model.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name. Services are served in the order given, which the original makes alphabetical.
    pub name: String,
    /// Offered rate (req/s). 0: not active.
    pub rate: f64,
    /// Latency promise (ms). 0: not active.
    pub bound: f64,
    /// Profile, in any order.
    pub points: Vec<Point>,
}

/// What to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The services.
    pub services: Vec<Service>,
    /// Points with more processes than this are not looked at.
    pub max_processes: u32,
    /// Boards there are; the original assumes [`MAX_BOARDS`].
    pub max_boards: usize,
}

/// A segment on a board.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Index into [`Input::services`].
    pub service: usize,
    /// Where the original says it lies: 0 to 6, not always a place where MIG could put it. `None` when
    /// the original finds none, and writes outside of its table.
    pub label: Option<u32>,
    /// The operating point. Its throughput is that of all processes together.
    pub choice: Choice,
}

/// What became of a service that did not simply get what it needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    /// No rate or no promise: not part of the scenario.
    Inactive,
    /// No point is fast enough: the original leaves the service out and says nothing.
    Dropped,
    /// The original looks at the best point of a slice count that has none, and crashes. Decided as if
    /// it skipped that slice count.
    Crash {
        /// The slice count.
        slices: u32,
    },
    /// A segment was taken away to be split, and the service has no small point to split it into.
    Lost {
        /// Throughput of the segment (req/s).
        throughput: f64,
    },
    /// A segment has no label.
    Unlabelled,
    /// The boards do not suffice: segments were left out.
    OutOfBoards {
        /// Throughput of the segments (req/s).
        throughput: f64,
    },
}

/// What was decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// Used boards and what is on them, in the original's order of output.
    pub boards: Vec<Vec<Segment>>,
    /// What a user should know: service and fate, in the order found.
    pub fates: Vec<(usize, Fate)>,
}

/// Decides like ParvaGPU.
///
/// [`Mode::Conformant`]: rates and promises are truncated to integers, throughputs are single
/// precision, and a point is fast enough when its batch takes less than 45 % of the promise.
/// [`Mode::Native`]: real numbers, and every point that is given is fast enough.
#[must_use]
pub fn decide(input: &Input, mode: Mode) -> Decision {
    let mut fates = Vec::new();
    let configured: Vec<_> = input
        .services
        .iter()
        .enumerate()
        .filter_map(|(index, service)| {
            let (configured, fate) = segments::configure(index, service, input.max_processes, mode);
            fates.extend(fate.into_iter().map(|f| (index, f)));
            configured
        })
        .collect();
    let mut packing = packing::Packing::new(&configured, input.max_boards, mode);
    packing.fill();
    packing.break_up();
    let (boards, more) = packing.finish();
    fates.extend(more);
    Decision { boards, fates }
}

#[cfg(test)]
mod tests;
