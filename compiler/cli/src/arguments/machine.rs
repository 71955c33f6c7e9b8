//! The command line of everything that talks to a machine: `observe`, `diff`, `apply` and what follows.

use super::{Format, Gateway, Question, Who, values};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Which NVML library is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nvml {
    /// The system's.
    System,
    /// entc's simulated one.
    Simulated,
    /// One by path.
    Path(PathBuf),
}

/// Which library to talk to, and which simulated machine.
#[derive(Clone, Debug, Args)]
pub(crate) struct Library {
    /// The NVML library: `system`, `simulated`, or the path of one.
    #[arg(long, value_name = "LIBRARY", env = "ENTC_NVML", value_parser = values::nvml, help_heading = MACHINE)]
    pub(crate) nvml: Option<Nvml>,
    /// The folder of the simulated machine [default: $XDG_STATE_HOME/entc/simulated].
    #[arg(long, value_name = "DIR", env = "ENTC_SIM_STATE", help_heading = MACHINE)]
    pub(crate) sim_state: Option<PathBuf>,
}

/// Which machine, and where entc remembers what it did to it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Machine {
    /// Which library to talk to.
    #[command(flatten)]
    pub(crate) library: Library,
    /// The folder of entc's state and journal [default: /var/lib/entc, or `entc` in the simulated machine's].
    #[arg(long, value_name = "DIR", env = "ENTC_STATE", help_heading = MACHINE)]
    pub(crate) state: Option<PathBuf>,
}

/// Which node of a plan this machine is.
#[derive(Clone, Debug, Args)]
pub(crate) struct ThisNode {
    /// Which node of the plan this machine is [default: the only one, or the one with the host's name].
    #[arg(long, value_name = "NAME", env = "ENTC_NODE", help_heading = MACHINE)]
    pub(crate) node: Option<String>,
}

/// The heading of these options in the help.
const MACHINE: &str = "Machine";

/// What is planned first, when a spec is given in place of a plan.
#[derive(Debug, Args)]
pub(crate) struct Planned {
    /// A plan made by `entc plan -o`, or a spec, which is planned first; `-` is a plan on standard input.
    #[arg(value_name = "plan.json|FILE")]
    pub(crate) file: String,
    /// What is asked in place of what the spec says.
    #[command(flatten)]
    pub(crate) question: Question,
    /// Who plans a spec.
    #[command(flatten)]
    pub(crate) who: Who,
}

/// `entc observe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc observe\n  entc observe --nvml simulated --format json")]
pub(crate) struct Observe {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// `entc diff`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc diff plan.json\n  entc diff vision.ent --detailed-exitcode")]
pub(crate) struct Diff {
    /// The plan, or a spec.
    #[command(flatten)]
    pub(crate) planned: Planned,
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Which node.
    #[command(flatten)]
    pub(crate) node: ThisNode,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
    /// Exit with 2 when there are changes.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// How a command that changes a machine reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Told {
    /// A bar on a terminal, lines elsewhere.
    Human,
    /// An event of JSON a line, on standard output.
    #[value(alias = "json")]
    JsonLines,
}

/// How a machine is changed.
#[derive(Clone, Debug, Args)]
pub(crate) struct Change {
    /// Boards may be reset, which ends everything that runs on them.
    #[arg(long)]
    pub(crate) allow_reset: bool,
    /// When a step fails, stop there in place of going back to what was before.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// How long to wait for another entc that is at work: `30s`, `5m`; `0s` does not wait.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::wait)]
    pub(crate) lock_timeout: Duration,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Told,
}

/// `entc apply`.
#[derive(Debug, Args)]
#[command(after_help = "\
A plan is applied exactly as it is, without a question. A spec is planned and shown first, and applied
after a `yes`.

Examples:
  entc plan vision.ent --nvml system -o plan.json && entc apply plan.json
  entc apply vision.ent --nvml simulated --auto-approve --allow-reset
  entc apply --resume")]
pub(crate) struct Apply {
    /// A plan made by `entc plan -o`, or a spec, which is planned first; `-` is a plan on standard input.
    #[arg(value_name = "plan.json|FILE", required_unless_present_any = ["resume", "reassert"])]
    pub(crate) file: Option<String>,
    /// What is asked in place of what the spec says.
    #[command(flatten)]
    pub(crate) question: Question,
    /// Who plans a spec.
    #[command(flatten)]
    pub(crate) who: Who,
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Which node.
    #[command(flatten)]
    pub(crate) node: ThisNode,
    /// How.
    #[command(flatten)]
    pub(crate) change: Change,
    /// What serves the plan.
    #[command(flatten)]
    pub(crate) gateway: Gateway,
    /// Change the machine only: start nothing on it, and leave what runs alone.
    #[arg(long, env = "ENTC_NO_SERVE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_serve: bool,
    /// Write down what is to be served, and leave it to another service manager to run `entc serve`.
    #[arg(long, conflicts_with = "no_serve")]
    pub(crate) deploy_only: bool,
    /// Apply a spec's plan without asking.
    #[arg(long)]
    pub(crate) auto_approve: bool,
    /// Go on with an apply that was cut off.
    #[arg(long, conflicts_with_all = ["file", "reassert", "persist"])]
    pub(crate) resume: bool,
    /// Install a systemd unit that applies the plan again after every boot.
    #[arg(long)]
    pub(crate) persist: bool,
    /// Apply the plan that was applied last once more, as after a boot.
    #[arg(long, conflicts_with = "file")]
    pub(crate) reassert: bool,
    /// The folder of the unit that `--persist` installs.
    #[arg(long, value_name = "DIR", default_value = "/etc/systemd/system", requires = "persist")]
    pub(crate) unit_dir: PathBuf,
}

/// `entc rollback`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc rollback\n  entc rollback --nvml simulated --allow-reset")]
pub(crate) struct Rollback {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// How.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Also when a GPU that was changed is gone for good.
    #[arg(long)]
    pub(crate) without_lost: bool,
    /// Change the machine only: leave what runs on it alone.
    #[arg(long, env = "ENTC_NO_SERVE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_serve: bool,
    /// Every worker has to be ready within this.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = values::time_limit)]
    pub(crate) readiness: Duration,
}

/// `entc destroy`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc destroy\n  entc destroy --auto-approve --allow-reset")]
pub(crate) struct Destroy {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// How.
    #[command(flatten)]
    pub(crate) change: Change,
    /// Do not ask.
    #[arg(long)]
    pub(crate) auto_approve: bool,
    /// Change the machine only: leave what runs on it alone.
    #[arg(long, env = "ENTC_NO_SERVE", value_parser = clap::builder::FalseyValueParser::new())]
    pub(crate) no_serve: bool,
    /// The folder of the unit that `entc apply --persist` installed.
    #[arg(long, value_name = "DIR", default_value = "/etc/systemd/system")]
    pub(crate) unit_dir: PathBuf,
}

/// `entc import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc import\n  entc import --gpu 0 --gpu GPU-5c5d…")]
pub(crate) struct Import {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Take over the instances of this GPU only, by index or UUID; may be repeated.
    #[arg(long = "gpu", value_name = "N|UUID")]
    pub(crate) gpus: Vec<String>,
    /// How long to wait for another entc that is at work: `30s`, `5m`; `0s` does not wait.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::wait)]
    pub(crate) lock_timeout: Duration,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// `entc drift`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc drift\n  entc drift --detailed-exitcode --format json")]
pub(crate) struct Drift {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
    /// Exit with 2 when something drifted.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// `entc doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  entc doctor\n  entc doctor --format json")]
pub(crate) struct Doctor {
    /// Which machine.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// How to report.
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}
