//! Elastic partitioning: every model in turn, the lightest promise first.

use super::board::{Boards, Given, Place};
use super::estimate::Wanted;
use super::measure::Rules;
use super::{Decision, Ending, Input, MOST_BATCH};
use crate::published::Mode;

/// With interference on, a model must get this share of its rate.
const ENOUGH: f64 = 0.85;

/// Plans all models.
pub(super) fn schedule(input: &Input, mode: Mode) -> Decision {
    let mut input = input.clone();
    if input.is_self_tuning && mode == Mode::Conformant {
        input.interference = None;
    }
    let mut rates = Vec::new();
    let rules = Rules { input: &input, mode };
    for model in 0..input.models.len() {
        match rate(&rules, model) {
            Ok(rate) => rates.push(rate),
            Err(ending) => return Decision { ending, gpus: Vec::new(), dropped: Vec::new() },
        }
    }
    let mut order: Vec<usize> = (0..input.models.len()).collect();
    let weight = |m: &usize| rates[*m] * input.models[*m].bound_ms;
    order.sort_by(|a, b| weight(a).total_cmp(&weight(b)).then(b.cmp(a)));
    let mut boards = Boards::new(rules);
    let mut dropped = Vec::new();
    for model in order {
        let before = boards.clone();
        match boards.place(model, rates[model]) {
            Ok(()) => {}
            Err(_) if mode == Mode::Native => {
                boards = before;
                dropped.push(model);
            }
            Err(ending) => return Decision { ending, gpus: Vec::new(), dropped: Vec::new() },
        }
    }
    if input.interference.is_some() {
        for (model, &rate) in rates.iter().enumerate() {
            if dropped.contains(&model) || boards.has_enough(model, rate) {
                continue;
            }
            if !boards.retry(model, rate) && mode == Mode::Conformant {
                return Decision { ending: Ending::Empty { model }, gpus: Vec::new(), dropped: Vec::new() };
            }
        }
    }
    dropped.sort_unstable();
    Decision { ending: Ending::Scheduled, gpus: boards.gpus, dropped }
}

/// The rate to plan a model for, or how the original ends.
fn rate(rules: &Rules<'_>, model: usize) -> Result<f64, Ending> {
    let own = rules.model(model);
    let is_number = |x: f64| x.is_finite() && x > 0.0;
    let is_table = own.latencies.iter().all(|(p, b, l)| (1..=100).contains(p) && *b > 0 && is_number(*l))
        && own.latencies.iter().all(|(p, ..)| {
            [1, MOST_BATCH].iter().all(|b| own.latencies.iter().any(|(q, c, _)| q == p && c == b))
        })
        && !own.latencies.is_empty();
    let is_usable = is_table
        && is_number(own.bound_ms)
        && own.rate.is_finite()
        && own.rate >= 0.0
        && own.rate < 1e7
        && own.memory_mb.is_finite()
        && own.batching_ms.iter().all(|b| b.is_finite() && *b >= 0.0);
    if !is_usable {
        return Err(Ending::Unusable { model });
    }
    let asked = match rules.mode {
        Mode::Conformant => own.rate.trunc(),
        Mode::Native => own.rate,
    };
    let rate = rules.inflated(asked, own.bound_ms).ok_or(Ending::Hangs { model })?;
    if rules.mode == Mode::Conformant && rules.is_served(rate, rate) {
        return Err(Ending::Crashes { model });
    }
    Ok(rate)
}

