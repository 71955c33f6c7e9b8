//! Machines and wishes → steps: their exact text, their effect on a model machine, their number against a
//! trial of every placement.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot run has failed")]

mod binding;
mod exhaustive;
mod model;
mod preflight;
mod properties;
mod texts;
