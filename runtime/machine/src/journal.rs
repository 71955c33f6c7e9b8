//! What was done, on disk before and after each step: the file `journal.jsonl`.
//!
//! The first line says what the machine was, what it is to become and every step between. Then two lines
//! a step: its intent before it starts, its outcome after; and one at the end. Each is on disk (fsync)
//! before anything else happens. After a crash the first line and the machine itself are enough to go on
//! or back; the others say how far it came.

use crate::changes::{Changes, Step};
use crate::observed::Observed;
use crate::state::State;
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format's version: minor is additive, major is breaking.
    pub format_version: String,
    /// What it is: an apply, a rollback, a destroy, an import.
    pub transaction: Transaction,
    /// The plan's checksum, of an apply.
    pub plan: Option<String>,
    /// The node of the plan that this machine is.
    pub node: Option<String>,
    /// The machine before the first step.
    pub before: Observed,
    /// Our state before the first step.
    pub state_before: State,
    /// What it is to become.
    pub target: Target,
    /// The steps.
    pub changes: Changes,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transaction {
    /// To make the machine what a plan says.
    Apply,
    /// To make it what it was.
    Rollback,
    /// To give it back.
    Destroy,
    /// To take over what others made on it. It has no steps.
    Import,
}

/// A line after the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Entry {
    /// A step is about to start.
    Intent {
        /// Its index in the header's steps, or in those of the going back.
        step: usize,
        /// Whether it is a step of going back.
        is_inverse: bool,
        /// The step itself, so that a line can be read alone.
        what: Step,
    },
    /// A step is over.
    Outcome {
        /// Its index.
        step: usize,
        /// Whether it is a step of going back.
        is_inverse: bool,
        /// What the driver said; `None` when it came about.
        error: Option<String>,
    },
    /// The transaction is over.
    End {
        /// How.
        outcome: Ending,
    },
}

/// How a transaction ended. A journal without an end is one that can be resumed or rolled back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The machine is as wished, read back.
    Done,
    /// The machine is as it was before, read back.
    RolledBack,
}

/// A journal as it is on disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// The file.
    pub path: std::path::PathBuf,
    /// The first line.
    pub header: Header,
    /// The lines after it that can be read.
    pub entries: Vec<Entry>,
    /// Lines that cannot be read, from 1; the header and the machine are enough without them.
    pub damaged_lines: Vec<usize>,
    /// Whether the last line was torn off while it was written; what it was to say had not begun.
    pub is_torn: bool,
}

impl Journal {
    /// How it ended; `None` while it can be resumed or rolled back.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        match self.entries.last() {
            Some(Entry::End { outcome }) => Some(*outcome),
            _ => None,
        }
    }

    /// Whether it can be resumed or rolled back.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ending().is_none()
    }
}
