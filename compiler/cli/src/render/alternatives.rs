//! What a service could have had instead → a table of what that would cost.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::{digits, metric};
use super::table::{Column, table as draw};
use ent_plan::plan::Plan;

/// Another choice for all instances of a service.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alternative {
    /// In words that complete "every instance …".
    pub(crate) choice: String,
    /// What the best plan with it is worth.
    pub(crate) answer: Answer,
}

/// The best plan with an alternative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The objective of a plan that is proven best.
    Proven(f64),
    /// The objective of the best plan found.
    Found(f64),
    /// No plan keeps all promises.
    Impossible,
    /// There was no time.
    NotTried,
}

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
    let rank = |answer: Answer| match answer {
        Answer::Proven(value) | Answer::Found(value) => value,
        Answer::Impossible => f64::MAX,
        Answer::NotTried => f64::INFINITY,
    };
    sorted.sort_by(|a, b| rank(a.answer).total_cmp(&rank(b.answer)));
    let rows: Vec<Vec<Line>> = sorted
        .iter()
        .map(|alternative| {
            let mut row = vec![Line::plain(&alternative.choice)];
            let (words, role) = match alternative.answer {
                Answer::Proven(_) => ("proven", Role::Plain),
                Answer::Found(_) => ("best found in its time", Role::Warn),
                Answer::Impossible => ("no plan keeps all promises", Role::Bad),
                Answer::NotTried => ("not tried: no time left", Role::Warn),
            };
            match alternative.answer {
                Answer::Proven(other) | Answer::Found(other) => {
                    row.push(Line::plain(metric(of, other)));
                    row.push(Line::plain(change(value, other)));
                }
                Answer::Impossible | Answer::NotTried => row.extend([Line::new(), Line::new()]),
            }
            row.push(Line::of(role, words));
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

fn change(value: f64, other: f64) -> String {
    let share = (other - value) / value.abs() * 100.0;
    // Below the solver's own tolerance two plans are alike.
    if share.abs() < 1e-4 {
        "0 %".to_owned()
    } else {
        format!("{}{} %", if share > 0.0 { "+" } else { "" }, digits(share, 3))
    }
}
