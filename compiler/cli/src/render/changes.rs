//! Steps between a machine and a wish → lists by GPU: what comes, what goes, what stays, what stops.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use crate::exit::Trouble;
use ent_machine::bind::Binding;
use ent_machine::changes::{Changes, Operation, Step};
use ent_machine::observed::{GpuUuid, Observed};
use ent_machine::preflight::{Radius, Warning};
use std::collections::BTreeMap;

/// What is drawn.
pub(crate) struct Shown<'a> {
    /// What it is about: `node box`, `back to before the last apply`.
    pub(crate) title: &'a str,
    /// The steps.
    pub(crate) changes: &'a Changes,
    /// The machine they start from.
    pub(crate) observed: &'a Observed,
    /// What stops.
    pub(crate) radius: &'a [Radius],
    /// Whether the plan has boards off that are left as they are.
    pub(crate) has_boards_off: bool,
    /// Which planned board is which GPU, where that was decided here.
    pub(crate) binding: Option<&'a Binding>,
    /// Why `apply` would refuse.
    pub(crate) refusals: &'a [Trouble],
    /// What else is to be known.
    pub(crate) warnings: &'a [Warning],
}

impl<'a> Shown<'a> {
    /// Steps that no plan is behind, and that nothing more is to be said of.
    pub(crate) fn alone(
        title: &'a str,
        changes: &'a Changes,
        observed: &'a Observed,
        radius: &'a [Radius],
    ) -> Self {
        Self {
            title,
            changes,
            observed,
            radius,
            has_boards_off: false,
            binding: None,
            refusals: &[],
            warnings: &[],
        }
    }
}

/// Draws the steps.
pub(crate) fn changes(shown: &Shown<'_>, canvas: &Canvas) -> String {
    let mut lines = heading(shown, canvas);
    if let Some(binding) = shown.binding {
        let boards: Vec<String> =
            binding.gpus.iter().map(|(index, gpu)| format!("{index} = {gpu}")).collect();
        let text = format!("  planned offline; bound here: gpu {}", boards.join(", "));
        lines.extend(Line::of(Role::Faint, text).wrapped(canvas.width, 4));
    }
    lines.push(Line::new());
    lines.extend(by_gpu(shown, canvas));
    lines.extend(untouched(shown, canvas));
    lines.extend(radius(shown.radius, canvas));
    for trouble in shown.refusals {
        let line = Line::of(Role::Bad, format!("  apply would refuse [{}]", trouble.code))
            .and(Role::Plain, format!(" {}", trouble.message));
        lines.extend(line.wrapped(canvas.width, 4));
        lines.extend(Line::of(Role::Faint, format!("    help: {}", trouble.help)).wrapped(canvas.width, 6));
    }
    for warning in shown.warnings {
        let line = Line::of(Role::Warn, format!("  warning [{}]", warning.code))
            .and(Role::Plain, format!(" {}", warning.message));
        lines.extend(line.wrapped(canvas.width, 4));
        lines.extend(Line::of(Role::Faint, format!("    help: {}", warning.help)).wrapped(canvas.width, 6));
    }
    page(&lines, canvas.color)
}

fn heading(shown: &Shown<'_>, canvas: &Canvas) -> Vec<Line> {
    let n = shown.changes.steps.len();
    let mut gpus: Vec<&GpuUuid> = shown.changes.steps.iter().map(|step| &step.gpu).collect();
    gpus.sort();
    gpus.dedup();
    let line = Line::of(Role::Heading, shown.title);
    let line = if n == 0 {
        line.and(Role::Good, ": nothing to do").and(Role::Plain, ", the machine is as wished")
    } else {
        let of = shown.observed.gpus.len();
        let steps = if n == 1 { "1 step".to_owned() } else { format!("{n} steps") };
        line.and(Role::Plain, format!(": {steps} on {} of {of} GPUs", gpus.len()))
    };
    line.wrapped(canvas.width, 2)
}

