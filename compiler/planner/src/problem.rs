//! The integer program, without a solver: services, operating points, cells, patterns, weights.
//!
//! Boards of one class are interchangeable, so they are counted, never named. A *cell* is one place
//! an instance can take: a class of boards, a MIG profile (or the whole board) and a clock. A *pattern*
//! is a board: a clock and how many places of each profile it offers. A *point* is an operating point
//! of one service in one cell. A plan chooses how many boards of each pattern, how many instances of
//! each point, and what rate each serves, so that
//!
//! - instances in a cell ≤ places the chosen patterns offer there,
//! - every service's rate is served, no instance above its admissible rate,
//! - boards of a class ≤ boards there are, and every limit holds.
//!
//! Its size depends on services × profiles × clocks, not on the number of boards. Nothing here knows
//! how it is solved.

use ent_lang::program::Spread;
use ent_performance::PointKey;
use ent_plan::diagnostic::Span;
use ent_plan::plan::{LatencyRule, Metric, Sharing};
use ent_plan::units::Megahertz;
use std::collections::{BTreeMap, BTreeSet};

/// What a metric costs, by cause. Every metric of a plan is
/// `constant + Σ boards (board + base·B) + Σ instances dynamic·d + Σ rates mean·e·q`, with the class's
/// own factors.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// Independent of the plan: idle power of all boards, for instance.
    pub constant: f64,
    /// Factors by class.
    pub classes: Vec<ClassWeights>,
}

/// One class's factors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClassWeights {
    /// Per used board.
    pub board: f64,
    /// Per watt of base power of a used board.
    pub base: f64,
    /// Per watt of full dynamic power of an instance.
    pub dynamic: f64,
    /// Per watt of mean dynamic power.
    pub mean: f64,
}

/// A class of interchangeable boards.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The nodes whose boards these are (indices into the program's nodes), in order.
    pub nodes: Vec<usize>,
    /// Index into the program's boards.
    pub board: usize,
    /// How many boards there are.
    pub count: u32,
    /// How its boards are shared.
    pub sharing: Sharing,
    /// Where the hardware is declared.
    pub span: Span,
}

/// What part of a board an instance takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// A MIG profile: index into the board's profiles.
    Profile(usize),
    /// The whole board.
    Whole,
}

/// A place an instance can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The class.
    pub class: usize,
    /// Only this service may use it (index into [`Problem::services`]).
    pub isolated: Option<usize>,
    /// Which part of the board.
    pub slot: Slot,
    /// The board's clock.
    pub clock: Megahertz,
}

/// A way to use a board.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The class.
    pub class: usize,
    /// Only this service may use it.
    pub isolated: Option<usize>,
    /// Its clock.
    pub clock: Megahertz,
    /// Base power (W) at that clock; 0 when unknown (then no weight needs it).
    pub base: f64,
    /// Places it offers: index into [`Problem::cells`] and how many.
    pub places: Vec<(usize, u32)>,
}

/// An operating point of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Index into [`Problem::cells`].
    pub cell: usize,
    /// What to ask the performance model for.
    pub key: PointKey,
    /// Highest rate at which the promise holds (req/s).
    pub admissible: f64,
    /// Dynamic power always busy with full batches (W); 0 when unknown.
    pub dynamic: f64,
    /// Least dynamic energy per request (J): with full batches. Exact under the execution rule, a lower
    /// bound under queueing, for any rate up to that of the service.
    pub energy: f64,
    /// Under queueing, the same for rates up to each [`RATE_PARTS`]th of the service's; empty where
    /// `energy` is exact.
    pub floors: Vec<f64>,
    /// Another point of its cell admits no less and needs no more, by full dynamic power and by `energy`.
    /// Where `energy` is a bound, a beaten point can still be the best choice of its cell.
    pub is_beaten: bool,
}

/// Parts of a service's rate at which a point's least energy is known, and that replicas share out.
pub const RATE_PARTS: usize = 12;

impl Point {
    /// Least mean dynamic power (W) at `rate`, for a service of `whole` requests per second.
    #[must_use]
    pub fn floor(&self, rate: f64, whole: f64) -> f64 {
        let part = (rate / whole * RATE_PARTS as f64 - 1e-9).ceil().max(1.0) as usize;
        self.floors.get(part - 1).copied().unwrap_or(self.energy) * rate
    }
}

