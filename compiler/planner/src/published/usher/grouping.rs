//! Which models are planned together: those whose needs balance, up to four.

use super::{Input, Model};

/// Passes of pairing: groups of up to four.
const PASSES: u32 = 2;

/// A group and the sums of its members' mean needs.
struct Grouped {
    models: Vec<usize>,
    compute: f64,
    memory: f64,
}

/// Groups of the given models, in the order they are planned.
pub(super) fn groups(input: &Input, models: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Grouped> = models
        .iter()
        .map(|&m| {
            let (compute, memory) = mean_needs(&input.models[m]);
            Grouped { models: vec![m], compute, memory }
        })
        .collect();
    for _ in 0..PASSES {
        groups = pair(groups);
    }
    groups.into_iter().map(|g| g.models).collect()
}

fn mean_needs(model: &Model) -> (f64, f64) {
    let n = model.profiles.len().max(1) as f64;
    let mean = |of: fn(&super::Profile) -> f64| model.profiles.iter().map(of).sum::<f64>() / n;
    (mean(|p| p.compute), mean(|p| p.memory))
}

/// One pass: always the pair that balances best, the first of equals; an odd one stays alone.
fn pair(groups: Vec<Grouped>) -> Vec<Grouped> {
    let mut free: Vec<Option<Grouped>> = groups.into_iter().map(Some).collect();
    let mut paired = Vec::new();
    while let Some((i, j)) = best_pair(&free) {
        if let (Some(a), Some(b)) = (free[i].take(), free[j].take()) {
            paired.push(Grouped {
                models: [a.models, b.models].concat(),
                compute: a.compute + b.compute,
                memory: a.memory + b.memory,
            });
        }
    }
    paired.extend(free.into_iter().flatten());
    paired
}

fn best_pair(free: &[Option<Grouped>]) -> Option<(usize, usize)> {
    let mut best: Option<(f64, (usize, usize))> = None;
    for (i, a) in free.iter().enumerate() {
        let Some(a) = a else { continue };
        for (j, b) in free.iter().enumerate().skip(i + 1) {
            let Some(b) = b else { continue };
            let imbalance = ((a.compute + b.compute) - (a.memory + b.memory)).abs();
            if best.is_none_or(|(least, _)| imbalance < least) {
                best = Some((imbalance, (i, j)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}
