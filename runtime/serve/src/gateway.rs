//! Deployment + options → a running gateway, and the handle that changes and ends it.
//!
//! The gateway runs on threads of its own. A handle's futures need no particular runtime: they only wait
//! for those threads.

use crate::deployment::{Deployment, DeploymentError};
use front::Front;
use http::Purpose;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

mod front;
mod grpc;
mod http;
mod link;
mod metrics;
mod options;
mod reconfigure;
mod replica;
mod service;
mod stats;
mod timer;
mod traces;
mod workers;

pub use options::{Limits, Options, Shedding, Tracing};
pub use stats::{Outcomes, ReplicaStats, ServiceStats, Stats};

/// Starts gateways.
#[derive(Debug)]
pub struct Gateway;

/// A running gateway. Dropping it ends the gateway at once.
#[derive(Debug)]
pub struct Handle {
    addresses: Addresses,
    front: Arc<Front>,
    /// Becomes true when no more connections are taken.
    draining: watch::Sender<bool>,
    /// Becomes true when the threads are to end.
    ending: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
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
    #[error("no ready workers after {waited:?} for {}; the deployment before stays", .replicas.join(", "))]
    NotReady {
        /// Which replicas.
        replicas: Vec<String>,
        /// How long they had.
        waited: Duration,
    },
    /// The system gave no timer or the like.
    #[error("cannot change the deployment, and the one before stays: {0}")]
    Io(#[from] std::io::Error),
    /// The gateway has ended.
    #[error("the gateway has ended")]
    Ended,
}

impl Gateway {
    /// Starts a gateway: listens for workers and for clients. Services are ready as their workers come.
    ///
    /// # Errors
    /// When the deployment cannot run, or an address cannot be listened on.
    pub fn start(deployment: &Deployment, options: Options) -> Result<Handle, StartError> {
        deployment.validate()?;
        for address in [options.http, options.grpc, options.metrics].into_iter().flatten() {
            if options.token.is_none() && !address.ip().is_loopback() {
                return Err(StartError::TokenNeeded(address));
            }
        }
        let runtime = runtime(options.threads)?;
        let (draining, is_draining) = watch::channel(false);
        let (ending, mut is_ending) = watch::channel(false);
        let front = Arc::new(Front::new(options.clone(), runtime.handle().clone())?);
        let addresses = {
            let _inside = runtime.enter();
            let [http, grpc, metrics] = [options.http, options.grpc, options.metrics].map(|address| {
                let listener = address.map(http::listen).transpose()?;
                let bound = listener.as_ref().map(TcpListener::local_addr).transpose()?;
                Ok::<_, StartError>((listener, bound))
            });
            let ((http, http_at), (grpc, grpc_at), (metrics, metrics_at)) = (http?, grpc?, metrics?);
            reconfigure::install(&front, deployment)?;
            // Last, so that what fails leaves no socket behind.
            let workers = workers::listen(&options.workers)?;
            let shared = || Arc::clone(&front);
            if let Some(listener) = http {
                runtime.spawn(http::accept(shared(), listener, Purpose::Inference, is_draining.clone()));
            }
            if let Some(listener) = grpc {
                runtime.spawn(grpc::serve(shared(), listener, is_draining));
            }
            if let Some(listener) = metrics {
                runtime.spawn(http::accept(shared(), listener, Purpose::Metrics, is_ending.clone()));
            }
            runtime.spawn(workers::accept(Arc::clone(&front), workers));
            runtime.spawn(reconfigure::sweep(Arc::clone(&front)));
            Addresses { http: http_at, grpc: grpc_at, metrics: metrics_at, workers: options.workers }
        };
        let thread = std::thread::Builder::new().name("entc-gateway".to_owned()).spawn(move || {
            // Ends when it is told to, or when its handle is gone.
            runtime.block_on(async { drop(is_ending.wait_for(|is_ending| *is_ending).await) });
            runtime.shutdown_timeout(Duration::from_millis(100));
        })?;
        Ok(Handle { addresses, front, draining, ending, thread: Some(thread) })
    }
}

/// One thread does without locks and wake-ups between threads, and is the fastest where cores are few.
fn runtime(threads: usize) -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { (cores / 4).clamp(1, 8) } else { threads };
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(threads).thread_name("entc-gateway").enable_all().build()
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
        let front = Arc::clone(&self.front);
        self.run(async move { reconfigure::ready(&front.replicas(), patience).await }).await
    }

    /// Puts another deployment in the place of the present one without failing a request: make before
    /// break. New replicas are awaited for `patience`, then requests go to them; replicas that are not in
    /// it any more finish what they have, and their workers are told to end. A replica that stays (same
    /// id, epoch, service, network and executor) keeps its workers: batch, wait, times and rates change at
    /// once, a larger batch when the worker is warm for it. When this returns, the replicas that had to go
    /// have no batch any more.
    ///
    /// # Errors
    /// When it cannot run, or new replicas have no ready workers in time; the present one then stays.
    pub async fn reconfigure(
        &self,
        deployment: Deployment,
        patience: Duration,
    ) -> Result<(), ReconfigureError> {
        let front = Arc::clone(&self.front);
        self.run(async move { reconfigure::reconfigure(&front, &deployment, patience).await }).await
    }

    /// Has replicas begin no batch any more, and waits for those that they are at, up to `patience`: their
    /// workers can then end without a request that has to be tried again. Other replicas of their services take
    /// the requests; where there are none, requests wait until workers join again or others come.
    pub async fn rest(&self, replicas: Vec<String>, patience: Duration) {
        let front = Arc::clone(&self.front);
        let resting = async move { reconfigure::rest(&front, &replicas, patience).await };
        // It fails with the gateway only, which then has no workers either.
        let _ = self.front.runtime.spawn(resting).await;
    }

    /// Runs something on the gateway's threads, whatever the caller's runtime is.
    async fn run(
        &self,
        future: impl Future<Output = Result<(), ReconfigureError>> + Send + 'static,
    ) -> Result<(), ReconfigureError> {
        self.front.runtime.spawn(future).await.unwrap_or(Err(ReconfigureError::Ended))
    }

    /// Stops taking connections, is not ready any more, answers what it has, and returns when the last
    /// connection of a client has ended or `patience` is over; then how many requests are left. Metrics
    /// can be had until it ends.
    pub async fn drain(&self, patience: Duration) -> u64 {
        self.front.is_draining.store(true, Ordering::Relaxed);
        self.draining.send_replace(true);
        let front = Arc::clone(&self.front);
        let left = self.front.runtime.spawn(async move {
            let until = tokio::time::Instant::now() + patience;
            let is_idle =
                || front.open.load(Ordering::Relaxed) == 0 && front.connections.load(Ordering::Relaxed) == 0;
            while !is_idle() && tokio::time::Instant::now() < until {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            front.open.load(Ordering::Relaxed)
        });
        left.await.unwrap_or(0)
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.front.stats()
    }

    /// Where others add what they measure (watts, joules, drift), to be given with the gateway's metrics.
    #[must_use]
    pub fn registry(&self) -> &prometheus::Registry {
        &self.front.metrics.registry
    }

    /// Ends it: its listeners close, its workers are told to end, its threads end.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.front.replicas().iter().for_each(|replica| replica.close());
        self.ending.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // Joining fails only if it panicked, and then it has ended as well.
            let _ = thread.join();
            let _ = std::fs::remove_file(&self.addresses.workers);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.end();
    }
}
