//! What planners that share boards by MPS have in common: the boards, the clock, and plans of shares.

use super::Request;
use crate::assemble::{BoardChoice, InstanceChoice, Making, Proof, assemble};
use ent_lang::Program;
use ent_lang::program::Node;
use ent_performance::operate::MAX_UTILISATION;
use ent_performance::{ModelPerformance, PerformanceSet, ShareKey};
use ent_plan::diagnostic::{Code, Diagnostic, Outcome};
use ent_plan::plan::{LatencyRule, Plan, Sharing};
use ent_plan::units::Megahertz;
use std::collections::BTreeSet;

/// How a model uses a board that it has for itself, at one batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Utilisation {
    /// The model's name in the program.
    pub model: String,
    /// Requests in the batch.
    pub batch: u32,
    /// Share of the multiprocessors in use, 0..=1.
    pub compute: f64,
    /// Share of the L2 bandwidth in use, 0..=1.
    pub l2: f64,
    /// Share of the memory bandwidth in use, 0..=1.
    pub memory: f64,
}

/// What is known of models beside each other. No performance data has it: it is given separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Interference {
    /// How models use the board. A later entry for a model and batch replaces an earlier one.
    pub utilisation: Vec<Utilisation>,
    /// Linear model of the slowdown: own L2, other's L2, own memory, other's memory, constant.
    pub constants: [f64; 5],
}

/// The program with its boards shared by MPS instead of MIG: what plans of these planners keep, and what they
/// are verified against.
#[must_use]
pub fn shared_by_mps(program: &Program) -> Program {
    let mut shared = program.clone();
    for node in shared.nodes.iter_mut().filter(|n| n.sharing == Sharing::Mig) {
        node.sharing = Sharing::Mps;
    }
    shared
}

/// The boards that are shared: those of one kind.
pub(super) struct Site {
    /// Indices into the program's nodes.
    nodes: Vec<usize>,
    /// Index into the program's boards.
    pub(super) board: usize,
    /// How many there are.
    pub(super) boards: u32,
    /// The highest clock that every service was measured at.
    pub(super) clock: Megahertz,
    /// Memory of a board (MiB).
    pub(super) memory_mb: f64,
}

/// A service's share of a board.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareChoice {
    /// Index into the program's services.
    pub(super) service: usize,
    pub(super) percent: u32,
    pub(super) batch: u32,
}

/// One planning: for whom, from what, and what there is to say.
pub(super) struct Planning<'a> {
    pub(super) program: &'a Program,
    pub(super) performance: &'a PerformanceSet,
    pub(super) asked: Request,
    /// The planner's name in commands.
    pub(super) planner: &'static str,
    pub(super) diagnostics: Vec<Diagnostic>,
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

