//! Boards' energy counters, before and after.

use crate::machine::Machine;
use std::time::Instant;

/// The counters of some boards at one moment.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// When.
    at: Instant,
    /// Energy of each board (J), by UUID.
    joules: Vec<(String, f64)>,
    /// Whether the driver is a simulated one.
    is_simulated: bool,
}

/// What boards used between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Used {
    /// Seconds between.
    pub(super) seconds: f64,
    /// Energy of all boards (J).
    pub(super) joules: f64,
    /// How many.
    pub(super) boards: usize,
    /// `measured`, or `simulated`.
    pub(super) source: &'static str,
}

/// Reads the boards of these UUIDs; `None` when one of them does not count energy.
pub(super) fn read(machine: &Machine, boards: &[String]) -> Option<Reading> {
    let observed = machine.driver.observe().ok()?;
    let joules: Option<Vec<(String, f64)>> = boards
        .iter()
        .map(|uuid| {
            let gpu = observed.gpus.iter().find(|gpu| gpu.uuid.0 == *uuid)?;
            Some((uuid.clone(), gpu.energy_mj? as f64 * 1e-3))
        })
        .collect();
    let joules = joules.filter(|joules| !joules.is_empty())?;
    Some(Reading { at: Instant::now(), joules, is_simulated: observed.is_simulated })
}

/// What was used from one reading to the other.
pub(super) fn used(begin: &Reading, end: &Reading) -> Used {
    let of = |reading: &Reading| reading.joules.iter().map(|(_, joules)| joules).sum::<f64>();
    Used {
        seconds: end.at.saturating_duration_since(begin.at).as_secs_f64(),
        joules: of(end) - of(begin),
        boards: end.joules.len(),
        source: if end.is_simulated { "simulated" } else { "measured" },
    }
}
