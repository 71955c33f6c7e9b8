//! Fits of tables whose truth is known, because the form itself made them.

use super::*;
use crate::fixture;
use crate::predict::{ModelPerformance, PointKey};
use ent_plan::performance::Measurement;
use ent_plan::units::{Megahertz, PerSecond, Seconds, Watts};

const CLOCKS: [u32; 4] = [210, 600, 1050, 1410];

/// A table of a network with these coefficients, with a wobble of `noise` that no form has.
fn table(c: [f64; form::N_COEFFICIENTS], slices: &[u32], batches: &[u32], noise: f64) -> PerformanceTable {
    let board = fixture::board();
    let knowledge = cold(&board);
    let mut measurements = Vec::new();
    let mut phase = 0.3_f64;
    for s in slices {
        for batch in batches {
            for clock in CLOCKS {
                let cell = Cell { slices: *s, batch: *batch, clock: Megahertz(clock) };
                let (point, _) = observe::place(&knowledge.curves, cell).unwrap();
                let value = form::evaluate(&c.map(f64::ln), &point);
                phase = (phase * 37.7 + 0.123).fract();
                let ms = value.ln_time.exp() * (1.0 + noise * (phase - 0.5));
                let watts = value.ln_power.exp() * (1.0 - noise * (phase - 0.5));
                measurements.push(Measurement {
                    n_compute_slices: *s,
                    processes: 1,
                    batch: *batch,
                    clock: Some(cell.clock),
                    throughput: PerSecond(1e3 * f64::from(*batch) / ms),
                    latency_p99: Seconds(1.02 * ms / 1e3),
                    board_power: None,
                    dynamic_power: Some(Watts(watts)),
                    row: measurements.len() + 2,
                    is_suspect: false,
                });
            }
        }
    }
    PerformanceTable {
        model: "made".to_owned(),
        board: board.id,
        source: "made by the form".to_owned(),
        is_illustration: false,
        measurements,
    }
}

const NET: [f64; form::N_COEFFICIENTS] = [1.5, 3.0, 0.8, 0.1, 0.9, 1.2, 0.02, 8.0, 60.0, 0.4];

fn fitted(table: &PerformanceTable) -> FittedModel {
    let board = fixture::board();
    let outcome = fit_model(table, &board, &cold(&board), Span::default());
    assert!(!outcome.has_errors(), "{:?}", outcome.diagnostics);
    outcome.value.unwrap()
}

#[test]
fn a_table_the_form_made_is_predicted_where_it_was_not_measured() {
    let model = fitted(&table(NET, &[1, 2, 7], &[1, 4, 16, 32], 0.0));
    for m in table(NET, &[3, 4], &[2, 8], 0.0).measurements {
        let cell = Cell { slices: m.n_compute_slices, batch: m.batch, clock: m.clock.unwrap() };
        let estimate = estimate(&model, cell).unwrap();
        let throughput = f64::from(m.batch) / estimate.batch_time.get();
        assert!((throughput / m.throughput.get() - 1.0).abs() < 0.03, "{cell:?}");
        assert!((estimate.latency_p99.get() / m.latency_p99.get() - 1.0).abs() < 0.03, "{cell:?}");
        let power = estimate.dynamic_power.unwrap().get();
        assert!((power / m.dynamic_power.unwrap().get() - 1.0).abs() < 0.05, "{cell:?}");
    }
    assert!((model.latency_ratio - 1.02).abs() < 1e-6);
    assert_eq!(model.batches, [1, 2, 4, 8, 16, 32]);
    assert!(model.errors.throughput_mean < 0.02);
}

