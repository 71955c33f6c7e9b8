//! Every way to cut a board is reached from every other, on simulated machines and by the real calls; and
//! whatever somebody else does to a machine meanwhile, what is theirs stays.
//!
//! `ENT_LAYOUTS=all` goes through what is only sampled otherwise (834,000 pairs, for hours); the id of a board
//! does so on that board alone.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops when what it needs is not there")]

mod foreign;
mod lab;
mod placements;
mod reach;
mod tour;
