//! Assignment → boards with instances, dealt in a fixed order, so that the same assignment gives the
//! same plan.

use crate::assemble::{BoardChoice, InstanceChoice, Making, Proof, assemble};
use crate::problem::{Assignment, Problem, Slot, Solution};
use ent_lang::program::Spread;
use ent_plan::plan::{Plan, Sharing};
use std::collections::{BTreeMap, BTreeSet};

/// An instance that has no board yet.
#[derive(Clone, Copy, Debug)]
struct Loose {
    service: usize,
    point: usize,
    rate: f64,
}

/// A board that has no name yet.
#[derive(Clone, Debug)]
struct Anonymous {
    pattern: usize,
    instances: Vec<Loose>,
}

/// The plan of a solution.
pub(crate) fn emit(making: &Making<'_>, problem: &Problem, solution: &Solution) -> Plan {
    let boards = solution.incumbent.as_ref().map(|a| deal(problem, a)).unwrap_or_default();
    let proof = Proof {
        has_plan: solution.incumbent.is_some(),
        is_infeasible: solution.is_infeasible,
        bound: solution.bound,
        stopped_by: solution.stopped_by,
    };
    assemble(making, &name(making, problem, &boards), proof)
}

/// Gives every instance a board.
fn deal(problem: &Problem, assignment: &Assignment) -> Vec<Anonymous> {
    let mut boards: Vec<Anonymous> = Vec::new();
    let mut free: Vec<BTreeMap<usize, u32>> = Vec::new();
    let mut of_cell: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &(pattern, count) in &assignment.boards {
        for _ in 0..count {
            for &(cell, _) in &problem.patterns[pattern].places {
                of_cell.entry(cell).or_default().push(boards.len());
            }
            free.push(problem.patterns[pattern].places.iter().copied().collect());
            boards.push(Anonymous { pattern, instances: Vec::new() });
        }
    }
    // Services that must be apart choose first; the rest in the program's order.
    let mut loose: Vec<Loose> = Vec::new();
    for (service, shares) in assignment.shares.iter().enumerate() {
        for share in shares {
            loose.extend(share.rates.iter().map(|&rate| Loose { service, point: share.point, rate }));
        }
    }
    loose.sort_by_key(|l| (problem.services[l.service].spread.is_none(), l.service));
    // Where the first board with room is, by cell: boards before it are full.
    let mut first: BTreeMap<usize, usize> = BTreeMap::new();
    for instance in loose {
        let cell = problem.services[instance.service].points[instance.point].cell;
        let Some(candidates) = of_cell.get(&cell) else { continue };
        let from = first.entry(cell).or_default();
        while candidates.get(*from).is_some_and(|&b| free[b].get(&cell).copied().unwrap_or(0) == 0) {
            *from += 1;
        }
        let has_room = |b: &usize| free[*b].get(&cell).copied().unwrap_or(0) > 0;
        let apart = |b: &usize| !boards[*b].instances.iter().any(|i| i.service == instance.service);
        let is_spread = problem.services[instance.service].spread.is_some();
        let rest = candidates.get(*from..).unwrap_or_default();
        let chosen = rest
            .iter()
            .copied()
            .find(|b| has_room(b) && (!is_spread || apart(b)))
            .or_else(|| rest.iter().copied().find(has_room));
        if let Some(board) = chosen {
            if let Some(n) = free[board].get_mut(&cell) {
                *n -= 1;
            }
            boards[board].instances.push(instance);
        }
    }
    boards.retain(|b| !b.instances.is_empty());
    boards
}

/// Gives every board a node, and every instance a placement.
fn name(making: &Making<'_>, problem: &Problem, boards: &[Anonymous]) -> Vec<BoardChoice> {
    let program = making.program;
    let mut used: Vec<u32> = vec![0; program.nodes.len()];
    let mut on_node: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); program.nodes.len()];
    let mut choices = Vec::new();
    for board in boards {
        let pattern = &problem.patterns[board.pattern];
        let class = &problem.classes[pattern.class];
        let free = |n: &usize, used: &[u32]| used[*n] < program.nodes[*n].count.value;
        let apart = |n: &usize| {
            !board.instances.iter().any(|i| {
                problem.services[i.service].spread == Some(Spread::Node) && on_node[*n].contains(&i.service)
            })
        };
        let node = class
            .nodes
            .iter()
            .copied()
            .find(|n| free(n, &used) && apart(n))
            .or_else(|| class.nodes.iter().copied().find(|n| free(n, &used)));
        let Some(node) = node else { continue };
        used[node] += 1;
        on_node[node].extend(board.instances.iter().map(|i| i.service));
        let facts = &program.boards[class.board];
        let slots: Vec<Slot> = board
            .instances
            .iter()
            .map(|i| problem.cells[problem.services[i.service].points[i.point].cell].slot)
            .collect();
        let profiles: Vec<usize> =
            slots.iter().filter_map(|s| if let Slot::Profile(p) = s { Some(*p) } else { None }).collect();
        let starts = ent_plan::device::place(facts, &profiles).unwrap_or_default();
        let instances = board
            .instances
            .iter()
            .enumerate()
            .map(|(at, loose)| {
                let key = problem.services[loose.service].points[loose.point].key;
                InstanceChoice {
                    service: loose.service,
                    profile: key.profile,
                    start: starts.get(at).copied(),
                    mps_percent: None,
                    processes: key.processes,
                    batch: key.batch,
                    rate: loose.rate,
                    prediction: None,
                }
            })
            .collect();
        let sharing = if class.sharing == Sharing::Whole { Sharing::Whole } else { Sharing::Mig };
        choices.push(BoardChoice { node, sharing, clock: pattern.clock, instances });
    }
    choices
}
