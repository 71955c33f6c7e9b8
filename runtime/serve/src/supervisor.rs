//! `deployment.json` → the gateway and its workers, kept running until somebody says otherwise.
//!
//! A supervisor runs in a state folder, one at a time. It starts the gateway and the workers, starts workers
//! again that ended unasked, puts another deployment in the place of the present one without failing a
//! request, and answers questions on a socket of its own ([`Client`]). It changes no machine: the devices
//! that a deployment names are there before it runs. When it is killed, its workers lose the gateway and end.

use crate::deployment::Deployment;
use crate::gateway::{Addresses, Gateway, Handle, Options};
use fleet::Fleet;
use folder::{Address, Lock};
use launch::{Key, Launch, in_the_way};
use log::Log;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use status::status;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

mod back_off;
mod client;
mod control;
mod fleet;
mod folder;
mod job;
mod launch;
mod log;
mod start;
mod status;
#[cfg(test)]
mod trial;
mod watts;

pub use client::Client;
pub use control::{Answer, Question};
pub use folder::{deployment, deployment_path, forget, log_path, next_path, write_down};
pub use launch::number;
pub use start::{NotServing, Report, Start, start_or_reload, stop};
pub use status::{OtherStatus, Phase, ReplicaStatus, Status};
pub use watts::{BoardReading, Meter};

/// How long new replicas wait for the gateway to know them before their workers come.
const HEAD_START: Duration = Duration::from_millis(15);

/// How a supervisor runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The state folder, with `deployment.json`.
    pub folder: PathBuf,
    /// The worker's executable.
    pub worker: PathBuf,
    /// The simulated machine that the boards are of.
    pub simulated: Option<SimulatedMachine>,
    /// How the gateway runs. Its socket for workers is the supervisor's business.
    pub gateway: Options,
    /// New replicas have to be ready within this; else the deployment before keeps serving.
    pub readiness: Duration,
    /// A worker that is told to end has this long for what it is at.
    pub grace: Duration,
    /// Requests that are there when it is told to end have this long.
    pub drain: Duration,
    /// Whether lines of the log are repeated on standard error.
    pub is_watched: bool,
}

impl Settings {
    /// The usual patience.
    #[must_use]
    pub fn new(folder: PathBuf, worker: PathBuf) -> Self {
        Self {
            gateway: Options::new(folder.join(folder::WORKERS)),
            folder,
            worker,
            simulated: None,
            readiness: Duration::from_secs(120),
            grace: Duration::from_secs(10),
            drain: Duration::from_secs(30),
            is_watched: false,
        }
    }
}

/// A machine of entc's simulated NVML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulatedMachine {
    /// The library.
    pub library: PathBuf,
    /// The machine's folder.
    pub folder: PathBuf,
}

