//! Arrivals → requests to a gateway, each at its own time, and what became of them.
//!
//! Open-loop: a request is sent when it is to be sent, whether or not the one before is answered, and its
//! latency counts from that moment. A server that stalls is charged for all that it keeps waiting, and so is a
//! client that is late: how late it was is reported beside.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

mod connection;
mod pace;
mod request;
mod tally;

pub use request::{Body, body, get, metadata};

use connection::Pool;
use tally::Tally;

/// The longest latency that is told apart (ns): an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// Before the first request, so that everything is in its place.
const LEAD: Duration = Duration::from_millis(50);

/// Where requests are sent.
#[derive(Clone, Debug)]
pub struct Target {
    /// The gateway.
    pub address: SocketAddr,
    /// What the `Host` header says.
    pub host: String,
    /// The token that it wants.
    pub token: Option<String>,
    /// A request that is not answered within this failed.
    pub timeout: Duration,
}

/// What is sent to one service.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The service.
    pub service: String,
    /// What each request says.
    pub body: Body,
    /// When each is sent (s from the start), in order.
    pub at: Vec<f64>,
    /// Latencies of requests before this are not counted (s): they only fill the queues.
    pub from: f64,
    /// The promise.
    pub promise: Duration,
}

/// What became of what was sent.
#[derive(Clone, Debug)]
pub struct Measured {
    /// From the first intended moment to the last answer (s).
    pub seconds: f64,
    /// The services, in order.
    pub services: Vec<MeasuredService>,
    /// How late requests were sent (ns): the client's own fault, which latencies include.
    pub lag: Histogram<u64>,
    /// Connections that were opened.
    pub connections: u64,
}

/// What became of one service's requests.
#[derive(Clone, Debug)]
pub struct MeasuredService {
    /// Its name.
    pub service: String,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that were answered well.
    pub answered: u64,
    /// Those that were not, by reason.
    pub failures: BTreeMap<String, Failure>,
    /// Latencies that count (ns).
    pub latencies: Histogram<u64>,
    /// Requests that count and were answered within the promise.
    pub within: u64,
    /// Requests that count, failed ones included.
    pub counted: u64,
    /// What took the time of its batches, as the answers say: `modelled`, `torch`.
    pub executor: Option<String>,
}

/// Failures of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How many.
    pub count: u64,
    /// What the first of them said.
    pub example: String,
}

impl MeasuredService {
    /// Requests that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.values().map(|f| f.count).sum()
    }

    /// The latency (ms) that the share `percentile` of the answered requests does not exceed; 0 of none.
    #[must_use]
    pub fn latency_ms(&self, percentile: f64) -> f64 {
        self.latencies.value_at_quantile(percentile) as f64 * 1e-6
    }

    /// Share of the requests that count and were answered within the promise; `None` of none.
    #[must_use]
    pub fn attainment(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.within as f64 / self.counted as f64)
    }
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that were sent.
    pub sent: u64,
    /// Answered well.
    pub answered: u64,
    /// Not answered well.
    pub failed: u64,
    /// To be sent altogether.
    pub total: u64,
}

/// Why nothing could be sent.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nobody listens there.
    #[error("nobody answers at {address}: {source}")]
    Unreachable {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The gateway does not have a service, or not in a way that can be sent to.
    #[error("service `{service}`: {reason}")]
    Service {
        /// Which.
        service: String,
        /// Why.
        reason: String,
    },
    /// The system gave no thread, timer or the like.
    #[error("cannot send: {0}")]
    Io(#[from] std::io::Error),
}

/// Sends, and waits for every answer. `tell` is called about once a second, and may stop it by returning
/// false: what is sent then is still waited for.
///
/// # Errors
/// When the gateway cannot be reached at all.
pub fn run(
    target: &Target,
    streams: &[Stream],
    mut tell: impl FnMut(Progress) -> bool,
) -> Result<Measured, LoadError> {
    std::net::TcpStream::connect_timeout(&target.address, Duration::from_secs(5))
        .map_err(|source| LoadError::Unreachable { address: target.address, source })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let total = streams.iter().map(|s| s.at.len() as u64).sum();
    let tally = Arc::new(Tally::new(streams, total)?);
    let pool = Arc::new(Pool::new(target.clone()));
    let requests: Vec<Arc<request::Prepared>> = streams
        .iter()
        .map(|s| request::Prepared::new(target, &s.service, &s.body).map(Arc::new))
        .collect::<Result<_, _>>()?;
    let start = Instant::now() + LEAD;
    let (pacer, mut due) = pace::start(streams, start)?;
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let watched = Arc::clone(&tally);
    let seconds = runtime.block_on(async {
        let mut stop = Some(stop);
        let mut stopping = stopping;
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                biased;
                due = due.recv() => {
                    let Some(due) = due else { break };
                    tally.sent(due.stream, due.at.elapsed());
                    let (pool, tally) = (Arc::clone(&pool), Arc::clone(&tally));
                    let Some(request) = requests.get(due.stream).map(Arc::clone) else { continue };
                    tasks.spawn(async move {
                        let outcome = pool.send(&request).await;
                        tally.ended(due.stream, due.is_counted, due.at, outcome);
                    });
                }
                Some(_) = tasks.join_next() => {}
                _ = ticks.tick() => {
                    if !tell(watched.progress()) {
                        // Dropping it ends the pacing.
                        stop.take();
                    }
                }
                _ = &mut stopping, if stop.is_none() => break,
            }
        }
        drop(due);
        while tasks.join_next().await.is_some() {}
        tell(watched.progress());
        start.elapsed().as_secs_f64()
    });
    // It ends when nobody takes what is due any more.
    let _ = pacer.join();
    runtime.shutdown_timeout(Duration::from_millis(100));
    Ok(tally.measured(seconds, pool.opened()))
}
