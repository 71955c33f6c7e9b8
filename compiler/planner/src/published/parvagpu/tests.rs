//! Small scenarios, worked by hand.

use super::*;

fn point(slices: u32, throughput: f64, latency_ms: f64) -> Point {
    Point { slices, batch: 4, processes: 1, throughput, latency: latency_ms / 1e3 }
}

fn service(name: &str, rate: f64, bound: f64, points: &[Point]) -> Service {
    Service { name: name.to_owned(), rate, bound, points: points.to_vec() }
}

fn input(services: Vec<Service>) -> Input {
    Input { services, max_processes: 5, max_boards: MAX_BOARDS }
}

/// Slices and labels by board.
fn shape(decision: &Decision) -> Vec<Vec<(u32, Option<u32>)>> {
    decision.boards.iter().map(|b| b.iter().map(|s| (s.choice.slices, s.label)).collect()).collect()
}

#[test]
fn a_point_counts_only_below_45_percent_of_the_promise() {
    let one =
        |bound| decide(&input(vec![service("a", 5.0, bound, &[point(1, 10.0, 9.0)])]), Mode::Conformant);
    assert_eq!(one(20.0).fates, [(0, Fate::Dropped)]);
    assert_eq!(shape(&one(21.0)), [[(1, Some(0))]]);
    // 20.9 is read as 20.
    assert!(one(20.9).boards.is_empty());
}

#[test]
fn the_remainder_gets_the_smallest_segment_that_carries_it() {
    let points = [point(1, 10.0, 1.0), point(2, 18.0, 1.0), point(4, 44.0, 1.0)];
    let shape_at = |rate| shape(&decide(&input(vec![service("a", rate, 100.0, &points)]), Mode::Native));
    // 44 + 10 + left over 3, on one board with nothing to be broken up.
    assert_eq!(shape_at(60.0), [[(4, Some(0)), (2, Some(4))]]);
    assert_eq!(shape_at(50.0), [[(4, Some(0)), (1, Some(6))]]);
}

#[test]
fn a_rate_that_segments_fill_exactly_keeps_one_for_the_remainder() {
    let points = [point(1, 10.0, 1.0)];
    let decision = decide(&input(vec![service("a", 30.0, 100.0, &points)]), Mode::Conformant);
    assert_eq!(decision.boards.iter().map(Vec::len).sum::<usize>(), 3);
}

#[test]
fn two_segments_of_three_slices_never_share_a_board() {
    let points = [point(3, 30.0, 1.0)];
    let services = vec![service("a", 20.0, 100.0, &points), service("b", 20.0, 100.0, &points)];
    let mut packing_only = input(services);
    // A small point for each, slower per slice, so that they can be broken up.
    packing_only.services.iter_mut().for_each(|s| s.points.push(point(2, 10.0, 1.0)));
    let decision = decide(&packing_only, Mode::Native);
    assert!(decision.boards.iter().all(|b| b.iter().filter(|s| s.choice.slices == 3).count() < 2));
}

#[test]
fn a_segment_that_cannot_be_split_is_lost_and_said_so() {
    let decision = decide(&input(vec![service("a", 20.0, 100.0, &[point(3, 30.0, 1.0)])]), Mode::Native);
    assert!(decision.boards.is_empty());
    assert_eq!(decision.fates, [(0, Fate::Lost { throughput: 30.0 })]);
}

#[test]
fn a_slice_count_without_a_point_would_crash_the_original() {
    let points = [point(2, 30.0, 1.0)];
    let scenario = input(vec![service("a", 20.0, 100.0, &points)]);
    assert_eq!(decide(&scenario, Mode::Conformant).fates, [(0, Fate::Crash { slices: 1 })]);
    assert!(decide(&scenario, Mode::Native).fates.is_empty());
}

#[test]
fn a_service_without_rate_or_promise_is_inactive() {
    for (rate, bound) in [(0.0, 10.0), (10.0, 0.0), (f64::NAN, 10.0), (0.9, 10.0)] {
        let scenario = input(vec![service("a", rate, bound, &[point(1, 10.0, 1.0)])]);
        assert_eq!(decide(&scenario, Mode::Conformant).fates, [(0, Fate::Inactive)]);
    }
}

#[test]
fn a_rate_beyond_all_boards_ends_and_says_what_is_missing() {
    let mut scenario = input(vec![service("a", 1e18, 100.0, &[point(7, 10.0, 1.0)])]);
    scenario.max_boards = 3;
    let decision = decide(&scenario, Mode::Native);
    assert_eq!(decision.boards.len(), 3);
    assert!(decision.fates.iter().any(|(_, f)| matches!(f, Fate::OutOfBoards { .. })));
}
