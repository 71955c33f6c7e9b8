//! State + machine → what is no longer as entc left it.

use crate::observed::{GpuUuid, Observed, ObservedGpu, ObservedInstance};
use crate::state::{GpuState, InstanceState, State};
use serde::{Deserialize, Serialize};

const POWER_LIMIT: &str = "power limit";

/// What entc left where it left nothing.
const NONE: &str = "none";

/// One thing that is not as entc left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Which: `gpu`, `MIG mode`, `instance at slice 3`, `SM clock`, `persistence mode`, `power limit`.
    pub field: String,
    /// As entc left it.
    pub expected: String,
    /// As it is.
    pub found: String,
    /// Whether applying the same plan again brings it back: not what others made beside ours, nor a power
    /// limit, which no plan sets.
    #[serde(default)]
    pub is_reasserted: bool,
}

/// All that is not as entc left it, by GPU; empty when nothing is. GPUs that are not in the state are not
/// looked at.
#[must_use]
pub fn drift(state: &State, observed: &Observed) -> Vec<Drift> {
    let mut found = Vec::new();
    for (uuid, made) in &state.gpus {
        let mut differs = |field: String, expected: String, is: String| {
            let is_reasserted = field != POWER_LIMIT && !(field.starts_with("instance") && expected == NONE);
            found.push(Drift { gpu: uuid.clone(), field, expected, found: is, is_reasserted });
        };
        match observed.gpu(uuid) {
            None => {
                let broken = observed.unreadable.iter().find(|gpu| gpu.uuid.as_ref() == Some(uuid));
                let is = broken.map_or("absent".to_owned(), |gpu| format!("unreadable: {}", gpu.reason));
                differs("gpu".to_owned(), "present".to_owned(), is);
            }
            Some(gpu) => {
                let is_rebooted = state.boot_of(made) != observed.boot_id;
                modes(made, gpu, &mut differs);
                instances(made, gpu, is_rebooted, &mut differs);
                clock(made, gpu, is_rebooted, &mut differs);
            }
        }
    }
    found
}

fn modes(made: &GpuState, gpu: &ObservedGpu, differs: &mut impl FnMut(String, String, String)) {
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    if let Some(wanted) = made.mig {
        let is_so = gpu.mig.is_some_and(|mode| mode.current == wanted && !mode.is_pending());
        if !is_so {
            let is = gpu.mig.map_or("absent".to_owned(), |mode| match mode.is_pending() {
                true => format!("{}, {} after a reset", on(mode.current), on(mode.pending)),
                false => on(mode.current),
            });
            differs("MIG mode".to_owned(), on(wanted), is);
        }
    }
    if let Some(wanted) = made.persistence.filter(|wanted| gpu.is_persistent != Some(*wanted)) {
        let is = gpu.is_persistent.map_or("unknown".to_owned(), on);
        differs("persistence mode".to_owned(), on(wanted), is);
    }
    if let Some(wanted) = made.power_limit_mw.filter(|wanted| gpu.power_limit_mw != Some(*wanted)) {
        let watts = |milliwatts: u32| format!("{} W", f64::from(milliwatts) / 1000.0);
        differs(
            POWER_LIMIT.to_owned(),
            watts(wanted),
            gpu.power_limit_mw.map_or("unknown".to_owned(), watts),
        );
    }
}

fn instances(
    made: &GpuState,
    gpu: &ObservedGpu,
    is_rebooted: bool,
    differs: &mut impl FnMut(String, String, String),
) {
    let field = |start: u32| format!("instance at slice {start}");
    for ours in &made.instances {
        let wanted =
            ours.service.as_ref().map_or(ours.profile.clone(), |s| format!("{} for {s}", ours.profile));
        let is = match gpu.instances.iter().find(|other| ours.is_at(other)) {
            // Instances do not survive a boot: one in the same place was made by somebody else.
            Some(other) if is_rebooted => format!("{}, made after a reboot by somebody else", other.profile),
            Some(other) if other.mig_device().is_some() => continue,
            Some(other) if other.compute_instances.is_empty() => {
                format!("{} without a compute instance", other.profile)
            }
            Some(other) if other.compute_instances.iter().all(|compute| compute.is_whole) => continue,
            Some(other) => {
                format!("{} cut into {} compute instances", other.profile, other.compute_instances.len())
            }
            None => match gpu.instances.iter().find(|other| overlaps(ours, other)) {
                Some(other) => format!("{} at slice {}", other.profile, other.start),
                None if is_rebooted => "none; the machine was rebooted".to_owned(),
                None => "none".to_owned(),
            },
        };
        differs(field(ours.start), wanted, is);
    }
    // What lies over one of ours was named with it; what was there when entc looked last is no drift.
    for other in &gpu.instances {
        let is_known = made.foreign.iter().any(|known| known.is_at(other));
        if !is_known && !made.instances.iter().any(|ours| ours.is_at(other) || overlaps(ours, other)) {
            differs(field(other.start), NONE.to_owned(), format!("{}, not entc's", other.profile));
        }
    }
    for other in &gpu.unplaced {
        let what = other.profile.as_deref().unwrap_or("an instance");
        differs(
            format!("instance with id {}", other.gpu_instance_id),
            "known".to_owned(),
            format!("{what}; where it is may be read by root only"),
        );
    }
}

fn overlaps(ours: &InstanceState, other: &ObservedInstance) -> bool {
    let end = |start: u32, size: u32| start.saturating_add(size);
    ours.start < end(other.start, other.size) && other.start < end(ours.start, ours.size)
}

fn clock(
    made: &GpuState,
    gpu: &ObservedGpu,
    is_rebooted: bool,
    differs: &mut impl FnMut(String, String, String),
) {
    let Some((min, max)) = made.locked_sm_clock_mhz else { return };
    let locked =
        if min == max { format!("locked to {max} MHz") } else { format!("locked to {min}..{max} MHz") };
    // NVML does not tell what is locked; these are the signs that it no longer is.
    if is_rebooted {
        differs("SM clock".to_owned(), locked, "unlocked; the machine was rebooted".to_owned());
    } else if let Some(now) = gpu.sm_clock_mhz.filter(|now| *now > max) {
        differs("SM clock".to_owned(), locked, format!("{now} MHz"));
    }
}
