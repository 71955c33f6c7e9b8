//! A plan → its watts by cause: base power of used boards, idle boards, and what is attributed to each
//! service. They add up to the plan's own sums.

use crate::chart::{Area, DrawError, Drawing, LETTERS, Painted, WIDTH, draw as paint, letters};
use crate::palette::{FAINT, IDLE, INK, PAPER, Shade, service};
use crate::quantity::{few_watts, watts as shown};
use ent_plan::device::Confidence;
use ent_plan::plan::{Instance, Plan};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};
use std::collections::{BTreeMap, BTreeSet};

/// Watts with one cause.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    pub(crate) name: String,
    pub(crate) shade: Shade,
    /// Index into the palette's services; `None` for base and idle power.
    pub(crate) service: Option<usize>,
    /// At the offered load (W); `None` when a fact is missing.
    pub(crate) mean_w: Option<f64>,
    pub(crate) mean_band: f64,
    /// Everything busy (W).
    pub(crate) busy_w: Option<f64>,
    pub(crate) busy_band: f64,
    /// How it is known: measured, predicted, attributed.
    pub(crate) known: String,
}

/// The causes: base power, idle boards, then services in the program's order.
pub(crate) fn causes(plan: &Plan) -> Vec<Cause> {
    let mut all = Vec::new();
    if !plan.gpus.is_empty() {
        let base: Option<f64> = plan.gpus.iter().map(|gpu| gpu.base_power_w).sum();
        all.push(Cause {
            name: "base power".to_owned(),
            shade: FAINT,
            service: None,
            mean_w: base,
            mean_band: 0.0,
            busy_w: base,
            busy_band: 0.0,
            known: base_known(plan, plan.gpus.iter().map(|gpu| gpu.board.as_str()).collect()),
        });
    }
    let idle: Vec<_> = plan.unused.iter().filter(|u| u.count > 0 && !u.is_off).collect();
    if !idle.is_empty() {
        let watts: Option<f64> = idle.iter().map(|u| u.power_w.map(|w| w * f64::from(u.count))).sum();
        all.push(Cause {
            name: "idle boards".to_owned(),
            shade: IDLE,
            service: None,
            mean_w: watts,
            mean_band: 0.0,
            busy_w: watts,
            busy_band: 0.0,
            known: base_known(plan, idle.iter().map(|u| u.board.as_str()).collect()),
        });
    }
    let mut of: BTreeMap<&str, Vec<&Instance>> = BTreeMap::new();
    for instance in plan.gpus.iter().flat_map(|gpu| &gpu.instances) {
        of.entry(instance.service.as_str()).or_default().push(instance);
    }
    for (index, asked) in plan.services.iter().enumerate() {
        let Some(instances) = of.get(asked.name.as_str()) else { continue };
        let sum =
            |value: fn(&Instance) -> Option<f64>| instances.iter().map(|i| value(i)).sum::<Option<f64>>();
        let band = |value: fn(&Instance) -> Option<f64>| {
            instances.iter().map(|i| i.power_error * value(i).unwrap_or(0.0)).sum::<f64>()
        };
        all.push(Cause {
            name: asked.name.clone(),
            shade: service(index),
            service: Some(index),
            mean_w: sum(|i| i.mean_dynamic_power_w),
            mean_band: band(|i| i.mean_dynamic_power_w),
            busy_w: sum(|i| i.dynamic_power_w),
            busy_band: band(|i| i.dynamic_power_w),
            known: format!("attributed, {}", dynamic_known(instances)),
        });
    }
    all
}

/// How the base power of these boards is known.
fn base_known(plan: &Plan, ids: BTreeSet<&str>) -> String {
    let words: BTreeSet<&str> = plan
        .boards
        .iter()
        .filter(|board| ids.contains(board.id.as_str()))
        .map(|board| match board.base_power.as_ref().map(|base| base.confidence) {
            _ if board.is_illustration => "invented",
            Some(Confidence::Captured) => "measured",
            Some(Confidence::InferredSameDie) => "inferred",
            Some(Confidence::Unverified) => "unverified",
            Some(Confidence::User) => "given by the spec",
            Some(Confidence::Illustration) => "invented",
            None => "unknown",
        })
        .collect();
    if words.is_empty() { "unknown".to_owned() } else { words.into_iter().collect::<Vec<_>>().join(", ") }
}

