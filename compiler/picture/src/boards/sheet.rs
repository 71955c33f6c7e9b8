//! A plan → one SVG file: its status, and its boards side by side.

use super::{MOST_DRAWN, draw, draw_unused, kinds};
use crate::chart::Drawing;
use crate::page::{status_words, value_words};
use crate::palette::{FAINT, INK};
use crate::text::cut;
use ent_plan::plan::Plan;
use maud::{Markup, PreEscaped, html};

/// Around the boards and between them.
const MARGIN: u32 = 24;
/// Height of what stands above a board.
const HEADING: u32 = 62;
/// Boards in a row.
const COLUMNS: usize = 4;
/// Height of the title.
const TITLE: u32 = 78;
/// Height of the last line.
const FOOT: u32 = 40;

/// Draws the sheet.
pub(crate) fn sheet(plan: &Plan) -> String {
    let kinds = kinds(plan);
    let mut cards: Vec<(Vec<String>, Drawing)> = kinds
        .iter()
        .take(MOST_DRAWN)
        .enumerate()
        .map(|(n, kind)| {
            let times =
                if kind.gpus.len() > 1 { format!(" (× {})", kind.gpus.len()) } else { String::new() };
            let lines = vec![
                format!("{}{times}", kind.name()),
                kind.facts(),
                format!(
                    "mean {} predicted, of it base {}",
                    kind.watts(|g| g.mean_power_w, |i| i.mean_dynamic_power_w),
                    kind.watts(|g| g.base_power_w, |_| None)
                ),
            ];
            (lines, draw(&format!("board-{n}"), kind, plan))
        })
        .collect();
    for (n, unused) in plan.unused.iter().filter(|u| u.count > 0).enumerate() {
        let draws = match (unused.is_off, unused.power_w) {
            (true, _) => "no power".to_owned(),
            (false, Some(watts)) => format!("{} W each, predicted", crate::quantity::few_watts(watts)),
            (false, None) => "power unknown".to_owned(),
        };
        let lines = vec![format!("{}: {} × unused", unused.node, unused.count), unused.board.clone(), draws];
        cards.push((lines, draw_unused(&format!("unused-{n}"), unused)));
    }
    let columns = cards.len().clamp(1, COLUMNS);
    let card_width = super::drawing::WIDTH;
    let n_columns = u32::try_from(columns).unwrap_or(1);
    let width = MARGIN + n_columns * (card_width + MARGIN);
    let mut body = title(plan, f64::from(width - 2 * MARGIN)).into_string();
    let mut y = TITLE;
    for row in cards.chunks(columns) {
        let tallest = row.iter().map(|(_, drawing)| drawing.height).max().unwrap_or(0);
        for (n, (lines, drawing)) in row.iter().enumerate() {
            let x = MARGIN + u32::try_from(n).unwrap_or(0) * (card_width + MARGIN);
            body.push_str(&card(x, y, lines, drawing).into_string());
        }
        y += HEADING + tallest + MARGIN;
    }
    body.push_str(&foot(plan, kinds.len().saturating_sub(MOST_DRAWN), y).into_string());
    let told: Vec<&str> = cards.iter().map(|(_, drawing)| drawing.title.as_str()).collect();
    Drawing {
        id: "plan".to_owned(),
        width,
        height: y + FOOT,
        title: format!("Plan of {}: {}", plan.program, status_words(plan)),
        description: format!("{}. {}", value_words(plan), told.join("; ")),
        body,
    }
    .standalone()
}

fn title(plan: &Plan, width: f64) -> Markup {
    html! {
        text x=(MARGIN) y="36" font-size="19" font-weight="600" fill=(INK.hex()) { (cut(&plan.program, width, 19.0)) }
        text x=(MARGIN) y="60" font-size="13" fill=(FAINT.hex()) {
            (cut(&format!("{} · {}", status_words(plan), value_words(plan)), width, 12.0))
        }
    }
}

fn card(x: u32, y: u32, lines: &[String], drawing: &Drawing) -> Markup {
    html! {
        g transform={ "translate(" (x) " " (y) ")" } {
            title { (crate::text::plain(&drawing.title)) }
            @for ((n, line), at) in lines.iter().enumerate().zip(["14", "32", "49"]) {
                text x="0" y=(at) font-size=(if n == 0 { 14 } else { 12 })
                    font-weight=[(n == 0).then_some("600")]
                    fill=(if n == 0 { INK } else { FAINT }.hex()) {
                    (cut(line, f64::from(drawing.width), if n == 0 { 14.0 } else { 12.0 }))
                }
            }
            g transform={ "translate(0 " (HEADING) ")" } { (PreEscaped(&drawing.body)) }
        }
    }
}

fn foot(plan: &Plan, n_left_out: usize, y: u32) -> Markup {
    let left_out = if n_left_out > 0 {
        format!("{n_left_out} more kinds of boards are not drawn · ")
    } else {
        String::new()
    };
    html! {
        text x=(MARGIN) y=(y + 14) font-size="11" fill=(FAINT.hex()) {
            (left_out) "slices by memory, squares are compute slices · entc " (plan.entc_version)
        }
    }
}
