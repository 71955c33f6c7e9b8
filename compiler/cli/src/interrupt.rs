//! Ctrl-C → a flag that the planner's progress looks at, once there is a plan to show.
//!
//! Before that, and the second time, it ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);
static HAS_INCUMBENT: AtomicBool = AtomicBool::new(false);

/// Starts listening. Without a handler Ctrl-C simply ends the process, which is also well.
pub(crate) fn listen() {
    let _ignored = ctrlc::set_handler(|| {
        let is_second = IS_INTERRUPTED.swap(true, Ordering::SeqCst);
        if is_second || !HAS_INCUMBENT.load(Ordering::SeqCst) {
            crate::terminal::error_line("\ninterrupted");
            std::process::exit(130);
        }
    });
}

/// Says that there is a plan worth showing.
pub(crate) fn has_incumbent() {
    HAS_INCUMBENT.store(true, Ordering::SeqCst);
}

/// Whether the user has asked to stop.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}
