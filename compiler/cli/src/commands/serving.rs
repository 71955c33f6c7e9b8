//! What runs on a machine while it is changed: workers leave what goes, and serve on what came.
//!
//! The order of an apply: workers whose instances go end first, and their requests move to other replicas or
//! wait; then the machine changes; then workers come on what is new, requests go to them, and workers that
//! are not wanted any more end.

use super::deployment::{Artifacts, artifacts_of, deployment};
use super::kept;
use super::serve::command;
use super::transaction::{After, Run};
use crate::arguments::{self, Told};
use crate::exit::{Stop, Trouble};
use crate::machine::{self, Machine};
use crate::render;
use crate::report::machine::What;
use crate::terminal::{Terminal, Verbosity};
use ent_machine::apply::Outcome;
use ent_machine::changes::{Changes, Operation};
use ent_machine::observed::Observed;
use ent_machine::store::Locked;
use ent_plan::plan::Plan;
use ent_serve::deployment::{Deployment, Replica};
use ent_serve::supervisor::{self, Client, NotServing, Report, Start, Status};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long requests that are there may take when nothing is to run any more.
pub(super) const DRAIN: Duration = Duration::from_secs(30);

/// What is done where no supervisor runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// One is started.
    Start,
    /// What it is to run is written down, and somebody else starts it.
    WriteDown,
    /// Nothing.
    Leave,
}

/// What runs, or is to run, in a state folder.
pub(super) struct Serving {
    folder: PathBuf,
    command: Vec<OsString>,
    readiness: Duration,
    /// The supervisor, as it was at first; `None` when none ran.
    pub(super) before: Option<Status>,
    missing: Missing,
}

impl Serving {
    /// Looks at what runs.
    ///
    /// # Errors
    /// When there is a supervisor that this user may not ask; when there is to be one and no worker for it.
    pub(super) fn of(
        machine: &arguments::Machine,
        library: &ent_machine::Library,
        gateway: Option<&arguments::Gateway>,
        readiness: Duration,
        missing: Missing,
    ) -> Result<Self, Stop> {
        if missing != Missing::Leave {
            machine::worker()?;
        }
        let folder = machine::state_folder(machine, library);
        let before =
            match Client::connect(&folder).and_then(|client| client.map(|mut c| c.status()).transpose()) {
                Ok(status) => status,
                Err(error) => {
                    return Err(Trouble::new(
                        "supervisor-unreachable",
                        format!("the supervisor that runs cannot be asked: {}", crate::write::reason(&error)),
                        "run it as the same user or as root, or leave what runs alone with `--no-serve`",
                    )
                    .into());
                }
            };
        let command = gateway.map(|gateway| command(machine, library, gateway, true)).unwrap_or_default();
        Ok(Self { folder, command, readiness, before, missing })
    }

    /// Takes our own workers from those who hold GPUs: they leave before anything changes.
    pub(super) fn without_ours(&self, observed: &mut Observed) {
        let Some(status) = &self.before else { return };
        let workers = status.replicas.iter().flat_map(|r| r.pids.iter().copied());
        let ours: BTreeSet<u32> = workers.chain(status.others.iter().filter_map(|o| o.pid)).collect();
        for gpu in &mut observed.gpus {
            gpu.holders.retain(|holder| !ours.contains(&holder.pid));
        }
    }

    /// What runs now.
    fn present(&self) -> Option<Deployment> {
        self.before.as_ref()?;
        supervisor::deployment(&self.folder).ok().flatten()
    }

    /// Has workers leave the instances that go, and tells which services pause for it.
    ///
    /// # Errors
    /// When the supervisor does not do it; nothing was changed then.
    pub(super) fn vacate(&self, changes: &Changes, terminal: &Terminal) -> Result<bool, Stop> {
        let Some(present) = self.present() else { return Ok(false) };
        let going = going(&present, changes);
        if going.is_empty() {
            return Ok(false);
        }
        let is_going = |replica: &Replica| going.contains(&replica.id);
        for service in &present.services {
            let n = service.replicas.iter().filter(|r| is_going(r)).count();
            if n == 0 || terminal.verbosity == Verbosity::Quiet {
                continue;
            }
            let (name, all) = (&service.name, service.replicas.len());
            terminal.message(&if n == all {
                format!("note: `{name}` pauses: all its instances go; its requests wait for the new ones\n")
            } else {
                format!("note: `{name}` runs on {} of {all} instances for a while\n", all - n)
            });
        }
        let client = Client::connect(&self.folder);
        let asked = client.and_then(|client| client.map(|mut c| c.vacate(&going)).transpose());
        match asked {
            Ok(_) => Ok(true),
            Err(error) => Err(Trouble::new(
                "not-vacated",
                format!("workers are still on instances that go: {}", crate::write::reason(&error)),
                "try again, or end them with `entc serve drain`",
            )
            .into()),
        }
    }

