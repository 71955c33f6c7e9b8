//! Fitted models → what they were fitted to, how far to trust them, and their coefficients.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::{number, percent};
use super::table::{Column, table};
use ent_plan::performance::FittedModel;

/// Draws the models of one file.
pub(crate) fn models(models: &[FittedModel], canvas: &Canvas) -> String {
    let mut lines = vec![Line::of(Role::Heading, "fitted models")];
    lines.extend(errors(models, canvas));
    for (board, source) in origins(models) {
        lines.extend(
            Line::of(Role::Faint, format!("  measured on {board}, from {source}")).wrapped(canvas.width, 4),
        );
    }
    for method in methods(models) {
        lines.extend(Line::of(Role::Faint, format!("  errors: {method}")).wrapped(canvas.width, 4));
    }
    if models.iter().any(|model| model.is_illustration) {
        let text = "  invented to illustrate: nobody measured these models";
        lines.extend(Line::of(Role::Warn, text).wrapped(canvas.width, 4));
    }
    if canvas.detail.explains() {
        lines.push(Line::new());
        lines.push(Line::of(Role::Heading, "coefficients"));
        lines.extend(coefficients(models, canvas));
    }
    page(&lines, canvas.color)
}

fn errors(models: &[FittedModel], canvas: &Canvas) -> Vec<Line> {
    const COLUMNS: [Column; 8] = [
        Column::name("model"),
        Column::number("samples"),
        Column::number("slices"),
        Column::number("batches"),
        Column::number("MHz"),
        Column::number("throughput error"),
        Column::number("latency error"),
        Column::number("power error"),
    ];
    let dash = canvas.symbols.dash;
    let list = |values: &[u32]| match values {
        [] => "none".to_owned(),
        [first] => first.to_string(),
        [first, .., last] => format!("{first}{dash}{last} ({})", values.len()),
    };
    let rows: Vec<Vec<Line>> = models
        .iter()
        .map(|model| {
            let [low, high] = model.clocks;
            vec![
                Line::of(Role::Name, &model.model),
                Line::plain(model.n_measurements.to_string()),
                Line::plain(list(&model.slices)),
                Line::plain(list(&model.batches)),
                Line::plain(format!("{}{dash}{}", low.0, high.0)),
                Line::plain(percent(model.errors.throughput_mean)),
                Line::plain(percent(model.errors.latency_mean)),
                Line::plain(model.errors.power_mean.map_or_else(|| "no power".to_owned(), percent)),
            ]
        })
        .collect();
    table(&COLUMNS, &rows, canvas.width, 2, canvas.symbols)
}

fn coefficients(models: &[FittedModel], canvas: &Canvas) -> Vec<Line> {
    const COLUMNS: [Column; 11] = [
        Column::name("model"),
        Column::number("serial ms GHz"),
        Column::number("work/req ms GHz"),
        Column::number("work/batch ms GHz"),
        Column::number("mem/batch ms"),
        Column::number("mem/req ms"),
        Column::number("host/batch ms"),
        Column::number("host/req ms"),
        Column::number("mJ/batch"),
        Column::number("mJ/req"),
        Column::number("W/slice"),
    ];
    let rows: Vec<Vec<Line>> = models
        .iter()
        .map(|model| {
            let c = &model.coefficients;
            let mut row = vec![Line::of(Role::Name, &model.model)];
            row.extend(
                [
                    c.serial,
                    c.work_each,
                    c.work_batch,
                    c.memory_batch,
                    c.memory_each,
                    c.host_batch,
                    c.host_each,
                    c.energy_batch,
                    c.energy_each,
                    c.slice_power,
                ]
                .map(|value| Line::plain(number(value))),
            );
            row
        })
        .collect();
    table(&COLUMNS, &rows, canvas.width, 2, canvas.symbols)
}

/// Boards and sources, each pair once.
fn origins(models: &[FittedModel]) -> Vec<(&str, &str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for model in models {
        let origin = (model.board.as_str(), model.source.as_str());
        if !found.contains(&origin) {
            found.push(origin);
        }
    }
    found
}

/// How errors were measured, each way once.
fn methods(models: &[FittedModel]) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for model in models {
        if !found.contains(&model.errors.method.as_str()) {
            found.push(&model.errors.method);
        }
    }
    found
}
