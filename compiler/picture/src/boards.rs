//! The boards of a plan → kinds of boards that are cut and used alike, and what lies where on each.
//!
//! A thousand boards are few kinds: each kind is drawn once, with the range of its numbers where boards
//! differ in their rates only.

use crate::quantity::{few_watts, number, percent};
use crate::text::plain;
use ent_plan::device::Board;
use ent_plan::plan::{Gpu, Instance, Plan, Sharing};
use std::collections::BTreeMap;

mod drawing;
mod sheet;

#[cfg(test)]
pub(crate) use drawing::TINT;
pub(crate) use drawing::{draw, draw_unused};
pub(crate) use sheet::sheet;

/// Kinds of boards that are drawn; a plan with more says how many are not.
pub(crate) const MOST_DRAWN: usize = 96;

/// Boards that differ in their numbers only.
pub(crate) struct Kind<'a> {
    /// The boards, in the plan's order; never none.
    pub(crate) gpus: Vec<&'a Gpu>,
    /// What is known of the board.
    pub(crate) board: Option<&'a Board>,
}

/// The kinds of used boards, in the order of the first of each.
pub(crate) fn kinds(plan: &Plan) -> Vec<Kind<'_>> {
    let mut index_of = BTreeMap::new();
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for gpu in &plan.gpus {
        let contents: Vec<_> = gpu
            .instances
            .iter()
            .map(|i| (&i.profile, i.start, i.size, i.mps_percent, &i.service, i.batch, i.processes))
            .collect();
        let key = (&gpu.node, &gpu.board, gpu.sharing, gpu.sm_clock_mhz, contents);
        let index = *index_of.entry(key).or_insert(kinds.len());
        match kinds.get_mut(index) {
            Some(kind) => kind.gpus.push(gpu),
            None => kinds.push(Kind {
                gpus: vec![gpu],
                board: plan.boards.iter().find(|board| board.id == gpu.board),
            }),
        }
    }
    kinds
}

/// What lies on a stretch of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// The instance at this position of the board.
    Instance(usize),
    /// Nothing.
    Free,
}

/// A stretch of a board, in units of its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u32,
    pub(crate) size: u32,
    pub(crate) content: Content,
}

