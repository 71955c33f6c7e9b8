//! Boards are possible, cut legally, at a clock they have, and hold what is put on them.

use super::{Faults, Plan, board_of, close};
use crate::device::{Board, Confidence, GpuInstanceProfile, board, carries_media, tolerates};
use crate::plan::{Gpu, Sharing};
use std::collections::{BTreeMap, BTreeSet};

/// The boards a plan carries: each possible, once, and cut as the catalogue says unless the program says
/// otherwise; every one that is named is there.
pub(super) fn boards(plan: &Plan, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, carried) in plan.boards.iter().enumerate() {
        let place = format!("boards[{index}]");
        if !seen.insert(carried.id.as_str()) {
            faults.add(&place, format!("board `{}` is there twice", carried.id));
        }
        carried.faults().into_iter().for_each(|fault| faults.add(&place, fault));
        if let Some(known) = board(&carried.id) {
            against_catalogue(carried, &known, &place, faults);
        }
    }
    let used = plan.gpus.iter().enumerate().map(|(i, g)| (format!("gpus[{i}].board"), &g.board));
    let unused = plan.unused.iter().enumerate().map(|(i, u)| (format!("unused[{i}].board"), &u.board));
    for (place, id) in used.chain(unused) {
        if !seen.contains(id.as_str()) {
            faults.add(place, format!("the plan does not carry board `{id}`"));
        }
    }
}

/// Geometry under a catalogue name must be the catalogue's, or say that a user supplied it.
fn against_catalogue(carried: &Board, known: &Board, place: &str, faults: &mut Faults) {
    for profile in &carried.profiles {
        if matches!(profile.confidence, Confidence::User | Confidence::Illustration) {
            continue;
        }
        let shape = |p: &GpuInstanceProfile| {
            (p.n_compute_slices, p.n_memory_slices, p.starts.clone(), p.max_instances)
        };
        if carried.n_memory_slices != known.n_memory_slices
            || known.profile(&profile.name).map(shape) != Some(shape(profile))
        {
            faults.add(place, format!("`{}` is not cut as the catalogue's `{}`", profile.name, known.id));
        }
    }
}

/// Everything that is on boards.
pub(super) fn check(plan: &Plan, faults: &mut Faults) {
    names(plan, faults);
    for (index, gpu) in plan.gpus.iter().enumerate() {
        let place = format!("gpus[{index}]");
        let Some(board) = board_of(plan, gpu) else { continue };
        clock(gpu, board, &place, faults);
        if gpu.instances.is_empty() {
            faults.add(&place, "it is listed as used and carries nothing");
        }
        match gpu.sharing {
            Sharing::Mig => mig(gpu, board, &place, faults),
            Sharing::Mps => mps(gpu, board, &place, faults),
            Sharing::Whole => whole(gpu, board, &place, faults),
        }
    }
}

/// Each board once, in order, within its node.
fn names(plan: &Plan, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    let mut uuids = BTreeSet::new();
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    plan.gpus.iter().for_each(|g| *sizes.entry(&g.node).or_default() += 1);
    plan.unused.iter().for_each(|u| *sizes.entry(&u.node).or_default() += u64::from(u.count));
    for (index, gpu) in plan.gpus.iter().enumerate() {
        let place = format!("gpus[{index}]");
        if !seen.insert((gpu.node.as_str(), gpu.index)) {
            faults.add(&place, format!("board {} of node `{}` is there twice", gpu.index, gpu.node));
        }
        if gpu.uuid.as_deref().is_some_and(|uuid| !uuids.insert(uuid)) {
            faults.add(&place, "its UUID is there twice");
        }
        if sizes.get(gpu.node.as_str()).is_none_or(|size| u64::from(gpu.index) >= *size) {
            faults.add(&place, format!("node `{}` has no board {}", gpu.node, gpu.index));
        }
    }
    let runs = plan.gpus.chunk_by(|a, b| a.node == b.node);
    let mut nodes = BTreeSet::new();
    for run in runs {
        let is_new = run.first().is_none_or(|g| nodes.insert(&g.node));
        if !is_new || !run.is_sorted_by_key(|g| g.index) {
            faults.add("gpus", "the boards are not in the order of node and index");
        }
    }
    let mut seen = BTreeSet::new();
    for (index, unused) in plan.unused.iter().enumerate() {
        if !seen.insert((&unused.node, &unused.board)) {
            faults.add(format!("unused[{index}]"), "its node and board are there twice");
        }
    }
}

/// One clock the board has, and the base power at it.
fn clock(gpu: &Gpu, board: &Board, place: &str, faults: &mut Faults) {
    let clock = gpu.sm_clock_mhz;
    let base = board.base_power.as_ref();
    if board.clocks.is_empty() {
        if base.and_then(|b| b.at(clock)).is_none() {
            faults.add(
                format!("{place}.sm_clock_mhz"),
                format!("nothing says that `{}` has {clock}", board.id),
            );
        }
    } else if !board.clocks.contains(&clock) {
        faults.add(format!("{place}.sm_clock_mhz"), format!("{clock} is not a clock of `{}`", board.id));
    }
    let known = base.and_then(|b| b.at(clock)).map(|w| w.get());
    faults.equal_if_known(format!("{place}.base_power_w"), "base power", gpu.base_power_w, known);
}

