//! What machines are and what was done to them → the JSON that `observe`, `diff`, `drift`, `import`, `doctor`
//! and `apply` print.

use crate::exit::Trouble;
use crate::render::json::Shown;
use ent_machine::apply::Outcome;
use ent_machine::bind::Binding;
use ent_machine::changes::{Changes, Step};
use ent_machine::observed::{GpuUuid, Observed};
use ent_machine::preflight::{Radius, Warning};
use ent_machine::state::State;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of these formats: minor is additive, major is breaking.
pub(crate) const FORMAT_VERSION: &str = "1.0";

/// An instance that is entc's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct OurInstance {
    /// Its GPU.
    gpu: GpuUuid,
    /// Its profile.
    profile: String,
    /// First memory slice.
    start: u32,
    /// Memory slices.
    size: u32,
    /// The service it carries.
    service: Option<String>,
}

impl std::fmt::Display for OurInstance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at slice {} of {}", self.profile, self.start, self.gpu)
    }
}

/// The instances of a machine that are entc's now.
pub(crate) fn ours(state: &State, observed: &Observed) -> Vec<OurInstance> {
    let service = |gpu: &GpuUuid, start: u32| {
        let known = state.gpus.get(gpu)?.instances.iter().find(|i| i.start == start)?;
        known.service.clone()
    };
    let is_there = |gpu: &GpuUuid, start: u32, size: u32, profile: &str| {
        let seen = observed.gpu(gpu);
        seen.is_some_and(|g| {
            g.instances.iter().any(|i| (i.start, i.size, i.profile.as_str()) == (start, size, profile))
        })
    };
    let all = state.on(observed).ours().into_iter();
    all.filter(|(gpu, start, size, profile)| is_there(gpu, *start, *size, profile))
        .map(|(gpu, start, size, profile)| OurInstance {
            service: service(&gpu, start),
            gpu,
            profile,
            start,
            size,
        })
        .collect()
}

/// What `entc observe --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Observation<'a> {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// The machine as its driver tells it. Watts are measured by the boards; of a simulated machine they are
    /// simulated.
    pub(crate) observed: &'a Observed,
    /// The checksum of the plan that was applied last; `null` when none was.
    pub(crate) plan: Option<&'a str>,
    /// The node of the plan that this machine is.
    pub(crate) node: Option<&'a str>,
    /// The instances that are entc's; all others are foreign. Where `warnings` says that entc's own files
    /// cannot be read, nobody knows.
    pub(crate) ours: Vec<OurInstance>,
    /// The journal of a transaction that was cut off; `null` when there is none.
    pub(crate) open_journal: Option<String>,
    /// What is wrong with entc's own files.
    pub(crate) warnings: Vec<Shown>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ShownStep {
    /// The GPU.
    gpu: GpuUuid,
    /// Its index.
    index: u32,
    /// What is done, in words.
    what: String,
    /// What is done.
    operation: serde_json::Value,
    /// Why.
    reason: String,
}

impl From<&Step> for ShownStep {
    fn from(step: &Step) -> Self {
        Self {
            gpu: step.gpu.clone(),
            index: step.index,
            what: step.operation.to_string(),
            operation: serde_json::json!(step.operation),
            reason: step.reason.clone(),
        }
    }
}

/// An instance that comes or stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ShownInstance {
    /// Its GPU.
    gpu: GpuUuid,
    /// Its profile.
    profile: String,
    /// First memory slice.
    start: u32,
    /// Memory slices.
    size: u32,
    /// The service it carries.
    service: Option<String>,
}

/// What the steps do to whatever runs on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct ShownRadius {
    /// The GPU.
    gpu: GpuUuid,
    /// Its index.
    index: u32,
    /// Whether the board resets.
    resets: bool,
    /// Instances that go, as `profile@start`.
    destroyed: Vec<String>,
    /// Services that stop, or lose an instance.
    services: Vec<String>,
    /// Processes that lose what they run on.
    processes: Vec<ent_machine::observed::Holder>,
}

/// A planned board and the GPU it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Bound {
    /// The index in the plan.
    index: u32,
    /// The GPU.
    gpu: GpuUuid,
}

/// Planned boards and their GPUs.
pub(crate) fn bound(binding: &Binding) -> Vec<Bound> {
    binding.gpus.iter().map(|(index, gpu)| Bound { index: *index, gpu: gpu.clone() }).collect()
}

