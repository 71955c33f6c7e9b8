//! The worker as its supervisor starts it and its gateway speaks to it: a real process, real frames.

#![cfg(test)]

mod gateway;
mod modelled;
#[cfg(feature = "torch")]
mod torch;
