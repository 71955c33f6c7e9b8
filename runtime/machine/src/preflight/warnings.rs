//! Changes + machine + plan → what does not stop the steps and is to be known all the same.

use super::{by_gpu, holder_name};
use crate::bind::Binding;
use crate::changes::{Changes, Operation, Step};
use crate::observed::{GpuUuid, Holder, Observed, ObservedGpu};
use crate::state::State;
use ent_plan::plan::CheckedPlan;
use std::collections::BTreeMap;

/// What does not stop the steps and is to be known all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A word for scripts: `power-limit-too-low`, `persistence-off`, …
    pub code: &'static str,
    /// The GPU; `None` when it is about the machine.
    pub gpu: Option<GpuUuid>,
    /// What is to be known, one line.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// What is to be known before the steps begin. `plan` is the plan and its binding where the wish is one.
///
/// Codes: `persistence-off`, `may-be-in-use`, `clock-reaches-others`, and of a plan, even without steps,
/// `power-limit-too-low`.
#[must_use]
pub fn warnings(
    changes: &Changes,
    observed: &Observed,
    state: &State,
    plan: Option<(&CheckedPlan, &Binding)>,
) -> Vec<Warning> {
    let mut found = Vec::new();
    // GPUs that are gone are the preflight's to refuse.
    for (gpu, steps) in by_gpu(changes, observed, &mut Vec::new()) {
        persistence(gpu, &steps, &mut found);
        monitors(gpu, &steps, &mut found);
        others(gpu, &steps, state, &mut found);
    }
    if let Some((plan, binding)) = plan {
        power(plan, binding, observed, &mut found);
    }
    found
}

fn on(gpu: &ObservedGpu, code: &'static str, message: String, help: impl Into<String>) -> Warning {
    Warning { code, gpu: Some(gpu.uuid.clone()), message, help: help.into() }
}

fn locks(step: &Step) -> bool {
    matches!(step.operation, Operation::LockClocks { .. })
}

/// Without persistence mode the driver forgets a locked clock when its last client leaves.
fn persistence(gpu: &ObservedGpu, steps: &[&Step], found: &mut Vec<Warning>) {
    let turns_on = |step: &Step| step.operation == Operation::SetPersistence { enabled: true };
    if gpu.is_persistent == Some(true) || steps.iter().any(|step| turns_on(step)) {
        return;
    }
    if steps.iter().any(|step| locks(step)) {
        let message = format!(
            "GPU {} forgets the locked clock when nothing has it open: no persistence mode",
            gpu.index
        );
        found.push(on(gpu, "persistence-off", message, "keep the driver loaded:\n  nvidia-persistenced"));
    }
}

/// Monitors that have the GPU open as a whole can keep an instance from being destroyed (NVIDIA MIG User
/// Guide, Getting Started: DCGM, nvsm), but need not.
fn monitors(gpu: &ObservedGpu, steps: &[&Step], found: &mut Vec<Warning>) {
    if !steps.iter().any(|step| matches!(step.operation, Operation::DestroyInstance { .. })) {
        return;
    }
    for holder in gpu.holders.iter().filter(|holder| holder.gpu_instance_id.is_none()) {
        let message = format!(
            "{} has GPU {} open, and may keep its instances from being destroyed",
            holder_name(holder),
            gpu.index
        );
        found.push(on(gpu, "may-be-in-use", message, "stop it if a step fails as in use"));
    }
}

/// A GPU has one SM clock: locking it slows or speeds whatever else runs there.
fn others(gpu: &ObservedGpu, steps: &[&Step], state: &State, found: &mut Vec<Warning>) {
    if !steps.iter().any(|step| locks(step)) {
        return;
    }
    let ours = state.gpus.get(&gpu.uuid).map(|state| state.instances.as_slice()).unwrap_or_default();
    let is_ours = |start: u32, profile: &str| ours.iter().any(|o| o.start == start && o.profile == profile);
    for instance in gpu.instances.iter().filter(|i| !is_ours(i.start, &i.profile)) {
        let sits = |holder: &&Holder| holder.gpu_instance_id == Some(instance.gpu_instance_id);
        let who: Vec<String> = gpu.holders.iter().filter(sits).map(holder_name).collect();
        let whose = if who.is_empty() { String::new() } else { format!(", where {} runs", who.join(", ")) };
        let message = format!(
            "the clock of GPU {} is also that of {} at slice {}, which is not entc's{whose}",
            gpu.index, instance.profile, instance.start
        );
        found.push(on(gpu, "clock-reaches-others", message, "tell its user, or plan for another GPU"));
    }
}

/// Below the planned power the board throttles, and the planned clock is not kept.
fn power(plan: &CheckedPlan, binding: &Binding, observed: &Observed, found: &mut Vec<Warning>) {
    let gpus: BTreeMap<&GpuUuid, &ObservedGpu> = observed.gpus.iter().map(|gpu| (&gpu.uuid, gpu)).collect();
    for (index, uuid) in &binding.gpus {
        let planned = plan.plan().gpus.iter().find(|gpu| gpu.node == binding.node && gpu.index == *index);
        let Some((planned, gpu)) = planned.zip(gpus.get(uuid)) else { continue };
        let Some((needs, limit)) = planned.power_w.zip(gpu.power_limit_mw) else { continue };
        let limit = f64::from(limit) / 1000.0;
        if needs > limit {
            let message = format!(
                "the plan draws up to {needs:.0} W on GPU {}, whose power limit is {limit} W: it will not keep \
                 its clock",
                gpu.index
            );
            let help = format!(
                "raise it as far as the board allows:\n  nvidia-smi -i {} -pl {:.0}",
                gpu.index,
                needs.ceil()
            );
            found.push(on(gpu, "power-limit-too-low", message, help));
        }
    }
}