/// GPU by GPU: its steps, each with its place in the order of all, then what stays.
fn by_gpu(shown: &Shown<'_>, canvas: &Canvas) -> Vec<Line> {
    let mut gpus: BTreeMap<u32, (GpuUuid, Vec<Line>)> = BTreeMap::new();
    let digits = shown.changes.steps.len().to_string().len();
    for (number, step) in shown.changes.steps.iter().enumerate() {
        let own = gpus.entry(step.index).or_insert_with(|| (step.gpu.clone(), Vec::new()));
        let head = Line::of(Role::Faint, format!("  {:>digits$} ", number + 1));
        own.1.extend(head.then(step_line(step)).wrapped(canvas.width, digits + 5));
    }
    for kept in &shown.changes.kept {
        let index = shown.observed.gpu(&kept.gpu).map_or(u32::MAX, |gpu| gpu.index);
        let own = gpus.entry(index).or_insert_with(|| (kept.gpu.clone(), Vec::new()));
        let mut line = Line::plain(" ".repeat(digits + 3))
            .and(Role::Faint, format!("= keep {} at slice {}", kept.profile, kept.start));
        if let Some(service) = &kept.service {
            line.push(Role::Faint, format!("  service {service} stays on it"));
        }
        own.1.extend(line.wrapped(canvas.width, digits + 5));
    }
    let mut lines = Vec::new();
    for (index, (uuid, own)) in gpus {
        let board = shown.observed.gpu(&uuid).and_then(|gpu| gpu.board.clone()).unwrap_or_default();
        let line = Line::of(Role::Heading, format!("gpu {index}"))
            .and(Role::Plain, format!("  {board}"))
            .and(Role::Faint, format!("  {uuid}"));
        lines.extend(line.wrapped(canvas.width, 2));
        lines.extend(own);
        lines.push(Line::new());
    }
    lines
}

/// `+ create 1g.10gb at slice 3  service classify needs it`.
pub(crate) fn step_line(step: &Step) -> Line {
    let (mark, role) = match step.operation {
        Operation::CreateInstance { .. } => ("+", Role::Good),
        Operation::DestroyInstance { .. } => ("-", Role::Bad),
        Operation::SetMigMode { .. }
        | Operation::SetPersistence { .. }
        | Operation::LockClocks { .. }
        | Operation::UnlockClocks
        | Operation::SetPowerLimit { .. } => ("~", Role::Warn),
    };
    let line = Line::of(role, format!("{mark} {}", step.operation));
    if step.reason.is_empty() { line } else { line.and(Role::Faint, format!("  {}", step.reason)) }
}

/// GPUs that nothing is done to, said and not left to be guessed.
fn untouched(shown: &Shown<'_>, canvas: &Canvas) -> Vec<Line> {
    let mut indices: Vec<u32> = shown
        .changes
        .untouched
        .iter()
        .filter_map(|uuid| shown.observed.gpu(uuid))
        .map(|gpu| gpu.index)
        .collect();
    indices.sort_unstable();
    if indices.is_empty() {
        return Vec::new();
    }
    let word = if indices.len() == 1 { "gpu" } else { "gpus" };
    let off = if shown.has_boards_off { "; the plan has boards off, and entc switches none off" } else { "" };
    let text = format!("left as they are: {word} {}{off}", spans(&indices, canvas.symbols.dash));
    let mut lines = Line::of(Role::Faint, text).wrapped(canvas.width, 2);
    lines.push(Line::new());
    lines
}

/// `0–3, 7`.
fn spans(indices: &[u32], dash: char) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for index in indices {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*index) => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let word = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}{dash}{last}") }
    };
    runs.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// What stops: GPU by GPU, those alike told together, and service by service.
fn radius(radius: &[Radius], canvas: &Canvas) -> Vec<Line> {
    if radius.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::of(Role::Heading, "what stops")];
    let mut alike: Vec<(String, Vec<u32>)> = Vec::new();
    let mut services: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for one in radius {
        let facts = reach(one);
        match alike.iter_mut().find(|(known, _)| *known == facts) {
            Some((_, gpus)) => gpus.push(one.index),
            None => alike.push((facts, vec![one.index])),
        }
        for service in &one.services {
            services.entry(service).or_default().push(one.index);
        }
    }
    let on = |gpus: &[u32]| {
        let word = if gpus.len() == 1 { "gpu" } else { "gpus" };
        format!("{word} {}", spans(gpus, canvas.symbols.dash))
    };
    for (facts, gpus) in alike {
        let line = Line::of(Role::Warn, format!("  {}", on(&gpus))).and(Role::Plain, format!("  {facts}"));
        lines.extend(line.wrapped(canvas.width, 4));
    }
    for (service, gpus) in services {
        let line = Line::of(Role::Warn, "  service ")
            .and(Role::Name, service)
            .and(Role::Plain, format!("  on {}", on(&gpus)));
        lines.extend(line.wrapped(canvas.width, 4));
    }
    lines.push(Line::new());
    lines
}

