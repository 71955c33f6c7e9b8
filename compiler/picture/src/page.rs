//! A plan and what is known beside it → one HTML page; a front → another one.
//!
//! The order of the page is the order of questions: what is it worth and how sure is that; what runs where;
//! where do the watts go; are the promises kept; what else could have been; what does it rest on.

use crate::chart::{DrawError, Drawing};
use crate::front::{Axis, Front, FrontPoint};
use crate::palette::{dark_rules, variables};
use crate::quantity::{few_watts, metric, percent, watts};
use crate::text::plain;
use crate::{Findings, front};
use ent_plan::plan::{Metric, Plan, Status};
use maud::{DOCTYPE, Markup, PreEscaped, html};

mod choices;
mod ground;
mod hardware;
mod numbers;

const STYLE: &str = include_str!("page/style.css");

/// Nothing is loaded and nothing runs, whatever a name in the program says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The page of a plan. A program without a plan has one too: it says why.
///
/// # Errors
/// Only for faults of the drawing library.
pub fn plan_page(plan: &Plan, findings: &Findings) -> Result<String, DrawError> {
    let title = format!("Plan of {}", plain(&plan.program));
    let mut sections = vec![hardware::boards(plan), numbers::watts(plan)?, numbers::promises(plan)?];
    sections.push(choices::curves(plan, findings.curves.as_deref())?);
    sections.push(choices::alternatives(plan, findings.alternatives.as_deref()));
    sections.push(choices::fronts(plan, findings.fronts.as_deref())?);
    sections.push(hardware::slices(plan));
    sections.push(ground::warnings(plan));
    sections.push(ground::assumptions(plan));
    sections.push(ground::identity(plan));
    let sections: Vec<Section> = sections.into_iter().flatten().collect();
    let header = html! {
        h1 { (breakable(&title)) }
        p class={ "status " (status_class(plan.status)) } { (status_words(plan)) }
        p class="lead" { (value_words(plan)) }
        (tiles(plan))
    };
    Ok(document(&title, &header, &sections, &plan.entc_version))
}

/// The page of a front.
///
/// # Errors
/// Only for faults of the drawing library.
pub fn front_page(program: &str, front: &Front, entc_version: &str) -> Result<String, DrawError> {
    let title = format!("{} against {}: {}", front.y.name(), front.x.name(), plain(program));
    let header = html! {
        h1 { (breakable(&title)) }
        p class="lead" { "Each point is a plan; better is further down and further left." }
    };
    let section = Section {
        id: "front",
        title: "The front".to_owned(),
        body: choices::front_body(front, "front-chart")?,
    };
    Ok(document(&title, &header, &[section], entc_version))
}

/// A part of a page.
struct Section {
    id: &'static str,
    title: String,
    body: Markup,
}

fn document(title: &str, header: &Markup, sections: &[Section], entc_version: &str) -> String {
    let style = format!("{}{}{STYLE}", variables(), dark_rules());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "entc " (entc_version) };
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body {
                a class="skip" href="#content" { "Skip to the content" }
                header { (header) }
                @if sections.len() > 1 {
                    nav aria-label="Parts of this page" {
                        ul { @for section in sections { li { a href={ "#" (section.id) } { (section.title) } } } }
                    }
                }
                main id="content" {
                    @for section in sections {
                        section id=(section.id) aria-labelledby={ (section.id) "-heading" } {
                            h2 id={ (section.id) "-heading" } { (section.title) }
                            (section.body)
                        }
                    }
                }
                footer { p { "Made by entc " (entc_version) ". This page needs no network and no other file." } }
            }
        }
    }
    .into_string()
        + "\n"
}

/// A drawing in a page.
fn figure(drawing: &Drawing, class: &str, caption: &Markup) -> Markup {
    html! {
        figure class=(class) {
            figcaption { span { (caption) } }
            (PreEscaped(drawing.inline()))
        }
    }
}

