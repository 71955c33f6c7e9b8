//! Program → FGD's input, and its decision → plan.

use super::{Decision, Input, Node, Request as Pod, WHOLE, decide, typical};
use crate::assemble::{BoardChoice, InstanceChoice};
use crate::published::site::{Known, Site, SplitBy, limitation, no_plan};
use crate::published::{Mode, Request};
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Diagnostic, Outcome};
use ent_plan::plan::{Plan, Sharing};
use ent_plan::units::Megahertz;
use std::collections::BTreeMap;

/// The planner's name.
pub const NAME: &str = "fgd";

/// What FGD is given and does not decide.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FgdInput {
    /// By service, as far as given: what an instance gets.
    pub allocations: Vec<Option<Allocation>>,
}

/// A part of a board and a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Compute slices.
    pub slices: u32,
    /// Requests per batch.
    pub batch: u32,
}

/// What the published runs gave FGD, by model: slices and batch (`GPU_Alloc` and `BS` of EnerTune's
/// workload file; a batch of -1 means 1).
const PUBLISHED: [(&str, u32, u32); 13] = [
    ("resnet50", 4, 16),
    ("mobilenet_v3_large", 1, 4),
    ("vgg11", 3, 2),
    ("resnet152", 4, 2),
    ("densenet169", 3, 4),
    ("densenet161", 3, 4),
    ("efficientnet_b5", 2, 2),
    ("inception_v3", 1, 2),
    ("vgg19", 2, 2),
    ("diffusion_1024_1024", 4, 1),
    ("diffusion_256_256", 3, 1),
    ("whisper", 3, 1),
    ("gpt", 4, 1),
];

/// Places like FGD: one instance a service, at the highest clock, on the part of a board it is given.
///
/// The part and the batch are those of `given`; else those the service is pinned to; else those of the
/// published runs, by the model's name; else the fewest slices, then the smallest batch, that carry the
/// rate within the promise, or the most capacity when none does. A batch that nobody measured becomes the
/// next larger one. [`Mode::Conformant`] counts thousandths of a board, [`Mode::Native`] sevenths.
///
/// Errors: [`ent_plan::diagnostic::Code::PlannerLimitation`] when there are no boards it knows. Warnings
/// of the same kind for what it does not look at and for what its plan misses.
#[must_use]
pub fn plan(
    program: &Program,
    performance: &PerformanceSet,
    request: Request,
    given: &FgdInput,
) -> Outcome<Plan> {
    let mut diagnostics = Vec::new();
    let site = Site::of(program, performance, NAME, request, &mut diagnostics);
    let Some(site) = site else { return no_plan(program, performance, NAME, request, diagnostics) };
    if let Some(first) = program.services.first() {
        diagnostics.push(
            limitation(NAME, first.slo.span, "does not look at latencies or rates")
                .label("parts of boards are given to it; it only says where they go"),
        );
    }
    let Some(clock) = site.highest_clock() else { return site.plan(&[], diagnostics) };
    let wanted: Vec<(usize, Known)> = (0..program.services.len())
        .filter_map(|s| Some((s, choose(program, &site, s, clock, given, &mut diagnostics)?)))
        .collect();
    let pods: Vec<Pod> = wanted.iter().map(|(_, known)| pod(known, request.mode)).collect();
    let nodes = nodes(program, &site, pods.len());
    let expected = typical(&pods, 1, 0.95);
    let decision = decide(&Input { nodes, pods, typical: expected }, request.mode);
    let mut boards = boards(&site, &wanted, &decision, clock);
    boards.iter_mut().for_each(|b| site.lay_out(b));
    site.split(&mut boards, SplitBy::Capacity);
    site.plan(&boards, diagnostics)
}

/// The operating point that a service is given.
fn choose(
    program: &Program,
    site: &Site<'_>,
    index: usize,
    clock: Megahertz,
    given: &FgdInput,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Known> {
    let service = &program.services[index];
    let model = program.models[service.model.value].name.value.as_str();
    let pin = service.pin.as_ref().map(|p| &p.value);
    let pinned_slices = pin.and_then(|p| p.profile.as_ref()).and_then(|name| {
        let profile = site.facts().profile(&name.value)?;
        Some(profile.n_compute_slices)
    });
    let pinned_batch = pin.and_then(|p| p.batch.as_ref()).map(|b| b.value);
    let published = PUBLISHED.iter().find(|(name, ..)| *name == model);
    let explicit = given.allocations.get(index).copied().flatten();
    let slices = explicit.map(|a| a.slices).or(pinned_slices).or(published.map(|p| p.1));
    let batch = explicit.map(|a| a.batch).or(pinned_batch).or(published.map(|p| p.2));
    let mut known = site.known(index, |key| key.clock == clock && key.processes == 1);
    known.retain(|k| slices.is_none_or(|s| s == k.slices));
    known.sort_by_key(|k| (k.slices, k.key.batch));
    let Some(batch) = batch else {
        let most = |a: &Known, b: &Known| a.prediction.capacity(1).total_cmp(&b.prediction.capacity(1));
        return match known.iter().position(|k| site.carries(index, k)) {
            Some(at) => Some(known.swap_remove(at)),
            None => known.into_iter().max_by(most),
        };
    };
    let at = known.iter().position(|k| k.key.batch >= batch).or_else(|| known.len().checked_sub(1));
    let chosen = at.map(|at| known.swap_remove(at));
    match &chosen {
        Some(known) if known.key.batch != batch => diagnostics.push(
            limitation(NAME, service.name.span, "is given a batch that nobody measured")
                .label(format!("batch {} instead of {batch} for `{}`", known.key.batch, service.name.value)),
        ),
        _ => {}
    }
    chosen
}

/// One GPU's share, in thousandths.
fn pod(known: &Known, mode: Mode) -> Pod {
    let share = WHOLE * f64::from(known.slices) / 7.0;
    let share = match mode {
        Mode::Conformant => share.round(),
        Mode::Native => share,
    };
    Pod { share, gpus: 1, ..Pod::default() }
}

/// The program's nodes; boards beyond one for each pod are never needed.
fn nodes(program: &Program, site: &Site<'_>, pods: usize) -> Vec<Node> {
    let node = |(node, count): &(usize, u32)| Node {
        name: program.nodes[*node].name.value.clone(),
        gpus: (*count as usize).min(pods),
        cpu: 0.0,
        memory: 0.0,
        gpu_type: String::new(),
    };
    site.nodes.iter().map(node).collect()
}

fn boards(
    site: &Site<'_>,
    wanted: &[(usize, Known)],
    decision: &Decision,
    clock: Megahertz,
) -> Vec<BoardChoice> {
    let mut boards: BTreeMap<(usize, usize), BoardChoice> = BTreeMap::new();
    for ((service, known), placement) in wanted.iter().zip(&decision.placements) {
        let Some(placement) = placement else { continue };
        let Some((node, _)) = site.nodes.get(placement.node) else { continue };
        for gpu in &placement.gpus {
            let board = boards.entry((placement.node, *gpu)).or_insert_with(|| BoardChoice {
                node: *node,
                sharing: Sharing::Mig,
                clock,
                instances: Vec::new(),
            });
            board.instances.push(InstanceChoice {
                service: *service,
                profile: known.key.profile,
                start: None,
                mps_percent: None,
                processes: known.key.processes,
                batch: known.key.batch,
                rate: 0.0,
                prediction: None,
            });
        }
    }
    boards.into_values().collect()
}