    /// Has a plan served on the machine as it is now.
    ///
    /// # Errors
    /// Why it is not, or not wholly.
    pub(super) fn serve(
        &self,
        plan: &Plan,
        node: &str,
        machine: &Machine,
        store: &Locked,
        artifacts: &Artifacts,
        tell: &mut dyn FnMut(usize, usize),
    ) -> Result<Option<Report>, Stop> {
        let observed = machine.observe()?;
        let state = store.state().map_err(|error| machine::store(&error))?;
        let wanted = deployment(plan, node, &observed, &state, artifacts)?;
        match self.missing {
            Missing::Leave if self.before.is_none() => return Ok(None),
            Missing::WriteDown if self.before.is_none() => {
                supervisor::write_down(&self.folder, &wanted).map_err(|error| not_serving(&error.into()))?;
                return Ok(None);
            }
            Missing::Start | Missing::WriteDown | Missing::Leave => {}
        }
        crate::bug::processing("deployment");
        let mut start = Start { command: &self.command, readiness: self.readiness, tell };
        supervisor::start_or_reload(&self.folder, &wanted, &mut start)
            .map(Some)
            .map_err(|e| not_serving(&e).into())
    }

    /// Once a transaction is over: the plan runs, and it is told.
    pub(super) fn after(
        &self,
        plan: &Plan,
        node: &str,
        run: &Run<'_>,
        artifacts: &Artifacts,
        terminal: &Terminal,
    ) -> After {
        let (machine, store, format) = (run.machine, run.store, run.change.format);
        let is_told = terminal.verbosity > Verbosity::Quiet;
        let mut tell = |healthy: usize, of: usize| match format {
            Told::JsonLines => super::transaction::tell_line(terminal, What::Starting { healthy, of }),
            Told::Human if is_told && healthy < of => {
                terminal.message(&format!("{healthy} of {of} replicas are healthy\n"));
            }
            Told::Human => {}
        };
        match self.serve(plan, node, machine, store, artifacts, &mut tell) {
            Ok(None) => After::default(),
            Ok(Some(report)) => {
                if format == Told::JsonLines {
                    super::transaction::tell_line(terminal, What::serving(&report));
                }
                let text = render::serving::served(&report, &super::canvas_out(terminal, false, false));
                After { troubles: Vec::new(), text }
            }
            Err(Stop::World(troubles)) => After { troubles, text: String::new() },
            Err(stop) => {
                super::report(&stop, terminal);
                let help = "see above";
                After {
                    troubles: vec![Trouble::new("not-serving", "the plan is not served", help)],
                    text: String::new(),
                }
            }
        }
    }

    /// Once a transaction has gone on or back: the plan that holds now runs where anything ran, and nothing
    /// does where none holds.
    fn settle(&self, outcome: Outcome, run: &Run<'_>, terminal: &Terminal) -> After {
        if self.before.is_none() || outcome == Outcome::Open {
            return After::default();
        }
        match kept::last(run.store) {
            Ok((plan, node)) => {
                let artifacts = last_artifacts(&self.folder);
                self.after(plan.plan(), &node, run, &artifacts, terminal)
            }
            Err(_) => match self.stop() {
                Ok(_) => After { troubles: Vec::new(), text: "Nothing serves any more\n".to_owned() },
                Err(trouble) => After { troubles: vec![trouble], text: String::new() },
            },
        }
    }

    /// Ends what runs, for good; whether anything did.
    ///
    /// # Errors
    /// When it does not end.
    pub(super) fn stop(&self) -> Result<bool, Trouble> {
        if self.before.is_none() {
            return Ok(false);
        }
        let ended = supervisor::stop(&self.folder, DRAIN).map_err(|error| {
            Trouble::new(
                "not-ended",
                format!("the supervisor does not end: {}", crate::write::reason(&error)),
                "end it with `entc serve stop`",
            )
        })?;
        // What ran cannot run again on what is not there any more.
        supervisor::forget(&self.folder).map_err(|error| {
            Trouble::new("cannot-write", error.to_string(), "remove it, so that nothing starts it again")
        })?;
        Ok(ended)
    }

