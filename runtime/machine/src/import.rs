//! Machine + state → a state in which foreign instances are ours.

use crate::apply::{Ended, Means, Outcome, Report, Run, refuse_open, remaining};
use crate::changes::Changes;
use crate::error::{ApplyError, Refusal};
use crate::journal::{Entry, FORMAT_VERSION, Header, Journal, Transaction, Writer};
use crate::observed::{GpuUuid, Observed};
use crate::rollback::WayBack;
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

/// The foreign instances without which an open transaction could go on and back, as far as foreign instances
/// keep it from that: the fewest that [`import`] must take over then.
#[must_use]
pub fn in_the_way(journal: &Journal, observed: &Observed, gpus: Option<&[GpuUuid]>) -> Ours {
    let n_blocked = |adopted: &Ours| {
        let mut journal = journal.clone();
        journal.entries.extend(adopted.iter().map(|place| adoption(place, &observed.boot_id)));
        let back = WayBack::of(&journal, observed).changes(&journal, observed);
        let ways = [remaining(&journal, observed), back];
        let refusals = ways.into_iter().map(|way| match way {
            Err(ApplyError::Refused(refusals)) => {
                refusals.iter().filter(|refusal| refusal.code == "foreign-instance").count()
            }
            Ok(_) | Err(_) => 0,
        });
        refusals.sum::<usize>()
    };
    let mut adopted = foreign(&journal.state_on(observed, &Target::default()), observed, gpus);
    let least = n_blocked(&adopted);
    for place in adopted.clone() {
        adopted.remove(&place);
        if n_blocked(&adopted) > least {
            adopted.insert(place);
        }
    }
    adopted
}

fn adoption((gpu, start, size, profile): &(GpuUuid, u32, u32, String), boot_id: &str) -> Entry {
    let (gpu, profile, boot_id) = (gpu.clone(), profile.clone(), boot_id.to_owned());
    Entry::Adopted { gpu, profile, start: *start, size: *size, boot_id }
}

/// Takes what stands in the way of an open transaction over into its journal, which then goes on or back.
fn adopt(means: &mut Means<'_>, journal: Journal, gpus: Option<&[GpuUuid]>, mut report: Report) -> Ended {
    report.outcome = Outcome::Open;
    report.journal.clone_from(&journal.path);
    let adopted = readable(means, gpus).and_then(|observed| {
        let adopted = in_the_way(&journal, &observed, gpus);
        if adopted.is_empty() {
            refuse_open(means.store)?;
        }
        let entries = adopted.iter().map(|place| adoption(place, &observed.boot_id)).collect();
        Writer::at_end(journal)?.write(entries)?;
        report.notes.extend(notes(&adopted, &observed));
        report.notes.push(
            "the transaction is still half-way: `entc apply --resume` or `entc rollback` goes on, and may \
             destroy them"
                .to_owned(),
        );
        Ok(())
    });
    (report, adopted)
}

fn notes<'a>(adopted: &'a Ours, observed: &'a Observed) -> impl Iterator<Item = String> + 'a {
    adopted.iter().map(|(gpu, start, _, profile)| {
        let index = observed.gpu(gpu).map_or(0, |gpu| gpu.index);
        format!("{profile} at slice {start} of gpu {index} is entc's now")
    })
}

/// Takes foreign instances over into the state, with the values from before; the machine is not changed.
/// The report's notes name each. An import can be rolled back like an apply. While a transaction is open it
/// takes over what stands in the way of that, into its journal, and leaves it open.
///
/// # Errors
/// When a transaction is open and nothing foreign is in its way, the machine cannot be read or the state not be written.
pub fn import(means: &mut Means<'_>, gpus: Option<&[GpuUuid]>) -> Ended {
    let mut report = Report::blank(means.store);
    match means.store.journal() {
        Ok(Some(journal)) if journal.is_open() => return adopt(means, journal, gpus, report),
        Ok(_) => {}
        Err(error) => return (report, Err(error.into())),
    }
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
    report.notes.extend(notes(&adopted, &header.before));
    let writer = match Writer::create(means.store, header) {
        Ok(writer) => writer,
        Err(error) => return (report, Err(error.into())),
    };
    let mut run = Run { means, writer, report };
    let result = run.finish();
    run.settle(result)
}

fn header(means: &Means<'_>, gpus: Option<&[GpuUuid]>) -> Result<Header, ApplyError> {
    let state_before = means.store.state()?;
    let before = readable(means, gpus)?;
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

/// The machine, when all that is asked for can be seen.
fn readable(means: &Means<'_>, gpus: Option<&[GpuUuid]>) -> Result<Observed, ApplyError> {
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
    if refusals.is_empty() { Ok(before) } else { Err(ApplyError::Refused(refusals)) }
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