/// Legal placements that do not overlap, within the counts, with memory enough.
fn mig(gpu: &Gpu, board: &Board, place: &str, faults: &mut Faults) {
    let mut cut: Vec<(&GpuInstanceProfile, u32, String)> = Vec::new();
    for (index, instance) in gpu.instances.iter().enumerate() {
        let place = format!("{place}.instances[{index}]");
        let (Some(name), Some(start), Some(size)) = (&instance.profile, instance.start, instance.size) else {
            faults.add(&place, "inside MIG it needs a profile, a start and a size");
            continue;
        };
        if instance.mps_percent.is_some() {
            faults.add(&place, "inside MIG it has no MPS percentage");
        }
        let Some(profile) = board.profile(name) else {
            faults.add(format!("{place}.profile"), format!("`{}` has no profile `{name}`", board.id));
            continue;
        };
        if !profile.starts.contains(&start) {
            faults.add(format!("{place}.start"), format!("`{name}` cannot start at memory slice {start}"));
            continue;
        }
        if size != profile.n_memory_slices {
            let message = format!("`{name}` occupies {} memory slices, not {size}", profile.n_memory_slices);
            faults.add(format!("{place}.size"), message);
        }
        holds(instance.memory_bytes, profile.memory.map(|m| m.get()), name, &place, faults);
        for (other, other_start, other_place) in &cut {
            let (end, other_end) = (start + profile.n_memory_slices, other_start + other.n_memory_slices);
            if start < other_end && *other_start < end {
                faults.add(&place, format!("it overlaps {other_place}"));
            }
            if !tolerates(profile, other) || !tolerates(other, profile) {
                faults.add(&place, format!("`{}` and `{}` exclude each other", other.name, profile.name));
            }
            if carries_media(profile) && carries_media(other) {
                faults.add(&place, "a board has media extensions for one instance");
            }
        }
        cut.push((profile, start, place));
    }
    for profile in &board.profiles {
        let count = cut.iter().filter(|(p, _, _)| p.name == profile.name).count();
        if count > profile.max_instances as usize {
            let message =
                format!("{count} of `{}`, at most {} are possible", profile.name, profile.max_instances);
            faults.add(place, message);
        }
    }
    let slices: u64 = cut.iter().map(|(p, _, _)| u64::from(p.n_compute_slices)).sum();
    if slices > u64::from(board.n_compute_slices()) {
        faults.add(place, format!("{slices} compute slices; the board has {}", board.n_compute_slices()));
    }
    if !gpu.instances.is_sorted_by_key(|i| i.start) {
        faults.add(place, "the instances are not in the order of their starts");
    }
}

/// Clients that an MPS server takes on one board: 48 since Volta (60 from CUDA 13.1, which plans do not
/// rely on). Source: NVIDIA's documentation of the Multi-Process Service.
const MPS_CLIENTS: u64 = 48;

/// Percentages, clients and memory within the board. MPS itself would let percentages add up to more; what
/// a share then does is not what is predicted for it.
fn mps(gpu: &Gpu, board: &Board, place: &str, faults: &mut Faults) {
    let mut percent = 0;
    for (index, instance) in gpu.instances.iter().enumerate() {
        let place = format!("{place}.instances[{index}]");
        if instance.profile.is_some() || instance.start.is_some() || instance.size.is_some() {
            faults.add(&place, "an MPS share has no profile, start or size");
        }
        match instance.mps_percent {
            Some(share @ 1..=100) => percent += share,
            _ => faults.add(&place, "an MPS share needs a percentage from 1 to 100"),
        }
    }
    if percent > 100 {
        faults.add(place, format!("its shares add up to {percent} %"));
    }
    let clients: u64 = gpu.instances.iter().map(|i| u64::from(i.processes)).sum();
    if clients > MPS_CLIENTS {
        faults.add(place, format!("{clients} processes share it by MPS, at most {MPS_CLIENTS} can"));
    }
    let needed: Option<f64> = gpu.instances.iter().filter_map(|i| i.memory_bytes).map(Some).sum();
    holds(needed, board.memory.map(|m| m.get()), &board.id, place, faults);
}

/// One instance, which has everything.
fn whole(gpu: &Gpu, board: &Board, place: &str, faults: &mut Faults) {
    if gpu.instances.len() > 1 {
        faults.add(place, "a whole board carries one instance");
    }
    for (index, instance) in gpu.instances.iter().enumerate() {
        let place = format!("{place}.instances[{index}]");
        if instance.profile.is_some() || instance.start.is_some() || instance.size.is_some() {
            faults.add(&place, "a whole board has no profile, start or size");
        }
        if instance.mps_percent.is_some() {
            faults.add(&place, "a whole board has no MPS percentage");
        }
        holds(instance.memory_bytes, board.memory.map(|m| m.get()), &board.id, &place, faults);
    }
}

/// Memory that is asked for must be known to be there.
fn holds(needed: Option<f64>, has: Option<f64>, of: &str, place: &str, faults: &mut Faults) {
    match (needed, has) {
        (Some(needed), Some(has)) if needed > has && !close(needed, has) => {
            faults.add(format!("{place}.memory_bytes"), format!("{needed} bytes; `{of}` has {has}"));
        }
        (Some(needed), None) if needed > 0.0 => {
            faults.add(format!("{place}.memory_bytes"), format!("the memory of `{of}` is not known"));
        }
        _ => {}
    }
}
