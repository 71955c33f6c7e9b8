//! Planners side by side → CSV with one row for each load and planner, or Markdown tables.

use super::{definitions, time};
use crate::commands::{Comparison, Judged};
use crate::exit::Stop;

/// The columns of the CSV.
const COLUMNS: [&str; 21] = [
    "load",
    "planner",
    "status",
    "mean_power_w",
    "power_w",
    "carbon_g_per_hour",
    "cost_per_hour",
    "gpus",
    "value",
    "bound",
    "gap",
    "ratio",
    "carries_all",
    "services",
    "kept_verified",
    "broken_verified",
    "kept_simulated",
    "broken_simulated",
    "simulated_mean_power_w",
    "plan_seconds",
    "misses",
];

/// One row for each load and planner. Empty where there is nothing to say.
///
/// # Errors
/// Never for text; the writer could fail.
pub(crate) fn csv(comparison: &Comparison) -> Result<String, Stop> {
    let refuse =
        |error: String| Stop::refused("cannot-write", format!("the table cannot be written as CSV: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS).map_err(|error| refuse(error.to_string()))?;
    for at in &comparison.loads {
        for judged in &at.plans {
            writer.write_record(record(at.load, judged)).map_err(|error| refuse(error.to_string()))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| refuse(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| refuse(error.to_string()))
}

fn record(load: Option<f64>, judged: &Judged) -> Vec<String> {
    let known = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let metrics = &judged.metrics;
    let there = |value: Option<f64>| known(value.filter(|_| judged.has_plan()));
    let n = judged.services.len();
    vec![
        known(load),
        judged.planner.clone(),
        word(judged),
        there(metrics.mean_power_w),
        there(metrics.power_w),
        there(metrics.carbon_g_per_hour),
        there(metrics.cost_per_hour),
        metrics.gpus.to_string(),
        known(judged.value),
        known(judged.bound),
        known(judged.gap),
        known(judged.ratio),
        judged.carries_all.to_string(),
        n.to_string(),
        judged.n_verified().to_string(),
        (n - judged.n_verified()).to_string(),
        judged.n_simulated().to_string(),
        (n - judged.n_simulated()).to_string(),
        known(judged.simulated_mean_power_w),
        judged.plan_seconds.to_string(),
        judged.misses().join("; "),
    ]
}

/// The status, as in the plan format.
fn word(judged: &Judged) -> String {
    serde_json::to_value(judged.status).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A table for each load, then what plans miss, then what the columns mean.
pub(crate) fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    for at in &comparison.loads {
        if let Some(load) = at.load {
            text.push_str(&format!("### Load {:.0} %\n\n", load * 100.0));
        }
        let has_carbon = at.plans.iter().any(|p| p.metrics.carbon_g_per_hour.is_some());
        let carbon = if has_carbon { " carbon (g/h) |" } else { "" };
        text.push_str(&format!(
            "| planner | mean power (W) | power (W) |{carbon} boards | ratio | promises verified | promises simulated | planned in |\n"
        ));
        text.push_str(&format!(
            "|---|---:|---:|{}---:|---:|---:|---:|---:|\n",
            if has_carbon { "---:|" } else { "" }
        ));
        for judged in &at.plans {
            let n = judged.services.len();
            let watts = |w: Option<f64>| {
                w.filter(|_| judged.has_plan()).map_or_else(|| "–".to_owned(), |w| format!("{w:.1}"))
            };
            let kept =
                |kept: usize| if judged.has_plan() { format!("{kept} of {n}") } else { "–".to_owned() };
            let carbon = if has_carbon {
                format!(" {} |", watts(judged.metrics.carbon_g_per_hour))
            } else {
                String::new()
            };
            text.push_str(&format!(
                "| {} | {} | {} |{carbon} {} | {} | {} | {} | {} |\n",
                judged.planner,
                watts(judged.metrics.mean_power_w),
                watts(judged.metrics.power_w),
                if judged.has_plan() { judged.metrics.gpus.to_string() } else { "–".to_owned() },
                judged.ratio.map_or_else(|| "–".to_owned(), |r| format!("{r:.3}")),
                kept(judged.n_verified()),
                kept(judged.n_simulated()),
                time(judged.plan_seconds),
            ));
        }
        text.push('\n');
        let misses: Vec<String> = at
            .plans
            .iter()
            .flat_map(|judged| {
                judged.misses().into_iter().map(|miss| format!("- `{}` {miss}.\n", judged.planner))
            })
            .collect();
        if !misses.is_empty() {
            text.push_str(&misses.concat());
            text.push('\n');
        }
    }
    for definition in definitions(comparison) {
        let (name, rest) = definition.split_once(": ").map_or(("", definition.as_str()), |(n, r)| (n, r));
        match name {
            "" => text.push_str(&format!("- {rest}.\n")),
            name => text.push_str(&format!("- **{name}**: {rest}.\n")),
        }
    }
    text
}
