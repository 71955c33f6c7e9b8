//! The used boards of a plan → a drawing of each: slices to scale, and what runs on them.
//!
//! Boards that are cut and used alike are drawn once. Where the cells are wide enough everything
//! stands in them; where not, they carry a letter and a table below says the rest.

use super::bar::{Cell, bar, first_that_fits, fits, inner_widths};
use super::line::{Line, Role};
use super::plan::Canvas;
use super::quantity::{digits, few_watts, millis, number, percent};
use super::table::{Column, flow, table};
use ent_plan::device::Board;
use ent_plan::plan::{Gpu, Instance, Plan, Sharing};
use std::collections::BTreeMap;

/// A drawing wider than this is harder to read, not easier.
const WIDEST_BAR: usize = 132;

/// Draws all used boards.
pub(crate) fn boards(plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in groups(&plan.gpus) {
        lines.extend(draw(&group, plan, canvas));
        lines.push(Line::new());
    }
    lines
}

/// Boards that differ in their numbers only, in the order of the first of each kind.
fn groups(gpus: &[Gpu]) -> Vec<Vec<&Gpu>> {
    let mut index_of = BTreeMap::new();
    let mut groups: Vec<Vec<&Gpu>> = Vec::new();
    for gpu in gpus {
        let contents: Vec<_> = gpu
            .instances
            .iter()
            .map(|i| (&i.profile, i.start, i.size, i.mps_percent, &i.service, i.batch, i.processes))
            .collect();
        let key = (&gpu.node, &gpu.board, gpu.sharing, gpu.sm_clock_mhz, contents);
        let next = groups.len();
        let index = *index_of.entry(key).or_insert(next);
        match groups.get_mut(index) {
            Some(group) => group.push(gpu),
            None => groups.push(vec![gpu]),
        }
    }
    groups
}

/// What is the same position on every board of a group.
struct Position<'a> {
    key: String,
    instances: Vec<&'a Instance>,
}

impl Position<'_> {
    fn first(&self) -> Option<&Instance> {
        self.instances.first().copied()
    }

    fn range(
        &self,
        canvas: &Canvas,
        value: impl Fn(&Instance) -> f64,
        show: impl Fn(f64) -> String,
    ) -> String {
        range(self.instances.iter().map(|i| value(i)), canvas, show)
    }

    /// Mean or busy watts with the error band, where both are known.
    fn watts(&self, canvas: &Canvas, value: impl Fn(&Instance) -> Option<f64>) -> String {
        if self.instances.iter().any(|i| value(i).is_none()) {
            return "?".to_owned();
        }
        let shown = self.range(canvas, |i| value(i).unwrap_or(f64::NAN), few_watts);
        let band = self.instances.iter().map(|i| i.power_error * value(i).unwrap_or(0.0)).fold(0.0, f64::max);
        with_band(&shown, band, canvas)
    }
}

/// Positions that hold the same, told together: `A–G`.
fn merged<'a>(positions: &[Position<'a>], canvas: &Canvas) -> Vec<Position<'a>> {
    let mut kinds: Vec<(Vec<usize>, Vec<&'a Instance>)> = Vec::new();
    for (index, position) in positions.iter().enumerate() {
        let Some(one) = position.instances.first().copied() else { continue };
        let is_alike = |other: &&Instance| {
            (&other.profile, other.mps_percent, &other.service, other.batch, other.processes)
                == (&one.profile, one.mps_percent, &one.service, one.batch, one.processes)
        };
        match kinds.iter_mut().find(|(_, instances)| instances.first().is_some_and(is_alike)) {
            Some((indices, instances)) => {
                indices.push(index);
                instances.extend(&position.instances);
            }
            None => kinds.push((vec![index], position.instances.clone())),
        }
    }
    let name = |indices: &[usize]| {
        runs(indices)
            .into_iter()
            .map(|(first, last)| match last - first {
                0 => key(first, positions.len()),
                _ => format!(
                    "{}{}{}",
                    key(first, positions.len()),
                    canvas.symbols.dash,
                    key(last, positions.len())
                ),
            })
            .collect::<Vec<_>>()
            .join(",")
    };
    kinds.into_iter().map(|(indices, instances)| Position { key: name(&indices), instances }).collect()
}

/// One value, or from–to where boards of a group differ.
fn range(values: impl Iterator<Item = f64>, canvas: &Canvas, show: impl Fn(f64) -> String) -> String {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)));
    let (low, high) = (show(least), show(most));
    if low == high { low } else { format!("{low}{}{high}", canvas.symbols.dash) }
}

fn with_band(shown: &str, band: f64, canvas: &Canvas) -> String {
    if band > 0.0 {
        format!("{shown} {} {}", canvas.symbols.plus_minus, few_watts(band))
    } else {
        shown.to_owned()
    }
}

