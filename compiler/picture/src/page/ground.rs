//! A plan → what its numbers rest on, what it warns of, and which plan it is.

use super::{Section, cell};
use crate::quantity::{metric, percent, seconds};
use ent_plan::plan::{LatencyRule, Metric, Note, Plan};
use maud::{Markup, html};

/// Warnings and, where there is no plan, what stands in the way.
pub(super) fn warnings(plan: &Plan) -> Option<Section> {
    if plan.diagnostics.is_empty() {
        return None;
    }
    let body = html! { ul class="diagnostics" { @for note in &plan.diagnostics { (diagnostic(note)) } } };
    let is_error = plan.diagnostics.iter().any(|note| note.severity == "error");
    let title = if is_error { "What stands in the way" } else { "Warnings" };
    Some(Section { id: "warnings", title: title.to_owned(), body })
}

fn diagnostic(note: &Note) -> Markup {
    html! {
        li {
            p {
                strong class=(if note.severity == "error" { "bad" } else { "open" }) {
                    (cell(&note.severity)) "[" (cell(&note.code)) "]"
                }
                " " (cell(&note.message))
                @if let Some(location) = &note.location { " " span class="place" { (cell(location)) } }
            }
            @if let Some(help) = &note.help { p class="note" { "help: " (cell(help)) } }
        }
    }
}

/// Assumptions and error bands.
pub(super) fn assumptions(plan: &Plan) -> Option<Section> {
    let mut items = plan.assumptions.clone();
    let instances = || plan.gpus.iter().flat_map(|gpu| &gpu.instances);
    let widest = |value: fn(&ent_plan::plan::Instance) -> f64| instances().map(value).fold(0.0, f64::max);
    let (time, power) = (widest(|i| i.time_error), widest(|i| i.power_error));
    if time > 0.0 || power > 0.0 {
        items.push(format!(
            "± is one standard deviation of the fitted models, at most {} of a time and {} of a dynamic power \
             here; on sums the bands are added, as if all erred together",
            percent(time),
            percent(power)
        ));
    }
    if instances().any(|i| i.source == "table") {
        items.push("numbers without a band come from measured rows, whose error is not known".to_owned());
    }
    items.push(
        "predicted: by a model fitted to measurements; attributed: a share of a board's watts that no meter \
         shows, by the same models; measured: read from a board, by the source named"
            .to_owned(),
    );
    for board in &plan.boards {
        if let Some(base) = &board.base_power {
            items.push(format!("base power of {}: {}", board.id, base.source));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    items.retain(|item| seen.insert(item.clone()));
    let body = html! { ul { @for item in &items { li { (cell(item)) } } } };
    Some(Section { id: "assumptions", title: "What the numbers rest on".to_owned(), body })
}

/// Which plan it is.
pub(super) fn identity(plan: &Plan) -> Option<Section> {
    let mut facts: Vec<(String, String)> = vec![
        ("program".to_owned(), plan.program.clone()),
        (
            "checksum".to_owned(),
            plan.checksum.clone().unwrap_or_else(|| "none: the plan is not sealed".to_owned()),
        ),
        ("plan format".to_owned(), plan.format_version.clone()),
        ("made by".to_owned(), format!("entc {}, planner {}", plan.entc_version, plan.planner)),
    ];
    let objective = &plan.objective;
    facts.push(("minimised".to_owned(), objective.metric.word().to_owned()));
    if let Some(value) = objective.value {
        facts.push(("value".to_owned(), metric(objective.metric, value)));
    }
    facts.push((
        "bound".to_owned(),
        objective.bound.map_or_else(
            || "none".to_owned(),
            |bound| format!("{}, claimed by the planner `{}`", metric(objective.metric, bound), plan.planner),
        ),
    ));
    if let Some(gap) = objective.gap {
        facts.push(("gap".to_owned(), percent(gap)));
    }
    facts.push((
        "latency".to_owned(),
        match plan.latency_rule {
            LatencyRule::Queueing => "waiting, queueing and execution",
            LatencyRule::Execution => "execution of a full batch",
        }
        .to_owned(),
    ));
    if matches!(objective.metric, Metric::Energy | Metric::Carbon | Metric::Cost) {
        facts.push(("horizon".to_owned(), seconds(plan.accounting.horizon_s)));
    }
    for limit in &plan.limits {
        facts.push((
            "limit".to_owned(),
            format!("{} ≤ {}", limit.metric.word(), metric(limit.metric, limit.at_most)),
        ));
    }
    for (name, value) in &plan.params {
        facts.push((format!("param {name}"), value.clone()));
    }
    if let Some(machine) = &plan.machine {
        let kind = if machine.is_simulated { "simulated, " } else { "" };
        facts.push((
            "machine".to_owned(),
            format!(
                "{} ({kind}driver {}, {} GPUs)",
                machine.node,
                machine.driver_version,
                machine.gpus.len()
            ),
        ));
    }
    let body = html! {
        p class="note" {
            "Everything but the bound was recomputed from the plan by an independent check before it was shown."
        }
        dl class="facts" { @for (name, value) in &facts { div { dt { (cell(name)) } dd { (cell(value)) } } } }
    };
    Some(Section { id: "identity", title: "Which plan this is".to_owned(), body })
}
