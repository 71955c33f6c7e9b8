//! The command line of `entc simulate` and `entc compare`.

use super::machine::Planned;
use super::{Format, Question, values};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// `entc simulate`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entc simulate plan.json --seeds 20
  entc simulate vision.ent --set load=50% --requests 1000000
  entc simulate plan.json --trace azure.csv
  entc simulate plan.json --trace classify=day.csv --trace chat=night.csv --format json")]
pub(crate) struct Simulate {
    /// The plan, or a spec.
    #[command(flatten)]
    pub(crate) planned: Planned,
    /// How long to simulate, and how often.
    #[command(flatten)]
    pub(crate) runs: Runs,
    /// Recorded arrivals in place of the plan's: gaps scaled to the rate of every service, or of one.
    #[arg(long = "trace", value_name = "[SERVICE=]FILE.csv")]
    pub(crate) traces: Vec<String>,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
    /// Exit with 2 when a promise is broken.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// Who plans.
#[derive(Debug, Args)]
pub(crate) struct Who {
    /// Who plans: `optimal` proves how good its plan is, `greedy` is fast, the others are as published
    /// [default: optimal].
    #[arg(long, value_name = "NAME")]
    pub(crate) planner: Option<String>,
    /// How a published planner plans.
    #[command(flatten)]
    pub(crate) published: Published,
}

/// How published planners plan.
#[derive(Debug, Args)]
pub(crate) struct Published {
    /// Let published planners decide exactly like their originals, quirks and truncations included.
    #[arg(long)]
    pub(crate) conformant: bool,
    /// How much of a board each model uses by itself, for planners that ask (`usher`, `gpulets`).
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) utilisation: Option<String>,
}

/// How long to simulate, and how often.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Runs {
    /// The first seed: the same seeds, the same result.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many seeds are simulated and pooled.
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) seeds: u32,
    /// Requests per service and seed; 100000 unless a duration is given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    pub(crate) requests: Option<u64>,
    /// Simulated time per seed: `60`, `10m`, `1h`.
    #[arg(long, value_name = "TIME", value_parser = values::time_limit, conflicts_with = "requests")]
    pub(crate) duration: Option<Duration>,
}

/// `entc compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entc compare vision.ent
  entc compare vision.ent --loads 25%,50%,75%,100% --html compare.html
  entc compare vision.ent --planners optimal,parvagpu --latency-rule execution --table measured.csv --format csv")]
pub(crate) struct Compare {
    /// The spec; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// What is asked in place of what the spec says.
    #[command(flatten)]
    pub(crate) question: Question,
    /// Who plans, in this order; all unless given.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) planners: Vec<String>,
    /// How published planners plan.
    #[command(flatten)]
    pub(crate) published: Published,
    /// The loads to compare at: values of the spec's param `load`, or factors of all rates without one.
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',', value_parser = values::load)]
    pub(crate) loads: Vec<(String, f64)>,
    /// Stop when a plan is proven this close to the best: `0.2%`, `0.002`.
    #[arg(long, value_name = "FRACTION", value_parser = values::gap)]
    pub(crate) gap: Option<f64>,
    /// How long to simulate, and how often.
    #[command(flatten)]
    pub(crate) runs: Runs,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: CompareFormat,
    /// Write a picture of watts over load.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a page with the picture and the tables.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// Formats of `compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// Drawn.
    Human,
    /// JSON.
    Json,
    /// One row for each load and planner.
    Csv,
    /// Tables for a document.
    Markdown,
}
