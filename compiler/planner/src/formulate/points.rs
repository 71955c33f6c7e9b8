//! One service → its usable operating points, or the reason why it has none.

use super::energy::least_energies;
use super::{Cells, Needs, admissible, promise};
use crate::problem::{Cell, Class, Point, RATE_PARTS, Slot};
use ent_lang::Program;
use ent_lang::program::{Model, Pin, Service};
use ent_performance::operate;
use ent_performance::{ModelPerformance, PerformanceSet, PointKey, Prediction};
use ent_plan::device::Board;
use ent_plan::diagnostic::{Code, Diagnostic};
use ent_plan::plan::{LatencyRule, Sharing};
use ent_plan::units::Megahertz;
use std::collections::{BTreeMap, BTreeSet};

/// For whom, under which rule, with which facts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) service: usize,
    pub(super) rule: LatencyRule,
    pub(super) needs: Needs,
    pub(super) care: Care,
}

impl Wanted {
    /// Whether points that others beat may matter: energies that are bounds decide nothing. With points
    /// left out, or admissible rates that are bounds themselves, no optimum is claimed.
    pub(super) fn keeps_beaten(self) -> bool {
        self.rule == LatencyRule::Queueing && self.needs.mean && self.care == Care::Exact
    }
}

/// How carefully admissible rates are found under queueing, where each takes an evaluation of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Care {
    /// Every point, exactly.
    Exact,
    /// About this many points of each service, exactly; the others are left out.
    Thin(usize),
    /// Every point, at the most it could admit: for a bound on all plans.
    Optimistic,
}

impl Care {
    /// The lesser of two.
    pub(crate) fn lesser(self, other: Self) -> Self {
        match (self, other) {
            (Self::Optimistic, _) | (_, Self::Optimistic) => Self::Optimistic,
            (Self::Thin(a), Self::Thin(b)) => Self::Thin(a.min(b)),
            (Self::Thin(n), Self::Exact) | (Self::Exact, Self::Thin(n)) => Self::Thin(n),
            (Self::Exact, Self::Exact) => Self::Exact,
        }
    }
}

/// Why candidates were left out, to say so when none remain.
#[derive(Default)]
struct Refused {
    memory: Option<(f64, f64, String)>,
    unknown_memory: Option<String>,
    power: bool,
    pin: bool,
    /// Least latency seen (s), and at which point.
    latency: Option<(f64, String)>,
    candidates: usize,
}

/// What was found for one service: points without a cell, and why others were left out.
pub(super) struct Usable {
    points: Vec<(Cell, Point)>,
    refused: Refused,
    has_data: bool,
    has_boards: bool,
}

