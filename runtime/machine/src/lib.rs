//! Plan and machine → changes, carried out as a transaction.
//!
//! `Observed` is what a machine is, `Target` what a plan wants it to be, `Changes` the steps between,
//! `Journal` what was done of them, `State` what is ours on it. The verbs: [`Driver::observe`],
//! [`bind()`](bind::bind), [`diff()`](diff::diff), [`preflight()`](preflight::preflight),
//! [`apply()`](apply::apply). Everything reaches the GPUs through NVML; a simulated machine is another
//! NVML library, never another path through this crate.

pub mod apply;
pub mod bind;
pub mod changes;
pub mod diff;
pub mod doctor;
pub mod driver;
pub mod error;
pub mod holders;
pub mod journal;
pub mod observed;
pub mod preflight;
pub mod state;
pub mod target;

pub use driver::{Driver, Library};
