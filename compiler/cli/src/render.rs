//! Plans, machines, diagnostics and models → what a person or a program reads. Nothing here prints.

pub(crate) mod alternatives;
pub(crate) mod bar;
pub(crate) mod benchmark;
pub(crate) mod board;
pub(crate) mod changes;
pub(crate) mod comparison;
pub(crate) mod diagnostic;
pub(crate) mod doctor;
pub(crate) mod drift;
pub(crate) mod front;
pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod observed;
pub(crate) mod performance;
pub(crate) mod plan;
pub(crate) mod quantity;
pub(crate) mod sarif;
pub(crate) mod services;
pub(crate) mod serving;
pub(crate) mod simulation;
pub(crate) mod svg;
pub(crate) mod symbols;
pub(crate) mod table;
pub(crate) mod top;
pub(crate) mod totals;
pub(crate) mod transaction;
