//! A plan → what a service gets, and why, as far as the plan's numbers say it.

use ent_plan::plan::{Gpu, Instance, LatencyRule, Metric, Plan, Service, Sharing, Status};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Alike instances of a service.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    count: usize,
    size: String,
    clock: u32,
    batch: u32,
    processes: u32,
    watts: Option<f64>,
}

/// A latency this near to its promise is what holds a plan back.
const TIGHT: f64 = 0.9;

/// What a service gets, in one line: `2 × 1g.10gb · 510 MHz · batch 8 · 12.3 W`.
pub(crate) fn line(plan: &Plan, service: &str) -> Option<String> {
    let groups = groups(plan, service);
    if groups.is_empty() {
        return None;
    }
    let mut parts: Vec<String> = groups
        .iter()
        .map(|g| format!("{} × {} · {} MHz · batch {}", g.count, g.size, g.clock, g.batch))
        .collect();
    if parts.len() > 3 {
        let more = format!("{} more", parts.len() - 2);
        parts.truncate(2);
        parts.push(more);
    }
    let watts: Option<f64> = groups.iter().map(|g| g.watts).sum();
    let mut text = parts.join(" + ");
    if let Some(watts) = watts {
        let _ = write!(text, " · {watts:.1} W");
    }
    Some(text)
}

/// What a service gets and why. Markdown.
pub(crate) fn describe(plan: &Plan, name: &str) -> Option<String> {
    let service = plan.services.iter().find(|s| s.name == name)?;
    let mine = instances(plan, name);
    if mine.is_empty() {
        return None;
    }
    let mut text = format!("**In the current plan** {} ({})\n\n", line(plan, name)?, proof(plan));
    text.push_str(
        "| on | size | clock | batch | busy | latency | mean power |\n|---|---|---|---|---|---|---|\n",
    );
    for (gpu, instance) in mine.iter().take(8) {
        let power = match instance.mean_dynamic_power_w {
            Some(watts) => format!("{watts:.1} ± {:.1} W", watts * instance.power_error),
            None => "?".to_owned(),
        };
        let _ = writeln!(
            text,
            "| {} gpu {} | {} | {} | {} | {:.0} % | {} ≤ {} ms | {power} |",
            gpu.node,
            gpu.index,
            size(gpu, instance),
            gpu.sm_clock_mhz,
            batch(instance),
            instance.utilisation * 100.0,
            latency(instance),
            short(instance.promised_latency_ms),
        );
    }
    if mine.len() > 8 {
        let _ = writeln!(text, "\n{} more instances.", mine.len() - 8);
    }
    text.push('\n');
    for reason in reasons(plan, service, &mine) {
        let _ = writeln!(text, "- {reason}");
    }
    Some(text.trim_end().to_owned())
}

/// The plan in one line: `75.1 W mean · gap 0 % · 1 board`.
pub(crate) fn summary(plan: &Plan) -> Option<String> {
    if plan.gpus.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    parts.extend(plan.metrics.mean_power_w.map(|watts| format!("{watts:.1} W mean")));
    if plan.metrics.mean_power_w.is_none() {
        parts.extend(plan.metrics.power_w.map(|watts| format!("{watts:.1} W")));
    }
    parts.push(match plan.objective.gap {
        Some(gap) => format!("gap {}", percent(gap)),
        None => "no bound".to_owned(),
    });
    let boards = plan.metrics.gpus;
    parts.push(format!("{boards} board{}", if boards == 1 { "" } else { "s" }));
    Some(parts.join(" · "))
}

/// The value of a metric in a plan, with its unit.
pub(crate) fn metric(plan: &Plan, metric: Metric) -> Option<String> {
    let value = plan.metrics.value(metric, plan.accounting.horizon_s)?;
    Some(match metric {
        Metric::Power => format!("{value:.1} W"),
        Metric::Energy => format!("{:.3} kWh", value / 3.6e6),
        Metric::Carbon => format!("{} gCO2", short(value)),
        Metric::Gpus => format!("{value} boards"),
        Metric::Cost => format!("{value:.2} USD"),
    })
}

fn proof(plan: &Plan) -> String {
    let what = plan.objective.metric.word();
    match (plan.status, plan.objective.gap) {
        (Status::Optimal, _) => format!("least {what}: proven"),
        (_, Some(gap)) => format!("{what} within {} of the least", percent(gap)),
        (_, None) => format!("{what}: nothing proven"),
    }
}

