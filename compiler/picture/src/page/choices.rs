//! Curves, alternatives and fronts that the caller found → their sections; where nobody looked, how to.

use super::{Axis, Front, FrontPoint, Section, cell, figure, front, named, table};
use crate::chart::DrawError;
use crate::curve::{self, Curve};
use crate::quantity::{few_watts, metric, number, percent, watts};
use crate::{Alternatives, Answer, change};
use ent_plan::plan::{Metric, Plan};
use maud::{Markup, html};

/// Curves that are drawn; the sentence below says how many are not.
const MOST_CURVES: usize = 36;

/// Dynamic power over the clock, of every operating point that was chosen.
pub(super) fn curves(plan: &Plan, curves: Option<&[Curve]>) -> Result<Option<Section>, DrawError> {
    if plan.gpus.is_empty() {
        return Ok(None);
    }
    let title = "Clocks and watts".to_owned();
    let Some(curves) = curves else {
        let body = html! {
            p class="note" {
                "A saved plan has no performance models, so other clocks are not known here. "
                "Plan the spec with " code { "entc plan SPEC --html FILE" } " to see them."
            }
        };
        return Ok(Some(Section { id: "clocks", title, body }));
    };
    if curves.is_empty() {
        return Ok(None);
    }
    let mut figures = Vec::new();
    for (n, curve) in curves.iter().take(MOST_CURVES).enumerate() {
        let index = plan.services.iter().position(|s| s.name == curve.service).unwrap_or(0);
        let drawing = curve::draw(&format!("curve-{n}"), curve, index)?;
        let at = curve.points.iter().find(|p| p.clock == curve.chosen);
        let caption = html! {
            h3 { (cell(&curve.service)) }
            p { (cell(&curve.point)) " at " strong { (curve.chosen.to_string()) } }
            p {
                (known(&curve.source))
                @if curve.power_error > 0.0 { ", band ± " (percent(curve.power_error)) }
                @if let Some(at) = at { "; " (number(at.joules_per_request)) " J a request" }
            }
        };
        figures.push(figure(&drawing, "chart", &caption));
    }
    let n_left_out = curves.len().saturating_sub(MOST_CURVES);
    let body = html! {
        p class="note" {
            "What each chosen slice would draw at other clocks, its batch and size kept. "
            "The ring is the clock that was chosen; a board has one clock for all its slices. "
            "A hollow mark: at that clock the promise does not hold at the planned rate."
        }
        div class="charts" { @for figure in &figures { (figure) } }
        @if n_left_out > 0 { p class="note" { (n_left_out) " more operating points are not drawn." } }
    };
    Ok(Some(Section { id: "clocks", title, body }))
}

fn known(source: &str) -> &'static str {
    match source {
        "table" => "measured rows",
        "fitted" => "predicted by a fitted model",
        "extrapolated" => "predicted beyond what was measured",
        _ => "predicted",
    }
}

/// What else each service could have had.
pub(super) fn alternatives(plan: &Plan, all: Option<&[Alternatives]>) -> Option<Section> {
    let value = plan.objective.value?;
    let of = plan.objective.metric;
    let title = "Alternatives".to_owned();
    let Some(all) = all else {
        let body = html! {
            p class="note" {
                "Not looked for: each alternative takes a plan of its own. "
                code { "entc plan SPEC --html FILE --alternatives" } " pins each and plans the rest anew."
            }
        };
        return Some(Section { id: "alternatives", title, body });
    };
    let mut rows = Vec::new();
    for of_service in all {
        let index = plan.services.iter().position(|s| s.name == of_service.service);
        let mut choices: Vec<_> =
            of_service.choices.iter().filter_map(|c| Some((c, c.answer.value()?))).collect();
        choices.sort_by(|a, b| a.1.total_cmp(&b.1));
        for (choice, other) in choices {
            rows.push(vec![
                named(&of_service.service, index, "none"),
                cell(&choice.choice),
                cell(metric(of, other)),
                cell(change(value, other)),
                cell(choice.answer.words()),
            ]);
        }
        // What has no value is told together.
        for answer in [Answer::Impossible, Answer::NotTried] {
            let choices: Vec<&str> =
                of_service.choices.iter().filter(|c| c.answer == answer).map(|c| c.choice.as_str()).collect();
            if !choices.is_empty() {
                rows.push(vec![
                    named(&of_service.service, index, "none"),
                    cell(choices.join(", ")),
                    cell("–"),
                    cell("–"),
                    cell(answer.words()),
                ]);
            }
        }
    }
    let body = html! {
        p class="note" {
            "Every instance of the service as said, everything else planned anew; the plan above is worth "
            strong { (metric(of, value)) } "."
        }
        (table("Next-best choices for each service, cheapest first", &["service", "choice", of.word(), "change", "how sure"], &rows))
    };
    Some(Section { id: "alternatives", title, body })
}

