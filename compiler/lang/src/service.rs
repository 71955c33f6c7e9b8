//! `model` and `service` blocks → models and services.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other value is of the wrong type")]

use crate::ast::{Block, Name};
use crate::board;
use crate::context::Context;
use crate::declarations::Declarations;
use crate::definitions::duplicate;
use crate::fields::{Fields, Shape};
use crate::fixes::change;
use crate::hardware::Hardware;
use crate::program::{
    Arrivals, Model, PerformanceRef, PerformanceSource, Pin, Replicas, Service, Slo, Spread,
};
use crate::value::{Passed, Value};
use ent_plan::diagnostic::{Code, Diagnostic, Located, Span};
use std::collections::BTreeMap;

pub(crate) const MODEL: Shape = Shape {
    words: "a model",
    attributes: &["performance", "source", "artifact", "input", "memory"],
    blocks: &[],
    repeated_blocks: &[],
    has_objective: false,
};

pub(crate) const SERVICE: Shape = Shape {
    words: "a service",
    attributes: &["model", "rate", "latency", "arrivals", "replicas", "isolate", "spread"],
    blocks: &["pin"],
    repeated_blocks: &[],
    has_objective: false,
};

pub(crate) const PIN: Shape = Shape {
    words: "a pin",
    attributes: &["profile", "batch", "clock", "processes", "node"],
    blocks: &[],
    repeated_blocks: &[],
    has_objective: false,
};

const MAX_REPLICAS: f64 = 1_000_000.0;
const MAX_BATCH: f64 = 65_536.0;
const MAX_PROCESSES: f64 = 1_024.0;

/// Models by name: `None` for one that was reported.
pub(crate) type Models<'a> = BTreeMap<&'a str, Option<Model>>;

/// Resolves every model, used or not.
pub(crate) fn models<'a>(context: &mut Context<'_>, declarations: &Declarations<'a>) -> Models<'a> {
    let mut made: Models<'a> = BTreeMap::new();
    let mut names: BTreeMap<&str, Span> = BTreeMap::new();
    for (name, block) in &declarations.models {
        if let Some(first) = names.get(name.text.as_str()) {
            context.report(duplicate("model", &name.text, name.span, *first));
            continue;
        }
        names.insert(&name.text, name.span);
        made.insert(&name.text, Some(model(context, declarations, name, block)));
    }
    made
}

fn model(context: &mut Context<'_>, declarations: &Declarations<'_>, name: &Name, block: &Block) -> Model {
    let fields = Fields::read(context, block, &MODEL);
    let source = fields.value(context, "source").and_then(|v| {
        let options = [("fitted", PerformanceSource::Fitted), ("table", PerformanceSource::Table)];
        context.choice(&v, "source", &options)
    });
    let mut performance = Vec::new();
    if let Some(value) = fields.value(context, "performance") {
        match &value.value {
            Value::List(entries) => {
                for entry in entries.iter() {
                    if let Some(key) = &entry.key {
                        context.mismatch(key, "performance data", "list the data alone: `[a.b, c.d]`");
                    }
                    performance.extend(reference(context, declarations, &entry.value, source));
                }
            }
            _ => performance.extend(reference(context, declarations, &value, source)),
        }
    }
    for (i, one) in performance.iter().enumerate() {
        if let Some(first) = performance[..i].iter().find(|other| other.value == one.value) {
            context.report(
                Diagnostic::error(Code::Duplicate, one.span, "performance data is listed twice")
                    .label("listed again here")
                    .and(first.span, "first listed here")
                    .help("remove one of them"),
            );
        }
    }
    let artifact = fields.value(context, "artifact").and_then(|v| {
        let (text, file) = context.text(&v, "a file name")?;
        Some(Located::new(context.join(file, &text), v.span))
    });
    if let Some(input) = fields.value(context, "input")
        && !matches!(input.value, Value::Tensor)
    {
        context.mismatch(&input, "a tensor", "write it like `float32[3, 224, 224]`");
    }
    let memory = fields.value(context, "memory").and_then(|v| context.memory(&v));
    Model { name: Located::new(name.text.clone(), name.span), performance, artifact, memory }
}

