//! What each service gets → a table.

use super::board::{in_unit_of, latency};
use super::line::{Line, Role};
use super::plan::Canvas;
use super::quantity::number;
use super::table::{Column, table};
use ent_plan::plan::Plan;

/// Draws the table of services.
pub(crate) fn services(plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    const COLUMNS: [Column; 6] = [
        Column::name("service"),
        Column::number("rate/s"),
        Column::number("served/s"),
        Column::number("replicas"),
        Column::number("latency"),
        Column::word("arrivals"),
    ];
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
            vec![
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
                Line::plain(&service.arrivals),
            ]
        })
        .collect();
    let mut lines = vec![Line::of(Role::Heading, "services")];
    lines.extend(table(&COLUMNS, &rows, canvas.width, 2, canvas.symbols));
    lines.push(Line::new());
    lines
}