/// Why a supervisor does not run.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// One runs already.
    #[error("a supervisor runs in `{}` already{}", .folder.display(), .pid.map_or(String::new(), |pid| format!(": process {pid}")))]
    Running {
        /// Where.
        folder: PathBuf,
        /// Its process id.
        pid: Option<u32>,
    },
    /// There is nothing to run.
    #[error("there is no deployment in `{}`", .0.display())]
    NoDeployment(PathBuf),
    /// What there is to run cannot be read.
    #[error("`{}` is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In what.
        reason: String,
    },
    /// A file cannot be used.
    #[error("cannot {what} `{}`: {source}", .path.display())]
    File {
        /// `read`, `write`, `create`, `lock`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The gateway does not start.
    #[error(transparent)]
    Gateway(#[from] crate::gateway::StartError),
    /// The system gave no thread, socket or the like.
    #[error("cannot start the supervisor: {0}")]
    Io(#[from] std::io::Error),
}

/// What became of a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// Whether the new deployment serves; if not, the one before does.
    pub is_done: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Replicas that did not get ready, each with what its worker said.
    pub replicas: Vec<(String, Option<String>)>,
    /// Services that had no worker for a while: their requests waited, because on their device the old
    /// network had to go before the new one.
    pub paused: Vec<String>,
}

impl Reloaded {
    fn refused(reason: String) -> Self {
        Self { is_done: false, reason: Some(reason), replicas: Vec::new(), paused: Vec::new() }
    }
}

/// Runs a supervisor until it is told to end by a signal or on its socket. `meter` reads the boards' power and
/// energy, once a second, for the metrics. `started` is told when it listens; its workers may not be ready then.
///
/// # Errors
/// When there is another in the folder, nothing to run, or no way to listen. Nothing is left behind then.
pub fn run(
    settings: Settings,
    meter: Option<Meter>,
    started: impl FnOnce(&Addresses),
) -> Result<(), SupervisorError> {
    folder::make(&settings.folder)?;
    let lock = Lock::take(&settings.folder)?;
    let path = log_path(&settings.folder);
    let log = Log::open(&path, settings.is_watched).map_err(|source| SupervisorError::File {
        what: "write",
        path,
        source,
    })?;
    let log = Arc::new(log);
    let ended = begin(settings, meter, &log, started);
    match &ended {
        Ok(()) => log.line("the supervisor ended"),
        Err(error) => log.line(format_args!("the supervisor cannot run: {error}")),
    }
    // The last thing to go: whoever waits for the lock finds nothing running.
    drop(lock);
    ended
}

fn begin(
    mut settings: Settings,
    meter: Option<Meter>,
    log: &Arc<Log>,
    started: impl FnOnce(&Addresses),
) -> Result<(), SupervisorError> {
    let deployment = deployment(&settings.folder)?
        .ok_or_else(|| SupervisorError::NoDeployment(settings.folder.clone()))?;
    let workers = Address::of(&settings.folder, folder::WORKERS)?;
    settings.gateway.workers.clone_from(&workers.path);
    // It has a runtime of its own, which cannot be made, and fail, inside another.
    let gateway = Gateway::start(&deployment, settings.gateway.clone())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(settings, deployment, gateway, meter, log, started));
    runtime.shutdown_timeout(Duration::from_millis(100));
    drop(workers);
    ended
}

async fn serve(
    settings: Settings,
    deployment: Deployment,
    gateway: Handle,
    meter: Option<Meter>,
    log: &Arc<Log>,
    started: impl FnOnce(&Addresses),
) -> Result<(), SupervisorError> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let control = listen(&settings.folder)?;
    let addresses = gateway.addresses().clone();
    log.line(format_args!("serves {}", shown(&addresses)));
    let (ending, mut is_ending) = watch::channel(None);
    let supervisor = Arc::new(Supervisor {
        launch: Launch {
            worker: settings.worker.clone(),
            folder: settings.folder.clone(),
            simulated: settings.simulated.clone(),
        },
        fleet: Fleet::new(settings.grace, Arc::clone(log)),
        log: Arc::clone(log),
        gateway,
        phase: Mutex::new(Phase::Serving),
        deployment: Mutex::new(deployment.clone()),
        changing: tokio::sync::Mutex::default(),
        ending,
        settings,
    });
    let meter = meter.map(|meter| {
        // It ends before what it looks at.
        let ran = Arc::downgrade(&supervisor);
        let ran = move || {
            let supervisor = ran.upgrade()?;
            let deployment = supervisor.deployment.lock().clone();
            Some((deployment, supervisor.gateway.stats()))
        };
        watts::Reader::start(meter, supervisor.gateway.registry(), ran)
    });
    supervisor.fleet.start(supervisor.launch.programs(&deployment));
    let answering = tokio::spawn(control::answer(Arc::clone(&supervisor), control));
    started(&addresses);
    let (patience, why) = tokio::select! {
        _ = terminate.recv() => (supervisor.settings.drain, "SIGTERM"),
        _ = interrupt.recv() => (supervisor.settings.drain, "SIGINT"),
        asked = is_ending.wait_for(Option::is_some) => {
            (asked.ok().and_then(|p| *p).unwrap_or_default(), "asked to")
        }
    };
    *supervisor.phase.lock() = Phase::Draining;
    log.line(format_args!("ends: {why}"));
    // Nobody changes the deployment while it ends.
    let _turn = supervisor.changing.lock().await;
    let left = tokio::select! {
        left = supervisor.gateway.drain(patience) => left,
        // A second signal does not wait.
        _ = terminate.recv() => 1,
        _ = interrupt.recv() => 1,
    };
    if left > 0 {
        log.line("ends with requests unanswered");
    }
    supervisor.fleet.end(&supervisor.fleet.keys()).await;
    drop(meter);
    answering.abort();
    let _ = std::fs::remove_file(supervisor.settings.folder.join(folder::CONTROL));
    Ok(())
}

