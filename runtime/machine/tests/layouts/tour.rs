//! A number of places → a round trip that goes from every place to every place, once each.

/// The cyclic sequence over `0..n` in which every ordered pair of numbers stands side by side exactly once:
/// the words of one or two letters that are no repetition, in order, one behind the other (a de Bruijn
/// sequence).
pub(crate) fn tour(n: usize) -> Vec<usize> {
    (0..n)
        .flat_map(|first| {
            std::iter::once(first).chain((first + 1..n).flat_map(move |second| [first, second]))
        })
        .collect()
}

#[test]
fn a_tour_takes_every_way_once() {
    for n in 1..30 {
        let tour = tour(n);
        let next = tour.iter().cycle().skip(1);
        let mut ways: Vec<(usize, usize)> = tour.iter().copied().zip(next.copied()).collect();
        ways.sort_unstable();
        let all: Vec<(usize, usize)> = (0..n).flat_map(|from| (0..n).map(move |to| (from, to))).collect();
        assert_eq!(ways, all);
    }
}
