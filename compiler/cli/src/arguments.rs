//! The command line: what can be asked, in which words.

use crate::terminal::Color;
use clap::{Args, Parser, Subcommand, ValueEnum};
use ent_plan::plan::{LatencyRule, Metric};
use std::path::PathBuf;
use std::time::Duration;

mod exploring;
mod judging;
mod machine;
mod serving;
mod values;

pub(crate) use exploring::{Explore, Over, Pictures};
pub(crate) use judging::{Compare, CompareFormat, Published, Runs, Simulate, Who};
pub(crate) use machine::{
    Apply, Change, Destroy, Diff, Doctor, Drift, Import, Library, Machine, Nvml, Observe, Planned, Rollback,
    ThisNode, Told,
};
pub(crate) use serving::{Action, Bench, Gateway, Listen, Serve, Top};

/// Plan GPU inference for the fewest joules that keep every latency promise, with proof.
#[derive(Debug, Parser)]
#[command(name = "entc", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// How output looks.
    #[command(flatten)]
    pub(crate) look: Look,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    something is wrong with what was given: usage, spec, file, plan, or no plan exists
  2    only with --detailed-exitcode: there are changes, the machine drifted, or a promise is broken in simulation
  3    apply, rollback, destroy or import refused or failed; the machine is as it was, and whole
  4    the machine is half way: apply, rollback or destroy stopped there, or was refused because one had;
       `entc apply --resume` goes on, `entc rollback` back
  101  a bug in entc
  130  interrupted";

/// How output looks; the same for all commands.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Look {
    /// When to use colour; NO_COLOR and CLICOLOR_FORCE are respected.
    #[arg(long, value_enum, default_value = "auto", global = true, value_name = "WHEN", env = "ENTC_COLOR")]
    pub(crate) color: Color,
    /// Draw with ASCII characters only.
    #[arg(long, global = true)]
    pub(crate) ascii: bool,
    /// Say nothing but errors and results.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Say what is being done.
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find what is wrong with specs, without planning.
    Check(Check),
    /// Write specs in their canonical layout, comments kept.
    Fmt(Fmt),
    /// Plan a spec and show the plan.
    Plan(Box<Plan>),
    /// Check a saved plan and show it.
    Show(Show),
    /// Simulate a plan's queues and see which promises hold.
    Simulate(Box<Simulate>),
    /// Plan a spec with several planners and judge the plans side by side.
    Compare(Box<Compare>),
    /// Plan a spec many times and see what one metric costs in another.
    Explore(Box<Explore>),
    /// Show what a machine is now: GPUs, instances, clocks, power, who holds them.
    Observe(Observe),
    /// Show the steps between a machine and a plan, without taking them.
    Diff(Box<Diff>),
    /// Make a machine what a plan says; when that fails, what it was.
    Apply(Box<Apply>),
    /// Take back the last apply, whether it ended or was cut off.
    Rollback(Rollback),
    /// Give the machine back as it was before entc first changed it.
    Destroy(Destroy),
    /// Take over instances that were not made by entc.
    Import(Import),
    /// Compare a machine with what entc left on it.
    Drift(Drift),
    /// Find what would keep entc from changing a machine, and how to mend it.
    Doctor(Doctor),
    /// Run a deployment's gateway and workers, or look after those that run.
    Serve(Box<Serve>),
    /// Send a deployment its planned load, and see what it measures beside what was predicted.
    Bench(Box<Bench>),
    /// Watch boards, services, latency and watts.
    Top(Top),
    /// Explain a diagnostic, or why a service got what it got.
    Explain(Explain),
    /// Print the JSON Schema of a format.
    Schema(Schema),
    /// Fit performance models to measurements, and look at them.
    #[command(subcommand)]
    Performance(Performance),
    /// Print a completion script for a shell.
    Completions(Completions),
    /// Print the manual page.
    Man,
}

