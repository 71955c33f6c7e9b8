//! The rule, case by case and against a plain statement of it.

use super::*;
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn queue(batch: u32, max_wait_ms: u32) -> Queue<u8> {
    Queue::new(Policy { batch, max_wait: max_wait_ms * MS }, |a, b| a == b)
}

fn items(batch: Option<(Vec<Waiting<u8>>, u32)>) -> Option<Vec<u8>> {
    batch.map(|(batch, _)| batch.into_iter().map(|w| w.item).collect())
}

#[test]
fn without_a_wait_whatever_is_there_leaves() {
    let now = Instant::now();
    let mut queue = queue(4, 0);
    assert!(queue.take(now).is_none());
    queue.push(now, 1, 7);
    assert_eq!(queue.leaves_at(), Some(now));
    assert_eq!(items(queue.take(now)), Some(vec![7]));
    assert!(queue.is_empty() && queue.take(now).is_none());
}

#[test]
fn a_batch_leaves_when_it_is_full_or_its_oldest_has_waited() {
    let now = Instant::now();
    let mut queue = queue(3, 10);
    queue.push(now, 1, 7);
    queue.push(now + 4 * MS, 1, 7);
    assert!(queue.take(now + 9 * MS).is_none());
    assert_eq!(queue.leaves_at(), Some(now + 10 * MS));
    queue.push(now + 5 * MS, 1, 7);
    assert_eq!(queue.leaves_at(), Some(now + 5 * MS));
    queue.push(now + 6 * MS, 1, 7);
    assert_eq!(items(queue.take(now + 6 * MS)), Some(vec![7, 7, 7]));
    assert_eq!(queue.leaves_at(), Some(now + 16 * MS));
    assert_eq!(items(queue.take(now + 16 * MS)), Some(vec![7]));
}

#[test]
fn a_request_that_cannot_join_closes_the_batch_before_it() {
    let now = Instant::now();
    let mut queue = queue(4, 10);
    queue.push(now, 1, 1);
    queue.push(now, 1, 2);
    queue.push(now, 1, 1);
    assert_eq!(items(queue.take(now)), Some(vec![1]));
    assert_eq!(items(queue.take(now)), Some(vec![2]));
    assert_eq!(items(queue.take(now)), None, "the last one may yet be joined");
    queue.push(now, 4, 1);
    assert_eq!(queue.take(now).map(|b| b.1), Some(1), "four rows do not fit beside one");
    assert_eq!(queue.take(now).map(|b| b.1), Some(4));
}

#[test]
fn one_that_gives_up_leaves_the_line() {
    let now = Instant::now();
    let mut queue = queue(2, 10);
    let first = queue.push(now, 1, 1);
    let second = queue.push(now + MS, 1, 1);
    assert_eq!(queue.leaves_at(), Some(now + MS));
    assert_eq!(queue.remove(first), Some(1));
    assert_eq!(queue.remove(first), None);
    assert_eq!(queue.leaves_at(), Some(now + 11 * MS));
    assert_eq!((queue.rows(), queue.len()), (1, 1));
    assert_eq!(queue.remove_where(|w| w.ticket == second).len(), 1);
    assert_eq!((queue.rows(), queue.len(), queue.leaves_at()), (0, 0, None));
}

#[test]
fn one_that_waited_elsewhere_stands_where_it_would_have_stood() {
    let now = Instant::now();
    let mut queue = queue(2, 10);
    queue.push(now + 2 * MS, 1, 1);
    queue.push(now + 4 * MS, 1, 1);
    queue.push(now + MS, 1, 9);
    assert_eq!(items(queue.take(now + 4 * MS)), Some(vec![9]), "it is first, and alone of its kind");
    assert_eq!(items(queue.take(now + 4 * MS)), Some(vec![1, 1]));
}

#[test]
fn a_smaller_batch_still_lets_a_larger_request_go() {
    let now = Instant::now();
    let mut queue = queue(8, 10);
    queue.push(now, 6, 1);
    queue.push(now, 1, 1);
    queue.follow(Policy { batch: 4, max_wait: Duration::ZERO });
    assert_eq!(queue.take(now).map(|b| b.1), Some(6));
    assert_eq!(queue.take(now).map(|b| b.1), Some(1));
}

/// The rule said plainly, for one-row requests of one kind: (leaves at, requests) of each batch, given
/// arrivals and batch times in ms.
fn plainly(arrivals: &[u32], policy: (usize, u32), times: &[u32], processes: usize) -> Vec<(u32, usize)> {
    let (batch, max_wait) = policy;
    let mut free = vec![0; processes];
    let mut batches = Vec::new();
    let mut next = 0;
    while next < arrivals.len() {
        let executor = (0..processes).min_by_key(|i| free[*i]).unwrap();
        let patience = arrivals[next] + max_wait;
        let full = arrivals.get(next + batch - 1).map_or(patience, |at| patience.min(*at));
        let start = full.max(free[executor]);
        let k = arrivals[next..].iter().take(batch).filter(|at| **at <= start).count();
        batches.push((start, k));
        free[executor] = start + times[k - 1];
        next += k;
    }
    batches
}

proptest! {
    #[test]
    fn batches_are_those_of_the_rule(
        gaps in prop::collection::vec(0..12_u32, 1..60),
        batch in 1..6_usize,
        max_wait in 0..20_u32,
        times in prop::collection::vec(1..30_u32, 6),
        processes in 1..4_usize,
    ) {
        let arrivals: Vec<u32> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let expected = plainly(&arrivals, (batch, max_wait), &times, processes);
        let origin = Instant::now();
        let mut queue = Queue::new(
            Policy { batch: u32::try_from(batch).unwrap(), max_wait: max_wait * MS },
            |(): &(), (): &()| true,
        );
        let mut free = vec![0; processes];
        let mut seen = Vec::new();
        let mut arriving = arrivals.iter().copied().peekable();
        for now in 0.. {
            while arriving.next_if_eq(&now).is_some() {
                queue.push(origin + now * MS, 1, ());
            }
            while let Some(idle) = free.iter_mut().find(|free| **free <= now)
                && let Some((batch, _)) = queue.take(origin + now * MS)
            {
                *idle = now + times[batch.len() - 1];
                seen.push((now, batch.len()));
            }
            if arriving.peek().is_none() && queue.is_empty() {
                break;
            }
        }
        prop_assert_eq!(seen, expected);
    }
}
