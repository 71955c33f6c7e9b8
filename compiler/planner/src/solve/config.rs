//! A cover made concrete: which rate each instance serves, and what the set costs.

use crate::problem::{Assignment, Problem, RATE_PARTS, ServiceProblem, Share, Weights};
use ent_plan::plan::LatencyRule;
use std::collections::BTreeMap;

/// Mean dynamic power (W) of an instance: service, point, rate → watts. Exact, unlike `energy × rate`.
pub type MeanPower<'a> = dyn Fn(usize, usize, f64) -> f64 + 'a;

/// One service's instances, as a column of the master.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// The service.
    pub(super) service: usize,
    /// Points, repeated for several instances.
    pub(super) points: Vec<usize>,
    /// Rate of each instance (req/s).
    pub(super) rates: Vec<f64>,
    /// Cells taken and how many places of each.
    pub(super) cells: Vec<(usize, u32)>,
    /// Its share of the objective.
    pub(super) cost: f64,
    /// Its share of each limit.
    pub(super) limits: Vec<f64>,
}

/// Whether mean power matters for the objective or a limit.
pub(super) fn uses_mean(problem: &Problem) -> bool {
    let any = |w: &Weights| w.classes.iter().any(|c| c.mean > 0.0);
    any(&problem.objective) || problem.limits.iter().any(|l| any(&l.weights))
}

/// Whether limits ask more than how many boards there are.
pub(super) fn limits_points(problem: &Problem) -> bool {
    let any = |w: &Weights| w.classes.iter().any(|c| c.dynamic != 0.0 || c.mean != 0.0);
    problem.limits.iter().any(|l| any(&l.weights))
}

/// The rate of each instance of a cover. When energy matters the cheapest energy is filled first;
/// otherwise, and when that would leave an instance idle, in proportion to admissible rates.
pub(super) fn split(problem: &Problem, service: usize, points: &[usize]) -> Vec<f64> {
    let s = &problem.services[service];
    let total: f64 = points.iter().map(|&p| s.points[p].admissible).sum();
    let proportional =
        || points.iter().map(|&p| s.rate * (s.points[p].admissible / total).min(1.0)).collect();
    if !uses_mean(problem) || points.len() == 1 {
        return proportional();
    }
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| s.points[points[a]].energy.total_cmp(&s.points[points[b]].energy).then(a.cmp(&b)));
    // Under queueing each rate costs an evaluation of the queue: rates on a grid are evaluated once.
    if problem.rule == LatencyRule::Queueing
        && let Some(rates) = on_grid(s, points, &order)
    {
        return rates;
    }
    let mut left = s.rate;
    let mut rates = vec![0.0; points.len()];
    for index in order {
        let rate = s.points[points[index]].admissible.min(left);
        rates[index] = rate;
        left -= rate;
    }
    if rates.iter().any(|&r| r <= 0.0) { proportional() } else { rates }
}

/// Parts of a service's rate that a grid distinguishes.
const GRID: f64 = RATE_PARTS as f64;

/// Rates that are multiples of a part of the service's, the cheapest energy filled first; `None`
/// when they cannot carry it.
fn on_grid(service: &ServiceProblem, points: &[usize], order: &[usize]) -> Option<Vec<f64>> {
    let mut left = GRID;
    let mut rates = vec![0.0; points.len()];
    for &index in order {
        let most = (GRID * service.points[points[index]].admissible / service.rate).floor();
        let parts = most.min(left);
        if parts <= 0.0 {
            return None;
        }
        rates[index] = service.rate * (parts / GRID);
        left -= parts;
    }
    (left <= 0.0).then_some(rates)
}

impl Config {
    /// The column of a cover, with exact mean powers.
    pub(super) fn new(problem: &Problem, service: usize, points: &[usize], mean: &MeanPower<'_>) -> Self {
        Self::shared(problem, service, points, split(problem, service, points), mean)
    }

