//! Why there is no plan, and what to know about the one there is.
//!
//! The conflict is found by leaving requirements out one at a time: what can be left out while the rest
//! still has no plan is not part of it (a deletion filter; Chinneck, Feasibility and Infeasibility in
//! Optimization, 2008). Each trial is a small solve that only asks whether there is a plan.

use crate::formulate::points::{percentile_word, time};
use crate::problem::{ClassWeights, Problem, Weights};
use crate::solve::{Control, SolverFault};
use crate::weights::per_solver_unit;
use crate::{Planner, solve};
use ent_lang::Program;
use ent_lang::program::Spread;
use ent_performance::PerformanceSet;
use ent_plan::device::Confidence;
use ent_plan::diagnostic::{Code, Diagnostic, Span};
use ent_plan::plan::{Metric, Plan};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Seconds for the whole explanation, and for one trial.
const SECONDS: f64 = 20.0;
const TRIAL_SECONDS: f64 = 4.0;
/// With more services than this, the conflict is not searched for.
const MOST_EXPLAINED: usize = 100;
/// Bisection steps when a feasible rate is looked for.
const STEPS: usize = 7;
/// Services whose own feasible rate is looked for.
const MOST_SERVICES: usize = 3;

/// One requirement of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Requirement {
    /// There are no more boards than this class has.
    Boards(usize),
    /// A limit holds.
    Limit(usize),
    /// A service is served as promised.
    Service(usize),
}

struct Trials<'a> {
    program: &'a Program,
    performance: &'a PerformanceSet,
    problem: &'a Problem,
    elapsed: &'a dyn Fn() -> f64,
    deadline: f64,
}

/// The smallest set of requirements found that cannot hold together, with the nearest changes that would
/// resolve it.
///
/// # Errors
/// When the solver fails.
pub fn conflict(
    program: &Program,
    performance: &PerformanceSet,
    problem: &Problem,
    control: &mut Control<'_>,
) -> Result<Vec<Diagnostic>, SolverFault> {
    if problem.services.len() > MOST_EXPLAINED {
        let span = problem.classes.first().map_or(program.objective.minimize.span, |c| c.span);
        let boards: u32 = problem.classes.iter().map(|c| c.count).fold(0, u32::saturating_add);
        return Ok(vec![
            Diagnostic::error(Code::ConflictingRequirements, span, "these requirements cannot hold together")
                .label(format!("{boards} boards, {} services and the limits", problem.services.len()))
                .help("add boards, raise a limit, or plan groups of services apart to see which conflict"),
        ]);
    }
    // An explanation is worth waiting for, but not much longer than the plan was.
    let patience = control.time_limit.map_or(SECONDS, |limit| (0.5 * limit).clamp(2.0, SECONDS));
    let deadline = (control.elapsed)() + patience;
    let trials = Trials { program, performance, problem, elapsed: control.elapsed, deadline };
    let mut kept: BTreeSet<Requirement> = (0..problem.classes.len())
        .map(Requirement::Boards)
        .chain((0..problem.limits.len()).map(Requirement::Limit))
        .chain((0..problem.services.len()).map(Requirement::Service))
        .collect();
    for requirement in kept.clone() {
        let mut fewer = kept.clone();
        fewer.remove(&requirement);
        if trials.is_infeasible(&fewer, 1.0, None)? {
            kept = fewer;
        }
    }
    let mut places = kept.iter().map(|r| trials.label(*r));
    let Some((span, text)) = places.next() else { return Ok(Vec::new()) };
    let mut diagnostic =
        Diagnostic::error(Code::ConflictingRequirements, span, "these requirements cannot hold together")
            .label(text);
    for (span, text) in places {
        diagnostic = diagnostic.and(span, text);
    }
    let changes = trials.changes(&kept)?;
    if !changes.is_empty() {
        diagnostic = diagnostic.help(format!("change one of these: {}", changes.join("; ")));
    }
    Ok(vec![diagnostic])
}

