//! Planners side by side → a table for each load, and what each plan misses.

pub(crate) mod page;
pub(crate) mod picture;
pub(crate) mod records;

use super::line::{Line, Role, page as lines_to_text};
use super::plan::Canvas;
use super::quantity::{digits, grams, number, percent, seconds};
use super::table::{Column, table};
use crate::commands::{AtLoad, Comparison, Judged};
use ent_plan::plan::{LatencyRule, Status};

/// Draws a comparison.
pub(crate) fn comparison(comparison: &Comparison, canvas: &Canvas) -> String {
    let mut lines = Line::of(Role::Heading, &comparison.program)
        .and(Role::Plain, format!("  minimise {}", comparison.metric.word()))
        .wrapped(canvas.width, 2);
    lines.push(Line::new());
    for at in &comparison.loads {
        lines.extend(at_load(at, canvas));
        lines.push(Line::new());
    }
    lines.push(Line::of(Role::Heading, "how to read it"));
    for text in definitions(comparison) {
        lines.extend(Line::of(Role::Faint, format!("  {text}")).wrapped(canvas.width, 4));
    }
    lines_to_text(&lines, canvas.color)
}

fn at_load(at: &AtLoad, canvas: &Canvas) -> Vec<Line> {
    let has_carbon = at.plans.iter().any(|p| p.metrics.carbon_g_per_hour.is_some());
    let has_cost = at.plans.iter().any(|p| p.metrics.cost_per_hour.is_some());
    let mut columns = vec![
        Column::word("planner"),
        Column::number("mean power"),
        Column::number("power"),
        Column::number("boards"),
        Column::number("ratio"),
        Column::number("verified"),
        Column::number("simulated"),
        Column::number("planned in"),
        Column::word("status"),
    ];
    if has_cost {
        columns.insert(4, Column::number("USD/h"));
    }
    if has_carbon {
        columns.insert(3, Column::number("carbon/h"));
    }
    let rows: Vec<Vec<Line>> = at.plans.iter().map(|judged| row(judged, has_carbon, has_cost)).collect();
    let heading =
        at.load.map_or_else(|| "the spec as it is".to_owned(), |load| format!("load {}", percent(load)));
    let mut lines = vec![Line::of(Role::Heading, heading)];
    lines.extend(table(&columns, &rows, canvas.width, 2, canvas.symbols));
    for judged in &at.plans {
        for miss in judged.misses() {
            let line = Line::plain("  ").and(Role::Name, &judged.planner).and(Role::Warn, format!(" {miss}"));
            lines.extend(line.wrapped(canvas.width, 4));
        }
    }
    lines
}

fn row(judged: &Judged, has_carbon: bool, has_cost: bool) -> Vec<Line> {
    let metrics = &judged.metrics;
    let is_there = judged.has_plan();
    let watts = |w: Option<f64>| match w {
        Some(w) if is_there => Line::plain(format!("{w:.1} W")),
        _ => Line::of(Role::Faint, "-"),
    };
    let n = judged.services.len();
    let promises = |kept: usize| {
        let role = if kept == n { Role::Good } else { Role::Bad };
        if is_there { Line::of(role, format!("{kept} of {n}")) } else { Line::of(Role::Faint, "-") }
    };
    let mut cells = vec![
        Line::of(Role::Name, &judged.planner),
        watts(metrics.mean_power_w),
        watts(metrics.power_w),
        Line::plain(if is_there { metrics.gpus.to_string() } else { "-".to_owned() }),
        judged.ratio.map_or_else(|| Line::of(Role::Faint, "-"), |r| Line::plain(format!("{r:.3}"))),
        promises(judged.n_verified()),
        promises(judged.n_simulated()),
        Line::plain(time(judged.plan_seconds)),
        status(judged),
    ];
    if has_cost {
        cells.insert(4, Line::plain(metrics.cost_per_hour.map_or_else(|| "-".to_owned(), number)));
    }
    if has_carbon {
        cells.insert(
            3,
            Line::plain(metrics.carbon_g_per_hour.map_or_else(|| "-".to_owned(), |g| grams(g, 4))),
        );
    }
    cells
}