impl Boards<'_> {
    /// Places a model; what is placed stays when it fails.
    fn place(&mut self, model: usize, asked: f64) -> Result<(), Ending> {
        let mut wanted = self.rules.estimate(model, asked).ok_or(Ending::Aborts { model })?;
        let Some(first) = self.first(&mut wanted) else { return Ok(()) };
        let mut rate = asked;
        if self.do_all_fit(&wanted) && self.allocate(&wanted, asked, &mut rate) {
            return Ok(());
        }
        let empty = self.empty();
        self.readjust(&first, empty, asked, &mut rate);
        self.merge_residue(model, &mut rate);
        if self.rules.is_served(rate, asked) {
            return Ok(());
        }
        let all = self.places();
        if !self.rules.input.is_self_tuning && self.time_share(model, asked, rate, &all) {
            return Ok(());
        }
        Err(Ending::Empty { model })
    }

    /// Sorts the wanted shares, largest first, and returns the first.
    fn first(&self, wanted: &mut [Wanted]) -> Option<Wanted> {
        wanted.sort_by_key(|w| std::cmp::Reverse(w.percent));
        wanted.first().copied()
    }

    /// Whether every wanted share finds one; a whole board may serve several.
    fn do_all_fit(&self, wanted: &[Wanted]) -> bool {
        let mut given = Given::new();
        wanted.iter().all(|w| {
            let Some(place) = self.best_fit(w, &given) else { return false };
            let present = self.gpulet(place).percent;
            let left = given.get(&place).copied().unwrap_or(present);
            given.insert(place, if present == 100 { left - w.percent } else { 0 });
            true
        })
    }

    /// Gives every wanted share its place. False when one finds none or too much is left.
    fn allocate(&mut self, wanted: &[Wanted], asked: f64, rate: &mut f64) -> bool {
        let mut extra = 0.0;
        for w in wanted {
            let Some(place) = self.best_fit(w, &Given::new()) else {
                *rate += extra;
                return false;
            };
            let present = self.gpulet(place).percent;
            let mut w = *w;
            if present == 100 {
                if w.percent < 100 {
                    self.split(place.0, w.percent);
                }
            } else if present > w.percent && !self.enlarge(&mut w, present, place, rate) {
                *rate += extra;
                return false;
            }
            self.put(&w, place);
            self.charge(w.model, place);
            if self.rules.input.interference.is_some() {
                for at in 0..self.gpus[place.0].gpulets.len() {
                    if !self.adjust((place.0, at), &mut extra) {
                        *rate += extra;
                        return false;
                    }
                }
            }
            *rate = self.rules.whole(*rate - w.throughput);
        }
        *rate += extra;
        self.rules.is_served(*rate, asked)
    }

    /// Reckons a wanted share anew for a larger one. The original looks up the neighbours on the board that has
    /// the share's number.
    fn enlarge(&self, w: &mut Wanted, percent: u32, place: Place, rate: &mut f64) -> bool {
        let neighbours = match self.rules.mode {
            Mode::Conformant => self.others_by_size(w.number, percent),
            Mode::Native => self.neighbours(place),
        };
        w.percent = percent;
        if w.is_saturated {
            w.batch = self.rules.saturated_batch(w.model, percent, &neighbours).max(1);
            w.duty = self.rules.latency(w.model, w.batch, percent, &neighbours);
        } else {
            w.batch = self.rules.residue_batch(w.model, percent, rate, &neighbours);
            if w.batch == 0 {
                return false;
            }
            let latency = self.rules.latency(w.model, w.batch, percent, &neighbours);
            w.duty = self.rules.duty(w.batch, *rate).max(latency);
            w.occupancy = latency / w.duty;
        }
        w.throughput = self.rules.real(1000.0 * f64::from(w.batch) / w.duty);
        true
    }

    /// Fills empty shares, busy ones first, whatever their size.
    fn readjust(&mut self, first: &Wanted, mut places: Vec<Place>, asked: f64, rate: &mut f64) {
        let mut is_residue = false;
        while !self.rules.is_served(*rate, asked) && !places.is_empty() {
            let place = places.remove(0);
            let is_split = self.gpulet(place).percent == 100 && first.percent < 100;
            if is_split {
                self.split(place.0, first.percent);
                places.push((place.0, 1));
                self.largest_first(&mut places);
            }
            let percent = self.gpulet(place).percent;
            let neighbours = self.neighbours(place);
            let model = first.model;
            if !is_residue {
                let batch = if is_split {
                    first.batch
                } else {
                    self.rules.saturated_batch(model, percent, &neighbours).max(1)
                };
                let latency = self.rules.latency(model, batch, percent, &neighbours);
                if 1000.0 * f64::from(batch) / latency <= *rate {
                    let wanted = Wanted {
                        percent,
                        batch,
                        duty: latency,
                        occupancy: 1.0,
                        throughput: self.rules.real(1000.0 * f64::from(batch) / latency),
                        rate: *rate,
                        is_saturated: true,
                        ..*first
                    };
                    let Some(wanted) = self.within_network(wanted, place.0) else { return };
                    self.try_put(&wanted, place, rate);
                    continue;
                }
                is_residue = true;
            }
            let batch = self.rules.residue_batch(model, percent, rate, &neighbours);
            if batch == 0 {
                return;
            }
            let latency = self.rules.latency(model, batch, percent, &neighbours);
            let duty = self.rules.duty(batch, *rate);
            let wanted = Wanted {
                percent,
                batch,
                duty,
                occupancy: latency / duty,
                throughput: self.rules.real(1000.0 * f64::from(batch) / duty),
                rate: *rate,
                is_saturated: false,
                ..*first
            };
            let Some(wanted) = self.within_network(wanted, place.0) else { return };
            self.try_put(&wanted, place, rate);
        }
    }

    /// Puts work into a share unless memory or a neighbour forbids it.
    fn try_put(&mut self, wanted: &Wanted, place: Place, rate: &mut f64) {
        if !self.has_memory(wanted.model, place) {
            return;
        }
        let before = self.gpus[place.0].clone();
        self.put(wanted, place);
        self.charge(wanted.model, place);
        if self.rules.input.interference.is_some() {
            // What a neighbour loses here is charged to nobody.
            let mut lost = 0.0;
            let others = 0..self.gpus[place.0].gpulets.len();
            for at in others.filter(|at| *at != place.1) {
                if !self.adjust((place.0, at), &mut lost) {
                    self.gpus[place.0] = before;
                    return;
                }
            }
        }
        *rate = self.rules.whole(*rate - wanted.throughput);
    }

    /// Scales work down to what the board's network still takes; `None` when that is nothing.
    fn within_network(&self, wanted: Wanted, gpu: usize) -> Option<Wanted> {
        let Some(most) = self.rules.input.network else { return Some(wanted) };
        let bytes = self.rules.model(wanted.model).request_bytes;
        let left = most - self.traffic(gpu);
        if left <= 0.0 {
            return None;
        }
        if wanted.throughput * bytes <= left {
            return Some(wanted);
        }
        let throughput = left / bytes;
        let batch = (f64::from(wanted.batch) * throughput / wanted.throughput) as u32;
        (batch > 0).then_some(Wanted { batch, throughput, ..wanted })
    }

    /// Puts a model's unfilled shares and what is not served together into one, where one can carry it.
    fn merge_residue(&mut self, model: usize, rate: &mut f64) {
        let is_own = |boards: &Self, p: &Place| {
            let share = boards.gpulet(*p);
            !share.is_saturated && share.tenants.len() == 1 && share.tenants[0].model == model
        };
        let own: Vec<Place> = self.places().into_iter().filter(|p| is_own(self, p)).collect();
        let left = rate.max(0.0);
        if own.is_empty() || (own.len() == 1 && left < super::SLACK) {
            return;
        }
        let mut sum = left + own.iter().map(|p| self.gpulet(*p).tenants[0].throughput).sum::<f64>();
        let mut least: Option<(f64, u32)> = None;
        for place in &own {
            let percent = self.gpulet(*place).percent;
            let throughput = self.rules.saturated(model, percent).2;
            if least.is_none_or(|(t, _)| throughput < t) {
                least = Some((throughput, percent));
            }
        }
        let Some((throughput, percent)) = least else { return };
        if sum > throughput {
            return;
        }
        let before = self.gpus.clone();
        own.iter().for_each(|p| self.clear(*p));
        let is_free = |p: &Place| self.gpulet(*p).percent == percent && self.gpulet(*p).tenants.is_empty();
        let place = self.places().into_iter().find(is_free);
        let merged = place.and_then(|place| {
            let neighbours = self.neighbours(place);
            let batch = self.rules.residue_batch(model, percent, &mut sum, &neighbours);
            let latency = self.rules.latency(model, batch.max(1), percent, &neighbours);
            let duty = self.rules.duty(batch, sum);
            let wanted = Wanted {
                number: 0,
                model,
                percent,
                batch,
                duty,
                occupancy: latency / duty,
                throughput: sum,
                rate: sum,
                is_saturated: false,
            };
            (batch > 0).then_some((wanted, place))
        });
        let Some((wanted, place)) = merged else {
            self.gpus = before;
            return;
        };
        self.put(&wanted, place);
        if self.rules.mode == Mode::Native {
            self.charge(model, place);
        }
        self.join_empty();
        *rate = 0.0;
    }

    /// Puts what is left beside other models. False when not everything finds time.
    fn time_share(&mut self, model: usize, asked: f64, mut rate: f64, among: &[Place]) -> bool {
        while !self.rules.is_served(rate, asked) {
            let mut candidates: Vec<Place> = among
                .iter()
                .copied()
                .filter(|p| self.gpus.get(p.0).is_some_and(|g| p.1 < g.gpulets.len()))
                .filter(|p| {
                    let share = self.gpulet(*p);
                    share.occupancy < 1.0
                        && share.tenants.len() < self.rules.input.most_models
                        && self.has_memory(model, *p)
                })
                .collect();
            candidates.sort_by(|a, b| self.gpulet(*b).occupancy.total_cmp(&self.gpulet(*a).occupancy));
            let Some(served) = candidates.into_iter().find_map(|p| self.share_time(model, rate, p)) else {
                return false;
            };
            rate = self.rules.whole(rate - served);
        }
        true
    }

    /// Whether a model gets nearly what was asked.
    fn has_enough(&self, model: usize, asked: f64) -> bool {
        let tenants = self.gpus.iter().flat_map(|g| &g.gpulets).flat_map(|g| &g.tenants);
        let served: f64 = tenants.filter(|t| t.model == model).map(|t| t.throughput).sum();
        served >= ENOUGH * asked
    }

    /// Places a model once more, where it was and where nothing is.
    fn retry(&mut self, model: usize, asked: f64) -> bool {
        let is_on = |boards: &Self, p: &Place| boards.gpulet(*p).tenants.iter().any(|t| t.model == model);
        let was_on: Vec<Place> = self.places().into_iter().filter(|p| is_on(self, p)).collect();
        for &place in &was_on {
            if self.gpulet(place).tenants.len() == 1 {
                self.clear(place);
            } else {
                self.gpus[place.0].memory_mb -= self.rules.model(model).memory_mb;
                self.gpus[place.0].gpulets[place.1].tenants.retain(|t| t.model != model);
            }
        }
        let Some(mut wanted) = self.rules.estimate(model, asked) else { return false };
        let Some(first) = self.first(&mut wanted) else { return false };
        let mut rate = asked;
        let empty = self.empty();
        self.readjust(&first, empty, asked, &mut rate);
        self.merge_residue(model, &mut rate);
        let is_done = self.rules.is_served(rate, asked)
            || (!self.rules.input.is_self_tuning && self.time_share(model, asked, rate, &was_on));
        is_done && self.has_enough(model, asked)
    }
}
