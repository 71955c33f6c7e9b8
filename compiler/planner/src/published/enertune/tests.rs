//! Small workloads, worked by hand.

use super::*;

fn row(slices: u32, clock: u32, dynamic: f64, throughput: f64, latency: f64) -> Row {
    Row { slices, batch: 1, clock, dynamic, throughput, latency }
}

fn service(name: &str, rate: f64, rows: &[Row]) -> Service {
    Service { name: name.to_owned(), rate, bound: 100.0, rows: rows.to_vec() }
}

fn power(clock: u32, watts: f64) -> ClockPower {
    ClockPower { clock, static_power: watts, fan: 0.0, idle: 0.0 }
}

fn input(services: Vec<Service>) -> Input {
    Input {
        services,
        clocks: vec![power(210, 40.0), power(1410, 70.0)],
        max_boards: None,
        estimator: Estimator::Power,
        max_work: MAX_WORK,
    }
}

#[test]
fn services_of_one_clock_share_a_board_up_to_seven_slices() {
    let rows = [row(3, 210, 10.0, 5.0, 50.0)];
    let three = ["a", "b", "c"].map(|name| service(name, 5.0, &rows)).to_vec();
    let decision = decide(&input(three), Mode::Conformant);
    let members: Vec<Vec<(usize, usize)>> = decision.boards.iter().map(|b| b.members.clone()).collect();
    assert_eq!(members, [vec![(0, 0), (1, 0)], vec![(2, 0)]]);
    assert_eq!(decision.cost, 60.0 + 50.0);
}

#[test]
fn a_promise_and_a_rate_choose_the_row() {
    let rows = [row(1, 210, 5.0, 9.0, 50.0), row(1, 210, 6.0, 10.0, 101.0), row(2, 210, 7.0, 10.0, 100.0)];
    let decision = decide(&input(vec![service("a", 10.0, &rows)]), Mode::Conformant);
    assert_eq!(decision.boards[0].members, [(0, 2)]);
    // The caller gives only rows that keep the promise.
    let decision = decide(&input(vec![service("a", 10.0, &rows)]), Mode::Native);
    assert_eq!(decision.boards[0].members, [(0, 1)]);
}

#[test]
fn a_board_moves_to_another_clock_when_that_is_cheaper() {
    let fast = [row(2, 1410, 20.0, 5.0, 10.0)];
    // Alone at 210 MHz it would cost 40 + 60, at 1410 MHz 70 + 35; beside the other only 35.
    let either = [row(3, 210, 60.0, 5.0, 10.0), row(3, 1410, 35.0, 5.0, 10.0)];
    let decision = decide(&input(vec![service("a", 5.0, &fast), service("b", 5.0, &either)]), Mode::Native);
    assert_eq!(decision.boards.len(), 1);
    assert_eq!(decision.boards[0].clock, 1410);
    assert_eq!(decision.cost, 70.0 + 20.0 + 35.0);
}

#[test]
fn a_limit_joins_boards_whatever_that_costs() {
    let rows = [row(4, 210, 10.0, 5.0, 10.0), row(3, 1410, 200.0, 5.0, 10.0), row(4, 1410, 190.0, 5.0, 10.0)];
    let mut two = input(vec![service("a", 5.0, &rows), service("b", 5.0, &rows)]);
    assert_eq!(decide(&two, Mode::Conformant).cost, 100.0);
    two.max_boards = Some(1);
    let decision = decide(&two, Mode::Conformant);
    assert_eq!((decision.boards.len(), decision.cost, decision.is_over_limit), (1, 70.0 + 390.0, false));
    // Without three slices nothing fits, and the two boards stay.
    two.services.iter_mut().for_each(|s| s.rows.retain(|r| r.slices == 4));
    let decision = decide(&two, Mode::Conformant);
    assert_eq!((decision.boards.len(), decision.cost, decision.is_over_limit), (2, 100.0, true));
}

#[test]
fn a_service_without_a_row_is_left_out_and_said_so() {
    let rows = [row(7, 210, 10.0, 5.0, 10.0)];
    let decision = decide(&input(vec![service("a", 5.0, &rows), service("b", 50.0, &[])]), Mode::Conformant);
    assert_eq!((decision.boards.len(), decision.unserved), (0, vec![0, 1]));
}

#[test]
fn energy_charges_the_board_until_the_slowest_batch_ends() {
    let mut both = input(vec![
        service("a", 5.0, &[row(3, 210, 10.0, 5.0, 10.0)]),
        service("b", 5.0, &[row(3, 210, 20.0, 5.0, 30.0)]),
    ]);
    both.estimator = Estimator::Energy;
    // 10 ms of 40 + 10 + 20 W, then 20 ms of 40 + 20 W.
    assert_eq!(decide(&both, Mode::Conformant).cost, 700.0 + 1200.0);
    both.estimator = Estimator::Additive;
    both.clocks[0] = ClockPower { clock: 210, static_power: 20.0, fan: 15.0, idle: 5.0 };
    assert_eq!(decide(&both, Mode::Conformant).cost, 20.0 + 2.0 * 20.0 + 30.0);
}

#[test]
fn a_work_limit_ends_the_search() {
    let rows: Vec<Row> = (0..50).map(|i| row(1 + i % 4, 210, f64::from(i), 5.0, f64::from(50 - i))).collect();
    let mut many = input((0..40).map(|i| service(&format!("s{i}"), 5.0, &rows)).collect());
    (many.max_boards, many.max_work) = (Some(1), 3);
    let decision = decide(&many, Mode::Native);
    assert!(decision.is_stopped);
    assert_eq!(decision.boards.iter().map(|b| b.members.len()).sum::<usize>(), 40);
}
