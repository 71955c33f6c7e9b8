//! A plan → watts by cause and latencies beside their promises, each as a chart and as a table.

use super::{Section, cell, figure, named, table};
use crate::chart::DrawError;
use crate::latency;
use crate::quantity::{few_watts, number, percent};
use crate::watts::{Cause, causes, draw};
use ent_plan::plan::{LatencyRule, Plan};
use maud::{Markup, html};

/// Where the watts go.
pub(super) fn watts(plan: &Plan) -> Result<Option<Section>, DrawError> {
    let causes = causes(plan);
    if causes.is_empty() {
        return Ok(None);
    }
    let chart = draw(plan).transpose()?;
    let total = plan.metrics.mean_power_w;
    let mut rows: Vec<Vec<Markup>> = causes.iter().map(|cause| row(cause, total)).collect();
    let band = |value: fn(&Cause) -> f64| causes.iter().map(value).sum::<f64>();
    rows.push(vec![
        html! { strong { "together" } },
        html! { strong { (with_band(plan.metrics.mean_power_w, band(|c| c.mean_band))) } },
        cell("100 %"),
        html! { strong { (with_band(plan.metrics.power_w, band(|c| c.busy_band))) } },
        cell("predicted"),
    ]);
    let head = ["cause", "mean at the offered load", "share", "everything busy", "how it is known"];
    let body = html! {
        p class="note" {
            "A board's watts are its base power and the dynamic power attributed to each of its instances; "
            "what one instance does to another is not counted. Predicted: by a model fitted to measurements; "
            "extrapolated: beyond them."
        }
        div class="pair" {
            @if let Some(chart) = &chart {
                (figure(chart, "chart", &html! { h3 { "Mean and busy" } p { "to one scale (W), predicted" } }))
            } @else {
                p { "A board or a model has no power data, so the watts are not known." }
            }
            (table("Watts by cause", &head, &rows))
        }
    };
    Ok(Some(Section { id: "watts", title: "Watts by cause".to_owned(), body }))
}

fn with_band(value: Option<f64>, band: f64) -> String {
    match value {
        Some(w) if band > 0.0 => format!("{} ± {} W", few_watts(w), few_watts(band)),
        Some(w) => format!("{} W", few_watts(w)),
        None => "unknown".to_owned(),
    }
}

fn row(cause: &Cause, total: Option<f64>) -> Vec<Markup> {
    let share = cause.mean_w.zip(total).filter(|(_, total)| *total > 0.0).map(|(w, total)| w / total);
    let class = if cause.name == "idle boards" { "idle" } else { "base" };
    vec![
        named(&cause.name, cause.service, class),
        cell(with_band(cause.mean_w, cause.mean_band)),
        cell(share.map_or_else(|| "–".to_owned(), percent)),
        cell(with_band(cause.busy_w, cause.busy_band)),
        cell(&cause.known),
    ]
}

/// Whether promises are kept, and by how much.
pub(super) fn promises(plan: &Plan) -> Result<Option<Section>, DrawError> {
    let all = latency::all(plan);
    if all.is_empty() {
        return Ok(None);
    }
    let chart = latency::draw(plan).transpose()?;
    let rule = match plan.latency_rule {
        LatencyRule::Queueing => {
            "Latency is what a client sees: waiting for a batch, queueing and execution."
        }
        LatencyRule::Execution => {
            "Latency is the execution of a full batch only (the published papers' rule): waiting and queueing \
             are not in it."
        }
    };
    let rows: Vec<Vec<Markup>> = all
        .iter()
        .map(|kept| {
            let service = kept.service;
            let is_short = service.served_rps < service.rate_rps * (1.0 - 1e-6);
            let (word, class) = match kept.share {
                None => ("not served", "bad"),
                Some(_) if is_short => ("short of its rate", "bad"),
                Some(share) if share > 1.0 => ("broken", "bad"),
                Some(share) if share * (1.0 + kept.band) > 1.0 => ("kept, within the band", "open"),
                Some(_) => ("kept", "good"),
            };
            let band =
                if kept.band > 0.0 { format!("± {}", percent(kept.band)) } else { "unknown".to_owned() };
            vec![
                named(&service.name, Some(kept.index), "none"),
                cell(latency::words(service)),
                cell(kept.share.map_or_else(|| "–".to_owned(), percent)),
                cell(band),
                cell(format!("{} of {}", number(service.served_rps), number(service.rate_rps))),
                cell(service.replicas.to_string()),
                cell(&service.arrivals),
                html! { span class=(class) { (word) } },
            ]
        })
        .collect();
    let head = [
        "service",
        "predicted and promised",
        "of the promise",
        "band of times",
        "served (req/s)",
        "replicas",
        "arrivals",
        "promise",
    ];
    let n_left_out = all.len().saturating_sub(latency::MOST_DRAWN);
    let body = html! {
        p class="note" { (rule) }
        @if let Some(chart) = &chart {
            (figure(chart, "chart", &html! {
                h3 { "Predicted latency" }
                p { "as a share of what is promised; whiskers are one standard deviation of the predicted times"
                    @if n_left_out > 0 { "; the " (latency::MOST_DRAWN) " nearest to their promise of " (all.len()) }
                }
            }))
        }
        (table("Promises, as predicted", &head, &rows))
    };
    Ok(Some(Section { id: "promises", title: "Promises".to_owned(), body }))
}
