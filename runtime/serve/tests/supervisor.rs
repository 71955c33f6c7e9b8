//! The supervisor with real workers: what it keeps running, and what clients see of its changes.

#![cfg(test)]

#[path = "supervisor/changes.rs"]
mod changes;
#[path = "supervisor/running.rs"]
mod running;
#[path = "supervisor/yard.rs"]
mod yard;
