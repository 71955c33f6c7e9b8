//! One command of entc on a simulated machine, in this process or in one that may be killed.
//!
//! While it runs, an observer compares what the journal says with what the machine is: before a step its
//! intent is on disk and nothing else has changed, after it its outcome is, and it is true.

use crate::world::{Gpu, Snapshot, World, snapshot};
use ent_machine::apply::{Ended, Event, Means, Outcome, Request, apply};
use ent_machine::changes::{Operation, Step};
use ent_machine::diff::diff;
use ent_machine::error::ApplyError;
use ent_machine::journal::{Entry, Transaction};
use ent_machine::observed::GpuUuid;
use ent_machine::preflight::Allowed;
use ent_machine::resume::resume;
use ent_machine::rollback::rollback;
use ent_machine::store::Store;
use ent_machine::target::Target;
use ent_machine::{Driver, Library};
use serde::{Deserialize, Serialize};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Names the file with the job to the child.
const JOB: &str = "ENT_CAMPAIGN_JOB";

/// So that two at once have files of their own.
static N_APART: AtomicU64 = AtomicU64::new(0);

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Action {
    Apply(Target),
    Resume,
    Rollback,
}

/// Where the process dies by its own hand: between calls, where no call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Death {
    /// The intent of the nth step is on disk.
    Intent(usize),
    /// The outcome of the nth step is on disk with the intent of the next, or so many thousandths of both.
    Outcome { nth: usize, thousandths: u64 },
    /// All steps are done.
    Verifying,
}

/// A command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    library: PathBuf,
    machine: PathBuf,
    store: PathBuf,
    uuids: Vec<GpuUuid>,
    pub(crate) action: Action,
    pub(crate) death: Option<Death>,
    pub(crate) keep_going: bool,
    /// Whether the user stops after so many steps.
    pub(crate) interrupt_after: Option<usize>,
    /// Whether lines may not go to disk.
    pub(crate) is_disk_full: bool,
    /// How long to wait for another one.
    pub(crate) lock_timeout_s: u64,
}

/// How a command ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) outcome: String,
    pub(crate) error: Option<String>,
    /// Codes of refusals.
    pub(crate) codes: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Steps done, failed, not started, taken back.
    pub(crate) steps: [usize; 4],
}

impl Job {
    pub(crate) fn new(world: &World, action: Action) -> Self {
        Self {
            library: world.library.clone(),
            machine: world.machine(),
            store: world.store_folder(),
            uuids: world.uuids.clone(),
            action,
            death: None,
            keep_going: false,
            interrupt_after: None,
            is_disk_full: false,
            lock_timeout_s: 0,
        }
    }

    /// Runs it in a process of its own; `None` when that was killed.
    pub(crate) fn run_apart(&self, prefix: &[&str]) -> Option<Said> {
        let number = N_APART.fetch_add(1, Ordering::Relaxed);
        let job = self.store.with_extension(format!("job{number}"));
        std::fs::write(&job, serde_json::to_vec(self).unwrap()).unwrap();
        let this = std::env::current_exe().unwrap();
        let mut words: Vec<&std::ffi::OsStr> = prefix.iter().map(std::ffi::OsStr::new).collect();
        words.push(this.as_os_str());
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["worker::child", "--exact", "--quiet", "--nocapture"]);
        let output = command.env(JOB, &job).stdin(Stdio::null()).stdout(Stdio::piped()).output().unwrap();
        if output.status.signal() == Some(9) {
            return None;
        }
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{:?}\n{words}\n{}",
            self.action,
            String::from_utf8_lossy(&output.stderr)
        );
        Some(serde_json::from_slice(&std::fs::read(beside(&job)).unwrap()).unwrap())
    }

    /// Runs it here.
    pub(crate) fn run(&self) -> Said {
        let library = Library::Simulated { library: self.library.clone(), state: self.machine.clone() };
        let failed = |error: String| Said {
            outcome: "unchanged".to_owned(),
            error: Some(error),
            codes: Vec::new(),
            notes: Vec::new(),
            steps: [0; 4],
        };
        let driver = match Driver::open(&library) {
            Ok(driver) => driver,
            Err(error) => return failed(error.to_string()),
        };
        let timeout = Duration::from_secs(self.lock_timeout_s);
        let store = match Store::open(&self.store).and_then(|s| s.lock("campaign", timeout)) {
            Ok(store) => store,
            Err(error) => return failed(error.to_string()),
        };
        let mut watcher =
            Watcher { job: self, before: snapshot(&self.machine, &self.uuids), n_steps: 0, length: 0 };
        let n_steps = std::cell::Cell::new(0);
        let is_interrupted = || self.interrupt_after.is_some_and(|after| n_steps.get() >= after);
        let mut tell = |event: Event<'_>| {
            if matches!(event, Event::Started { .. }) {
                n_steps.set(n_steps.get() + 1);
            }
            watcher.look(event);
        };
        let mut means = Means {
            driver: &driver,
            store: &store,
            allowed: Allowed { reset: true },
            is_privileged: true,
            keep_going: self.keep_going,
            is_interrupted: &is_interrupted,
            tell: &mut tell,
        };
        let ended = match &self.action {
            Action::Resume => resume(&mut means),
            Action::Rollback => rollback(&mut means, false),
            Action::Apply(target) => {
                let observed = match driver.observe() {
                    Ok(observed) => observed,
                    Err(error) => return failed(error.to_string()),
                };
                let changes = match diff(target, &observed, &store.state().unwrap().on(&observed)) {
                    Ok(changes) => changes,
                    Err(refusals) => {
                        let said = failed(refusals[0].message.clone());
                        let codes = refusals.iter().map(|refusal| refusal.code.to_owned()).collect();
                        return Said { codes, ..said };
                    }
                };
                let request = Request {
                    transaction: Transaction::Apply,
                    plan: Some("sha256:campaign"),
                    node: Some("node"),
                    observed: &observed,
                    target,
                    changes: &changes,
                };
                apply(&mut means, &request)
            }
        };
        said(&ended)
    }
}

