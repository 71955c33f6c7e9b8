//! What a gateway did so far, in numbers.

use ent_wire::Executor;
use serde::{Deserialize, Serialize};

/// What a gateway did so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The plan's checksum.
    pub plan: Option<String>,
    /// Seconds since it started.
    pub uptime_s: f64,
    /// Whether every service can be called.
    pub is_ready: bool,
    /// Open connections of clients.
    pub connections: u64,
    /// Its services.
    pub services: Vec<ServiceStats>,
}

/// How requests ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Answered.
    pub served: u64,
    /// Refused because they would be late (503).
    pub shed: u64,
    /// Refused because too many wait (429).
    pub full: u64,
    /// Wrong (4xx).
    pub invalid: u64,
    /// Failed in the worker or without one (5xx).
    pub failed: u64,
    /// The client went away first.
    pub cancelled: u64,
}

/// What a service did so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceStats {
    /// Its name.
    pub name: String,
    /// Whether it can be called.
    pub is_ready: bool,
    /// How its requests ended.
    pub outcomes: Outcomes,
    /// Attempts that were made again after a worker died or a batch failed.
    pub retries: u64,
    /// Served within the promise.
    pub within_promise: u64,
    /// The promise (ms).
    pub promised_latency_ms: f64,
    /// Upper bounds (s) of the buckets of latency.
    pub latency_bounds_s: Vec<f64>,
    /// Served requests at or below each bound, and not at or below the one before.
    pub latency_counts: Vec<u64>,
    /// Sum of all latencies (s).
    pub latency_sum_s: f64,
    /// Its replicas.
    pub replicas: Vec<ReplicaStats>,
}

/// What a replica did so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaStats {
    /// Its id.
    pub id: String,
    /// Its epoch.
    pub epoch: u64,
    /// What takes the time of its batches.
    pub executor: Executor,
    /// Whether it takes requests.
    pub is_ready: bool,
    /// Warm workers.
    pub workers: u32,
    /// Workers it should have.
    pub processes: u32,
    /// Requests that wait.
    pub queued: u64,
    /// Rows that are with workers.
    pub in_flight: u64,
    /// Batches that were answered.
    pub batches: u64,
    /// Batches by rows, at index rows - 1.
    pub batch_sizes: Vec<u64>,
    /// The planned batch.
    pub batch: u32,
    /// Longest time that a request waited for its batch to fill while a worker was idle, beyond the plan's
    /// `max_wait` (s).
    pub overrun_s: f64,
    /// Time that executors reported for their batches (s).
    pub compute_s: f64,
    /// Energy that executors reported (J).
    pub energy_j: f64,
    /// Connections of workers that ended without being told to.
    pub lost_workers: u64,
}
