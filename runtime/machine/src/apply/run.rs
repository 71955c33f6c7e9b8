//! A journal that is being written + steps → steps done, and the machine read back; or back again.

use super::{Ended, Event, Means, Outcome, Report, above_lock, differences};
use crate::changes::{Changes, Operation, Step};
use crate::diff::diff;
use crate::error::{ApplyError, DeviceError, DeviceErrorKind, Refusal};
use crate::journal::{Ending, Entry, Journal, Transaction, Writer};
use crate::observed::Observed;
use crate::preflight::{Allowed, preflight};
use crate::rollback::WayBack;
use crate::state::{completed, restored, wished};

/// A transaction under way.
pub(crate) struct Run<'m, 'a> {
    /// What it is carried out with.
    pub(crate) means: &'m mut Means<'a>,
    /// Its journal.
    pub(crate) writer: Writer,
    /// What came of it so far.
    pub(crate) report: Report,
}

impl Run<'_, '_> {
    /// Does the steps and makes sure that the machine is as the header wishes.
    pub(crate) fn forward(&mut self, changes: &Changes) -> Result<(), ApplyError> {
        self.perform(changes, false)?;
        self.finish()
    }

    /// Goes on: the steps that are left become the ones that count.
    pub(crate) fn resume(&mut self) -> Result<(), ApplyError> {
        let observed = self.means.driver.observe()?;
        let changes = remaining(&self.writer.journal, &observed)?;
        self.begin(&observed, &changes, false)?;
        self.forward(&changes)
    }

    /// Goes back to before the first step.
    pub(crate) fn back(&mut self, without_lost: bool) -> Result<(), ApplyError> {
        let observed = self.means.driver.observe()?;
        let way = WayBack::of(&self.writer.journal, &observed);
        let changes = way.changes(&self.writer.journal, &observed)?;
        self.report.notes.extend(way.notes.iter().cloned());
        self.begin(&observed, &changes, true)?;
        self.perform(&changes, true)?;
        (self.means.tell)(Event::Verifying);
        let observed = self.means.driver.observe()?;
        let now = self.writer.journal.state_on(&observed, &way.target);
        let differences = differences(&way.target, &observed, &now);
        if !differences.is_empty() {
            return Err(ApplyError::NotVerified(differences));
        }
        if !way.lost.is_empty() && !without_lost {
            let lost = |uuid: &crate::observed::GpuUuid| Refusal {
                code: "gpu-lost",
                gpu: Some(uuid.clone()),
                message: format!("{uuid} was changed and is not on this machine any more"),
                help:
                    "bring it back by a reset or a reboot, and run `entc rollback` again; if it is gone for \
                       good, `entc rollback --without-lost`"
                        .to_owned(),
            };
            return Err(ApplyError::Refused(way.lost.iter().map(lost).collect()));
        }
        self.report.notes.extend(unlocked(&changes));
        let state = restored(&self.writer.journal, &way.target, &observed, &way.lost);
        self.means.store.write_state(&state)?;
        Ok(self.writer.write(vec![Entry::End { outcome: Ending::RolledBack }])?)
    }

    /// Makes sure that steps may begin, and writes them down.
    fn begin(&mut self, observed: &Observed, changes: &Changes, is_inverse: bool) -> Result<(), ApplyError> {
        // What was allowed for a transaction is allowed for its other direction, until it has ended: taking
        // it back then is a new wish, with its own permission.
        let resets = |step: &Step| matches!(step.operation, Operation::SetMigMode { resets: true, .. });
        let journal = &self.writer.journal;
        let was_allowed = journal.is_open() && journal.steps().any(resets);
        let allowed = Allowed { reset: self.means.allowed.reset || was_allowed };
        let refusals = preflight(changes, observed, allowed, self.means.is_privileged);
        if !refusals.is_empty() {
            return Err(ApplyError::Refused(refusals));
        }
        let (boot_id, changes) = (observed.boot_id.clone(), changes.clone());
        Ok(self.writer.write(vec![Entry::Continued { is_inverse, boot_id, changes }])?)
    }

    /// Does steps, each between its intent and its outcome on disk. The outcome of one and the intent of the
    /// next go to disk together: waiting for a disk is what a step costs beyond the driver.
    fn perform(&mut self, changes: &Changes, is_inverse: bool) -> Result<(), ApplyError> {
        let steps = changes.steps.as_slice();
        let result = self.perform_in_turn(steps, is_inverse);
        if let Err((error, n_begun)) = result {
            self.report.not_started.extend(steps.iter().skip(n_begun).cloned());
            return Err(error);
        }
        Ok(())
    }