impl<'a> Kind<'a> {
    /// One of its boards.
    pub(crate) fn first(&self) -> Option<&'a Gpu> {
        self.gpus.first().copied()
    }

    /// The instances at a position, one for each board.
    pub(crate) fn at(&self, position: usize) -> Vec<&'a Instance> {
        self.gpus.iter().filter_map(|gpu| gpu.instances.get(position)).collect()
    }

    /// Length of the axis: memory slices, per cent of the threads, or the whole board.
    pub(crate) fn units(&self) -> u32 {
        match self.first().map(|gpu| gpu.sharing) {
            Some(Sharing::Mig) => {
                let ends = self.first().into_iter().flat_map(|gpu| &gpu.instances);
                let used = ends.filter_map(|i| i.start?.checked_add(i.size?)).max().unwrap_or(0);
                self.board.map_or(0, |board| board.n_memory_slices).max(used).max(1)
            }
            Some(Sharing::Mps) => 100,
            Some(Sharing::Whole) | None => 1,
        }
    }

    /// What lies where, from the first unit to the last, with nothing left out.
    pub(crate) fn stretches(&self) -> Vec<Stretch> {
        let Some(gpu) = self.first() else { return Vec::new() };
        let mut next = 0;
        let mut placed: Vec<Stretch> = Vec::new();
        for (position, instance) in gpu.instances.iter().enumerate() {
            let (start, size) = match gpu.sharing {
                Sharing::Mig => (instance.start.unwrap_or(next), instance.size.unwrap_or(1)),
                Sharing::Mps => (next, instance.mps_percent.unwrap_or(0)),
                Sharing::Whole => (0, 1),
            };
            placed.push(Stretch { start, size, content: Content::Instance(position) });
            next = start.saturating_add(size);
        }
        placed.sort_by_key(|stretch| stretch.start);
        let mut all = Vec::new();
        let mut at = 0;
        for stretch in placed {
            if stretch.start > at {
                all.push(Stretch { start: at, size: stretch.start - at, content: Content::Free });
            }
            at = at.max(stretch.start.saturating_add(stretch.size));
            all.push(stretch);
        }
        if at < self.units() {
            all.push(Stretch { start: at, size: self.units() - at, content: Content::Free });
        }
        all
    }

    /// Compute slices of an instance: those of its MIG profile.
    pub(crate) fn compute_slices(&self, instance: &Instance) -> Option<u32> {
        Some(self.board?.profile(instance.profile.as_deref()?)?.n_compute_slices)
    }

    /// Compute slices of the board, and how many of them instances have. `None` where it is not cut.
    pub(crate) fn compute(&self) -> Option<(u32, u32)> {
        let gpu = self.first().filter(|gpu| gpu.sharing == Sharing::Mig)?;
        let used = gpu.instances.iter().map(|i| self.compute_slices(i)).sum::<Option<u32>>()?;
        Some((self.board?.n_compute_slices(), used))
    }

    /// `box gpus 0–36, 40`.
    pub(crate) fn name(&self) -> String {
        let Some(gpu) = self.first() else { return String::new() };
        let mut indices: Vec<u32> = self.gpus.iter().map(|gpu| gpu.index).collect();
        indices.sort_unstable();
        let word = if indices.len() == 1 { "gpu" } else { "gpus" };
        format!("{} {word} {}", plain(&gpu.node), spans(&indices))
    }

    /// `a100-80gb-pcie · MIG · 510 MHz`.
    pub(crate) fn facts(&self) -> String {
        let Some(gpu) = self.first() else { return String::new() };
        format!("{} · {} · {}", plain(&gpu.board), sharing(gpu.sharing), gpu.sm_clock_mhz)
    }

    /// A value of each board with its error band: `75.1 ± 0.7 W`, or `unknown`.
    pub(crate) fn watts(
        &self,
        value: impl Fn(&Gpu) -> Option<f64>,
        of_instance: impl Fn(&Instance) -> Option<f64>,
    ) -> String {
        if self.gpus.iter().any(|gpu| value(gpu).is_none()) {
            return "unknown".to_owned();
        }
        let shown = range(self.gpus.iter().filter_map(|gpu| value(gpu)), few_watts);
        let band = self.gpus.iter().map(|gpu| board_band(gpu, &of_instance)).fold(0.0, f64::max);
        with_band(&shown, band)
    }
}

/// The error band of a board's watts: its instances' bands added, as if they erred together.
fn board_band(gpu: &Gpu, of_instance: impl Fn(&Instance) -> Option<f64>) -> f64 {
    gpu.instances.iter().map(|i| i.power_error * of_instance(i).unwrap_or(0.0)).sum()
}

/// Watts of what is at one position of several boards: `16.0 ± 0.3 W`, or `unknown`.
pub(crate) fn watts(instances: &[&Instance], value: impl Fn(&Instance) -> Option<f64>) -> String {
    if instances.is_empty() || instances.iter().any(|i| value(i).is_none()) {
        return "unknown".to_owned();
    }
    let shown = range(instances.iter().filter_map(|i| value(i)), few_watts);
    let band = instances.iter().map(|i| i.power_error * value(i).unwrap_or(0.0)).fold(0.0, f64::max);
    with_band(&shown, band)
}

fn with_band(shown: &str, band: f64) -> String {
    if band > 0.0 { format!("{shown} ± {} W", few_watts(band)) } else { format!("{shown} W") }
}

/// One value, or from–to where boards differ.
pub(crate) fn range(values: impl Iterator<Item = f64>, show: impl Fn(f64) -> String) -> String {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)));
    let (low, high) = (show(least), show(most));
    if low == high { low } else { format!("{low}–{high}") }
}

