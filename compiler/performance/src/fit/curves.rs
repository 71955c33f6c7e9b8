//! The curves of a board: what its slices and clocks do to every model alike.

use super::form::FormPoint;
use crate::predict::base_profile_index;
use ent_plan::device::{Board, GpuInstanceProfile};
use ent_plan::performance::BoardCurves;
use ent_plan::units::Megahertz;

/// The share of the highest clock at which the curves of the clock are 1 by definition.
const REFERENCE_CLOCK: f64 = 0.8;

/// Curves of a board nobody has measured: compute by SMs, memory by memory slices, and a voltage that
/// rises over the last quarter of the clocks.
pub(crate) fn cold(board: &Board, clocks: &[Megahertz]) -> BoardCurves {
    let mut slices: Vec<u32> =
        board.profiles.iter().filter(|p| p.is_base).map(|p| p.n_compute_slices).collect();
    slices.sort_unstable();
    slices.dedup();
    let base = |n: u32| board.base_profile(n);
    let size = |p: &GpuInstanceProfile| f64::from(p.n_sms.unwrap_or(p.n_compute_slices * 14));
    let smallest = slices.first().and_then(|n| base(*n)).map_or(14.0, size);
    let highest = board.clocks.last().or(clocks.last()).map_or(1.0, |c| f64::from(c.0));
    // The A100 holds its lowest voltage up to 1050 of 1410 MHz; generations before and after bend near there.
    let knee = 0.745 * highest;
    let voltage = |c: &Megahertz| {
        let over = ((f64::from(c.0) - knee) / (highest - knee)).max(0.0);
        (1.0 + 0.2 * over).powi(2)
    };
    let reference = reference_clock(clocks, highest);
    let unit = clocks.get(reference).map_or(1.0, voltage);
    BoardCurves {
        compute: slices.iter().filter_map(|n| Some((*n, smallest / size(base(*n)?)))).collect(),
        memory: slices
            .iter()
            .filter_map(|n| Some((*n, 1.0 / f64::from(base(*n)?.n_memory_slices))))
            .collect(),
        voltage: clocks.iter().map(|c| (*c, voltage(c) / unit)).collect(),
        overhead: clocks.iter().map(|c| (*c, 1.0)).collect(),
    }
}

/// Index of the clock whose curve values are 1.
pub(crate) fn reference_clock(clocks: &[Megahertz], highest: f64) -> usize {
    let distance = |c: &Megahertz| (f64::from(c.0) - REFERENCE_CLOCK * highest).abs();
    (0..clocks.len()).min_by(|a, b| distance(&clocks[*a]).total_cmp(&distance(&clocks[*b]))).unwrap_or(0)
}

/// The form's view of a point; `None` for slices the curves do not have.
pub(crate) fn form_point(
    curves: &BoardCurves,
    batch: u32,
    compute_slices: u32,
    memory_as: u32,
    clock: Megahertz,
) -> Option<FormPoint> {
    let of = |curve: &[(u32, f64)], n: u32| curve.iter().find(|(s, _)| *s == n).map(|(_, v)| *v);
    Some(FormPoint {
        batch: f64::from(batch),
        slices: f64::from(compute_slices),
        ghz: f64::from(clock.0) / 1e3,
        compute: of(&curves.compute, compute_slices)?,
        memory: of(&curves.memory, memory_as)?,
        voltage: between_clocks(&curves.voltage, clock)?,
        overhead: between_clocks(&curves.overhead, clock)?,
    })
}

/// The form's view of a share of the board that is as large as this many slices; `None` without curves.
pub(crate) fn share_point(
    curves: &BoardCurves,
    batch: u32,
    slices: f64,
    clock: Megahertz,
) -> Option<FormPoint> {
    Some(FormPoint {
        batch: f64::from(batch),
        slices,
        ghz: f64::from(clock.0) / 1e3,
        compute: between_sizes(&curves.compute, slices)?,
        memory: between_sizes(&curves.memory, slices)?,
        voltage: between_clocks(&curves.voltage, clock)?,
        overhead: between_clocks(&curves.overhead, clock)?,
    })
}

/// Linear in logarithms between sizes, and beyond the ends as between the last two.
fn between_sizes(curve: &[(u32, f64)], slices: f64) -> Option<f64> {
    let mut knots: Vec<(f64, f64)> = curve.iter().map(|(n, v)| (f64::from(*n).ln(), v.ln())).collect();
    knots.sort_by(|a, b| a.0.total_cmp(&b.0));
    let at = slices.ln();
    let above = knots.partition_point(|(n, _)| *n < at).clamp(1, knots.len().max(2) - 1);
    match (knots.get(above - 1), knots.get(above)) {
        (Some((n0, v0)), Some((n1, v1))) => Some((v0 + (v1 - v0) * (at - n0) / (n1 - n0)).exp()),
        (Some((_, only)), None) => Some(only.exp()),
        (None, _) => None,
    }
}

/// The compute slices whose base profile has the memory of this profile: `1g.20gb` has that of `2g.20gb`.
pub(crate) fn memory_like(board: &Board, profile: usize) -> Option<u32> {
    let this = board.profiles.get(profile)?;
    if base_profile_index(board, this.n_compute_slices) == Some(profile) {
        return Some(this.n_compute_slices);
    }
    board
        .profiles
        .iter()
        .enumerate()
        .filter(|(i, p)| {
            p.n_memory_slices == this.n_memory_slices
                && base_profile_index(board, p.n_compute_slices) == Some(*i)
        })
        .map(|(_, p)| p.n_compute_slices)
        .min_by_key(|n| n.abs_diff(this.n_compute_slices))
}

/// Linear between clocks; constant beyond the ends, which the caller does not ask for.
fn between_clocks(curve: &[(Megahertz, f64)], clock: Megahertz) -> Option<f64> {
    let after = curve.partition_point(|(c, _)| *c < clock);
    match (after.checked_sub(1).and_then(|i| curve.get(i)), curve.get(after)) {
        (Some((below, a)), Some((above, b))) => {
            let share = f64::from(clock.0 - below.0) / f64::from(above.0 - below.0);
            Some(a + share * (b - a))
        }
        (Some((_, only)), None) | (None, Some((_, only))) => Some(*only),
        (None, None) => None,
    }
}
