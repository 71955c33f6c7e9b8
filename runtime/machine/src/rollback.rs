//! A journal → the machine that its header begins with.
//!
//! The way back does not undo step by step: it looks at the machine and at what it was, and takes the steps
//! between. So it does not matter where a crash was, how often going back itself was cut off, or whether
//! the machine was rebooted. What a boot took from others is not ours to make again.

use crate::apply::{Ended, Means, Outcome, Report, Run};
use crate::changes::Changes;
use crate::diff::diff;
use crate::error::{ApplyError, Refusal};
use crate::journal::{Ending, Journal, Writer};
use crate::observed::{GpuUuid, Observed};
use crate::state::State;
use crate::store::Store;
use crate::target::{Target, restore};
use std::collections::BTreeSet;

/// The steps back to before the last transaction, with what cannot be brought back in words: what
/// [`rollback`] will do.
///
/// # Errors
/// When there is nothing to roll back, or what stands in the way.
pub fn preview(store: &Store, observed: &Observed) -> Result<(Changes, Vec<String>), ApplyError> {
    let journal = last_journal(store)?;
    let way = WayBack::of(&journal, observed);
    Ok((way.changes(&journal, observed)?, way.notes))
}

/// Goes back to before the last transaction, open or ended. `without_lost` ends it also when a GPU that it
/// changed is gone for good.
///
/// # Errors
/// With the report, why the machine is not as it was.
pub fn rollback(means: &mut Means<'_>, without_lost: bool) -> Ended {
    let mut report = Report::blank(means.store);
    let begun = last_journal(means.store).and_then(|journal| {
        report.notes = journal.notes();
        report.journal.clone_from(&journal.path);
        if journal.is_open() {
            report.outcome = Outcome::Open;
        }
        Ok(Writer::at_end(journal)?)
    });
    let writer = match begun {
        Ok(writer) => writer,
        Err(error) => return (report, Err(error)),
    };
    let mut run = Run { means, writer, report };
    let result = run.back(without_lost);
    let mut report = run.report;
    // Going back is what was asked for here, so its steps are simply done.
    report.done = std::mem::take(&mut report.taken_back);
    report.outcome = match run.writer.journal.ending() {
        Some(Ending::RolledBack) => Outcome::RolledBack,
        // It had ended, and going back was refused before its first line.
        Some(Ending::Done) => Outcome::Unchanged,
        None => Outcome::Open,
    };
    (report, result)
}

fn last_journal(store: &Store) -> Result<Journal, ApplyError> {
    match store.journal()? {
        Some(journal) if journal.ending() != Some(Ending::RolledBack) => Ok(journal),
        Some(_) | None => Err(ApplyError::Refused(vec![Refusal {
            code: "nothing-to-roll-back",
            gpu: None,
            message: "the last transaction was already rolled back, or there was none".to_owned(),
            help: "look at what is entc's on this machine:\n  entc drift".to_owned(),
        }])),
    }
}

/// Where back is.
#[derive(Clone, Debug)]
pub(crate) struct WayBack {
    /// The machine as it was, where it was touched and as far as it was ours.
    pub(crate) target: Target,
    /// GPUs that were touched and are not there.
    pub(crate) lost: Vec<GpuUuid>,
    /// What does not come back, one line each.
    pub(crate) notes: Vec<String>,
}

impl WayBack {
    /// The way back from a machine in or after a transaction.
    pub(crate) fn of(journal: &Journal, observed: &Observed) -> Self {
        let before = &journal.header.before;
        let ours = journal.header.state_before.on(before);
        let mut touched: BTreeSet<GpuUuid> = journal.steps().map(|step| step.gpu.clone()).collect();
        let is_rebooted = before.boot_id != observed.boot_id;
        if is_rebooted {
            // A boot takes what is ours from GPUs that no step touched as well.
            let held = ours
                .gpus
                .iter()
                .filter(|(_, gpu)| !gpu.instances.is_empty() || gpu.locked_sm_clock_mhz.is_some());
            touched.extend(held.map(|(uuid, _)| uuid.clone()));
        }
        let mut target = restore(before, &ours, &touched);
        let lost: Vec<GpuUuid> =
            target.gpus.keys().filter(|uuid| observed.gpu(uuid).is_none()).cloned().collect();
        target.gpus.retain(|uuid, _| !lost.contains(uuid));
        let mut notes: Vec<String> = lost
            .iter()
            .map(|uuid| format!("{uuid} is not on this machine any more; nothing on it can be brought back"))
            .collect();
        notes.extend(foreign_gone(before, &ours, observed, is_rebooted));
        Self { target, lost, notes }
    }

    /// The steps of it.
    pub(crate) fn changes(&self, journal: &Journal, observed: &Observed) -> Result<Changes, ApplyError> {
        let state = journal.state_on(observed, &self.target);
        diff(&self.target, observed, &state).map_err(ApplyError::Refused)
    }
}

/// Instances of others that were there before and are gone, GPU by GPU.
fn foreign_gone(before: &Observed, ours: &State, now: &Observed, is_rebooted: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let all_ours = ours.ours();
    for was in &before.gpus {
        let Some(is) = now.gpu(&was.uuid) else { continue };
        let gone = was.instances.iter().filter(|instance| {
            let place = (was.uuid.clone(), instance.start, instance.size, instance.profile.clone());
            let is_same = |other: &crate::observed::ObservedInstance| {
                (other.start, other.size) == (instance.start, instance.size)
                    && other.profile == instance.profile
            };
            !all_ours.contains(&place) && !is.instances.iter().any(is_same)
        });
        let gone: Vec<String> = gone.map(|i| format!("{} at slice {}", i.profile, i.start)).collect();
        if !gone.is_empty() {
            let by = if is_rebooted { "the reboot" } else { "somebody else" };
            notes.push(format!(
                "{by} took from gpu {} what is not entc's and entc does not make again: {}",
                is.index,
                gone.join(", ")
            ));
        }
    }
    notes
}
