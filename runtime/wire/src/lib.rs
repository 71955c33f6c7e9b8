//! Gateway ↔ worker: messages and tensors, as frames over a Unix socket.
//!
//! A worker connects to the gateway's socket and says [`Hello`]. The gateway answers [`Welcome`] (what to
//! load, how large batches get) or [`Refused`]. When the worker has loaded its model and run every batch
//! size once, it says [`Warm`], and from then on answers each [`Execute`] with one [`Done`] or [`Failed`].
//! At most one batch is with a worker at a time, because the gateway keeps the queue. A worker whose
//! connection ends is dead to the gateway, and a gateway whose connection ends tells the worker to end.
//!
//! A frame is a head of [`HEAD_LENGTH`] bytes, a message ([`ToWorker`] or [`FromWorker`], in postcard),
//! and the raw bytes of the message's tensors, one after the other, little-endian, row-major: neither
//! side copies them to make or to read a frame. [`frame`] has the bytes; [`Connection`] is the worker's
//! blocking side. Nothing here waits for more than one thing, so a worker needs no async runtime.

mod connection;
mod datatype;
mod error;
pub mod frame;
mod message;

pub use connection::{Connection, Received};
pub use datatype::{Datatype, UnknownDatatype};
pub use error::WireError;
pub use frame::HEAD_LENGTH;
pub use message::{
    Configure, Done, Execute, Executor, Failed, FromWorker, Hello, Model, Refused, Signature, Tensor,
    TensorSpec, ToWorker, VERSION, Warm, Welcome,
};
