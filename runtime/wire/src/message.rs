//! What gateway and workers say to each other.
//!
//! A message that is made for every batch borrows its names, so that making one copies nothing.

use crate::Datatype;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The version of these messages. Gateway and worker are of one version of entc, and refuse each other
/// otherwise.
pub const VERSION: u32 = 1;

/// What takes the time of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Executor {
    /// The predicted time passes, and the answer is zeros: no network runs.
    Modelled,
    /// A TorchScript network runs.
    Torch,
}

impl Executor {
    /// The word for users.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Modelled => "modelled",
            Self::Torch => "torch",
        }
    }
}

/// A tensor of a network's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub datatype: Datatype,
    /// Its dimensions, the first of which is the batch; -1 for one that may differ.
    pub shape: Vec<i64>,
}

/// What a network takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Its arguments, in order.
    pub inputs: Vec<TensorSpec>,
    /// Its results, in order.
    pub outputs: Vec<TensorSpec>,
}

/// The neural network of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in the program.
    pub name: String,
    /// Path of its TorchScript file; `None` when there is none, and only the modelled executor can
    /// stand for it.
    #[serde(default)]
    pub artifact: Option<String>,
    /// What it takes and gives; without one, any named tensors are taken whose first dimension is the
    /// batch, and `output` (FP32, one number a row) is given.
    #[serde(default)]
    pub signature: Option<Signature>,
}

/// The head of one tensor, whose bytes follow the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// What it holds.
    pub datatype: Datatype,
    /// Its dimensions; the first is the rows of the whole batch.
    #[serde(borrow)]
    pub shape: Cow<'a, [i64]>,
    /// How many bytes of the frame's body are its, after those of the tensors before it.
    pub bytes: u64,
}

/// A worker says who it is: its first message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// The service that it is to carry.
    pub service: String,
    /// The replica it belongs to, `gpu0/1g.10gb@3`.
    pub replica: String,
    /// Which making of that replica: a replica that is replaced by another on the same instance gets a
    /// higher one.
    pub epoch: u64,
    /// Which of the replica's processes, from 0.
    pub process: u32,
    /// What takes the time of its batches.
    pub executor: Executor,
    /// Its process id.
    pub pid: u32,
}

/// What batches look like; also sent alone when a plan changes under a running worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configure {
    /// Rows of the largest batch. Each size up to it is run once before [`Warm`] is said.
    pub batch: u32,
    /// Time of a batch of k rows (ms), at index k - 1: what the modelled executor takes.
    pub batch_times_ms: Vec<f64>,
    /// Dynamic energy of a batch of k rows (J), at index k - 1: what the modelled executor reports; empty
    /// without power data.
    pub batch_energy_j: Vec<f64>,
}

/// The gateway takes a worker, and says what it is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// The network.
    pub model: Model,
    /// Its batches.
    pub configure: Configure,
}

/// The gateway does not take a worker, and ends the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why, in words.
    pub reason: String,
}

/// A worker is ready for batches of up to so many rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warm {
    /// Rows of the largest batch that it has run.
    pub batch: u32,
    /// What the network takes and gives, when the worker knows more than it was told.
    pub signature: Option<Signature>,
}

/// A batch to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execute<'a> {
    /// Which batch; the answer repeats it.
    pub batch: u64,
    /// Rows of all its requests together: the first dimension of every tensor.
    pub rows: u32,
    /// Its inputs. Each holds the rows of all requests, one after the other.
    #[serde(borrow)]
    pub inputs: Vec<Tensor<'a>>,
}

/// A batch's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done<'a> {
    /// Which batch.
    pub batch: u64,
    /// Time that the executor took (µs), without what the connection took.
    pub compute_us: u64,
    /// Energy that the executor measured or was told (J).
    pub energy_j: Option<f64>,
    /// Its outputs: as many rows as the batch has.
    #[serde(borrow)]
    pub outputs: Vec<Tensor<'a>>,
}

/// A batch could not be run; the worker goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed<'a> {
    /// Which batch.
    pub batch: u64,
    /// Why, in words for the client.
    #[serde(borrow)]
    pub message: Cow<'a, str>,
}

/// What the gateway says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker<'a> {
    /// Answer to [`Hello`].
    Welcome(Welcome),
    /// The other answer to [`Hello`].
    Refused(Refused),
    /// Batches change: get warm for them, then say [`Warm`] again.
    Configure(Configure),
    /// Run a batch.
    #[serde(borrow)]
    Execute(Execute<'a>),
    /// No more batches come: end.
    Shutdown,
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker<'a> {
    /// Who it is.
    Hello(Hello),
    /// It is ready.
    Warm(Warm),
    /// A batch is done.
    #[serde(borrow)]
    Done(Done<'a>),
    /// A batch failed.
    Failed(Failed<'a>),
}

impl ToWorker<'_> {
    /// Bytes of tensors that follow the message.
    #[must_use]
    pub fn body_length(&self) -> u64 {
        match self {
            Self::Execute(execute) => length(&execute.inputs),
            Self::Welcome(_) | Self::Refused(_) | Self::Configure(_) | Self::Shutdown => 0,
        }
    }

    /// What it is, for messages.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Welcome(_) => "`Welcome`",
            Self::Refused(_) => "`Refused`",
            Self::Configure(_) => "`Configure`",
            Self::Execute(_) => "`Execute`",
            Self::Shutdown => "`Shutdown`",
        }
    }
}

impl FromWorker<'_> {
    /// Bytes of tensors that follow the message.
    #[must_use]
    pub fn body_length(&self) -> u64 {
        match self {
            Self::Done(done) => length(&done.outputs),
            Self::Hello(_) | Self::Warm(_) | Self::Failed(_) => 0,
        }
    }

    /// What it is, for messages.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hello(_) => "`Hello`",
            Self::Warm(_) => "`Warm`",
            Self::Done(_) => "`Done`",
            Self::Failed(_) => "`Failed`",
        }
    }
}

/// Bytes of some tensors together; the largest number where they overflow it.
fn length(tensors: &[Tensor<'_>]) -> u64 {
    tensors.iter().fold(0, |sum, t| sum.saturating_add(t.bytes))
}
