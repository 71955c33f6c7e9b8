//! Changes + machine → everything that is known to fail, before anything is changed.
//!
//! Refusals stop the steps; warnings do not. The blast radius says what stops running. Nothing here decides
//! anything: the steps are those of [`diff()`](crate::diff::diff), all of them or none.

use crate::catalogue;
use crate::changes::{Changes, Operation, Step};
use crate::error::Refusal;
use crate::observed::{Holder, Observed, ObservedGpu, ObservedInstance};
use std::collections::BTreeMap;

pub(crate) mod drivers;
mod radius;
mod warnings;

pub use radius::{Radius, blast_radius};
pub use warnings::{Warning, warnings};

/// What the user allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Boards may be reset (`--allow-reset`).
    pub reset: bool,
}

/// Everything that stands in the way; empty when the steps may begin. Without steps nothing does.
///
/// Codes: `no-permission`, `gpu-lost`, `stale`, `unknown-board`, `in-use`, `reset-required`,
/// `driver-too-old`, `unknown-profile`, `clock-not-supported`.
#[must_use]
pub fn preflight(
    changes: &Changes,
    observed: &Observed,
    allowed: Allowed,
    is_privileged: bool,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if !is_privileged && !changes.is_empty() {
        refusals.push(Refusal {
            code: "no-permission",
            gpu: None,
            message: "this process may not change GPUs".to_owned(),
            help: "run the same command as root (`entc observe`, `entc plan` and `entc diff` need no rights)"
                .to_owned(),
        });
    }
    for (gpu, steps) in by_gpu(changes, observed, &mut refusals) {
        Judge { gpu, steps: &steps, observed, allowed, refusals: &mut refusals }.all();
    }
    refusals
}

/// The steps by GPU, in the order of their indices; a GPU that is gone is refused once.
fn by_gpu<'a>(
    changes: &'a Changes,
    observed: &'a Observed,
    refusals: &mut Vec<Refusal>,
) -> Vec<(&'a ObservedGpu, Vec<&'a Step>)> {
    let gpus: BTreeMap<&str, &ObservedGpu> = observed.gpus.iter().map(|g| (g.uuid.0.as_str(), g)).collect();
    let mut steps: BTreeMap<(u32, &str), Vec<&Step>> = BTreeMap::new();
    for step in &changes.steps {
        steps.entry((step.index, step.gpu.0.as_str())).or_default().push(step);
    }
    let mut found = Vec::new();
    for ((index, uuid), steps) in steps {
        match gpus.get(uuid) {
            Some(gpu) => found.push((*gpu, steps)),
            None => refusals.push(Refusal {
                code: "gpu-lost",
                gpu: steps.first().map(|step| step.gpu.clone()),
                message: format!("GPU {index} ({uuid}) is not on this machine any more"),
                help: "look at the kernel's log for its bus address, reset or reboot, then try again"
                    .to_owned(),
            }),
        }
    }
    found
}

/// `3g.40gb at slice 0 of GPU 1`.
fn instance_name(gpu: &ObservedGpu, profile: &str, start: u32) -> String {
    format!("{profile} at slice {start} of GPU {}", gpu.index)
}

/// `python (pid 4711)`.
fn holder_name(holder: &Holder) -> String {
    match &holder.name {
        Some(name) => format!("{name} (pid {})", holder.pid),
        None => format!("a process (pid {})", holder.pid),
    }
}

/// The instance that a step is about.
fn instance_at<'a>(
    gpu: &'a ObservedGpu,
    profile: &str,
    start: u32,
    size: u32,
) -> Option<&'a ObservedInstance> {
    gpu.instances.iter().find(|i| (i.start, i.size) == (start, size) && i.profile == profile)
}

/// One GPU, its steps, and what is found against them.
struct Judge<'a> {
    gpu: &'a ObservedGpu,
    steps: &'a [&'a Step],
    observed: &'a Observed,
    allowed: Allowed,
    refusals: &'a mut Vec<Refusal>,
}

