//! How much of a node's idle GPU share the expected pods could not use.

use super::{Request, State, TOLERANCE};
use std::cmp::Ordering;

/// A kind of pod that is expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What it asks for.
    pub request: Request,
    /// The share of pods that are like this; all classes together 1.
    pub probability: f64,
}

/// The expected fragment of a node (thousandths of a GPU).
#[must_use]
pub fn fragment(state: &State<'_>, typical: &[Class]) -> f64 {
    typical.iter().map(|c| c.probability * unusable(state, &c.request)).sum()
}

/// Idle share that a pod of this kind could not use: all of it when the pod cannot run here, or uses no
/// GPU.
fn unusable(state: &State<'_>, pod: &Request) -> f64 {
    let all = || state.left.iter().sum();
    if !pod.uses_gpu() || !pod.accepts(&state.node.gpu_type) || state.cpu + TOLERANCE < pod.cpu {
        return all();
    }
    let is_enough = |left: &&f64| **left + TOLERANCE >= pod.share;
    if state.left.iter().filter(is_enough).count() < pod.gpus {
        return all();
    }
    state.left.iter().filter(|l| !is_enough(l)).sum()
}

/// The typical pods of a workload: the most frequent kinds, in steps of `step` kinds, until they make up
/// `coverage` (a fraction) of all pods. The experiments use steps of 1 and 0.95.
#[must_use]
pub fn typical(workload: &[Request], step: usize, coverage: f64) -> Vec<Class> {
    let mut kinds: Vec<(&Request, u32)> = Vec::new();
    for pod in workload {
        match kinds.iter_mut().find(|(kind, _)| *kind == pod) {
            Some((_, count)) => *count += 1,
            None => kinds.push((pod, 1)),
        }
    }
    kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| order(b.0, a.0)));
    let wanted = coverage * workload.len() as f64;
    let mut taken = 0;
    let mut count = 0;
    while taken < kinds.len() && f64::from(count) < wanted {
        let until = taken.saturating_add(step.max(1)).min(kinds.len());
        count += kinds[taken..until].iter().map(|k| k.1).sum::<u32>();
        taken = until;
    }
    kinds[..taken]
        .iter()
        .map(|(kind, n)| Class {
            request: (*kind).clone(),
            probability: f64::from(*n) / f64::from(count.max(1)),
        })
        .collect()
}

fn order(a: &Request, b: &Request) -> Ordering {
    a.cpu
        .total_cmp(&b.cpu)
        .then_with(|| a.share.total_cmp(&b.share))
        .then_with(|| a.gpus.cmp(&b.gpus))
        .then_with(|| a.gpu_type.cmp(&b.gpu_type))
        .then_with(|| a.memory.total_cmp(&b.memory))
}
