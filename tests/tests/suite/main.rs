//! The suite: documents are true, examples keep their promises, optima are optimal.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod determinism;
mod examples;
mod exhaustive;
mod forged;
mod optima;
mod pages;
mod policy;
mod published;
mod site;
mod small;
