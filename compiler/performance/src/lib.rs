//! Measurements → fitted models; operating points → predicted time, power and latency.
//!
//! Pure: callers read files and hand over text. Nothing here knows a solver or a machine.

pub mod colocation;
pub mod fit;
pub mod import;
pub mod load;
pub mod operate;
pub mod predict;
pub mod queueing;
pub mod simulate;
mod table;
pub mod verify;

#[cfg(test)]
mod fixture;

pub use load::{PerformanceSet, load};
pub use predict::{ModelPerformance, PointKey, Prediction, ShareKey};
pub use verify::verify;
