//! Tbd.
