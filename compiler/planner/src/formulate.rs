//! Program + performance → Problem.
//!
//! Every service gets its usable operating points, with the reason in a diagnostic when it has none.
//! Boards become classes and patterns. Nothing here knows how the problem will be solved.

use crate::problem::{Cell, Class, LimitRow, Pattern, Problem, ServiceProblem, Slot, Weights};
use crate::weights::{idle_power, per_solver_unit, weights};
use ent_lang::Program;
use ent_lang::program::{Arrivals, PerformanceRef, Service};
use ent_performance::PerformanceSet;
use ent_performance::operate::{self, Promise};
use ent_plan::device::{Board, maximal_multisets};
use ent_plan::diagnostic::{Code, Diagnostic, Outcome};
use ent_plan::plan::{LatencyRule, Metric, Sharing};
use ent_plan::units::Megahertz;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

mod energy;
pub(crate) mod points;

/// The problem of a program. With errors, the value is not fit for solving.
#[must_use]
pub fn formulate(
    program: &Program,
    performance: &PerformanceSet,
    metric: Metric,
    rule: LatencyRule,
) -> Outcome<Problem> {
    formulate_with(program, performance, metric, rule, points::Care::Exact, &mut || points::Care::Exact).0
}

/// Operating points under queueing that are worth evaluating one by one.
const MANY_POINTS: usize = 24_000;

/// How much longer an evaluation takes than under Poisson arrivals, about.
fn toil(arrivals: &Arrivals) -> usize {
    match arrivals {
        Arrivals::Gamma { cv } if *cv > 2.0 => 60,
        Arrivals::Gamma { cv } if *cv > 1.0 => 20,
        Arrivals::Gamma { .. } => 4,
        Arrivals::Uniform | Arrivals::Poisson | Arrivals::Trace { .. } => 1,
    }
}

/// With how much care a program can be formulated in reasonable time.
pub(crate) fn care(program: &Program, performance: &PerformanceSet, rule: LatencyRule) -> points::Care {
    if rule == LatencyRule::Execution {
        return points::Care::Exact;
    }
    let mut of_model: BTreeMap<usize, usize> = BTreeMap::new();
    let mut total = 0;
    let (_, distinct) = alike(program);
    for &service in &distinct {
        let service = &program.services[service];
        let points = *of_model.entry(service.model.value).or_insert_with(|| {
            program
                .nodes
                .iter()
                .map(|n| n.board.value)
                .collect::<BTreeSet<_>>()
                .into_iter()
                .filter_map(|b| {
                    Some(performance.get(service.model.value, b)?.points(&program.boards[b]).len())
                })
                .sum()
        });
        total += points * toil(&service.arrivals.value);
    }
    if total <= MANY_POINTS {
        points::Care::Exact
    } else {
        points::Care::Thin((MANY_POINTS / 2 / distinct.len().max(1)).max(12))
    }
}