/// What stands in the way or is to be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ShownTrouble {
    /// A word for scripts.
    code: String,
    /// What it is.
    message: String,
    /// What to do.
    help: String,
}

impl From<&Trouble> for ShownTrouble {
    fn from(trouble: &Trouble) -> Self {
        Self { code: trouble.code.to_owned(), message: trouble.message.clone(), help: trouble.help.clone() }
    }
}

impl From<&Warning> for ShownTrouble {
    fn from(warning: &Warning) -> Self {
        Self { code: warning.code.to_owned(), message: warning.message.clone(), help: warning.help.clone() }
    }
}

/// What `entc diff --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesReport {
    /// Version of this format.
    format_version: &'static str,
    /// The plan's checksum.
    plan: Option<String>,
    /// The node of the plan that this machine is.
    node: String,
    /// Which planned board is which GPU.
    binding: Vec<Bound>,
    /// Whether there is anything to do.
    has_changes: bool,
    /// The steps, in order.
    steps: Vec<ShownStep>,
    /// Instances that come.
    created: Vec<ShownInstance>,
    /// Instances that stay.
    kept: Vec<ShownInstance>,
    /// GPUs that nothing is done to.
    untouched: Vec<GpuUuid>,
    /// Instances that go.
    n_destroyed: usize,
    /// What stops, GPU by GPU.
    blast_radius: Vec<ShownRadius>,
    /// Why `apply` would refuse as things are.
    refusals: Vec<ShownTrouble>,
    /// What else is to be known.
    warnings: Vec<ShownTrouble>,
}

impl ChangesReport {
    /// From what a diff found.
    pub(crate) fn new(
        plan: Option<&str>,
        binding: &Binding,
        changes: &Changes,
        radius: &[Radius],
        refusals: &[Trouble],
        warnings: &[Warning],
    ) -> Self {
        let instance = |kept: &ent_machine::changes::Kept| ShownInstance {
            gpu: kept.gpu.clone(),
            profile: kept.profile.clone(),
            start: kept.start,
            size: kept.size,
            service: kept.service.clone(),
        };
        let reach = |radius: &Radius| ShownRadius {
            gpu: radius.gpu.clone(),
            index: radius.index,
            resets: radius.resets,
            destroyed: radius.destroyed.clone(),
            services: radius.services.clone(),
            processes: radius.processes.clone(),
        };
        Self {
            format_version: FORMAT_VERSION,
            plan: plan.map(str::to_owned),
            node: binding.node.clone(),
            binding: bound(binding),
            has_changes: !changes.is_empty(),
            steps: changes.steps.iter().map(ShownStep::from).collect(),
            created: changes.created.iter().map(instance).collect(),
            kept: changes.kept.iter().map(instance).collect(),
            untouched: changes.untouched.clone(),
            n_destroyed: changes.n_destroyed(),
            blast_radius: radius.iter().map(reach).collect(),
            refusals: refusals.iter().map(ShownTrouble::from).collect(),
            warnings: warnings.iter().map(ShownTrouble::from).collect(),
        }
    }
}

/// What `entc drift --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct DriftReport {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// The checksum of the plan that was applied last; `null` when none was.
    pub(crate) plan: Option<String>,
    /// Whether anything is not as entc left it.
    pub(crate) has_drifted: bool,
    /// What is not.
    pub(crate) drift: Vec<Drifted>,
}

/// One thing that is not as entc left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Drifted {
    /// The GPU.
    pub(crate) gpu: GpuUuid,
    /// Which thing.
    pub(crate) field: String,
    /// As entc left it.
    pub(crate) expected: String,
    /// As it is.
    pub(crate) found: String,
    /// Whether applying the same plan again brings it back; for the advice, not for scripts.
    #[serde(skip)]
    pub(crate) is_reasserted: bool,
}

/// What `entc import --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ImportReport {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// The instances that were taken over.
    pub(crate) imported: Vec<OurInstance>,
    /// What else is to be known.
    pub(crate) notes: Vec<String>,
}

/// Instances as the engine names them.
pub(crate) fn instances(all: ent_machine::state::Ours) -> Vec<OurInstance> {
    all.into_iter()
        .map(|(gpu, start, size, profile)| OurInstance { gpu, profile, start, size, service: None })
        .collect()
}

