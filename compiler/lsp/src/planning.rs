//! Programs → plans, in the background: debounced, cancellable, on a copy of the text.
//!
//! One thread plans; it waits until nothing has changed for a while. A program that changes is no longer
//! planned, and its last plan stays, marked as older, until the next one comes. The planner itself is not
//! known here: whoever starts the server brings it.

use crate::analysis::{Analysis, Snapshot};
use crate::placement;
use crate::workspace::Workspace;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use ent_plan::diagnostic::{Diagnostic, FileId, Severity, Sources};
use ent_plan::plan::{Plan, Status};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The command that plans a file now and answers with a summary.
pub const PLAN: &str = "entc.plan";

/// The command that shows the plan of a file.
pub const SHOW_PLAN: &str = "entc.showPlan";

/// Plans programs.
pub trait Planning: Send + Sync {
    /// Plans a program. `sources` is a copy of the texts in which files have the ids that spans of the
    /// answer must have; files are named as in it, and data files are the implementation's to read.
    /// Once `stop` is true the answer no longer matters.
    fn plan(&self, main: &str, sources: &Sources, stop: &AtomicBool) -> Planned;

    /// Whether plans are drawn.
    fn draws(&self) -> bool {
        false
    }

    /// A plan as a page that stands alone; `None` where plans are not drawn.
    fn page(&self, _plan: &Plan) -> Option<String> {
        None
    }
}

/// What planning made of a program.
#[derive(Clone, Debug, Default)]
pub struct Planned {
    /// The plan, if there is one.
    pub plan: Option<Plan>,
    /// What it says of the program, warnings too.
    pub diagnostics: Vec<Diagnostic>,
    /// Why there was no planning at all, in words.
    pub trouble: Option<String>,
    /// [`Analysis::revision`] of what was planned. Set by the background.
    pub revision: u64,
}

impl Planned {
    /// Whether it was made of the program as it is now.
    #[must_use]
    pub fn is_of(&self, snapshot: &Snapshot<'_>) -> bool {
        self.revision == snapshot.analysis.revision()
    }

    /// `planned`, `infeasible` or `failed`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match &self.plan {
            _ if self.trouble.is_some() => "failed",
            Some(plan) if !plan.gpus.is_empty() => "planned",
            Some(plan) if plan.status == Status::Infeasible => "infeasible",
            Some(_) => "failed",
            None if self.diagnostics.iter().any(|d| d.severity == Severity::Error) => "infeasible",
            None => "failed",
        }
    }

    /// What a client shows of it, beside the file's address: the state; watts, gap and boards, where there
    /// is a plan; and a line in words.
    #[must_use]
    pub fn summary(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("state", self.state().into());
        let mut words = match (&self.trouble, self.diagnostics.iter().find(|d| d.severity == Severity::Error))
        {
            (Some(trouble), _) => trouble.clone(),
            (None, Some(error)) => error.message.clone(),
            (None, None) => "there is no plan".to_owned(),
        };
        if let Some((plan, summary)) = self.plan.as_ref().and_then(|p| Some((p, placement::summary(p)?))) {
            words = summary;
            if let Some(watts) = plan.metrics.mean_power_w.or(plan.metrics.power_w) {
                put("watts", watts.into());
            }
            if let Some(gap) = plan.objective.gap.filter(|gap| gap.is_finite()) {
                put("gap", gap.into());
            }
            put("boards", plan.metrics.gpus.into());
        }
        put("summary", words.into());
        fields
    }
}

/// When to plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether programs are planned while they are edited; else only when asked.
    pub is_automatic: bool,
    /// How long nothing must have changed.
    pub rest: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { is_automatic: true, rest: Duration::from_millis(700) }
    }
}

impl Settings {
    /// Takes over what a client has set: `planning`, and `planningDelay` in milliseconds; either may stand
    /// below `entc`.
    pub fn take(&mut self, given: &Value) {
        let given = given.get("entc").unwrap_or(given);
        if let Some(is_automatic) = given.get("planning").and_then(Value::as_bool) {
            self.is_automatic = is_automatic;
        }
        if let Some(millis) = given.get("planningDelay").and_then(Value::as_u64) {
            self.rest = Duration::from_millis(millis.min(60_000));
        }
    }
}

/// Plans programs in the background, each again when it has changed and rested.
pub struct Background {
    /// When to plan.
    pub settings: Settings,
    planning: Option<Arc<dyn Planning>>,
    jobs: Option<Jobs>,
    results: Receiver<Event>,
    planned: BTreeMap<FileId, Planned>,
    /// What is waiting or being planned: the revision, and the flag that stops it.
    under_way: BTreeMap<FileId, (u64, Arc<AtomicBool>)>,
}

/// A copy of a program, to be planned.
struct Job {
    main: FileId,
    name: String,
    revision: u64,
    sources: Sources,
    stop: Arc<AtomicBool>,
    /// How long nothing else must come; zero for what was asked for.
    rest: Duration,
}

/// The jobs that wait, the newest of each program, and what wakes the thread.
#[derive(Clone)]
struct Jobs {
    waiting: Arc<Mutex<BTreeMap<FileId, Job>>>,
    wake: Sender<()>,
}

