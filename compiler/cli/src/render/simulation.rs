//! What a plan did in simulation → a table of services, then watts and a verdict.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::{digits, few_watts, millis, number, seconds};
use super::table::{Column, table};
use crate::commands::{Replay, ReplayedService};
use ent_plan::plan::{LatencyRule, Plan};

/// Draws a simulation beside what the plan predicts.
pub(crate) fn simulation(plan: &Plan, replay: &Replay, canvas: &Canvas) -> String {
    let n_kept = replay.services.iter().filter(|s| s.is_kept).count();
    let n = replay.services.len();
    let verdict = if n_kept == n {
        Line::of(Role::Good, format!("all {n} promises kept"))
    } else {
        Line::of(Role::Bad, format!("{} of {n} promises BROKEN", n - n_kept))
    };
    let heading = Line::of(Role::Heading, &plan.program).and(Role::Plain, "  simulated: ").then(verdict).and(
        Role::Faint,
        format!(
            "  (planner: {}; {} {}, {} requests in {}: {} million a second)",
            plan.planner,
            replay.seeds,
            if replay.seeds == 1 { "seed" } else { "seeds pooled" },
            replay.requests,
            seconds(replay.simulate_seconds),
            digits(replay.requests as f64 / replay.simulate_seconds.max(1e-9) / 1e6, 2)
        ),
    );
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.push(Line::new());
    lines.extend(services(replay, canvas));
    lines.push(Line::new());
    if plan.latency_rule == LatencyRule::Execution {
        let text = "the plan predicts the execution of full batches; simulated latency has waiting in it too";
        lines.extend(Line::of(Role::Warn, text).wrapped(canvas.width, 2));
    }
    lines.extend(watts(plan, replay).wrapped(canvas.width, 2));
    page(&lines, canvas.color)
}

fn services(replay: &Replay, canvas: &Canvas) -> Vec<Line> {
    let columns = [
        Column::name("service"),
        Column::number("req/s"),
        Column::number("p50"),
        Column::number("p95"),
        Column::number("p99"),
        Column::number("promised"),
        Column::number("predicted"),
        Column::number("simulated"),
        Column::number("within"),
        Column::number("batch"),
        Column::number("busy"),
        Column::number("J/req"),
        Column::word("promise"),
    ];
    let rows: Vec<Vec<Line>> = replay.services.iter().map(|service| row(service, canvas)).collect();
    table(&columns, &rows, canvas.width, 2, canvas.symbols)
}

fn row(service: &ReplayedService, canvas: &Canvas) -> Vec<Line> {
    let is_served = service.requests > 0;
    let time = |ms: f64| Line::plain(if is_served { millis(ms) } else { String::new() });
    let predicted = service.predicted_latency_ms.map_or_else(
        || Line::of(Role::Bad, "not served"),
        |ms| {
            let off = ms / service.latency_ms - 1.0;
            let off = if is_served && off.is_finite() {
                format!(" {}{}%", if off < 0.0 { "" } else { "+" }, digits(off * 100.0, 2))
            } else {
                String::new()
            };
            Line::plain(millis(ms)).and(Role::Faint, off)
        },
    );
    let promise = format!(
        "p{} {} {}",
        number(service.percentile * 100.0),
        canvas.symbols.at_most,
        millis(service.promised_latency_ms)
    );
    vec![
        Line::of(Role::Name, &service.name),
        Line::plain(number(service.rate_rps)),
        time(service.p50_ms),
        time(service.p95_ms),
        time(service.p99_ms),
        Line::plain(promise),
        predicted,
        time(service.latency_ms),
        Line::plain(if is_served { format!("{:.2} %", service.attainment * 100.0) } else { String::new() }),
        Line::plain(if is_served { format!("{:.1}", service.mean_batch) } else { String::new() }),
        Line::plain(if is_served { format!("{:.0} %", service.utilisation * 100.0) } else { String::new() }),
        Line::plain(service.energy_j_per_request.map_or_else(String::new, |j| digits(j, 3))),
        if service.is_kept { Line::of(Role::Good, "kept") } else { Line::of(Role::Bad, "BROKEN") },
    ]
}

fn watts(plan: &Plan, replay: &Replay) -> Line {
    let predicted: Option<f64> = plan.gpus.iter().map(|g| g.mean_power_w).sum();
    match (replay.mean_power_w, predicted) {
        (Some(simulated), Some(predicted)) => Line::of(Role::Faint, "mean power of the used boards  ").and(
            Role::Plain,
            format!("{} W simulated, {} W predicted", few_watts(simulated), few_watts(predicted)),
        ),
        _ => Line::of(Role::Warn, "watts unknown: a board or a model has no power data"),
    }
}
