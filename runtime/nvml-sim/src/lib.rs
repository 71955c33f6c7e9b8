//! A simulated NVML: the C functions of `libnvidia-ml.so.1`, over a machine that is kept in a folder.
//!
//! `machine.toml` in that folder describes the machine (see [`description`]); `state.json` beside it is
//! what became of it, shared by all processes that load this library. `silicon` decides what a board may
//! do and refuses what real ones refuse; `abi` is C on the outside and knows no rules.

pub mod abi;
pub mod description;
pub mod faults;
pub mod machine;
pub mod returns;
pub mod silicon;
pub mod store;
