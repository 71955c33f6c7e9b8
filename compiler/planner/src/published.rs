//! Planners as others published them, on entc's inputs and outputs.
//!
//! Each has a core that decides like the original on the original's kind of inputs, and an adapter from a
//! program to a plan. Where an original crashes, hangs or drops a service, the core says so.

use ent_plan::plan::{LatencyRule, Metric};

pub mod enertune;
pub mod fgd;
pub mod gpulets;
pub mod parvagpu;
mod shares;
mod site;
pub mod usher;
mod verdict;

pub use shares::{Interference, Utilisation, shared_by_mps};

/// How faithfully a published planner decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Like the original: its truncations, constants, order and quirks.
    Conformant,
    /// Its idea with real numbers and without its accidents.
    #[default]
    Native,
}

/// What a program is planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// How faithfully.
    pub mode: Mode,
    /// What to minimise, in place of the program's own. Most published planners do not ask.
    pub metric: Option<Metric>,
    /// Which latency promises are about.
    pub rule: LatencyRule,
}
