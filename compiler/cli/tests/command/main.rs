//! The binary, run: exit codes, what goes where, bad input of every kind.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod bad_input;
mod compare;
mod documents;
mod performance;
mod plan_file;
mod run;
mod simulate;
mod streams;
mod usage;