/// What `entc doctor --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Findings {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// Whether nothing would keep `apply` from its work.
    pub(crate) is_ready: bool,
    /// What was looked at.
    pub(crate) checks: Vec<Finding>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Finding {
    /// Which.
    pub(crate) name: String,
    /// `ok`, `warning` or `problem`.
    pub(crate) verdict: &'static str,
    /// What was found.
    pub(crate) message: String,
    /// What to do; `null` when there is nothing to do.
    pub(crate) fix: Option<String>,
}

/// A line of what `entc apply --format json-lines` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Event {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// What happened.
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub(crate) enum What {
    /// The steps are known and about to begin.
    Start {
        /// `apply`, `resume`, `rollback`, `destroy`.
        transaction: &'static str,
        /// The plan's checksum, of an apply.
        plan: Option<String>,
        /// The node of the plan that this machine is.
        node: Option<String>,
        /// Which planned board is which GPU.
        binding: Vec<Bound>,
        /// What will be done.
        steps: Vec<ShownStep>,
    },
    /// A step begins.
    StepStarted {
        /// Its number from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// Whether it goes back.
        is_inverse: bool,
        /// The step.
        step: ShownStep,
    },
    /// A step is over.
    StepFinished {
        /// Its number from 1.
        number: usize,
        /// The step.
        step: ShownStep,
        /// What the driver said, when it failed.
        error: Option<ShownTrouble>,
    },
    /// All steps are done; the machine is read back.
    Verifying,
    /// What was done is taken back.
    GoingBack {
        /// Why.
        reason: String,
    },
    /// Workers come: so many of so many replicas are healthy.
    Starting {
        /// Healthy ones.
        healthy: usize,
        /// Of so many.
        of: usize,
    },
    /// Every replica is healthy and routed.
    Serving {
        /// The supervisor's process.
        pid: u32,
        /// Whether it was started, and not only changed.
        is_new: bool,
        /// Where it listens for HTTP.
        http: Option<String>,
        /// Where it listens for gRPC.
        grpc: Option<String>,
        /// Where it gives metrics.
        metrics: Option<String>,
        /// Replicas.
        replicas: usize,
        /// Services that had no worker for a while.
        paused: Vec<String>,
    },
    /// The end: the last line, whatever happened.
    End {
        /// How the machine is left.
        outcome: Left,
        /// The exit code of the command.
        exit_code: u8,
        /// Steps that came about.
        done: Vec<ShownStep>,
        /// Steps that failed or may have been half done.
        failed: Vec<ShownStep>,
        /// Steps that were not begun.
        not_started: Vec<ShownStep>,
        /// Steps of going back that came about.
        taken_back: Vec<ShownStep>,
        /// Where the journal is; `null` when there is none of this run.
        journal: Option<String>,
        /// What else is to be known.
        notes: Vec<String>,
        /// Why it did not end as asked.
        diagnostics: Vec<Shown>,
    },
}

impl What {
    /// What serves.
    pub(crate) fn serving(report: &ent_serve::supervisor::Report) -> Self {
        let status = &report.status;
        let shown = |at: Option<std::net::SocketAddr>| at.map(|at| at.to_string());
        Self::Serving {
            pid: status.pid,
            is_new: report.is_new,
            http: shown(status.http),
            grpc: shown(status.grpc),
            metrics: shown(status.metrics),
            replicas: status.replicas.len(),
            paused: report.paused.clone(),
        }
    }
}

/// How a machine is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Left {
    /// As wished; read back.
    Done,
    /// As before; read back.
    RolledBack,
    /// As before, because nothing was begun.
    Unchanged,
    /// Between the two, with an open journal.
    Open,
}

impl From<Outcome> for Left {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::RolledBack => Self::RolledBack,
            Outcome::Unchanged => Self::Unchanged,
            Outcome::Open => Self::Open,
        }
    }
}

impl Event {
    /// As one line of JSON.
    pub(crate) fn line(what: What) -> String {
        let event = Self { format_version: FORMAT_VERSION, what };
        format!("{}\n", serde_json::json!(event))
    }

    /// The last line of a command that never began, on a machine that is whole or half way.
    pub(crate) fn refused(
        exit_code: u8,
        open_journal: Option<&std::path::Path>,
        diagnostics: Vec<Shown>,
    ) -> String {
        Self::line(What::End {
            outcome: if open_journal.is_some() { Left::Open } else { Left::Unchanged },
            exit_code,
            done: Vec::new(),
            failed: Vec::new(),
            not_started: Vec::new(),
            taken_back: Vec::new(),
            journal: open_journal.map(|path| path.display().to_string()),
            notes: Vec::new(),
            diagnostics,
        })
    }
}
