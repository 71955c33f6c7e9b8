//! `entc schema`: the JSON Schemas of what entc reads and writes.

use crate::arguments::{Schema, SchemaOf};
use crate::exit::{Exit, Stop};
use crate::render::json;
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
    };
    terminal.result(&json::text(&schema))?;
    Ok(Exit::Done)
}
