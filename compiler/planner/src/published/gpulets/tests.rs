//! Small inputs whose answers are made by hand.

use super::measure::Rules;
use super::*;

/// A batch of b takes 8 + 2 b ms on the whole board, twice that in half of it and four times in a quarter.
fn model(name: &str, rate: f64, bound_ms: f64) -> Model {
    let at = |percent: u32, batch: u32| {
        let slower = 100.0 / f64::from(percent);
        (percent, batch, slower * (8.0 + 2.0 * f64::from(batch)))
    };
    Model {
        name: name.to_owned(),
        rate,
        bound_ms,
        memory_mb: 1000.0,
        request_bytes: 1.0,
        latencies: [25, 50, 100].iter().flat_map(|p| [1, 32].map(|b| at(*p, b))).collect(),
        batching_ms: Vec::new(),
        utilisation: Vec::new(),
        most_batch: MOST_BATCH,
    }
}

fn input(models: Vec<Model>, boards: usize) -> Input {
    Input {
        models,
        boards,
        partitions: vec![100, 50, 25],
        latency_ratio: 1.0,
        interference: None,
        most_models: 2,
        is_self_tuning: false,
        memory_mb: 16_000.0,
        network: None,
    }
}

fn shares(decision: &Decision) -> Vec<Vec<(u32, Vec<usize>)>> {
    let of = |g: &Gpu| {
        g.gpulets.iter().map(|s| (s.percent, s.tenants.iter().map(|t| t.model).collect())).collect::<Vec<_>>()
    };
    decision.gpus.iter().map(of).collect()
}

#[test]
fn rates_are_inflated_to_their_99th_percentile_or_by_a_tenth() {
    let input = input(Vec::new(), 1);
    let rules = |mode| Rules { input: &input, mode };
    // The probability of nothing is left out, so the sum over 0..=4 req/s never reaches 99 %.
    assert_eq!(rules(Mode::Conformant).inflated(4.0, 100.0), None);
    assert_eq!(rules(Mode::Conformant).inflated(5.0, 100.0), Some(13.0));
    assert_eq!(rules(Mode::Conformant).inflated(600.0, 100.0), Some(660.0));
    assert_eq!(rules(Mode::Conformant).inflated(695.0, 100.0), Some(764.0));
    // The 99th percentiles of 4 and 0.1 requests are 9 and 1.
    assert_eq!(rules(Mode::Native).inflated(4.0, 100.0), Some(9.0));
    assert_eq!(rules(Mode::Native).inflated(0.1, 100.0), Some(1.0));
    // The 99th percentile of a request in ten seconds is 4.
    assert_eq!(rules(Mode::Native).inflated(0.1, 10_000.0), Some(0.4));
}

#[test]
fn batches_that_were_not_measured_are_blended_and_percentages_that_were_not_lie_below_the_whole() {
    let mut one = model("m", 100.0, 100.0);
    one.latencies =
        vec![(25, 1, 40.0), (25, 32, 288.0), (50, 1, 21.0), (50, 32, 144.0), (100, 1, 10.0), (100, 32, 72.0)];
    let input = input(vec![one], 1);
    let rules = Rules { input: &input, mode: Mode::Conformant };
    assert_eq!(rules.latency(0, 1, 50, &[]), 21.0);
    // A third of the way from 72 to 288 at batch 32, so a third of the way from 20 to 80 at batch 6.
    assert!((rules.latency(0, 6, 50, &[]) - (20.0 + 60.0 / 3.0)).abs() < 1e-4);
    // At batch 32 it counts as 0: a third of 216 below 72.
    assert!((rules.latency(0, 1, 40, &[]) - (10.0 - 30.0 / 3.0)).abs() < 1e-4);
}

#[test]
fn the_largest_batch_is_out_of_the_originals_reach() {
    let input = input(vec![model("m", 100.0, 1e6)], 1);
    assert_eq!(Rules { input: &input, mode: Mode::Conformant }.saturated_batch(0, 100, &[]), 31);
    assert_eq!(Rules { input: &input, mode: Mode::Native }.saturated_batch(0, 100, &[]), 32);
}

#[test]
fn interference_is_that_of_the_worst_neighbour_and_at_least_none() {
    let mut one = input(vec![model("a", 1.0, 100.0), model("b", 1.0, 100.0)], 1);
    one.interference = Some([0.0, 1.0, 0.0, 1.0, 1.0]);
    one.models[0].utilisation = vec![(1, 0.0, 0.0)];
    one.models[1].utilisation = vec![(1, 0.2, 0.2), (2, 0.4, 0.6)];
    let rules = Rules { input: &one, mode: Mode::Native };
    let tenant = |batch| Tenant { model: 1, batch, throughput: 1.0, rate: 1.0 };
    assert_eq!(rules.latency(0, 1, 100, &[]), 10.0);
    assert!((rules.latency(0, 1, 100, &[(tenant(1), 50), (tenant(2), 50)]) - 15.0).abs() < 1e-9);
    one.interference = Some([0.0, -1.0, 0.0, 0.0, 1.0]);
    let rules = Rules { input: &one, mode: Mode::Native };
    assert_eq!(rules.latency(0, 1, 100, &[(tenant(2), 50)]), 10.0);
}

#[test]
fn fresh_boards_come_before_leftover_shares_and_the_last_board_first() {
    // Half the promise is for execution: at 25 % batch 3 takes 56 of 60 ms, 53 req/s; at 50 % batch 11.
    let decision =
        decide(&input(vec![model("a", 40.0, 120.0), model("b", 40.0, 120.0)], 2), Mode::Conformant);
    assert_eq!(decision.ending, Ending::Scheduled);
    let shares = shares(&decision);
    // Equal promises: the later model is placed first.
    assert_eq!(shares[1][0].1, [1]);
    assert_eq!(shares[0][0].1, [0]);
    let one_board =
        decide(&input(vec![model("a", 40.0, 120.0), model("b", 40.0, 120.0)], 1), Mode::Conformant);
    assert_eq!(one_board.gpus.len(), 1);
}

#[test]
fn endings_of_the_original_are_named() {
    let end = |rate, bound| decide(&input(vec![model("m", rate, bound)], 2), Mode::Conformant).ending;
    assert_eq!(end(0.5, 100.0), Ending::Hangs { model: 0 });
    assert_eq!(end(4.0, 100.0), Ending::Hangs { model: 0 });
    assert_eq!(end(6.0, 100.0), Ending::Crashes { model: 0 });
    assert_eq!(end(100.0, 5.0), Ending::Aborts { model: 0 });
    assert_eq!(end(f64::NAN, 100.0), Ending::Unusable { model: 0 });
    assert_eq!(end(1e5, 100.0), Ending::Empty { model: 0 });
    let mut lacking = model("m", 100.0, 100.0);
    lacking.latencies.retain(|(_, b, _)| *b == 1);
    assert_eq!(decide(&input(vec![lacking], 2), Mode::Conformant).ending, Ending::Unusable { model: 0 });
}

#[test]
fn native_goes_on_without_a_model_that_cannot_be_placed() {
    let models = vec![model("late", 100.0, 5.0), model("slow", 0.5, 200.0)];
    let decision = decide(&input(models, 1), Mode::Native);
    assert_eq!(decision.ending, Ending::Scheduled);
    assert_eq!(decision.dropped, [0]);
    let served: Vec<usize> =
        decision.gpus.iter().flat_map(|g| &g.gpulets).flat_map(|s| &s.tenants).map(|t| t.model).collect();
    assert_eq!(served, [1]);
}
