//! Plan + machine → target: which planned board is which GPU, by UUID from here on.
//!
//! A plan made from an observed machine names UUIDs and says what it saw; one made offline is bound by
//! index. A plan for another machine is refused with every field that differs.

use crate::error::Stale;
use crate::observed::{GpuUuid, Observed, ObservedGpu};
use crate::state::State;
use crate::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_plan::plan::{CheckedPlan, Gpu, Machine, Plan, Sharing};
use std::collections::BTreeSet;

/// A plan's boards and the GPUs they became.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The node of the plan that this machine is.
    pub node: String,
    /// Planned index → GPU, by index.
    pub gpus: Vec<(u32, GpuUuid)>,
    /// What the machine is wanted to be.
    pub target: Target,
}

/// Binds the boards that a plan has on `node` to the GPUs of a machine.
///
/// A board that is cut has its MIG mode on; one that is whole or shared by MPS has it off. Its SM clock is
/// locked to the plan's one, with persistence mode on, without which the lock would not last.
///
/// A GPU that the plan leaves unused is part of the target only where `state` has something of ours on it:
/// our instances are to go and our clock is to be unlocked, and its modes stay as they are (`entc destroy`
/// gives those back). Any other GPU is left alone.
///
/// # Errors
/// Every field in which the plan and the machine differ.
pub fn bind(
    plan: &CheckedPlan,
    node: &str,
    observed: &Observed,
    state: &State,
) -> Result<Binding, Vec<Stale>> {
    let plan = plan.plan();
    let mut faults = Vec::new();
    let nodes = nodes(plan);
    if !nodes.contains(node) {
        let planned = nodes.into_iter().collect::<Vec<_>>().join(", ");
        return Err(vec![Stale { field: "node".to_owned(), planned, observed: node.to_owned() }]);
    }
    let machine = plan.machine.as_ref().filter(|machine| machine.node == node);
    if let Some(machine) = machine {
        this_machine(machine, observed, &mut faults);
    }
    let mut gpus = Vec::new();
    let mut target = Target::default();
    for planned in plan.gpus.iter().filter(|gpu| gpu.node == node) {
        let saw = machine.and_then(|m| m.gpus.iter().find(|gpu| gpu.index == planned.index));
        let uuid = planned.uuid.as_deref().or(saw.map(|gpu| gpu.uuid.as_str()));
        if let Some(gpu) = this_gpu(planned, uuid, observed, &mut faults) {
            fits(planned, gpu, &mut faults);
            gpus.push((planned.index, gpu.uuid.clone()));
            target.gpus.insert(gpu.uuid.clone(), wish(planned, gpu));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    for (uuid, ours) in &state.gpus {
        let has_something = !ours.instances.is_empty() || ours.locked_sm_clock_mhz.is_some();
        // A GPU of ours that is gone from the machine is no obstacle to a plan that does without it.
        if has_something && observed.gpu(uuid).is_some() {
            target.gpus.entry(uuid.clone()).or_insert_with(TargetGpu::released);
        }
    }
    gpus.sort();
    Ok(Binding { node: node.to_owned(), gpus, target })
}

/// The modes and instances that are not as they were when the plan was made, on the GPUs of the target.
///
/// Apart from [`bind`], because it matters only while there is something to do: a machine that already is
/// what the plan says is no longer what the plan was made from, and applying again does nothing. GPUs that
/// the target leaves alone may change as they like.
#[must_use]
pub fn stale(machine: &Machine, target: &Target, observed: &Observed) -> Vec<Stale> {
    let mut faults = Vec::new();
    for saw in &machine.gpus {
        let uuid = GpuUuid(saw.uuid.clone());
        let Some(gpu) = observed.gpu(&uuid).filter(|_| target.gpus.contains_key(&uuid)) else { continue };
        let index = saw.index;
        let mode = |mode: Option<bool>| {
            match mode {
                Some(true) => "on",
                Some(false) => "off",
                None => "none",
            }
            .to_owned()
        };
        let now = gpu.mig.map(|mode| mode.current);
        differ(&mut faults, format!("MIG mode of gpu {index}"), mode(saw.mig), mode(now));
        let list = |mut all: Vec<String>| {
            all.sort();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        let now = gpu.instances.iter().map(|i| format!("{}@{}", i.profile, i.start)).collect();
        differ(&mut faults, format!("instances of gpu {index}"), list(saw.instances.clone()), list(now));
    }
    faults
}

/// The nodes a plan has boards on.
fn nodes(plan: &Plan) -> BTreeSet<&str> {
    let used = plan.gpus.iter().map(|gpu| gpu.node.as_str());
    used.chain(plan.unused.iter().map(|unused| unused.node.as_str())).collect()
}

fn differ(faults: &mut Vec<Stale>, field: String, planned: String, observed: String) {
    if planned != observed {
        faults.push(Stale { field, planned, observed });
    }
}

/// Whether it is the machine that the plan was made from.
fn this_machine(machine: &Machine, observed: &Observed, faults: &mut Vec<Stale>) {
    let kind = |is_simulated: bool| if is_simulated { "simulated" } else { "real" }.to_owned();
    differ(faults, "machine".to_owned(), kind(machine.is_simulated), kind(observed.is_simulated));
    let (planned, now) = (machine.driver_version.clone(), observed.driver_version.clone());
    differ(faults, "driver version".to_owned(), planned, now);
}

/// The GPU that a planned board is: by index, and by UUID where the plan has it.
fn this_gpu<'a>(
    planned: &Gpu,
    uuid: Option<&str>,
    observed: &'a Observed,
    faults: &mut Vec<Stale>,
) -> Option<&'a ObservedGpu> {
    let index = planned.index;
    let mut there = observed.gpus.iter().filter(|gpu| gpu.index == index);
    let (first, second) = (there.next(), there.next());
    let Some(gpu) = first else {
        let all: Vec<String> = observed.gpus.iter().map(|gpu| gpu.index.to_string()).collect();
        let unreadable = observed.unreadable.iter().find(|gpu| gpu.index == index);
        let has = match unreadable {
            Some(gpu) => format!("cannot be read: {}", gpu.reason),
            None if all.is_empty() => "no GPU".to_owned(),
            None => format!("GPUs {}", all.join(", ")),
        };
        differ(faults, format!("gpu {index}"), planned.board.clone(), has);
        return None;
    };
    if second.is_some() {
        differ(faults, format!("gpu {index}"), "one".to_owned(), "several of that index".to_owned());
        return None;
    }
    let Some(uuid) = uuid else { return Some(gpu) };
    if gpu.uuid.0 == uuid {
        return Some(gpu);
    }
    let now = match observed.gpus.iter().find(|gpu| gpu.uuid.0 == uuid) {
        Some(moved) => format!("{}; the planned one is gpu {} now", gpu.uuid, moved.index),
        None => format!("{}; the planned one is gone", gpu.uuid),
    };
    differ(faults, format!("uuid of gpu {index}"), uuid.to_owned(), now);
    None
}

/// Whether the GPU is the planned board, with the planned profiles on its driver's menu and the planned clock
/// among those it lists.
fn fits(planned: &Gpu, gpu: &ObservedGpu, faults: &mut Vec<Stale>) {
    let index = planned.index;
    if gpu.board.as_deref() != Some(planned.board.as_str()) {
        let now = gpu.board.clone().unwrap_or_else(|| format!("{} ({})", gpu.name, gpu.pci_device_id));
        differ(faults, format!("board of gpu {index}"), planned.board.clone(), now);
        // Menu and clocks of another board would only say the same again.
        return;
    }
    if planned.sharing == Sharing::Mig && gpu.mig.is_none() {
        differ(faults, format!("MIG mode of gpu {index}"), "on".to_owned(), "it has none".to_owned());
    }
    let menu: Vec<&str> = gpu.profiles.iter().map(|profile| profile.name.as_str()).collect();
    let wanted: BTreeSet<&str> = planned.instances.iter().filter_map(|i| i.profile.as_deref()).collect();
    let missing: Vec<&str> = wanted.into_iter().filter(|name| !menu.contains(name)).collect();
    if !menu.is_empty() && !missing.is_empty() {
        differ(faults, format!("profiles of gpu {index}"), missing.join(", "), menu.join(", "));
    }
    let (clock, ladder) = (planned.sm_clock_mhz.0, &gpu.supported_sm_clocks_mhz);
    if let (Some(min), Some(max)) = (ladder.first(), ladder.last())
        && !ladder.contains(&clock)
    {
        let now = format!("{} clocks from {min} to {max} MHz", ladder.len());
        differ(faults, format!("SM clock of gpu {index}"), format!("{clock} MHz"), now);
    }
}

/// What a planned board is to be.
fn wish(planned: &Gpu, gpu: &ObservedGpu) -> TargetGpu {
    let is_cut = planned.sharing == Sharing::Mig;
    let instance = |i: &ent_plan::plan::Instance| {
        let (profile, start, size) = (i.profile.clone()?, i.start?, i.size?);
        Some(TargetInstance { profile, start, size, is_fixed: false, service: Some(i.service.clone()) })
    };
    let mut instances: Vec<TargetInstance> = Vec::new();
    let mut services: Vec<String> = Vec::new();
    if is_cut {
        instances.extend(planned.instances.iter().filter_map(instance));
        instances.sort_by_key(|instance| instance.start);
    } else {
        services.extend(planned.instances.iter().map(|i| i.service.clone()));
        services.sort();
        services.dedup();
    }
    let clock = planned.sm_clock_mhz.0;
    TargetGpu {
        mig: if is_cut { Some(true) } else { gpu.mig.map(|_| false) },
        services,
        persistence: Some(true),
        instances,
        sm_clock: ClockTarget::Locked { min: clock, max: clock },
        power_limit_mw: None,
    }
}
