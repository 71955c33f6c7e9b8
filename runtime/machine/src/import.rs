//! Machine + state → a state in which foreign instances are ours.

use crate::apply::{Ended, Means, Outcome, Report, Run, refuse_open};
use crate::changes::Changes;
use crate::error::{ApplyError, Refusal};
use crate::journal::{FORMAT_VERSION, Header, Transaction, Writer};
use crate::observed::{GpuUuid, Observed};
use crate::state::{Ours, State};
use crate::target::{ClockTarget, Target, TargetGpu, TargetInstance};

/// The foreign instances that [`import`] would take over; on these GPUs, or on all.
#[must_use]
pub fn foreign(state: &State, observed: &Observed, gpus: Option<&[GpuUuid]>) -> Ours {
    let ours = state.on(observed).ours();
    let asked = observed.gpus.iter().filter(|gpu| gpus.is_none_or(|gpus| gpus.contains(&gpu.uuid)));
    let all = asked
        .flat_map(|gpu| gpu.instances.iter().map(|i| (gpu.uuid.clone(), i.start, i.size, i.profile.clone())));
    all.filter(|place| !ours.contains(place)).collect()
}

/// Takes foreign instances over into the state, with the values from before; the machine is not changed.
/// The report's notes name each. An import can be rolled back like an apply.
///
/// # Errors
/// When a transaction is open, the machine cannot be read or the state not be written.
pub fn import(means: &mut Means<'_>, gpus: Option<&[GpuUuid]>) -> Ended {
    let mut report = Report::blank(means.store);
    let header = match header(means, gpus) {
        Ok(header) => header,
        Err(error) => return (report, Err(error)),
    };
    let adopted = foreign(&header.state_before, &header.before, gpus);
    if adopted.is_empty() {
        report.notes.push("there is nothing to import: no instance here is foreign".to_owned());
        report.outcome = Outcome::Done;
        return (report, Ok(()));
    }
    report.notes.extend(adopted.iter().map(|(gpu, start, _, profile)| {
        let index = header.before.gpu(gpu).map_or(0, |gpu| gpu.index);
        format!("{profile} at slice {start} of gpu {index} is entc's now")
    }));
    let writer = match Writer::create(means.store, header) {
        Ok(writer) => writer,
        Err(error) => return (report, Err(error.into())),
    };
    let mut run = Run { means, writer, report };
    let result = run.finish();
    run.settle(result)
}

fn header(means: &Means<'_>, gpus: Option<&[GpuUuid]>) -> Result<Header, ApplyError> {
    refuse_open(means.store)?;
    let state_before = means.store.state()?;
    let before = means.driver.observe()?;
    let mut refusals = Vec::new();
    for uuid in gpus.unwrap_or_default().iter().filter(|uuid| before.gpu(uuid).is_none()) {
        refusals.push(Refusal {
            code: "unknown-gpu",
            gpu: Some(uuid.clone()),
            message: format!("there is no {uuid} on this machine"),
            help: "look at what there is:\n  entc observe".to_owned(),
        });
    }
    let asked = |uuid: &GpuUuid| gpus.is_none_or(|gpus| gpus.contains(uuid));
    for gpu in before.gpus.iter().filter(|gpu| asked(&gpu.uuid) && !gpu.unplaced.is_empty()) {
        refusals.push(Refusal {
            code: "no-permission",
            gpu: Some(gpu.uuid.clone()),
            message: format!("where the instances of gpu {} are may not be read", gpu.index),
            help: "run as root".to_owned(),
        });
    }
    if !refusals.is_empty() {
        return Err(ApplyError::Refused(refusals));
    }
    let target = target(&state_before, &before, gpus);
    Ok(Header {
        format_version: FORMAT_VERSION.to_owned(),
        transaction: Transaction::Import,
        plan: None,
        node: None,
        before,
        state_before,
        target,
        changes: Changes::default(),
    })
}

/// Each GPU that something is taken over on, as it is.
fn target(state: &State, observed: &Observed, gpus: Option<&[GpuUuid]>) -> Target {
    let state = state.on(observed);
    let mut target = Target::default();
    for (uuid, start, size, profile) in foreign(&state, observed, gpus) {
        let wish = target.gpus.entry(uuid.clone()).or_insert_with(|| TargetGpu {
            mig: None,
            persistence: None,
            instances: state
                .gpus
                .get(&uuid)
                .map(|gpu| gpu.instances.iter().map(wish).collect())
                .unwrap_or_default(),
            services: Vec::new(),
            sm_clock: ClockTarget::Leave,
            power_limit_mw: None,
        });
        wish.instances.push(TargetInstance { profile, start, size, is_fixed: true, service: None });
        wish.instances.sort_by_key(|instance| instance.start);
    }
    // One of ours that is gone is not taken over again.
    for (uuid, wish) in &mut target.gpus {
        let here = observed.gpu(uuid).map(|gpu| gpu.instances.as_slice()).unwrap_or_default();
        wish.instances.retain(|wish| {
            here.iter().any(|i| (i.start, i.size) == (wish.start, wish.size) && i.profile == wish.profile)
        });
    }
    target
}

fn wish(ours: &crate::state::InstanceState) -> TargetInstance {
    TargetInstance {
        profile: ours.profile.clone(),
        start: ours.start,
        size: ours.size,
        is_fixed: true,
        service: ours.service.clone(),
    }
}
