//! `carbon` and `objective` blocks → what is known of the electricity, and what to minimise.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other value is of the wrong type")]

use crate::ast::Block;
use crate::context::Context;
use crate::fields::{Fields, Shape};
use crate::program::{Carbon, Embodied, Intensity, Limit, Objective};
use crate::quantity::Measure;
use crate::suggest::{choices, similar};
use crate::value::{Passed, Value};
use ent_plan::diagnostic::{Code, Diagnostic, Located, Span};
use ent_plan::plan::{LatencyRule, Metric};
use ent_plan::units::{Grams, GramsPerKilowattHour, Seconds};

pub(crate) const CARBON: Shape = Shape {
    words: "the carbon block",
    attributes: &["intensity", "embodied"],
    blocks: &[],
    repeated_blocks: &[],
    has_objective: false,
};

pub(crate) const OBJECTIVE: Shape = Shape {
    words: "the objective",
    attributes: &["horizon", "latency_rule"],
    blocks: &[],
    repeated_blocks: &[],
    has_objective: true,
};

/// Coal is near 1,000 gCO2/kWh.
const MAX_INTENSITY: f64 = 100_000.0;
const MAX_CARBON: f64 = 1e15;
const MAX_LIMIT: f64 = 1e18;

/// Resolves a `carbon` block.
pub(crate) fn carbon(context: &mut Context<'_>, block: &Block) -> Carbon {
    let fields = Fields::read(context, block, &CARBON);
    let intensity = fields.value(context, "intensity").and_then(|v| intensity(context, &v));
    let embodied = fields.value(context, "embodied").and_then(|v| embodied(context, &v));
    Carbon { intensity, embodied }
}

fn intensity(context: &mut Context<'_>, value: &Located<Value>) -> Option<Located<Intensity>> {
    let made = match &value.value {
        Value::Call { function, arguments } if &**function == "csv" => {
            series(context, value.span, arguments)?
        }
        Value::Quantity(_) | Value::Word(_) => {
            // In base units (g/J) the bound is 3.6 million times smaller.
            let most = MAX_INTENSITY / 3.6e6;
            Intensity::Constant(GramsPerKilowattHour(context.amount(
                value,
                Measure::Intensity,
                "carbon intensity",
                most,
            )?))
        }
        _ => {
            let help = "write `490 gCO2/kWh`, or `csv(\"grid.csv\", step = 1 h)`";
            context.mismatch(value, "a carbon intensity", help);
            return None;
        }
    };
    Some(Located::new(made, value.span))
}

fn series(context: &mut Context<'_>, span: Span, arguments: &[Passed]) -> Option<Intensity> {
    const EXAMPLE: &str = "csv(\"grid.csv\", start = \"2025-03-01T00:00Z\", step = 1 h)";
    let (mut file, mut start, mut step) = (None, None, None);
    for (i, Passed { name, value }) in arguments.iter().enumerate() {
        match name.as_ref().map(|n| &*n.value) {
            None if i == 0 => file = Some(context.text(value, "a file name")?),
            Some("start") if start.is_none() => {
                start = Some(context.text(value, "a date and time")?.0.to_string())
            }
            Some("step") if step.is_none() => step = Some(context.time(value, "step")?.value),
            _ => {
                let at = name.as_ref().map_or(value.span, |n| n.span.to(value.span));
                context.report(
                    Diagnostic::error(Code::TypeMismatch, at, "wrong arguments of `csv`")
                        .label("this argument does not fit")
                        .help(format!("write it like `{EXAMPLE}`")),
                );
                return None;
            }
        }
    }
    let (Some((file, at)), Some(step)) = (file, step) else {
        let what = if step.is_none() { "step" } else { "file" };
        context.report(
            Diagnostic::error(Code::MissingAttribute, span, format!("missing {what} of a series"))
                .label(format!("no {what}"))
                .help(format!("write it like `{EXAMPLE}`")),
        );
        return None;
    };
    Some(Intensity::Series { file: context.join(at, &file), start, step, values: Vec::new() })
}

fn embodied(context: &mut Context<'_>, value: &Located<Value>) -> Option<Located<Embodied>> {
    let Value::Over { amount, time } = &value.value else {
        context.mismatch(value, "a carbon mass over a time", "write `150 kgCO2 per gpu over 4 years`");
        return None;
    };
    let per_gpu = context.amount(amount, Measure::Carbon, "embodied carbon", MAX_CARBON);
    let lifetime = context.time(time, "life");
    let embodied = Embodied { per_gpu: Grams(per_gpu?), lifetime: lifetime?.value };
    Some(Located::new(embodied, value.span))
}

/// Resolves an `objective` block.
pub(crate) fn objective(
    context: &mut Context<'_>,
    block: &Block,
) -> (Objective, Option<Located<LatencyRule>>) {
    let fields = Fields::read(context, block, &OBJECTIVE);
    let mut made = Objective { minimize: Located::new(Metric::Energy, fields.head), ..Objective::default() };
    if let Some((metric, span)) = fields.minimize
        && let Some(metric) = metric_named(context, &metric.text, metric.span)
    {
        made.minimize = Located::new(metric, span);
    }
    if let Some(horizon) = fields.value(context, "horizon").and_then(|v| context.time(&v, "horizon")) {
        made.horizon = Seconds(horizon.value.get());
    }
    for (metric, at_most, span) in &fields.limits {
        let value = context.evaluate(at_most);
        let Some(metric) = metric_named(context, &metric.text, metric.span) else { continue };
        if let Some(at_most) = limit(context, metric, &value) {
            made.limits.push(Limit { metric, at_most, span: *span });
        }
    }
    let rule = fields.value(context, "latency_rule").and_then(|v| {
        let options = [("queueing", LatencyRule::Queueing), ("execution", LatencyRule::Execution)];
        context.choice(&v, "latency rule", &options)
    });
    (made, rule)
}

fn limit(context: &mut Context<'_>, metric: Metric, value: &Located<Value>) -> Option<f64> {
    match metric {
        Metric::Power => context.amount(value, Measure::Power, "limit", MAX_LIMIT),
        Metric::Energy => context.amount(value, Measure::Energy, "limit", MAX_LIMIT),
        Metric::Carbon => context.amount(value, Measure::Carbon, "limit", MAX_LIMIT),
        Metric::Cost => context.amount(value, Measure::Money, "limit", MAX_LIMIT),
        Metric::Gpus => context.whole_number(value, "limit", 0.0..=1e9).map(|n| f64::from(n.value)),
    }
}

fn metric_named(context: &mut Context<'_>, word: &str, span: Span) -> Option<Metric> {
    let words = || Metric::ALL.iter().map(|m| m.word());
    if let Some(metric) = Metric::ALL.iter().find(|m| m.word() == word) {
        return Some(*metric);
    }
    let problem = Diagnostic::error(Code::UnknownName, span, format!("unknown metric `{word}`"))
        .label("no metric has this name");
    context.report(match similar(word, words()) {
        Some(meant) => context.did_you_mean(problem, span, word, meant),
        None => problem.help(format!("use {}", choices(words()))),
    });
    None
}
