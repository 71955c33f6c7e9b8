//! What a service could have had instead → a table of what that would cost.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::metric;
use super::table::{Column, table as draw};
use ent_picture::{Alternative, Answer, change};
use ent_plan::plan::Plan;

/// Draws the alternatives, the cheapest first.
pub(crate) fn table(service: &str, plan: &Plan, alternatives: &[Alternative], canvas: &Canvas) -> String {
    const COLUMNS: [Column; 4] = [
        Column::word("choice"),
        Column::number("objective"),
        Column::number("change"),
        Column::word("how sure"),
    ];
    let value = plan.objective.value.unwrap_or(f64::NAN);
    let of = plan.objective.metric;
    let mut sorted: Vec<&Alternative> = alternatives.iter().collect();
    sorted.sort_by(|a, b| a.answer.rank().total_cmp(&b.answer.rank()));
    let rows: Vec<Vec<Line>> = sorted
        .iter()
        .map(|alternative| {
            let mut row = vec![Line::plain(&alternative.choice)];
            let role = match alternative.answer {
                Answer::Proven(_) => Role::Plain,
                Answer::Found(_) | Answer::NotTried => Role::Warn,
                Answer::Impossible => Role::Bad,
            };
            match alternative.answer.value() {
                Some(other) => {
                    row.push(Line::plain(metric(of, other)));
                    row.push(Line::plain(change(value, other)));
                }
                None => row.extend([Line::new(), Line::new()]),
            }
            row.push(Line::of(role, alternative.answer.words()));
            row
        })
        .collect();
    let heading = Line::of(Role::Heading, "instead").and(
        Role::Faint,
        format!(
            "  every instance of {service} as said, all else planned anew; chosen: {}",
            metric(of, value)
        ),
    );
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.extend(draw(&COLUMNS, &rows, canvas.width, 2, canvas.symbols));
    page(&lines, canvas.color)
}
