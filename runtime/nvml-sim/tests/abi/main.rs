//! The exported C functions, as clients call them: nvml-wrapper, raw C, and NVIDIA's own Python.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]
#![expect(
    clippy::print_stdout,
    reason = "a test that looked at nothing says so; processes tell how far they are"
)]

mod client;
mod crash;
mod devices;
mod faults;
mod foreign;
mod instances;
mod readings;
mod session;
