//! How processes ended → how long to wait before the next try. No clock here.

use std::time::Duration;

/// A process that ran for so long was well: what came before does not count any more.
const WELL: Duration = Duration::from_secs(10);

/// The first wait after a process that had not run for long.
const FIRST: Duration = Duration::from_millis(100);

/// The longest wait after a process that crashed.
const LONGEST: Duration = Duration::from_secs(30);

/// The first wait when it is known that the process cannot run what it is given.
const HOPELESS: Duration = Duration::from_secs(30);

/// The longest wait then.
const LONGEST_HOPELESS: Duration = Duration::from_secs(300);

/// Tries before a refusal counts as hopeless: a gateway that is just changing refuses as well.
const QUICK: u32 = 3;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was told to.
    Asked,
    /// It says that it cannot run what it was given.
    Unable,
    /// Anything else.
    Crashed,
}

/// The waits of one process, which grow while it does not stay alive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackOff {
    failures: u32,
    refusals: u32,
}

impl BackOff {
    /// How long to wait after a process that ran for so long and ended so.
    pub(super) fn after(&mut self, ended: Ended, ran: Duration) -> Duration {
        if ran >= WELL {
            *self = Self::default();
            // It was well for long: whatever happened, it is wanted back at once.
            if ended != Ended::Unable {
                self.failures = 1;
                return Duration::ZERO;
            }
        }
        self.refusals = if ended == Ended::Unable { self.refusals + 1 } else { 0 };
        if self.refusals > QUICK {
            return doubled(HOPELESS, self.refusals - QUICK - 1, LONGEST_HOPELESS);
        }
        self.failures += 1;
        doubled(FIRST, self.failures - 1, LONGEST)
    }
}

fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(5);

    #[test]
    fn waits_double_to_a_limit_and_begin_again_after_a_long_life() {
        let mut back_off = BackOff::default();
        let mut waits: Vec<u128> = (0..4).map(|_| back_off.after(Ended::Crashed, SOON).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800]);
        waits = (0..40).map(|_| back_off.after(Ended::Crashed, SOON).as_millis()).collect();
        assert_eq!(waits.last(), Some(&30_000));
        assert_eq!(back_off.after(Ended::Crashed, WELL), Duration::ZERO);
        assert_eq!(back_off.after(Ended::Crashed, SOON).as_millis(), 200);
    }

    #[test]
    fn a_process_that_cannot_run_is_tried_rarely_after_a_few_tries() {
        let mut back_off = BackOff::default();
        let waits: Vec<u64> = (0..9).map(|_| back_off.after(Ended::Unable, SOON).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 30, 60, 120, 240, 300, 300]);
        assert!(back_off.after(Ended::Crashed, SOON) < Duration::from_secs(1));
    }
}
