//! One instance's queue and executors, event by event.
//!
//! The batching policy of the queueing model and of the worker: an idle executor starts a batch when
//! `batch` requests wait or the oldest has waited `max_wait`. Arrivals are pushed in order of time; a
//! batch is settled once no later arrival can change it. No event heap and nothing allocated per
//! request.

use super::latencies::Latencies;
use crate::queueing::BatchServer;
use std::collections::VecDeque;

/// An instance under simulation.
pub(crate) struct Executors<'a> {
    server: BatchServer<'a>,
    energy: &'a [f64],
    /// When each executor is next free (s).
    free: Vec<f64>,
    waiting: VecDeque<f64>,
    /// Nothing that arrives before this is counted (s).
    from: f64,
    pub(crate) latencies: Latencies,
    pub(crate) batches: u64,
    pub(crate) served: u64,
    /// Seconds that executors were busy.
    pub(crate) busy: f64,
    /// Dynamic energy (J).
    pub(crate) energy_j: f64,
    /// Batches by size, at index size - 1.
    pub(crate) sizes: Vec<u64>,
}

impl<'a> Executors<'a> {
    /// An empty instance; `energy` holds the dynamic energy of a batch of k (J), or nothing.
    pub(crate) fn new(server: BatchServer<'a>, energy: &'a [f64], bound: f64, from: f64) -> Self {
        Self {
            server,
            energy,
            free: vec![f64::NEG_INFINITY; server.processes.max(1) as usize],
            waiting: VecDeque::with_capacity(1024),
            from,
            latencies: Latencies::new(bound),
            batches: 0,
            served: 0,
            busy: 0.0,
            energy_j: 0.0,
            sizes: vec![0; server.batch_times.len()],
        }
    }

    /// Executors, as a number to divide by.
    pub(crate) fn free_count(&self) -> f64 {
        self.free.len() as f64
    }

    /// A request arrives, not before any earlier one.
    #[inline]
    pub(crate) fn arrive(&mut self, at: f64) {
        self.settle(at);
        self.waiting.push_back(at);
    }

    /// No more requests come: everything that waits is served.
    pub(crate) fn finish(&mut self) {
        self.settle(f64::INFINITY);
    }

    /// Runs every batch that starts before `until`.
    #[inline]
    fn settle(&mut self, until: f64) {
        let batch = self.server.batch_times.len();
        while let Some(&oldest) = self.waiting.front() {
            let mut executor = 0;
            for (i, free) in self.free.iter().enumerate() {
                if *free < self.free[executor] {
                    executor = i;
                }
            }
            let patience = oldest + self.server.max_wait;
            let ready = self.waiting.get(batch - 1).map_or(patience, |full| full.min(patience));
            let start = self.free[executor].max(ready);
            // Equal is not yet: the request that arrives now still joins.
            if start >= until {
                return;
            }
            let k = self.waiting.len().min(batch);
            let time = self.server.batch_times[k - 1];
            let end = start + time;
            self.free[executor] = end;
            for arrival in self.waiting.drain(..k) {
                if arrival >= self.from {
                    self.latencies.record(end - arrival);
                    self.served += 1;
                }
            }
            if start >= self.from {
                self.batches += 1;
                self.busy += time;
                self.sizes[k - 1] += 1;
                self.energy_j += self.energy.get(k - 1).copied().unwrap_or(0.0);
            }
        }
    }
}
