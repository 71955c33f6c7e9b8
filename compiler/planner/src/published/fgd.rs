//! FGD (ATC'23): each pod goes where it adds the least expected fragmentation.
//!
//! A node's fragment is what a pod drawn from the *typical* pods could not use of its idle GPU share
//! (`fragment`). Pods come one by one; each goes to the node, and on it to the GPU, whose fragment
//! grows least. Shares are given: nothing here knows of rates, latencies, batches or clocks.

mod fragment;
mod program;

pub use fragment::{Class, fragment, typical};
pub use program::{Allocation, FgdInput, NAME, plan};

use super::Mode;
use std::collections::BTreeMap;

/// A whole GPU, in thousandths.
pub const WHOLE: f64 = 1000.0;

/// Shares of GPUs that differ by less than this (thousandths) are equal.
pub(super) const TOLERANCE: f64 = 1e-6;

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name; among nodes of equal score the smallest name wins. The original puts a random four-digit
    /// permutation in front.
    pub name: String,
    /// How many GPUs it has.
    pub gpus: usize,
    /// CPU (thousandths of a core).
    pub cpu: f64,
    /// Memory (MiB).
    pub memory: f64,
    /// Type of its GPUs.
    pub gpu_type: String,
}

/// What a pod asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// CPU (thousandths of a core).
    pub cpu: f64,
    /// Memory (MiB).
    pub memory: f64,
    /// Share of each of its GPUs, in thousandths.
    pub share: f64,
    /// How many GPUs; 0 for a pod that uses none.
    pub gpus: usize,
    /// GPU types it accepts, with `|` between them; empty: any.
    pub gpu_type: String,
}

impl Request {
    pub(super) fn uses_gpu(&self) -> bool {
        self.gpus > 0 && self.share > 0.0
    }

    /// Whether GPUs of this type will do.
    pub(super) fn accepts(&self, gpu_type: &str) -> bool {
        self.gpu_type.is_empty() || self.gpu_type.split('|').any(|t| t == gpu_type)
    }

    /// A key that is equal for equal requests.
    fn key(&self) -> (u64, u64, u64, usize, String) {
        let bits = |x: f64| (x + 0.0).to_bits();
        (bits(self.cpu), bits(self.memory), bits(self.share), self.gpus, self.gpu_type.clone())
    }
}

/// What to decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// The servers.
    pub nodes: Vec<Node>,
    /// The pods, in the order they come.
    pub pods: Vec<Request>,
    /// The pods that are expected, with their probabilities; see [`typical`].
    pub typical: Vec<Class>,
}

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index into [`Input::nodes`].
    pub node: usize,
    /// The GPUs, ascending.
    pub gpus: Vec<usize>,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// By pod; `None` for one that no node has room for. The original logs those and goes on.
    pub placements: Vec<Option<Placement>>,
    /// Fragment of all nodes at the end (thousandths of a GPU).
    pub fragment: f64,
}

/// A server and what is left of it.
#[derive(Clone, Debug)]
pub struct State<'a> {
    pub(super) node: &'a Node,
    /// CPU left (thousandths of a core).
    pub(super) cpu: f64,
    memory: f64,
    /// Left of each GPU (thousandths).
    pub(super) left: Vec<f64>,
}

impl<'a> State<'a> {
    /// A node with nothing on it.
    #[must_use]
    pub fn idle(node: &'a Node) -> Self {
        Self { node, cpu: node.cpu, memory: node.memory, left: vec![WHOLE; node.gpus] }
    }

    fn has_room(&self, pod: &Request) -> bool {
        let basics = self.cpu + TOLERANCE >= pod.cpu && self.memory + TOLERANCE >= pod.memory;
        if !basics || !pod.uses_gpu() {
            return basics;
        }
        // A GPU may serve several of the pod's GPUs.
        let places: f64 = self.left.iter().map(|l| ((l + TOLERANCE) / pod.share).floor()).sum();
        pod.accepts(&self.node.gpu_type) && places >= pod.gpus as f64
    }

    fn fits(&self, gpu: usize, share: f64) -> bool {
        self.left[gpu] + TOLERANCE >= share
    }
}

/// How good a node is for a pod, and the GPUs the pod would get.
#[derive(Clone, Debug)]
struct Offer {
    score: f64,
    gpus: Vec<usize>,
}

