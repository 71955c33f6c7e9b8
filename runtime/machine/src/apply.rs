//! Changes → a machine that is as wished, or as it was; nothing between without a journal that says so.

use crate::changes::{Changes, Step};
use crate::diff::diff;
use crate::driver::Driver;
use crate::error::{ApplyError, DeviceError, Refusal};
use crate::journal::{FORMAT_VERSION, Header, Journal, Transaction, Writer};
use crate::observed::Observed;
use crate::preflight::{Allowed, preflight};
use crate::state::{State, wished};
use crate::store::Locked;
use crate::target::Target;
use std::path::PathBuf;

mod machine;
mod run;

pub(crate) use machine::differences;
use machine::{LOOK_AGAIN, above_lock, stale};
pub(crate) use run::{Run, remaining};

/// What a transaction tells while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A step begins.
    Started {
        /// Its number from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// The step.
        step: &'a Step,
        /// Whether it goes back.
        is_inverse: bool,
    },
    /// It is over.
    Finished {
        /// Its number from 1.
        number: usize,
        /// The step.
        step: &'a Step,
        /// What the driver said, when it failed.
        error: Option<&'a DeviceError>,
    },
    /// All steps are done; the machine is read back.
    Verifying,
    /// A step failed or the machine is not as wished: what was done is taken back.
    GoingBack {
        /// Why.
        reason: &'a ApplyError,
    },
}

/// How a transaction left the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Steps that came about.
    pub done: Vec<Step>,
    /// Steps that failed or may have been half done.
    pub failed: Vec<Step>,
    /// Steps that were not begun.
    pub not_started: Vec<Step>,
    /// Steps that came about of going back after a failure.
    pub taken_back: Vec<Step>,
    /// How it is left.
    pub outcome: Outcome,
    /// Where the journal is.
    pub journal: PathBuf,
    /// What else is to be known, one line each: a torn journal, foreign instances that a boot took away,
    /// a GPU that is gone.
    pub notes: Vec<String>,
}

/// How the machine is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As wished; read back.
    Done,
    /// As before; read back.
    RolledBack,
    /// As before, because nothing was begun. There is no open journal of this transaction.
    Unchanged,
    /// Between the two: the journal is open, and `entc apply --resume` or `entc rollback` go on from it.
    Open,
}

/// A transaction's report, and why it did not end as asked.
pub type Ended = (Report, Result<(), ApplyError>);

/// What a transaction is carried out with.
pub struct Means<'a> {
    /// The machine.
    pub driver: &'a Driver,
    /// Its store, locked by this process.
    pub store: &'a Locked,
    /// What the user allows.
    pub allowed: Allowed,
    /// Whether this process may change the machine.
    pub is_privileged: bool,
    /// Whether a failure is left as it is, with an open journal, instead of rolled back (`--keep-going`).
    pub keep_going: bool,
    /// Whether the user wants to stop; asked before each step.
    pub is_interrupted: &'a dyn Fn() -> bool,
    /// Told what happens.
    pub tell: &'a mut dyn FnMut(Event<'_>),
}

/// What is to be applied: the very changes that were shown.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What it is for.
    pub transaction: Transaction,
    /// The plan's checksum, of an apply.
    pub plan: Option<&'a str>,
    /// The node of the plan that this machine is.
    pub node: Option<&'a str>,
    /// The machine that `diff` saw.
    pub observed: &'a Observed,
    /// The wish that `diff` was given.
    pub target: &'a Target,
    /// What `diff` answered.
    pub changes: &'a Changes,
}

impl<'a> Request<'a> {
    /// What no plan is behind: a machine is given back, or made what it was.
    #[must_use]
    pub fn without_plan(
        transaction: Transaction,
        observed: &'a Observed,
        target: &'a Target,
        changes: &'a Changes,
    ) -> Self {
        Self { transaction, plan: None, node: None, observed, target, changes }
    }
}

