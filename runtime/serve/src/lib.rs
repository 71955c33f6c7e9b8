//! Deployment → a service that clients can call: the gateway in front of the workers.
//!
//! [`Gateway::start`] listens for workers on a Unix socket and for clients by the Open Inference Protocol
//! (HTTP and gRPC), keeps one queue for each replica, and sends a replica's batches to its workers by the
//! rule that plans are made with. Nothing here knows the compiler, a driver or a network's code.

pub mod deployment;
pub mod gateway;
pub mod load;
pub mod protocol;
pub mod queue;
pub mod supervisor;

pub use deployment::Deployment;
pub use gateway::{Gateway, Handle};