/// The problem of a program, with admissible rates found with this care, and the least care that was
/// taken: `pace` says before every few services with how much to go on.
pub(crate) fn formulate_with(
    program: &Program,
    performance: &PerformanceSet,
    metric: Metric,
    rule: LatencyRule,
    care: points::Care,
    pace: &mut dyn FnMut() -> points::Care,
) -> (Outcome<Problem>, points::Care) {
    let mut care = care;
    let mut diagnostics = Vec::new();
    let classes = classes(program, &mut diagnostics);
    if let Some(class) = classes.first()
        && classes.iter().all(|c| c.count == 0)
    {
        diagnostics.push(
            Diagnostic::error(
                Code::ConflictingRequirements,
                class.span,
                "these requirements cannot hold together",
            )
            .label("there are no boards, and services to serve")
            .help("give the node at least one board"),
        );
    }
    let objective = weights(program, &classes, metric, &mut diagnostics);
    let limits: Vec<LimitRow> = program
        .objective
        .limits
        .iter()
        .map(|limit| LimitRow {
            metric: limit.metric,
            weights: weights(program, &classes, limit.metric, &mut diagnostics),
            at_most: limit.at_most / per_solver_unit(program, limit.metric),
            span: limit.span,
        })
        .collect();
    let all = || std::iter::once(&objective).chain(limits.iter().map(|l| &l.weights));
    let needs = Needs {
        base: any(all(), |w| w.base != 0.0),
        power: any(all(), |w| w.dynamic != 0.0 || w.mean != 0.0),
        dynamic: any(all(), |w| w.dynamic != 0.0),
        // Boards and cost say nothing of energy: it decides among plans that are equal in them.
        mean: any(all(), |w| w.mean != 0.0) || matches!(metric, Metric::Gpus | Metric::Cost),
    };
    check_board_facts(program, &classes, needs, &mut diagnostics);

    // Equal services have equal points: they are found once.
    let (alike, distinct) = alike(program);
    let mut found: Vec<(points::Wanted, points::Usable)> = Vec::new();
    for few in distinct.chunks(AT_A_TIME) {
        let own = points::Care::lesser(care, pace());
        care = points::Care::lesser(care, own);
        let wanted: Vec<points::Wanted> =
            few.iter().map(|&service| points::Wanted { service, rule, needs, care: own }).collect();
        let usable = in_parallel(&wanted, |&w| points::of_service(program, performance, &classes, w));
        found.extend(wanted.into_iter().zip(usable));
    }
    if care != points::Care::Exact {
        // Points that others beat are of use only while nothing is left out.
        found.iter_mut().for_each(|(wanted, _)| wanted.care = points::Care::lesser(wanted.care, care));
    }
    let mut cells = Cells::default();
    let mut services = Vec::new();
    for (index, service) in program.services.iter().enumerate() {
        let (wanted, usable) = &found[alike[index]];
        let wanted = points::Wanted { service: index, ..*wanted };
        let points = usable.settle(program, &mut cells, wanted, &mut diagnostics);
        let replicas = service.replicas.as_ref().map_or((1, u32::MAX), |r| (r.value.min.max(1), r.value.max));
        services.push(ServiceProblem {
            index,
            name: service.name.value.clone(),
            rate: service.rate.value.get(),
            replicas,
            spread: service.spread.as_ref().map(|s| s.value),
            points: points::undominated(points, wanted),
        });
    }
    let patterns = patterns(program, &classes, &cells.list);
    let problem = Problem { services, classes, cells: cells.list, patterns, metric, objective, limits, rule };
    (Outcome { value: problem, diagnostics }, care)
}

/// Services formulated between two looks at the time.
const AT_A_TIME: usize = 4;

/// Which services have the same points: the kind of each, and the first service of each kind.
pub(crate) fn alike(program: &Program) -> (Vec<usize>, Vec<usize>) {
    let mut kinds: Vec<usize> = Vec::new();
    let mut firsts: Vec<usize> = Vec::new();
    for (index, service) in program.services.iter().enumerate() {
        let same = firsts.iter().position(|&first| are_alike(&program.services[first], service));
        kinds.push(same.unwrap_or(firsts.len()));
        if same.is_none() {
            firsts.push(index);
        }
    }
    (kinds, firsts)
}

/// Whether two services have the same points.
fn are_alike(one: &Service, other: &Service) -> bool {
    let is_plain = |s: &Service| s.pin.is_none() && !s.isolate.as_ref().is_some_and(|i| i.value);
    is_plain(one)
        && is_plain(other)
        && one.model.value == other.model.value
        && one.rate.value == other.rate.value
        && one.slo.value == other.slo.value
        && one.arrivals.value == other.arrivals.value
}