impl Jobs {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<FileId, Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What happens in the background.
#[derive(Debug)]
pub struct Event {
    /// The main file of the program.
    pub main: FileId,
    /// [`Analysis::revision`] of what is planned.
    pub revision: u64,
    /// What happens.
    pub happening: Happening,
}

/// What happens to a program in the background.
#[derive(Debug)]
pub enum Happening {
    /// It is being planned.
    Started,
    /// It was planned.
    Finished(Box<Planned>),
}

impl Background {
    /// Starts the background; without a `planning` nothing is ever planned.
    #[must_use]
    pub fn start(planning: Option<Arc<dyn Planning>>) -> Self {
        let (events, results) = unbounded();
        let mut background = Self {
            settings: Settings::default(),
            planning: planning.clone(),
            jobs: None,
            results,
            planned: BTreeMap::new(),
            under_way: BTreeMap::new(),
        };
        if let Some(planning) = planning {
            let (wake, woken) = bounded(1);
            let waiting = Arc::default();
            let thread = std::thread::Builder::new().name("planning".to_owned());
            let jobs = Jobs { waiting: Arc::clone(&waiting), wake };
            // Without a thread there are no plans, and everything else works.
            if thread.spawn(move || work(&*planning, &waiting, &woken, &events)).is_ok() {
                background.jobs = Some(jobs);
            }
        }
        background
    }

    /// Whether anything can be planned.
    #[must_use]
    pub fn can_plan(&self) -> bool {
        self.jobs.is_some()
    }

    /// What happens; the server waits for it beside the client's messages.
    #[must_use]
    pub fn results(&self) -> Receiver<Event> {
        if self.can_plan() { self.results.clone() } else { crossbeam_channel::never() }
    }

    /// A program was compiled anew: what was being planned of it is stopped; planned again later.
    pub fn changed(&mut self, workspace: &Workspace, main: FileId, analysis: &Analysis) {
        self.stop(main);
        if self.settings.is_automatic && !analysis.has_errors() {
            self.ask(workspace, main, analysis, self.settings.rest);
        }
    }

    /// Plans a program as it is now without waiting, unless that is under way or done. Whether it was done.
    pub fn plan_now(&mut self, workspace: &Workspace, main: FileId, analysis: &Analysis) -> bool {
        let revision = analysis.revision();
        if self.planned.get(&main).is_some_and(|p| p.revision == revision && p.trouble.is_none()) {
            return true;
        }
        self.stop(main);
        self.ask(workspace, main, analysis, Duration::ZERO);
        false
    }

    /// A program is no longer looked after.
    pub fn forget(&mut self, main: FileId) {
        self.stop(main);
        self.planned.remove(&main);
    }

    /// Takes in what happened. Whether it is of the program as it is now.
    pub fn take(&mut self, event: Event, analysis: &Analysis) -> bool {
        let is_current = event.revision == analysis.revision();
        if let Happening::Finished(planned) = event.happening {
            if self.under_way.get(&event.main).is_some_and(|(revision, _)| *revision == event.revision) {
                self.under_way.remove(&event.main);
            }
            if is_current {
                self.planned.insert(event.main, Planned { revision: event.revision, ..*planned });
            }
        }
        is_current
    }

    /// The last plan of a program; of an older text when that has changed since.
    #[must_use]
    pub fn planned(&self, main: FileId) -> Option<&Planned> {
        self.planned.get(&main)
    }

    /// A plan as a page that stands alone, if plans are drawn.
    #[must_use]
    pub fn page(&self, plan: &Plan) -> Option<String> {
        self.planning.as_ref()?.page(plan)
    }

    fn ask(&mut self, workspace: &Workspace, main: FileId, analysis: &Analysis, rest: Duration) {
        let (Some(jobs), Some(file)) = (&self.jobs, workspace.file(main)) else { return };
        let stop = Arc::new(AtomicBool::new(false));
        let job = Job {
            main,
            name: file.name.clone(),
            revision: analysis.revision(),
            sources: workspace.sources.clone(),
            stop: stop.clone(),
            rest,
        };
        self.under_way.insert(main, (job.revision, stop));
        jobs.waiting().insert(main, job);
        // A thread that is to wake already need not be told twice.
        let _ = jobs.wake.try_send(());
    }

    fn stop(&mut self, main: FileId) {
        if let Some((_, stop)) = self.under_way.remove(&main) {
            stop.store(true, Ordering::Relaxed);
        }
        if let Some(jobs) = &self.jobs {
            jobs.waiting().remove(&main);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for (_, stop) in self.under_way.values() {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Plans one program after the other, each when nothing new has come for as long as it wants.
fn work(
    planning: &dyn Planning,
    waiting: &Mutex<BTreeMap<FileId, Job>>,
    woken: &Receiver<()>,
    events: &Sender<Event>,
) {
    let waiting = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let rest = waiting().values().map(|job| job.rest).min();
        let next = match rest {
            None => woken.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(rest) => woken.recv_timeout(rest),
        };
        match next {
            Ok(()) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        // What was asked for goes before what has rested.
        let job = {
            let mut waiting = waiting();
            let main = waiting.values().min_by_key(|job| job.rest).map(|job| job.main);
            main.and_then(|main| waiting.remove(&main))
        };
        let Some(job) = job.filter(|job| !job.stop.load(Ordering::Relaxed)) else { continue };
        let event = |happening| Event { main: job.main, revision: job.revision, happening };
        if events.send(event(Happening::Started)).is_err() {
            return;
        }
        let planned = catch_unwind(AssertUnwindSafe(|| planning.plan(&job.name, &job.sources, &job.stop)))
            .unwrap_or_else(|_| Planned {
                trouble: Some("this is a bug in entc: the planner failed".to_owned()),
                ..Planned::default()
            });
        if job.stop.load(Ordering::Relaxed) {
            continue;
        }
        if events.send(event(Happening::Finished(Box::new(planned)))).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
