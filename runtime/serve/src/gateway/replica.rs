//! One replica: its queue, its workers, and which batch is with whom.
//!
//! Whatever happens (a request comes, a batch is done, a worker gets warm or dies, the oldest has waited
//! long enough) ends in [`State::depart`], which sends what may leave. Everything under one lock, which is
//! held for no longer than a write to a socket that does not block.

mod state;

use super::link::Link;
use super::timer::Timer;
use crate::deployment;
use crate::protocol::{Answer, InferRequest, Share, TensorData};
use crate::queue::{Policy, Queue, Waiting};
use bytes::Bytes;
use ent_wire::{Configure, Done, Executor, Model, ToWorker, Welcome};
use parking_lot::{Mutex, MutexGuard};
use state::{State, Worker, joins, ms};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What became of a request in a replica's queue.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Its rows of a batch's answer, and when that batch ran.
    Answered(Share, Ran),
    /// The worker could not run its batch; `had_company` if other requests were of it.
    Failed { message: String, had_company: bool },
    /// The worker died with it.
    Lost,
    /// The replica takes no more, and did not begin it.
    Moved,
    /// Its deadline passed while it waited.
    Expired,
    /// No worker came back in time.
    Absent,
}

/// A batch that ran.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) rows: u32,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
}

/// A request for a replica's queue.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) request: Arc<InferRequest>,
    /// It may have been at fault for a batch that failed: it goes without company.
    pub(crate) is_alone: bool,
    /// It was taken before, and is not refused now.
    pub(crate) was_taken: bool,
    /// When its client gives up.
    pub(crate) deadline: Option<Instant>,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// Why a replica does not take a request.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// It is on its way out; another is to be asked.
    Closed,
    /// Its queue has so many already.
    Full(usize),
    /// It would be answered after `predicted`, where `allowed` was allowed.
    Late { predicted: Duration, allowed: Duration },
}

/// How long no request is refused for being late where a queue has grown because workers were away: it is to be
/// worked off.
const PARDON: Duration = Duration::from_secs(30);

/// What a replica did, for metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) batches: u64,
    /// By rows, at index rows - 1.
    pub(crate) sizes: Vec<u64>,
    pub(crate) overrun: Duration,
    pub(crate) compute: Duration,
    pub(crate) energy_j: f64,
    pub(crate) lost_workers: u64,
}

/// One replica.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) id: String,
    pub(crate) epoch: u64,
    pub(crate) executor: Executor,
    model: Model,
    is_ready: AtomicBool,
    batch: AtomicU32,
    timer: Timer,
    state: Mutex<State>,
}

fn configure(plan: &deployment::Replica) -> Configure {
    Configure {
        batch: plan.batch,
        batch_times_ms: plan.batch_times_ms.clone(),
        batch_energy_j: plan.batch_energy_j.clone(),
    }
}

impl Replica {
    /// A replica without workers. Needs the gateway's runtime.
    pub(crate) fn new(plan: &deployment::Replica, model: &Model) -> io::Result<Self> {
        let policy = Policy { batch: plan.batch, max_wait: ms(plan.max_wait_ms) };
        Ok(Self {
            id: plan.id.clone(),
            epoch: plan.epoch,
            executor: plan.executor,
            model: model.clone(),
            is_ready: AtomicBool::new(false),
            batch: AtomicU32::new(plan.batch),
            timer: Timer::new()?,
            state: Mutex::new(State {
                plan: plan.clone(),
                queue: Queue::new(policy, joins),
                workers: Vec::new(),
                is_closed: false,
                is_resting: false,
                pardon: None,
                alarm: None,
                standing: None,
                pace: 1.0,
                batches: 0,
                counts: Counts::default(),
            }),
        })
    }

    /// Whether a deployment's replica is this one, perhaps with other numbers.
    pub(crate) fn is(&self, plan: &deployment::Replica, model: &Model) -> bool {
        self.id == plan.id
            && self.epoch == plan.epoch
            && self.executor == plan.executor
            && self.model.artifact == model.artifact
            && self.model.signature == model.signature
    }

    /// Whether a worker is warm.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    /// Rows of its largest batch.
    pub(crate) fn batch(&self) -> u32 {
        self.batch.load(Ordering::Relaxed)
    }