/// The objective against boards and against latency.
pub(super) fn fronts(plan: &Plan, fronts: Option<&[Front]>) -> Result<Option<Section>, DrawError> {
    if plan.gpus.is_empty() {
        return Ok(None);
    }
    let title = "Trade-offs".to_owned();
    let Some(fronts) = fronts else {
        let body = html! {
            p class="note" {
                "Not looked for: each point takes a plan of its own. "
                code { "entc plan SPEC --html FILE --fronts" } " plans them, "
                code { "entc explore SPEC --over power,gpus" } " any other pair."
            }
        };
        return Ok(Some(Section { id: "fronts", title, body }));
    };
    if fronts.is_empty() {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for (n, front) in fronts.iter().enumerate() {
        parts.push(front_body(front, &format!("front-{n}"))?);
    }
    let body = html! {
        p class="note" { "The ring is the plan of this page." }
        @for part in &parts { (part) }
    };
    Ok(Some(Section { id: "fronts", title, body }))
}

/// A front as a chart and as a table, with what is to be known of it.
pub(super) fn front_body(front: &Front, id: &str) -> Result<Markup, DrawError> {
    let drawing = front::draw(front, id)?;
    let rows: Vec<Vec<Markup>> = front.points.iter().map(|point| row(front, point)).collect();
    let caption = html! {
        h3 { (front.y.name()) " against " (front.x.name()) }
        p { "A filled mark is proven optimal; a whisker ends at the bound, below which no plan is." }
    };
    let x_title = if front.x == Axis::LatencySlack { "promises" } else { front.x.name() };
    let mut head = vec![x_title, front.y.name(), "bound", "how sure"];
    let has_own_gpus = [front.x, front.y].contains(&Axis::Metric(Metric::Gpus));
    if !has_own_gpus {
        head.push("boards");
    }
    head.push("mean power (predicted)");
    Ok(html! {
        div class="pair" {
            (figure(&drawing, "chart", &caption))
            (table(&format!("{} against {}: each row is a plan", front.y.name(), front.x.name()), &head, &rows))
        }
        @if !front.notes.is_empty() {
            ul class="notes" { @for note in &front.notes { li { (cell(note)) } } }
        }
    })
}

fn row(front: &Front, point: &FrontPoint) -> Vec<Markup> {
    let x = front.x.shown(point.x);
    let mut row = vec![
        html! {
            (x)
            @if point.is_chosen {
                " " strong { (if front.x == Axis::LatencySlack { "the spec as it is" } else { "this plan" }) }
            }
        },
        cell(front.y.shown(point.y)),
        cell(point.bound.map_or_else(|| "–".to_owned(), |bound| front.y.shown(bound))),
        cell(point.proof()),
    ];
    if ![front.x, front.y].contains(&Axis::Metric(Metric::Gpus)) {
        row.push(cell(point.gpus.to_string()));
    }
    row.push(cell(point.mean_power_w.map_or_else(
        || "unknown".to_owned(),
        |w| {
            if w < 1e4 { format!("{} W", few_watts(w)) } else { watts(w) }
        },
    )));
    row
}
