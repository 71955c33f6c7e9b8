//! One process that is to be there → started, watched, started again, ended.

use super::back_off::{BackOff, Ended};
use super::log::Log;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Longest line that is kept of what a process says (characters).
const LINE: usize = 500;

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    /// What it is called in the log.
    pub(super) name: String,
    /// The executable.
    pub(super) path: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<OsString>,
    /// Variables that it gets beside its parent's.
    pub(super) environment: Vec<(&'static str, OsString)>,
    /// Its working folder.
    pub(super) folder: PathBuf,
}

/// What is wanted of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// That it is there.
    Run,
    /// That it is there until it is told to end by somebody else.
    Last,
    /// That it ends.
    End,
}

/// What is known of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Its id, while it is there.
    pub(super) pid: Option<u32>,
    /// How often it was started.
    pub(super) starts: u32,
    /// Why it is not there, or was not the last time.
    pub(super) reason: Option<String>,
}

/// A process that is to be there. Dropped, it is left to itself.
#[derive(Debug)]
pub(super) struct Job {
    wish: watch::Sender<Wish>,
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Job {
    /// Starts it. Needs a runtime.
    pub(super) fn start(program: Program, grace: Duration, log: Arc<Log>) -> Self {
        let (wish, is_wished) = watch::channel(Wish::Run);
        let seen = Arc::new(Mutex::new(Seen::default()));
        let keeper = Keeper { program, grace, log, seen: Arc::clone(&seen), wish: is_wished };
        Self { wish, seen, task: tokio::spawn(keeper.keep()) }
    }

    /// What is known of it.
    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().clone()
    }

    /// Somebody else is about to tell it to end, and then it is not to be started again.
    pub(super) fn last(&self) {
        self.wish.send_replace(Wish::Last);
    }

    /// It is wanted after all.
    pub(super) fn wanted(&self) {
        self.wish.send_replace(Wish::Run);
    }

    /// Asks it to end. [`Job::ended`] waits for it.
    pub(super) fn end(&self) {
        self.wish.send_replace(Wish::End);
    }

    /// Waits until it has ended, which it does within its grace.
    pub(super) async fn ended(self) {
        self.end();
        let _ = self.task.await;
    }
}

struct Keeper {
    program: Program,
    grace: Duration,
    log: Arc<Log>,
    seen: Arc<Mutex<Seen>>,
    wish: watch::Receiver<Wish>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut back_off = BackOff::default();
        loop {
            let started = Instant::now();
            let (ended, reason) = match self.spawn() {
                Ok(child) => self.watch(child).await,
                Err(error) => {
                    let path = self.program.path.display();
                    (Ended::Crashed, Some(format!("`{path}` cannot be started: {error}")))
                }
            };
            {
                let mut seen = self.seen.lock();
                seen.pid = None;
                if reason.is_some() {
                    seen.reason.clone_from(&reason);
                }
            }
            let name = &self.program.name;
            let wish = *self.wish.borrow();
            if wish == Wish::End || (wish == Wish::Last && ended == Ended::Asked) {
                self.log.line(format_args!("{name} ended"));
                if wish == Wish::End || !self.is_wanted_again().await {
                    return;
                }
                continue;
            }
            let wait = back_off.after(ended, started.elapsed());
            let why = reason.unwrap_or_else(|| "it ended".to_owned());
            let when = if wait.is_zero() { "at once".to_owned() } else { format!("in {wait:?}") };
            self.log.line(format_args!("{name} is gone: {why}; again {when}"));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = ending(&mut self.wish) => return,
            }
        }
    }

    /// Whether it is wanted again after somebody else has ended it; false when it is to end.
    async fn is_wanted_again(&mut self) -> bool {
        let wish = self.wish.wait_for(|wish| *wish != Wish::Last).await;
        wish.is_ok_and(|wish| *wish == Wish::Run)
    }

    fn spawn(&self) -> std::io::Result<Child> {
        let program = &self.program;
        let mut command = Command::new(&program.path);
        command.args(&program.arguments).current_dir(&program.folder);
        command.envs(program.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // A Ctrl-C at the terminal is for the supervisor, which ends its workers in order.
        command.process_group(0);
        let child = command.spawn()?;
        let mut seen = self.seen.lock();
        seen.pid = child.id();
        seen.starts += 1;
        Ok(child)
    }

    /// Until it has ended; asks it to end when that is wished.
    async fn watch(&mut self, mut child: Child) -> (Ended, Option<String>) {
        let last = Arc::new(Mutex::new(None));
        let said = child.stderr.take().map(|stream| {
            let (log, name, last) = (Arc::clone(&self.log), self.program.name.clone(), Arc::clone(&last));
            tokio::spawn(async move { listen(stream, &log, &name, &last).await })
        });
        let status = tokio::select! {
            status = child.wait() => status,
            () = ending(&mut self.wish) => self.terminate(&mut child).await,
        };
        if let Some(said) = said {
            // A grandchild may hold the stream for longer than the process lives.
            let _ = tokio::time::timeout(Duration::from_millis(200), said).await;
        }
        let words = last.lock().take();
        match status {
            Ok(status) => how(status, words),
            Err(error) => (Ended::Crashed, Some(format!("its end was not seen: {error}"))),
        }
    }

    /// SIGTERM, and SIGKILL when its grace is over.
    async fn terminate(&self, child: &mut Child) -> std::io::Result<ExitStatus> {
        if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            // It may have ended just now.
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Ok(status) = tokio::time::timeout(self.grace, child.wait()).await {
            return status;
        }
        self.log.line(format_args!("{} did not end in {:?}, and is killed", self.program.name, self.grace));
        child.kill().await?;
        child.wait().await
    }
}

/// Until an end is wished; for ever when nobody can wish any more.
async fn ending(wish: &mut watch::Receiver<Wish>) {
    if wish.wait_for(|wish| *wish == Wish::End).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Repeats what a process says in the log, and keeps its last line.
async fn listen(stream: impl AsyncRead + Unpin, log: &Log, name: &str, last: &Mutex<Option<String>>) {
    let mut lines = BufReader::new(stream).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let text: String = String::from_utf8_lossy(&line).trim_end().chars().take(LINE).collect();
        if !text.is_empty() {
            log.line(format_args!("{name}: {text}"));
            *last.lock() = Some(text);
        }
    }
}

/// How a process ended, and why in words where that is not plain.
fn how(status: ExitStatus, words: Option<String>) -> (Ended, Option<String>) {
    use std::os::unix::process::ExitStatusExt;
    match status.code() {
        Some(0) => (Ended::Asked, None),
        Some(1) => {
            (Ended::Unable, Some(words.unwrap_or_else(|| "it cannot run what it was given".to_owned())))
        }
        Some(code) => (Ended::Crashed, Some(words.unwrap_or_else(|| format!("it ended with code {code}")))),
        None => {
            let signal = status.signal().unwrap_or_default();
            (Ended::Crashed, Some(format!("it was ended by signal {signal}")))
        }
    }
}