impl Trials<'_> {
    /// The problem with only some of its requirements, asking for the fewest boards; the rates of `only`
    /// (or of all services) scaled.
    fn part(&self, kept: &BTreeSet<Requirement>, scale: f64, only: Option<usize>) -> Problem {
        let mut part = self.problem.clone();
        part.metric = Metric::Gpus;
        part.objective = Weights {
            constant: 0.0,
            classes: part
                .classes
                .iter()
                .map(|_| ClassWeights { board: 1.0, ..ClassWeights::default() })
                .collect(),
        };
        let mut index = 0;
        part.services.retain(|_| {
            index += 1;
            kept.contains(&Requirement::Service(index - 1))
        });
        for service in &mut part.services {
            if only.is_none_or(|s| self.problem.services[s].index == service.index) {
                service.rate *= scale;
            }
        }
        let mut index = 0;
        part.limits.retain(|_| {
            index += 1;
            kept.contains(&Requirement::Limit(index - 1))
        });
        let plenty = self.plenty();
        for (index, class) in part.classes.iter_mut().enumerate() {
            if !kept.contains(&Requirement::Boards(index)) {
                class.count = class.count.max(plenty);
            }
        }
        part
    }

    /// Boards enough for every service on its slowest point alone.
    fn plenty(&self) -> u32 {
        let need: f64 = self
            .problem
            .services
            .iter()
            .map(|s| {
                let best = s.points.iter().map(|p| p.admissible).fold(0.0, f64::max);
                (s.rate / best).ceil().max(f64::from(s.replicas.0)) + 1.0
            })
            .sum();
        need.min(1e6) as u32
    }

    fn solve(&self, part: &Problem) -> Result<crate::Solution, SolverFault> {
        let start = (self.elapsed)();
        let seconds = (self.deadline - start).clamp(0.0, TRIAL_SECONDS);
        let elapsed = || (self.elapsed)() - start;
        let mut silent = |_| ControlFlow::Continue(());
        let mut control = Control {
            gap: 1e-4,
            time_limit: Some(seconds),
            node_limit: None,
            elapsed: &elapsed,
            progress: &mut silent,
            is_stopped: false,
        };
        solve(self.program, self.performance, part, Planner::Optimal, &mut control)
    }

    /// Whether these requirements are proven to have no plan. Out of time counts as no.
    fn is_infeasible(
        &self,
        kept: &BTreeSet<Requirement>,
        scale: f64,
        only: Option<usize>,
    ) -> Result<bool, SolverFault> {
        if (self.elapsed)() > self.deadline {
            return Ok(false);
        }
        let part = self.part(kept, scale, only);
        if part.services.is_empty() {
            return Ok(false);
        }
        Ok(self.solve(&part)?.is_infeasible)
    }

    fn label(&self, requirement: Requirement) -> (Span, String) {
        match requirement {
            Requirement::Boards(class) => {
                let class = &self.problem.classes[class];
                let board = &self.program.boards[class.board].id;
                let s = if class.count == 1 { "" } else { "s" };
                (class.span, format!("only {} board{s} of `{board}`", class.count))
            }
            Requirement::Limit(limit) => {
                let limit = &self.problem.limits[limit];
                (limit.span, format!("`{}` may not be above this", limit.metric.word()))
            }
            Requirement::Service(service) => {
                let service = &self.program.services[self.problem.services[service].index];
                let slo = service.slo.value;
                (
                    service.name.span,
                    format!(
                        "`{}` needs {} req/s within {} <= {}",
                        service.name.value,
                        number(service.rate.value.get()),
                        percentile_word(slo.percentile),
                        time(slo.bound.get())
                    ),
                )
            }
        }
    }

    /// The nearest changes that make the conflicting requirements, and all others, possible.
    fn changes(&self, conflict: &BTreeSet<Requirement>) -> Result<Vec<String>, SolverFault> {
        let all: BTreeSet<Requirement> = (0..self.problem.classes.len())
            .map(Requirement::Boards)
            .chain((0..self.problem.limits.len()).map(Requirement::Limit))
            .chain((0..self.problem.services.len()).map(Requirement::Service))
            .collect();
        let mut changes = Vec::new();
        for requirement in conflict {
            if (self.elapsed)() > self.deadline {
                break;
            }
            let mut rest = all.clone();
            rest.remove(requirement);
            match *requirement {
                Requirement::Boards(class) => {
                    let part = self.part(&rest, 1.0, None);
                    if let Some(plan) = self.solve(&part)?.incumbent {
                        let boards: u32 = plan
                            .boards
                            .iter()
                            .filter(|(p, _)| part.patterns[*p].class == class)
                            .map(|(_, n)| n)
                            .sum();
                        let have = self.problem.classes[class].count;
                        if boards > have {
                            let board = &self.program.boards[self.problem.classes[class].board].id;
                            changes.push(format!("{boards} boards of `{board}` instead of {have}"));
                        }
                    }
                }
                Requirement::Limit(limit) => {
                    let limit = &self.problem.limits[limit];
                    let mut part = self.part(&rest, 1.0, None);
                    part.metric = limit.metric;
                    part.objective = limit.weights.clone();
                    if let Some(plan) = self.solve(&part)?.incumbent {
                        let least =
                            part.value(&part.objective, &plan) * per_solver_unit(self.program, limit.metric);
                        changes.push(format!(
                            "`limit {} <= {}`",
                            limit.metric.word(),
                            amount(limit.metric, least)
                        ));
                    }
                }
                Requirement::Service(_) => {}
            }
        }
        let services =
            conflict.iter().filter_map(|r| if let Requirement::Service(s) = r { Some(*s) } else { None });
        for service in services.take(MOST_SERVICES) {
            if let Some(share) = self.feasible_share(&all, service)? {
                let service = &self.program.services[self.problem.services[service].index];
                let rate = service.rate.value.get() * share;
                changes.push(format!("at most {} req/s for `{}`", round_down(rate), service.name.value));
            }
        }
        Ok(changes)
    }

    /// The largest share of a service's rate, to within a percent, at which everything is possible.
    fn feasible_share(
        &self,
        all: &BTreeSet<Requirement>,
        service: usize,
    ) -> Result<Option<f64>, SolverFault> {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..STEPS {
            if (self.elapsed)() > self.deadline {
                break;
            }
            let middle = 0.5 * (low + high);
            let part = self.part(all, middle, Some(service));
            if self.solve(&part)?.incumbent.is_some() {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok((low > 0.0).then_some(low))
    }
}

fn number(value: f64) -> String {
    format!("{value}")
}

/// Three significant digits, never more than the value.
fn round_down(value: f64) -> String {
    let scale = 10f64.powi(2 - value.max(1e-9).log10().floor() as i32);
    format!("{}", (value * scale).floor() / scale)
}

/// A metric's amount rounded up, with its unit.
fn amount(metric: Metric, value: f64) -> String {
    let up = |v: f64| {
        let scale = 10f64.powi(3 - v.max(1e-9).log10().floor() as i32);
        (v * scale).ceil() / scale
    };
    match metric {
        Metric::Power => format!("{} W", up(value)),
        Metric::Energy => format!("{} kJ", up(value / 1e3)),
        Metric::Carbon => format!("{} gCO2", up(value)),
        Metric::Gpus => format!("{}", value.round()),
        Metric::Cost => format!("{} USD", up(value)),
    }
}

/// Services whose replicas should be apart and are not.
pub(crate) fn together(program: &Program, plan: &Plan) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for service in &program.services {
        let Some(spread) = &service.spread else { continue };
        let name = &service.name.value;
        let mut places: Vec<(&str, u32)> = plan
            .gpus
            .iter()
            .flat_map(|g| {
                g.instances.iter().filter(|i| i.service == *name).map(move |_| (g.node.as_str(), g.index))
            })
            .map(|(node, index)| if spread.value == Spread::Node { (node, 0) } else { (node, index) })
            .collect();
        let n = places.len();
        places.sort_unstable();
        places.dedup();
        if places.len() < n {
            found.push(
                Diagnostic::error(
                    Code::PlannerLimitation,
                    spread.span,
                    "this planner could not keep replicas apart",
                )
                .label(format!("{n} replicas of `{name}` on {} boards or nodes", places.len()))
                .help("give the service `replicas` bounds, or pin its profile"),
            );
        }
    }
    found
}

