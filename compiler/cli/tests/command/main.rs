//! The binary, run: exit codes, what goes where, bad input of every kind.

mod bad_input;
mod plan_file;
mod run;
mod streams;
mod usage;
