//! A front → a table of its plans, and what they do not say.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::watts;
use super::table::{Column, table};
use ent_picture::{Axis, Front};
use ent_plan::plan::{Metric, Status};

/// Draws a front.
pub(crate) fn front(program: &str, front: &Front, canvas: &Canvas) -> String {
    let has_boards = [front.x, front.y].contains(&Axis::Metric(Metric::Gpus));
    let mut columns = vec![
        Column::number(if front.x == Axis::LatencySlack { "promises" } else { front.x.name() }),
        Column::number(front.y.name()),
        Column::number("bound"),
        Column::number("mean power"),
        Column::word("how sure"),
    ];
    if !has_boards {
        columns.insert(3, Column::number("boards"));
    }
    let rows: Vec<Vec<Line>> = front
        .points
        .iter()
        .map(|point| {
            let proof = if point.status == Status::Optimal { Role::Good } else { Role::Plain };
            let mut row = vec![
                Line::of(Role::Heading, front.x.shown(point.x)),
                Line::of(Role::Name, front.y.shown(point.y)),
                Line::plain(point.bound.map_or_else(|| "-".to_owned(), |bound| front.y.shown(bound))),
                Line::plain(point.mean_power_w.map_or_else(|| "unknown".to_owned(), watts)),
                Line::of(proof, point.proof()),
            ];
            if !has_boards {
                row.insert(3, Line::plain(point.gpus.to_string()));
            }
            row
        })
        .collect();
    let heading = Line::of(Role::Heading, program)
        .and(Role::Plain, format!("  {} against {}; watts are predicted", front.y.name(), front.x.name()));
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.extend(table(&columns, &rows, canvas.width, 2, canvas.symbols));
    for note in &front.notes {
        lines.extend(Line::of(Role::Faint, format!("  {note}")).wrapped(canvas.width, 4));
    }
    page(&lines, canvas.color)
}
