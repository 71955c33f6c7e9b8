//! How long the steps for a thousand boards take to find: as wished already, and with work on every board.
//!
//! `cargo bench -p ent-machine --bench diff`
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the model machine is a test's")]

use criterion::{Criterion, criterion_group, criterion_main};
use ent_machine::diff::diff;
use ent_machine::observed::Observed;
use ent_machine::preflight::{Allowed, blast_radius, preflight};
use ent_machine::state::State;
use ent_machine::target::Target;
use ent_plan::device::{Layout, board, maximal_layouts};
use std::hint::black_box;

#[path = "../tests/changes/model.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod model;

use model::{At, cut, machine, ours, wish};

const A100: &str = "a100-80gb-pcie";
const BOARDS: usize = 1000;

/// A thousand A100, each cut into one maximal layout in turn, all ours; the wish is the layout `shift` further.
fn world(shift: usize) -> (Target, Observed, State) {
    let a100 = board(A100).into_iter().next();
    let layouts: Vec<(Layout, Vec<At<'_>>)> = a100
        .iter()
        .flat_map(|board| {
            let named = |layout: &Layout| {
                layout.iter().map(|p| (board.profiles[p.profile].name.as_str(), p.start)).collect()
            };
            let all = maximal_layouts(board, |profile| board.profiles[profile].is_base);
            all.into_iter().map(move |layout| (layout.clone(), named(&layout)))
        })
        .collect();
    let mut model = machine(&vec![A100; BOARDS]);
    let (mut all_ours, mut wishes) = (Vec::new(), Vec::new());
    for (number, index) in (0..BOARDS).zip(0_u32..) {
        let here = &layouts[number % layouts.len()].1;
        model = model.with(index, here);
        all_ours.extend(here.iter().map(|at| (index, *at, "a")));
        let there = &layouts[(number + shift) % layouts.len()].1;
        let wished: Vec<(At<'_>, &str)> = there.iter().map(|at| (*at, "a")).collect();
        wishes.push((index, cut(A100, &wished)));
    }
    let state = ours(&model, &all_ours);
    (wish(&wishes), model.observed, state)
}

fn benches(c: &mut Criterion) {
    for (name, shift) in [("1000 boards as wished", 0), ("1000 boards cut anew", 29)] {
        let (target, observed, state) = world(shift);
        let found = diff(&target, &observed, &state);
        let n_steps = found.as_ref().map_or(0, |changes| changes.steps.len());
        c.bench_function(&format!("diff: {name}, {n_steps} steps"), |b| {
            b.iter(|| black_box(diff(&target, &observed, &state)));
        });
        if let Ok(changes) = found {
            c.bench_function(&format!("preflight and blast radius: {name}"), |b| {
                b.iter(|| {
                    let refusals = preflight(&changes, &observed, Allowed::default(), true);
                    black_box((refusals, blast_radius(&changes, &observed, &state)))
                });
            });
        }
    }
}

criterion_group!(diffs, benches);
criterion_main!(diffs);
