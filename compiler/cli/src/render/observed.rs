//! A machine as its driver tells it → a table of GPUs, and of the instances on them.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::{few_watts, number};
use super::table::{Column, table};
use ent_machine::observed::{Holder, Observed, ObservedGpu, ObservedInstance};
use ent_machine::state::{Ours, State};

/// Draws a machine. What is ours is what `state` remembers and is still there; without a state nobody knows.
pub(crate) fn observed(observed: &Observed, state: Option<&State>, canvas: &Canvas) -> String {
    let kind = if observed.is_simulated { "simulated machine" } else { "machine" };
    let heading = Line::of(Role::Heading, format!("{kind}, driver {}", observed.driver_version))
        .and(Role::Faint, format!("  ({})", counted(observed.gpus.len(), "GPU")));
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.push(Line::new());
    lines.extend(gpus(observed, canvas));
    for gpu in &observed.unreadable {
        let text = format!("  gpu {}: cannot be read: {}", gpu.index, gpu.reason);
        lines.extend(Line::of(Role::Bad, text).wrapped(canvas.width, 4));
    }
    let has_instances = observed.gpus.iter().any(|gpu| !gpu.instances.is_empty());
    if has_instances {
        lines.push(Line::new());
        lines.push(Line::of(Role::Heading, "instances"));
        lines.extend(instances(observed, state, canvas));
    }
    for gpu in observed.gpus.iter().filter(|gpu| !gpu.unplaced.is_empty()) {
        let n = counted(gpu.unplaced.len(), "instance");
        let text = format!("  gpu {}: {n} that only root may look at", gpu.index);
        lines.extend(Line::of(Role::Warn, text).wrapped(canvas.width, 4));
    }
    page(&lines, canvas.color)
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn gpus(observed: &Observed, canvas: &Canvas) -> Vec<Line> {
    // Whose watts they are stands in the heading: a simulated machine measures nothing.
    let power = if observed.is_simulated { "W simulated" } else { "W measured" };
    let mut columns = vec![
        Column::word("gpu"),
        Column::name("board"),
        Column::word("MIG mode"),
        Column::number("SM clock"),
        Column::number(power),
        Column::word("uuid"),
        Column::name("held by"),
    ];
    let mut rows: Vec<Vec<Line>> = observed.gpus.iter().map(row).collect();
    without_empty_last(&mut columns, &mut rows);
    table(&columns, &rows, canvas.width, 2, canvas.symbols)
}

/// Drops the last column when nothing stands in it.
fn without_empty_last(columns: &mut Vec<Column>, rows: &mut [Vec<Line>]) {
    if rows.iter().all(|row| row.last().is_none_or(|cell| cell.width() == 0)) {
        columns.pop();
        for row in rows {
            row.pop();
        }
    }
}

fn row(gpu: &ObservedGpu) -> Vec<Line> {
    let watts = |mw: u32| f64::from(mw) / 1000.0;
    let power = gpu.power_mw.map_or_else(|| "?".to_owned(), |mw| few_watts(watts(mw)));
    let limit = gpu.power_limit_mw.map_or_else(String::new, |mw| format!(" of {}", number(watts(mw))));
    let board = match &gpu.board {
        Some(board) => Line::of(Role::Name, board),
        None => Line::of(Role::Warn, format!("{} (not in the catalogue)", gpu.name)),
    };
    let clock = match gpu.sm_clock_mhz {
        Some(mhz) => Line::plain(format!("{mhz} MHz")),
        None => Line::of(Role::Faint, "?"),
    };
    let whole: Vec<&Holder> = gpu.holders.iter().filter(|h| h.gpu_instance_id.is_none()).collect();
    vec![
        Line::plain(gpu.index.to_string()),
        board,
        mode(gpu),
        clock,
        Line::plain(power).and(Role::Faint, limit),
        Line::of(Role::Faint, &gpu.uuid.0),
        holders(&whole),
    ]
}

fn mode(gpu: &ObservedGpu) -> Line {
    let word = |is_on: bool| if is_on { "on" } else { "off" };
    match gpu.mig {
        None => Line::of(Role::Faint, "none"),
        Some(mode) if mode.is_pending() => {
            Line::of(Role::Warn, format!("{}, {} after a reset", word(mode.current), word(mode.pending)))
        }
        Some(mode) => Line::plain(word(mode.current)),
    }
}

/// `python (4711), nv-hostengine (812)`.
pub(crate) fn holders(holders: &[&Holder]) -> Line {
    let words: Vec<String> = holders
        .iter()
        .map(|holder| format!("{} ({})", holder.name.as_deref().unwrap_or("?"), holder.pid))
        .collect();
    Line::plain(words.join(", "))
}

fn instances(observed: &Observed, state: Option<&State>, canvas: &Canvas) -> Vec<Line> {
    let known = state.map(|state| (state, state.on(observed).ours()));
    let mut columns = vec![
        Column::word("gpu"),
        Column::word("profile"),
        Column::number("memory slices"),
        Column::word("whose"),
        Column::name("service"),
        Column::word("MIG device"),
        Column::name("held by"),
    ];
    let mut rows: Vec<Vec<Line>> = observed
        .gpus
        .iter()
        .flat_map(|gpu| gpu.instances.iter().map(move |instance| (gpu, instance)))
        .map(|(gpu, instance)| instance_row(gpu, instance, known.as_ref(), canvas))
        .collect();
    without_empty_last(&mut columns, &mut rows);
    table(&columns, &rows, canvas.width, 2, canvas.symbols)
}

fn instance_row(
    gpu: &ObservedGpu,
    instance: &ObservedInstance,
    known: Option<&(&State, Ours)>,
    canvas: &Canvas,
) -> Vec<Line> {
    let key = (gpu.uuid.clone(), instance.start, instance.size, instance.profile.clone());
    let is_ours = known.map(|(_, ours)| ours.contains(&key));
    let remembered = known.filter(|_| is_ours == Some(true)).and_then(|(state, _)| state.gpus.get(&gpu.uuid));
    let service = remembered
        .and_then(|gpu| gpu.instances.iter().find(|i| i.start == instance.start))
        .and_then(|known| known.service.as_deref())
        .unwrap_or_default();
    let last = (instance.start + instance.size).saturating_sub(1);
    let place = if last == instance.start {
        last.to_string()
    } else {
        format!("{}{}{last}", instance.start, canvas.symbols.dash)
    };
    let device = match (instance.mig_device(), instance.compute_instances.as_slice()) {
        (Some(uuid), _) => Line::of(Role::Faint, &uuid.0),
        (None, []) => Line::of(Role::Warn, "none: no compute instance"),
        (None, cut) => Line::of(Role::Faint, counted(cut.len(), "compute instance")),
    };
    let own: Vec<&Holder> =
        gpu.holders.iter().filter(|h| h.gpu_instance_id == Some(instance.gpu_instance_id)).collect();
    vec![
        Line::plain(gpu.index.to_string()),
        Line::of(Role::Heading, &instance.profile),
        Line::plain(place),
        match is_ours {
            Some(true) => Line::of(Role::Good, "ours"),
            Some(false) => Line::of(Role::Warn, "foreign"),
            None => Line::of(Role::Warn, "unknown"),
        },
        Line::of(Role::Name, service),
        device,
        holders(&own),
    ]
}