/// How the dynamic power of these instances is known.
fn dynamic_known(instances: &[&Instance]) -> String {
    let words: BTreeSet<&str> = instances
        .iter()
        .map(|i| match i.source.as_str() {
            "table" => "measured rows",
            "fitted" => "predicted",
            "extrapolated" => "extrapolated",
            _ => "predicted",
        })
        .collect();
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// Draws two bars, mean and busy, each by cause and to one scale. `None` where no watts are known.
pub(crate) fn draw(plan: &Plan) -> Option<Result<Drawing, DrawError>> {
    let causes = causes(plan);
    let mean: f64 = causes.iter().map(|c| c.mean_w).sum::<Option<f64>>()?;
    let busy: f64 = causes.iter().map(|c| c.busy_w).sum::<Option<f64>>()?;
    let longest = mean.max(busy);
    if causes.is_empty() || longest <= 0.0 {
        return None;
    }
    let told: Vec<String> = causes
        .iter()
        .map(|c| {
            let w = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), few_watts);
            format!("{} {} W mean, {} W busy", c.name, w(c.mean_w), w(c.busy_w))
        })
        .collect();
    let description = format!(
        "At the offered load {}, everything busy {}, both predicted. {}.",
        shown(mean),
        shown(busy),
        told.join("; ")
    );
    Some(paint("watts", HEIGHT, "Watts by cause".to_owned(), description, |area| {
        bar(area, 8, &format!("at the offered load: {} predicted", shown(mean)), &causes, longest, |c| {
            c.mean_w
        })?;
        bar(area, 88, &format!("everything busy: {} predicted", shown(busy)), &causes, longest, |c| c.busy_w)
    }))
}

/// Height of the picture, of a bar, and from the top of its words to the bar.
const HEIGHT: u32 = 160;
const BAR: i32 = 40;
const WORDS: i32 = 24;

fn bar(
    area: &Area<'_>,
    y: i32,
    words: &str,
    causes: &[Cause],
    longest: f64,
    value: fn(&Cause) -> Option<f64>,
) -> Painted {
    area.draw(&Text::new(words.to_owned(), (2, y), letters(INK.rgb(), HPos::Left, VPos::Top)))?;
    let top = y + WORDS;
    let mut sum = 0.0;
    for cause in causes {
        let from = place(sum, longest);
        sum += value(cause).unwrap_or(0.0);
        let to = place(sum, longest);
        area.draw(&Rectangle::new([(from, top), (to, top + BAR)], cause.shade.rgb().filled()))?;
        // A seam in the colour of the paper keeps neighbours apart without their colours.
        area.draw(&PathElement::new(vec![(to, top), (to, top + BAR)], PAPER.rgb().stroke_width(1)))?;
        let w = value(cause).unwrap_or(0.0);
        let label = few_watts(w);
        if f64::from(to - from) > label.len() as f64 * LETTERS * 0.5 + 6.0 {
            let style = letters(PAPER.rgb(), HPos::Center, VPos::Center);
            area.draw(&Text::new(label, ((from + to) / 2, top + BAR / 2), style))?;
        }
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a share of the width of the picture")]
fn place(watts: f64, longest: f64) -> i32 {
    2 + (watts / longest * f64::from(WIDTH - 4)).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::plan::sample;

    #[test]
    fn watts_by_cause_add_up_to_the_plan() {
        let mut plan = sample::plan();
        plan.unused[0].is_off = false;
        plan.unused[0].power_w = Some(45.0);
        plan.metrics = ent_plan::plan::Metrics::of(&plan.gpus, &plan.unused, &plan.accounting);
        let causes = causes(&plan);
        let names: Vec<&str> = causes.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["base power", "idle boards", "classify", "search"]);
        let mean: f64 = causes.iter().map(|c| c.mean_w.unwrap()).sum();
        let busy: f64 = causes.iter().map(|c| c.busy_w.unwrap()).sum();
        assert!((mean - plan.metrics.mean_power_w.unwrap()).abs() < 1e-9);
        assert!((busy - plan.metrics.power_w.unwrap()).abs() < 1e-9);
        assert!(causes[0].known.contains("measured") && causes[2].known.contains("attributed"));
    }

    #[test]
    fn a_missing_fact_is_no_zero() {
        let mut plan = sample::plan();
        plan.gpus[0].instances[0].mean_dynamic_power_w = None;
        assert_eq!(causes(&plan)[1].mean_w, None);
        assert!(draw(&plan).is_none());
    }
}