/// A service to be planned.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceProblem {
    /// Index into the program's services.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Rate to serve (req/s).
    pub rate: f64,
    /// Least and most instances.
    pub replicas: (u32, u32),
    /// Replicas kept apart.
    pub spread: Option<Spread>,
    /// Its usable operating points. Those that are worse for certain are removed; where that is not
    /// certain, they are marked.
    pub points: Vec<Point>,
}

/// An upper limit on a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRow {
    /// The metric.
    pub metric: Metric,
    /// What it costs.
    pub weights: Weights,
    /// Not above this, in the weights' unit.
    pub at_most: f64,
    /// Where it is written.
    pub span: Span,
}

/// The integer program.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Services.
    pub services: Vec<ServiceProblem>,
    /// Classes of boards.
    pub classes: Vec<Class>,
    /// Places.
    pub cells: Vec<Cell>,
    /// Ways to use a board, dominated ones removed.
    pub patterns: Vec<Pattern>,
    /// What is minimised.
    pub metric: Metric,
    /// Its weights: W for power and energy (mean), g/h for carbon, boards, USD/h.
    pub objective: Weights,
    /// Limits.
    pub limits: Vec<LimitRow>,
    /// Which latency promises are about.
    pub rule: LatencyRule,
}

/// Instances of a service in some cells that need a board each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Index into the problem's services.
    pub service: usize,
    /// The cells.
    pub cells: BTreeSet<usize>,
    /// The boards: patterns; when empty, `most` counts.
    pub patterns: BTreeSet<usize>,
    /// Most instances when no patterns are named.
    pub most: u32,
}

/// Instances of one point that together serve part of a service's rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Index into the service's points.
    pub point: usize,
    /// Rate of each instance (req/s); one entry per instance.
    pub rates: Vec<f64>,
}

/// A value for every decision: which boards, which instances, which rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// Boards per pattern: index into [`Problem::patterns`] and how many (> 0).
    pub boards: Vec<(usize, u32)>,
    /// By service.
    pub shares: Vec<Vec<Share>>,
}

/// How a [`Problem`] was solved.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// The best assignment found; `None` when there is none.
    pub incumbent: Option<Assignment>,
    /// No assignment is better than this, in the objective's unit; claimed by the solver.
    pub bound: Option<f64>,
    /// Proven to have no assignment.
    pub is_infeasible: bool,
    /// The limit that stopped the search.
    pub stopped_by: Option<&'static str>,
}

/// One thing an assignment gets wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

/// Relative tolerance of rates and limits.
const TOLERANCE: f64 = 1e-9;

impl Problem {
    /// The value of weights for an assignment, with the points' own energies (full batches).
    #[must_use]
    pub fn value(&self, weights: &Weights, assignment: &Assignment) -> f64 {
        let mut value = weights.constant;
        for &(pattern, count) in &assignment.boards {
            let pattern = &self.patterns[pattern];
            let w = weights.classes[pattern.class];
            value += f64::from(count) * (w.board + w.base * pattern.base);
        }
        for (service, shares) in self.services.iter().zip(&assignment.shares) {
            for share in shares {
                let point = &service.points[share.point];
                let w = weights.classes[self.cells[point.cell].class];
                for rate in &share.rates {
                    value += w.dynamic * point.dynamic + w.mean * point.energy * rate;
                }
            }
        }
        value
    }

    /// The patterns of which at least one board is used, whatever the plan: those of each service that
    /// shares its boards with no other, and those of all others.
    #[must_use]
    pub fn at_least_one(&self) -> Vec<Vec<usize>> {
        let of = |owner: Option<usize>| -> Vec<usize> {
            (0..self.patterns.len()).filter(|&p| self.patterns[p].isolated == owner).collect()
        };
        let owners: BTreeSet<usize> = self.patterns.iter().filter_map(|p| p.isolated).collect();
        let is_shared = |s: &ServiceProblem| s.points.iter().all(|p| self.cells[p.cell].isolated.is_none());
        let mut groups: Vec<Vec<usize>> = owners.into_iter().map(|owner| of(Some(owner))).collect();
        if self.services.iter().any(is_shared) && !groups.is_empty() {
            groups.push(of(None));
        }
        groups
    }

