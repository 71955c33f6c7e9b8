//! Prices of the master → covers that can lower its value.
//!
//! Where mean power is linear in the rate, covers are searched for by [`covers`]. Under queueing it is not,
//! and only an evaluation of a queue tells it: there rates are shared in parts ([`parts`]), every point has
//! a lower bound on its power at each, and the evaluation is made when a cover that looks cheap enough
//! wants to know. What it tells tightens every cover with that point at that rate.

use super::super::config::{Config, limits_points, points_of, uses_mean};
use super::super::covers::{Item, Search, covers};
use super::super::master::{Prices, Relaxed};
use super::super::parts::{self, Serving};
use super::{ExactSearch, FEW_COVERS, SolverFault};
use crate::problem::{Problem, RATE_PARTS, Share};
use ent_plan::plan::LatencyRule;
use std::collections::{BTreeMap, BTreeSet};

/// Covers priced into the master per service and round.
const COVERS_PER_ROUND: usize = 8;
/// Search steps per service and round; beyond this the service is counted instead.
const PRICING_STEPS: usize = 400_000;
/// Most covers looked through for a new one.
const MOST_PRICED: usize = 64;

/// Share of the time that is kept for the first integer program.
const FIRST_PLAN_SHARE: f64 = 0.15;

/// What the mean powers of a search are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::solve) enum Energies {
    /// Each point's `energy` times its rate: a beaten point is never better.
    Linear,
    /// At least that: every point may be the best.
    AtLeast,
}

/// What is known of the mean power of points at each part of their service's rate.
pub(super) struct Powers {
    /// By service: whether its covers share the rate in parts.
    in_parts: Vec<bool>,
    /// By service, at `point * RATE_PARTS + parts - 1`: watts, and whether they are exact. Empty where
    /// rates are not shared in parts.
    watts: Vec<Vec<(f64, bool)>>,
    /// Whether covers in the same cells can differ in what limits say of them.
    is_limited: bool,
}

/// Parts of the rate that an instance can serve.
fn most_parts(admissible: f64, rate: f64) -> usize {
    ((RATE_PARTS as f64 * admissible / rate).floor().max(0.0) as usize).min(RATE_PARTS)
}

impl Powers {
    pub(super) fn new(problem: &Problem, energies: Energies, counted: &[bool]) -> Self {
        let in_parts: Vec<bool> = problem
            .services
            .iter()
            .zip(counted)
            .map(|(s, &is_counted)| {
                let most = s.points.iter().map(|p| most_parts(p.admissible, s.rate)).max().unwrap_or(0);
                let can = most * (s.replicas.1 as usize).min(RATE_PARTS) >= RATE_PARTS;
                energies == Energies::AtLeast && !is_counted && can && s.replicas.0 as usize <= RATE_PARTS
            })
            .collect();
        let watts = problem
            .services
            .iter()
            .zip(&in_parts)
            .map(|(s, &in_parts)| {
                let points = if in_parts { s.points.as_slice() } else { &[] };
                let at = |part: usize| s.rate * part as f64 / RATE_PARTS as f64;
                points
                    .iter()
                    .flat_map(|p| (1..=RATE_PARTS).map(move |part| (p.floor(at(part), s.rate), false)))
                    .collect()
            })
            .collect();
        Self { in_parts, watts, is_limited: limits_points(problem) }
    }
}

/// A cover that may lower the master's value.
struct Candidate {
    points: Vec<usize>,
    /// How the rate is shared; empty where energy decides.
    servings: Vec<Serving>,
    price: f64,
}

impl Candidate {
    fn is_exact(&self) -> bool {
        self.servings.iter().all(|s| s.is_exact)
    }
}

/// What a search found.
struct Sought {
    /// Cheapest first.
    candidates: Vec<Candidate>,
    /// Every cover cheaper than this is among them, or beaten by one with the same cells.
    complete_below: f64,
}

/// What pricing one service found.
struct Priced {
    /// New covers.
    configs: Vec<Config>,
    /// No cover found has a lower reduced cost.
    least: f64,
    /// No cover left unseen has a lower reduced cost.
    beyond: f64,
}

impl<'a> ExactSearch<'a, '_, '_> {
    /// The column of a service's shares.
    pub(super) fn config_of(&self, service: usize, shares: &[Share]) -> Config {
        if self.energies == Energies::Linear {
            return self.filled(service, &points_of(shares));
        }
        let mut both: Vec<(usize, f64)> =
            shares.iter().flat_map(|s| s.rates.iter().map(|&rate| (s.point, rate))).collect();
        both.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let (points, rates): (Vec<usize>, Vec<f64>) = both.into_iter().unzip();
        Config::shared(self.problem, service, &points, rates, self.mean)
    }

