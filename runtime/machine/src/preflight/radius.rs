//! Changes + machine + state → what stops running, GPU by GPU.

use super::instance_at;
use crate::changes::{Changes, Operation};
use crate::observed::{GpuUuid, Holder, Observed, ObservedGpu};
use crate::state::State;
use std::collections::BTreeMap;

/// What the steps do to whatever runs on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Radius {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Its index, for people.
    pub index: u32,
    /// Whether the board resets.
    pub resets: bool,
    /// Instances that go, as `profile@start`, by start.
    pub destroyed: Vec<String>,
    /// Services that lose an instance, in alphabetical order.
    pub services: Vec<String>,
    /// Processes that lose what they run on, by pid.
    pub processes: Vec<Holder>,
}

/// The reach of the steps, by index: only GPUs that reset, or on which something goes or stops.
///
/// A change of MIG mode reaches every process on the GPU; the end of an instance only those on it. An
/// instance that stays and changes hands stops the service it carried.
#[must_use]
pub fn blast_radius(changes: &Changes, observed: &Observed, state: &State) -> Vec<Radius> {
    let gpus: BTreeMap<&GpuUuid, &ObservedGpu> = observed.gpus.iter().map(|gpu| (&gpu.uuid, gpu)).collect();
    let carried = |gpu: &GpuUuid, start: u32| {
        let ours = state.gpus.get(gpu)?.instances.iter().find(|ours| ours.start == start)?;
        ours.service.clone()
    };
    let mut found = Reach::default();
    for step in &changes.steps {
        let Some(gpu) = gpus.get(&step.gpu) else { continue };
        match &step.operation {
            Operation::SetMigMode { enabled, resets } => {
                let is_change = gpu.mig.is_none_or(|mode| mode.current != *enabled);
                if is_change && (*resets || !gpu.holders.is_empty()) {
                    let radius = found.on(gpu);
                    radius.resets |= *resets;
                    radius.processes.extend(gpu.holders.iter().cloned());
                }
            }
            Operation::DestroyInstance { profile, start, size } => {
                let id = instance_at(gpu, profile, *start, *size).map(|instance| instance.gpu_instance_id);
                let on_it = |holder: &&Holder| id.is_some() && holder.gpu_instance_id == id;
                let radius = found.on(gpu);
                radius.destroyed.push(format!("{profile}@{start}"));
                radius.processes.extend(gpu.holders.iter().filter(on_it).cloned());
                radius.services.extend(carried(&gpu.uuid, *start));
            }
            Operation::CreateInstance { .. }
            | Operation::SetPersistence { .. }
            | Operation::LockClocks { .. }
            | Operation::UnlockClocks
            | Operation::SetPowerLimit { .. } => {}
        }
    }
    for stay in &changes.kept {
        // Without a service an earlier machine is restored, and nobody knows what will run there.
        let (Some(gpu), Some(next)) = (gpus.get(&stay.gpu), &stay.service) else { continue };
        if let Some(service) = carried(&gpu.uuid, stay.start).filter(|was| was != next) {
            found.on(gpu).services.push(service);
        }
    }
    found.0.into_values().map(in_order).collect()
}

/// What is found so far, by index and UUID.
#[derive(Default)]
struct Reach<'a>(BTreeMap<(u32, &'a GpuUuid), Radius>);

impl<'a> Reach<'a> {
    fn on(&mut self, gpu: &'a ObservedGpu) -> &mut Radius {
        self.0.entry((gpu.index, &gpu.uuid)).or_insert_with(|| Radius {
            gpu: gpu.uuid.clone(),
            index: gpu.index,
            resets: false,
            destroyed: Vec::new(),
            services: Vec::new(),
            processes: Vec::new(),
        })
    }
}

fn in_order(mut radius: Radius) -> Radius {
    radius.services.sort();
    radius.services.dedup();
    radius.processes.sort_by_key(|holder| holder.pid);
    radius.processes.dedup();
    radius
}
