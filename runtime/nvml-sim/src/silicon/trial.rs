//! Machines for this folder's own tests, without files: time stands still unless moved.

use super::{Machine, Silicon};
use crate::description::Description;
use std::sync::Arc;

/// The id of a process that does not exist.
pub(crate) const DEAD: u32 = 4_000_000;

/// The id of a process that the tests let end.
pub(crate) const ENDED: u32 = 77;

fn started(pid: u32) -> Option<u64> {
    (pid != DEAD).then(|| u64::from(pid))
}

/// One GPU of this board on a driver that knows all boards.
pub(crate) fn machine(board: &str) -> Silicon {
    of(board, |_| ())
}

/// The same in MIG mode.
pub(crate) fn cut(board: &str) -> Silicon {
    of(board, |d| d.gpu[0].mig = true)
}

/// The same described otherwise.
pub(crate) fn of(board: &str, describe: impl FnOnce(&mut Description)) -> Silicon {
    try_of(board, describe).unwrap()
}

/// The same, if it can be.
pub(crate) fn try_of(board: &str, describe: impl FnOnce(&mut Description)) -> Result<Silicon, String> {
    let mut description = Description::of("590.48.01", &[(board, 1)]);
    describe(&mut description);
    Silicon::first_boot(Arc::new(Machine::new(description)), 1_700_000_000_000_000_000, started)
}