    /// The column of a cover that is filled in order of energy.
    fn filled(&self, service: usize, points: &[usize]) -> Config {
        let is_bound = self.energies == Energies::Linear
            && self.problem.rule == LatencyRule::Queueing
            && uses_mean(self.problem);
        if is_bound {
            Config::at_least(self.problem, service, points)
        } else {
            Config::new(self.problem, service, points, self.mean)
        }
    }

    /// The column of a candidate.
    fn config(&self, service: usize, candidate: &Candidate) -> Config {
        if candidate.servings.is_empty() {
            return self.filled(service, &candidate.points);
        }
        let rate = self.problem.services[service].rate;
        let rates = candidate.servings.iter().map(|s| rate * s.parts as f64 / RATE_PARTS as f64).collect();
        Config::shared(self.problem, service, &candidate.points, rates, self.mean)
    }

    /// Whether to stop evaluating queues for the sake of the bound: the first plan wants a part of the time.
    fn is_pricing_over(&self) -> bool {
        let is_early = self.energies == Energies::AtLeast && !self.has_first_plan;
        let reserve = match self.control.time_limit {
            Some(limit) if is_early => FIRST_PLAN_SHARE * limit,
            _ => 0.0,
        };
        self.control.is_over() || self.control.seconds_left() < reserve
    }

    /// What makes two covers the same.
    pub(super) fn key(&self, config: &Config) -> Vec<usize> {
        if self.energies == Energies::Linear { config.sorted_points() } else { config.key() }
    }

    /// Evaluates what a candidate's price takes for granted, until it is exact or above `most`. Whether it
    /// is exact and below.
    fn ascertain(&mut self, service: usize, candidate: &mut Candidate, prices: &Prices, most: f64) -> bool {
        let rate = self.problem.services[service].rate;
        for index in 0..candidate.servings.len() {
            if candidate.price >= most {
                return false;
            }
            let serving = candidate.servings[index];
            if serving.is_exact {
                continue;
            }
            let watts = (self.mean)(service, serving.point, rate * serving.parts as f64 / RATE_PARTS as f64);
            self.powers.watts[service][serving.point * RATE_PARTS + serving.parts - 1] = (watts, true);
            let exact = self.serving(service, serving.point, serving.parts, prices, &self.weights(prices));
            candidate.price += exact.price - serving.price;
            candidate.servings[index] = exact;
        }
        candidate.price < most
    }

    /// By class, the weights of full and of mean dynamic power at these prices.
    fn weights(&self, prices: &Prices) -> Vec<(f64, f64)> {
        let problem = self.problem;
        let rows = || {
            std::iter::once((&problem.objective, 1.0))
                .chain(problem.limits.iter().zip(&prices.limits).map(|(l, &p)| (&l.weights, p)))
        };
        (0..problem.classes.len())
            .map(|class| {
                let of = |pick: fn(&crate::problem::ClassWeights) -> f64| -> f64 {
                    rows().map(|(weights, price)| price * pick(&weights.classes[class])).sum()
                };
                (of(|w| w.dynamic), of(|w| w.mean))
            })
            .collect()
    }

    /// An instance of a point at some parts of the rate, as far as its power is known.
    fn serving(
        &self,
        service: usize,
        index: usize,
        parts: usize,
        prices: &Prices,
        weights: &[(f64, f64)],
    ) -> Serving {
        let point = &self.problem.services[service].points[index];
        let (watts, is_exact) = self.powers.watts[service][index * RATE_PARTS + parts - 1];
        let (dynamic, mean) = weights[self.problem.cells[point.cell].class];
        let price = prices.cells[point.cell] + dynamic * point.dynamic + mean * watts;
        Serving { point: index, cell: point.cell, parts, price: price.max(0.0), is_exact }
    }

