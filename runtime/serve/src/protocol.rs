//! Open Inference Protocol v2 ↔ tensors: what a client asks, what it gets, and what it is told is wrong.
//!
//! Nothing here knows a socket, a queue or a worker.

use bytes::Bytes;
use ent_wire::{Datatype, Signature};
use std::time::Duration;

/// The protocol's messages and service over gRPC, as its definition has them.
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::mod_module_files,
    clippy::wildcard_enum_match_arm,
    reason = "made from proto/inference.proto"
)]
pub mod grpc {
    tonic::include_proto!("inference");
}

mod answer;
mod elements;
mod json;
mod messages;
mod refusal;
mod signature;

pub use answer::{Answer, Rows, Share, WrongAnswer};
pub use json::{Written, parse, write};
pub use messages::{from_message, to_message};
pub use refusal::Refusal;
pub use signature::check;

/// The one version that each model has.
pub const MODEL_VERSION: &str = "1";

/// One tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorData {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub datatype: Datatype,
    /// Its dimensions; the first is the rows.
    pub shape: Vec<i64>,
    /// Its elements, little-endian, row-major.
    pub data: Bytes,
}

/// What a client asks of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InferRequest {
    /// What the client knows it by.
    pub id: Option<String>,
    /// Its inputs.
    pub inputs: Vec<TensorData>,
    /// The outputs it wants; all when there are none.
    pub outputs: Vec<RequestedOutput>,
    /// Whether outputs are raw bytes behind the answer, where `outputs` does not say.
    pub is_binary: bool,
    /// How long the client waits.
    pub timeout: Option<Duration>,
}

/// An output that a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedOutput {
    /// Its name.
    pub name: String,
    /// Whether it is wanted as raw bytes behind the answer; `None` as the request says for all.
    pub is_binary: Option<bool>,
}

/// What any model without a signature answers: one number a row.
#[must_use]
pub fn default_outputs() -> Signature {
    let output =
        ent_wire::TensorSpec { name: "output".to_owned(), datatype: Datatype::Fp32, shape: vec![-1, 1] };
    Signature { inputs: Vec::new(), outputs: vec![output] }
}

/// Elements of a shape; `None` when a dimension is negative or there are more than memory has.
#[must_use]
pub fn elements(shape: &[i64]) -> Option<usize> {
    let mut product: usize = 1;
    for dimension in shape {
        product = product.checked_mul(usize::try_from(*dimension).ok()?)?;
    }
    // What cannot be allocated is no tensor; the bound keeps later products from overflowing.
    (product <= isize::MAX as usize / 16).then_some(product)
}

/// Bytes of the first `count` strings in a tensor of [`Datatype::Bytes`]; `None` when it has not so many
/// whole ones.
#[must_use]
pub fn strings_length(data: &[u8], count: usize) -> Option<usize> {
    let mut at: usize = 0;
    for _ in 0..count {
        let length = data.get(at..at.checked_add(4)?)?;
        let length = u32::from_le_bytes(length.try_into().ok()?);
        at = at.checked_add(4)?.checked_add(usize::try_from(length).ok()?)?;
        if at > data.len() {
            return None;
        }
    }
    Some(at)
}
