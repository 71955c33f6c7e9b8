//! C on the outside: the functions of `libnvidia-ml.so.1`, each a question to the machine and its answer.
//!
//! Names, arguments and structures are those of nvml.h, as nvml-wrapper-sys 0.10.0 binds them. No rule of
//! the hardware is here. A function that is not here is absent, as in an older driver: the client's
//! loader says so. Beside them are a few functions that no real driver has, `entcSim…`, in
//! [`simulation`].
//!
//! Every function asks `faults.json` first and last, and returns `UNKNOWN` rather than unwinding into C.

mod boundary;
mod clocks;
mod compute_instance;
mod device;
mod fields;
mod gpu_instance;
mod handle;
mod mig;
mod power;
mod process;
mod running;
mod session;
pub mod simulation;
