//! What a supervisor has and what it waits for, for people and programs.

use super::fleet::Fleet;
use super::launch::Key;
use crate::deployment::Deployment;
use crate::gateway::{Addresses, Stats};
use ent_wire::Executor;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// What a supervisor is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It serves.
    Serving,
    /// It puts another deployment in the place of the one that serves.
    Changing,
    /// It answers what it has, and takes no more.
    Draining,
}

/// What a supervisor has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The version of entc that it is of.
    pub version: String,
    /// Its process id.
    pub pid: u32,
    /// Where its state is.
    pub folder: PathBuf,
    /// What it is at.
    pub phase: Phase,
    /// Where it listens for HTTP.
    pub http: Option<SocketAddr>,
    /// Where it listens for gRPC.
    pub grpc: Option<SocketAddr>,
    /// Where it gives metrics.
    pub metrics: Option<SocketAddr>,
    /// The replicas of the deployment that serves, by service.
    pub replicas: Vec<ReplicaStatus>,
    /// Processes beside the workers, with why they are not there.
    pub others: Vec<OtherStatus>,
    /// What the gateway did so far.
    pub stats: Stats,
}

/// A replica and its workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Its service.
    pub service: String,
    /// Its place.
    pub id: String,
    /// Its epoch.
    pub epoch: u64,
    /// What takes the time of its batches.
    pub executor: Executor,
    /// Whether all its workers are warm and requests are routed to it.
    pub is_healthy: bool,
    /// Warm workers.
    pub workers: u32,
    /// Workers it should have.
    pub processes: u32,
    /// The workers' process ids.
    pub pids: Vec<u32>,
    /// How often workers were started.
    pub starts: u32,
    /// Why it is not healthy, as far as a worker said so.
    pub reason: Option<String>,
}

/// A process beside the workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherStatus {
    /// What it is.
    pub name: String,
    /// Its process id, while it is there.
    pub pid: Option<u32>,
    /// Why it is not there, or was not the last time.
    pub reason: Option<String>,
}

impl Status {
    /// How many replicas are healthy.
    #[must_use]
    pub fn n_healthy(&self) -> usize {
        self.replicas.iter().filter(|r| r.is_healthy).count()
    }
}

/// Puts together what gateway and processes say.
pub(super) fn status(
    folder: PathBuf,
    phase: Phase,
    addresses: &Addresses,
    deployment: &Deployment,
    fleet: &Fleet,
    stats: Stats,
) -> Status {
    let seen = fleet.seen();
    let mut replicas = Vec::new();
    for service in &deployment.services {
        for plan in &service.replicas {
            let all = stats.services.iter().filter(|s| s.name == service.name).flat_map(|s| &s.replicas);
            let known = all.clone().find(|r| r.id == plan.id && r.epoch == plan.epoch);
            let workers = known.map_or(0, |r| r.workers);
            let is_healthy = known.is_some_and(|r| r.is_ready && r.workers >= plan.processes);
            let jobs =
                || seen.iter().filter(|(key, _)| key.is_of(&plan.id, plan.epoch)).map(|(_, seen)| seen);
            let reason = jobs().find_map(|seen| seen.reason.clone()).filter(|_| !is_healthy);
            replicas.push(ReplicaStatus {
                service: service.name.clone(),
                id: plan.id.clone(),
                epoch: plan.epoch,
                executor: plan.executor,
                is_healthy,
                workers,
                processes: plan.processes,
                pids: jobs().filter_map(|seen| seen.pid).collect(),
                starts: jobs().map(|seen| seen.starts).sum(),
                reason,
            });
        }
    }
    let other = |(key, seen): (&Key, &super::job::Seen)| match key {
        Key::Mps(device) => {
            Some(OtherStatus { name: format!("mps {device}"), pid: seen.pid, reason: seen.reason.clone() })
        }
        Key::Worker { .. } => None,
    };
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        folder,
        phase,
        http: addresses.http,
        grpc: addresses.grpc,
        metrics: addresses.metrics,
        replicas,
        others: seen.iter().filter_map(other).collect(),
        stats,
    }
}
