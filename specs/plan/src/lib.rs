//! What both halves of entc agree on: units, devices, performance data, plans, and their check.
//!
//! The compiler writes a [`plan::Plan`]; the runtime carries it out. Neither knows the other; both
//! know this crate. Nothing here does I/O: catalogue files are embedded text.

pub mod device;
pub mod diagnostic;
pub mod performance;
pub mod plan;
pub mod text;
pub mod units;
