//! The binary, run: exit codes, what goes where, bad input of every kind.

#![expect(clippy::unwrap_used, reason = "a test that cannot run has failed")]

mod apply;
mod bad_input;
mod compare;
mod cut_off;
mod documents;
mod explore;
mod machine;
mod performance;
mod pictures;
mod plan_file;
mod refused;
mod run;
mod serving;
mod simulate;
mod streams;
mod usage;
