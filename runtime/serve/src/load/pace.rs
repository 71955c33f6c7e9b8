//! Moments → a message at each of them, from a thread that does nothing else.

use super::Stream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A request that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    /// Of which stream.
    pub(super) stream: usize,
    /// Since when.
    pub(super) at: Instant,
    /// Whether its latency counts.
    pub(super) is_counted: bool,
}

/// Longest sleep, after which is seen whether anybody still listens.
const NAP: Duration = Duration::from_millis(100);

/// Starts to tell what is due.
pub(super) fn start(
    streams: &[Stream],
    start: Instant,
) -> std::io::Result<(JoinHandle<()>, UnboundedReceiver<Due>)> {
    let mut moments: Vec<(f64, usize, bool)> = Vec::new();
    for (index, stream) in streams.iter().enumerate() {
        moments.extend(stream.at.iter().map(|at| (*at, index, *at >= stream.from)));
    }
    moments.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (send, receive) = unbounded_channel();
    let thread = std::thread::Builder::new().name("entc-pace".to_owned()).spawn(move || {
        // A sleep is else rounded up by 50 µs (prctl(2), PR_SET_TIMERSLACK).
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        for (at, stream, is_counted) in moments {
            let Ok(offset) = Duration::try_from_secs_f64(at) else { continue };
            let at = start + offset;
            loop {
                let left = at.saturating_duration_since(Instant::now());
                if send.is_closed() {
                    return;
                }
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(NAP));
            }
            if send.send(Due { stream, at, is_counted }).is_err() {
                return;
            }
        }
    })?;
    Ok((thread, receive))
}
