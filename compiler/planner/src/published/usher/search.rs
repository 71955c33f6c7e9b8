//! Every configuration of a group, the first cheapest that carries its rates.
//!
//! The original tries them all. Those that cannot win are passed over here without being placed; the answer
//! is the same to the last tie.

use super::placing::{Board, Member, Trial, order};
use super::{Choice, Group, Input, MULTIPLES, Profile, Replica, least_replicas};
use crate::published::Mode;

/// No plan opens this many boards for a group.
const TOO_MANY: u32 = 4096;

/// The best configuration so far.
struct Best {
    added: u32,
    profiles: Vec<Profile>,
    replicas: Vec<u32>,
}

/// Plans one group on the boards in use and new ones.
pub(super) fn plan(input: &Input, mode: Mode, models: &[usize], boards: &mut Vec<Board>) -> Group {
    let least: Vec<u32> = models.iter().map(|&m| least_replicas(&input.models[m])).collect();
    let choices: Vec<Vec<Profile>> = models.iter().map(|&m| usable(input, mode, m)).collect();
    let configurations =
        choices.iter().map(|c| c.len() as u64 * u64::from(MULTIPLES)).fold(1, u64::saturating_mul);
    let best = cheapest(input, models, &least, &choices, boards);
    let mut group = Group { models: models.to_vec(), least, configurations, chosen: Vec::new(), added: 0 };
    if let Some(best) = best {
        commit(input, models, &best, boards);
        group.added = best.added;
        group.chosen = models
            .iter()
            .zip(best.profiles.iter().zip(&best.replicas))
            .map(|(&model, (profile, &replicas))| Choice { model, batch: profile.batch, replicas })
            .collect();
    }
    group
}

/// The batches to be tried for a model.
fn usable(input: &Input, mode: Mode, model: usize) -> Vec<Profile> {
    let model = &input.models[model];
    match mode {
        Mode::Conformant => model.profiles.clone(),
        Mode::Native => {
            model.profiles.iter().copied().filter(|p| model.latency(p.batch) <= model.bound_ms).collect()
        }
    }
}

fn cheapest(
    input: &Input,
    models: &[usize],
    least: &[u32],
    choices: &[Vec<Profile>],
    boards: &[Board],
) -> Option<Best> {
    let rates: Vec<f64> = models.iter().map(|&m| input.models[m].rate).collect();
    let demand: f64 = rates.iter().sum();
    let sizes: Vec<usize> = choices.iter().map(Vec::len).collect();
    let free: f64 = boards.iter().map(|b| 1.0 - b.load.compute).sum();
    let mut best: Option<Best> = None;
    let mut trial = Trial::default();
    let mut served = vec![0.0; models.len()];
    let mut batches = Odometer::new(sizes);
    while let Some(at) = batches.next() {
        let profiles: Vec<Profile> = at.iter().zip(choices).map(|(&i, own)| own[i]).collect();
        let members: Vec<Member> =
            profiles.iter().enumerate().map(|(position, &profile)| Member { position, profile }).collect();
        let ordered = order(&members);
        let capacities: Vec<f64> = models
            .iter()
            .zip(&profiles)
            .map(|(&m, profile)| 1000.0 * f64::from(profile.batch) / input.models[m].latency(profile.batch))
            .collect();
        let mut multiples = Odometer::new(vec![MULTIPLES as usize; models.len()]);
        while let Some(multiple) = multiples.next() {
            let limit = best.as_ref().map_or(TOO_MANY, |b| b.added);
            if limit == 0 {
                return best;
            }
            let replicas: Vec<u32> =
                multiple.iter().zip(least).map(|(&i, l)| l.saturating_mul(i as u32 + 1)).collect();
            // Interference only takes away: what is too little without it is too little.
            if without_interference(&replicas, &capacities, &rates) < demand
                || fewest_new(&profiles, &replicas, boards.len(), free) >= limit
            {
                continue;
            }
            if !trial.place(boards, &ordered, &replicas, input.memory_mb, limit) {
                continue;
            }
            if goodput(input, models, &profiles, &rates, &trial, &mut served) >= demand {
                best = Some(Best { added: trial.added, profiles: profiles.clone(), replicas });
            }
        }
    }
    best
}

