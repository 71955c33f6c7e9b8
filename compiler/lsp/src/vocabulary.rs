//! A block, an attribute → what its value may be: what is offered, and which units come first.
//!
//! Which attributes there are is `ent-lang`'s to say, and what they mean the language reference's
//! ([`crate::manual`]); a test holds this list to both.

use ent_lang::vocabulary::{Measure, contents};

/// The units that are offered for a measure, the usual one first.
pub(crate) fn units(measure: Measure) -> &'static [&'static str] {
    match measure {
        Measure::Rate => &["req/s", "req/min", "req/h", "/s"],
        Measure::Time => {
            &["ms", "s", "us", "ns", "min", "h", "hour", "day", "year", "hours", "days", "years"]
        }
        Measure::Power => &["W", "kW", "mW", "MW"],
        Measure::Energy => &["J", "kJ", "MJ", "kWh", "Wh", "GJ", "MWh", "mJ"],
        Measure::Frequency => &["MHz", "GHz", "kHz", "Hz"],
        Measure::Memory => &["GiB", "MiB", "GB", "MB", "TiB", "TB", "KiB", "kB", "B"],
        Measure::Carbon => &["kgCO2", "gCO2", "tCO2", "kgCO2e", "gCO2e", "tCO2e"],
        Measure::Intensity => &["gCO2/kWh", "kgCO2/MWh", "kgCO2/kWh", "gCO2/MJ"],
        Measure::Price => &["USD per hour", "USD/h", "USD per year"],
        Measure::Money => &["USD"],
        Measure::Ratio => &["%", "req", "gpu"],
    }
}

/// What may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Measure(Measure),
    /// `p99 <= 50 ms`
    Promise,
    Model,
    Arrivals,
    /// A whole number.
    Count,
    /// A whole number or a range of them.
    CountRange,
    /// One of some words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    /// A board and how many.
    Boards,
    Board,
    Node,
    Profile,
    Performance,
    /// A text that names a file with one of these endings.
    File(&'static [&'static str]),
    Text,
    Tensor,
    /// A clock, a list or a range of them.
    Clocks,
    /// A list of clocks and powers.
    ClockPowers,
    Intensity,
    /// A carbon mass over a time.
    Embodied,
    Any,
}

const TRUTH: &[(&str, &str)] = &[("true", "yes"), ("false", "no")];

/// An attribute of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    pub(crate) is_required: bool,
    pub(crate) expected: Expected,
    /// What is written behind `=` at first, as a snippet.
    pub(crate) snippet: &'static str,
}

const fn needed(name: &'static str, expected: Expected, snippet: &'static str) -> Attribute {
    Attribute { name, is_required: true, expected, snippet }
}

const fn free(name: &'static str, expected: Expected, snippet: &'static str) -> Attribute {
    Attribute { name, is_required: false, expected, snippet }
}

const SERVICE: &[Attribute] = &[
    needed("model", Expected::Model, "$1"),
    needed("rate", Expected::Measure(Measure::Rate), "${1:100} req/s"),
    needed("latency", Expected::Promise, "p${1:99} <= ${2:50} ms"),
    free("arrivals", Expected::Arrivals, "${1|poisson,uniform|}"),
    free("replicas", Expected::CountRange, "${1:1}..${2:4}"),
    free("isolate", Expected::Choice(TRUTH), "true"),
    free(
        "spread",
        Expected::Choice(&[("gpu", "replicas on different boards"), ("node", "replicas on different nodes")]),
        "${1|gpu,node|}",
    ),
];

const PIN: &[Attribute] = &[
    free("profile", Expected::Profile, "$1"),
    free("batch", Expected::Count, "${1:8}"),
    free("clock", Expected::Measure(Measure::Frequency), "${1:1410} MHz"),
    free("processes", Expected::Count, "${1:1}"),
    free("node", Expected::Node, "$1"),
];

const MODEL: &[Attribute] = &[
    free("performance", Expected::Performance, "$1"),
    free(
        "source",
        Expected::Choice(&[
            ("fitted", "a fitted model"),
            ("table", "measured rows only, nothing in between"),
        ]),
        "${1|fitted,table|}",
    ),
    free("artifact", Expected::File(&["pt", "ts", "pth"]), "\"$1\""),
    free("input", Expected::Tensor, "float32[${1:3, 224, 224}]"),
    free("memory", Expected::Measure(Measure::Memory), "${1:4} GiB"),
];

const NODE: &[Attribute] = &[
    needed("gpu", Expected::Boards, "$1 x ${2:8}"),
    free(
        "unused",
        Expected::Choice(&[
            ("idle", "an unused board draws its base power at the lowest clock"),
            ("off", "an unused board draws nothing"),
        ]),
        "${1|idle,off|}",
    ),
    free(
        "sharing",
        Expected::Choice(&[
            ("mig", "boards are cut into MIG instances"),
            ("mps", "processes share a board by MPS percentages"),
            ("whole", "one service has the whole board"),
        ]),
        "${1|mig,mps,whole|}",
    ),
    free("price", Expected::Measure(Measure::Price), "${1:2.1} USD per hour"),
    free("pue", Expected::Measure(Measure::Ratio), "${1:1.1}"),
    free("clocks", Expected::Clocks, "[${1:1410} MHz]"),
];

const BOARD: &[Attribute] = &[
    needed("base", Expected::Board, "$1"),
    free("title", Expected::Text, "\"$1\""),
    free("source", Expected::Text, "\"$1\""),
    free("clocks", Expected::Clocks, "${1:210} MHz .. ${2:1410} MHz step ${3:15} MHz"),
    free("memory_clock", Expected::Measure(Measure::Frequency), "${1:1512} MHz"),
    free("base_power", Expected::ClockPowers, "[${1:210} MHz: ${2:43.8} W]"),
    free("power_limit", Expected::Measure(Measure::Power), "${1:300} W"),
    free("memory", Expected::Measure(Measure::Memory), "${1:80} GiB"),
    free("sms", Expected::Count, "${1:108}"),
    free("illustration", Expected::Choice(TRUTH), "true"),
];