fn draw(group: &[&Gpu], plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let Some(gpu) = group.first() else { return Vec::new() };
    let positions: Vec<Position<'_>> = (0..gpu.instances.len())
        .map(|i| Position {
            key: key(i, gpu.instances.len()),
            instances: group.iter().filter_map(|g| g.instances.get(i)).collect(),
        })
        .collect();
    let mut lines = heading(group, gpu, canvas);
    let width = canvas.width.min(WIDEST_BAR);

    let board = plan.boards.iter().find(|board| board.id == gpu.board);
    let full = cells(gpu, board, &positions, |position| facts_in_cell(position, plan, canvas));
    let widths = inner_widths(&full, width);
    if let Some(widths) = widths.as_ref().filter(|widths| fits(&full, widths)) {
        lines.extend(bar(&full, widths, canvas.symbols));
    } else {
        if let Some(widths) = widths {
            let keyed = first_that_fits(cells(gpu, board, &positions, keys), &widths);
            lines.extend(bar(&keyed, &widths, canvas.symbols));
        }
        lines.extend(facts_in_table(&merged(&positions, canvas), plan, canvas));
    }
    if canvas.detail.explains() {
        lines.extend(reasons(&merged(&positions, canvas), canvas));
    }
    lines.extend(
        free_note(gpu, board).map(|text| {
            Line::of(Role::Faint, format!("  {text}")).cut(canvas.width, canvas.symbols.ellipsis)
        }),
    );
    lines
}

/// `box-0 gpus 0–36 (× 37) · a100-80gb-pcie · mig · 1050 MHz`, and the board's watts.
fn heading(group: &[&Gpu], gpu: &Gpu, canvas: &Canvas) -> Vec<Line> {
    let symbols = canvas.symbols;
    let indices: Vec<u32> = group.iter().map(|g| g.index).collect();
    let word = if indices.len() == 1 { "gpu" } else { "gpus" };
    let mut name = Line::of(Role::Heading, format!("{} {word} {}", gpu.node, spans(&indices, symbols.dash)));
    if indices.len() > 1 {
        name.push(Role::Heading, format!(" ({} {})", symbols.times, indices.len()));
    }
    let sharing = match gpu.sharing {
        Sharing::Mig => "MIG",
        Sharing::Mps => "MPS",
        Sharing::Whole => "whole",
    };
    let mut facts = vec![
        name,
        Line::plain(&gpu.board),
        Line::plain(sharing),
        Line::of(Role::Heading, gpu.sm_clock_mhz.to_string()),
    ];
    if let (1, Some(uuid)) = (group.len(), &gpu.uuid) {
        facts.push(Line::of(Role::Faint, uuid));
    }
    let mut lines = flow(facts, canvas.width, 0, symbols);
    let watts = |value: fn(&Gpu) -> Option<f64>, of_instance: fn(&Instance) -> Option<f64>| {
        if group.iter().any(|g| value(g).is_none()) {
            return "unknown".to_owned();
        }
        let shown = range(group.iter().filter_map(|g| value(g)), canvas, few_watts);
        let band = group.iter().map(|g| band(g, of_instance)).fold(0.0, f64::max);
        format!("{} W", with_band(&shown, band, canvas))
    };
    let predicted = vec![
        Line::of(Role::Faint, "predicted mean ")
            .and(Role::Plain, watts(|g| g.mean_power_w, |i| i.mean_dynamic_power_w)),
        Line::of(Role::Faint, "peak ").and(Role::Plain, watts(|g| g.power_w, |i| i.dynamic_power_w)),
        Line::of(Role::Faint, "of it base ").and(Role::Plain, watts(|g| g.base_power_w, |_| None)),
    ];
    lines.extend(flow(predicted, canvas.width, 2, symbols));
    lines
}

/// The error band of a board's watts: its instances' bands added, as if they erred together.
pub(crate) fn band(gpu: &Gpu, of_instance: impl Fn(&Instance) -> Option<f64>) -> f64 {
    gpu.instances.iter().map(|i| i.power_error * of_instance(i).unwrap_or(0.0)).sum()
}

