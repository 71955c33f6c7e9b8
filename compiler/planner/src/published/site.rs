//! A program's hardware and services as the published planners see them: MIG boards of one kind.

use super::Request;
use crate::assemble::{BoardChoice, InstanceChoice, Making, Proof, assemble};
use crate::formulate::promise;
use ent_lang::Program;
use ent_performance::operate::{MAX_UTILISATION, SAFETY, admissible, predicted_latency};
use ent_performance::{PerformanceSet, PointKey, Prediction};
use ent_plan::device::{Board, place};
use ent_plan::diagnostic::{Code, Diagnostic, Outcome, Span};
use ent_plan::plan::{LatencyRule, Plan, Sharing};
use ent_plan::units::Megahertz;
use std::collections::BTreeMap;

/// The published planners know boards of seven slices only.
const SLICES: u32 = 7;

/// The boards that a published planner plans with.
pub(super) struct Site<'a> {
    pub(super) making: Making<'a>,
    /// Index into the program's boards.
    pub(super) board: usize,
    /// Nodes with such boards (indices into the program's nodes), and how many each has.
    pub(super) nodes: Vec<(usize, u32)>,
}

/// Below this share of the capacity every latency can be predicted.
const NEARLY_SATURATED: f64 = 0.9;

/// A promise that holds at the rate times this holds at the rate: admissible rates are found more closely.
const AMPLE: f64 = 1.02;

/// An operating point that a service could use.
pub(super) struct Known {
    pub(super) key: PointKey,
    /// Compute slices.
    pub(super) slices: u32,
    pub(super) prediction: Prediction,
}

impl<'a> Site<'a> {
    /// The boards of the first node that is shared by MIG; what the planner cannot express is said. An
    /// error, and no site, when there is none.
    pub(super) fn of(
        program: &'a Program,
        performance: &'a PerformanceSet,
        planner: &'static str,
        request: Request,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let is_usable = |n: &&ent_lang::program::Node| {
            n.sharing == Sharing::Mig && program.boards[n.board.value].n_compute_slices() == SLICES
        };
        let Some(first) = program.nodes.iter().find(is_usable) else {
            let span = program.nodes.first().map_or_else(Span::default, |n| n.name.span);
            diagnostics.push(
                Diagnostic::error(
                    Code::PlannerLimitation,
                    span,
                    format!("`{planner}` has no boards to plan with"),
                )
                .label("it knows boards of seven slices that are shared by MIG")
                .help("add a node with such boards, or choose another planner"),
            );
            return None;
        };
        let board = first.board.value;
        let mut nodes = Vec::new();
        for (index, node) in program.nodes.iter().enumerate() {
            if is_usable(&node) && node.board.value == board {
                nodes.push((index, node.count.value));
            } else {
                diagnostics.push(
                    limitation(planner, node.name.span, "plans with one kind of board")
                        .label(format!("the boards of `{}` stay unused", node.name.value)),
                );
            }
        }
        let metric = request.metric.unwrap_or(program.objective.minimize.value);
        let making = Making { program, performance, planner, metric, rule: request.rule, gap: 0.0 };
        diagnostics.extend(ignored(program, planner));
        Some(Self { making, board, nodes })
    }