    /// All servings of a service; of those in a cell with the same parts the cheapest, unless limits
    /// distinguish them.
    fn servings(&self, service: usize, prices: &Prices) -> Vec<Serving> {
        let weights = self.weights(prices);
        let s = &self.problem.services[service];
        let mut all: Vec<Serving> = Vec::new();
        let mut cheapest: BTreeMap<usize, [Option<Serving>; RATE_PARTS]> = BTreeMap::new();
        for (index, point) in s.points.iter().enumerate() {
            let own = cheapest.entry(point.cell).or_insert([None; RATE_PARTS]);
            for parts in 1..=most_parts(point.admissible, s.rate) {
                let serving = self.serving(service, index, parts, prices, &weights);
                if self.powers.is_limited {
                    all.push(serving);
                } else if own[parts - 1].is_none_or(|best| serving.price < best.price) {
                    own[parts - 1] = Some(serving);
                }
            }
        }
        all.extend(cheapest.into_values().flatten().flatten());
        all
    }

    /// Covers with reduced cost below `room`, at most `most` of them, and up to which reduced cost they
    /// are complete. The columns of the master are among them.
    pub(super) fn enumerate(&mut self, relaxed: &Relaxed, room: f64, most: usize) -> (Vec<Config>, f64) {
        let prices = &relaxed.prices;
        let mut found: Vec<(f64, usize, Candidate)> = Vec::new();
        let mut complete = room;
        let mut open: BTreeSet<usize> =
            (0..self.problem.services.len()).filter(|&service| !self.counted[service]).collect();
        while !open.is_empty() {
            for &service in &open {
                let worth = prices.services[service];
                let own = self.search(service, prices, room, most);
                complete = complete.min(own.complete_below - worth);
                found.extend(own.candidates.into_iter().map(|c| (c.price - worth, service, c)));
                if complete < room && most == FEW_COVERS {
                    return (Vec::new(), complete);
                }
            }
            found.sort_by(|a, b| {
                a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then_with(|| a.2.points.cmp(&b.2.points))
            });
            if found.len() > most {
                complete = complete.min(found[most].0);
                found.truncate(most);
                if most == FEW_COVERS {
                    return (Vec::new(), complete);
                }
            }
            open.clear();
            let mut done = found.len();
            for (at, (reduced, service, candidate)) in found.iter_mut().enumerate() {
                if candidate.is_exact() {
                    continue;
                }
                // Evaluating takes long: the cheapest come first, and the bound knows where it ended.
                if self.control.is_over() {
                    complete = complete.min(*reduced);
                    done = at;
                    break;
                }
                open.insert(*service);
                self.ascertain(*service, candidate, prices, prices.services[*service] + room);
            }
            if done < found.len() {
                found.truncate(done);
                found.retain(|(.., candidate)| candidate.is_exact());
                break;
            }
            // What turned out dearer may leave the place to another.
            found.retain(|(_, service, _)| !open.contains(service));
        }
        let mut columns: Vec<Config> = Vec::new();
        for (reduced, service, candidate) in &found {
            if self.control.is_over() && candidate.servings.is_empty() {
                complete = complete.min(*reduced);
                break;
            }
            columns.push(self.config(*service, candidate));
        }
        let mut present: BTreeSet<(usize, Vec<usize>)> =
            columns.iter().map(|c| (c.service, c.sorted_points())).collect();
        // Columns that the incumbent or an earlier relaxation used keep the start feasible.
        for column in &self.columns {
            let kept = self
                .incumbent
                .as_ref()
                .is_some_and(|(_, a)| points_of(&a.shares[column.service]) == column.sorted_points());
            if kept && present.insert((column.service, column.sorted_points())) {
                columns.push(column.clone());
            }
        }
        (columns, complete)
    }

    /// Column generation at the master's present bounds; `None` when it cannot serve everything.
    pub(super) fn relax(&mut self) -> Result<Option<Relaxed>, SolverFault> {
        loop {
            let Some((relaxed, unserved)) = self.master.solve()? else { return Ok(None) };
            let mut added = 0;
            let mut bound_loss = 0.0;
            let mut unseen = 0.0;
            for service in 0..self.problem.services.len() {
                if self.counted[service] {
                    continue;
                }
                let priced = self.price(service, &relaxed.prices, COVERS_PER_ROUND);
                // What is proven if the search ends here: no cover lowers the value by more than this.
                bound_loss += priced.beyond.min(priced.least).min(0.0);
                unseen += priced.beyond.min(0.0);
                for config in priced.configs {
                    self.master.add(&config)?;
                    self.columns.push(config);
                    added += 1;
                }
            }
            if added > 0 && !self.is_pricing_over() {
                continue;
            }
            if added == 0 {
                bound_loss = unseen;
            }
            // With part of a service left unserved at a penalty, the value still bounds every plan; it says
            // nothing more only while the penalty is too low to matter.
            if unserved > 1e-7 && relaxed.value + bound_loss < self.upper() {
                if self.master.raise_penalty()? {
                    continue;
                }
                return Ok(None);
            }
            // Unpriced covers (search limits, deadline) lower what is proven by their reduced cost.
            return Ok(Some(Relaxed { value: relaxed.value + bound_loss, ..relaxed }));
        }
    }

