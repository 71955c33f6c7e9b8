//! `machine.toml`: what machine is simulated.
//!
//! ```toml
//! driver_version = "575.57.08"
//! privileged = true            # whether callers may change things
//!
//! [[gpu]]
//! board = "a100-80gb-pcie"     # a board of the catalogue
//! count = 2
//! mig = false                  # MIG mode at first boot
//! ```

use serde::{Deserialize, Serialize};

/// The name of the file.
pub const FILE: &str = "machine.toml";

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The driver's version.
    pub driver_version: String,
    /// Whether callers may change things (root).
    #[serde(default = "yes")]
    pub privileged: bool,
    /// Its GPUs, in the order of their indices.
    pub gpu: Vec<DescribedGpu>,
}

/// Some equal GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedGpu {
    /// A board of the catalogue.
    pub board: String,
    /// How many.
    #[serde(default = "one")]
    pub count: u32,
    /// MIG mode at first boot.
    #[serde(default)]
    pub mig: bool,
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}