const PROFILE: &[Attribute] = &[
    free("sms", Expected::Count, "${1:14}"),
    free("memory", Expected::Measure(Measure::Memory), "${1:9.5} GiB"),
];

const CARBON: &[Attribute] = &[
    free("intensity", Expected::Intensity, "${1:490} gCO2/kWh"),
    free("embodied", Expected::Embodied, "${1:150} kgCO2 per gpu over ${2:4} years"),
];

const OBJECTIVE: &[Attribute] = &[
    free("horizon", Expected::Measure(Measure::Time), "${1:24} h"),
    free(
        "latency_rule",
        Expected::Choice(&[
            ("queueing", "what a client sees: waiting, queueing and execution together"),
            ("execution", "the execution of a full batch alone, as published work has it"),
        ]),
        "${1|queueing,execution|}",
    ),
];

/// The attributes of a block, in the order in which they are offered.
pub(crate) fn attributes(path: &[&str]) -> &'static [Attribute] {
    match path {
        ["service"] => SERVICE,
        ["service", "pin"] => PIN,
        ["model"] => MODEL,
        ["hardware", "node"] => NODE,
        ["board"] => BOARD,
        ["board", "profile"] => PROFILE,
        ["carbon"] => CARBON,
        ["objective"] => OBJECTIVE,
        _ => &[],
    }
}

/// An attribute of a block.
pub(crate) fn attribute(path: &[&str], name: &str) -> Option<&'static Attribute> {
    attributes(path).iter().find(|a| a.name == name)
}

/// The inner blocks of a block.
pub(crate) fn inner_blocks(path: &[&str]) -> Vec<&'static str> {
    contents(path).map_or_else(Vec::new, |c| c.blocks.iter().chain(c.repeated_blocks).copied().collect())
}

/// What an argument of a function may be.
pub(crate) fn argument(function: &str, name: Option<&str>, number: usize) -> Expected {
    match (function, name, number) {
        ("csv" | "trace", None, 0) => Expected::File(&["csv"]),
        ("csv", Some("step"), _) => Expected::Measure(Measure::Time),
        ("csv", Some("start"), _) => Expected::Text,
        ("gamma", ..) => Expected::Measure(Measure::Ratio),
        _ => Expected::Any,
    }
}

/// The functions, with their arguments as a snippet and what they give.
pub(crate) const FUNCTIONS: &[(&str, &str, &str)] = &[
    ("min", "min(${1:a}, ${2:b})", "the least of some quantities of one kind"),
    ("max", "max(${1:a}, ${2:b})", "the most of some quantities of one kind"),
    ("round", "round(${1:2.4})", "the nearest whole number"),
    (
        "csv",
        "csv(\"${1:grid.csv}\", start = \"${2:2025-03-01T00:00Z}\", step = ${3:1 h})",
        "a series of carbon intensities, one value a step",
    ),
    ("trace", "trace(\"${1:requests.csv}\")", "arrivals as they were recorded"),
    ("gamma", "gamma(cv = ${1:2})", "arrivals with this variation of their gaps; 1 is poisson"),
];

/// The values of a metric's limit.
pub(crate) fn limit(metric: &str) -> Expected {
    match metric {
        "power" => Expected::Measure(Measure::Power),
        "energy" => Expected::Measure(Measure::Energy),
        "carbon" => Expected::Measure(Measure::Carbon),
        "cost" => Expected::Measure(Measure::Money),
        "gpus" => Expected::Count,
        _ => Expected::Any,
    }
}

/// What each metric is.
pub(crate) const METRICS: &[(&str, &str)] = &[
    ("energy", "energy at the offered load over the horizon"),
    ("power", "power with everything busy at once"),
    ("carbon", "emissions over the horizon; needs `carbon { intensity = … }`"),
    ("gpus", "boards used"),
    ("cost", "cost over the horizon; needs a `price` of each node"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use ent_lang::vocabulary::{self, BLOCKS, unit_in_words};
    use ent_plan::plan::Metric;

    fn paths() -> Vec<Vec<&'static str>> {
        let mut paths = Vec::new();
        for kind in BLOCKS {
            paths.push(vec![*kind]);
            paths.extend(inner_blocks(&[kind]).into_iter().map(|inner| vec![*kind, inner]));
        }
        paths
    }

    #[test]
    fn the_attributes_are_those_of_the_language() {
        for path in paths() {
            let sorted = |mut names: Vec<&'static str>| {
                names.sort_unstable();
                names
            };
            let here = sorted(attributes(&path).iter().map(|a| a.name).collect());
            assert_eq!(here, sorted(contents(&path).unwrap().attributes.to_vec()), "{path:?}");
        }
    }

    #[test]
    fn units_measure_what_they_are_offered_for() {
        for measure in Measure::ALL {
            for unit in units(measure) {
                assert_eq!(unit_in_words(unit).as_deref(), Some(measure.words()), "{unit}");
            }
        }
    }

    #[test]
    fn functions_and_metrics_are_those_of_the_language() {
        assert_eq!(FUNCTIONS.iter().map(|f| f.0).collect::<Vec<_>>(), vocabulary::FUNCTIONS);
        let mut metrics: Vec<&str> = METRICS.iter().map(|m| m.0).collect();
        metrics.sort_unstable();
        let mut all: Vec<&str> = Metric::ALL.iter().map(|m| m.word()).collect();
        all.sort_unstable();
        assert_eq!(metrics, all);
    }
}