/// What stops on one GPU.
fn reach(one: &Radius) -> String {
    let mut facts = Vec::new();
    let is_idle = one.destroyed.is_empty() && one.services.is_empty() && one.processes.is_empty();
    match (one.resets, is_idle) {
        (true, true) => facts.push("the board resets; nothing runs on it".to_owned()),
        (true, false) => facts.push("the board resets, and whatever runs on it ends".to_owned()),
        (false, _) => {}
    }
    if !one.destroyed.is_empty() {
        let go = if one.destroyed.len() == 1 { "goes" } else { "go" };
        facts.push(format!("{} {go}", one.destroyed.join(", ")));
    }
    for holder in &one.processes {
        let name = holder.name.as_deref().unwrap_or("a process");
        facts.push(format!("{name} ({}) loses what it runs on", holder.pid));
    }
    facts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::Detail;
    use crate::render::symbols::{ASCII, UNICODE};
    use ent_machine::changes::Kept;

    fn machine() -> Observed {
        let gpu = |index: u32| {
            serde_json::json!({
                "uuid": format!("GPU-{index}"), "index": index, "name": "NVIDIA A100 80GB PCIe",
                "pci_bus_id": "00000000:07:00.0", "pci_device_id": "0x20B510DE", "board": "a100-80gb-pcie",
                "mig": { "current": true, "pending": true }, "is_persistent": true, "sm_clock_mhz": 210,
                "supported_sm_clocks_mhz": [210], "power_limit_mw": 300_000, "default_power_limit_mw": 300_000,
                "power_mw": 45_000, "energy_mj": 1, "profiles": [], "instances": [], "holders": [],
            })
        };
        serde_json::from_value(serde_json::json!({
            "driver_version": "575.57.08", "library": "l", "is_simulated": true, "boot_id": "1",
            "gpus": [gpu(0), gpu(1), gpu(2), gpu(3)],
        }))
        .unwrap()
    }

    #[test]
    fn every_gpu_is_accounted_for_in_any_width() {
        let gpu = GpuUuid("GPU-1".to_owned());
        let create = Operation::CreateInstance { profile: "1g.10gb".to_owned(), start: 3, size: 1 };
        let step =
            Step { gpu: gpu.clone(), index: 1, operation: create, reason: "service a needs it".to_owned() };
        let kept = Kept {
            gpu: gpu.clone(),
            profile: "2g.20gb".to_owned(),
            start: 4,
            size: 2,
            service: Some("b".to_owned()),
        };
        let untouched = [0, 2, 3].map(|i| GpuUuid(format!("GPU-{i}"))).to_vec();
        let changes = Changes { steps: vec![step], kept: vec![kept], untouched, ..Changes::default() };
        let radius = [Radius {
            gpu,
            index: 1,
            resets: true,
            destroyed: vec!["3g.40gb@0".to_owned()],
            services: vec!["old".to_owned()],
            processes: Vec::new(),
        }];
        let observed = machine();
        let shown = Shown {
            title: "node box",
            changes: &changes,
            observed: &observed,
            radius: &radius,
            has_boards_off: true,
            binding: None,
            refusals: &[],
            warnings: &[],
        };
        for (width, symbols) in [(40, &ASCII), (100, &UNICODE)] {
            let canvas = Canvas { width, color: false, symbols, detail: Detail::Boards };
            let text = super::changes(&shown, &canvas);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            // Whatever the width, the same words.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in [
                "1 step on 1 of 4 GPUs",
                "+ create 1g.10gb at slice 3",
                "keep 2g.20gb",
                "gpus 0, 2",
                "none off",
                "3g.40gb@0 goes",
                "old",
            ] {
                assert!(text.contains(words), "{words} is missing from {text}");
            }
        }
        let nothing = Changes::default();
        let shown = Shown { changes: &nothing, radius: &[], ..shown };
        let canvas = Canvas { width: 100, color: false, symbols: &UNICODE, detail: Detail::Boards };
        assert!(super::changes(&shown, &canvas).contains("nothing to do"));
    }
}
