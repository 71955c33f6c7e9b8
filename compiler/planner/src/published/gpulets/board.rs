//! Boards and their shares: what fits where, and what a neighbour changes.

use super::estimate::Wanted;
use super::measure::Rules;
use super::{Gpu, Gpulet, MOST_BATCH, Tenant};
use std::collections::BTreeMap;

/// Memory of a process itself (MB).
const PROCESS_MB: f64 = 1230.0;
/// Share of a board's memory that may be used.
const USABLE_MEMORY: f64 = 0.9;
/// Promises may be missed by this when a neighbour comes.
const TOLERANCE: f64 = 1.05;

/// Where a share is: board, and position on the board.
pub(super) type Place = (usize, usize);

/// What is left of shares that a check has given away (%).
pub(super) type Given = BTreeMap<Place, u32>;

/// Boards on the way to a plan.
#[derive(Clone)]
pub(super) struct Boards<'a> {
    pub(super) rules: Rules<'a>,
    pub(super) gpus: Vec<Gpu>,
}

impl<'a> Boards<'a> {
    pub(super) fn new(rules: Rules<'a>) -> Self {
        let whole = Gpulet { percent: 100, ..Gpulet::default() };
        let gpus = vec![Gpu { gpulets: vec![whole], memory_mb: 0.0 }; rules.input.boards];
        Self { rules, gpus }
    }

    pub(super) fn gpulet(&self, (gpu, at): Place) -> &Gpulet {
        &self.gpus[gpu].gpulets[at]
    }

    /// All places, by board.
    pub(super) fn places(&self) -> Vec<Place> {
        self.gpus
            .iter()
            .enumerate()
            .flat_map(|(g, gpu)| (0..gpu.gpulets.len()).map(move |i| (g, i)))
            .collect()
    }

    /// Places with nothing in them, largest first.
    pub(super) fn empty(&self) -> Vec<Place> {
        let mut all: Vec<Place> =
            self.places().into_iter().filter(|p| self.gpulet(*p).tenants.is_empty()).collect();
        self.largest_first(&mut all);
        all
    }

    pub(super) fn largest_first(&self, places: &mut [Place]) {
        places.sort_by_key(|p| std::cmp::Reverse(self.gpulet(*p).percent));
    }

    /// The tenants of a board's other shares.
    pub(super) fn neighbours(&self, (gpu, at): Place) -> Vec<(Tenant, u32)> {
        let others = self.gpus[gpu].gpulets.iter().enumerate().filter(|(i, _)| *i != at);
        others.flat_map(|(_, g)| g.tenants.iter().map(|t| (*t, g.percent))).collect()
    }

    /// The tenants of a board's shares but for the first halves of a size.
    pub(super) fn others_by_size(&self, gpu: usize, percent: u32) -> Vec<(Tenant, u32)> {
        let shares = self.gpus.get(gpu).map_or(&[][..], |g| &g.gpulets);
        let others = shares.iter().filter(|g| g.percent != percent || g.is_second_half);
        others.flat_map(|g| g.tenants.iter().map(|t| (*t, g.percent))).collect()
    }

    /// Whether the model's memory fits into a share.
    pub(super) fn has_memory(&self, model: usize, place: Place) -> bool {
        let process = if self.gpulet(place).is_loaded { 0.0 } else { PROCESS_MB };
        let free = USABLE_MEMORY * self.rules.input.memory_mb - self.gpus[place.0].memory_mb;
        free > self.rules.model(model).memory_mb + process
    }

    /// The share that fits best. Shares that were `given` away count as what is left of them.
    pub(super) fn best_fit(&self, wanted: &Wanted, given: &Given) -> Option<Place> {
        let mut best: Option<Place> = None;
        let mut least_gap = u32::MAX;
        for place in self.places() {
            let share = self.gpulet(place);
            let left = given.get(&place).copied().unwrap_or(share.percent);
            if !share.tenants.is_empty() || left < wanted.percent || !self.has_memory(wanted.model, place) {
                continue;
            }
            let neighbours = self.neighbours(place);
            let latency = self.rules.latency(wanted.model, wanted.batch, share.percent, &neighbours);
            let wait = self.rules.wait(wanted.batch, wanted.duty);
            if latency + wait > self.rules.model(wanted.model).bound_ms || self.hurts_neighbour(place) {
                continue;
            }
            let is_whole = share.percent == 100;
            let gap = share.percent - wanted.percent;
            if is_whole {
                least_gap = 0;
                best = Some(place);
            } else if least_gap >= gap {
                least_gap = gap;
                best = Some(place);
            }
        }
        best
    }