/// `namespace.entry`, `namespace`, or a file's name.
fn reference(
    context: &mut Context<'_>,
    declarations: &Declarations<'_>,
    value: &Located<Value>,
    source: Option<Located<PerformanceSource>>,
) -> Option<Located<PerformanceRef>> {
    const HELP: &str = "name imported data like `a100_80gb_pcie.resnet50`, or a file like `\"measured.csv\"`";
    let (file, entry) = match &value.value {
        Value::Text(text, at) => {
            if !text.ends_with(".csv") && !text.ends_with(".json") {
                context.report(
                    Diagnostic::error(Code::TypeMismatch, value.span, "unknown kind of performance data")
                        .label("neither `.csv` nor `.json`")
                        .help("name a file that ends in `.csv` or `.json`"),
                );
                return None;
            }
            (context.join(*at, text), None)
        }
        Value::Word(word) => (namespace(context, declarations, word, value.span)?, None),
        Value::Path(parts) => match &**parts {
            [name, entry] => (namespace(context, declarations, name, value.span)?, Some(entry.clone())),
            _ => {
                context.mismatch(value, "performance data", HELP);
                return None;
            }
        },
        _ => {
            context.mismatch(value, "performance data", HELP);
            return None;
        }
    };
    let is_table = file.ends_with(".csv");
    let default = if is_table { PerformanceSource::Table } else { PerformanceSource::Fitted };
    let wanted = source.map_or(default, |s| s.value);
    if let Some(source) = source
        && wanted == PerformanceSource::Table
        && !is_table
    {
        context.report(
            Diagnostic::error(Code::TypeMismatch, value.span, "expected measured rows, found fitted models")
                .label("fitted models")
                .and(source.span, "asks for measured rows")
                .help("name a `.csv` file of measurements, or write `source = fitted`"),
        );
        return None;
    }
    Some(Located::new(PerformanceRef { file, entry, source: wanted }, value.span))
}

fn namespace(
    context: &mut Context<'_>,
    declarations: &Declarations<'_>,
    name: &str,
    span: Span,
) -> Option<String> {
    if let Some(found) = declarations.namespaces.get(name) {
        return Some(found.file.clone());
    }
    let id = name.replace('_', "-");
    let is_board = ent_plan::device::board_ids().any(|known| known == id);
    let otherwise = if is_board {
        format!("add `import \"catalog:performance/{id}\"`")
    } else {
        "import it: `import \"measured.json\"`".to_owned()
    };
    let names: Vec<&str> = declarations.namespaces.keys().map(String::as_str).collect();
    if is_board && !context.is_full() && !context.is_all_poisoned && !context.poisoned.contains(name) {
        let problem =
            Diagnostic::error(Code::UnknownName, span, format!("unknown performance data `{name}`"))
                .label("no performance data has this name")
                .help(otherwise);
        context.report(context.add_import(problem, span, &format!("catalog:performance/{id}")));
        return None;
    }
    context.unknown_name(span, name, "performance data", names, &otherwise);
    None
}

/// Resolves the services, and puts the models they use, in the order written, into `used`.
pub(crate) fn services(
    context: &mut Context<'_>,
    declarations: &Declarations<'_>,
    models: &Models<'_>,
    hardware: &Hardware,
) -> (Vec<Service>, Vec<Model>) {
    let mut made: Vec<Service> = Vec::new();
    let mut used: Vec<Model> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut names: BTreeMap<&str, Span> = BTreeMap::new();
    for (name, block) in &declarations.services {
        if let Some(first) = names.get(name.text.as_str()) {
            context.report(duplicate("service", &name.text, name.span, *first));
            continue;
        }
        names.insert(&name.text, name.span);
        let fields = Fields::read(context, block, &SERVICE);
        let model =
            fields.required(context, "model", &format!("model = {}", some_model(models))).and_then(|value| {
                let model = model_named(context, models, &value)?;
                let at = *index.entry(model.name.value.clone()).or_insert_with(|| {
                    used.push(model.clone());
                    used.len() - 1
                });
                Some(Located::new(at, value.span))
            });
        made.extend(service(context, &fields, name, model, hardware));
    }
    (made, used)
}

/// A model for an example: one of the program's.
fn some_model<'m>(models: &Models<'m>) -> &'m str {
    models.keys().next().copied().unwrap_or("resnet50")
}

