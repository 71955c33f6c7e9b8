//! Small inputs whose answers are made by hand.

use super::*;

fn profile(batch: u32, compute: f64, memory: f64) -> Profile {
    Profile { batch, compute, l2: memory, memory }
}

fn model(name: &str, rate: f64, profiles: Vec<Profile>) -> Model {
    let latencies = profiles.iter().map(|p| (p.batch, 10.0 * f64::from(p.batch))).collect();
    Model { name: name.to_owned(), rate, bound_ms: 1000.0, profiles, latencies }
}

fn input(models: Vec<Model>) -> Input {
    Input { models, constants: [0.0, 0.0, 0.0, 0.0, 1.0], memory_mb: 1000.0 }
}

#[test]
fn latency_is_linear_between_measured_batches_and_constant_beyond() {
    let mut m = model("m", 1.0, vec![profile(1, 0.5, 0.5)]);
    m.latencies = vec![(2, 10.0), (4, 30.0)];
    assert_eq!(m.latency(1), 10.0);
    assert_eq!(m.latency(2), 10.0);
    assert_eq!(m.latency(3), 20.0);
    assert_eq!(m.latency(32), 30.0);
}

#[test]
fn models_whose_needs_balance_are_grouped() {
    let heavy = |n, c, m| model(n, 1.0, vec![profile(1, c, m)]);
    let decision = decide(
        &input(vec![
            heavy("a", 0.5, 0.1),
            heavy("b", 0.3, 0.1),
            heavy("c", 0.1, 0.3),
            heavy("d", 0.1, 0.5),
            heavy("e", 0.9, 0.1),
        ]),
        Mode::Conformant,
    );
    let groups: Vec<Vec<usize>> = decision.groups.iter().map(|g| g.models.clone()).collect();
    assert_eq!(groups, [vec![0, 3, 1, 2], vec![4]]);
}

#[test]
fn replicas_of_a_model_are_apart_and_the_fullest_board_comes_first() {
    // One replica carries 100 req/s.
    let decision = decide(
        &input(vec![
            model("twice", 150.0, vec![profile(1, 0.6, 0.2)]),
            model("once", 50.0, vec![profile(1, 0.2, 0.6)]),
        ]),
        Mode::Conformant,
    );
    let on: Vec<Vec<(usize, u32)>> =
        decision.gpus.iter().map(|g| g.replicas.iter().map(|r| (r.model, r.replica)).collect()).collect();
    assert_eq!(on, [vec![(0, 0), (1, 0)], vec![(0, 1)]]);
    assert_eq!(decision.gpus[0].replicas[0].percent, 60);
    assert_eq!(decision.groups[0].least, [2, 1]);
}

#[test]
fn interference_can_cost_a_replica() {
    let mut one = input(vec![
        model("a", 99.0, vec![profile(1, 0.5, 0.2)]),
        model("b", 10.0, vec![profile(1, 0.2, 0.5)]),
    ]);
    assert_eq!(decide(&one, Mode::Conformant).gpus.len(), 1);
    one.constants[4] = 1.5;
    let decision = decide(&one, Mode::Conformant);
    assert_eq!(decision.gpus.len(), 2);
    assert_eq!(decision.groups[0].chosen[0].replicas, 2);
}

#[test]
fn a_group_that_nothing_carries_is_left_out_and_named() {
    let decision = decide(
        &input(vec![model("idle", 1.0, Vec::new()), model("big", 1e9, vec![profile(1, 1.0, 1.0)])]),
        Mode::Conformant,
    );
    assert_eq!(decision.unknown, [0]);
    assert_eq!(decision.dropped(), [0, 1]);
    assert!(decision.gpus.is_empty());
}

#[test]
fn the_original_forgets_the_promise_and_native_does_not() {
    // Within 15 ms only batch 1 is; batch 2 is the cheaper one in boards.
    let mut m = model("m", 150.0, vec![profile(1, 0.9, 0.1), profile(2, 0.9, 0.1)]);
    m.latencies = vec![(1, 10.0), (2, 12.0)];
    m.bound_ms = 11.0;
    let one = input(vec![m]);
    assert_eq!(decide(&one, Mode::Conformant).gpus.len(), 2);
    assert!(decide(&one, Mode::Native).groups[0].chosen.iter().all(|c| c.batch == 1));
    let mut late = one.clone();
    late.models[0].bound_ms = 1.0;
    assert_eq!(decide(&late, Mode::Native).too_slow, [0]);
    // Nothing is within the promise: the smallest batch says how many replicas.
    assert_eq!(decide(&late, Mode::Conformant).groups[0].least, [2]);
}
