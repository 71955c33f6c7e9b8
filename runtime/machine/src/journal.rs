//! What was done, on disk before and after each step: the file `journal.jsonl`.
//!
//! The first line says what the machine was, what it is to become and every step between, with a checksum.
//! Then two lines a step: its intent before it starts, its outcome after; and one at the end. Each is on
//! disk (fsync) before anything else happens; an outcome and the next intent go there together. After a crash the first line and the machine itself are
//! enough to go on or back; the others say how far it came, and which instances are therefore ours.
//!
//! The file appears by rename with its first line whole. A last line that was torn off speaks of
//! something that had not begun (an intent) or that reading the machine answers (an outcome).

use crate::changes::{Changes, Operation, Step};
use crate::error::{DeviceErrorKind, StoreError};
use crate::observed::{GpuUuid, Observed};
use crate::state::State;
use crate::store::{check_format, damaged};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

mod replay;
mod writer;

pub(crate) use writer::Writer;

/// The version of the format that this crate writes: minor is additive, major is breaking.
pub const FORMAT_VERSION: &str = "1.0";

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
        /// Its index in the header's steps, or in those of the last line that says it goes on.
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
        /// What kind of refusal that was, as a word: `in-use`, `not-supported`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<String>,
    },
    /// A transaction that had stopped goes on, or goes back; also one that had ended, to be taken back.
    Continued {
        /// Whether it goes back.
        is_inverse: bool,
        /// The boot it goes on in.
        boot_id: String,
        /// The steps from here: those that the indices after this line count.
        changes: Changes,
    },
    /// An instance that was not ours was made so in the middle, because it stood in the way.
    Adopted {
        /// Its GPU.
        gpu: GpuUuid,
        /// Its profile.
        profile: String,
        /// First memory slice.
        start: u32,
        /// Memory slices.
        size: u32,
        /// The boot it was there in.
        boot_id: String,
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
    pub path: PathBuf,
    /// The first line.
    pub header: Header,
    /// The lines after it that can be read.
    pub entries: Vec<Entry>,
    /// Lines that cannot be read, from 1; the header and the machine are enough without them.
    pub damaged_lines: Vec<usize>,
    /// Whether the last line was torn off while it was written.
    pub is_torn: bool,
}

/// The first line as it is written: the header and what proves it whole.
#[derive(Serialize)]
struct FirstLine<'a> {
    checksum: String,
    header: &'a Header,
}

impl Transaction {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Rollback => "rollback",
            Self::Destroy => "destroy",
            Self::Import => "import",
        }
    }
}

impl Journal {
    /// A journal that is not on disk yet.
    pub(crate) fn unwritten(path: PathBuf, header: Header) -> Self {
        Self { path, header, entries: Vec::new(), damaged_lines: Vec::new(), is_torn: false }
    }

    /// Whether any step may have been begun.
    pub(crate) fn has_begun(&self) -> bool {
        !self.entries.is_empty() || !self.damaged_lines.is_empty()
    }

