//! MPS shares: predicted as slices of their size, between the sizes that are known.

#![expect(clippy::unwrap_used, reason = "a test stops when what it needs is not there")]

use ent_performance::{ModelPerformance, PointKey, ShareKey};
use ent_plan::device::{Board, board};
use ent_plan::performance::{FittedModels, Measurement, PerformanceTable, catalogue};
use ent_plan::units::{Megahertz, PerSecond, Seconds, Watts};

const CLOCK: Megahertz = Megahertz(1410);

fn a100() -> Board {
    board("a100-80gb-pcie").unwrap()
}

fn share(percent: u32, batch: u32) -> ShareKey {
    ShareKey { percent, processes: 1, batch, clock: CLOCK }
}

/// Rows of 3 and 7 slices: a batch of one takes 10 and 5 ms, of four 40 and 20 ms; 60 and 90 W.
fn table() -> ModelPerformance {
    let row = |slices: u32, batch: u32, ms: f64, watts: f64| Measurement {
        n_compute_slices: slices,
        processes: 1,
        batch,
        clock: Some(CLOCK),
        throughput: PerSecond(1e3 * f64::from(batch) / ms),
        latency_p99: Seconds(ms * 1.1 / 1e3),
        board_power: None,
        dynamic_power: Some(Watts(watts)),
        row: 2,
        is_suspect: false,
    };
    let table = PerformanceTable {
        model: "m".to_owned(),
        board: "a100-80gb-pcie".to_owned(),
        source: "made up".to_owned(),
        is_illustration: false,
        measurements: vec![
            row(3, 1, 10.0, 60.0),
            row(3, 4, 40.0, 60.0),
            row(7, 1, 5.0, 90.0),
            row(7, 4, 20.0, 90.0),
        ],
    };
    ModelPerformance::from_table(&table, &a100())
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn a_fitted_share_of_the_whole_board_is_the_largest_profile() {
    let board = a100();
    let models: FittedModels = serde_json::from_str(catalogue(&board.id).unwrap()).unwrap();
    for model in &models.models {
        let known = ModelPerformance::from_fitted(model, &board).unwrap();
        let profile = board.profiles.iter().position(|p| p.name == "7g.80gb").unwrap();
        for &batch in &model.batches {
            let key = PointKey { profile, processes: 1, batch, clock: CLOCK };
            let Some(whole) = known.predict(&board, key) else { continue };
            let same = known.predict_share(&board, share(100, batch)).unwrap();
            assert_eq!(same.source, "extrapolated");
            for (a, b) in same.batch_times.iter().zip(&whole.batch_times) {
                assert!(close(a.get(), b.get()), "{} at {batch}", model.model);
            }
            for (a, b) in same.dynamic_power.iter().zip(&whole.dynamic_power) {
                assert!(close(a.get(), b.get()), "{} at {batch}", model.model);
            }
        }
    }
}

#[test]
fn every_fitted_share_is_finite_and_lies_between_the_sizes_around_it() {
    let board = a100();
    let models: FittedModels = serde_json::from_str(catalogue(&board.id).unwrap()).unwrap();
    for model in &models.models {
        let known = ModelPerformance::from_fitted(model, &board).unwrap();
        let batch = *model.batches.last().unwrap();
        let of = |percent| known.predict_share(&board, share(percent, batch)).unwrap();
        for percent in 1..=100 {
            let at = of(percent);
            assert_eq!(at.batch_times.len(), batch as usize);
            assert!(at.batch_times.iter().all(|t| t.get() > 0.0 && t.get().is_finite()));
            assert!(at.dynamic_power.iter().all(|w| w.get() >= 0.0 && w.get().is_finite()));
        }
        // Small shares are slower than large ones, by far.
        assert!(of(15).capacity(1) < of(57).capacity(1), "{}", model.model);
        let size = |n: u32| {
            let profile = board.profiles.iter().position(|p| p.is_base && p.n_compute_slices == n).unwrap();
            known.predict(&board, PointKey { profile, processes: 1, batch, clock: CLOCK })
        };
        // 43 % are 3.01 slices.
        if let Some(three) = size(3) {
            let near = of(43).capacity(1) / three.capacity(1);
            assert!((near - 1.0).abs() < 0.01, "{}: {near}", model.model);
        }
    }
}

#[test]
fn a_share_of_a_table_lies_between_measured_sizes_in_logarithms() {
    let (board, known) = (a100(), table());
    let whole = known.predict_share(&board, share(100, 4)).unwrap();
    assert_eq!(
        whole.batch_times.iter().map(|t| (t.get() * 1e4).round()).collect::<Vec<_>>(),
        [50.0, 100.0, 150.0, 200.0]
    );
    let part = |percent: f64| (7.0 * percent / 100.0 / 3.0).ln() / (7.0_f64 / 3.0).ln();
    let at = known.predict_share(&board, share(70, 1)).unwrap();
    assert!(close(at.batch_times[0].get(), 0.01 * 0.5_f64.powf(part(70.0))));
    assert!(close(at.dynamic_power[0].get(), 60.0 * 1.5_f64.powf(part(70.0))));
    assert!(close(at.latency_p99.get(), 0.011 * 0.5_f64.powf(part(70.0))));
    assert_eq!(at.source, "extrapolated");
    // Between batches as between sizes.
    assert_eq!(known.predict_share(&board, share(70, 3)).unwrap().batch_times.len(), 3);
}

#[test]
fn below_the_smallest_measured_size_a_batch_is_slower_and_costs_the_same() {
    let (board, known) = (a100(), table());
    // 2.1 slices.
    let at = known.predict_share(&board, share(30, 1)).unwrap();
    assert!(close(at.batch_times[0].get(), 0.010 * 3.0 / 2.1));
    assert!(close(at.batch_times[0].get() * at.dynamic_power[0].get(), 0.010 * 60.0));
}

#[test]
fn what_a_source_cannot_know_is_not_answered() {
    let (board, known) = (a100(), table());
    for (percent, batch) in [(0, 1), (101, 1), (50, 0), (50, 5)] {
        assert!(known.predict_share(&board, share(percent, batch)).is_none(), "{percent} % {batch}");
    }
    let other = ShareKey { clock: Megahertz(1050), ..share(50, 1) };
    assert!(known.predict_share(&board, other).is_none());
    assert!(known.predict_share(&board, ShareKey { processes: 2, ..share(50, 1) }).is_none());
}