impl Usable {
    /// Gives the points their cells; a diagnostic when there are none.
    pub(super) fn settle(
        &self,
        program: &Program,
        cells: &mut Cells,
        wanted: Wanted,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<Point> {
        let service = &program.services[wanted.service];
        if self.points.is_empty() && self.has_data && self.has_boards {
            let model = &program.models[service.model.value];
            diagnostics.push(self.refused.explain(service, model, wanted.rule));
        }
        self.points.iter().map(|(cell, point)| Point { cell: cells.of(*cell), ..point.clone() }).collect()
    }
}

/// The usable operating points of a service.
pub(super) fn of_service(
    program: &Program,
    performance: &PerformanceSet,
    classes: &[Class],
    wanted: Wanted,
) -> Usable {
    let service = &program.services[wanted.service];
    let model = &program.models[service.model.value];
    let pin = service.pin.as_ref().map(|p| &p.value);
    let isolated = service.isolate.as_ref().is_some_and(|i| i.value).then_some(wanted.service);
    let mut found = Usable {
        points: Vec::new(),
        refused: Refused::default(),
        has_data: false,
        has_boards: classes.iter().any(|c| c.count > 0),
    };
    for (class_index, class) in classes.iter().enumerate() {
        let Some(known) = performance.get(service.model.value, class.board) else { continue };
        found.has_data = true;
        let board = &program.boards[class.board];
        let node = &program.nodes[class.nodes[0]];
        if class.count == 0 {
            continue;
        }
        if pin.and_then(|p| p.node.as_ref()).is_some_and(|n| n.value != node.name.value) {
            found.refused.pin = true;
            continue;
        }
        let whole = (class.sharing == Sharing::Whole).then(|| whole_profile(board)).flatten();
        let mut keys = candidates(known, board, pin);
        // Largest batch first within a cell: it usually beats the smaller ones before they are evaluated.
        keys.sort_by_key(|k| (k.profile, k.clock, k.processes, std::cmp::Reverse(k.batch)));
        if let Care::Thin(most) = wanted.care {
            keys = thinned(keys, most);
        }
        for key in keys {
            if !board.profiles.get(key.profile).is_some_and(|p| p.is_base) {
                continue;
            }
            if class.sharing == Sharing::Whole && Some(key.profile) != whole {
                continue;
            }
            if node.clocks.as_ref().is_some_and(|c| !c.value.contains(&key.clock)) {
                continue;
            }
            if wanted.needs.base && board.base_power.as_ref().and_then(|b| b.at(key.clock)).is_none() {
                continue;
            }
            if !is_pinned(pin, board, key) {
                found.refused.pin = true;
                continue;
            }
            found.refused.candidates += 1;
            if !fits(model, board, class.sharing, key, &mut found.refused) {
                continue;
            }
            let Some(prediction) = known.predict(board, key) else { continue };
            if wanted.needs.power && prediction.dynamic_power.is_empty() {
                found.refused.power = true;
                continue;
            }
            let slot = if class.sharing == Sharing::Whole { Slot::Whole } else { Slot::Profile(key.profile) };
            let cell = Cell { class: class_index, isolated, slot, clock: key.clock };
            let own = found.points.iter().rev().take_while(|(c, _)| *c == cell).map(|(_, p)| p);
            // No point admits more than its capacity: one that loses even then need not be evaluated.
            if !wanted.keeps_beaten() {
                let most = prediction.capacity(key.processes);
                let best = point(key, most, &prediction, service, wanted.rule, 1);
                if own.clone().any(|p| beats(p, &best, wanted.needs)) {
                    continue;
                }
            }
            let rate = if wanted.care == Care::Optimistic {
                most_admissible(&prediction, key.processes, service, wanted.rule)
            } else {
                admissible(&prediction, key.processes, service, wanted.rule)
            };
            if rate <= 0.0 || !rate.is_finite() {
                found.refused.too_slow(&prediction, wanted.rule, board, key);
                continue;
            }
            // Bounds on all plans count energies linearly.
            let n_parts = if wanted.care == Care::Optimistic { 1 } else { RATE_PARTS };
            found.points.push((cell, point(key, rate, &prediction, service, wanted.rule, n_parts)));
        }
    }
    found
}

/// No operating point admits more than this (req/s): its capacity, if a lone request is in time.
fn most_admissible(prediction: &Prediction, processes: u32, service: &Service, rule: LatencyRule) -> f64 {
    if least_latency(prediction, rule) <= service.slo.value.bound.get() {
        operate::MAX_UTILISATION * prediction.capacity(processes)
    } else {
        0.0
    }
}

/// About `most` of the keys: for every profile the largest and a middle batch, at clocks evenly apart.
fn thinned(keys: Vec<PointKey>, most: usize) -> Vec<PointKey> {
    let profiles: BTreeSet<usize> = keys.iter().map(|k| k.profile).collect();
    let batches: Vec<u32> = keys.iter().map(|k| k.batch).collect::<BTreeSet<_>>().into_iter().collect();
    let clocks: Vec<Megahertz> = keys.iter().map(|k| k.clock).collect::<BTreeSet<_>>().into_iter().collect();
    let (Some(&last), Some(&middle)) = (batches.last(), batches.get(batches.len() / 2)) else { return keys };
    let n = (most / (2 * profiles.len()).max(1)).clamp(2, clocks.len().max(2));
    let kept: BTreeSet<Megahertz> =
        (0..n).filter_map(|i| clocks.get(i * (clocks.len() - 1) / (n - 1)).copied()).collect();
    keys.into_iter().filter(|k| kept.contains(&k.clock) && (k.batch == last || k.batch == middle)).collect()
}

/// Whether a point is at least as good as another of its cell in every way that counts.
fn beats(point: &Point, other: &Point, needs: Needs) -> bool {
    point.admissible >= other.admissible
        && (!needs.dynamic || point.dynamic <= other.dynamic)
        && (!needs.mean || point.energy <= other.energy)
}

/// A point that has no cell yet.
fn point(
    key: PointKey,
    admissible: f64,
    prediction: &Prediction,
    service: &Service,
    rule: LatencyRule,
    n_parts: usize,
) -> Point {
    let dynamic = prediction.dynamic_power.last().map_or(0.0, |d| d.get());
    let (energy, floors) = match rule {
        LatencyRule::Execution => {
            let capacity = prediction.capacity(key.processes);
            (if capacity > 0.0 { dynamic / capacity } else { 0.0 }, Vec::new())
        }
        LatencyRule::Queueing => {
            let rate = service.rate.value.get();
            let most = admissible.min(rate);
            let parts = (1..=n_parts).map(|part| most.min(rate * part as f64 / n_parts as f64));
            let floors = least_energies(prediction, key.processes, promise(service, rule), parts);
            let energy = floors.last().copied().unwrap_or(0.0);
            (energy, if n_parts == RATE_PARTS { floors } else { Vec::new() })
        }
    };
    Point { cell: usize::MAX, key, admissible, dynamic, energy, floors, is_beaten: false }
}

/// The profile that stands for the whole board: the largest.
fn whole_profile(board: &Board) -> Option<usize> {
    (0..board.profiles.len())
        .filter(|&p| board.profiles[p].is_base)
        .max_by_key(|&p| board.profiles[p].n_memory_slices)
}

/// What the performance data can answer for, with a pinned batch or clock in place of the usual ones.
fn candidates(known: &ModelPerformance, board: &Board, pin: Option<&Pin>) -> Vec<PointKey> {
    let mut keys = known.points(board);
    let Some(pin) = pin else { return keys };
    if let Some(batch) = &pin.batch
        && !keys.iter().any(|k| k.batch == batch.value)
    {
        keys.iter_mut().for_each(|k| k.batch = batch.value);
    }
    if let Some(clock) = &pin.clock
        && !keys.iter().any(|k| k.clock == clock.value)
    {
        keys.iter_mut().for_each(|k| k.clock = clock.value);
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn is_pinned(pin: Option<&Pin>, board: &Board, key: PointKey) -> bool {
    let Some(pin) = pin else { return true };
    pin.profile.as_ref().is_none_or(|p| board.profiles[key.profile].name == p.value)
        && pin.batch.as_ref().is_none_or(|b| b.value == key.batch)
        && pin.clock.as_ref().is_none_or(|c| c.value == key.clock)
        && pin.processes.as_ref().is_none_or(|p| p.value == key.processes)
}

/// Whether the model's declared memory fits.
fn fits(model: &Model, board: &Board, sharing: Sharing, key: PointKey, refused: &mut Refused) -> bool {
    let Some(need) = model.memory.as_ref().map(|m| m.value.get() * f64::from(key.processes)) else {
        return true;
    };
    let profile = &board.profiles[key.profile];
    let have = if sharing == Sharing::Whole { board.memory.or(profile.memory) } else { profile.memory };
    match have {
        None => {
            refused.unknown_memory = Some(profile.name.clone());
            false
        }
        Some(have) if need <= have.get() => true,
        Some(have) => {
            if refused.memory.as_ref().is_none_or(|(most, ..)| have.get() > *most) {
                refused.memory = Some((have.get(), need, profile.name.clone()));
            }
            false
        }
    }
}

impl Refused {
    fn too_slow(&mut self, prediction: &Prediction, rule: LatencyRule, board: &Board, key: PointKey) {
        let least = least_latency(prediction, rule);
        if self.latency.as_ref().is_none_or(|(best, _)| least < *best) {
            self.latency = Some((least, name(board, key)));
        }
    }

    fn explain(&self, service: &Service, model: &Model, rule: LatencyRule) -> Diagnostic {
        let who = &service.name.value;
        if let Some((least, at)) = &self.latency {
            let bound = round_up(*least);
            let percentile = percentile_word(service.slo.value.percentile);
            return Diagnostic::error(
                Code::LatencyOutOfReach,
                service.slo.span,
                format!("no operating point of `{who}` meets its latency"),
            )
            .label(format!(
                "the fastest one ({at}) is predicted at {}{}",
                time(*least),
                if rule == LatencyRule::Execution { " of execution" } else { " for a lone request" }
            ))
            .help(if rule == LatencyRule::Execution {
                format!("raise the bound: the tightest feasible promise is `{percentile} <= {}`", time(bound))
            } else {
                format!("raise the bound above {}: requests also wait for each other", time(bound))
            });
        }
        if let Some((have, need, profile)) = &self.memory {
            let span = model.memory.as_ref().map_or(service.model.span, |m| m.span);
            return Diagnostic::error(
                Code::MemoryOutOfReach,
                span,
                format!("`{who}` fits on no instance it could use"),
            )
            .label(format!(
                "needs {:.2} GiB; the largest usable profile, `{profile}`, has {:.2} GiB",
                need / GIB,
                have / GIB
            ))
            .help("lower `memory`, or add boards with larger profiles");
        }
        if let Some(profile) = &self.unknown_memory {
            return Diagnostic::error(
                Code::MissingBoardFact,
                service.model.span,
                "a fact about the board is not known",
            )
            .label(format!(
                "the memory of `{profile}` is in no catalogue, and `{}` declares its need",
                model.name.value
            ))
            .help("supply the profile's memory in a board of your own, or drop `memory` from the model");
        }
        if self.power {
            return Diagnostic::error(
                Code::SloWithoutMeasurement,
                service.model.span,
                format!("`{}` has no power measurements", model.name.value),
            )
            .label("the objective or a limit counts watts")
            .help("minimise `gpus` or `cost`, or supply performance data with power");
        }
        let pin = service.pin.as_ref();
        Diagnostic::error(
            Code::PinOutOfReach,
            pin.map_or(service.name.span, |p| p.span),
            format!("no operating point of `{who}` is what it is pinned to"),
        )
        .label(if self.candidates == 0 && self.pin {
            "no measured or modelled point has this profile, batch, clock, processes and node"
        } else {
            "nothing on the hardware can carry it"
        })
        .help("loosen the pin, or supply performance data for that point")
    }
}

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// The least latency an operating point can promise (s): of execution, or of a lone request under queueing.
fn least_latency(prediction: &Prediction, rule: LatencyRule) -> f64 {
    match rule {
        LatencyRule::Execution => prediction.latency_p99.get(),
        LatencyRule::Queueing => {
            let first = prediction.batch_times.first().map_or(f64::INFINITY, |t| t.get());
            let full = prediction.batch_times.last().map_or(f64::INFINITY, |t| t.get());
            let tail = (prediction.latency_p99.get() - full).max(0.0);
            (first + tail) * operate::SAFETY
        }
    }
}

/// The least latency that a model can promise on any of these boards (s), and where.
pub(super) fn fastest(
    program: &Program,
    performance: &PerformanceSet,
    classes: &[Class],
    model: usize,
    rule: LatencyRule,
) -> f64 {
    let mut least = f64::INFINITY;
    for class in classes {
        let Some(known) = performance.get(model, class.board) else { continue };
        let board = &program.boards[class.board];
        for key in known.points(board) {
            if let Some(prediction) = known.predict(board, key) {
                least = least.min(least_latency(&prediction, rule));
            }
        }
    }
    least
}

fn name(board: &Board, key: PointKey) -> String {
    let profile = board.profiles.get(key.profile).map_or("?", |p| p.name.as_str());
    let processes = if key.processes > 1 { format!(", {} processes", key.processes) } else { String::new() };
    format!("{profile}, batch {}, {}{processes}", key.batch, key.clock)
}

/// A time in the unit a person would choose.
pub(crate) fn time(seconds: f64) -> String {
    if seconds >= 1.0 { format!("{} s", digits(seconds)) } else { format!("{} ms", digits(seconds * 1e3)) }
}

/// Four significant digits, no trailing zeros.
fn digits(value: f64) -> String {
    let decimals = (3 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Up to the next number with three significant digits.
fn round_up(seconds: f64) -> f64 {
    let scale = 10f64.powi(2 - seconds.max(1e-9).log10().floor() as i32);
    (seconds * scale * (1.0 - 1e-12)).ceil() / scale
}

/// `p99` of 0.99.
pub(crate) fn percentile_word(percentile: f64) -> String {
    format!("p{}", digits(percentile * 100.0))
}

/// Removes points that another of the same cell beats in every way that counts, or marks them.
pub(super) fn undominated(points: Vec<Point>, wanted: Wanted) -> Vec<Point> {
    let needs = wanted.needs;
    let mut by_cell: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
    for point in points {
        by_cell.entry(point.cell).or_default().push(point);
    }
    let mut kept = Vec::new();
    for (_, own) in by_cell {
        let key = |p: &Point| {
            (
                -p.admissible,
                if needs.dynamic { p.dynamic } else { 0.0 },
                if needs.mean { p.energy } else { 0.0 },
            )
        };
        for (index, point) in own.iter().enumerate() {
            let (a, b, c) = key(point);
            let beaten = own.iter().enumerate().any(|(other, p)| {
                let (x, y, z) = key(p);
                x <= a && y <= b && z <= c && ((x, y, z) != (a, b, c) || other < index)
            });
            if !beaten || wanted.keeps_beaten() {
                kept.push(Point { is_beaten: beaten, ..point.clone() });
            }
        }
    }
    kept
}