/// What is wrong with each service by itself: promises that no operating point keeps, pins and memory
/// that leave nothing. Cheap: queues are evaluated only for services that look impossible or restricted.
#[must_use]
pub fn alone(program: &Program, performance: &PerformanceSet, rule: LatencyRule) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut ignored = Vec::new();
    let classes = classes(program, &mut ignored);
    let needs = Needs { base: false, power: false, dynamic: false, mean: false };
    // Many models may share one entry of a performance file; its points are looked through once.
    let mut fastest: BTreeMap<(Vec<&PerformanceRef>, Option<&str>), f64> = BTreeMap::new();
    let mut cells = Cells::default();
    for (index, service) in program.services.iter().enumerate() {
        let model = service.model.value;
        let references: Vec<&PerformanceRef> =
            program.models[model].performance.iter().map(|p| &p.value).collect();
        let is_by_name = references.iter().any(|r| r.entry.is_none());
        let by_name = is_by_name.then(|| program.models[model].name.value.as_str());
        let least = *fastest
            .entry((references, by_name))
            .or_insert_with(|| points::fastest(program, performance, &classes, model, rule));
        let is_restricted = service.pin.is_some() || program.models[model].memory.is_some();
        if !is_restricted && service.slo.value.bound.get() >= least {
            continue;
        }
        let wanted = points::Wanted { service: index, rule, needs, care: points::Care::Exact };
        let usable = points::of_service(program, performance, &classes, wanted);
        let _points = usable.settle(program, &mut cells, wanted, &mut diagnostics);
    }
    diagnostics
}

/// Applies a function to all items on the processor's cores; results in the order of the items.
fn in_parallel<T: Sync, R: Send>(items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(items.len()).max(1);
    let next = AtomicUsize::new(0);
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let work = || {
            let mut own = Vec::new();
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && let Some(item) = items.get(index)
            {
                own.push((index, apply(item)));
            }
            own
        };
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(found) => all.extend(found),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, result)| result).collect()
}

/// Which facts the objective and the limits need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    pub(crate) base: bool,
    pub(crate) power: bool,
    pub(crate) dynamic: bool,
    pub(crate) mean: bool,
}

fn any<'a>(
    mut all: impl Iterator<Item = &'a Weights>,
    test: impl Fn(&crate::problem::ClassWeights) -> bool,
) -> bool {
    all.any(|w| w.classes.iter().any(&test))
}

/// The promise of a service under a rule.
pub(crate) fn promise(service: &Service, rule: LatencyRule) -> Promise<'_> {
    Promise {
        rule,
        arrivals: &service.arrivals.value,
        percentile: service.slo.value.percentile,
        bound: service.slo.value.bound.get(),
    }
}

/// Cells by first use.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    list: Vec<Cell>,
    index: BTreeMap<Cell, usize>,
}

impl Cells {
    fn of(&mut self, cell: Cell) -> usize {
        let list = &mut self.list;
        *self.index.entry(cell).or_insert_with(|| {
            list.push(cell);
            list.len() - 1
        })
    }
}

/// Nodes that differ in nothing a plan can see are one class.
fn classes(program: &Program, diagnostics: &mut Vec<Diagnostic>) -> Vec<Class> {
    let pinned: BTreeSet<&str> = program
        .services
        .iter()
        .filter_map(|s| s.pin.as_ref()?.value.node.as_ref())
        .map(|n| n.value.as_str())
        .collect();
    let mut classes: Vec<Class> = Vec::new();
    for (index, node) in program.nodes.iter().enumerate() {
        if node.sharing == Sharing::Mps {
            diagnostics.push(
                Diagnostic::error(
                    Code::PlannerLimitation,
                    node.name.span,
                    "this planner does not share boards by MPS",
                )
                .label("`sharing = mps`")
                .help("write `sharing = mig` or `sharing = whole`"),
            );
            continue;
        }
        let same = |class: &&mut Class| {
            let other = &program.nodes[class.nodes[0]];
            !pinned.contains(node.name.value.as_str())
                && !pinned.contains(other.name.value.as_str())
                && other.board.value == node.board.value
                && other.unused == node.unused
                && other.sharing == node.sharing
                && other.price.as_ref().map(|p| p.value) == node.price.as_ref().map(|p| p.value)
                && other.pue == node.pue
                && other.clocks.as_ref().map(|c| &c.value) == node.clocks.as_ref().map(|c| &c.value)
        };
        match classes.iter_mut().find(same) {
            Some(class) => {
                class.nodes.push(index);
                class.count = class.count.saturating_add(node.count.value);
            }
            None => classes.push(Class {
                nodes: vec![index],
                board: node.board.value,
                count: node.count.value,
                sharing: node.sharing,
                span: node.count.span,
            }),
        }
    }
    classes
}