    /// How it ended; `None` while it can be resumed or rolled back. What was torn off after its end had
    /// not begun; what is there and cannot be read may have.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        let n_lines = 1 + self.entries.len() + self.damaged_lines.len();
        match self.entries.last() {
            Some(Entry::End { outcome }) if self.damaged_lines.last() != Some(&n_lines) => Some(*outcome),
            _ => None,
        }
    }

    /// Whether it can be resumed or rolled back.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ending().is_none()
    }

    /// The steps that may have been begun and whose outcome is not known.
    #[must_use]
    pub fn unsettled(&self) -> Option<&Step> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Intent { what, .. } => Some(Some(what)),
            Entry::Outcome { .. } => Some(None),
            Entry::Continued { .. } | Entry::Adopted { .. } | Entry::End { .. } => None,
        })?
    }

    /// What is wrong with the file although it is usable, one line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let path = self.path.display();
        let lines = |lines: &[usize]| lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let damaged = (!self.damaged_lines.is_empty()).then(|| {
            format!(
                "line {} of `{path}` cannot be read; the machine itself was read instead",
                lines(&self.damaged_lines)
            )
        });
        let torn = self.is_torn.then(|| format!("the last line of `{path}` was torn off by a crash"));
        let unsettled = self.is_open().then(|| self.unsettled()).flatten().map(|step| {
            format!(
                "it stopped at `{}` on gpu {}; the machine was read to see how far it came",
                step.operation, step.index
            )
        });
        damaged.into_iter().chain(torn).chain(unsettled).collect()
    }

    /// All steps that were or are to be done, by any line.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        let continued = self.entries.iter().flat_map(|entry| match entry {
            Entry::Continued { changes, .. } => changes.steps.as_slice(),
            Entry::Intent { what, .. } => std::slice::from_ref(what),
            Entry::Outcome { .. } | Entry::Adopted { .. } | Entry::End { .. } => &[],
        });
        self.header.changes.steps.iter().chain(continued)
    }

    /// Whether the driver said, in this transaction, that it cannot lock the clock of a GPU.
    pub(crate) fn cannot_lock(&self, gpu: &GpuUuid) -> bool {
        self.entries.windows(2).any(|pair| match pair {
            [Entry::Intent { what, .. }, Entry::Outcome { refusal: Some(refusal), .. }] => {
                let is_lock = matches!(what.operation, Operation::LockClocks { .. });
                is_lock && what.gpu == *gpu && refusal == DeviceErrorKind::NotSupported.word()
            }
            _ => false,
        })
    }

    /// The changes of the last time it went towards what the header wishes for.
    pub(crate) fn last_forward(&self) -> &Changes {
        let last = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Continued { is_inverse: false, changes, .. } => Some(changes),
            Entry::Continued { .. }
            | Entry::Intent { .. }
            | Entry::Outcome { .. }
            | Entry::Adopted { .. }
            | Entry::End { .. } => None,
        });
        last.unwrap_or(&self.header.changes)
    }

    /// Reads a journal. Damage after the first line is noted, not refused.
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let header = parse_header(path, first)?;
        let mut journal = Self {
            path: path.to_path_buf(),
            header,
            entries: Vec::new(),
            damaged_lines: Vec::new(),
            is_torn: false,
        };
        for (index, line) in lines.enumerate() {
            match (serde_json::from_slice(line), line.ends_with(b"\n")) {
                (Ok(entry), true) => journal.entries.push(entry),
                (_, false) => journal.is_torn = true,
                (Err(_), true) => journal.damaged_lines.push(index + 2),
            }
        }
        Ok(journal)
    }
}

fn parse_header(path: &Path, line: &[u8]) -> Result<Header, StoreError> {
    let torn = "its first line, which says what the machine was, is not whole";
    if !line.ends_with(b"\n") {
        return Err(damaged(path, torn.to_owned()));
    }
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|error| damaged(path, format!("{torn}: {error}")))?;
    let header = value.get("header").ok_or_else(|| damaged(path, torn.to_owned()))?;
    // The version first: a newer format may prove itself in another way.
    check_format(path, header.get("format_version"), FORMAT_VERSION)?;
    let claimed = value.get("checksum").and_then(serde_json::Value::as_str).unwrap_or_default();
    if claimed != checksum(header.to_string().as_bytes()) {
        return Err(damaged(
            path,
            "its first line is not as it was written; its checksum differs".to_owned(),
        ));
    }
    Header::deserialize(header).map_err(|error| damaged(path, format!("{torn}: {error}")))
}

/// The first line of a journal.
fn first_line(header: &Header) -> Result<Vec<u8>, serde_json::Error> {
    let checksum = checksum(&serde_json::to_vec(header)?);
    let mut line = serde_json::to_vec(&FirstLine { checksum, header })?;
    line.push(b'\n');
    Ok(line)
}

fn checksum(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests;
