//! `entc schema`: the JSON Schemas of what entc reads and writes.

use super::compare::Comparison;
use super::explore::Exploration;
use super::simulate::Simulation;
use crate::arguments::{Schema, SchemaOf};
use crate::exit::{Exit, Stop};
use crate::render::json;
use crate::report::machine::{ChangesReport, DriftReport, Event, Findings, ImportReport, Observation};
use crate::terminal::Terminal;
use ent_plan::performance::FittedModels;
use ent_plan::plan::Plan;
use schemars::schema_for;

/// Prints a schema (JSON Schema 2020-12).
pub(super) fn run(arguments: &Schema, terminal: &Terminal) -> Result<Exit, Stop> {
    let schema = match arguments.of {
        SchemaOf::Plan => schema_for!(Plan).to_value(),
        SchemaOf::Report => crate::report::schema(),
        SchemaOf::Diagnostics => schema_for!(json::Report).to_value(),
        SchemaOf::Performance => schema_for!(FittedModels).to_value(),
        SchemaOf::Benchmark => schema_for!(super::bench::Benchmark).to_value(),
        SchemaOf::Simulation => schema_for!(Simulation<'_>).to_value(),
        SchemaOf::Comparison => schema_for!(Comparison).to_value(),
        SchemaOf::Exploration => schema_for!(Exploration).to_value(),
        SchemaOf::Observation => schema_for!(Observation<'_>).to_value(),
        SchemaOf::Changes => schema_for!(ChangesReport).to_value(),
        SchemaOf::Drift => schema_for!(DriftReport).to_value(),
        SchemaOf::Imported => schema_for!(ImportReport).to_value(),
        SchemaOf::Findings => schema_for!(Findings).to_value(),
        SchemaOf::Event => schema_for!(Event).to_value(),
    };
    terminal.result(&json::text(&schema))?;
    Ok(Exit::Done)
}
