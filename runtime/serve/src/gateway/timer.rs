//! A moment → a wake-up at that moment, not at the next tick.
//!
//! The runtime's own timers have a resolution of a millisecond, which is as long as a batch waits. The
//! kernel's are precise.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// One alarm, which can be set again at any time from any thread.
#[derive(Debug)]
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// An alarm that is not set. Needs the runtime that is to be woken.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(unsafe_code, reason = "tokio's one way to wait for a descriptor of the kernel's own")]
        // SAFETY: an `OwnedFd` is one descriptor for as long as it lives, and `AsyncFd` owns it.
        let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Sets it, in place of what it was set to.
    pub(crate) fn set(&self, at: Instant, now: Instant) {
        // Zero would unset it.
        let left = at.saturating_duration_since(now).max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        // It can fail only for a time out of range, which this is not.
        let _ = timerfd_settime(
            self.0.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval, it_value },
        );
    }

    /// Waits for it to go off.
    pub(crate) async fn goes_off(&self) -> io::Result<()> {
        loop {
            let mut guard = self.0.readable().await?;
            let mut expirations = [0; 8];
            let read = |fd: &AsyncFd<OwnedFd>| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?);
            if let Ok(read) = guard.try_io(read) {
                return read.map(|_| ());
            }
        }
    }
}
