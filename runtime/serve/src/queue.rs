//! Requests that arrive → batches that leave: the batching rule of the queueing model, with no clock and
//! no I/O.
//!
//! An idle executor takes a batch when it is full or its oldest request has waited `max_wait`; with a
//! `max_wait` of 0 it takes whatever is there. A batch is full when it has `batch` rows, or when the next
//! request in line cannot be of it: order is kept, so nothing would come of waiting. Requests leave in
//! the order in which they came.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// When batches leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Rows of a full batch.
    pub batch: u32,
    /// How long the oldest request waits for its batch to fill.
    pub max_wait: Duration,
}

/// One request in line.
#[derive(Debug)]
pub struct Waiting<T> {
    /// Since when it waits.
    pub since: Instant,
    /// What it is known by in this queue.
    pub ticket: u64,
    /// Its rows.
    pub rows: u32,
    /// The request.
    pub item: T,
}

/// Requests in line for the executors of one replica.
#[derive(Debug)]
pub struct Queue<T> {
    policy: Policy,
    waiting: VecDeque<Waiting<T>>,
    tickets: u64,
    /// Rows of all that wait.
    rows: u64,
    /// The batch that is forming: how many of the first in line it has, and their rows.
    forming: (usize, u32),
    /// Since when no later request can join it.
    full_since: Option<Instant>,
    /// Whether two requests can be of one batch.
    joins: fn(&T, &T) -> bool,
}

impl<T> Queue<T> {
    /// An empty queue; `joins` says whether two requests can be of one batch.
    #[must_use]
    pub fn new(policy: Policy, joins: fn(&T, &T) -> bool) -> Self {
        let waiting = VecDeque::new();
        Self { policy, waiting, tickets: 0, rows: 0, forming: (0, 0), full_since: None, joins }
    }

    /// The rule that it follows.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Another rule, from now on, also for those that wait.
    pub fn follow(&mut self, policy: Policy) {
        if policy != self.policy {
            self.policy = policy;
            self.form();
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Rows of all that wait.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// A request gets in line. One that waited elsewhere before (`since` is earlier than others') stands
    /// where it would have stood. Returns its ticket.
    pub fn push(&mut self, since: Instant, rows: u32, item: T) -> u64 {
        self.tickets += 1;
        let ticket = self.tickets;
        self.rows += u64::from(rows);
        let entry = Waiting { since, ticket, rows, item };
        if self.waiting.back().is_some_and(|last| last.since > since) {
            let place = self.waiting.partition_point(|w| w.since <= since);
            self.waiting.insert(place, entry);
            self.form();
        } else {
            self.waiting.push_back(entry);
            self.grow();
        }
        ticket
    }

    /// A request leaves the line without having been served; `None` when it is not in it any more.
    pub fn remove(&mut self, ticket: u64) -> Option<T> {
        let place = self.waiting.iter().position(|w| w.ticket == ticket)?;
        let entry = self.waiting.remove(place)?;
        self.rows -= u64::from(entry.rows);
        self.form();
        Some(entry.item)
    }

    /// Those that are to go leave the line without having been served.
    pub fn remove_where(&mut self, goes: impl Fn(&Waiting<T>) -> bool) -> Vec<Waiting<T>> {
        if !self.waiting.iter().any(&goes) {
            return Vec::new();
        }
        let (gone, stay): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(goes);
        self.waiting = stay;
        self.rows = self.waiting.iter().map(|w| u64::from(w.rows)).sum();
        self.form();
        gone.into()
    }

    /// When the first batch in line may leave, given an idle executor; a time in the past says at once,
    /// `None` that nobody waits.
    #[must_use]
    pub fn leaves_at(&self) -> Option<Instant> {
        let patience = self.waiting.front()?.since + self.policy.max_wait;
        Some(self.full_since.map_or(patience, |full| full.min(patience)))
    }

    /// The first batch in line leaves, if it may. Returns its requests, and their rows.
    pub fn take(&mut self, now: Instant) -> Option<(Vec<Waiting<T>>, u32)> {
        if self.leaves_at()? > now {
            return None;
        }
        let (requests, rows) = self.forming;
        let batch: Vec<Waiting<T>> = self.waiting.drain(..requests).collect();
        self.rows -= u64::from(rows);
        self.form();
        Some((batch, rows))
    }

    /// Finds the batch that is forming anew.
    fn form(&mut self) {
        self.forming = (0, 0);
        self.full_since = None;
        self.grow();
    }

    /// Lets those join the forming batch that can.
    fn grow(&mut self) {
        let (mut requests, mut rows) = self.forming;
        while self.full_since.is_none() {
            let (Some(first), Some(next)) = (self.waiting.front(), self.waiting.get(requests)) else { break };
            let total = rows.saturating_add(next.rows);
            // The first goes in any case: a batch that was made smaller may be smaller than it.
            let joins =
                requests == 0 || (total <= self.policy.batch && (self.joins)(&first.item, &next.item));
            if joins {
                (requests, rows) = (requests + 1, total);
            }
            if !joins || rows >= self.policy.batch {
                self.full_since = Some(next.since);
            }
        }
        self.forming = (requests, rows);
    }
}

#[cfg(test)]
mod tests;
