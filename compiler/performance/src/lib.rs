//! Measurements → fitted models; operating points → predicted time, power and latency.
//!
//! Pure: callers read files and hand over text. Nothing here knows a solver or a machine.

pub mod operate;
pub mod predict;
pub mod queueing;

pub use predict::{ModelPerformance, PointKey, Prediction};
