//! A plan → its JSON: `plan.json`, which is the same for the same program, and the report of one run.

use crate::exit::Stop;
use crate::render::json::Shown;
use ent_plan::plan::Plan;
use schemars::schema_for;
use serde_json::{Map, Value, json};

pub(crate) mod machine;

/// The plan file. No date, no elapsed time: the same program gives the same bytes.
///
/// # Errors
/// Never for a plan that was checked; JSON cannot hold every map.
pub(crate) fn plan_file(plan: &Plan) -> Result<String, Stop> {
    let text = serde_json::to_string_pretty(plan).map_err(|error| {
        Stop::refused("cannot-write", format!("the plan cannot be written as JSON: {error}"))
    })?;
    Ok(text + "\n")
}

/// What `entc plan --format json` prints: the plan, with what is true of this run only, and with
/// diagnostics in full.
pub(crate) fn run_report(plan: &Plan, solve_seconds: f64, planned_at: &str, diagnostics: &[Shown]) -> Value {
    let mut fields = Map::new();
    for (name, value) in json!(plan).as_object().cloned().unwrap_or_default() {
        let is_planner = name == "planner";
        if name == "diagnostics" {
            fields.insert(name, json!(diagnostics));
        } else {
            fields.insert(name, value);
        }
        if is_planner {
            fields.insert("solve_seconds".to_owned(), json!(solve_seconds));
            fields.insert("planned_at".to_owned(), json!(planned_at));
        }
    }
    Value::Object(fields)
}

/// The schema of [`run_report`].
pub(crate) fn schema() -> Value {
    let mut schema = schema_for!(Plan).to_value();
    let diagnostics = schema_for!(Vec<Shown>).to_value();
    let facts = [
        ("solve_seconds", json!({ "type": "number", "description": "How long planning took (s)." })),
        (
            "planned_at",
            json!({ "type": "string", "format": "date-time", "description": "When it was planned." }),
        ),
        (
            "diagnostics",
            json!({ "type": "array", "description": "Everything there is to say.", "items": diagnostics["items"] }),
        ),
    ];
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.extend(facts.map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.extend([json!("solve_seconds"), json!("planned_at")]);
    }
    if let (Some(all), Some(more)) =
        (schema.get_mut("$defs").and_then(Value::as_object_mut), diagnostics["$defs"].as_object())
    {
        all.extend(more.clone());
    }
    schema["title"] = json!("Report");
    schema["description"] =
        json!("What `entc plan --format json` prints: a plan, and what is true of one run.");
    schema
}