/// A table that may be wider than a phone: it moves within its own frame, with the keyboard too.
fn table(caption: &str, head: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div class="wide" role="region" tabindex="0" aria-label={ "Table: " (caption) } {
            table {
                caption { span { (caption) } }
                thead { tr { @for title in head { th scope="col" { (title) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (n, cell) in row.iter().enumerate() {
                                @if n == 0 {
                                    th scope="row" { (cell) }
                                } @else {
                                    // Sentences may break, numbers not.
                                    td class=[(cell.0.len() > MOST_NUMBER).then_some("words")] { (cell) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A cell with more than this is a sentence.
const MOST_NUMBER: usize = 34;

/// A cell of plain text, which is escaped.
fn cell(text: impl AsRef<str>) -> Markup {
    html! { (plain(text.as_ref())) }
}

/// Text that may break after each slash.
fn breakable(text: &str) -> Markup {
    html! { @for part in text.split_inclusive('/') { (plain(part)) wbr; } }
}

/// A service's name with the mark of its colour.
fn named(name: &str, index: Option<usize>, class: &str) -> Markup {
    let color = index.map_or_else(
        || format!("swatch {class}"),
        |index| format!("swatch c{}", index % crate::palette::SERVICES.len()),
    );
    html! { span class="named" { span class=(color) aria-hidden="true" {} span { (plain(name)) } } }
}

fn status_class(status: Status) -> &'static str {
    match status {
        Status::Optimal | Status::WithinGap => "good",
        Status::Feasible => "open",
        Status::Infeasible | Status::Unknown => "bad",
    }
}

/// How far the plan is proven, in a sentence.
pub(crate) fn status_words(plan: &Plan) -> String {
    let by = plan.stopped_by.as_deref().map_or(String::new(), |by| format!(", stopped by the {by}"));
    match plan.status {
        Status::Optimal => "Optimal: nothing better exists".to_owned(),
        Status::WithinGap => "Within the gap that was asked for".to_owned(),
        Status::Feasible => format!("Feasible{by}"),
        Status::Infeasible => "Infeasible: no plan keeps all promises".to_owned(),
        Status::Unknown => format!("Unknown: no plan was found{by}"),
    }
}

/// What was minimised, to which value, and how much better any plan could still be.
pub(crate) fn value_words(plan: &Plan) -> String {
    let objective = &plan.objective;
    let word = objective.metric.word();
    let Some(value) = objective.value else { return format!("Minimise {word}: there is no plan.") };
    let mut text = format!("Minimised {word}: {}", metric(objective.metric, value));
    let horizon = plan.accounting.horizon_s;
    if objective.metric == Metric::Energy && horizon > 0.0 {
        text.push_str(&format!(" ({} mean, predicted)", watts(value / horizon)));
    }
    match (objective.bound, objective.gap) {
        (Some(bound), Some(gap)) => text.push_str(&format!(
            "; no plan within the same predictions is below {}, gap {}",
            metric(objective.metric, bound),
            percent(gap)
        )),
        (Some(bound), None) => {
            text.push_str(&format!("; no plan is below {}", metric(objective.metric, bound)));
        }
        (None, _) => text.push_str("; this planner proves no bound"),
    }
    text.push('.');
    text
}

fn tiles(plan: &Plan) -> Markup {
    if plan.gpus.is_empty() {
        return html! {};
    }
    let metrics = &plan.metrics;
    let causes = crate::watts::causes(plan);
    let mean_band: f64 = causes.iter().map(|c| c.mean_band).sum();
    let busy_band: f64 = causes.iter().map(|c| c.busy_band).sum();
    let n_kept = plan
        .services
        .iter()
        .filter(|s| s.predicted_latency_ms.is_some_and(|ms| ms <= s.promised_latency_ms))
        .count();
    let n_unused: u32 = plan.unused.iter().map(|u| u.count).fold(0, u32::saturating_add);
    let known = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), watts);
    let n_boards = metrics.gpus.saturating_add(n_unused);
    let mut tiles = vec![
        ("mean power", "predicted, at the offered load", known(metrics.mean_power_w), mean_band),
        ("power", "predicted, everything busy", known(metrics.power_w), busy_band),
        ("boards", "used, of those there are", format!("{} of {n_boards}", metrics.gpus), 0.0),
        ("promises", "kept, as predicted", format!("{n_kept} of {}", plan.services.len()), 0.0),
    ];
    if let Some(grams) = metrics.carbon_g_per_hour {
        tiles.push(("carbon", "an hour, predicted", crate::quantity::grams(grams, 4), 0.0));
    }
    if let Some(cost) = metrics.cost_per_hour {
        tiles.push(("cost", "an hour", format!("{} USD", crate::quantity::number(cost)), 0.0));
    }
    html! {
        dl class="tiles" {
            @for (name, kind, value, band) in tiles {
                div {
                    dt { (name) }
                    dd {
                        strong { (value) }
                        @if band > 0.0 { " " span class="band" { "± " (few_watts(band)) " W" } }
                        small { (kind) }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