impl Planning<'_> {
    /// The boards to share, and a warning for everything the planner does not regard; `None`, with an error,
    /// when there are none.
    pub(super) fn site(&mut self) -> Option<Site> {
        self.warn_of_requirements();
        let program = self.program;
        let is_shared = |n: &&Node| n.sharing != Sharing::Whole && n.count.value > 0;
        let Some(first) = program.nodes.iter().find(is_shared) else {
            let span = program.nodes.first().map_or(program.objective.minimize.span, |n| n.name.span);
            self.refuse(span, "no boards may be shared", "write `sharing = mps`");
            return None;
        };
        let board = first.board.value;
        let mut nodes = Vec::new();
        for (index, node) in program.nodes.iter().enumerate() {
            if is_shared(&node) && node.board.value == board {
                nodes.push(index);
            } else if node.count.value > 0 {
                let text = format!("`{}` leaves `{}` unused", self.planner, node.name.value);
                self.diagnostics.push(
                    Diagnostic::warning(Code::PlannerLimitation, node.name.span, UNREGARDED)
                        .label(text)
                        .help("plan with `optimal` for boards of several kinds"),
                );
            }
        }
        let facts = &program.boards[board];
        let largest = facts.profiles.iter().filter(|p| p.is_base).max_by_key(|p| p.n_memory_slices);
        let Some(memory) = facts.memory.or_else(|| largest.and_then(|p| p.memory)) else {
            self.diagnostics.push(
                Diagnostic::error(
                    Code::MissingBoardFact,
                    first.board.span,
                    "a fact about the board is not known",
                )
                .label(format!("`{}` packs by memory, and nobody knows that of `{}`", self.planner, facts.id))
                .help("supply the memory in a board of your own"),
            );
            return None;
        };
        let Some(clock) = self.clock(&nodes, board) else {
            self.refuse(
                first.name.span,
                "no clock of the boards was measured for every service",
                "supply performance data at a clock that the node allows",
            );
            return None;
        };
        let boards = nodes.iter().map(|n| program.nodes[*n].count.value).fold(0, u32::saturating_add);
        Some(Site { nodes, board, boards, clock, memory_mb: memory.get() / MEBIBYTE })
    }

    /// The highest clock at which every service that was measured at all has data, and every node allows.
    fn clock(&self, nodes: &[usize], board: usize) -> Option<Megahertz> {
        let facts = &self.program.boards[board];
        let mut common: Option<BTreeSet<Megahertz>> = None;
        for service in 0..self.program.services.len() {
            let Some(known) = self.known(service, board) else { continue };
            let own: BTreeSet<Megahertz> =
                known.points(facts).iter().filter(|p| p.processes == 1).map(|p| p.clock).collect();
            common = Some(common.map_or(own.clone(), |c| c.intersection(&own).copied().collect()));
        }
        let is_allowed = |clock: &Megahertz| {
            nodes
                .iter()
                .all(|n| self.program.nodes[*n].clocks.as_ref().is_none_or(|c| c.value.contains(clock)))
        };
        common?.into_iter().rev().find(is_allowed)
    }

    /// What is known of a service's model on a board.
    pub(super) fn known(&self, service: usize, board: usize) -> Option<&ModelPerformance> {
        self.performance.get(self.program.services[service].model.value, board)
    }

    /// Batches that a service was measured at on the site's boards, ascending.
    pub(super) fn batches(&self, service: usize, site: &Site) -> Vec<u32> {
        let facts = &self.program.boards[site.board];
        let points = self.known(service, site.board).map(|k| k.points(facts)).unwrap_or_default();
        let own: BTreeSet<u32> =
            points.iter().filter(|p| p.processes == 1 && p.clock == site.clock).map(|p| p.batch).collect();
        own.into_iter().collect()
    }

    /// 99th percentile of a batch's execution in a share (ms).
    pub(super) fn latency_ms(&self, service: usize, site: &Site, percent: u32, batch: u32) -> Option<f64> {
        let share = ShareKey { percent, processes: 1, batch, clock: site.clock };
        let facts = &self.program.boards[site.board];
        Some(self.known(service, site.board)?.predict_share(facts, share)?.latency_p99.get() * 1e3)
    }

    pub(super) fn refuse(&mut self, span: ent_plan::diagnostic::Span, label: impl Into<String>, help: &str) {
        self.diagnostics.push(
            Diagnostic::error(Code::PlannerLimitation, span, "this planner cannot plan this program")
                .label(format!("`{}`: {}", self.planner, label.into()))
                .help(help),
        );
    }

    /// Says that a service gets nothing, and why.
    pub(super) fn leave_out(&mut self, service: usize, why: impl Into<String>) {
        let name = &self.program.services[service].name;
        self.diagnostics.push(
            Diagnostic::warning(Code::PlannerLimitation, name.span, "this planner leaves out a service")
                .label(format!("`{}` has no share for `{}`: {}", self.planner, name.value, why.into()))
                .help("plan with `optimal`, or loosen the promise"),
        );
    }

    fn warn_of_requirements(&mut self) {
        for service in &self.program.services {
            let pinned = service.pin.as_ref().map(|p| ("a pin", p.span));
            let isolated = service.isolate.as_ref().filter(|i| i.value).map(|i| ("isolation", i.span));
            let spread = service.spread.as_ref().map(|s| ("a spread", s.span));
            let replicas = service.replicas.as_ref().map(|r| ("a number of replicas", r.span));
            for (what, span) in [pinned, isolated, spread, replicas].into_iter().flatten() {
                self.diagnostics.push(
                    Diagnostic::warning(Code::PlannerLimitation, span, UNREGARDED)
                        .label(format!("`{}` knows nothing like {what}", self.planner))
                        .help("plan with `optimal`"),
                );
            }
        }
    }

    /// The plan of boards with shares. Replicas divide a service's rate by what they can carry. Boards beyond
    /// those there are, and shares of which nothing is known, are left out with a warning.
    pub(super) fn plan(mut self, site: Option<&Site>, boards: &[Vec<ShareChoice>]) -> Outcome<Plan> {
        let chosen = site.map(|site| self.boards(site, boards)).unwrap_or_default();
        let proof = Proof { has_plan: !chosen.is_empty(), ..Proof::default() };
        let making = Making {
            program: self.program,
            performance: self.performance,
            planner: self.planner,
            metric: self.asked.metric.unwrap_or(self.program.objective.minimize.value),
            rule: self.asked.rule,
            gap: 0.0,
        };
        let mut plan = assemble(&making, &chosen, proof);
        plan.assumptions.push(
            "an MPS share is predicted as a slice of its size, interpolated between measured sizes; nothing beside it interferes"
                .to_owned(),
        );
        Outcome { value: plan, diagnostics: self.diagnostics }
    }

    fn boards(&mut self, site: &Site, boards: &[Vec<ShareChoice>]) -> Vec<BoardChoice> {
        let program = self.program;
        let facts = &program.boards[site.board];
        let n_used = boards.len().min(site.boards as usize);
        if n_used < boards.len() {
            let node = &program.nodes[site.nodes[0]];
            self.diagnostics.push(
                Diagnostic::warning(
                    Code::PlannerLimitation,
                    node.count.span,
                    "this planner needs more boards",
                )
                .label(format!("`{}` needs {}; {} are here", self.planner, boards.len(), site.boards))
                .help(format!("give it {} boards", boards.len())),
            );
        }
        let mut instances: Vec<Vec<InstanceChoice>> = Vec::new();
        let mut carried = vec![0.0; program.services.len()];
        // Outside MIG the largest profile stands for the board.
        let whole = (0..facts.profiles.len())
            .filter(|p| facts.profiles[*p].is_base)
            .max_by_key(|p| facts.profiles[*p].n_memory_slices)
            .unwrap_or(0);
        for shares in &boards[..n_used] {
            let mut own = Vec::new();
            for share in shares {
                let key =
                    ShareKey { percent: share.percent, processes: 1, batch: share.batch, clock: site.clock };
                let predicted =
                    self.known(share.service, site.board).and_then(|k| k.predict_share(facts, key));
                let Some(prediction) = predicted else { continue };
                let capacity = prediction.capacity(1);
                carried[share.service] += capacity;
                own.push(InstanceChoice {
                    service: share.service,
                    profile: whole,
                    start: None,
                    mps_percent: Some(share.percent),
                    processes: 1,
                    batch: share.batch,
                    rate: capacity,
                    prediction: Some(prediction),
                });
            }
            instances.push(own);
        }
        // What is more than the shares can carry is not served.
        let most = match self.asked.rule {
            LatencyRule::Execution => 1.0,
            LatencyRule::Queueing => MAX_UTILISATION,
        };
        for instance in instances.iter_mut().flatten() {
            let rate = program.services[instance.service].rate.value.get();
            instance.rate *= (rate / carried[instance.service]).min(most);
        }
        let mut slots = site.nodes.iter().flat_map(|&n| (0..program.nodes[n].count.value).map(move |_| n));
        let used = instances.into_iter().filter(|own| !own.is_empty());
        used.filter_map(|instances| {
            Some(BoardChoice { node: slots.next()?, sharing: Sharing::Mps, clock: site.clock, instances })
        })
        .collect()
    }
}

const UNREGARDED: &str = "this planner does not regard a requirement";
