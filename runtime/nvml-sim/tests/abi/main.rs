//! The exported C functions, as clients call them: nvml-wrapper, raw C, and NVIDIA's own Python.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod client;
mod crash;
mod devices;
mod foreign;
mod instances;
mod readings;
mod session;
