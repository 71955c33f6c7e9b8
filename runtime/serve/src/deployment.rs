//! Plan + machine → what runs where: the file `deployment.json`.
//!
//! Made by the command from a checked plan and an observed machine, and read by whatever runs it. It
//! holds what serving needs and nothing else: no boards, no solver, no driver.

use ent_wire::{Executor, Model};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version of this format: minor is additive, major is breaking.
pub const FORMAT_VERSION: &str = "1.0";

/// What is to run on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deployment {
    /// [`FORMAT_VERSION`].
    pub format_version: String,
    /// The checksum of the plan it was made from; `null` when it was made by hand.
    #[serde(default)]
    pub plan: Option<String>,
    /// The services, in the plan's order.
    pub services: Vec<Service>,
}

/// One service: to clients, one model of the Open Inference Protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// The neural network.
    pub model: Model,
    /// The promised percentile, 0.99 for p99.
    pub percentile: f64,
    /// The promise (ms).
    pub promised_latency_ms: f64,
    /// Arrival process in the plan's words: `poisson`, `uniform`, `gamma(cv = 2)`, `trace(…)`.
    pub arrivals: String,
    /// Planned rate (req/s).
    pub rate_rps: f64,
    /// The workers' places. Empty when the plan gives it none.
    pub replicas: Vec<Replica>,
}

/// One copy of a service on one MIG device, MPS share or whole board.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replica {
    /// Its place, unique in a deployment: `gpu0/1g.10gb@3`.
    pub id: String,
    /// Which making of it: another service, network or executor on the same place has a higher one.
    #[serde(default)]
    pub epoch: u64,
    /// The plan's node.
    pub node: String,
    /// The board's index in the node.
    pub index: u32,
    /// The board's UUID; `null` where there is no board (a worker on the CPU).
    #[serde(default)]
    pub gpu: Option<String>,
    /// The MIG device's UUID; `null` outside MIG.
    #[serde(default)]
    pub mig_device: Option<String>,
    /// MPS active-thread percentage of each process; `null` without MPS.
    #[serde(default)]
    pub mps_percent: Option<u32>,
    /// Worker processes.
    pub processes: u32,
    /// Rows of the largest batch.
    pub batch: u32,
    /// The oldest request waits at most this long for its batch to fill (ms).
    pub max_wait_ms: f64,
    /// Predicted time of a batch of k rows (ms), at index k - 1.
    pub batch_times_ms: Vec<f64>,
    /// Predicted dynamic energy of a batch of k rows (J), at index k - 1; empty without power data.
    #[serde(default)]
    pub batch_energy_j: Vec<f64>,
    /// Planned rate (req/s): its share of the service's requests.
    pub rate_rps: f64,
    /// What takes the time of its batches.
    pub executor: Executor,
}

impl Replica {
    /// A replica of one modelled process on no board, whose batches of k rows take the k-th of these times (ms):
    /// what the others are made of that differ from it.
    #[must_use]
    pub fn modelled(id: &str, batch_times_ms: Vec<f64>) -> Self {
        Self {
            id: id.to_owned(),
            epoch: 0,
            node: "here".to_owned(),
            index: 0,
            gpu: None,
            mig_device: None,
            mps_percent: None,
            processes: 1,
            batch: u32::try_from(batch_times_ms.len()).unwrap_or(u32::MAX),
            max_wait_ms: 0.0,
            batch_times_ms,
            batch_energy_j: Vec::new(),
            rate_rps: 10.0,
            executor: Executor::Modelled,
        }
    }
}

/// Whether a service of this name can be called: its name is a part of a URL's path (RFC 3986, unreserved).
#[must_use]
pub fn can_be_called(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    !name.is_empty() && name.chars().all(is_plain)
}

/// Why a deployment cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeploymentError {
    /// Written by a version whose files this one cannot read.
    #[error("format version `{0}` is not `1.x`; use the version of entc that wrote it")]
    Version(String),
    /// Two services of one name.
    #[error("service `{0}` is there twice")]
    DuplicateService(String),
    /// A name that cannot stand in a path of the protocol.
    #[error("`{0}` cannot be a service's name: it has to be a part of a URL's path")]
    Name(String),
    /// Two replicas in one place.
    #[error("replica `{0}` is there twice")]
    DuplicateReplica(String),
    /// A number out of its range.
    #[error("{what} of `{of}` is {value}; it has to be {range}")]
    Range {
        /// The service or replica.
        of: String,
        /// Which number.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// Fewer predicted times than batch sizes.
    #[error("replica `{replica}` has {times} batch times for batches of up to {batch}")]
    Times {
        /// The replica.
        replica: String,
        /// Times it has.
        times: usize,
        /// Times it needs.
        batch: u32,
    },
}

impl Deployment {
    /// Looks for what cannot run.
    ///
    /// # Errors
    /// The first fault, by service and replica.
    pub fn validate(&self) -> Result<(), DeploymentError> {
        if self.format_version.split('.').next() != Some("1") {
            return Err(DeploymentError::Version(self.format_version.clone()));
        }
        let mut names = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for service in &self.services {
            if !can_be_called(&service.name) {
                return Err(DeploymentError::Name(service.name.clone()));
            }
            if !names.insert(service.name.as_str()) {
                return Err(DeploymentError::DuplicateService(service.name.clone()));
            }
            let positive = |what, value: f64| {
                let range = "positive and finite";
                let error = DeploymentError::Range { of: service.name.clone(), what, value, range };
                if value > 0.0 && value.is_finite() { Ok(()) } else { Err(error) }
            };
            positive("the promised latency (ms)", service.promised_latency_ms)?;
            positive("the promised percentile", service.percentile)?;
            for replica in &service.replicas {
                if !ids.insert((replica.id.as_str(), replica.epoch)) {
                    return Err(DeploymentError::DuplicateReplica(replica.id.clone()));
                }
                replica.validate()?;
            }
        }
        Ok(())
    }
}

impl Replica {
    fn validate(&self) -> Result<(), DeploymentError> {
        let fault =
            |what, value, range| Err(DeploymentError::Range { of: self.id.clone(), what, value, range });
        if !(1..=4096).contains(&self.batch) {
            return fault("the batch", f64::from(self.batch), "from 1 to 4096");
        }
        if !(1..=256).contains(&self.processes) {
            return fault("the number of processes", f64::from(self.processes), "from 1 to 256");
        }
        if !(self.max_wait_ms >= 0.0 && self.max_wait_ms <= 3.6e6) {
            return fault("the longest wait (ms)", self.max_wait_ms, "from 0 to an hour");
        }
        if !(self.rate_rps >= 0.0 && self.rate_rps.is_finite()) {
            return fault("the rate (req/s)", self.rate_rps, "0 or more and finite");
        }
        if self.batch_times_ms.len() < self.batch as usize {
            let (replica, times) = (self.id.clone(), self.batch_times_ms.len());
            return Err(DeploymentError::Times { replica, times, batch: self.batch });
        }
        let in_range = |x: &&f64| !(**x >= 0.0 && **x <= 3.6e6);
        if let Some(time) = self.batch_times_ms.iter().find(in_range) {
            return fault("a batch time (ms)", *time, "from 0 to an hour");
        }
        if let Some(energy) = self.batch_energy_j.iter().find(|e| !(**e >= 0.0 && e.is_finite())) {
            return fault("a batch's energy (J)", *energy, "0 or more and finite");
        }
        Ok(())
    }
}
