//! Ctrl-C → a flag that whoever is at work looks at when it is a good moment to stop.
//!
//! A planner looks once there is a plan to show; before that Ctrl-C ends the process. A transaction looks
//! between two steps: the step that runs is finished and what was done is on disk. The second Ctrl-C ends
//! the process at once, whatever it is at.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
/// Whether somebody looks at the flag.
static IS_HEEDED: AtomicBool = AtomicBool::new(false);
/// The journal of the machine that is being changed.
static CHANGING: Mutex<Option<String>> = Mutex::new(None);

/// Starts listening. Without a handler Ctrl-C simply ends the process, which is also well.
pub(crate) fn listen() {
    let _ignored = ctrlc::set_handler(|| {
        let is_second = IS_INTERRUPTED.swap(true, Ordering::SeqCst);
        let journal = CHANGING.lock().ok().and_then(|journal| journal.clone());
        match (journal, is_second) {
            (Some(_), false) => crate::terminal::error_line(
                "\ninterrupted: the step that runs is finished first; once more stops at once",
            ),
            (Some(journal), true) => {
                crate::terminal::error_line(&format!(
                    "\nstopped in the middle of a step\n  now:  the machine may be half way; the journal is {journal}\n  \
                     help: go on with `entc apply --resume`, or back with `entc rollback`"
                ));
                std::process::exit(4);
            }
            (None, _) if is_second || !IS_HEEDED.load(Ordering::SeqCst) => {
                crate::terminal::error_line("\ninterrupted");
                std::process::exit(130);
            }
            (None, _) => {}
        }
    });
}

/// Says that there is a plan worth showing.
pub(crate) fn has_incumbent() {
    IS_HEEDED.store(true, Ordering::SeqCst);
}

/// Says that nothing is at work that could look at the flag: a question waits for its answer, or this
/// process for another one.
pub(crate) fn is_waiting() {
    IS_HEEDED.store(false, Ordering::SeqCst);
}

/// Says that a machine is being changed, with the journal that knows how far, or no longer is.
pub(crate) fn is_changing(journal: Option<String>) {
    if let Ok(mut changing) = CHANGING.lock() {
        *changing = journal;
    }
}

/// Whether the user has asked to stop.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}