fn model_named<'m>(
    context: &mut Context<'_>,
    models: &'m Models<'_>,
    value: &Located<Value>,
) -> Option<&'m Model> {
    // A model may have the name of a value: then the model is meant here.
    let written = context.sources.snippet(value.span).to_owned();
    if let Some(model) = models.get(written.as_str()) {
        return model.as_ref();
    }
    let (Value::Word(name) | Value::Text(name, _)) = &value.value else {
        context.mismatch(value, "a model", "name a model: `model = resnet50`");
        return None;
    };
    if let Some(model) = models.get(&**name) {
        return model.as_ref();
    }
    let otherwise = if models.is_empty() { format!("add `model {name} {{ … }}`") } else { String::new() };
    let names: Vec<&str> = models.keys().copied().collect();
    context.unknown_name(value.span, name, "model", names, &otherwise);
    None
}

fn service(
    context: &mut Context<'_>,
    fields: &Fields<'_>,
    name: &Name,
    model: Option<Located<usize>>,
    hardware: &Hardware,
) -> Option<Service> {
    let rate = fields.required(context, "rate", "rate = 120 req/s").and_then(|v| context.rate(&v));
    let slo = fields.required(context, "latency", "latency = p99 <= 50 ms").and_then(|v| slo(context, &v));
    let arrivals = match fields.value(context, "arrivals") {
        Some(value) => arrivals(context, &value),
        None => Some(Located::new(Arrivals::Poisson, name.span)),
    };
    let replicas = fields.value(context, "replicas").and_then(|v| replicas(context, &v));
    let isolate = fields.expr("isolate").and_then(|e| context.truth(e));
    let spread = fields
        .value(context, "spread")
        .and_then(|v| context.choice(&v, "spread", &[("gpu", Spread::Gpu), ("node", Spread::Node)]));
    let pin = fields.inner("pin").map(|block| pin(context, block, hardware));
    Some(Service {
        name: Located::new(name.text.clone(), name.span),
        model: model?,
        rate: rate?,
        slo: slo?,
        arrivals: arrivals?,
        replicas,
        pin,
        isolate,
        spread,
    })
}

fn slo(context: &mut Context<'_>, value: &Located<Value>) -> Option<Located<Slo>> {
    const HELP: &str = "promise a percentile: `latency = p99 <= 50 ms`";
    let Value::Promise { percentile, bound } = &value.value else {
        if let Value::Quantity(_) = value.value {
            let written = context.sources.snippet(value.span).to_owned();
            let promise = format!("p99 <= {written}");
            let help = format!("promise a percentile: `{promise}`");
            context.mismatch_with(value, "a latency promise", &help, Some(change(value.span, &promise)));
        } else {
            context.mismatch(value, "a latency promise", HELP);
        }
        return None;
    };
    let digits = percentile.value.strip_prefix('p').unwrap_or(&percentile.value);
    let share = digits.parse::<f64>().ok().map(|d| d / 100.0).filter(|s| *s > 0.0 && *s < 1.0);
    if share.is_none() {
        let why = format!("`{}` is not between p0 and p100", percentile.value);
        context.out_of_range(
            percentile.span,
            "percentile",
            &why,
            "promise a percentile like `p99` or `p99.9`",
        );
    }
    let bound = context.time(bound, "latency");
    Some(Located::new(Slo { percentile: share?, bound: bound?.value }, value.span))
}

fn arrivals(context: &mut Context<'_>, value: &Located<Value>) -> Option<Located<Arrivals>> {
    let made = match &value.value {
        Value::Word(word) if &**word == "poisson" => Arrivals::Poisson,
        Value::Word(word) if &**word == "uniform" => Arrivals::Uniform,
        Value::Call { function, arguments } if &**function == "gamma" => {
            let cv = one_argument(context, value.span, arguments, "cv", "gamma(cv = 2)")?;
            Arrivals::Gamma { cv: context.ratio(&cv, "coefficient of variation", 0.01..=100.0)?.value }
        }
        Value::Call { function, arguments } if &**function == "trace" => {
            let file = one_argument(context, value.span, arguments, "", "trace(\"requests.csv\")")?;
            let (text, at) = context.text(&file, "a file name")?;
            Arrivals::Trace { file: context.join(at, &text) }
        }
        Value::Word(word) => {
            let word = word.clone();
            let known = ["poisson", "uniform", "gamma", "trace"];
            let help = match &*word {
                "gamma" => "give its variation: `gamma(cv = 2)`",
                "trace" => "give its file: `trace(\"requests.csv\")`",
                _ => "",
            };
            if help.is_empty() {
                context.unknown_name(value.span, &word, "arrival process", known, "");
            } else {
                context.mismatch(value, "an arrival process", help);
            }
            return None;
        }
        _ => {
            let help = "use `poisson`, `uniform`, `gamma(cv = 2)` or `trace(\"requests.csv\")`";
            context.mismatch(value, "an arrival process", help);
            return None;
        }
    };
    Some(Located::new(made, value.span))
}