#[test]
fn left_out_in_closed_form_is_left_out_by_fitting_again() {
    let whole = table(NET, &[1, 3, 7], &[1, 8], 0.06);
    let board = fixture::board();
    let mut knowledge = cold(&board);
    // From the solution on, so that what is compared is the leaving out and not the starting point.
    knowledge.time.noise_sd = 0.05;
    knowledge.power.noise_sd = 0.05;
    let observed = observations(&whole, &board);
    let data = Whitened::new(&observed, &knowledge.curves, &knowledge.time, &knowledge.power).unwrap();
    let prior = Prior::of(&knowledge).unwrap();
    let solution = solve::solve(&data, &prior).unwrap();
    let closed = leave_one_out(&data, &solution, &knowledge).unwrap();
    for out in [2, 9, 17] {
        let mut rest = whole.clone();
        rest.measurements.remove(out);
        let model = fit_model(&rest, &board, &knowledge, Span::default()).value.unwrap();
        let seen = &observed[out];
        let estimate = estimate(&model, seen.cell).unwrap();
        let time = seen.ln_time - (estimate.batch_time.get() * 1e3).ln();
        let power = seen.ln_power.unwrap() - estimate.dynamic_power.unwrap().get().ln();
        assert!((closed[out].0 - time).abs() < 0.01, "{} {time}", closed[out].0);
        assert!((closed[out].1.unwrap() - power).abs() < 0.015, "{:?} {power}", closed[out].1);
    }
}

#[test]
fn a_fit_without_power_predicts_times_alone() {
    let mut without = table(NET, &[1, 2, 7], &[1, 4], 0.0);
    for m in &mut without.measurements {
        m.dynamic_power = None;
    }
    let model = fitted(&without);
    assert!(!model.has_power && model.errors.power_mean.is_none());
    let board = fixture::board();
    let performance = ModelPerformance::from_fitted(&model, &board).unwrap();
    let points = performance.points(&board);
    assert!(!points.is_empty());
    for key in points {
        assert!(performance.predict(&board, key).unwrap().dynamic_power.is_empty());
    }
}

#[test]
fn nothing_is_answered_beyond_what_was_measured() {
    let model = fitted(&table(NET, &[2, 7], &[2, 8], 0.0));
    let board = fixture::board();
    let performance = ModelPerformance::from_fitted(&model, &board).unwrap();
    let profile = |name: &str| board.profiles.iter().position(|p| p.name == name).unwrap();
    let ask = |name: &str, processes, batch, clock| {
        let key = PointKey { profile: profile(name), processes, batch, clock: Megahertz(clock) };
        performance.predict(&board, key).is_some()
    };
    assert!(ask("2g.20gb", 1, 8, 600) && ask("3g.40gb", 1, 4, 210));
    assert!(!ask("1g.10gb", 1, 8, 600) && !ask("1g.20gb", 1, 8, 600), "it may not fit in memory");
    assert!(!ask("2g.20gb", 2, 8, 600), "processes were not varied");
    assert!(!ask("2g.20gb", 1, 1, 600) && !ask("2g.20gb", 1, 16, 600), "batches were not measured");
    assert!(!ask("2g.20gb", 1, 8, 1425) && !ask("2g.20gb", 1, 8, 195), "clocks were not measured");
    let key = PointKey { profile: profile("2g.20gb"), processes: 1, batch: 8, clock: Megahertz(600) };
    let prediction = performance.predict(&board, key).unwrap();
    let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get()).collect();
    assert_eq!(times.len(), 8);
    assert_eq!(times[0], times[1], "below the smallest measured batch, as long as that one");
    assert!((times[4] - (times[3] + times[5]) / 2.0).abs() < 1e-12, "linear between measured batches");
}

#[test]
fn too_few_measurements_are_refused() {
    let mut few = table(NET, &[1, 7], &[1, 4], 0.0);
    few.measurements.truncate(4);
    let board = fixture::board();
    let outcome = fit_model(&few, &board, &cold(&board), Span::default());
    assert_eq!(outcome.diagnostics[0].code, Code::TooFewMeasurements);
    let mut suspect = table(NET, &[1, 7], &[1, 4], 0.0);
    suspect.measurements.iter_mut().for_each(|m| m.is_suspect = true);
    assert!(fit_model(&suspect, &board, &cold(&board), Span::default()).has_errors());
}

