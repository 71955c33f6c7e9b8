//! One service → the segments it wants.

use super::{Fate, Mode, Point, SLICES, Service};

/// An operating point as the planner sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Compute slices.
    pub slices: u32,
    /// Requests per batch.
    pub batch: u32,
    /// MPS processes.
    pub processes: u32,
    /// Requests per second, all processes together.
    pub throughput: f64,
}

/// A service with its segments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Configured {
    /// Index into the input's services.
    pub(super) service: usize,
    /// The most efficient point, and how many segments of it.
    pub(super) optimal: Choice,
    pub(super) n_optimal: u64,
    /// The segment for the remainder.
    pub(super) last: Choice,
    /// The best points with one and with two slices.
    pub(super) one: Option<Choice>,
    pub(super) two: Option<Choice>,
}

/// A number as the original holds it: single precision. An operation in double precision rounded to
/// single is that operation in single precision.
pub(super) fn held(value: f64, mode: Mode) -> f64 {
    match mode {
        Mode::Conformant => f64::from(value as f32),
        Mode::Native => value,
    }
}

/// Chooses a service's segments; `None` for one that gets none.
pub(super) fn configure(
    index: usize,
    service: &Service,
    max_processes: u32,
    mode: Mode,
) -> (Option<Configured>, Vec<Fate>) {
    let (rate, bound) = match mode {
        Mode::Conformant => (service.rate.trunc(), service.bound.trunc()),
        Mode::Native => (service.rate, service.bound),
    };
    // Also false for what is not a number.
    if !(rate > 0.0 && bound > 0.0 && rate.is_finite()) {
        return (None, vec![Fate::Inactive]);
    }
    let best = best_by_slices(service, bound, max_processes, mode);
    let optimal = best
        .iter()
        .flatten()
        .copied()
        .reduce(|a, b| if efficiency(&b, mode) > efficiency(&a, mode) { b } else { a });
    let Some(optimal) = optimal else { return (None, vec![Fate::Dropped]) };
    let mut n_optimal = held(rate / optimal.throughput, mode).floor();
    if n_optimal > 0.0 && held(n_optimal * optimal.throughput, mode) == rate {
        n_optimal -= 1.0;
    }
    let remainder = held(rate - held(n_optimal * optimal.throughput, mode), mode);
    let mut fates = Vec::new();
    let mut last = optimal;
    for (slices, best) in SLICES.into_iter().zip(&best) {
        match best {
            Some(choice) if choice.throughput >= remainder => {
                last = *choice;
                break;
            }
            Some(_) => {}
            None => {
                if mode == Mode::Conformant && slices < optimal.slices && fates.is_empty() {
                    fates.push(Fate::Crash { slices });
                }
            }
        }
    }
    // Larger counts saturate; the boards run out long before.
    let n_optimal = n_optimal as u64;
    let configured = Configured { service: index, optimal, n_optimal, last, one: best[0], two: best[1] };
    (Some(configured), fates)
}

/// The most efficient point of each of [`SLICES`]; the first of equals.
fn best_by_slices(service: &Service, bound: f64, max_processes: u32, mode: Mode) -> [Option<Choice>; 5] {
    let mut points: Vec<&Point> = service.points.iter().collect();
    points.sort_by_key(|p| (p.slices, p.batch, p.processes));
    let mut best: [Option<Choice>; 5] = [None; 5];
    for point in points {
        let Some(place) = SLICES.iter().position(|s| *s == point.slices) else { continue };
        let is_fast = match mode {
            // The other half of the promise is for batching and queueing, and a tenth is margin.
            Mode::Conformant => held(point.latency * 1e3, mode) < 0.9 * bound / 2.0,
            Mode::Native => true,
        };
        let throughput = held(held(point.throughput, mode) * f64::from(point.processes), mode);
        if point.processes > max_processes || !is_fast || !(throughput > 0.0 && throughput.is_finite()) {
            continue;
        }
        let choice =
            Choice { slices: point.slices, batch: point.batch, processes: point.processes, throughput };
        if best[place].is_none_or(|b| efficiency(&choice, mode) > efficiency(&b, mode)) {
            best[place] = Some(choice);
        }
    }
    best
}

/// Throughput per slice.
fn efficiency(choice: &Choice, mode: Mode) -> f64 {
    held(choice.throughput / f64::from(choice.slices), mode)
}
