//! The built-in fitted models: what they answer, and how near the measurements they are.

#![expect(clippy::expect_used, reason = "a test stops when what it needs is not there")]

use ent_performance::{ModelPerformance, PointKey, fit, import};
use ent_plan::device::Board;
use ent_plan::diagnostic::FileId;
use ent_plan::performance::{FittedModel, catalogue};

fn a100() -> Board {
    ent_plan::device::board("a100-80gb-pcie").expect("the A100 80GB PCIe is in the catalogue")
}

fn models() -> Vec<FittedModel> {
    fit::read_models(catalogue("a100-80gb-pcie").expect("the catalogue has the board"))
        .expect("the catalogue is sound")
}

#[test]
fn every_point_of_every_model_is_answered_with_sound_numbers() {
    let board = a100();
    let models = models();
    assert_eq!(models.len(), 11);
    for model in &models {
        let performance = ModelPerformance::from_fitted(model, &board).expect("the model is sound");
        let points = performance.points(&board);
        assert!(points.len() >= model.batches.len() * 4 * 9, "{}", model.model);
        for key in points {
            let p = performance.predict(&board, key).expect("a point is answered");
            assert_eq!(p.batch_times.len(), key.batch as usize);
            assert_eq!(p.dynamic_power.len(), key.batch as usize);
            assert!(p.batch_times.iter().all(|t| t.get().is_finite() && t.get() > 0.0));
            assert!(p.dynamic_power.iter().all(|w| w.get().is_finite() && w.get() > 0.0));
            assert!(p.latency_p99 >= *p.batch_times.last().expect("a batch has a time"));
            assert!(p.time_error > 0.0 && p.time_error < 0.2, "{} {key:?} {}", model.model, p.time_error);
            assert!(p.power_error > 0.0 && p.power_error < 0.3, "{} {key:?} {}", model.model, p.power_error);
        }
    }
}

#[test]
fn double_memory_is_faster_than_one_slice_and_says_it_was_not_measured() {
    let board = a100();
    let index = |name: &str| board.profiles.iter().position(|p| p.name == name).expect("the profile exists");
    let model = models().into_iter().find(|m| m.model == "vgg11").expect("vgg11 is in the catalogue");
    let performance = ModelPerformance::from_fitted(&model, &board).expect("the model is sound");
    let at = |profile| {
        let clock = ent_plan::units::Megahertz(1050);
        performance.predict(&board, PointKey { profile, processes: 1, batch: 8, clock }).expect("answered")
    };
    let (single, double, two) = (at(index("1g.10gb")), at(index("1g.20gb")), at(index("2g.20gb")));
    assert_eq!((single.source, double.source, two.source), ("fitted", "extrapolated", "fitted"));
    assert!(double.batch_times.last() < single.batch_times.last());
    assert!(two.batch_times.last() < double.batch_times.last());
}

#[test]
fn a_size_smaller_than_any_measured_is_not_answered_for() {
    let board = a100();
    let model = models().into_iter().find(|m| m.model == "whisper").expect("whisper is in the catalogue");
    assert_eq!(model.slices.first(), Some(&2));
    let performance = ModelPerformance::from_fitted(&model, &board).expect("the model is sound");
    assert!(performance.points(&board).iter().all(|k| board.profiles[k.profile].n_compute_slices >= 2));
}

#[test]
fn the_catalogue_is_near_the_measurements() {
    let Some(root) = std::env::var_os("ENT_DATA") else {
        println!("skipped: ENT_DATA does not name the folder of the public measurements");
        return;
    };
    let path = std::path::Path::new(&root).join("enertune/model_datastore.csv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let boards = [a100()];
    let context = import::Context { boards: &boards, board: Some(0), model: None, source: "" };
    for table in import::measurements(&text, FileId(0), &context).value {
        let model =
            models().into_iter().find(|m| m.model == table.model).expect("every model is in the catalogue");
        let (mut off, mut n) = ((0.0, 0.0), 0.0);
        for m in table.measurements.iter().filter(|m| !m.is_suspect) {
            let clock = m.clock.expect("EnerTune gives clocks");
            let cell = fit::Cell { slices: m.n_compute_slices, batch: m.batch, clock };
            let estimate = fit::estimate(&model, cell).expect("a measured cell is answered");
            let base = boards[0].base_power.as_ref().and_then(|b| b.at(clock)).expect("base power is known");
            let power = base.get() + estimate.dynamic_power.expect("power is fitted").get();
            off.0 += (f64::from(m.batch) / estimate.batch_time.get() / m.throughput.get() - 1.0).abs();
            off.1 += (power / m.board_power.expect("EnerTune gives power").get() - 1.0).abs();
            n += 1.0;
        }
        assert!(off.0 / n < 0.025 && off.1 / n < 0.0125, "{}: {} {}", model.model, off.0 / n, off.1 / n);
    }
}