/// Listens for questions. The lock is held, so a socket that is there is nobody's.
fn listen(folder: &Path) -> Result<UnixListener, SupervisorError> {
    use std::os::unix::fs::PermissionsExt;
    let address = Address::of(folder, folder::CONTROL)?;
    let fail =
        |source| SupervisorError::File { what: "listen on", path: folder.join(folder::CONTROL), source };
    match std::fs::remove_file(&address.path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&address.path).map_err(fail)?;
    std::fs::set_permissions(&address.path, std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

fn shown(addresses: &Addresses) -> String {
    let one = |word: &str, at: &Option<std::net::SocketAddr>| at.map(|at| format!("{word} {at}"));
    let all =
        [one("http", &addresses.http), one("grpc", &addresses.grpc), one("metrics", &addresses.metrics)];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A supervisor at work.
#[derive(Debug)]
struct Supervisor {
    settings: Settings,
    launch: Launch,
    fleet: Fleet,
    log: Arc<Log>,
    gateway: Handle,
    phase: Mutex<Phase>,
    deployment: Mutex<Deployment>,
    /// Held by whoever changes the deployment.
    changing: tokio::sync::Mutex<()>,
    /// Set to how long requests may still take when it is to end.
    ending: watch::Sender<Option<Duration>>,
}

impl Supervisor {
    async fn asked(&self, question: Question) -> Answer {
        match question {
            Question::Status => {
                let (phase, deployment) = (*self.phase.lock(), self.deployment.lock().clone());
                let stats = self.gateway.stats();
                let folder = self.settings.folder.clone();
                let addresses = self.gateway.addresses();
                Answer::Status(Box::new(status(folder, phase, addresses, &deployment, &self.fleet, stats)))
            }
            Question::Reload => {
                let Ok(_turn) = self.changing.try_lock() else {
                    return Answer::Refused { reason: "it is just changing or ending".to_owned() };
                };
                *self.phase.lock() = Phase::Changing;
                let reloaded = self.reload().await;
                *self.phase.lock() = Phase::Serving;
                self.log.line(match &reloaded.reason {
                    None => "the new deployment serves".to_owned(),
                    Some(reason) => format!("the new deployment does not serve: {reason}"),
                });
                Answer::Reloaded(reloaded)
            }
            Question::Vacate { replicas } => {
                let Ok(_turn) = self.changing.try_lock() else {
                    return Answer::Refused { reason: "it is just changing or ending".to_owned() };
                };
                let is_one = |key: &Key| match key {
                    Key::Worker { replica, .. } => replicas.contains(replica),
                    Key::Mps(_) => false,
                };
                let keys: Vec<Key> = self.fleet.keys().into_iter().filter(is_one).collect();
                self.gateway.rest(replicas.clone(), self.settings.grace).await;
                self.fleet.end(&keys).await;
                // A daemon whose device goes is of no use without it, and holds it.
                let deployment = self.deployment.lock().clone();
                let daemons = self.idle_daemons(&deployment);
                self.fleet.end(&daemons).await;
                Answer::Vacated
            }
            Question::Drain { patience_s } => {
                let patience = Duration::try_from_secs_f64(patience_s).unwrap_or(self.settings.drain);
                self.ending.send_replace(Some(patience));
                Answer::Ending
            }
            Question::Stop => {
                self.ending.send_replace(Some(Duration::ZERO));
                Answer::Ending
            }
        }
    }

    /// Puts the deployment of the file in the place of the present one: new workers are ready before old
    /// ones go, except where both have no room on one device.
    async fn reload(&self) -> Reloaded {
        let folder = &self.settings.folder;
        let wanted = match folder::read(&next_path(folder)) {
            Ok(None) => deployment(folder),
            read => read,
        };
        let next = match wanted {
            Ok(Some(next)) => next,
            Ok(None) => {
                return Reloaded::refused(format!("there is no deployment in `{}`", folder.display()));
            }
            Err(error) => return Reloaded::refused(error.to_string()),
        };
        let present = self.deployment.lock().clone();
        let programs = self.launch.programs(&next);
        let there = self.fleet.keys();
        let leaving: Vec<Key> = there.iter().filter(|key| !programs.contains_key(key)).cloned().collect();
        let in_the_way = in_the_way(&present, &next);
        let evicted: Vec<Key> = there
            .iter()
            .filter(|key| in_the_way.iter().any(|(_, r)| key.is_of(&r.id, r.epoch)))
            .cloned()
            .collect();
        let paused = paused(&present, &next, &in_the_way);
        self.fleet.last(&leaving);
        // Their replicas stay until the new ones are ready: what comes meanwhile waits there.
        let resting = in_the_way.iter().map(|(_, replica)| replica.id.clone()).collect();
        self.gateway.rest(resting, self.settings.grace).await;
        self.fleet.end(&evicted).await;
        let is_new = |key: &Key| !there.iter().any(|old| same_replica(old, key));
        let new: BTreeMap<Key, _> =
            programs.iter().filter(|(key, _)| is_new(key)).map(|(k, p)| (k.clone(), p.clone())).collect();
        let come: Vec<Key> = new.keys().cloned().collect();
        let result = {
            let change = self.gateway.reconfigure(next.clone(), self.settings.readiness);
            let coming = async {
                tokio::time::sleep(HEAD_START).await;
                self.fleet.start(new);
                std::future::pending::<()>().await;
            };
            tokio::select! {
                result = change => result,
                () = coming => Ok(()),
            }
        };
        match result {
            Ok(()) => {
                self.fleet.start(programs);
                self.fleet.end(&leaving).await;
                let kept = folder::write(&deployment_path(folder), &next);
                let _ = std::fs::remove_file(next_path(folder));
                *self.deployment.lock() = next;
                let reason = kept.err().map(|error| format!("it serves, but {error}"));
                Reloaded { is_done: true, reason, replicas: Vec::new(), paused }
            }
            Err(error) => {
                let replicas = self.not_ready(&come);
                self.fleet.end(&come).await;
                self.fleet.wanted(&leaving);
                self.fleet.start(self.launch.programs(&present));
                Reloaded { is_done: false, reason: Some(error.to_string()), replicas, paused }
            }
        }
    }

    /// MPS daemons of devices that no worker is on.
    fn idle_daemons(&self, deployment: &Deployment) -> Vec<Key> {
        let keys = self.fleet.keys();
        let all = || deployment.services.iter().flat_map(|s| &s.replicas);
        let is_idle = |key: &&Key| match key {
            Key::Mps(on) => !all()
                .filter(|r| launch::device(r) == Some(on))
                .any(|r| keys.iter().any(|key| key.is_of(&r.id, r.epoch))),
            Key::Worker { .. } => false,
        };
        keys.iter().filter(is_idle).cloned().collect()
    }

    /// Replicas of these workers, with what the workers said.
    fn not_ready(&self, come: &[Key]) -> Vec<(String, Option<String>)> {
        let seen = self.fleet.seen();
        let mut reasons: BTreeMap<String, Option<String>> = BTreeMap::new();
        for key in come {
            if let (Key::Worker { replica, .. }, Some(seen)) = (key, seen.get(key)) {
                let reason = reasons.entry(replica.clone()).or_default();
                if reason.is_none() {
                    reason.clone_from(&seen.reason);
                }
            }
        }
        reasons.into_iter().filter(|(_, reason)| reason.is_some()).collect()
    }
}

/// Whether two processes are of one replica, or the same daemon.
fn same_replica(a: &Key, b: &Key) -> bool {
    match (a, b) {
        (Key::Worker { replica, epoch, .. }, b @ Key::Worker { .. }) => b.is_of(replica, *epoch),
        (a, b) => a == b,
    }
}

/// Services whose every replica has to go before others come.
fn paused(
    present: &Deployment,
    next: &Deployment,
    in_the_way: &[(&str, &crate::deployment::Replica)],
) -> Vec<String> {
    let going: BTreeSet<(&str, u64)> = in_the_way.iter().map(|(_, r)| (r.id.as_str(), r.epoch)).collect();
    let is_paused = |service: &&crate::deployment::Service| {
        let stays = next.services.iter().any(|s| s.name == service.name);
        let replicas = &service.replicas;
        stays && !replicas.is_empty() && replicas.iter().all(|r| going.contains(&(r.id.as_str(), r.epoch)))
    };
    present.services.iter().filter(is_paused).map(|s| s.name.clone()).collect()
}
