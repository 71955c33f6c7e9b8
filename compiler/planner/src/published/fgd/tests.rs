//! Small clusters, worked by hand.

use super::*;

fn node(name: &str, gpus: usize) -> Node {
    Node { name: name.to_owned(), gpus, cpu: 64_000.0, memory: 1e6, gpu_type: "A".to_owned() }
}

fn pod(share: f64, gpus: usize) -> Request {
    Request { cpu: 1000.0, share, gpus, ..Request::default() }
}

fn decide_all(nodes: Vec<Node>, pods: Vec<Request>, mode: Mode) -> Decision {
    let typical = typical(&pods, 1, 0.95);
    decide(&Input { nodes, pods, typical }, mode)
}

fn at(node: usize, gpus: &[usize]) -> Option<Placement> {
    Some(Placement { node, gpus: gpus.to_vec() })
}

#[test]
fn a_pod_fills_the_gpu_that_nothing_else_could_use() {
    let pods = vec![pod(600.0, 1), pod(600.0, 1), pod(400.0, 1), pod(600.0, 1), pod(600.0, 1)];
    for mode in [Mode::Conformant, Mode::Native] {
        let decision = decide_all(vec![node("a", 1), node("b", 1), node("c", 2)], pods.clone(), mode);
        // The 400 must join a 600, so that a GPU stays whole for the next 600.
        assert!(decision.placements.iter().all(Option::is_some), "{mode:?}: {decision:?}");
        assert_eq!(decision.placements[0], decision.placements[2]);
    }
}

#[test]
fn the_smallest_name_wins_among_equals() {
    let decision = decide_all(vec![node("b", 1), node("a", 1)], vec![pod(500.0, 1)], Mode::Conformant);
    assert_eq!(decision.placements, [at(1, &[0])]);
}

#[test]
fn a_pod_of_several_gpus_gets_the_first_that_are_free() {
    let pods = vec![pod(300.0, 1), pod(1000.0, 2)];
    let decision = decide_all(vec![node("a", 4)], pods, Mode::Conformant);
    assert_eq!(decision.placements, [at(0, &[0]), at(0, &[1, 2])]);
}

#[test]
fn a_pod_without_room_is_left_out_and_the_others_go_on() {
    let wrong_type = Request { gpu_type: "B|C".to_owned(), ..pod(100.0, 1) };
    let pods = vec![wrong_type, pod(700.0, 1), pod(400.0, 1), pod(300.0, 1)];
    let decision = decide_all(vec![node("a", 1)], pods, Mode::Conformant);
    assert_eq!(decision.placements, [None, at(0, &[0]), None, at(0, &[0])]);
    assert_eq!(decision.fragment, 0.0);
}

#[test]
fn sevenths_fill_a_gpu() {
    let pods = [4.0, 2.0, 1.0].map(|s| pod(s * WHOLE / 7.0, 1)).to_vec();
    let decision = decide_all(vec![node("a", 1)], pods, Mode::Native);
    assert!(decision.placements.iter().all(Option::is_some));
}

#[test]
fn typical_pods_are_the_frequent_ones() {
    let mut pods = vec![pod(500.0, 1); 12];
    pods.extend(vec![pod(250.0, 1); 7]);
    pods.push(pod(100.0, 1));
    let classes = typical(&pods, 1, 0.95);
    let kinds: Vec<(f64, f64)> = classes.iter().map(|c| (c.request.share, c.probability)).collect();
    assert_eq!(kinds, [(500.0, 12.0 / 19.0), (250.0, 7.0 / 19.0)]);
    assert_eq!(typical(&pods, 10, 0.95).len(), 3);
    assert!(typical(&[], 1, 0.95).is_empty());
}

#[test]
fn the_fragment_is_what_the_expected_pod_could_not_use() {
    let host = node("a", 2);
    let mut state = State::idle(&host);
    state.left = vec![300.0, 1000.0];
    let class = |request, probability| Class { request, probability };
    let expected = [class(pod(500.0, 1), 0.5), class(pod(500.0, 2), 0.25), class(pod(0.0, 0), 0.25)];
    assert_eq!(fragment(&state, &expected), 0.5 * 300.0 + 0.25 * 1300.0 + 0.25 * 1300.0);
}
