//! The plan as a whole → its status, its proof, its metrics, what it rests on, what to look at.

use super::board::band;
use super::line::{Line, Role};
use super::plan::Canvas;
use super::quantity::{digits, grams, joules, metric, number, percent, seconds, watts};
use ent_plan::plan::{LatencyRule, Metric, Plan, Status};

/// The first line: how far the plan is proven, and by whom.
pub(crate) fn status(plan: &Plan, solve_seconds: Option<f64>, canvas: &Canvas) -> Vec<Line> {
    let (role, words) = match plan.status {
        Status::Optimal => (Role::Good, "optimal: nothing better exists".to_owned()),
        Status::WithinGap => (Role::Good, "within the gap that was asked for".to_owned()),
        Status::Feasible => {
            let by = plan.stopped_by.as_deref().map_or(String::new(), |by| format!(", stopped by the {by}"));
            (Role::Warn, format!("feasible{by}"))
        }
        Status::Infeasible => (Role::Bad, "infeasible: no plan keeps all promises".to_owned()),
        Status::Unknown => {
            let by = plan.stopped_by.as_deref().map_or(String::new(), |by| format!(", stopped by the {by}"));
            (Role::Bad, format!("unknown: no plan found{by}"))
        }
    };
    let mut line = Line::of(Role::Heading, &plan.program).and(Role::Plain, "  ").and(role, words);
    let time = solve_seconds.map_or_else(String::new, |time| format!(" in {}", seconds(time)));
    line.push(Role::Faint, format!("  (planner: {}{time})", plan.planner));
    line.wrapped(canvas.width, 2)
}

/// Objective, bound, gap, and all metrics.
pub(crate) fn totals(plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let mut rows: Vec<(&str, Line)> = Vec::new();
    rows.extend(objective(plan).map(|line| ("minimised", line)));
    let metrics = &plan.metrics;
    let horizon = plan.accounting.horizon_s;
    let unknown = || Line::of(Role::Warn, "unknown: a board or a model has no power data");
    let mean_band: f64 = plan.gpus.iter().map(|g| band(g, |i| i.mean_dynamic_power_w)).sum();
    let busy_band: f64 = plan.gpus.iter().map(|g| band(g, |i| i.dynamic_power_w)).sum();
    let with_band = |w: f64, band: f64, what: &str| {
        let mut line = Line::plain(watts(w));
        if band > 0.0 {
            line.push(Role::Plain, format!(" {} {} W", canvas.symbols.plus_minus, digits(band, 2)));
        }
        line.and(Role::Plain, format!(" predicted, {what}"))
    };
    if !plan.gpus.is_empty() {
        rows.push((
            "power",
            metrics.power_w.map_or_else(unknown, |w| with_band(w, busy_band, "everything busy")),
        ));
        rows.push((
            "mean power",
            metrics.mean_power_w.map_or_else(unknown, |w| with_band(w, mean_band, "at the offered load")),
        ));
        if let Some(j) = metrics.energy_j_per_hour {
            let text = format!("{} per hour ({} kWh), predicted", joules(j, 4), number(j / 3.6e6));
            rows.push(("energy", Line::plain(text)));
        }
        if let Some(g) = metrics.carbon_g_per_hour {
            rows.push(("carbon", Line::plain(format!("{} per hour, predicted", grams(g, 4)))));
        }
        if let Some(usd) = metrics.cost_per_hour {
            rows.push(("cost", Line::plain(format!("{} USD per hour", number(usd)))));
        }
        rows.push(("boards", boards_used(plan)));
    }
    for limit in &plan.limits {
        let text = format!(
            "{} {} {}",
            limit.metric.word(),
            canvas.symbols.at_most,
            metric(limit.metric, limit.at_most)
        );
        rows.push(("limit", Line::plain(text)));
    }
    if horizon > 0.0 && matches!(plan.objective.metric, Metric::Energy | Metric::Carbon | Metric::Cost) {
        rows.push(("horizon", Line::plain(seconds(horizon))));
    }
    rows.push((
        "latency",
        Line::plain(match plan.latency_rule {
            LatencyRule::Queueing => "as a client sees it: waiting, queueing and execution",
            LatencyRule::Execution => "execution of a full batch only (the published papers' rule)",
        }),
    ));
    let mut lines = vec![Line::of(Role::Heading, "totals")];
    for (name, value) in rows {
        let line = Line::of(Role::Faint, format!("  {name:<11} ")).then(value);
        lines.extend(line.wrapped(canvas.width, 14));
    }
    lines.push(Line::new());
    lines
}