    /// What keeping replicas apart asks of counts: no more instances in these cells than boards of these
    /// patterns (or than `most`).
    #[must_use]
    pub fn apart(&self) -> Vec<Apart> {
        let mut groups = Vec::new();
        for (index, service) in self.services.iter().enumerate() {
            let Some(spread) = service.spread else { continue };
            let cells: BTreeSet<usize> = service.points.iter().map(|p| p.cell).collect();
            let mut clocks: BTreeMap<(usize, Option<usize>, Megahertz), BTreeSet<usize>> = BTreeMap::new();
            let mut classes: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for &cell in &cells {
                let own = self.cells[cell];
                clocks.entry((own.class, own.isolated, own.clock)).or_default().insert(cell);
                classes.entry(own.class).or_default().insert(cell);
                let offers = |p: &Pattern| p.places.iter().any(|(c, _)| *c == cell);
                let patterns = (0..self.patterns.len()).filter(|&p| offers(&self.patterns[p])).collect();
                groups.push(Apart { service: index, cells: BTreeSet::from([cell]), patterns, most: 0 });
            }
            for ((class, isolated, clock), cells) in clocks {
                let here = |p: &Pattern| p.class == class && p.isolated == isolated && p.clock == clock;
                let patterns = (0..self.patterns.len()).filter(|&p| here(&self.patterns[p])).collect();
                groups.push(Apart { service: index, cells, patterns, most: 0 });
            }
            if spread == Spread::Node {
                for (class, cells) in classes {
                    let most = u32::try_from(self.classes[class].nodes.len()).unwrap_or(u32::MAX);
                    groups.push(Apart { service: index, cells, patterns: BTreeSet::new(), most });
                }
            }
        }
        groups
    }

    /// Everything that is wrong with an assignment; empty for a feasible one.
    #[must_use]
    pub fn violations(&self, assignment: &Assignment) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let mut free: Vec<i64> = vec![0; self.cells.len()];
        let mut used: Vec<u64> = vec![0; self.classes.len()];
        for &(pattern, count) in &assignment.boards {
            let Some(pattern) = self.patterns.get(pattern) else {
                wrong.push(Violation(format!("pattern {pattern} does not exist")));
                continue;
            };
            used[pattern.class] += u64::from(count);
            for &(cell, places) in &pattern.places {
                free[cell] += i64::from(places) * i64::from(count);
            }
        }
        for (class, used) in self.classes.iter().zip(&used) {
            if *used > u64::from(class.count) {
                wrong.push(Violation(format!("{used} boards used of {}", class.count)));
            }
        }
        if assignment.shares.len() != self.services.len() {
            wrong.push(Violation("not every service is assigned".to_owned()));
        }
        for (service, shares) in self.services.iter().zip(&assignment.shares) {
            let mut served = 0.0;
            let mut instances = 0u64;
            for share in shares {
                let Some(point) = service.points.get(share.point) else {
                    wrong.push(Violation(format!("{}: point {} does not exist", service.name, share.point)));
                    continue;
                };
                for &rate in &share.rates {
                    instances += 1;
                    free[point.cell] -= 1;
                    served += rate;
                    if !rate.is_finite() || rate < 0.0 || rate > point.admissible * (1.0 + TOLERANCE) {
                        wrong.push(Violation(format!(
                            "{}: {rate} req/s on an instance that admits {}",
                            service.name, point.admissible
                        )));
                    }
                }
            }
            if served < service.rate * (1.0 - TOLERANCE) {
                wrong.push(Violation(format!("{}: {served} of {} req/s served", service.name, service.rate)));
            }
            let (min, max) = service.replicas;
            if instances < u64::from(min) || instances > u64::from(max) {
                wrong.push(Violation(format!("{}: {instances} replicas of {min}..{max}", service.name)));
            }
        }
        for group in self.apart() {
            let boards: u32 = assignment
                .boards
                .iter()
                .filter(|(pattern, _)| group.patterns.contains(pattern))
                .map(|(_, n)| *n)
                .sum();
            let boards = if group.patterns.is_empty() { group.most } else { boards };
            let service = &self.services[group.service];
            let instances: usize = assignment.shares.get(group.service).map_or(0, |shares| {
                shares
                    .iter()
                    .filter(|s| service.points.get(s.point).is_some_and(|p| group.cells.contains(&p.cell)))
                    .map(|s| s.rates.len())
                    .sum()
            });
            if instances > boards as usize {
                wrong.push(Violation(format!(
                    "{}: {instances} replicas on {boards} boards apart",
                    service.name
                )));
            }
        }
        for (cell, free) in free.iter().enumerate() {
            if *free < 0 {
                wrong.push(Violation(format!("cell {cell} lacks {} places", -free)));
            }
        }
        for limit in &self.limits {
            let value = self.value(&limit.weights, assignment);
            if value > limit.at_most + TOLERANCE * limit.at_most.abs().max(1.0) {
                wrong.push(Violation(format!("{} {value} above {}", limit.metric.word(), limit.at_most)));
            }
        }
        wrong
    }
}
