//! Fits the built-in models of the A100 80GB PCIe and prints their file.
//!
//! Run with `ENT_DATA=FOLDER cargo run --release -p ent-performance --example fit_catalogue >
//! specs/performance/a100-80gb-pcie.json`. The measurements stay where they are: the file holds
//! coefficients, residual weights and error statistics.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a tool of the house prints, and stops when it cannot run"
)]

use ent_performance::{fit, import};
use ent_plan::diagnostic::{FileId, Span};
use ent_plan::performance::{FittedModel, PerformanceTable};
use serde_json::Value;

const BOARD: &str = "a100-80gb-pcie";
const SOURCE: &str = "fitted from the public EnerTune artefact (UT-SysML/EnerTune), A100 80GB PCIe";

fn main() {
    let root = std::env::var_os("ENT_DATA").expect("ENT_DATA names the folder of the public measurements");
    let path = std::path::Path::new(&root).join("enertune/model_datastore.csv");
    let text = std::fs::read_to_string(path).expect("the measurements can be read");
    let board = ent_plan::device::board(BOARD).expect("the board is in the catalogue");
    let boards = [board.clone()];
    let context = import::Context { boards: &boards, board: Some(0), model: None, source: SOURCE };
    let mut tables = import::measurements(&text, FileId(0), &context).value;
    tables.sort_by(|a, b| a.model.cmp(&b.model));
    let knowledge = fit::learn(&tables.iter().collect::<Vec<&PerformanceTable>>(), &board);
    let models: Vec<FittedModel> = tables
        .iter()
        .map(|t| {
            fit::fit_model(t, &board, &knowledge, Span::default()).value.expect("the table can be fitted")
        })
        .collect();
    let file = fit::file(Some(knowledge), models);
    let mut value = serde_json::to_value(&file).expect("a fitted file is JSON");
    round(&mut value);
    // One model a line, so that a change to one is a change of one line.
    let line = |v: &Value| serde_json::to_string(v).expect("a value is JSON");
    println!("{{");
    println!("\"format_version\": {},", line(&value["format_version"]));
    println!("\"knowledge\": {},", line(&value["knowledge"]));
    println!("\"models\": [");
    let models: Vec<String> = value["models"].as_array().into_iter().flatten().map(line).collect();
    println!("{}", models.join(",\n"));
    println!("]\n}}");
}

/// Nine digits: far finer than any measurement, and the same on every machine.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.8e}", number.as_f64().expect("a float"));
            *value = serde_json::from_str(&text).expect("a number");
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