/// The goodput of a configuration on which nothing interferes, summed as [`goodput`] sums.
fn without_interference(replicas: &[u32], capacities: &[f64], rates: &[f64]) -> f64 {
    let mut total = 0.0;
    for ((&n, &capacity), &rate) in replicas.iter().zip(capacities).zip(rates) {
        // One too many: sums of many terms may come out above the product.
        total += (capacity * f64::from(n) * (1.0 + 1e-9)).min(rate);
    }
    total
}

/// No configuration opens fewer boards: replicas of one model are apart, and compute is not overbooked.
fn fewest_new(profiles: &[Profile], replicas: &[u32], n_boards: usize, free: f64) -> u32 {
    let apart = replicas.iter().copied().max().unwrap_or(0).saturating_sub(n_boards as u32);
    let compute: f64 = profiles.iter().zip(replicas).map(|(p, &n)| p.compute * f64::from(n)).sum();
    // A replica that needs more than a board gets one of its own, which this bound does not know.
    let is_possible = profiles.iter().all(|p| p.compute <= 1.0);
    let by_compute = if is_possible { (compute - free - 1e-6).ceil().max(0.0) as u32 } else { 0 };
    apart.max(by_compute)
}

/// Requests per second that count, over the group: of each model not more than are asked for.
fn goodput(
    input: &Input,
    models: &[usize],
    profiles: &[Profile],
    rates: &[f64],
    trial: &Trial,
    served: &mut [f64],
) -> f64 {
    served.fill(0.0);
    for &(board, position, _) in &trial.placed {
        let factor = trial.loads[board].interference(&input.constants);
        let batch = profiles[position].batch;
        let latency = input.models[models[position]].latency(batch) * factor;
        served[position] += 1000.0 * f64::from(batch) / latency;
    }
    served.iter().zip(rates).map(|(served, rate)| served.min(*rate)).sum()
}

/// Places the chosen configuration for good.
fn commit(input: &Input, models: &[usize], best: &Best, boards: &mut Vec<Board>) {
    let members: Vec<Member> =
        best.profiles.iter().enumerate().map(|(position, &profile)| Member { position, profile }).collect();
    let mut trial = Trial::default();
    trial.place(boards, &order(&members), &best.replicas, input.memory_mb, u32::MAX);
    boards.resize_with(trial.loads.len(), Board::default);
    for (board, position, replica) in trial.placed {
        let profile = best.profiles[position];
        boards[board].load.add(&profile, input.memory_mb);
        let placed = Replica {
            model: models[position],
            batch: profile.batch,
            replica,
            percent: percent(profile.compute),
        };
        boards[board].tenants.push((placed, profile));
    }
}

/// A share as an MPS percentage, rounded half to even.
fn percent(share: f64) -> u32 {
    (100.0 * share).round_ties_even() as u32
}

/// All combinations of digits, the last one fastest.
struct Odometer {
    sizes: Vec<usize>,
    digits: Vec<usize>,
    is_started: bool,
}

impl Odometer {
    fn new(sizes: Vec<usize>) -> Self {
        Self { digits: vec![0; sizes.len()], sizes, is_started: false }
    }

    fn next(&mut self) -> Option<&[usize]> {
        if !self.is_started {
            self.is_started = true;
            return self.sizes.iter().all(|&n| n > 0).then_some(&self.digits);
        }
        for at in (0..self.digits.len()).rev() {
            self.digits[at] += 1;
            if self.digits[at] < self.sizes[at] {
                return Some(&self.digits);
            }
            self.digits[at] = 0;
        }
        None
    }
}