/// Carries out changes. It never decides: exactly these steps, in this order, and back when one fails.
///
/// # Errors
/// With the report, why the machine is not as wished. `Report::outcome` says what it is.
pub fn apply(means: &mut Means<'_>, request: &Request<'_>) -> Ended {
    let mut report = Report::blank(means.store);
    report.not_started.clone_from(&request.changes.steps);
    let begun = ready(means, request).and_then(|header| {
        let journal = Journal::unwritten(means.store.journal_path(), header);
        if let Some(observed) = is_done_already(means, &journal)? {
            report.notes.extend(above_lock(&journal.header.target, &observed));
            return Ok(None);
        }
        if (means.is_interrupted)() {
            return Err(ApplyError::Interrupted);
        }
        Ok(Some(Writer::create(means.store, journal.header)?))
    });
    let writer = match begun {
        Ok(Some(writer)) => writer,
        Ok(None) => return (Report { outcome: Outcome::Done, ..report }, Ok(())),
        Err(error) => return (report, Err(error)),
    };
    report.not_started.clear();
    let mut run = Run { means, writer, report };
    let result = run.forward(request.changes);
    run.settle(result)
}

impl Report {
    /// Nothing was done.
    pub(crate) fn blank(store: &Locked) -> Self {
        Self {
            done: Vec::new(),
            failed: Vec::new(),
            not_started: Vec::new(),
            taken_back: Vec::new(),
            outcome: Outcome::Unchanged,
            journal: store.journal_path(),
            notes: Vec::new(),
        }
    }
}

/// Whether the steps may begin; the journal's first line if so.
fn ready(means: &Means<'_>, request: &Request<'_>) -> Result<Header, ApplyError> {
    refuse_open(means.store)?;
    let state_before = means.store.state()?;
    let before = means.driver.observe()?;
    let mut refusals = stale(request, &before);
    if refusals.is_empty() {
        // What is ours may have changed too, and with it what may be destroyed.
        let again = diff(request.target, request.observed, &state_before.on(request.observed));
        if !again.is_ok_and(|again| is_same(&again, request.changes)) {
            refusals.push(Refusal {
                code: "stale",
                gpu: None,
                message: "the changes are no longer those between this machine and the wish".to_owned(),
                help: LOOK_AGAIN.to_owned(),
            });
        }
    }
    if refusals.is_empty() {
        refusals = preflight(request.changes, &before, means.allowed, means.is_privileged);
    }
    if !refusals.is_empty() {
        return Err(ApplyError::Refused(refusals));
    }
    Ok(Header {
        format_version: FORMAT_VERSION.to_owned(),
        transaction: request.transaction,
        plan: request.plan.map(str::to_owned),
        node: request.node.map(str::to_owned),
        before,
        state_before,
        target: request.target.clone(),
        changes: request.changes.clone(),
    })
}

/// The machine, when there are no steps and nothing to write down: the last journal then stays the last,
/// so that applying twice does not take the way back.
fn is_done_already(means: &Means<'_>, journal: &Journal) -> Result<Option<Observed>, ApplyError> {
    let header = &journal.header;
    if !header.changes.steps.is_empty() {
        return Ok(None);
    }
    let observed = header.before.clone();
    let state = wished(journal, &journal.state_on(&observed, &header.target), &observed);
    let is_as_wished = differences(&header.target, &observed, &state).is_empty();
    let written = means.store.state()?;
    if is_as_wished && state != written && without_foreign(&state) == without_foreign(&written) {
        means.store.write_state(&state)?;
        return Ok(Some(observed));
    }
    Ok((is_as_wished && state == written).then_some(observed))
}

/// A state without what others had made when it was written: that is only a note of what was seen.
fn without_foreign(state: &State) -> State {
    let mut state = state.clone();
    state.gpus.values_mut().for_each(|gpu| gpu.foreign.clear());
    state
}

/// Refuses while an earlier transaction is open.
pub(crate) fn refuse_open(store: &Locked) -> Result<(), ApplyError> {
    match store.journal()? {
        Some(journal) if journal.is_open() => Err(ApplyError::Refused(vec![Refusal {
            code: "open-journal",
            gpu: None,
            message: format!(
                "an earlier {} stopped half-way; its journal is `{}`",
                journal.header.transaction.word(),
                journal.path.display()
            ),
            help: "go on with it, or back:\n  entc apply --resume\n  entc rollback".to_owned(),
        }])),
        Some(_) | None => Ok(()),
    }
}

fn is_same(left: &Changes, right: &Changes) -> bool {
    let what = |step: &Step| (step.gpu.clone(), step.operation.clone());
    left.steps.iter().map(what).eq(right.steps.iter().map(what))
}