fn check_board_facts(program: &Program, classes: &[Class], needs: Needs, diagnostics: &mut Vec<Diagnostic>) {
    for class in classes {
        let board = &program.boards[class.board];
        let node = &program.nodes[class.nodes[0]];
        let missing = |what: &str, help: String| {
            Diagnostic::error(Code::MissingBoardFact, node.board.span, "a fact about the board is not known")
                .label(format!("the {what} of `{}` is in no catalogue", board.id))
                .help(help)
        };
        let own = |line: &str| {
            format!(
                "supply it in a board of your own: `board mine {{ base = {}  {line} }}`",
                board.id.replace('-', "_")
            )
        };
        if needs.base && board.base_power.is_none() {
            diagnostics.push(missing("base power", own("base_power = [210 MHz: 43.8 W, …]")));
        } else if needs.base && idle_power(program, node).is_none() {
            diagnostics.push(missing("idle power", own("base_power = [210 MHz: 43.8 W, …]")));
        }
        if board.clocks.is_empty() {
            diagnostics.push(missing("clock ladder", own("clocks = 210 MHz .. 1410 MHz step 15 MHz")));
        }
    }
}

/// A way to cut a board: how many places of each slot.
type Way = Vec<(Slot, u32)>;

/// The slot and clock of every board that instances could use.
fn patterns(program: &Program, classes: &[Class], cells: &[Cell]) -> Vec<Pattern> {
    // By class, isolation and clock: which profiles have a point there.
    let mut wanted: BTreeMap<(usize, Option<usize>, Megahertz), BTreeMap<Slot, usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        wanted.entry((cell.class, cell.isolated, cell.clock)).or_default().insert(cell.slot, index);
    }
    let mut layouts: BTreeMap<(usize, Vec<Slot>), Vec<Way>> = BTreeMap::new();
    let mut patterns = Vec::new();
    for ((class, isolated, clock), slots) in wanted {
        let board = &program.boards[classes[class].board];
        let base = board.base_power.as_ref().and_then(|b| b.at(clock)).map_or(0.0, |w| w.get());
        let kinds: Vec<Slot> = slots.keys().copied().collect();
        let own = layouts.entry((classes[class].board, kinds.clone())).or_insert_with(|| ways(board, &kinds));
        for way in own.iter() {
            let places = way.iter().filter_map(|(slot, n)| slots.get(slot).map(|&cell| (cell, *n))).collect();
            patterns.push(Pattern { class, isolated, clock, base, places });
        }
    }
    patterns
}

/// The ways to cut a board into these slots to which nothing can be added.
fn ways(board: &Board, slots: &[Slot]) -> Vec<Way> {
    if slots.contains(&Slot::Whole) {
        return vec![vec![(Slot::Whole, 1)]];
    }
    maximal_multisets(board, |profile| slots.contains(&Slot::Profile(profile)))
        .into_iter()
        .map(|counts| {
            counts
                .into_iter()
                .enumerate()
                .filter(|(_, n)| *n > 0)
                .map(|(profile, n)| (Slot::Profile(profile), n))
                .collect()
        })
        .collect()
}

/// The admissible rate of an operating point for a service (req/s).
pub(crate) fn admissible(
    prediction: &ent_performance::Prediction,
    processes: u32,
    service: &Service,
    rule: LatencyRule,
) -> f64 {
    operate::admissible(prediction, processes, promise(service, rule))
}
