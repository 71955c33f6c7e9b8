//! Programs → plans, in the background: debounced, cancellable, on a copy of the text.
//!
//! The planner itself is not known here: whoever starts the server brings it.

use crate::analysis::{Analysis, Snapshot};
use crate::workspace::Workspace;
use crossbeam_channel::Receiver;
use ent_plan::diagnostic::{Diagnostic, FileId, Sources};
use ent_plan::plan::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Plans programs.
pub trait Planning: Send + Sync {
    /// Plans a program. `sources` is a copy of the texts in which files have the ids that spans of the
    /// answer must have; files are named as in it, and data files are the implementation's to read.
    /// Once `stop` is true the answer no longer matters.
    fn plan(&self, main: &str, sources: &Sources, stop: &AtomicBool) -> Planned;
}

/// What planning made of a program.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// The plan, if there is one.
    pub plan: Option<Plan>,
    /// What it says of the program, warnings too.
    pub diagnostics: Vec<Diagnostic>,
}

/// Plans programs in the background, each again when it has changed and rested.
#[derive(Default)]
pub struct Background {
    planned: BTreeMap<FileId, Planned>,
}

/// A plan that came back from the background.
#[derive(Debug)]
pub struct Finished {
    /// The main file of the program.
    pub main: FileId,
    /// [`Analysis::revision`] of what was planned.
    pub revision: u64,
    /// The answer.
    pub planned: Planned,
}

impl Background {
    /// Starts the background; without a `planning` nothing is ever planned.
    #[must_use]
    pub fn start(_planning: Option<Arc<dyn Planning>>) -> Self {
        Self::default()
    }

    /// What comes back; the server waits for it beside the client's messages.
    #[must_use]
    pub fn results(&self) -> Receiver<Finished> {
        crossbeam_channel::never()
    }

    /// A program was compiled anew: what was being planned of it is stopped; planned again later.
    pub fn changed(&mut self, _workspace: &Workspace, _main: FileId, _analysis: &Analysis) {}

    /// A program is no longer looked after.
    pub fn forget(&mut self, main: FileId) {
        self.planned.remove(&main);
    }

    /// Takes in what came back. Whether it is of the program as it is now.
    pub fn take(&mut self, finished: Finished, analysis: &Analysis) -> bool {
        if finished.revision != analysis.revision() {
            return false;
        }
        self.planned.insert(finished.main, finished.planned);
        true
    }

    /// The last plan of a program; of an older text when that has changed since.
    #[must_use]
    pub fn planned(&self, main: FileId) -> Option<&Planned> {
        self.planned.get(&main)
    }
}

/// The answer to the command `entc.showPlan`: what a client needs to draw the plan.
///
/// # Errors
/// Why there is no plan to show.
pub fn show(_snapshot: &Snapshot<'_>, _planned: Option<&Planned>) -> Result<serde_json::Value, String> {
    Err("nothing is planned here: the server was started without a planner".to_owned())
}
