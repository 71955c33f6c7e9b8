//! A node of a spec and the machine it is to be → whether they are alike; a plan with the machine written in.

use crate::exit::{Stop, Trouble};
use ent_machine::observed::{Observed, ObservedGpu};
use ent_plan::plan::{Machine, MachineGpu, Plan};
use std::collections::BTreeMap;

/// Whether a machine has the boards that a node says: `count` of the kind, and with the indices from zero,
/// because that is how a plan names them.
///
/// # Errors
/// What the node says, and what there is.
pub(crate) fn fits(node: &str, board: &str, count: u32, observed: &Observed) -> Result<(), Stop> {
    let is_it = |gpu: &&ObservedGpu| gpu.board.as_deref() == Some(board);
    let found: Vec<u32> = observed.gpus.iter().filter(is_it).map(|gpu| gpu.index).collect();
    let is_alike = found.iter().copied().eq(0..count);
    if is_alike {
        return Ok(());
    }
    let is_only_elsewhere = found.len() == count as usize;
    let message = if is_only_elsewhere {
        format!(
            "node `{node}` has {count} x {board}, numbered from 0; on this machine they are {}",
            found.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
        )
    } else {
        format!("node `{node}` has {count} x {board}; this machine has {}", boards(observed))
    };
    Err(Trouble::new(
        "other-hardware",
        message,
        "change the node's `gpu` in the spec to what the machine has, or plan for another machine",
    )
    .into())
}

/// `2 x a100-80gb-pcie, 1 x Tesla T4 (not in the catalogue)`.
fn boards(observed: &Observed) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for gpu in &observed.gpus {
        let name = gpu.board.clone().unwrap_or_else(|| format!("{} (not in the catalogue)", gpu.name));
        *counts.entry(name).or_default() += 1;
    }
    if !observed.unreadable.is_empty() {
        counts.insert("GPU that cannot be read".to_owned(), observed.unreadable.len());
    }
    let words: Vec<String> = counts.iter().map(|(name, count)| format!("{count} x {name}")).collect();
    if words.is_empty() { "no GPU".to_owned() } else { words.join(", ") }
}

/// Writes the machine into a plan: what it was, and the UUIDs of the planned boards of its node.
pub(crate) fn fill(plan: &mut Plan, node: &str, observed: &Observed) {
    for gpu in plan.gpus.iter_mut().filter(|gpu| gpu.node == node) {
        let is_it = |seen: &&ObservedGpu| seen.index == gpu.index;
        gpu.uuid = observed.gpus.iter().find(is_it).map(|seen| seen.uuid.0.clone());
    }
    let machine_gpu = |gpu: &ObservedGpu| MachineGpu {
        index: gpu.index,
        uuid: gpu.uuid.0.clone(),
        board: gpu.board.clone(),
        mig: gpu.mig.map(|mode| mode.current),
        instances: gpu.instances.iter().map(|i| format!("{}@{}", i.profile, i.start)).collect(),
    };
    plan.machine = Some(Machine {
        node: node.to_owned(),
        driver_version: observed.driver_version.clone(),
        is_simulated: observed.is_simulated,
        gpus: observed.gpus.iter().map(machine_gpu).collect(),
    });
}

/// The kind and number of a node's boards in a plan; `None` where it has none.
pub(crate) fn boards_of(plan: &Plan, node: &str) -> Option<(String, u32)> {
    let used = plan.gpus.iter().filter(|gpu| gpu.node == node).map(|gpu| (&gpu.board, 1));
    let unused = plan.unused.iter().filter(|unused| unused.node == node).map(|u| (&u.board, u.count));
    used.chain(unused).fold(None, |sum, (board, count)| match sum {
        None => Some((board.clone(), count)),
        Some((known, sum)) => Some((known, sum.saturating_add(count))),
    })
}