    /// Whether a tenant of the board's other shares has no room for any neighbour.
    fn hurts_neighbour(&self, (gpu, at): Place) -> bool {
        self.gpus[gpu].gpulets.iter().enumerate().filter(|(i, _)| *i != at).any(|(_, share)| {
            share.tenants.iter().any(|t| {
                let busy = 2.0 * share.duty_ms + self.rules.batching(t.model, t.batch);
                busy > self.rules.model(t.model).bound_ms
            })
        })
    }

    /// Splits a whole board; the rest comes second.
    pub(super) fn split(&mut self, gpu: usize, percent: u32) {
        let rest = 100 - percent;
        let first = Gpulet { percent, ..Gpulet::default() };
        let second = Gpulet { percent: rest, is_second_half: rest == percent, ..Gpulet::default() };
        self.gpus[gpu].gpulets = vec![first, second];
    }

    /// Puts a wanted share's work into an empty one.
    pub(super) fn put(&mut self, wanted: &Wanted, (gpu, at): Place) {
        let share = &mut self.gpus[gpu].gpulets[at];
        share.duty_ms = wanted.duty;
        share.occupancy = wanted.occupancy;
        share.is_saturated = wanted.is_saturated;
        share.tenants = vec![Tenant {
            model: wanted.model,
            batch: wanted.batch,
            throughput: wanted.throughput,
            rate: wanted.rate,
        }];
    }

    pub(super) fn charge(&mut self, model: usize, (gpu, at): Place) {
        let process = if self.gpulet((gpu, at)).is_loaded { 0.0 } else { PROCESS_MB };
        self.gpus[gpu].memory_mb += self.rules.model(model).memory_mb + process;
        self.gpus[gpu].gpulets[at].is_loaded = true;
    }

    /// Empties a share and frees its memory.
    pub(super) fn clear(&mut self, (gpu, at): Place) {
        let share = &self.gpus[gpu].gpulets[at];
        let tenants: f64 = share.tenants.iter().map(|t| self.rules.model(t.model).memory_mb).sum();
        let process = if share.is_loaded { PROCESS_MB } else { 0.0 };
        self.gpus[gpu].memory_mb -= tenants + process;
        let share = &mut self.gpus[gpu].gpulets[at];
        *share = Gpulet { percent: share.percent, is_second_half: share.is_second_half, ..Gpulet::default() };
    }

    /// Bytes per second that a board takes in.
    pub(super) fn traffic(&self, gpu: usize) -> f64 {
        let tenants = self.gpus[gpu].gpulets.iter().flat_map(|g| &g.tenants);
        tenants.map(|t| t.throughput * self.rules.model(t.model).request_bytes).sum()
    }

    /// Makes a share keep its promises after a neighbour came. Loss of a saturated share's throughput is added to
    /// `extra` (req/s). False when it cannot be.
    pub(super) fn adjust(&mut self, place: Place, extra: &mut f64) -> bool {
        if self.gpulet(place).tenants.is_empty() {
            return true;
        }
        if self.gpulet(place).is_saturated {
            self.adjust_saturated(place, extra)
        } else {
            self.adjust_residue(place)
        }
    }

