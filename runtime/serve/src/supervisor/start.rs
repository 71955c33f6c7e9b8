//! A deployment → a supervisor that serves it, started or changed; or none any more.

use super::client::Client;
use super::control::{Answer, Question};
use super::folder::{self, Lock, deployment_path, log_path, next_path};
use super::launch::number;
use super::status::{ReplicaStatus, Status};
use super::{Reloaded, SupervisorError};
use crate::deployment::Deployment;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often somebody is looked at who does not call back.
const GLANCE: Duration = Duration::from_millis(20);

/// A supervisor listens within this, or does not start.
const LISTENING: Duration = Duration::from_secs(30);

/// A worker that was started so often and never got warm will not.
const HOPELESS_STARTS: u32 = 4;

/// How a supervisor is started.
pub struct Start<'a> {
    /// The command that runs one in the folder, detached from its terminal: the executable and its arguments.
    pub command: &'a [OsString],
    /// Every replica has to be healthy within this.
    pub readiness: Duration,
    /// Told on the way how many replicas of how many are healthy.
    pub tell: &'a mut dyn FnMut(usize, usize),
}

impl std::fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("command", &self.command).finish_non_exhaustive()
    }
}

/// A deployment that serves: every replica has its workers, and requests are routed to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The supervisor, as it was when the last replica became healthy.
    pub status: Status,
    /// Whether it was started, and not only changed.
    pub is_new: bool,
    /// Services that paused for a while: see [`Reloaded::paused`].
    pub paused: Vec<String>,
}

/// Why a deployment does not serve.
#[derive(Debug, thiserror::Error)]
pub enum NotServing {
    /// It cannot be written down, or the folder cannot be used.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The supervisor did not start.
    #[error("the supervisor did not start: {reason}; its log is `{}`", .log.display())]
    NotStarted {
        /// What it said last.
        reason: String,
        /// Its log.
        log: PathBuf,
    },
    /// It cannot be asked, or went away.
    #[error("the supervisor cannot be asked: {0}")]
    Unreachable(io::Error),
    /// It keeps the deployment before.
    #[error("{}", .0.reason.as_deref().unwrap_or("it was not changed"))]
    Kept(Reloaded),
    /// It runs the deployment, but not every replica is healthy. It keeps trying.
    #[error("{} not healthy after {waited:.1?}: {}", counted(.replicas.len()), reasons(.replicas))]
    Unhealthy {
        /// Which, with why.
        replicas: Vec<ReplicaStatus>,
        /// How long they had.
        waited: Duration,
        /// The supervisor's log.
        log: PathBuf,
    },
}

fn counted(n: usize) -> String {
    if n == 1 { "1 replica is".to_owned() } else { format!("{n} replicas are") }
}

fn reasons(replicas: &[ReplicaStatus]) -> String {
    let one = |r: &ReplicaStatus| {
        format!("{} of {}: {}", r.id, r.service, r.reason.as_deref().unwrap_or("no word from its worker"))
    };
    let mut all: Vec<String> = replicas.iter().take(3).map(one).collect();
    if replicas.len() > all.len() {
        all.push(format!("and {} more", replicas.len() - all.len()));
    }
    all.join("; ")
}

/// Has a deployment served: by the supervisor that runs in the folder, without failing a request, or by one
/// that is started. Returns when every replica is healthy and requests are routed to it.
///
/// # Errors
/// Why it does not serve, or not wholly.
pub fn start_or_reload(
    folder: &Path,
    deployment: &Deployment,
    start: &mut Start<'_>,
) -> Result<Report, NotServing> {
    folder::make(folder)?;
    deployment.validate().map_err(|error| SupervisorError::Damaged {
        path: deployment_path(folder),
        reason: error.to_string(),
    })?;
    let mut wanted = deployment.clone();
    // A damaged file of an earlier deployment does not keep a new one from being served.
    if let Ok(Some(present)) = super::deployment(folder) {
        number(&mut wanted, &present);
    }
    let running = Client::connect(folder).map_err(NotServing::Unreachable)?;
    let running = match running {
        Some(mut client) => {
            let status = client.status().map_err(NotServing::Unreachable)?;
            if status.version == env!("CARGO_PKG_VERSION") {
                Some(client)
            } else {
                // Another version's gateway and this version's workers do not understand each other.
                drop(client);
                stop(folder, Duration::from_secs(30)).map_err(NotServing::Unreachable)?;
                None
            }
        }
        None => None,
    };
    match running {
        Some(client) => reload(folder, &wanted, client, start),
        None => begin(folder, &wanted, start),
    }
}