pub(crate) fn said((report, result): &Ended) -> Said {
    let outcome = match report.outcome {
        Outcome::Done => "done",
        Outcome::RolledBack => "rolled-back",
        Outcome::Unchanged => "unchanged",
        Outcome::Open => "open",
    };
    let codes = match result {
        Err(ApplyError::Refused(refusals)) => {
            refusals.iter().map(|refusal| refusal.code.to_owned()).collect()
        }
        _ => Vec::new(),
    };
    Said {
        outcome: outcome.to_owned(),
        error: result.as_ref().err().map(ToString::to_string),
        codes,
        notes: report.notes.clone(),
        steps: [report.done.len(), report.failed.len(), report.not_started.len(), report.taken_back.len()],
    }
}

/// Where a child writes down how its job ended.
fn beside(job: &Path) -> PathBuf {
    let mut name = job.as_os_str().to_owned();
    name.push(".said");
    PathBuf::from(name)
}

/// What a child does; nothing when the tests are run.
#[test]
fn child() {
    let Some(path) = std::env::var_os(JOB) else { return };
    let job: Job = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let said = job.run();
    std::fs::write(beside(Path::new(&path)), serde_json::to_vec(&said).unwrap()).unwrap();
}

/// Compares journal and machine at every event.
struct Watcher<'a> {
    job: &'a Job,
    /// The machine after the last event.
    before: Snapshot,
    n_steps: usize,
    /// Of the journal, when the last step began.
    length: u64,
}

impl Watcher<'_> {
    fn look(&mut self, event: Event<'_>) {
        let now = snapshot(&self.job.machine, &self.job.uuids);
        // As it is on disk, not as entc reads it.
        let path = Store::at(&self.job.store).journal_path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut last = text.lines().rev().map(|line| serde_json::from_str::<Entry>(line).ok());
        match event {
            Event::Started { step, .. } => {
                self.n_steps += 1;
                self.length = text.len() as u64;
                let entry = last.next().flatten();
                assert!(matches!(&entry, Some(Entry::Intent { what, .. }) if what == step), "{entry:?}");
                assert_same(&self.before, &now, "between two steps");
                self.die(Death::Intent(self.n_steps));
            }
            Event::Finished { step, error, .. } => {
                let mut entry = last.next().flatten();
                // The intent of the next step is on disk with it.
                if matches!(entry, Some(Entry::Intent { .. })) {
                    entry = last.next().flatten();
                }
                let is_it = |said: &Option<String>| said.is_some() == error.is_some();
                let is_written = matches!(&entry, Some(Entry::Outcome { error, .. }) if is_it(error));
                assert!(is_written || self.job.is_disk_full, "{entry:?}");
                let gpu = now.gpus.iter().find(|gpu| gpu.uuid == step.gpu).unwrap();
                assert!(error.is_some() || is_effected(step, gpu), "{step:?} is said to be done: {gpu:?}");
                if let Some(Death::Outcome { nth, thousandths }) = self.job.death
                    && nth == self.n_steps
                {
                    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                    let written = file.metadata().unwrap().len() - self.length;
                    file.set_len(self.length + written * thousandths / 1000).unwrap();
                    kill();
                }
            }
            Event::Verifying => {
                assert_same(&self.before, &now, "before verifying");
                self.die(Death::Verifying);
            }
            Event::GoingBack { .. } => {}
        }
        self.before = now;
    }

    fn die(&self, at: Death) {
        if self.job.death == Some(at) {
            kill();
        }
    }
}

/// Ends this process as a crash does: nothing is cleaned up.
fn kill() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    unreachable!("a signal that cannot be caught");
}

fn assert_same(before: &Snapshot, now: &Snapshot, when: &str) {
    // A GPU may fall off the bus at any time.
    let without_lost = |snapshot: &Snapshot| {
        let mut snapshot = snapshot.clone();
        snapshot.gpus.iter_mut().for_each(|gpu| gpu.is_lost = false);
        snapshot
    };
    assert_eq!(without_lost(before), without_lost(now), "{when}");
}

/// Whether a step has come about.
pub(crate) fn is_effected(step: &Step, gpu: &Gpu) -> bool {
    match &step.operation {
        Operation::SetMigMode { enabled, .. } => gpu.mig == *enabled && gpu.mig_pending == *enabled,
        Operation::SetPersistence { enabled } => gpu.is_persistent == *enabled,
        Operation::DestroyInstance { profile, start, size } => {
            gpu.instances.iter().all(|i| i.place() != (*start, *size, profile.as_str()))
        }
        Operation::CreateInstance { profile, start, size } => {
            gpu.instances.iter().any(|i| i.place() == (*start, *size, profile.as_str()) && i.is_whole)
        }
        Operation::LockClocks { min, max } => gpu.locked == Some((*min, *max)),
        Operation::UnlockClocks => gpu.locked.is_none(),
        Operation::SetPowerLimit { milliwatts } => gpu.power_limit_mw == Some(*milliwatts),
    }
}
