//! Changes → a machine that is as wished, or as it was; nothing between without a journal that says so.

use crate::changes::Step;
use crate::error::DeviceError;
use std::path::PathBuf;

/// What a transaction tells while it runs.
#[derive(Clone, Debug, PartialEq)]
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
    /// How it is left.
    pub outcome: Outcome,
    /// Where the journal is.
    pub journal: PathBuf,
}

/// How the machine is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As wished; read back.
    Done,
    /// As before; read back.
    RolledBack,
    /// Between the two: the journal is open, and `entc apply --resume` or `entc rollback` go on from it.
    Open,
}
