//! Deployments for tests.

use crate::deployment::{Deployment, FORMAT_VERSION, Replica, Service};
use ent_wire::Model;

/// A replica with small batches that take no time.
pub(super) fn replica(id: &str) -> Replica {
    Replica::modelled(id, vec![0.1; 4])
}

/// A deployment with one replica for each service.
pub(super) fn deployment(services: &[(&str, Replica)]) -> Deployment {
    let service = |(name, replica): &(&str, Replica)| Service {
        name: (*name).to_owned(),
        model: Model { name: (*name).to_owned(), artifact: None, signature: None },
        percentile: 0.99,
        promised_latency_ms: 100.0,
        arrivals: "poisson".into(),
        rate_rps: 10.0,
        replicas: vec![replica.clone()],
    };
    let services = services.iter().map(service).collect();
    Deployment { format_version: FORMAT_VERSION.into(), plan: None, services }
}
