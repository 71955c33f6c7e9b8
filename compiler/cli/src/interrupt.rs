//! Ctrl-C → a flag that whoever is at work looks at when it is a good moment to stop.
//!
//! A planner looks once there is a plan to show; before that Ctrl-C ends the process. A transaction looks
//! between two steps: the step that runs is finished and what was done is on disk. The second Ctrl-C in a
//! step ends the process at once. How it ends, it says from what is on disk: while that is looked at, the
//! transaction can neither begin, nor go on, nor end.

use crate::exit::Exit;
use crate::machine::half_way;
use ent_machine::apply::Event;
use ent_machine::store::Store;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static PRESSES: AtomicU32 = AtomicU32::new(0);
/// Whether somebody looks at the flag.
static IS_HEEDED: AtomicBool = AtomicBool::new(false);
/// The machine that is to be changed, and how far that is. Whoever holds it stops the transaction where it
/// is told of next.
static CHANGE: Mutex<Change> = Mutex::new(Change { store: None, stage: Stage::Outside });

#[derive(Debug)]
struct Change {
    /// The store that this process has locked.
    store: Option<Store>,
    stage: Stage,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Outside,
    /// It looks at the flag next, or it ends: there is nothing to wait long for.
    Between,
    /// A step runs. Its intent is on disk, and its outcome is not the last line before it is told.
    Step,
    /// It is over, and what is on disk stays.
    Over,
    /// What serves is waited for, which may take its time, and goes on by itself.
    Serving,
}

/// What Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Whoever looks at the flag stops; nobody, where all is done but to say so.
    Flag,
    /// The same, and that it may take a step is said.
    Wait,
    /// It ends by itself, and says so better.
    Ends,
    /// The process ends now.
    Stop,
}

fn answer(stage: Stage, presses: u32, is_heeded: bool) -> Answer {
    match (stage, presses) {
        (Stage::Outside, 0 | 1) if is_heeded => Answer::Flag,
        (Stage::Over, 0..=2) => Answer::Flag,
        (Stage::Between | Stage::Step, 0 | 1) => Answer::Wait,
        (Stage::Between, 2) => Answer::Ends,
        (Stage::Outside | Stage::Between | Stage::Step | Stage::Over | Stage::Serving, _) => Answer::Stop,
    }
}

/// Starts listening. Without a handler Ctrl-C simply ends the process, which is also well.
pub(crate) fn listen() {
    let _ignored = ctrlc::set_handler(|| {
        let presses = PRESSES.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let change = change();
        match answer(change.stage, presses, IS_HEEDED.load(Ordering::SeqCst)) {
            Answer::Flag => {}
            Answer::Wait => crate::terminal::error_line(
                "\ninterrupted: the step that runs is finished first; once more stops at once",
            ),
            Answer::Ends => crate::terminal::error_line("\nit is ending; once more stops at once"),
            Answer::Stop => stop(&change),
        }
    });
}

/// Says how the machine is left, and ends the process.
fn stop(change: &Change) -> ! {
    let exit = match change.store.as_ref().and_then(half_way) {
        Some(left) => {
            let what =
                if change.stage == Stage::Step { "stopped in the middle of a step" } else { "interrupted" };
            crate::terminal::error_line(&format!(
                "\n{what}\n  now:  {}\n  help: go on with `entc apply --resume`, or back with `entc rollback`",
                left.words
            ));
            Exit::Partly
        }
        None if change.stage == Stage::Serving => {
            crate::terminal::error_line(
                "\ninterrupted: the machine is as it was left; what serves goes on by itself\n  help: see how far it is with `entc serve status`",
            );
            Exit::Interrupted
        }
        None => {
            crate::terminal::error_line("\ninterrupted");
            Exit::Interrupted
        }
    };
    std::process::exit(exit.code().into());
}

fn change() -> MutexGuard<'static, Change> {
    CHANGE.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Says which machine this process alone may change from now on.
pub(crate) fn has_locked(store: &Store) {
    change().store = Some(store.clone());
}

/// Says that a transaction begins.
pub(crate) fn begins() {
    change().stage = Stage::Between;
}

/// Says what happens in a transaction, before anybody else is told.
pub(crate) fn happens(event: &Event<'_>) {
    change().stage = match event {
        Event::Started { .. } => Stage::Step,
        Event::Finished { .. } | Event::Verifying | Event::GoingBack { .. } => Stage::Between,
    };
}

/// Says that a transaction is over, however it ended.
pub(crate) fn is_over() {
    change().stage = Stage::Over;
}

/// Says that what serves is waited for.
pub(crate) fn is_serving() {
    change().stage = Stage::Serving;
}

/// Whether the user has asked to stop.
pub(crate) fn is_interrupted() -> bool {
    PRESSES.load(Ordering::SeqCst) > 0
}

/// The same, asked by a transaction: whoever says how it is left is waited for.
pub(crate) fn is_transaction_interrupted() -> bool {
    change().stage = Stage::Between;
    is_interrupted()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_end_by_itself_is_stopped_at_once() {
        for (stage, is_heeded, answers) in [
            (Stage::Outside, false, [Answer::Stop; 3]),
            (Stage::Outside, true, [Answer::Flag, Answer::Stop, Answer::Stop]),
            (Stage::Serving, false, [Answer::Stop; 3]),
            (Stage::Between, false, [Answer::Wait, Answer::Ends, Answer::Stop]),
            (Stage::Step, false, [Answer::Wait, Answer::Stop, Answer::Stop]),
            (Stage::Over, false, [Answer::Flag, Answer::Flag, Answer::Stop]),
        ] {
            assert_eq!([1, 2, 3].map(|presses| answer(stage, presses, is_heeded)), answers, "{stage:?}");
        }
    }
}