fn reload(
    folder: &Path,
    wanted: &Deployment,
    mut client: Client,
    start: &mut Start<'_>,
) -> Result<Report, NotServing> {
    folder::write(&next_path(folder), wanted)?;
    // It waits for new replicas as long as it was told to when it was started, and then for old ones.
    let patience = start.readiness + Duration::from_secs(600);
    let answer = client.ask(&Question::Reload, patience).map_err(NotServing::Unreachable)?;
    let reloaded = match answer {
        Answer::Reloaded(reloaded) => reloaded,
        Answer::Refused { reason } => Reloaded::refused(reason),
        other @ (Answer::Status(_) | Answer::Vacated | Answer::Ending) => {
            Reloaded::refused(format!("it answered {other:?}"))
        }
    };
    if !reloaded.is_done {
        let _ = std::fs::remove_file(next_path(folder));
        return Err(NotServing::Kept(reloaded));
    }
    let status = healthy(folder, &mut client, None, start)?;
    Ok(Report { status, is_new: false, paused: reloaded.paused })
}

fn begin(folder: &Path, wanted: &Deployment, start: &mut Start<'_>) -> Result<Report, NotServing> {
    folder::write(&deployment_path(folder), wanted)?;
    let _ = std::fs::remove_file(next_path(folder));
    let path = log_path(folder);
    let fail = |source| SupervisorError::File { what: "write", path: path.clone(), source };
    let mut log = OpenOptions::new().append(true).create(true).open(&path).map_err(fail)?;
    let from = log.seek(SeekFrom::End(0)).map_err(fail)?;
    let [program, arguments @ ..] = start.command else {
        let reason = "no command was given for it".to_owned();
        return Err(NotServing::NotStarted { reason, log: path });
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| NotServing::NotStarted {
            reason: format!("`{}` cannot be run: {error}", program.display()),
            log: path.clone(),
        })?;
    let until = Instant::now() + LISTENING;
    let mut client = loop {
        if let Some(client) = Client::connect(folder).map_err(NotServing::Unreachable)? {
            break client;
        }
        let reason = match child.try_wait() {
            Ok(Some(status)) => last_line(&path, from).unwrap_or_else(|| format!("it ended with {status}")),
            _ if Instant::now() >= until => format!("it does not listen after {LISTENING:?}"),
            _ => {
                std::thread::sleep(GLANCE);
                continue;
            }
        };
        return Err(NotServing::NotStarted { reason, log: path });
    };
    let status = healthy(folder, &mut client, Some(&mut child), start)?;
    Ok(Report { status, is_new: true, paused: Vec::new() })
}

/// Waits until every replica is healthy.
fn healthy(
    folder: &Path,
    client: &mut Client,
    mut child: Option<&mut Child>,
    start: &mut Start<'_>,
) -> Result<Status, NotServing> {
    let begin = Instant::now();
    let mut told = None;
    loop {
        let status = client.status().map_err(NotServing::Unreachable)?;
        let counts = (status.n_healthy(), status.replicas.len());
        if told != Some(counts) {
            told = Some(counts);
            (start.tell)(counts.0, counts.1);
        }
        let missing: Vec<&ReplicaStatus> = status.replicas.iter().filter(|r| !r.is_healthy).collect();
        if missing.is_empty() {
            return Ok(status);
        }
        let is_hopeless =
            |r: &&ReplicaStatus| r.reason.is_some() && r.starts >= HOPELESS_STARTS * r.processes.max(1);
        if begin.elapsed() >= start.readiness || missing.iter().all(is_hopeless) {
            return Err(NotServing::Unhealthy {
                replicas: missing.into_iter().cloned().collect(),
                waited: begin.elapsed(),
                log: log_path(folder),
            });
        }
        // Seen here so that it does not stay a zombie; that it has gone is seen by asking.
        if let Some(child) = &mut child {
            let _ = child.try_wait();
        }
        std::thread::sleep(GLANCE);
    }
}

/// The last message that was written to the log since then, without its help.
fn last_line(path: &Path, from: u64) -> Option<String> {
    let mut file = std::fs::File::open(path).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = Vec::new();
    file.take(1 << 20).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    // What is indented belongs to the line before it.
    let last = text.lines().rev().find(|line| !line.is_empty() && !line.starts_with(' '))?;
    let words =
        last.strip_prefix("error[").and_then(|rest| rest.split_once("]: ")).map_or(last, |(_, words)| words);
    Some(words.to_owned())
}

/// Ends the supervisor of a folder with its gateway and workers, and returns when it has; requests that are
/// there have `patience`. Whether there was one.
///
/// # Errors
/// When it may not be asked, or does not end.
pub fn stop(folder: &Path, patience: Duration) -> io::Result<bool> {
    let Some(mut client) = Client::connect(folder)? else { return Ok(false) };
    let drain = Question::Drain { patience_s: patience.as_secs_f64() };
    match client.ask(&drain, Duration::from_secs(10))? {
        Answer::Refused { reason } => return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason)),
        Answer::Ending | Answer::Status(_) | Answer::Vacated | Answer::Reloaded(_) => {}
    }
    // Its lock is the last thing that it gives up. Workers have their grace after the requests.
    let until = Instant::now() + patience + Duration::from_secs(60);
    while Lock::is_taken(folder) {
        if Instant::now() >= until {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the supervisor does not end"));
        }
        std::thread::sleep(GLANCE);
    }
    Ok(true)
}