    fn adjust_saturated(&mut self, place: Place, extra: &mut f64) -> bool {
        let neighbours = self.neighbours(place);
        let share = self.gpulet(place);
        let (percent, tenant) = (share.percent, share.tenants[0]);
        let bound = self.rules.model(tenant.model).bound_ms;
        let latency = |b: u32| self.rules.latency(tenant.model, b, percent, &neighbours);
        let at_present = latency(tenant.batch);
        let mut changed = tenant;
        let mut duty = None;
        if 2.0 * at_present < bound {
            changed.throughput = self.rules.real(1000.0 * f64::from(tenant.batch) / at_present);
            *extra = self.rules.whole(*extra + tenant.throughput - changed.throughput);
        } else {
            let Some(batch) = (1..=tenant.batch).rev().find(|b| 2.0 * latency(*b) <= bound) else {
                return false;
            };
            changed.batch = batch;
            duty = Some(latency(batch));
        }
        let share = &mut self.gpus[place.0].gpulets[place.1];
        share.tenants[0] = changed;
        share.duty_ms = duty.unwrap_or(share.duty_ms);
        true
    }

    fn adjust_residue(&mut self, place: Place) -> bool {
        let neighbours = self.neighbours(place);
        let mut share = self.gpulet(place).clone();
        let percent = share.percent;
        let total = |tenants: &[Tenant]| -> f64 {
            tenants.iter().map(|t| self.rules.latency(t.model, t.batch, percent, &neighbours)).sum()
        };
        let bound = |t: &Tenant| TOLERANCE * self.rules.model(t.model).bound_ms;
        let duty = share.duty_ms;
        if share.tenants.iter().all(|t| total(&share.tenants) + duty <= bound(t)) {
            return true;
        }
        let mut least = duty;
        for at in 0..share.tenants.len() {
            let original = share.tenants[at].batch;
            let mut own = duty;
            while total(&share.tenants) + own > bound(&share.tenants[at]) {
                let batch = share.tenants[at].batch - 1;
                if batch == 0 {
                    return false;
                }
                share.tenants[at].batch = batch;
                own *= f64::from(batch) / f64::from(original);
            }
            least = least.min(own);
        }
        share.duty_ms = self.rules.real(least);
        self.gpus[place.0].gpulets[place.1] = share;
        true
    }

    /// Splits of boards with nothing on them are undone.
    pub(super) fn join_empty(&mut self) {
        for gpu in &mut self.gpus {
            if gpu.gpulets.iter().all(|g| g.tenants.is_empty()) {
                gpu.gpulets = vec![Gpulet { percent: 100, ..Gpulet::default() }];
            }
        }
    }

    /// Puts a model beside others into a share that has time left, at the rate given; what it then serves.
    pub(super) fn share_time(&mut self, model: usize, rate: f64, place: Place) -> Option<f64> {
        let share = self.gpulet(place);
        let (percent, occupancy, present) = (share.percent, share.occupancy, share.duty_ms);
        let neighbours = self.neighbours(place);
        let latency = |m: usize, b: u32| self.rules.latency(m, b, percent, &neighbours);
        let bound = |m: usize| self.rules.model(m).bound_ms;
        let most_batch = |m: usize| self.rules.model(m).most_batch.min(MOST_BATCH);
        let most = (self.rules.real(present * rate) / 1000.0).min(f64::from(most_batch(model))) as u32;
        let (batch, duty) = (1..=most).rev().find_map(|b| {
            let duty = self.rules.whole(1000.0 * f64::from(b) / rate);
            let own = latency(model, b);
            (duty + own < bound(model) && own / duty < 1.0 - occupancy).then_some((b, duty))
        })?;
        if duty > present {
            return None;
        }
        let mut tenants = share.tenants.clone();
        for other in &mut tenants {
            other.batch =
                ((duty * other.throughput / 1000.0) as u32).clamp(1, most_batch(other.model).max(1));
        }
        let throughput = 1000.0 * f64::from(batch) / duty;
        tenants.push(Tenant { model, batch, throughput, rate });
        let busy: f64 = tenants.iter().map(|t| latency(t.model, t.batch)).sum();
        if busy / duty > 1.0 || tenants.iter().any(|t| busy + duty > bound(t.model)) {
            return None;
        }
        self.charge(model, place);
        let share = &mut self.gpus[place.0].gpulets[place.1];
        share.tenants = tenants;
        share.duty_ms = duty;
        share.occupancy = busy / duty;
        Some(throughput)
    }
}
