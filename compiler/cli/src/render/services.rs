//! What each service gets → a table.

use super::board::{in_unit_of, latency};
use super::line::{Line, Role};
use super::plan::Canvas;
use super::quantity::number;
use super::table::{Column, table};
use ent_plan::plan::Plan;

/// Draws the table of services.
pub(crate) fn services(plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let mut columns = vec![
        Column::name("service"),
        Column::number("req/s"),
        Column::number("served"),
        Column::number("replicas"),
        Column::number("latency"),
    ];
    // One arrival process for all is said once.
    let same = plan.services.iter().all(|service| service.arrivals == plan.services[0].arrivals);
    if plan.services.is_empty() {
        return Vec::new();
    }
    let rows: Vec<Vec<Line>> = plan
        .services
        .iter()
        .map(|service| {
            let is_short = service.served_rps < service.rate_rps * (1.0 - 1e-6);
            let served = number(service.served_rps);
            let promised = service.promised_latency_ms;
            let mut row = vec![
                Line::of(Role::Name, &service.name),
                Line::plain(number(service.rate_rps)),
                if is_short { Line::of(Role::Bad, format!("{served} SHORT")) } else { Line::plain(served) },
                Line::plain(service.replicas.to_string()),
                match service.predicted_latency_ms {
                    Some(ms) => {
                        latency(Some(service.percentile), &in_unit_of(promised, ms), ms, promised, canvas)
                    }
                    None => Line::plain("not served"),
                },
            ];
            if !same {
                row.push(Line::plain(&service.arrivals));
            }
            row
        })
        .collect();
    let mut heading = Line::of(Role::Heading, "services");
    if same {
        heading.push(Role::Faint, format!("  arrivals {}", plan.services[0].arrivals));
    } else {
        columns.push(Column::word("arrivals"));
    }
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.extend(table(&columns, &rows, canvas.width, 2, canvas.symbols));
    lines.push(Line::new());
    lines
}
