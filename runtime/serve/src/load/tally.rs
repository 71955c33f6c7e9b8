//! Requests as they end → counts and histograms.

use super::connection::Outcome;
use super::{Failure, LONGEST, Measured, MeasuredService, Progress, Stream};
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// Significant digits of a latency.
const DIGITS: u8 = 3;

/// What happened so far.
pub(super) struct Tally {
    total: u64,
    promises: Vec<Duration>,
    inner: Mutex<Inner>,
}

struct Inner {
    progress: Progress,
    services: Vec<MeasuredService>,
    lag: Histogram<u64>,
}

fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LONGEST, DIGITS).map_err(io::Error::other)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).clamp(1, LONGEST)
}

impl Tally {
    pub(super) fn new(streams: &[Stream], total: u64) -> io::Result<Self> {
        let service = |stream: &Stream| {
            Ok(MeasuredService {
                service: stream.service.clone(),
                sent: 0,
                answered: 0,
                failures: BTreeMap::new(),
                latencies: histogram()?,
                within: 0,
                counted: 0,
                executor: None,
            })
        };
        let services = streams.iter().map(service).collect::<io::Result<_>>()?;
        let progress = Progress { total, ..Progress::default() };
        Ok(Self {
            total,
            promises: streams.iter().map(|s| s.promise).collect(),
            inner: Mutex::new(Inner { progress, services, lag: histogram()? }),
        })
    }

    /// A request of a stream was sent, so late.
    pub(super) fn sent(&self, stream: usize, late: Duration) {
        let mut inner = self.inner.lock();
        inner.progress.sent += 1;
        inner.lag.saturating_record(nanoseconds(late));
        if let Some(service) = inner.services.get_mut(stream) {
            service.sent += 1;
        }
    }

    /// A request of a stream ended, that was to be sent then.
    pub(super) fn ended(&self, stream: usize, is_counted: bool, at: Instant, outcome: Outcome) {
        let took = at.elapsed();
        let promise = self.promises.get(stream).copied().unwrap_or_default();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let Some(service) = inner.services.get_mut(stream) else { return };
        service.counted += u64::from(is_counted);
        match outcome {
            Outcome::Answered { executor } => {
                inner.progress.answered += 1;
                service.answered += 1;
                if service.executor.is_none() {
                    service.executor = executor;
                }
                if is_counted {
                    service.latencies.saturating_record(nanoseconds(took));
                    service.within += u64::from(took <= promise);
                }
            }
            Outcome::Failed { reason, example } => {
                inner.progress.failed += 1;
                let failure = service.failures.entry(reason).or_insert(Failure { count: 0, example });
                failure.count += 1;
            }
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress { total: self.total, ..self.inner.lock().progress }
    }

    pub(super) fn measured(&self, seconds: f64, connections: u64) -> Measured {
        let inner = self.inner.lock();
        Measured { seconds, services: inner.services.clone(), lag: inner.lag.clone(), connections }
    }
}
