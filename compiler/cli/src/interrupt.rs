//! Ctrl-C → a flag that the planner's progress looks at. The second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Starts listening. Without a handler Ctrl-C simply ends the process, which is also well.
pub(crate) fn listen() {
    let _ignored = ctrlc::set_handler(|| {
        if IS_INTERRUPTED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
}

/// Whether the user has asked to stop.
pub(crate) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}