fn instances<'p>(plan: &'p Plan, service: &str) -> Vec<(&'p Gpu, &'p Instance)> {
    let of = |gpu: &'p Gpu| gpu.instances.iter().map(move |instance| (gpu, instance));
    plan.gpus.iter().flat_map(of).filter(|(_, i)| i.service == service).collect()
}

fn groups(plan: &Plan, service: &str) -> Vec<Group> {
    let mut groups: BTreeMap<(String, u32, u32, u32), Group> = BTreeMap::new();
    for (gpu, instance) in instances(plan, service) {
        let size = size(gpu, instance);
        let key = (size.clone(), gpu.sm_clock_mhz.0, instance.batch, instance.processes);
        let group = groups.entry(key).or_insert_with(|| Group {
            count: 0,
            size,
            clock: gpu.sm_clock_mhz.0,
            batch: instance.batch,
            processes: instance.processes,
            watts: Some(0.0),
        });
        group.count += 1;
        group.watts = group.watts.zip(instance.mean_dynamic_power_w).map(|(a, b)| a + b);
    }
    groups.into_values().collect()
}

fn size(gpu: &Gpu, instance: &Instance) -> String {
    match (gpu.sharing, &instance.profile, instance.mps_percent) {
        (_, Some(profile), _) => profile.clone(),
        (Sharing::Mps, None, Some(percent)) => format!("{percent} %"),
        _ => "whole board".to_owned(),
    }
}

fn batch(instance: &Instance) -> String {
    match instance.processes {
        1 => instance.batch.to_string(),
        processes => format!("{} × {processes} processes", instance.batch),
    }
}

/// The predicted latency with the band that its times have.
fn latency(instance: &Instance) -> String {
    let predicted = instance.predicted_latency_ms;
    match instance.time_error {
        band if band > 0.0 => format!("{} ± {}", short(predicted), short(predicted * band)),
        _ => short(predicted),
    }
}

fn reasons(plan: &Plan, service: &Service, mine: &[(&Gpu, &Instance)]) -> Vec<String> {
    let mut reasons = Vec::new();
    let rule = match plan.latency_rule {
        LatencyRule::Queueing => "waiting for a batch, queueing and execution",
        LatencyRule::Execution => "the execution of a full batch alone",
    };
    let worst = mine.iter().map(|(_, i)| i.predicted_latency_ms / i.promised_latency_ms).fold(0.0, f64::max);
    reasons.push(if worst >= TIGHT {
        format!("Its latency is what holds it: {:.0} % of the promise is used by {rule}.", worst * 100.0)
    } else {
        format!("Its latency has room: {:.0} % of the promise is used by {rule}.", worst * 100.0)
    });
    let capacity: f64 = mine.iter().map(|(_, i)| i.admissible_rps).sum();
    reasons.push(format!(
        "It is asked for {} req/s; its instances keep the promise up to {} req/s.",
        short(service.rate_rps),
        short(capacity)
    ));
    let mut beside: Vec<&str> = mine
        .iter()
        .flat_map(|(gpu, _)| gpu.instances.iter().map(|i| i.service.as_str()))
        .filter(|other| *other != service.name)
        .collect();
    beside.sort_unstable();
    beside.dedup();
    if !beside.is_empty() {
        let shown = if beside.len() > 5 { format!("{} services", beside.len()) } else { beside.join(", ") };
        reasons.push(format!("A board has one clock: it is shared with {shown}."));
    }
    let watts: f64 = mine.iter().filter_map(|(_, i)| i.mean_dynamic_power_w).sum();
    if let (true, Some(total)) = (watts > 0.0, plan.metrics.mean_power_w) {
        reasons.push(format!("It draws {watts:.1} W of {total:.1} W, base power of boards apart."));
    }
    reasons.push(format!("`entc explain FILE {}` shows what the alternatives would cost.", service.name));
    reasons
}

fn short(value: f64) -> String {
    let text = match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 0.01 => "under 0.01 %".to_owned(),
        p => format!("{} %", short(p)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_told_what_it_gets_and_why() {
        let plan = ent_plan::plan::sample::plan();
        let name = plan.services[0].name.clone();
        let text = describe(&plan, &name).unwrap();
        let short = line(&plan, &name).unwrap();
        assert!(text.contains(&short) && short.contains(" × ") && short.contains("MHz"), "{text}");
        assert!(text.contains("of the promise is used"), "{text}");
        assert_eq!(line(&plan, "nobody"), None);
        assert!(summary(&plan).unwrap().contains("board"));
    }
}
