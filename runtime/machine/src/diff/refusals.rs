//! What makes a target unreachable → words for it, and what to do.

use crate::error::Refusal;
use crate::observed::{GpuUuid, Observed, ObservedGpu, ObservedInstance};
use crate::target::TargetInstance;
use std::collections::BTreeSet;

fn on(gpu: &ObservedGpu, code: &'static str, message: String, help: impl Into<String>) -> Refusal {
    Refusal { code, gpu: Some(gpu.uuid.clone()), message, help: help.into() }
}

/// Two GPUs under one index or one UUID: no step could say which one it is for.
pub(super) fn duplicates(observed: &Observed) -> Vec<Refusal> {
    let (mut indices, mut uuids) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Vec::new();
    for gpu in &observed.gpus {
        let (is_new_index, is_new_uuid) = (indices.insert(gpu.index), uuids.insert(&gpu.uuid));
        if !is_new_index || !is_new_uuid {
            let message = format!("GPU {} ({}) is there twice", gpu.index, gpu.uuid);
            found.push(on(
                gpu,
                "duplicate-gpu",
                message,
                "restart the driver, then look again:\n  entc observe",
            ));
        }
    }
    found
}

pub(super) fn lost(uuid: &GpuUuid, observed: &Observed) -> Refusal {
    let unreadable = observed.unreadable.iter().find(|gpu| gpu.uuid.as_ref() == Some(uuid));
    let message = match unreadable {
        Some(gpu) => format!("GPU {} ({uuid}) cannot be read: {}", gpu.index, gpu.reason),
        None => format!("{uuid} is not on this machine any more"),
    };
    let help = "look at the kernel's log for its bus address, reset or reboot, then try again".to_owned();
    Refusal { code: "gpu-lost", gpu: Some(uuid.clone()), message, help }
}

pub(super) fn unplaced(gpu: &ObservedGpu) -> Refusal {
    let message = format!(
        "this process may not see where the instances of GPU {} sit ({} of them)",
        gpu.index,
        gpu.unplaced.len()
    );
    on(gpu, "no-permission", message, "run the same command as root")
}

pub(super) fn no_mig(gpu: &ObservedGpu) -> Refusal {
    let message = format!("GPU {} ({}) has no MIG mode", gpu.index, gpu.name);
    on(gpu, "not-supported", message, "plan it whole or shared by MPS, or for another board")
}

pub(super) fn mode_off(gpu: &ObservedGpu) -> Refusal {
    let message = format!("instances are wished on GPU {}, and its MIG mode is to be off", gpu.index);
    on(gpu, "mig-mode-off", message, "let MIG mode be turned on with them")
}

pub(super) fn unknown_board(gpu: &ObservedGpu) -> Refusal {
    let message = format!(
        "GPU {} ({}, PCI {}) is a board that entc does not know",
        gpu.index, gpu.name, gpu.pci_device_id
    );
    on(gpu, "unknown-board", message, "leave it out of the plan: where its instances may start is not known")
}

pub(super) fn unknown_profile(gpu: &ObservedGpu, name: &str) -> Refusal {
    let menu: Vec<&str> = gpu.profiles.iter().map(|profile| profile.name.as_str()).collect();
    let message = format!("GPU {} ({}) has no profile {name}", gpu.index, gpu.name);
    let help = if menu.is_empty() {
        "plan again with a profile of the board".to_owned()
    } else {
        format!("plan again with what its driver offers: {}", menu.join(", "))
    };
    on(gpu, "unknown-profile", message, help)
}

pub(super) fn impossible(gpu: &ObservedGpu, wishes: &[TargetInstance]) -> Refusal {
    let message = format!("GPU {} cannot be cut into {}", gpu.index, list(wishes));
    on(gpu, "impossible-layout", message, "plan again; no placement of these exists on this board")
}

pub(super) fn foreign(gpu: &ObservedGpu, other: &ObservedInstance, wishes: &[TargetInstance]) -> Refusal {
    let message = format!(
        "{} at slice {} of GPU {} is not entc's, and leaves no room for {}",
        other.profile,
        other.start,
        gpu.index,
        list(wishes)
    );
    on(gpu, "foreign-instance", message, ADOPT)
}

pub(super) fn foreign_and_mode(gpu: &ObservedGpu, other: &ObservedInstance) -> Refusal {
    let message = format!(
        "{} at slice {} of GPU {} is not entc's, and would be lost with MIG mode",
        other.profile, other.start, gpu.index
    );
    on(gpu, "foreign-instance", message, ADOPT)
}

const ADOPT: &str = "ask whoever made it to remove it; or make it entc's, to keep or destroy (also while a transaction is \
     half-way: then what stands in its way):\n  entc import";

/// `2 x 1g.10gb, 3g.40gb`.
fn list(wishes: &[TargetInstance]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for wish in wishes {
        match counts.iter_mut().find(|(name, _)| *name == wish.profile) {
            Some((_, count)) => *count += 1,
            None => counts.push((&wish.profile, 1)),
        }
    }
    let word = |(name, count): &(&str, usize)| match count {
        1 => (*name).to_owned(),
        n => format!("{n} x {name}"),
    };
    counts.iter().map(word).collect::<Vec<_>>().join(", ")
}