    /// The same; with the error, how many were begun.
    fn perform_in_turn(&mut self, steps: &[Step], is_inverse: bool) -> Result<(), (ApplyError, usize)> {
        let intent = |index: usize| {
            steps.get(index).map(|step| Entry::Intent { step: index, is_inverse, what: step.clone() })
        };
        if let Some(first) = intent(0) {
            if (self.means.is_interrupted)() {
                return Err((ApplyError::Interrupted, 0));
            }
            self.writer.write(vec![first]).map_err(|error| (error.into(), 0))?;
        }
        for (index, step) in steps.iter().enumerate() {
            // INVARIANT: the intent of this step is on disk; otherwise it is not begun.
            let number = index + 1;
            (self.means.tell)(Event::Started { number, of: steps.len(), step, is_inverse });
            let result = self.step(step);
            let error = result.as_ref().err().map(|error| format!("{error} ({})", error.call));
            let refusal = result.as_ref().err().map(|error| error.kind.word().to_owned());
            let mut lines = vec![Entry::Outcome { step: index, is_inverse, error, refusal }];
            let is_stopped = number < steps.len() && (self.means.is_interrupted)();
            if result.is_ok() && !is_stopped {
                lines.extend(intent(number));
            }
            let written = self.writer.write(lines);
            (self.means.tell)(Event::Finished { number, step, error: result.as_ref().err() });
            match (&result, is_inverse) {
                (Ok(()), false) => self.report.done.push(step.clone()),
                (Ok(()), true) => self.report.taken_back.push(step.clone()),
                (Err(_), _) => self.report.failed.push(step.clone()),
            }
            // Without this outcome the journal is still true; but nothing more can be written down.
            written.map_err(|error| (error.into(), number))?;
            let step = Box::new(step.clone());
            result.map_err(|source| (ApplyError::Step { step, source }, number))?;
            if is_stopped {
                return Err((ApplyError::Interrupted, number));
            }
        }
        Ok(())
    }

    fn step(&self, step: &Step) -> Result<(), DeviceError> {
        match self.means.driver.perform(step) {
            // A GPU that can neither be locked nor unlocked is not locked: that step is undone.
            Err(refused)
                if matches!(step.operation, Operation::UnlockClocks)
                    && refused.kind == DeviceErrorKind::NotSupported
                    && self.writer.journal.cannot_lock(&step.gpu) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Reads the machine back; only when it is as wished the state is written and the journal ended.
    pub(crate) fn finish(&mut self) -> Result<(), ApplyError> {
        (self.means.tell)(Event::Verifying);
        let observed = self.means.driver.observe()?;
        let journal = &self.writer.journal;
        let target = completed(&journal.header);
        let state = wished(journal, &journal.state_on(&observed, &target), &observed);
        let differences = if journal.header.transaction == Transaction::Import {
            // An import changes nothing, and takes over what no plan would make.
            not_there(&target, &observed)
        } else {
            differences(&target, &observed, &state)
        };
        if !differences.is_empty() {
            return Err(ApplyError::NotVerified(differences));
        }
        self.report.notes.extend(above_lock(&target, &observed));
        if journal.header.transaction == Transaction::Destroy {
            self.report.notes.extend(unlocked(journal.last_forward()));
        }
        self.means.store.write_state(&state)?;
        Ok(self.writer.write(vec![Entry::End { outcome: Ending::Done }])?)
    }

    /// Ends a run that went forward: done, or gone back, or left open.
    pub(crate) fn settle(mut self, result: Result<(), ApplyError>) -> Ended {
        let Err(why) = result else {
            self.report.outcome = Outcome::Done;
            return (self.report, Ok(()));
        };
        if !self.writer.journal.has_begun() && self.writer.discard(self.means.store).is_ok() {
            return (self.report, Err(why));
        }
        self.report.outcome = Outcome::Open;
        // When the journal or the state cannot be written, going back could not be written down either:
        // what is on disk is true, and enough to go on from.
        let is_left = self.means.keep_going || matches!(why, ApplyError::Interrupted | ApplyError::Store(_));
        if is_left {
            return (self.report, Err(why));
        }
        (self.means.tell)(Event::GoingBack { reason: &why });
        match self.back(false) {
            Ok(()) => {
                self.report.outcome = Outcome::RolledBack;
                (self.report, Err(why))
            }
            Err(then) => {
                let (first, then) = (Box::new(why), Box::new(then));
                (self.report, Err(ApplyError::NotRolledBack { first, then }))
            }
        }
    }
}

/// What unlocking cannot give back: where a lock of ours had been before, the way back locks again.
fn unlocked(changes: &Changes) -> Option<String> {
    let unlocks = changes.steps.iter().filter(|step| matches!(step.operation, Operation::UnlockClocks));
    let gpus: Vec<String> = unlocks.map(|step| step.index.to_string()).collect();
    (!gpus.is_empty()).then(|| {
        format!(
            "the SM clock of gpu {} is unlocked now; NVML does not tell whether somebody had locked it before \
             entc, and such a lock is not restored",
            gpus.join(", ")
        )
    })
}

/// The steps from a machine to what an open journal wishes for.
pub(crate) fn remaining(journal: &Journal, observed: &Observed) -> Result<Changes, ApplyError> {
    let target = completed(&journal.header);
    diff(&target, observed, &journal.state_on(observed, &target)).map_err(ApplyError::Refused)
}

/// Instances of a wish that are not there at all.
fn not_there(target: &crate::target::Target, observed: &Observed) -> Vec<String> {
    let mut found = Vec::new();
    for (uuid, wish) in &target.gpus {
        let is_there = |wish: &crate::target::TargetInstance| {
            let same = |i: &crate::observed::ObservedInstance| {
                (i.start, i.size) == (wish.start, wish.size) && i.profile == wish.profile
            };
            observed.gpu(uuid).is_some_and(|gpu| gpu.instances.iter().any(same))
        };
        let gone = wish.instances.iter().filter(|wish| !is_there(wish));
        found.extend(gone.map(|wish| format!("{} at slice {} of {uuid} is gone", wish.profile, wish.start)));
    }
    found
}