    /// Whether all its workers are warm for the planned batch.
    pub(crate) fn is_complete(&self) -> bool {
        let state = self.state.lock();
        let warm = |w: &&Worker| w.warm >= state.plan.batch && w.process < state.plan.processes;
        state.workers.iter().filter(warm).count() >= state.plan.processes as usize
    }

    /// A request gets in line, unless it would be answered later than `allowed`, given whether the queue has
    /// been standing for as long as that.
    pub(crate) fn submit(
        &self,
        queued: Queued,
        rows: u32,
        since: Instant,
        limit: usize,
        allowed: impl FnOnce(Option<Instant>) -> Duration,
    ) -> Result<u64, (NotTaken, Queued)> {
        let mut state = self.state.lock();
        let now = Instant::now();
        if state.is_closed {
            return Err((NotTaken::Closed, queued));
        }
        if state.queue.len() >= limit {
            return Err((NotTaken::Full(state.queue.len()), queued));
        }
        if queued.was_taken {
            // It was kept waiting elsewhere, and makes others wait here.
            state.pardon = now.checked_add(PARDON);
        }
        let is_pardoned =
            queued.was_taken || state.is_resting || state.pardon.is_some_and(|until| now < until);
        let mut allowed = if is_pardoned { Duration::MAX } else { allowed(state.standing) };
        if let Some(deadline) = queued.deadline {
            allowed = allowed.min(deadline.saturating_duration_since(since));
        }
        let predicted = now.saturating_duration_since(since).saturating_add(state.predict(rows, now));
        if predicted > allowed {
            return Err((NotTaken::Late { predicted, allowed }, queued));
        }
        let ticket = state.queue.push(since, rows, queued);
        self.pump(&mut state, now);
        Ok(ticket)
    }

    /// When a request of so many rows would be answered, from now.
    pub(crate) fn predict(&self, rows: u32) -> Duration {
        self.state.lock().predict(rows, Instant::now())
    }

    /// A request's client has gone. What is with a worker already is answered to nobody.
    pub(crate) fn cancel(&self, ticket: u64) {
        let mut state = self.state.lock();
        state.queue.remove(ticket);
        self.pump(&mut state, Instant::now());
    }

    /// Sends what may leave, and sets the alarm for what may leave later.
    fn pump(&self, state: &mut MutexGuard<'_, State>, now: Instant) {
        while state.depart(now) {}
        if state.is_resting || state.queue.is_empty() || !state.workers.iter().any(Worker::is_idle) {
            return;
        }
        // An alarm that goes off too early looks again, which is cheaper than to set it for every batch.
        if let Some(at) = state.queue.leaves_at()
            && state.alarm.is_none_or(|alarm| alarm > at)
        {
            state.alarm = Some(at);
            self.timer.set(at, now);
        }
    }

    /// Wakes the queue when its oldest request has waited long enough, for as long as the replica lasts.
    pub(crate) async fn keep_time(&self) -> io::Result<()> {
        loop {
            self.timer.goes_off().await?;
            let mut state = self.state.lock();
            state.alarm = None;
            self.pump(&mut state, Instant::now());
        }
    }