#[test]
fn a_fitted_file_is_read_as_it_was_written_and_damage_is_seen() {
    let model = fitted(&table(NET, &[1, 2, 7], &[1, 4], 0.02));
    let text = serde_json::to_string(&file(None, vec![model.clone()])).unwrap();
    assert_eq!(read_models(&text).unwrap(), std::slice::from_ref(&model));
    assert!(read_models(&text.replace("\"1.0\"", "\"9.0\"")).unwrap_err().contains("format version"));
    assert!(read_models("{}").is_err() && read_models("[1,2]").is_err());
    let board = fixture::board();
    let damages: [fn(&mut FittedModel); 7] = [
        |m| m.coefficients.serial = -1.0,
        |m| m.coefficients.energy_each = f64::NAN,
        |m| m.curves.voltage.reverse(),
        |m| m.residual.time.fixed_batch = 0.0,
        |m| m.residual.support[0].time_weight = f64::INFINITY,
        |m| m.batches.clear(),
        |m| m.batches = vec![4, 2],
    ];
    for damage in damages {
        let mut damaged = model.clone();
        damage(&mut damaged);
        assert!(ModelPerformance::from_fitted(&damaged, &board).is_none());
    }
    assert!(ModelPerformance::from_fitted(&model, &board).is_some());
}

#[test]
fn the_design_spreads_over_sizes_batches_and_clocks_and_needs_no_measurements() {
    let board = fixture::board();
    let made = table(NET, &[1, 2, 3, 4, 7], &[1, 2, 4, 8, 16, 32], 0.0);
    let all = cells(&made, &board);
    let chosen = design(&cold(&board), &all, 8);
    let distinct: BTreeSet<usize> = chosen.iter().copied().collect();
    assert_eq!((chosen.len(), distinct.len()), (8, 8));
    let of = |get: fn(&Cell) -> u32| chosen.iter().map(|i| get(&all[*i])).collect::<BTreeSet<u32>>();
    assert!(of(|c| c.slices).contains(&1) && of(|c| c.slices).contains(&7));
    assert!(of(|c| c.batch).contains(&1) && of(|c| c.batch).contains(&32));
    assert!(of(|c| c.clock.0).len() >= 3);
    assert_eq!(design(&cold(&board), &all, 500).len(), all.len());
}

#[test]
fn what_other_models_show_is_learned() {
    let board = fixture::board();
    let scaled = |k: f64| NET.map(|c| c * k);
    let tables: Vec<PerformanceTable> =
        [0.2, 1.0, 5.0, 20.0].map(|k| table(scaled(k), &[1, 2, 3, 4, 7], &[1, 4, 16, 32], 0.02)).to_vec();
    let knowledge = learn(&tables.iter().collect::<Vec<_>>(), &board);
    assert_ne!(knowledge, cold(&board));
    let few = table(scaled(2.0), &[1, 2, 3, 4, 7], &[1, 4, 16, 32], 0.02);
    let all = cells(&few, &board);
    let chosen = design(&knowledge, &all, 6);
    let mut sampled = few.clone();
    sampled.measurements = chosen.iter().map(|i| few.measurements[*i].clone()).collect();
    let off = |knowledge: &BoardKnowledge| {
        let model = fit_model(&sampled, &board, knowledge, Span::default()).value.unwrap();
        let errors = few.measurements.iter().zip(&all).map(|(m, cell)| {
            let time = estimate(&model, *cell).unwrap().batch_time.get();
            (f64::from(m.batch) / time / m.throughput.get() - 1.0).abs()
        });
        errors.sum::<f64>() / all.len() as f64
    };
    assert!(off(&knowledge) < 0.02, "{}", off(&knowledge));
    assert!(off(&knowledge) < off(&cold(&board)), "{} {}", off(&knowledge), off(&cold(&board)));
}