/// `entc check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc check vision.ent\n  entc check --format sarif *.ent > entc.sarif")]
pub(crate) struct Check {
    /// Specs; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: CheckFormat,
    /// One line for each finding: `file:line:column: code: message`.
    #[arg(long, conflicts_with = "format")]
    pub(crate) concise: bool,
    /// Give a param another value.
    #[arg(long = "set", value_name = "PARAM=VALUE", value_parser = values::setting)]
    pub(crate) settings: Vec<(String, String)>,
}

/// Formats of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    /// Drawn, on standard error.
    Human,
    /// JSON, on standard output.
    Json,
    /// SARIF 2.1.0, on standard output.
    Sarif,
}

/// `entc fmt`.
#[derive(Debug, Args)]
pub(crate) struct Fmt {
    /// Specs; `-` reads standard input and writes standard output.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Change nothing; exit with 1 and name the files that would change.
    #[arg(long)]
    pub(crate) check: bool,
}

/// `entc plan`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  entc plan vision.ent
  entc plan vision.ent --set load=50% --minimize power --time-limit 2m -o plan.json
  entc plan vision.ent --table measured.csv --latency-rule execution --format json
  entc plan vision.ent --html report.html --svg boards.svg
  entc plan vision.ent --html report.html --fronts --alternatives
  entc plan vision.ent --nvml system -o plan.json")]
pub(crate) struct Plan {
    /// The spec; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// What is asked in place of what the spec says.
    #[command(flatten)]
    pub(crate) question: Question,
    /// Who plans.
    #[command(flatten)]
    pub(crate) who: Who,
    /// Stop when the plan is proven this close to the best: `0.2%`, `0.002`.
    #[arg(long, value_name = "FRACTION", value_parser = values::gap)]
    pub(crate) gap: Option<f64>,
    /// Stop after this many nodes of the search tree: the same plan on any machine.
    #[arg(long, value_name = "N")]
    pub(crate) node_limit: Option<u32>,
    /// The machine to plan for: its UUIDs and its state go into the plan. Offline unless given.
    #[command(flatten)]
    pub(crate) library: Library,
    /// Which node.
    #[command(flatten)]
    pub(crate) node: ThisNode,
    /// Write the plan to a file.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write pictures of the plan.
    #[command(flatten)]
    pub(crate) pictures: Pictures,
    /// On the page, show what less or more boards and tighter or looser promises would cost: plans the spec
    /// up to twelve times more, in up to four times the time limit.
    #[arg(long, requires = "html")]
    pub(crate) fronts: bool,
    /// On the page, show the next-best slices, batches and clocks of each service: plans the spec again for
    /// each of them, in up to four times the time limit.
    #[arg(long, requires = "html")]
    pub(crate) alternatives: bool,
    /// How to show the plan.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
    /// Print one of the forms on the way from text to plan, and stop there.
    #[arg(long, value_enum, value_name = "FORM")]
    pub(crate) emit: Option<Emit>,
    /// Show the numbers behind every choice.
    #[arg(long, conflicts_with = "summary")]
    pub(crate) explain: bool,
    /// Show status and totals only.
    #[arg(long)]
    pub(crate) summary: bool,
    /// Exit with 2 when the plan is not the one already in the output file (or there is none).
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// What is asked of a spec, in place of what it says itself: one file answers many questions.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// Minimise another metric than the spec says.
    #[arg(long, value_name = "METRIC", value_parser = values::metric())]
    pub(crate) minimize: Option<Metric>,
    /// Give a param another value.
    #[arg(long = "set", value_name = "PARAM=VALUE", value_parser = values::setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// Which latency the promises are about; the spec's, or else `queueing`.
    #[arg(long, value_name = "RULE", value_parser = values::latency_rule())]
    pub(crate) latency_rule: Option<LatencyRule>,
    /// Plan with the rows of a measured table in place of fitted models.
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) table: Option<String>,
    /// Stop after this long with the best plan found: `90`, `90s`, `2m`.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time_limit, env = "ENTC_TIME_LIMIT")]
    pub(crate) time_limit: Duration,
}

