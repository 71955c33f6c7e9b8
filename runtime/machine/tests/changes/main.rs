//! Machines and wishes → steps: their exact text, their effect on a model machine, their number against a
//! trial of every placement.

mod binding;
mod exhaustive;
mod model;
mod preflight;
mod properties;
mod texts;