/// `energy 1.31573 MJ (365.5 W mean); bound 1.3135 MJ, gap 0.17 %`.
fn objective(plan: &Plan) -> Option<Line> {
    let objective = &plan.objective;
    let value = objective.value?;
    let mut line = Line::of(Role::Heading, objective.metric.word())
        .and(Role::Plain, format!(" {}", metric(objective.metric, value)));
    let horizon = plan.accounting.horizon_s;
    if objective.metric == Metric::Energy && horizon > 0.0 {
        line.push(Role::Plain, format!(" ({} mean)", watts(value / horizon)));
    }
    match (objective.bound, objective.gap) {
        (Some(bound), Some(gap)) => {
            line.push(Role::Plain, format!("; no plan is below {}, ", metric(objective.metric, bound)));
            line.push(Role::Heading, format!("gap {}", percent(gap)));
        }
        (Some(bound), None) => {
            line.push(Role::Plain, format!("; no plan is below {}", metric(objective.metric, bound)));
        }
        (None, _) => line.push(Role::Warn, "; no bound: this planner proves nothing"),
    }
    Some(line)
}

fn boards_used(plan: &Plan) -> Line {
    let mut text = format!("{} used", plan.metrics.gpus);
    for unused in &plan.unused {
        if unused.count == 0 {
            continue;
        }
        let state = match (unused.is_off, unused.power_w) {
            (true, _) => "off".to_owned(),
            (false, Some(w)) => format!("idle at {} W each, predicted", number(w)),
            (false, None) => "idle, power unknown".to_owned(),
        };
        text.push_str(&format!("; {} {} in {} {state}", unused.count, unused.board, unused.node));
    }
    Line::plain(text)
}

/// What the numbers rest on.
pub(crate) fn assumptions(plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let mut items: Vec<String> = plan.assumptions.clone();
    if canvas.detail.explains() {
        items.extend(plan.params.iter().map(|(name, value)| format!("param {name} = {value}")));
    }
    let has_band =
        plan.gpus.iter().flat_map(|g| &g.instances).any(|i| i.power_error > 0.0 || i.time_error > 0.0);
    let has_table = plan.gpus.iter().flat_map(|g| &g.instances).any(|i| i.source == "table");
    if has_band {
        items.push(format!(
            "{} is one standard deviation of the fitted models; on sums the bands are added",
            canvas.symbols.plus_minus
        ));
    }
    if has_table {
        items.push("watts without a band come from measured rows, whose error is not known".to_owned());
    }
    if items.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Line::of(Role::Heading, "assumed")];
    for item in items {
        lines.extend(Line::plain(format!("  {item}")).wrapped(canvas.width, 4));
    }
    lines.push(Line::new());
    lines
}

/// What travels with the plan: warnings, and the reasons why there is none.
pub(crate) fn notes(plan: &Plan, canvas: &Canvas) -> Vec<Line> {
    let mut lines = Vec::new();
    for note in &plan.diagnostics {
        let role = if note.severity == "error" { Role::Bad } else { Role::Warn };
        let mut line = Line::of(role, format!("{}[{}]", note.severity, note.code))
            .and(Role::Plain, format!(": {}", note.message));
        if let Some(location) = &note.location {
            line.push(Role::Faint, format!(" ({location})"));
        }
        lines.extend(line.wrapped(canvas.width, 2));
        if let Some(help) = &note.help {
            lines.extend(Line::of(Role::Faint, format!("  help: {help}")).wrapped(canvas.width, 4));
        }
    }
    lines
}