impl Judge<'_> {
    fn refuse(&mut self, code: &'static str, message: String, help: impl Into<String>) {
        let gpu = Some(self.gpu.uuid.clone());
        self.refusals.push(Refusal { code, gpu, message, help: help.into() });
    }

    fn all(&mut self) {
        let index = self.gpu.index;
        if self.gpu.board.is_none() {
            let (name, pci) = (&self.gpu.name, &self.gpu.pci_device_id);
            let message = format!("GPU {index} ({name}, PCI {pci}) is a board that entc does not know");
            self.refuse("unknown-board", message, "leave it out of the plan: its rules are not known");
        }
        self.pending();
        for step in self.steps {
            match &step.operation {
                Operation::SetMigMode { enabled, resets } => self.mode(*enabled, *resets),
                Operation::DestroyInstance { profile, start, size } => self.destroy(profile, *start, *size),
                Operation::CreateInstance { profile, start, .. } => self.create(profile, *start),
                Operation::LockClocks { min, max } => self.clocks(*min, *max),
                Operation::SetPersistence { .. }
                | Operation::UnlockClocks
                | Operation::SetPowerLimit { .. } => {}
            }
        }
        self.driver();
    }

    /// A mode that waits for a reset makes everything after it uncertain.
    fn pending(&mut self) {
        let Some(mode) = self.gpu.mig.filter(|mode| mode.is_pending() && !self.allowed.reset) else { return };
        let index = self.gpu.index;
        let word = |is_on: bool| if is_on { "on" } else { "off" };
        let message = format!(
            "MIG mode of GPU {index} is {}, and {} after the next reset",
            word(mode.current),
            word(mode.pending)
        );
        let help = format!(
            "reboot, or stop what uses the GPU and reset it, then try again; or let entc try with \
             `--allow-reset`:\n  nvidia-smi --gpu-reset -i {index}"
        );
        self.refuse("reset-required", message, help);
    }

    fn mode(&mut self, enabled: bool, resets: bool) {
        let gpu = self.gpu;
        let (index, word) = (gpu.index, if enabled { "on" } else { "off" });
        let is_change = gpu.mig.is_none_or(|mode| mode.current != enabled);
        if is_change {
            for holder in &gpu.holders {
                let message = format!(
                    "{} has GPU {index} open, whose MIG mode is to be turned {word}",
                    holder_name(holder)
                );
                self.refuse("in-use", message, stop(holder));
            }
        }
        if resets && !self.allowed.reset {
            let who = match gpu.holders.as_slice() {
                [] => "nothing runs on it".to_owned(),
                [one] => format!("{} runs on it", holder_name(one)),
                many => format!("{} processes run on it", many.len()),
            };
            let message = format!("turning MIG mode {word} resets GPU {index}; {who}");
            self.refuse("reset-required", message, "allow it with `--allow-reset`");
        }
    }

    fn destroy(&mut self, profile: &str, start: u32, size: u32) {
        let gpu = self.gpu;
        let name = instance_name(gpu, profile, start);
        let Some(instance) = instance_at(gpu, profile, start, size) else {
            let message = format!("{name} is to be destroyed, and is not there");
            self.refuse("stale", message, "look at the steps again:\n  entc diff");
            return;
        };
        let on_it = |holder: &&Holder| holder.gpu_instance_id == Some(instance.gpu_instance_id);
        for holder in gpu.holders.iter().filter(on_it) {
            let message = format!("{} runs on {name}, which is to be destroyed", holder_name(holder));
            self.refuse("in-use", message, stop(holder));
        }
    }

    fn create(&mut self, profile: &str, start: u32) {
        let gpu = self.gpu;
        let menu: Vec<&str> = gpu.profiles.iter().map(|on_menu| on_menu.name.as_str()).collect();
        if !menu.is_empty() && !menu.contains(&profile) {
            let name = instance_name(gpu, profile, start);
            let message = format!("{name} is to be created, and the driver has no such profile");
            self.refuse("unknown-profile", message, format!("plan with what it has: {}", menu.join(", ")));
        }
    }

    fn clocks(&mut self, min: u32, max: u32) {
        let ladder = &self.gpu.supported_sm_clocks_mhz;
        let (Some(lowest), Some(highest)) = (ladder.first(), ladder.last()) else { return };
        let index = self.gpu.index;
        let mut unsupported: Vec<u32> = [min, max].into_iter().filter(|c| !ladder.contains(c)).collect();
        unsupported.dedup();
        for clock in unsupported {
            let message = format!("GPU {index} has no SM clock of {clock} MHz");
            let help = format!(
                "plan with one of the {} clocks it lists, from {lowest} to {highest} MHz",
                ladder.len()
            );
            self.refuse("clock-not-supported", message, help);
        }
    }

    /// Whether the driver is new enough for MIG on this board, and for what is to be on it.
    fn driver(&mut self) {
        let (gpu, version) = (self.gpu, &self.observed.driver_version);
        let uses_mig = |step: &Step| {
            matches!(
                step.operation,
                Operation::SetMigMode { enabled: true, .. } | Operation::CreateInstance { .. }
            )
        };
        if !self.steps.iter().any(|step| uses_mig(step)) {
            return;
        }
        let least = gpu.board.as_deref().and_then(drivers::least_for_mig);
        if let Some(least) = least.filter(|least| drivers::is_older(version, least)) {
            let message =
                format!("MIG on GPU {} ({}) needs driver {least}; here is {version}", gpu.index, gpu.name);
            self.refuse("driver-too-old", message, format!("install driver {least} or newer"));
        }
        let is_beside = |n: u32| {
            let slices = |profile: &str| {
                let board = gpu.board.as_deref().and_then(catalogue::board)?;
                Some((board.n_memory_slices, board.profile(profile)?.n_compute_slices))
            };
            self.after().iter().any(|profile| slices(profile) == Some((8, n)))
        };
        let least = drivers::LEAST_FOR_4G_AND_3G;
        if is_beside(4) && is_beside(3) && drivers::is_older(version, least) {
            let message =
                format!("4g and 3g side by side on GPU {} need driver {least}; here is {version}", gpu.index);
            self.refuse("driver-too-old", message, format!("install driver {least} or newer"));
        }
    }

    /// The profiles on the GPU when all is done.
    fn after(&self) -> Vec<&str> {
        let is_about = |step: &Step, instance: &ObservedInstance| match &step.operation {
            Operation::DestroyInstance { profile, start, .. } => {
                (profile, *start) == (&instance.profile, instance.start)
            }
            Operation::CreateInstance { .. }
            | Operation::SetMigMode { .. }
            | Operation::SetPersistence { .. }
            | Operation::LockClocks { .. }
            | Operation::UnlockClocks
            | Operation::SetPowerLimit { .. } => false,
        };
        let stays = |instance: &&ObservedInstance| !self.steps.iter().any(|step| is_about(step, instance));
        let created = self.steps.iter().filter_map(|step| match &step.operation {
            Operation::CreateInstance { profile, .. } => Some(profile.as_str()),
            Operation::DestroyInstance { .. }
            | Operation::SetMigMode { .. }
            | Operation::SetPersistence { .. }
            | Operation::LockClocks { .. }
            | Operation::UnlockClocks
            | Operation::SetPowerLimit { .. } => None,
        });
        self.gpu.instances.iter().filter(stays).map(|i| i.profile.as_str()).chain(created).collect()
    }
}

/// What to do about a process. The known daemons have a proper way to be stopped.
fn stop(holder: &Holder) -> String {
    let unit = match holder.name.as_deref() {
        Some("nv-hostengine") => Some("nvidia-dcgm"),
        Some("nvidia-persistenced") => Some("nvidia-persistenced"),
        Some("nvsm_core" | "nvsm") => Some("nvsm"),
        Some(_) | None => None,
    };
    match unit {
        Some(unit) => format!("stop it, and start it again afterwards:\n  systemctl stop {unit}"),
        None => format!("stop it, or wait until it is done: pid {}", holder.pid),
    }
}