    /// Takes a worker in and welcomes it, if it is wanted.
    pub(crate) fn join(&self, process: u32, serial: u64, link: Arc<Link>) -> Result<(), String> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(format!("replica `{}` is on its way out", self.id));
        }
        if process >= state.plan.processes {
            return Err(format!("replica `{}` has {} processes", self.id, state.plan.processes));
        }
        if state.workers.iter().any(|w| w.process == process) {
            return Err(format!("process {process} of replica `{}` is already there", self.id));
        }
        // Under the lock, so that no other message of a later plan comes before it.
        let welcome = Welcome { model: self.model.clone(), configure: configure(&state.plan) };
        link.send(&ToWorker::Welcome(welcome), &[]);
        state.is_resting = false;
        let idle_since = Instant::now();
        state.workers.push(Worker { process, serial, link, warm: 0, in_flight: None, idle_since });
        Ok(())
    }

    /// A worker is ready for batches of so many rows.
    pub(crate) fn warm(&self, serial: u64, batch: u32) {
        let mut state = self.state.lock();
        let now = Instant::now();
        if let Some(worker) = state.workers.iter_mut().find(|w| w.serial == serial) {
            worker.warm = batch;
            if worker.in_flight.is_none() {
                worker.idle_since = now;
            }
        }
        self.settle(&mut state, now);
    }

    /// Brings rule and readiness up to date with the workers, and sends what may leave.
    fn settle(&self, state: &mut MutexGuard<'_, State>, now: Instant) {
        let warm = state.workers.iter().map(|w| w.warm).filter(|w| *w > 0).min();
        let batch = state.plan.batch.min(warm.unwrap_or(u32::MAX));
        let max_wait = ms(state.plan.max_wait_ms);
        state.queue.follow(Policy { batch, max_wait });
        self.batch.store(batch, Ordering::Relaxed);
        let is_ready = warm.is_some() && !state.is_closed && !state.is_resting;
        if is_ready && !self.is_ready.swap(is_ready, Ordering::Relaxed) {
            // What has waited for it comes now, all at once.
            state.pardon = now.checked_add(PARDON);
        }
        self.is_ready.store(is_ready, Ordering::Relaxed);
        self.pump(state, now);
    }

    /// A worker answered a batch. `Err` says what it got wrong.
    pub(crate) fn done(&self, serial: u64, done: Done<'_>, mut body: Bytes) -> Result<(), &'static str> {
        let (finished, ended) = {
            let mut state = self.state.lock();
            // Not before the lock is held: a request may have come while it was not.
            let now = Instant::now();
            let finished = state.finish(serial, done.batch, now).ok_or("an answer to no batch of its")?;
            let took = now.saturating_duration_since(finished.since).as_secs_f64();
            let ratio = took / finished.expected.as_secs_f64().max(1e-6);
            state.pace = 0.9 * state.pace + 0.1 * ratio.clamp(0.01, 1e4);
            let counts = &mut state.counts;
            counts.batches += 1;
            let rows = finished.rows as usize;
            if counts.sizes.len() < rows {
                counts.sizes.resize(rows, 0);
            }
            if let Some(size) = counts.sizes.get_mut(rows - 1) {
                *size += 1;
            }
            counts.compute += Duration::from_micros(done.compute_us);
            counts.energy_j += done.energy_j.filter(|e| e.is_finite()).unwrap_or(0.0);
            // The worker gets its next batch before the clients get this one's answers.
            self.pump(&mut state, now);
            (finished, now)
        };
        let ran = Ran { rows: finished.rows, begun: finished.since, ended };
        let mut outputs = Vec::with_capacity(done.outputs.len());
        for tensor in done.outputs {
            let length = usize::try_from(tensor.bytes).unwrap_or(usize::MAX).min(body.len());
            let (name, shape) = (tensor.name.into_owned(), tensor.shape.into_owned());
            let data = body.split_to(length);
            outputs.push(TensorData { name, datatype: tensor.datatype, shape, data });
        }
        match Answer::new(self.executor, finished.rows, outputs) {
            Ok(answer) => {
                let answer = Arc::new(answer);
                let mut first = 0;
                for request in finished.requests {
                    let rows = request.rows;
                    let share = Share { answer: Arc::clone(&answer), first, rows };
                    first += rows;
                    // Nobody waits for it any more if this fails.
                    let _ = request.item.reply.send(Reply::Answered(share, ran));
                }
            }
            Err(wrong) => fail(finished.requests, &wrong.to_string()),
        }
        Ok(())
    }

    /// A worker could not run a batch.
    pub(crate) fn failed(&self, serial: u64, batch: u64, message: &str) -> Result<(), &'static str> {
        let finished = {
            let mut state = self.state.lock();
            // Not before the lock is held: a request may have come while it was not.
            let now = Instant::now();
            let finished = state.finish(serial, batch, now).ok_or("a failure of no batch of its")?;
            self.pump(&mut state, now);
            finished
        };
        fail(finished.requests, message);
        Ok(())
    }

    /// A worker's connection has ended. What it had is to be tried elsewhere; so is what waits, if it was
    /// the last.
    pub(crate) fn left(&self, serial: u64) {
        let (lost, moved) = {
            let mut state = self.state.lock();
            let Some(place) = state.workers.iter().position(|w| w.serial == serial) else { return };
            let worker = state.workers.remove(place);
            let is_retired = state.is_closed || worker.process >= state.plan.processes;
            state.counts.lost_workers += u64::from(!is_retired);
            self.settle(&mut state, Instant::now());
            let moved = if self.is_ready() { Vec::new() } else { state.queue.remove_where(|_| true) };
            (worker.in_flight.map(|f| f.requests).unwrap_or_default(), moved)
        };
        lost.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Lost)));
        moved.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Moved)));
    }

    /// Follows another plan.
    pub(crate) fn replan(&self, plan: &deployment::Replica) {
        let mut state = self.state.lock();
        let before = configure(&state.plan);
        state.plan = plan.clone();
        let after = configure(plan);
        if after != before {
            state.pace = 1.0;
            for worker in &state.workers {
                worker.link.send(&ToWorker::Configure(after.clone()), &[]);
            }
        }
        for worker in state.workers.iter().filter(|w| w.process >= plan.processes && w.in_flight.is_none()) {
            worker.link.send(&ToWorker::Shutdown, &[]);
        }
        self.settle(&mut state, Instant::now());
    }

    /// Takes no more requests, and gives those that wait back. Workers end when they have finished.
    pub(crate) fn close(&self) {
        let moved = {
            let mut state = self.state.lock();
            state.is_closed = true;
            self.is_ready.store(false, Ordering::Relaxed);
            for worker in state.workers.iter().filter(|w| w.in_flight.is_none()) {
                worker.link.send(&ToWorker::Shutdown, &[]);
            }
            state.queue.remove_where(|_| true)
        };
        moved.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Moved)));
    }

    /// Begins no batch any more, until a worker joins: its workers are about to be told to end. What waits here
    /// stays, for the case that nobody else can take it.
    pub(crate) fn rest(&self) {
        let mut state = self.state.lock();
        state.is_resting = true;
        self.is_ready.store(false, Ordering::Relaxed);
    }

    /// Others of its service are about to be away, and it works for them.
    pub(crate) fn stand_in(&self) {
        self.state.lock().pardon = Instant::now().checked_add(PARDON);
    }

    /// Gives back what waits here while there is no worker, because another replica has one.
    pub(crate) fn release(&self) {
        let moved = self.state.lock().queue.remove_where(|_| true);
        moved.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Moved)));
    }

    /// Looks for what has waited too long: clients that gave up, and workers that do not come back.
    pub(crate) fn sweep(&self, absence: Duration) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let expired = state.queue.remove_where(|w| w.item.deadline.is_some_and(|d| d <= now));
        let absent = if self.is_ready() {
            Vec::new()
        } else {
            state.queue.remove_where(|w| now.saturating_duration_since(w.since) >= absence)
        };
        if !expired.is_empty() {
            self.pump(&mut state, now);
        }
        drop(state);
        expired.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Expired)));
        absent.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Absent)));
    }

    /// Whether a worker has had a batch for so much longer than it should.
    pub(crate) fn is_hanging(&self, serial: u64, hang: Duration) -> bool {
        let state = self.state.lock();
        let in_flight = state.workers.iter().find(|w| w.serial == serial).and_then(|w| w.in_flight.as_ref());
        in_flight.is_some_and(|f| f.since.elapsed() >= hang.saturating_add(f.expected))
    }

    /// What it is now and did so far.
    pub(crate) fn look(&self) -> Look {
        let state = self.state.lock();
        let is_warm = |w: &&Worker| w.warm > 0;
        Look {
            workers: u32::try_from(state.workers.iter().filter(is_warm).count()).unwrap_or(u32::MAX),
            processes: state.plan.processes,
            batch: state.plan.batch,
            queued: state.queue.len() as u64,
            in_flight: state
                .workers
                .iter()
                .filter_map(|w| w.in_flight.as_ref())
                .map(|f| u64::from(f.rows))
                .sum(),
            counts: state.counts.clone(),
        }
    }

    /// Whether a worker has a batch.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.lock().workers.iter().any(|w| w.in_flight.is_some())
    }
}

/// A replica at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) workers: u32,
    pub(crate) processes: u32,
    pub(crate) batch: u32,
    pub(crate) queued: u64,
    pub(crate) in_flight: u64,
    pub(crate) counts: Counts,
}

fn fail(requests: Vec<Waiting<Queued>>, message: &str) {
    let had_company = requests.len() > 1;
    for request in requests {
        let _ = request.item.reply.send(Reply::Failed { message: message.to_owned(), had_company });
    }
}