/// Decides like FGD.
///
/// [`Mode::Conformant`]: scores are truncated to whole numbers from 0 to 100, so that many are equal
/// and names decide. [`Mode::Native`]: scores are real.
#[must_use]
pub fn decide(input: &Input, mode: Mode) -> Decision {
    let mut states: Vec<State<'_>> = input.nodes.iter().map(State::idle).collect();
    let mut before: Vec<f64> = states.iter().map(|s| fragment(s, &input.typical)).collect();
    // Only the node that got the last pod has another offer than before.
    let mut offers: BTreeMap<_, Vec<Option<Option<Offer>>>> = BTreeMap::new();
    let mut placements = Vec::with_capacity(input.pods.len());
    for pod in &input.pods {
        let own = offers.entry(pod.key()).or_insert_with(|| vec![None; states.len()]);
        let mut best: Option<(usize, &Offer)> = None;
        for (index, slot) in own.iter_mut().enumerate() {
            let offer = slot
                .get_or_insert_with(|| offer(&mut states[index], before[index], pod, &input.typical, mode));
            let Some(offer) = offer.as_ref() else { continue };
            let is_better = best.is_none_or(|(at, b)| {
                let names = || input.nodes[index].name < input.nodes[at].name;
                offer.score > b.score || offer.score == b.score && names()
            });
            if is_better {
                best = Some((index, offer));
            }
        }
        let placement = best.map(|(node, offer)| Placement { node, gpus: offer.gpus.clone() });
        if let Some(Placement { node, gpus }) = &placement {
            let state = &mut states[*node];
            state.cpu -= pod.cpu;
            state.memory -= pod.memory;
            gpus.iter().for_each(|g| state.left[*g] -= pod.share);
            before[*node] = fragment(state, &input.typical);
            offers.values_mut().for_each(|own| own[*node] = None);
        }
        placements.push(placement);
    }
    Decision { placements, fragment: before.iter().sum() }
}

/// What a node offers a pod; `None` without room. The state is as before afterwards.
fn offer(state: &mut State<'_>, before: f64, pod: &Request, typical: &[Class], mode: Mode) -> Option<Offer> {
    if !state.has_room(pod) {
        return None;
    }
    state.cpu -= pod.cpu;
    let offer = if !pod.uses_gpu() {
        Some(Offer { score: score(before - fragment(state, typical), mode), gpus: Vec::new() })
    } else if pod.gpus == 1 {
        share_one(state, before, pod, typical, mode)
    } else {
        take_several(state, before, pod, typical, mode)
    };
    state.cpu += pod.cpu;
    offer
}

/// The GPU with the greatest score; the first of equals.
fn share_one(
    state: &mut State<'_>,
    before: f64,
    pod: &Request,
    typical: &[Class],
    mode: Mode,
) -> Option<Offer> {
    let mut best: Option<Offer> = None;
    for gpu in 0..state.left.len() {
        if !state.fits(gpu, pod.share) {
            continue;
        }
        let whole = state.left[gpu];
        state.left[gpu] -= pod.share;
        let score = score(before - fragment(state, typical), mode);
        state.left[gpu] = whole;
        if best.as_ref().is_none_or(|b| score > b.score) {
            best = Some(Offer { score, gpus: vec![gpu] });
        }
    }
    best
}

/// Scored on the GPUs with the least sufficient rest, given those that are free first.
fn take_several(
    state: &mut State<'_>,
    before: f64,
    pod: &Request,
    typical: &[Class],
    mode: Mode,
) -> Option<Offer> {
    let mut enough: Vec<usize> = (0..state.left.len()).filter(|g| state.fits(*g, pod.share)).collect();
    enough.sort_by(|a, b| state.left[*a].total_cmp(&state.left[*b]));
    if enough.len() < pod.gpus {
        return None;
    }
    enough.truncate(pod.gpus);
    let whole = state.left.clone();
    enough.iter().for_each(|g| state.left[*g] -= pod.share);
    let score = score(before - fragment(state, typical), mode);
    state.left = whole;
    let is_free = |g: &usize| state.fits(*g, WHOLE);
    let mut gpus: Vec<usize> = (0..state.left.len()).filter(is_free).take(pod.gpus).collect();
    if gpus.len() < pod.gpus {
        gpus = enough;
        gpus.sort_unstable();
    }
    Some(Offer { score, gpus })
}

/// The score of a change of the fragment (thousandths of a GPU): 50 when nothing changes.
fn score(gain: f64, mode: Mode) -> f64 {
    let score = 100.0 * (1.0 / (1.0 + (-gain / WHOLE).exp()));
    match mode {
        Mode::Conformant => score.trunc(),
        // Rounding must not decide between equal nodes.
        Mode::Native => (score * 1e9).round() / 1e9,
    }
}

#[cfg(test)]
mod tests;
