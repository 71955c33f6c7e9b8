//! A replica's workers and queue at one moment: when a request would be answered, and which batch leaves.

use super::super::link::Link;
use super::{Counts, Queued, Reply};
use crate::deployment;
use crate::protocol::TensorData;
use crate::queue::{Policy, Queue, Waiting};
use bytes::Bytes;
use ent_wire::{Execute, Tensor, ToWorker};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct State {
    pub(super) plan: deployment::Replica,
    pub(super) queue: Queue<Queued>,
    pub(super) workers: Vec<Worker>,
    pub(super) is_closed: bool,
    /// No batch begins, because the workers are to end.
    pub(super) is_resting: bool,
    /// Until when no request is refused for being late, unless the queue is empty before.
    pub(super) pardon: Option<Instant>,
    /// When the timer goes off.
    pub(super) alarm: Option<Instant>,
    /// Since when the queue has not been empty.
    pub(super) standing: Option<Instant>,
    /// What batches took over what the plan says, lately.
    pub(super) pace: f64,
    pub(super) batches: u64,
    pub(super) counts: Counts,
}

#[derive(Debug)]
pub(super) struct Worker {
    pub(super) process: u32,
    pub(super) serial: u64,
    pub(super) link: Arc<Link>,
    /// Rows of the largest batch that it is warm for; 0 before it is.
    pub(super) warm: u32,
    pub(super) in_flight: Option<InFlight>,
    pub(super) idle_since: Instant,
}

#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) batch: u64,
    pub(super) rows: u32,
    pub(super) requests: Vec<Waiting<Queued>>,
    pub(super) since: Instant,
    pub(super) expected: Duration,
}

pub(super) fn joins(a: &Queued, b: &Queued) -> bool {
    let same = |(a, b): (&TensorData, &TensorData)| {
        a.datatype == b.datatype && a.name == b.name && a.shape.get(1..) == b.shape.get(1..)
    };
    let (a_inputs, b_inputs) = (&a.request.inputs, &b.request.inputs);
    !a.is_alone && !b.is_alone && a_inputs.len() == b_inputs.len() && a_inputs.iter().zip(b_inputs).all(same)
}

pub(super) fn ms(value: f64) -> Duration {
    Duration::try_from_secs_f64(value * 1e-3).unwrap_or(Duration::MAX)
}

impl Worker {
    pub(super) fn is_idle(&self) -> bool {
        self.warm > 0 && self.in_flight.is_none()
    }
}

impl State {
    pub(super) fn time(&self, rows: u32) -> Duration {
        let index = (rows as usize).clamp(1, self.plan.batch_times_ms.len().max(1)) - 1;
        ms(self.plan.batch_times_ms.get(index).copied().unwrap_or(0.0))
    }

    /// When a request of so many rows would be answered, from `now`; nothing is known without workers.
    pub(super) fn predict(&self, rows: u32, now: Instant) -> Duration {
        let Policy { batch, max_wait } = self.queue.policy();
        let ahead = self.queue.rows() + u64::from(rows);
        let (mut warm, mut busy, mut idle) = (0.0, 0.0, false);
        for worker in self.workers.iter().filter(|w| w.warm > 0) {
            warm += 1.0;
            match &worker.in_flight {
                None => idle = true,
                Some(f) => {
                    let total = f.expected.as_secs_f64() * self.pace;
                    busy += (total - now.saturating_duration_since(f.since).as_secs_f64()).max(0.0);
                }
            }
        }
        if warm == 0.0 {
            return Duration::ZERO;
        }
        let batch = u64::from(batch.max(1));
        let before = (ahead - 1) / batch;
        let of = u32::try_from(ahead.min(batch)).unwrap_or(u32::MAX);
        let own = self.time(of).as_secs_f64() * self.pace;
        let full = self.time(u32::try_from(batch).unwrap_or(u32::MAX)).as_secs_f64() * self.pace;
        let queue = if idle && before == 0 { 0.0 } else { (busy + before as f64 * full) / warm };
        let wait = if ahead < batch { max_wait.as_secs_f64() } else { 0.0 };
        Duration::try_from_secs_f64(queue.max(wait) + own).unwrap_or(Duration::MAX)
    }

