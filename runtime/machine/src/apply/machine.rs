//! Two readings of a machine, or a reading and a wish → what differs, in words.

use super::Request;
use crate::changes::{Operation, Step};
use crate::diff::diff;
use crate::error::Refusal;
use crate::observed::{GpuUuid, Observed, ObservedGpu};
use crate::state::{InstanceState, State};
use crate::target::{ClockTarget, Target};
use std::collections::BTreeSet;

/// A field of a GPU in words.
type InWords<'a> = &'a dyn Fn(&ObservedGpu) -> String;

/// What to do when the machine is not the one that was looked at.
pub(super) const LOOK_AGAIN: &str = "look at the changes again:\n  entc diff";

/// What differs between the machine that `diff` saw and the machine now, on the GPUs that matter.
pub(super) fn stale(request: &Request<'_>, now: &Observed) -> Vec<Refusal> {
    let then = request.observed;
    let mut found = Vec::new();
    let mut differs = |gpu: Option<&GpuUuid>, message: String| {
        found.push(Refusal { code: "stale", gpu: gpu.cloned(), message, help: LOOK_AGAIN.to_owned() });
    };
    if then.driver_version != now.driver_version {
        let (then, now) = (&then.driver_version, &now.driver_version);
        differs(None, format!("the driver is version {now}, and was {then} when the changes were made"));
    }
    if then.boot_id != now.boot_id {
        differs(None, "the machine was rebooted after the changes were made".to_owned());
    }
    let steps = request.changes.steps.iter().map(|step| &step.gpu);
    let gpus: BTreeSet<&GpuUuid> = request.target.gpus.keys().chain(steps).collect();
    for uuid in gpus {
        match (then.gpu(uuid), now.gpu(uuid)) {
            (Some(then), Some(now)) => {
                for (field, was, is) in fields(then, now) {
                    let message = format!(
                        "{field} of gpu {} is {is}, and was {was} when the changes were made",
                        now.index
                    );
                    differs(Some(uuid), message);
                }
            }
            (_, None) => differs(Some(uuid), format!("{uuid} is not on this machine any more")),
            (None, Some(_)) => {
                differs(Some(uuid), format!("{uuid} was not there when the changes were made"))
            }
        }
    }
    found
}

/// The fields in which a GPU is not as it was: name, then, now. What moves by itself (clock, power, who
/// holds it) is left out.
fn fields(then: &ObservedGpu, now: &ObservedGpu) -> Vec<(&'static str, String, String)> {
    let mode = |gpu: &ObservedGpu| match gpu.mig {
        None => "absent".to_owned(),
        Some(mode) if mode.is_pending() => {
            format!("{}, {} after a reset", on(mode.current), on(mode.pending))
        }
        Some(mode) => on(mode.current).to_owned(),
    };
    let persistence = |gpu: &ObservedGpu| gpu.is_persistent.map_or("unknown", on).to_owned();
    let limit = |gpu: &ObservedGpu| {
        gpu.power_limit_mw.map_or("unknown".to_owned(), |mw| format!("{} W", f64::from(mw) / 1000.0))
    };
    let instances = |gpu: &ObservedGpu| {
        let mut all: Vec<String> = gpu
            .instances
            .iter()
            .map(|i| {
                let compute: Vec<String> = i
                    .compute_instances
                    .iter()
                    .map(|c| if c.is_whole { "whole".to_owned() } else { format!("part {}", c.id) })
                    .collect();
                let parts = if compute == ["whole"] {
                    String::new()
                } else {
                    format!(" ({} compute instances)", compute.len())
                };
                format!("{}@{}{parts}", i.profile, i.start)
            })
            .collect();
        all.extend(gpu.unplaced.iter().map(|i| format!("id {}", i.gpu_instance_id)));
        if all.is_empty() { "none".to_owned() } else { all.join(" ") }
    };
    let pairs: [(&'static str, InWords<'_>); 4] = [
        ("MIG mode", &mode),
        ("persistence mode", &persistence),
        ("power limit", &limit),
        ("what is on instances", &instances),
    ];
    let compared = pairs.into_iter().map(|(name, of)| (name, of(then), of(now)));
    compared.filter(|(_, then, now)| then != now).collect()
}

fn on(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// What is not as wished on a machine that was read back. `state` is what is to be written down of it.
///
/// Clocks are no part of it: NVML does not tell what is locked, and a clock lags behind its lock; the step
/// that locked it has looked.
#[must_use]
pub(crate) fn differences(target: &Target, observed: &Observed, state: &State) -> Vec<String> {
    let mut found: Vec<String> = match diff(target, observed, state) {
        Err(refusals) => refusals.into_iter().map(|refusal| refusal.message).collect(),
        Ok(changes) => {
            let is_clock = |step: &&Step| {
                matches!(step.operation, Operation::LockClocks { .. } | Operation::UnlockClocks)
            };
            let missing = changes.steps.iter().filter(|step| !is_clock(step));
            missing.map(|step| format!("gpu {}: still to do: {}", step.index, step.operation)).collect()
        }
    };
    // Again without `diff`: what made the steps is not the only judge of them.
    for (uuid, wish) in &target.gpus {
        let Some(gpu) = observed.gpu(uuid) else { continue };
        if let (Some(wanted), Some(mode)) = (wish.mig, gpu.mig)
            && mode.current != wanted
        {
            found.push(format!("gpu {}: MIG mode is {}", gpu.index, on(mode.current)));
        }
        let ours: Vec<&InstanceState> =
            state.gpus.get(uuid).map(|gpu| gpu.instances.iter().collect()).unwrap_or_default();
        let here = |profile: &str| {
            let is_here = |ours: &&&InstanceState| {
                ours.profile == profile && gpu.instances.iter().any(|instance| ours.is_at(instance))
            };
            ours.iter().filter(is_here).count()
        };
        let profiles: BTreeSet<&str> = wish.instances.iter().map(|i| i.profile.as_str()).collect();
        for profile in profiles {
            let wanted = wish.instances.iter().filter(|i| i.profile == profile).count();
            if here(profile) != wanted {
                found.push(format!("gpu {}: {} of {wanted} {profile} are there", gpu.index, here(profile)));
            }
        }
    }
    found
}

/// Clocks that run above their lock, in words.
#[must_use]
pub(crate) fn above_lock(target: &Target, observed: &Observed) -> Vec<String> {
    let above = target.gpus.iter().filter_map(|(uuid, wish)| {
        let gpu = observed.gpu(uuid)?;
        match (wish.sm_clock, gpu.sm_clock_mhz) {
            (ClockTarget::Locked { max, .. }, Some(now)) if now > max => Some(format!(
                "gpu {} ran at {now} MHz when it was read back, above its lock at {max} MHz",
                gpu.index
            )),
            (ClockTarget::Locked { .. } | ClockTarget::Leave | ClockTarget::Unlocked, _) => None,
        }
    });
    above.collect()
}