    /// The column of a cover with least mean powers: by no other sharing of the rate do they add up to less.
    pub(super) fn at_least(problem: &Problem, service: usize, points: &[usize]) -> Self {
        let s = &problem.services[service];
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| s.points[points[a]].energy.total_cmp(&s.points[points[b]].energy));
        let mut left = s.rate;
        let mut filled = vec![0.0; points.len()];
        for index in order {
            filled[index] = s.points[points[index]].admissible.min(left);
            left -= filled[index];
        }
        let linear = |_: usize, p: usize, rate: f64| s.points[p].energy * rate;
        let rates = split(problem, service, points);
        Self { rates, ..Self::shared(problem, service, points, filled, &linear) }
    }

    /// The column of a cover that shares the rate so.
    pub(super) fn shared(
        problem: &Problem,
        service: usize,
        points: &[usize],
        rates: Vec<f64>,
        mean: &MeanPower<'_>,
    ) -> Self {
        let means: Vec<f64> = if uses_mean(problem) {
            points.iter().zip(&rates).map(|(&p, &r)| mean(service, p, r)).collect()
        } else {
            vec![0.0; points.len()]
        };
        let s = &problem.services[service];
        let value = |weights: &Weights| -> f64 {
            points
                .iter()
                .zip(&means)
                .map(|(&p, &m)| {
                    let w = weights.classes[problem.cells[s.points[p].cell].class];
                    w.dynamic * s.points[p].dynamic + w.mean * m
                })
                .sum()
        };
        let mut cells: BTreeMap<usize, u32> = BTreeMap::new();
        for &p in points {
            *cells.entry(s.points[p].cell).or_default() += 1;
        }
        let cost = value(&problem.objective);
        let limits = problem.limits.iter().map(|l| value(&l.weights)).collect();
        Self { service, points: points.to_vec(), rates, cells: cells.into_iter().collect(), cost, limits }
    }

    /// Its points in order of index: what makes two covers the same.
    pub(super) fn sorted_points(&self) -> Vec<usize> {
        let mut points = self.points.clone();
        points.sort_unstable();
        points
    }

    /// What makes two columns of a service the same: points, in order, and the part of the rate of each.
    pub(super) fn key(&self) -> Vec<usize> {
        let total: f64 = self.rates.iter().sum();
        let part = |rate: f64| (rate / total * 1e6).round().max(0.0) as usize;
        let mut both: Vec<(usize, usize)> =
            self.points.iter().zip(&self.rates).map(|(&p, &r)| (p, part(r))).collect();
        both.sort_unstable();
        both.into_iter().flat_map(|(p, r)| [p, r]).collect()
    }

    /// The column's shares, for an assignment.
    pub(super) fn shares(&self) -> Vec<Share> {
        let mut shares: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (&point, &rate) in self.points.iter().zip(&self.rates) {
            shares.entry(point).or_default().push(rate);
        }
        shares.into_iter().map(|(point, rates)| Share { point, rates }).collect()
    }
}

/// The objective of an assignment with exact mean powers.
#[must_use]
pub(super) fn exact_value(
    problem: &Problem,
    weights: &Weights,
    assignment: &Assignment,
    mean: &MeanPower<'_>,
) -> f64 {
    let mut value = weights.constant;
    for &(pattern, count) in &assignment.boards {
        let p = &problem.patterns[pattern];
        let w = weights.classes[p.class];
        value += f64::from(count) * (w.board + w.base * p.base);
    }
    for (index, shares) in assignment.shares.iter().enumerate() {
        let s = &problem.services[index];
        for share in shares {
            let point = &s.points[share.point];
            let w = weights.classes[problem.cells[point.cell].class];
            for &rate in &share.rates {
                value += w.dynamic * point.dynamic;
                if w.mean > 0.0 {
                    value += w.mean * mean(index, share.point, rate);
                }
            }
        }
    }
    value
}

/// The points of shares, one entry per instance, in order of index.
pub(super) fn points_of(shares: &[Share]) -> Vec<usize> {
    let mut points: Vec<usize> =
        shares.iter().flat_map(|s| std::iter::repeat_n(s.point, s.rates.len())).collect();
    points.sort_unstable();
    points
}