    /// What is known of the boards.
    pub(super) fn facts(&self) -> &'a Board {
        &self.making.program.boards[self.board]
    }

    /// How many boards there are.
    pub(super) fn count(&self) -> usize {
        self.nodes.iter().map(|(_, count)| *count as usize).fold(0, usize::saturating_add)
    }

    /// The operating points of a service on base profiles at clocks that every node allows, where its
    /// declared memory fits: a published profile has no row where a model did not fit. Only those that are
    /// wanted.
    pub(super) fn known(&self, service: usize, wanted: impl Fn(&PointKey) -> bool) -> Vec<Known> {
        let Making { program, performance, .. } = self.making;
        let asked = &program.services[service];
        let Some(source) = performance.get(asked.model.value, self.board) else { return Vec::new() };
        let need = program.models[asked.model.value].memory.as_ref().map(|m| m.value.get());
        let facts = self.facts();
        let known = |key: PointKey| -> Option<Known> {
            let profile = facts.profiles.get(key.profile)?;
            let has_room = || {
                let need = need.map(|n| n * f64::from(key.processes));
                need.is_none_or(|n| profile.memory.is_some_and(|have| n <= have.get()))
            };
            let slices = profile.n_compute_slices;
            let is_base = facts.base_profile(slices).is_some_and(|base| base.name == profile.name);
            if !is_base || !self.allows(key.clock) || !has_room() {
                return None;
            }
            let prediction = source.predict(facts, key)?;
            Some(Known { key, slices, prediction })
        };
        source.points(facts).into_iter().filter(wanted).filter_map(known).collect()
    }

    /// The highest rate at which a point keeps a service's promise (req/s).
    pub(super) fn admissible(&self, service: usize, known: &Known) -> f64 {
        let asked = promise(&self.making.program.services[service], self.making.rule);
        admissible(&known.prediction, known.key.processes, asked)
    }

    /// Whether a point carries all of a service within its promise: whether [`Self::admissible`] reaches the
    /// rate, with less work where the answer is plain.
    pub(super) fn carries(&self, service: usize, known: &Known) -> bool {
        let asked = &self.making.program.services[service];
        let rate = asked.rate.value.get();
        let processes = known.key.processes;
        if rate > known.prediction.capacity(processes) {
            return false;
        }
        if self.making.rule == LatencyRule::Queueing {
            let promise = promise(asked, self.making.rule);
            let holds = |rate| {
                let latency = predicted_latency(&known.prediction, processes, promise, rate);
                latency * SAFETY <= promise.bound
            };
            if holds(rate * AMPLE) {
                return true;
            }
            if !holds(rate) {
                return false;
            }
        }
        self.admissible(service, known) >= rate
    }

    /// Whether every node allows the clock, and its base power is known if any is.
    pub(super) fn allows(&self, clock: Megahertz) -> bool {
        let by_node = |(node, _): &(usize, u32)| {
            let clocks = self.making.program.nodes[*node].clocks.as_ref();
            clocks.is_none_or(|c| c.value.contains(&clock))
        };
        self.nodes.iter().all(by_node)
            && self.facts().base_power.as_ref().is_none_or(|base| base.at(clock).is_some())
    }

    /// The clock of planners that choose none: the highest at which every service that has data has some.
    pub(super) fn highest_clock(&self) -> Option<Megahertz> {
        let Making { program, performance, .. } = self.making;
        let facts = self.facts();
        let clocks = |service: &ent_lang::program::Service| {
            let source = performance.get(service.model.value, self.board)?;
            source.points(facts).into_iter().map(|k| k.clock).filter(|c| self.allows(*c)).max()
        };
        program.services.iter().filter_map(clocks).min()
    }

    /// The index of the base profile with this many compute slices.
    pub(super) fn profile(&self, slices: u32) -> Option<usize> {
        let base = self.facts().base_profile(slices)?;
        self.facts().profiles.iter().position(|p| p.name == base.name)
    }

    /// The node of each board, filled one node after the other; fewer when there are not so many.
    pub(super) fn seats(&self, boards: usize) -> Vec<usize> {
        let seats = self.nodes.iter().flat_map(|(node, count)| std::iter::repeat_n(*node, *count as usize));
        seats.take(boards).collect()
    }

    /// Legal starts for the instances of a board, where there are any.
    pub(super) fn lay_out(&self, board: &mut BoardChoice) {
        let profiles: Vec<usize> = board.instances.iter().map(|i| i.profile).collect();
        if let Some(starts) = place(self.facts(), &profiles) {
            board.instances.iter_mut().zip(starts).for_each(|(i, start)| i.start = Some(start));
        }
    }

    /// Splits each service's rate over its instances in proportion to what they can carry, which is never
    /// exceeded: what is too much is not served.
    pub(super) fn split(&self, boards: &mut [BoardChoice], by: SplitBy) {
        let Making { program, rule, .. } = self.making;
        let most = match rule {
            LatencyRule::Execution => 1.0,
            LatencyRule::Queueing => MAX_UTILISATION,
        };
        // Per instance: capacity and weight.
        let mut carries: Vec<Vec<Option<(f64, f64)>>> = Vec::new();
        let mut total: BTreeMap<usize, f64> = BTreeMap::new();
        for board in boards.iter() {
            let own = |i: &InstanceChoice| {
                let prediction = i.predict(&self.making, self.board, board.clock)?;
                let capacity = prediction.capacity(i.processes);
                let held =
                    || admissible(&prediction, i.processes, promise(&program.services[i.service], rule));
                let weight = match by {
                    SplitBy::Capacity => capacity,
                    SplitBy::Promise => held(),
                };
                Some((capacity, weight))
            };
            carries.push(board.instances.iter().map(own).collect());
        }
        for (board, own) in boards.iter().zip(&carries) {
            for (instance, carries) in board.instances.iter().zip(own) {
                *total.entry(instance.service).or_default() += carries.map_or(0.0, |c| c.1);
            }
        }
        for (board, own) in boards.iter_mut().zip(&carries) {
            for (instance, carries) in board.instances.iter_mut().zip(own) {
                let rate = program.services[instance.service].rate.value.get();
                let total = total.get(&instance.service).copied().unwrap_or(0.0);
                instance.rate = match carries {
                    Some((capacity, weight)) if total > 0.0 => (rate * weight / total).min(most * capacity),
                    _ => 0.0,
                };
                self.relieve(instance, board.clock);
            }
        }
    }

    /// Lowers the rate of an instance near saturation until its latency can be predicted at all.
    fn relieve(&self, instance: &mut InstanceChoice, clock: Megahertz) {
        let Some(prediction) = instance.predict(&self.making, self.board, clock) else { return };
        let asked = promise(&self.making.program.services[instance.service], self.making.rule);
        let capacity = prediction.capacity(instance.processes);
        while instance.rate > NEARLY_SATURATED * capacity {
            if predicted_latency(&prediction, instance.processes, asked, instance.rate).is_finite() {
                return;
            }
            instance.rate *= 0.995;
        }
    }

    /// The plan of these boards, with what it misses.
    pub(super) fn plan(&self, boards: &[BoardChoice], mut diagnostics: Vec<Diagnostic>) -> Outcome<Plan> {
        let proof = Proof { has_plan: true, ..Proof::default() };
        let plan = assemble(&self.making, boards, proof);
        diagnostics.extend(super::verdict::misses(self.making.program, &plan));
        Outcome { value: plan, diagnostics }
    }
}

