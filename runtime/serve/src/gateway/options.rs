//! How a gateway runs: addresses, limits, and when it refuses a request.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How a gateway runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen for HTTP; `None` for nowhere.
    pub http: Option<SocketAddr>,
    /// Where to listen for gRPC; `None` for nowhere.
    pub grpc: Option<SocketAddr>,
    /// Where to give metrics; `None` for nowhere.
    pub metrics: Option<SocketAddr>,
    /// The Unix socket for workers. It is made for this user only, and an old one is removed.
    pub workers: PathBuf,
    /// What clients have to send as `Authorization: Bearer …`. Needed where an address is not a loopback
    /// one.
    pub token: Option<String>,
    /// I/O threads; 0 chooses by the machine's cores.
    pub threads: usize,
    /// What is too much.
    pub limits: Limits,
    /// When a request is refused because it would be late.
    pub shedding: Shedding,
    /// Where spans of requests go; `None` for nowhere.
    pub tracing: Option<Tracing>,
}

/// Where spans of requests go.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// The collector's OTLP/gRPC endpoint, `http://127.0.0.1:4317`.
    pub endpoint: String,
    /// Share of the requests that are traced though their client does not say so, in [0, 1].
    pub ratio: f64,
}

impl Options {
    /// Triton's ports on loopback, and a socket for workers.
    #[must_use]
    pub fn new(workers: PathBuf) -> Self {
        let local = |port| Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        Self {
            http: local(8000),
            grpc: local(8001),
            metrics: local(8002),
            workers,
            token: None,
            threads: 0,
            limits: Limits::default(),
            shedding: Shedding::default(),
            tracing: None,
        }
    }
}

/// What is too much for a gateway: each is answered with an error that says so, and disturbs nobody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body (413).
    pub body_bytes: u64,
    /// Bytes of all bodies that are held at a time (429).
    pub held_bytes: u64,
    /// Requests that wait in one replica's queue (429).
    pub queued_requests: usize,
    /// Connections of clients (503).
    pub connections: usize,
    /// A request's head has to arrive within this, from when the connection is free for it.
    pub head_time: Duration,
    /// A request's body has to arrive within this (408).
    pub body_time: Duration,
    /// A client has to take some of its answer within this; else the connection ends.
    pub write_time: Duration,
    /// A worker has to answer a batch within this; else it counts as dead.
    pub batch_time: Duration,
    /// Requests of a service whose workers have all gone wait this long for one to come back (503).
    pub absence_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 << 20,
            held_bytes: 1 << 30,
            queued_requests: 16_384,
            connections: 8192,
            head_time: Duration::from_secs(60),
            body_time: Duration::from_secs(60),
            write_time: Duration::from_secs(60),
            batch_time: Duration::from_secs(120),
            absence_time: Duration::from_secs(30),
        }
    }
}

/// When a request is refused with 503 because it would be late.
///
/// A promise is about a percentile, so a few requests may be late and are served all the same: at first
/// only a request is refused that would take `burst` promises. A queue that has not been empty for
/// `standing` is overload, and what waits longer in it than the promise helps nobody: from then on a
/// request is refused whose predicted latency is over `overload` promises, so that those that are taken
/// are in time.
#[derive(Clone, Debug, PartialEq)]
pub struct Shedding {
    /// Promises, while the queue empties from time to time; infinite for never.
    pub burst: f64,
    /// Promises, in overload; infinite for never.
    pub overload: f64,
    /// How long a queue has to stand to be overload.
    pub standing: Duration,
}

impl Default for Shedding {
    fn default() -> Self {
        Self { burst: 20.0, overload: 1.0, standing: Duration::from_secs(2) }
    }
}

impl Shedding {
    /// Nothing is refused for being late, unless its client says how long it waits.
    #[must_use]
    pub fn never() -> Self {
        Self { burst: f64::INFINITY, overload: f64::INFINITY, standing: Duration::MAX }
    }
}