/// What a person should know about a plan that holds.
pub(crate) fn warnings(program: &Program, plan: &Plan) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for node in &program.nodes {
        let board = &program.boards[node.board.value];
        let own = || plan.gpus.iter().filter(|g| g.node == node.name.value);
        if own().next().is_none() {
            continue;
        }
        let used: BTreeSet<&str> =
            own().flat_map(|g| &g.instances).filter_map(|i| i.profile.as_deref()).collect();
        let unsure: Vec<&str> = board
            .profiles
            .iter()
            .filter(|p| used.contains(p.name.as_str()) && p.confidence != Confidence::Captured)
            .map(|p| p.name.as_str())
            .collect();
        if !unsure.is_empty() && !board.is_illustration {
            found.push(
                Diagnostic::warning(
                    Code::UnverifiedBoardFact,
                    node.board.span,
                    "the plan uses facts about the board that were never captured from one",
                )
                .label(format!("`{}`: profile {}", board.id, unsure.join(", ")))
                .help("compare with `nvidia-smi mig -lgip` and `-lgipp` on the machine before applying"),
            );
        }
        if let Some(limits) = board.power_limits {
            let cap = limits.default.get();
            let over: Vec<String> = own()
                .filter_map(|g| Some((g, g.power_w?)))
                .filter(|(_, watts)| *watts > cap)
                .map(|(g, watts)| format!("{}:{} {watts:.0} W", g.node, g.index))
                .collect();
            if !over.is_empty() {
                found.push(
                    Diagnostic::warning(
                        Code::PowerLimitExceeded,
                        node.board.span,
                        "a board would draw more than its power limit when everything is busy",
                    )
                    .label(format!("limit {cap:.0} W; predicted {}", over.join(", ")))
                    .help("expect its clock to be throttled at full load, or lower the load or the clock"),
                );
            }
        }
    }
    found
}