/// `p99 92.46 ≤ 100 ms`, the worst of several boards.
pub(crate) fn latency(plan: &Plan, instances: &[&Instance]) -> String {
    let Some(first) = instances.first() else { return String::new() };
    let percentile = plan.services.iter().find(|s| s.name == first.service).map(|s| s.percentile);
    let worst = instances.iter().map(|i| i.predicted_latency_ms).fold(f64::NEG_INFINITY, f64::max);
    let name = percentile.map_or_else(|| "latency".to_owned(), percentile_word);
    let sign = if worst <= first.promised_latency_ms { '≤' } else { '>' };
    format!("{name} {}", pair(worst, sign, first.promised_latency_ms))
}

/// `92.46 ≤ 100 ms`, both in the unit of the promise.
pub(crate) fn pair(predicted_ms: f64, sign: char, promised_ms: f64) -> String {
    if promised_ms.abs() < 10_000.0 {
        format!("{} {sign} {} ms", number(predicted_ms), number(promised_ms))
    } else {
        format!("{} {sign} {} s", number(predicted_ms / 1e3), number(promised_ms / 1e3))
    }
}

/// `p99`, `p99.9`.
pub(crate) fn percentile_word(percentile: f64) -> String {
    format!("p{}", crate::quantity::digits(percentile * 100.0, 6))
}

/// `3g.40gb`, `25 % of the threads`, `whole board`.
pub(crate) fn share(instance: &Instance) -> String {
    match (&instance.profile, instance.mps_percent) {
        (Some(profile), _) => plain(profile).into_owned(),
        (None, Some(percent)) => format!("{percent} % of the threads"),
        (None, None) => "whole board".to_owned(),
    }
}

/// `batch 32`, `batch 32, 2 processes`.
pub(crate) fn batch(instance: &Instance) -> String {
    match instance.processes {
        1 => format!("batch {}", instance.batch),
        n => format!("batch {}, {n} processes", instance.batch),
    }
}

/// `43 % busy`.
pub(crate) fn busy(instances: &[&Instance]) -> String {
    let shares = range(instances.iter().map(|i| i.utilisation), |share| {
        percent(share).trim_end_matches(" %").to_owned()
    });
    format!("{shares} % busy")
}

/// How a board is shared, in a word.
pub(crate) fn sharing(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Mig => "MIG",
        Sharing::Mps => "MPS",
        Sharing::Whole => "whole",
    }
}

/// `0–36, 40`, of ascending numbers.
fn spans(indices: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in indices.iter().copied() {
        match runs.last_mut() {
            Some((_, last)) if index.checked_sub(1) == Some(*last) => *last = index,
            _ => runs.push((index, index)),
        }
    }
    let shown: Vec<String> = runs
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}–{last}") })
        .collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::plan::sample;

    #[test]
    fn nothing_of_a_board_is_left_out() {
        let plan = sample::plan();
        let kinds = kinds(&plan);
        let stretches = kinds[0].stretches();
        let sizes: Vec<(u32, u32, bool)> =
            stretches.iter().map(|s| (s.start, s.size, s.content == Content::Free)).collect();
        assert_eq!(sizes, [(0, 4, false), (4, 2, false), (6, 2, true)]);
        assert_eq!(kinds[0].compute(), Some((7, 5)));
    }

    #[test]
    fn boards_that_differ_in_rates_only_are_one_kind() {
        let mut plan = sample::plan();
        let mut other = plan.gpus[0].clone();
        other.index = 1;
        other.instances[0].utilisation *= 0.5;
        let mut third = other.clone();
        third.index = 5;
        third.instances[0].batch = 1;
        plan.gpus.extend([other, third]);
        let kinds = kinds(&plan);
        assert_eq!(kinds.iter().map(Kind::name).collect::<Vec<_>>(), ["box gpus 0–1", "box gpu 5"]);
        assert!(busy(&kinds[0].at(0)).contains('–'), "{}", busy(&kinds[0].at(0)));
    }

    #[test]
    fn a_latency_is_shown_in_the_unit_of_its_promise() {
        assert_eq!(pair(92.456, '≤', 100.0), "92.46 ≤ 100 ms");
        assert_eq!(pair(7295.0, '≤', 10_000.0), "7.295 ≤ 10 s");
        assert_eq!(percentile_word(0.999), "p99.9");
    }
}
