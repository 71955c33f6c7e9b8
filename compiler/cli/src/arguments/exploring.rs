//! The command line of `entc explore`, and of pictures of plans.

use super::{Format, Question, values};
use clap::Args;
use ent_picture::Axis;
use std::path::PathBuf;
use std::time::Duration;

/// Pictures of a plan or of a front.
#[derive(Debug, Default, Args)]
pub(crate) struct Pictures {
    /// Write a picture.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write a page: one file, for a browser or a printer.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// `entc explore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entc explore vision.ent --over power,gpus
  entc explore vision.ent --over carbon,latency-slack --slack 50%..200% --points 7
  entc explore vision.ent --over energy,power --html front.html --plans fronts/

Each point is a plan of its own: the first metric at its least, with the second one limited. With
`latency-slack` every latency promise is multiplied by the slack: 100 % is the spec as it is.")]
pub(crate) struct Explore {
    /// The spec; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// What to minimise, and within what: two of power, energy, carbon, gpus, cost, latency-slack.
    #[arg(long, value_name = "METRIC,METRIC", value_parser = values::over)]
    pub(crate) over: Over,
    /// What is asked in place of what the spec says; the time limit is that of one point.
    #[command(flatten)]
    pub(crate) question: Question,
    /// Most points.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=200))]
    pub(crate) points: u32,
    /// The tightest and the loosest promises.
    #[arg(long, value_name = "LOW..HIGH", default_value = "50%..200%", value_parser = values::slack)]
    pub(crate) slack: (f64, f64),
    /// A point is done when it is proven this close to the best: `0.2%`, `0.002`.
    #[arg(long, value_name = "FRACTION", default_value = "0.1%", value_parser = values::gap)]
    pub(crate) gap: f64,
    /// A point is done after this many nodes of the search tree: the same front on any machine.
    #[arg(long, value_name = "N")]
    pub(crate) node_limit: Option<u32>,
    /// Stop after this long with the points found so far.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = values::time_limit)]
    pub(crate) total_time: Duration,
    /// Write pictures of the front.
    #[command(flatten)]
    pub(crate) pictures: Pictures,
    /// Write the plan of each point into a folder, to be shown or applied.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) plans: Option<PathBuf>,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// Two axes, of which at most one is no metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    /// What is minimised.
    pub(crate) minimized: ent_plan::plan::Metric,
    /// What is limited.
    pub(crate) limited: Axis,
}
