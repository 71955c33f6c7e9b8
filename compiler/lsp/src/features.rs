//! What the server can be asked, one module each: pure functions of a [`Snapshot`](crate::Snapshot).
//!
//! A file is named by its id, a place by its byte; answers are the protocol's own types.

pub mod actions;
pub mod completion;
pub mod diagnostics;
pub mod folding;
pub mod formatting;
pub mod hints;
pub mod hover;
pub mod lens;
pub mod links;
pub mod navigate;
pub mod selection;
pub mod symbols;
pub mod tokens;