/// What decides how much of a service's rate an instance gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SplitBy {
    /// The rate at which it saturates.
    Capacity,
    /// The highest rate at which its promise holds.
    Promise,
}

/// No plan, because there is nothing to plan with.
pub(super) fn no_plan(
    program: &Program,
    performance: &PerformanceSet,
    planner: &'static str,
    request: Request,
    diagnostics: Vec<Diagnostic>,
) -> Outcome<Plan> {
    let metric = request.metric.unwrap_or(program.objective.minimize.value);
    let making = Making { program, performance, planner, metric, rule: request.rule, gap: 0.0 };
    Outcome { value: assemble(&making, &[], Proof::default()), diagnostics }
}

/// A warning that begins with the planner's name.
pub(super) fn limitation(planner: &str, span: Span, what: &str) -> Diagnostic {
    Diagnostic::warning(Code::PlannerLimitation, span, format!("`{planner}` {what}"))
}

/// What the program asks for and no published planner looks at.
fn ignored(program: &Program, planner: &str) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for service in &program.services {
        let asked = [
            (service.isolate.as_ref().filter(|i| i.value).map(|i| i.span), "`isolate`"),
            (service.spread.as_ref().map(|s| s.span), "`spread`"),
            (service.replicas.as_ref().map(|r| r.span), "`replicas`"),
        ];
        for (span, what) in asked {
            if let Some(span) = span {
                all.push(limitation(planner, span, &format!("does not look at {what}")));
            }
        }
    }
    all.extend(
        program.objective.limits.iter().map(|l| limitation(planner, l.span, "does not look at limits")),
    );
    all
}

/// A warning where a service pins what the planner chooses itself.
pub(super) fn pins_ignored(program: &Program, planner: &str) -> Vec<Diagnostic> {
    let pins = program.services.iter().filter_map(|s| s.pin.as_ref());
    pins.map(|p| limitation(planner, p.span, "does not look at pins")).collect()
}