/// Formats of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Drawn.
    Human,
    /// JSON, and nothing else, on standard output.
    Json,
}

/// The forms on the way from text to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The text's structure.
    Ast,
    /// Names and units resolved.
    Program,
    /// The optimisation problem.
    Problem,
    /// What the solver said.
    Solution,
    /// The plan file.
    Plan,
    /// The problem in the solver's LP format.
    Lp,
}

/// `entc show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  entc show plan.json\n  entc show plan.json --svg boards.svg --html report.html"
)]
pub(crate) struct Show {
    /// A plan made by `entc plan -o`; `-` is standard input.
    #[arg(value_name = "plan.json")]
    pub(crate) file: String,
    /// How to show it.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
    /// Show the numbers behind every choice.
    #[arg(long, conflicts_with = "summary")]
    pub(crate) explain: bool,
    /// Show status and totals only.
    #[arg(long)]
    pub(crate) summary: bool,
    /// Write pictures of the plan.
    #[command(flatten)]
    pub(crate) pictures: Pictures,
}

/// `entc explain`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc explain unit-mismatch\n  entc explain vision.ent classify")]
pub(crate) struct Explain {
    /// The code of a diagnostic, or a spec.
    #[arg(value_name = "CODE|FILE")]
    pub(crate) subject: String,
    /// A service of the spec.
    #[arg(value_name = "SERVICE")]
    pub(crate) service: Option<String>,
    /// What is asked in place of what the spec says.
    #[command(flatten)]
    pub(crate) question: Question,
}

/// `entc schema`.
#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The format.
    #[arg(value_enum)]
    pub(crate) of: SchemaOf,
}

/// Formats with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// `plan.json`, written by `entc plan -o`.
    Plan,
    /// What `entc plan --format json` prints.
    Report,
    /// What `entc check --format json` prints.
    Diagnostics,
    /// A fitted performance model.
    Performance,
    /// What `entc simulate --format json` prints.
    Simulation,
    /// What `entc bench --format json` prints.
    Benchmark,
    /// What `entc compare --format json` prints.
    Comparison,
    /// What `entc explore --format json` prints.
    Exploration,
    /// What `entc observe --format json` prints.
    Observation,
    /// What `entc diff --format json` prints.
    Changes,
    /// What `entc drift --format json` prints.
    Drift,
    /// What `entc import --format json` prints.
    Imported,
    /// What `entc doctor --format json` prints.
    Findings,
    /// A line of what `entc apply --format json-lines` prints.
    Event,
}

/// `entc performance`.
#[derive(Debug, Subcommand)]
pub(crate) enum Performance {
    /// Fit models to a table of measurements.
    Fit(Fit),
    /// Show a fitted model: its coefficients and how well it fits.
    Show(ShowPerformance),
}

/// `entc performance fit`.
#[derive(Debug, Args)]
pub(crate) struct Fit {
    /// The measurements.
    #[arg(value_name = "FILE.csv")]
    pub(crate) file: String,
    /// Where to write the models.
    #[arg(short, long, value_name = "FILE.json")]
    pub(crate) output: PathBuf,
    /// The board they were taken on.
    #[arg(long, value_name = "ID", default_value = "a100-80gb-pcie")]
    pub(crate) board: String,
    /// Fit this model only, of those in the file; names the model where the file does not.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Learn the board's curves from all models of the file first, and write them down too.
    #[arg(long)]
    pub(crate) learn: bool,
}

/// `entc performance show`.
#[derive(Debug, Args)]
pub(crate) struct ShowPerformance {
    /// A file of fitted models, or `catalog:performance/BOARD`.
    #[arg(value_name = "FILE|catalog:NAME")]
    pub(crate) file: String,
    /// How to show it.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// `entc completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}