    /// Whether a plan on a machine that needs no change would change what runs.
    pub(super) fn would_change(&self, wanted: &Deployment) -> bool {
        match self.present() {
            None => self.missing == Missing::Start,
            Some(present) => {
                let mut wanted = wanted.clone();
                supervisor::number(&mut wanted, &present);
                wanted != present
            }
        }
    }
}

/// The files of the networks of what was served last.
pub(super) fn last_artifacts(folder: &Path) -> Artifacts {
    let last = supervisor::deployment(folder).ok().flatten();
    last.map(|last| artifacts_of(&last)).unwrap_or_default()
}

/// The places in a deployment that changes take away.
fn going(present: &Deployment, changes: &Changes) -> Vec<String> {
    let is_hit = |replica: &Replica| {
        changes.steps.iter().any(|step| {
            let is_here = replica.gpu.as_deref() == Some(step.gpu.0.as_str());
            is_here
                && match &step.operation {
                    Operation::SetMigMode { .. } => true,
                    Operation::DestroyInstance { profile, start, .. } => {
                        replica.id.ends_with(&format!("/{profile}@{start}"))
                    }
                    Operation::SetPersistence { .. }
                    | Operation::CreateInstance { .. }
                    | Operation::LockClocks { .. }
                    | Operation::UnlockClocks
                    | Operation::SetPowerLimit { .. } => false,
                }
        })
    };
    let all = present.services.iter().flat_map(|service| &service.replicas);
    all.filter(|replica| is_hit(replica)).map(|replica| replica.id.clone()).collect()
}

/// Why a plan is not served, or not wholly.
pub(super) fn not_serving(error: &NotServing) -> Trouble {
    let (code, help) = match error {
        NotServing::Kept(_) => (
            "not-serving",
            "see why in `serve.log`, mend it, and apply again; or go back with `entc rollback`",
        ),
        NotServing::Unhealthy { .. } => (
            "unhealthy",
            "see what is missing with `entc serve status`; its workers are tried again meanwhile. Mend it and \
             apply again, or go back with `entc rollback`",
        ),
        NotServing::NotStarted { .. } => {
            ("not-serving", "mend that and apply again, choose other addresses, or apply with `--no-serve`")
        }
        NotServing::Supervisor(_) | NotServing::Unreachable(_) => {
            ("not-serving", "mend that and apply again, or apply with `--no-serve`")
        }
    };
    Trouble::new(code, error.to_string(), help)
}

/// What is left to do for those who serve, once a transaction has gone on or back.
pub(super) fn settle(
    serving: Option<&Serving>,
    outcome: Outcome,
    run: &Run<'_>,
    terminal: &Terminal,
) -> After {
    serving.map(|serving| serving.settle(outcome, run, terminal)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_machine::changes::Step;
    use ent_machine::observed::GpuUuid;

    fn replica(id: &str, gpu: &str) -> Replica {
        Replica { gpu: Some(gpu.into()), ..Replica::modelled(id, vec![1.0]) }
    }

    fn step(gpu: &str, operation: Operation) -> Step {
        Step { gpu: GpuUuid(gpu.into()), index: 0, operation, reason: String::new() }
    }

    #[test]
    fn workers_leave_what_goes_and_stay_on_the_rest() {
        let present = Deployment {
            format_version: "1.0".into(),
            plan: None,
            services: vec![ent_serve::deployment::Service {
                name: "s".into(),
                model: ent_wire::Model { name: "m".into(), artifact: None, signature: None },
                percentile: 0.99,
                promised_latency_ms: 1.0,
                arrivals: "poisson".into(),
                rate_rps: 1.0,
                replicas: vec![
                    replica("gpu0/1g.10gb@0", "GPU-1"),
                    replica("gpu0/1g.10gb@10", "GPU-1"),
                    replica("gpu1/1g.10gb@0", "GPU-2"),
                    replica("gpu2/whole", "GPU-3"),
                ],
            }],
        };
        let destroy = |start| Operation::DestroyInstance { profile: "1g.10gb".into(), start, size: 1 };
        let changes = |steps: Vec<Step>| Changes { steps, ..Changes::default() };
        assert_eq!(going(&present, &changes(vec![step("GPU-1", destroy(0))])), ["gpu0/1g.10gb@0"]);
        assert!(going(&present, &changes(vec![step("GPU-1", destroy(1))])).is_empty());
        let mode = Operation::SetMigMode { enabled: true, resets: true };
        assert_eq!(going(&present, &changes(vec![step("GPU-3", mode)])), ["gpu2/whole"]);
        let clock = Operation::LockClocks { min: 900, max: 900 };
        assert!(going(&present, &changes(vec![step("GPU-1", clock)])).is_empty());
    }
}