    /// Priced items of a service.
    fn items(&self, service: usize, prices: &Prices) -> Vec<Item> {
        let problem = self.problem;
        let s = &problem.services[service];
        s.points
            .iter()
            .enumerate()
            .filter(|(_, point)| self.energies == Energies::AtLeast || !point.is_beaten)
            .map(|(index, point)| {
                let class = problem.cells[point.cell].class;
                let mut fixed = prices.cells[point.cell];
                let mut variable = 0.0;
                let rows = std::iter::once((&problem.objective, 1.0))
                    .chain(problem.limits.iter().zip(&prices.limits).map(|(l, &p)| (&l.weights, p)));
                for (weights, price) in rows {
                    let w = weights.classes[class];
                    fixed += price * w.dynamic * point.dynamic;
                    variable += price * w.mean * point.energy * s.rate;
                }
                Item {
                    point: index,
                    cell: point.cell,
                    fixed: fixed.max(0.0),
                    variable: variable.max(0.0),
                    capacity: (point.admissible / s.rate).min(1.0),
                }
            })
            .collect()
    }

    fn search(&self, service: usize, prices: &Prices, cutoff: f64, keep: usize) -> Sought {
        let s = &self.problem.services[service];
        let search = Search {
            replicas: s.replicas,
            cutoff: prices.services[service] + cutoff,
            keep,
            steps: PRICING_STEPS,
            one_per_cells: !self.powers.is_limited,
        };
        if self.powers.in_parts[service] {
            let found = parts::covers(self.servings(service, prices), search);
            let candidate = |c: parts::Cover| Candidate {
                points: c.servings.iter().map(|s| s.point).collect(),
                servings: c.servings,
                price: c.price,
            };
            return Sought {
                candidates: found.covers.into_iter().map(candidate).collect(),
                complete_below: found.complete_below,
            };
        }
        let found = covers(&self.items(service, prices), search);
        let candidate = |c: super::super::covers::Cover| Candidate {
            points: c.points,
            servings: Vec::new(),
            price: c.price,
        };
        Sought {
            candidates: found.covers.into_iter().map(candidate).collect(),
            complete_below: found.complete_below,
        }
    }

    /// New covers with negative reduced cost, and how low that of any cover can be.
    fn price(&mut self, service: usize, prices: &Prices, keep: usize) -> Priced {
        let worth = prices.services[service];
        // A little below zero, so that columns at rest do not come again.
        let slack = 1e-9 * worth.abs().max(1e-6);
        let mut keep = keep;
        loop {
            let found = self.search(service, prices, -slack, keep);
            let n_found = found.candidates.len();
            let least = found.candidates.first().map_or(0.0, |c| c.price - worth);
            let mut configs = Vec::new();
            let mut has_evaluated = false;
            for mut candidate in found.candidates {
                let is_costly = !configs.is_empty() || has_evaluated || !candidate.is_exact();
                if is_costly && self.is_pricing_over() {
                    break;
                }
                if !candidate.is_exact() {
                    has_evaluated = true;
                    if !self.ascertain(service, &mut candidate, prices, worth - slack) {
                        continue;
                    }
                }
                if candidate.servings.is_empty() && self.energies == Energies::Linear {
                    let mut key = candidate.points.clone();
                    key.sort_unstable();
                    if self.known.insert((service, key)) {
                        configs.push(self.config(service, &candidate));
                    }
                    continue;
                }
                let config = self.config(service, &candidate);
                if self.known.insert((service, self.key(&config))) {
                    configs.push(config);
                }
            }
            let beyond = found.complete_below - worth;
            if configs.is_empty() && !self.is_pricing_over() {
                if has_evaluated {
                    // All of them are dearer than they looked: others may be left.
                    continue;
                }
                if n_found >= keep && keep < MOST_PRICED {
                    // Every cover found is a column already, at a price that the solver cannot tell from its
                    // worth: look further.
                    keep *= 4;
                    continue;
                }
            }
            return Priced { configs, least, beyond: if beyond < -slack { beyond } else { 0.0 } };
        }
    }
}