/// A planning time, in ms below a second.
pub(crate) fn time(s: f64) -> String {
    if s < 1.0 { format!("{} ms", digits(s * 1e3, 3)) } else { seconds(s) }
}

fn status(judged: &Judged) -> Line {
    match (judged.status, judged.gap) {
        _ if !judged.has_plan() => Line::of(Role::Bad, "no plan"),
        (Status::Optimal, _) => Line::of(Role::Good, "optimal"),
        (Status::WithinGap | Status::Feasible, Some(gap)) => Line::plain(format!("gap {}", percent(gap))),
        _ => Line::of(Role::Faint, "no bound"),
    }
}

/// What the columns mean: one set of definitions for all planners.
pub(crate) fn definitions(comparison: &Comparison) -> Vec<String> {
    let rule = match comparison.latency_rule {
        LatencyRule::Execution => {
            "promises are about the execution of full batches (the published papers' rule) for planners and verifier; \
             the simulation has arrivals, waiting and queueing in it"
        }
        LatencyRule::Queueing => "promises are about what a client sees: batch wait, queueing and execution",
    };
    let length = match (comparison.requests, comparison.duration_s) {
        (Some(requests), _) => format!("{requests} requests per service and seed"),
        (None, Some(s)) => format!("{} per seed", seconds(s)),
        (None, None) => "100000 requests per service and seed".to_owned(),
    };
    let data = match &comparison.table {
        Some(table) => {
            format!("times and watts are those measured in {table}; other operating points are not used")
        }
        None => "times and watts are those of the spec's performance data".to_owned(),
    };
    let mode = if comparison.is_conformant {
        "published planners decide exactly like their originals, truncations and quirks included"
    } else {
        "published planners decide by their published idea, with real numbers and entc's latency rule"
    };
    vec![
        "mean power: at the offered load, every instance's dynamic power by what it serves; power: everything busy at once"
            .to_owned(),
        format!(
            "ratio: {} over that of `optimal`; only for plans that can be set up and carry every service",
            comparison.metric.word()
        ),
        rule.to_owned(),
        "verified: promises that hold when every number is recomputed from spec and performance data".to_owned(),
        format!(
            "simulated: promises whose percentile, pooled over {} seeds of {length}, is within the promise",
            comparison.seeds
        ),
        data,
        mode.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::plan::Detail;
    use crate::render::symbols::{ASCII, UNICODE};
    use ent_plan::plan::{Metric, sample as plan_sample};

    /// Two loads, two planners; the second leaves a service out.
    pub(super) fn sample() -> Comparison {
        let plan = |planner: &str, is_short: bool| {
            let mut plan = plan_sample::plan();
            plan.planner = planner.to_owned();
            if is_short {
                plan.services[0].served_rps = 0.0;
            }
            Judged::new(&plan, &[], None, Vec::new(), 0.012)
        };
        let at = |load: f64| {
            let mut at =
                AtLoad { load: Some(load), plans: vec![plan("optimal", false), plan("parvagpu", true)] };
            at.measure();
            at
        };
        Comparison {
            format_version: "1.0",
            entc_version: "0.1.0",
            program: "vision.ent".to_owned(),
            metric: Metric::Energy,
            latency_rule: LatencyRule::Queueing,
            table: None,
            is_conformant: false,
            seed: 1,
            seeds: 5,
            requests: None,
            duration_s: None,
            loads: vec![at(0.5), at(1.0)],
        }
    }

    #[test]
    fn a_comparison_fits_any_width_and_needs_no_colour() {
        for (width, symbols) in [(40, &ASCII), (100, &UNICODE), (300, &UNICODE)] {
            let canvas = Canvas { width, color: false, symbols, detail: Detail::Boards };
            let text = comparison(&sample(), &canvas);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
            for words in ["load 50 %", "optimal", "leaves", "1.000"] {
                assert!(text.contains(words), "{words} is missing from {text}");
            }
        }
    }

    #[test]
    fn csv_and_markdown_have_a_row_for_each_load_and_planner() {
        let text = records::csv(&sample()).unwrap();
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(text.lines().nth(2).unwrap().contains("leaves out"));
        let text = records::markdown(&sample());
        assert_eq!(text.matches("| parvagpu |").count(), 2, "{text}");
    }
}
