//! A plan → its boards to scale, and a table of every slice.

use super::{Section, cell, figure, named, table};
use crate::boards::{
    Content, Kind, MOST_DRAWN, batch, busy, draw, draw_unused, kinds, latency, share, watts,
};
use crate::quantity::few_watts;
use ent_plan::plan::{Plan, Unused};
use maud::{Markup, html};

/// Rows of the table of slices; a plan with more says how many are left out.
const MOST_ROWS: usize = 2000;

/// The boards, each kind once.
pub(super) fn boards(plan: &Plan) -> Option<Section> {
    let kinds = kinds(plan);
    let unused: Vec<&Unused> = plan.unused.iter().filter(|u| u.count > 0).collect();
    if kinds.is_empty() && unused.is_empty() {
        return None;
    }
    let n_left_out = kinds.len().saturating_sub(MOST_DRAWN);
    let body = html! {
        p class="note" {
            "Heights are memory slices (or shares of the threads), squares are compute slices, dashed is free. "
            "The line at the foot of a slice is how busy it is. "
            "Boards that are cut and used alike are drawn once. Watts are predicted."
        }
        @if n_left_out > 0 {
            p class="note" { strong { (n_left_out) " more kinds of boards" } " are not drawn; the table of slices has them." }
        }
        div class="boards" {
            @for (n, kind) in kinds.iter().take(MOST_DRAWN).enumerate() {
                (figure(&draw(&format!("board-{n}"), kind, plan), "board", &heading(kind)))
            }
            @for (n, unused) in unused.iter().take(MOST_DRAWN).enumerate() {
                (figure(&draw_unused(&format!("unused-{n}"), unused), "board", &unused_heading(unused)))
            }
        }
    };
    Some(Section { id: "boards", title: "Boards".to_owned(), body })
}

fn heading(kind: &Kind<'_>) -> Markup {
    let slices = kind.compute().map(|(all, used)| format!("{used} of {all} compute slices"));
    let free: u32 = kind.stretches().iter().filter(|s| s.content == Content::Free).map(|s| s.size).sum();
    let units = kind.units();
    let uuid = kind.first().filter(|_| kind.gpus.len() == 1).and_then(|gpu| gpu.uuid.as_deref());
    html! {
        h3 {
            (kind.name())
            @if kind.gpus.len() > 1 { " " span class="times" { "× " (kind.gpus.len()) } }
        }
        p { (kind.facts()) }
        @if let Some(uuid) = uuid { p class="uuid" { (cell(uuid)) } }
        p {
            "mean " strong { (kind.watts(|g| g.mean_power_w, |i| i.mean_dynamic_power_w)) }
            ", busy " (kind.watts(|g| g.power_w, |i| i.dynamic_power_w))
            ", of it base " (kind.watts(|g| g.base_power_w, |_| None))
        }
        @if let Some(slices) = slices { p { (units - free.min(units)) " of " (units) " memory slices, " (slices) } }
    }
}

fn unused_heading(unused: &Unused) -> Markup {
    let state = match (unused.is_off, unused.power_w) {
        (true, _) => "off: no power".to_owned(),
        (false, Some(watts)) => format!("idle at {} W each, predicted", few_watts(watts)),
        (false, None) => "idle, power unknown".to_owned(),
    };
    html! {
        h3 { (cell(&unused.node)) " " span class="times" { "× " (unused.count) " unused" } }
        p { (cell(&unused.board)) }
        p { (state) }
    }
}

/// Every slice of every kind of board.
pub(super) fn slices(plan: &Plan) -> Option<Section> {
    let kinds = kinds(plan);
    let mut rows = Vec::new();
    for kind in &kinds {
        let Some(gpu) = kind.first() else { continue };
        for position in 0..gpu.instances.len() {
            let instances = kind.at(position);
            let Some(first) = instances.first() else { continue };
            let index = plan.services.iter().position(|s| s.name == first.service);
            let place = first.start.map_or_else(|| "–".to_owned(), |start| start.to_string());
            rows.push(vec![
                cell(kind.name()),
                cell(share(first)),
                cell(place),
                named(&first.service, index, "none"),
                cell(batch(first)),
                cell(gpu.sm_clock_mhz.to_string()),
                cell(busy(&instances)),
                cell(latency(plan, &instances)),
                cell(watts(&instances, |i| i.mean_dynamic_power_w)),
                cell(watts(&instances, |i| i.dynamic_power_w)),
            ]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let n_left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    let head = [
        "board",
        "slice",
        "start",
        "service",
        "batch",
        "clock",
        "load",
        "latency",
        "mean (attributed)",
        "busy (attributed)",
    ];
    let body = html! {
        (table("Every slice: what runs on it, as predicted", &head, &rows))
        @if n_left_out > 0 {
            p class="note" { (n_left_out) " more rows are left out; `plan.json` has every board." }
        }
    };
    Some(Section { id: "slices", title: "Every slice".to_owned(), body })
}