/// The axis: instances in place, free stretches between.
fn cells(
    gpu: &Gpu,
    board: Option<&Board>,
    positions: &[Position<'_>],
    write: impl Fn(&Position<'_>) -> Vec<Line>,
) -> Vec<Cell> {
    let free = |units: u32| Cell { units, lines: vec![Line::of(Role::Faint, "free")], is_free: true };
    let mut cells = Vec::new();
    match gpu.sharing {
        Sharing::Whole => {
            cells.extend(positions.iter().map(|p| Cell { units: 1, lines: write(p), is_free: false }));
        }
        Sharing::Mps => {
            let mut used = 0;
            for position in positions {
                let percent = position.first().and_then(|i| i.mps_percent).unwrap_or(1).max(1);
                used += percent;
                cells.push(Cell { units: percent, lines: write(position), is_free: false });
            }
            if used < 100 {
                cells.push(free(100 - used));
            }
        }
        Sharing::Mig => {
            let mut placed: Vec<_> = positions
                .iter()
                .filter_map(|p| p.first().map(|i| (i.start.unwrap_or(0), i.size.unwrap_or(1).max(1), p)))
                .collect();
            placed.sort_by_key(|(start, ..)| *start);
            let mut at = 0;
            for (start, size, position) in placed {
                if start > at {
                    cells.push(free(start - at));
                }
                cells.push(Cell { units: size, lines: write(position), is_free: false });
                at = at.max(start.saturating_add(size));
            }
            let left = board.map_or(0, |board| board.n_memory_slices.saturating_sub(at));
            if left > 0 {
                cells.push(free(left));
            }
        }
    }
    cells
}

/// How much memory is free, and whether anything could still be put there.
fn free_note(gpu: &Gpu, board: Option<&Board>) -> Option<String> {
    if gpu.sharing != Sharing::Mig {
        return None;
    }
    let board = board?;
    let used: u32 = gpu.instances.iter().filter_map(|i| i.size).sum();
    let free = board.n_memory_slices.checked_sub(used).filter(|free| *free > 0)?;
    let n_compute = board.profiles.iter().map(|p| p.n_compute_slices).max()?;
    let taken: Option<u32> = gpu
        .instances
        .iter()
        .map(|i| board.profile(i.profile.as_deref().unwrap_or("")).map(|p| p.n_compute_slices))
        .sum();
    let left = taken.map(|taken| n_compute.saturating_sub(taken));
    let memory = format!("free: {free} of {} memory slices", board.n_memory_slices);
    Some(match left {
        Some(0) => format!("{memory}, but no compute slice"),
        Some(left) => format!("{memory}, {left} of {n_compute} compute slices"),
        None => memory,
    })
}

/// `77 %`, `61–77 %`.
fn busy(position: &Position<'_>, canvas: &Canvas) -> String {
    format!("{} %", position.range(canvas, |i| i.utilisation * 100.0, |percent| digits(percent, 2)))
}

/// The share of the board, in its own words.
fn share(instance: &Instance) -> String {
    match (&instance.profile, instance.mps_percent) {
        (Some(profile), _) => profile.clone(),
        (None, Some(percent)) => format!("{percent} %"),
        (None, None) => "whole".to_owned(),
    }
}

fn batch(instance: &Instance, canvas: &Canvas) -> String {
    if instance.processes > 1 {
        format!("{} {} {}", instance.batch, canvas.symbols.times, instance.processes)
    } else {
        instance.batch.to_string()
    }
}

/// `p99 43.1 ≤ 47.6 ms`, or how far it is over.
pub(crate) fn latency(
    percentile: Option<f64>,
    predicted: &str,
    worst: f64,
    promised: f64,
    canvas: &Canvas,
) -> Line {
    let name = percentile.map_or_else(String::new, |p| format!("p{} ", number(p * 100.0)));
    let unit_matched = millis(promised);
    // A prediction equal to the promise but for rounding keeps it.
    if worst <= promised * (1.0 + 1e-9) {
        Line::plain(format!("{name}{predicted} {} {unit_matched}", canvas.symbols.at_most))
    } else {
        Line::of(Role::Bad, format!("{name}{predicted} > {unit_matched} OVER"))
    }
}

/// A latency as a bare number in the unit its promise is shown in.
pub(crate) fn in_unit_of(promised: f64, value: f64) -> String {
    number(if promised.abs() < 10_000.0 { value } else { value / 1e3 })
}

fn latency_of(position: &Position<'_>, plan: &Plan, canvas: &Canvas) -> Line {
    let Some(first) = position.first() else { return Line::new() };
    let percentile = plan.services.iter().find(|s| s.name == first.service).map(|s| s.percentile);
    let promised = first.promised_latency_ms;
    let shown = position.range(canvas, |i| i.predicted_latency_ms, |v| in_unit_of(promised, v));
    let worst = position.instances.iter().map(|i| i.predicted_latency_ms).fold(f64::NEG_INFINITY, f64::max);
    latency(percentile, &shown, worst, promised, canvas)
}

fn facts_in_cell(position: &Position<'_>, plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let Some(first) = position.first() else { return Vec::new() };
    let mut lines = vec![
        Line::of(Role::Heading, share(first)),
        Line::of(Role::Name, &first.service),
        Line::plain(format!("batch {}", batch(first, canvas))),
        Line::plain(format!("{} busy", busy(position, canvas))),
        latency_of(position, plan, canvas),
        Line::plain(format!("mean {} W", position.watts(canvas, |i| i.mean_dynamic_power_w))),
        Line::plain(format!("peak {} W", position.watts(canvas, |i| i.dynamic_power_w))),
    ];
    if canvas.detail.explains() {
        lines.insert(0, Line::of(Role::Faint, &position.key));
    }
    lines
}

/// What may stand in a narrow cell, the fullest first: the letter must.
fn keys(position: &Position<'_>) -> Vec<Line> {
    let Some(first) = position.first() else { return Vec::new() };
    let letter = Line::of(Role::Heading, &position.key);
    let with_share = letter.clone().and(Role::Plain, format!(" {}", share(first)));
    let with_all = with_share.clone().and(Role::Name, format!(" {}", first.service));
    vec![with_all, with_share, letter]
}

fn facts_in_table(positions: &[Position<'_>], plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    const COLUMNS: [Column; 8] = [
        Column::word(""),
        Column::word("slice"),
        Column::name("service"),
        Column::number("batch"),
        Column::number("busy"),
        Column::number("latency"),
        Column::number("mean W"),
        Column::number("peak W"),
    ];
    let rows: Vec<Vec<Line>> = positions
        .iter()
        .filter_map(|position| {
            let first = position.first()?;
            Some(vec![
                Line::of(Role::Heading, &position.key),
                Line::plain(share(first)),
                Line::of(Role::Name, &first.service),
                Line::plain(batch(first, canvas)),
                Line::plain(busy(position, canvas)),
                latency_of(position, plan, canvas),
                Line::plain(position.watts(canvas, |i| i.mean_dynamic_power_w)),
                Line::plain(position.watts(canvas, |i| i.dynamic_power_w)),
            ])
        })
        .collect();
    table(&COLUMNS, &rows, canvas.width, 2, canvas.symbols)
}

/// The numbers behind the choice of each operating point.
fn reasons(positions: &[Position<'_>], canvas: &Canvas) -> Vec<Line> {
    const COLUMNS: [Column; 9] = [
        Column::word(""),
        Column::number("req/s"),
        Column::number("allowed"),
        Column::number("saturates"),
        Column::number("fill wait"),
        Column::number("batch time"),
        Column::number("J/request"),
        Column::number("time"),
        Column::word("from"),
    ];
    let rows: Vec<Vec<Line>> = positions
        .iter()
        .filter_map(|position| {
            let first = position.first()?;
            let energy = first.batch_energy_j.last().map(|j| j / first.batch_energy_j.len() as f64);
            Some(vec![
                Line::of(Role::Heading, &position.key),
                Line::plain(position.range(canvas, |i| i.rate_rps, number)),
                Line::plain(position.range(canvas, |i| i.admissible_rps, number)),
                Line::plain(position.range(canvas, |i| i.capacity_rps, number)),
                Line::plain(position.range(canvas, |i| i.max_wait_ms, millis)),
                Line::plain(first.batch_times_ms.last().map_or_else(|| "?".to_owned(), |ms| millis(*ms))),
                Line::plain(energy.map_or_else(|| "?".to_owned(), number)),
                Line::plain(format!("{} {}", canvas.symbols.plus_minus, percent(first.time_error))),
                Line::plain(&first.source),
            ])
        })
        .collect();
    table(&COLUMNS, &rows, canvas.width, 2, canvas.symbols)
}

/// Letters while they last, numbers for more than 26.
fn key(index: usize, count: usize) -> String {
    match (count <= 26, u8::try_from(index)) {
        (true, Ok(index)) => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

/// `0–36, 40`.
fn spans(indices: &[u32], dash: char) -> String {
    let mut sorted: Vec<usize> = indices.iter().map(|index| *index as usize).collect();
    sorted.sort_unstable();
    let runs: Vec<String> = runs(&sorted)
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}{dash}{last}") })
        .collect();
    runs.join(", ")
}

/// First and last of each run of consecutive numbers.
fn runs(sorted: &[usize]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for index in sorted.iter().copied() {
        match runs.last_mut() {
            Some((_, last)) if index.checked_sub(1) == Some(*last) => *last = index,
            _ => runs.push((index, index)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    #[test]
    fn indices_are_told_as_runs() {
        assert_eq!(super::spans(&[4, 0, 1, 2, 7], '–'), "0–2, 4, 7");
    }

    #[test]
    fn positions_are_letters_while_they_last() {
        assert_eq!((super::key(25, 26), super::key(0, 27)), ("Z".to_owned(), "1".to_owned()));
    }
}
