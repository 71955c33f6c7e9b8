//! Plan and machine → changes, carried out as a transaction.
//!
//! `Observed` is what a machine is, `Target` what a plan wants it to be, `Changes` the steps between,
//! `Journal` what was done of them, `State` what is ours on it. The verbs: [`Driver::observe`],
//! [`bind()`](bind::bind), [`diff()`](diff::diff), [`preflight()`](preflight::preflight),
//! [`apply()`](apply::apply). Everything reaches the GPUs through NVML; a simulated machine is another
//! NVML library, never another path through this crate.

pub mod apply;
pub mod bind;
mod catalogue;
pub mod changes;
pub mod destroy;
pub mod diff;
pub mod doctor;
pub mod drift;
pub mod driver;
pub mod error;
pub mod holders;
pub mod import;
pub mod journal;
pub mod observed;
pub mod persist;
pub mod preflight;
pub mod resume;
pub mod rollback;
pub mod state;
pub mod store;
pub mod target;

pub use driver::{Driver, Library};