/// The one argument of a call, whose name may be left out.
fn one_argument(
    context: &mut Context<'_>,
    span: Span,
    arguments: &[Passed],
    name: &str,
    example: &str,
) -> Option<Located<Value>> {
    match arguments {
        [one] if one.name.as_ref().is_none_or(|n| &*n.value == name) => Some(one.value.clone()),
        _ => {
            context.report(
                Diagnostic::error(Code::TypeMismatch, span, "wrong arguments of a call")
                    .label("these arguments do not fit")
                    .help(format!("write it like `{example}`")),
            );
            None
        }
    }
}

fn replicas(context: &mut Context<'_>, value: &Located<Value>) -> Option<Located<Replicas>> {
    let count = |context: &mut Context<'_>, v: &Located<Value>| {
        context.whole_number(v, "number of replicas", 1.0..=MAX_REPLICAS)
    };
    let (min, max) = match &value.value {
        Value::Range { from, to, step: None } => (count(context, from), count(context, to)),
        Value::Range { .. } => {
            context.mismatch(value, "a range without a step", "write `2..6`");
            return None;
        }
        _ => {
            let one = count(context, value);
            (one, one)
        }
    };
    let (min, max) = (min?.value, max?.value);
    if min > max {
        let turned = format!("{max}..{min}");
        context.report(
            Diagnostic::error(Code::OutOfRange, value.span, "number of replicas is out of range")
                .label(format!("at least {min} and at most {max}"))
                .help(format!("write `{turned}`"))
                .fix(change(value.span, &turned)),
        );
        return None;
    }
    Some(Located::new(Replicas { min, max }, value.span))
}

fn pin(context: &mut Context<'_>, block: &Block, hardware: &Hardware) -> Located<Pin> {
    let fields = Fields::read(context, block, &PIN);
    let mut pin = Pin::default();
    if let Some(value) = fields.value(context, "node") {
        match &value.value {
            Value::Text(name, _) | Value::Word(name) => {
                if hardware.nodes.iter().any(|n| n.name.value == **name) {
                    pin.node = Some(Located::new(name.to_string(), value.span));
                } else if !hardware.is_broken {
                    let names: Vec<&str> = hardware.nodes.iter().map(|n| n.name.value.as_str()).collect();
                    context.unknown_name(value.span, name, "node", names, "");
                }
            }
            _ => context.mismatch(&value, "a node", "name a node: `node = \"box-0\"`"),
        }
    }
    let boards = hardware.boards_of(pin.node.as_ref().map(|n| n.value.as_str()));
    let is_known = !boards.is_empty() && !hardware.is_broken;
    if let Some(value) = fields.value(context, "profile") {
        match &value.value {
            Value::Profile(name) | Value::Text(name, _) => {
                if is_known && !boards.iter().any(|b| b.profile(name).is_some()) {
                    board::unknown_profile(context, value.span, name, &boards);
                } else {
                    pin.profile = Some(Located::new(name.to_string(), value.span));
                }
            }
            _ => context.mismatch(&value, "a MIG profile", "name a profile: `profile = 3g.40gb`"),
        }
    }
    pin.batch =
        fields.value(context, "batch").and_then(|v| context.whole_number(&v, "batch", 1.0..=MAX_BATCH));
    pin.clock = fields.value(context, "clock").and_then(|v| context.megahertz(&v));
    if let Some(clock) = pin.clock.filter(|_| is_known) {
        board::on_ladder(context, clock, &boards);
    }
    pin.processes = fields
        .value(context, "processes")
        .and_then(|v| context.whole_number(&v, "number of processes", 1.0..=MAX_PROCESSES));
    Located::new(pin, fields.head.to(block.items.last().map_or(fields.head, |i| i.span)))
}
