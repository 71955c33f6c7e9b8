//! What server and models say of themselves.

use super::super::front::Front;
use super::super::metrics::Metrics;
use super::super::service::Service;
use super::{Chunks, json};
use crate::protocol::MODEL_VERSION;
use ent_wire::TensorSpec;
use hyper::{Response, StatusCode};
use serde_json::{Value, json as object};

/// What of the protocol's extensions this server has.
pub(crate) const EXTENSIONS: [&str; 3] = ["binary_tensor_data", "model_configuration", "statistics"];

/// What the server calls itself.
pub(crate) const SERVER: &str = "entc";

pub(super) fn server() -> String {
    object!({ "name": SERVER, "version": env!("CARGO_PKG_VERSION"), "extensions": EXTENSIONS }).to_string()
}

pub(super) fn health(is_well: bool) -> Response<Chunks> {
    let mut response = json(String::new());
    if !is_well {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

fn tensors(specs: &[TensorSpec]) -> Vec<Value> {
    let spec = |s: &TensorSpec| object!({ "name": s.name, "datatype": s.datatype.name(), "shape": s.shape });
    specs.iter().map(spec).collect()
}

/// What executors a service has, for clients to see whether a network runs at all.
pub(crate) fn platform(service: &Service) -> String {
    let mut words: Vec<&str> = service.routes.iter().map(|r| r.replica.executor.word()).collect();
    words.sort_unstable();
    words.dedup();
    format!("entc_{}", words.join("_"))
}

pub(super) fn model(service: &Service) -> String {
    let inputs = service.signature().map(|s| tensors(&s.inputs)).unwrap_or_default();
    object!({
        "name": service.name,
        "versions": [MODEL_VERSION],
        "platform": platform(service),
        "inputs": inputs,
        "outputs": tensors(&service.outputs().outputs),
    })
    .to_string()
}

/// Triton's form, as far as there is something to say: clients that measure read the batch from it.
pub(super) fn configuration(service: &Service) -> String {
    // Its dimensions leave the batch out, and its datatypes have a prefix.
    let part = |s: &TensorSpec| {
        let name = if s.datatype.size().is_none() { "STRING" } else { s.datatype.name() };
        let datatype = format!("TYPE_{name}");
        object!({ "name": s.name, "data_type": datatype, "dims": s.shape.get(1..) })
    };
    let inputs: Vec<Value> = service.signature().iter().flat_map(|s| &s.inputs).map(part).collect();
    let outputs: Vec<Value> = service.outputs().outputs.iter().map(part).collect();
    object!({
        "name": service.name,
        "platform": platform(service),
        "backend": "entc",
        "max_batch_size": service.batch(),
        "input": inputs,
        "output": outputs,
        "dynamic_batching": {},
    })
    .to_string()
}

/// Triton's form, as far as it is counted here.
pub(super) fn statistics(front: &Front, of: Option<&str>) -> String {
    let table = front.table();
    let services = Metrics::services(&table).into_iter().filter(|s| of.is_none_or(|of| of == s.name));
    let one = |s: super::super::ServiceStats| {
        let rows = |sizes: &[u64]| sizes.iter().zip(1..).map(|(n, k): (&u64, u64)| n * k).sum::<u64>();
        let inferences: u64 = s.replicas.iter().map(|r| rows(&r.batch_sizes)).sum();
        let executions: u64 = s.replicas.iter().map(|r| r.batches).sum();
        let failures = s.outcomes.failed + s.outcomes.shed + s.outcomes.full + s.outcomes.invalid;
        let ns = (s.latency_sum_s * 1e9) as u64;
        object!({
            "name": s.name,
            "version": MODEL_VERSION,
            "inference_count": inferences,
            "execution_count": executions,
            "inference_stats": {
                "success": { "count": s.outcomes.served, "ns": ns },
                "fail": { "count": failures, "ns": 0 },
            },
        })
    };
    object!({ "model_stats": services.map(one).collect::<Vec<Value>>() }).to_string()
}