    /// Sends one batch to an idle worker, if one may leave.
    pub(super) fn depart(&mut self, now: Instant) -> bool {
        if self.is_resting {
            return false;
        }
        let Some(worker) =
            self.workers.iter_mut().find(|w| w.is_idle() && !w.is_surplus(self.plan.processes))
        else {
            return false;
        };
        let due = self.queue.leaves_at();
        let Some((mut requests, mut rows)) = self.queue.take(now) else { return false };
        if self.queue.is_empty() {
            self.standing = None;
            self.pardon = None;
        } else {
            self.standing.get_or_insert(now);
        }
        if requests.iter().any(|r| r.item.deadline.is_some_and(|d| d < now)) {
            let (late, in_time) =
                requests.into_iter().partition(|r| r.item.deadline.is_some_and(|d| d < now));
            requests = in_time;
            rows = requests.iter().map(|r| r.rows).sum();
            let late: Vec<Waiting<Queued>> = late;
            late.into_iter().for_each(|r| drop(r.item.reply.send(Reply::Expired)));
            if requests.is_empty() {
                return true;
            }
        }
        if let Some(due) = due {
            let overrun = now.saturating_duration_since(due.max(worker.idle_since));
            self.counts.overrun = self.counts.overrun.max(overrun);
        }
        self.batches += 1;
        let index = (rows as usize).clamp(1, self.plan.batch_times_ms.len().max(1)) - 1;
        let expected = ms(self.plan.batch_times_ms.get(index).copied().unwrap_or(0.0));
        send(&worker.link, self.batches, rows, &requests);
        worker.in_flight = Some(InFlight { batch: self.batches, rows, requests, since: now, expected });
        true
    }

    /// A worker has finished a batch; `None` when it had no such.
    pub(super) fn finish(&mut self, serial: u64, batch: u64, now: Instant) -> Option<InFlight> {
        let worker = self.workers.iter_mut().find(|w| w.serial == serial)?;
        if worker.in_flight.as_ref()?.batch != batch {
            return None;
        }
        worker.idle_since = now;
        let finished = worker.in_flight.take();
        if self.is_closed || worker.is_surplus(self.plan.processes) {
            worker.link.send(&ToWorker::Shutdown, &[]);
        }
        finished
    }
}

impl Worker {
    /// Whether the plan has no such process any more.
    pub(super) fn is_surplus(&self, processes: u32) -> bool {
        self.process >= processes
    }
}

/// Sends a batch: each input holds the rows of all requests, one after the other.
fn send(link: &Link, batch: u64, rows: u32, requests: &[Waiting<Queued>]) {
    let Some(first) = requests.first() else { return };
    let inputs = &first.item.request.inputs;
    let mut heads = Vec::with_capacity(inputs.len());
    let mut pieces: Vec<&Bytes> = Vec::with_capacity(inputs.len() * requests.len());
    for (i, input) in inputs.iter().enumerate() {
        let start = pieces.len();
        pieces.extend(requests.iter().filter_map(|r| r.item.request.inputs.get(i)).map(|t| &t.data));
        let bytes = pieces.iter().skip(start).map(|p| p.len() as u64).sum();
        let mut shape = input.shape.clone();
        if let Some(first) = shape.first_mut() {
            *first = i64::from(rows);
        }
        let name = Cow::Borrowed(input.name.as_str());
        heads.push(Tensor { name, datatype: input.datatype, shape: Cow::Owned(shape), bytes });
    }
    link.send(&ToWorker::Execute(Execute { batch, rows, inputs: heads }), &pieces);
}
