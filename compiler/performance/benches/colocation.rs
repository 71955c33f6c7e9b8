//! Power of boards that several models share: measured, estimated here, and as published.
//!
//! Run with `ENT_DATA=FOLDER cargo bench -p ent-performance --bench colocation`. Nothing is fitted to these
//! boards. `colocated_power.csv` may have more of them; each `group` is one.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot run"
)]

use ent_performance::colocation::{Share, board_power};
use ent_performance::fit;
use ent_plan::performance::catalogue;
use ent_plan::units::{Megahertz, Watts};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Row {
    group: String,
    clock_mhz: u32,
    measured_mean_w: f64,
    model: String,
    batch: u32,
    compute_slices: u32,
    rate_rps: f64,
    isolated_dynamic_w: f64,
    isolated_throughput_rps: f64,
}

/// Base power in the published scheduler where it differs from what its data imply (EnerTune, `scheduler`:
/// static + 20.4 W fan + idle).
const PUBLISHED_BASE: &[(u32, f64)] =
    &[(690, 43.76), (780, 44.29), (870, 45.92), (960, 46.96), (1050, 49.06), (1140, 51.38), (1320, 65.24)];

fn main() {
    let Some(root) = std::env::var_os("ENT_DATA") else {
        println!("skipped: ENT_DATA does not name the folder of the public measurements");
        return;
    };
    let path = std::path::Path::new(&root).join("enertune/colocated_power.csv");
    let rows = csv::Reader::from_path(path).expect("the file can be read").into_deserialize();
    let mut groups: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let row: Row = row.expect("a row has all columns");
        groups.entry(row.group.clone()).or_default().push(row);
    }
    let board = ent_plan::device::board("a100-80gb-pcie").expect("the board is in the catalogue");
    let limit = board.power_limits.map(|l| l.default);
    let models = fit::read_models(catalogue("a100-80gb-pcie").expect("the board has models")).expect("sound");
    println!(
        "{:<8}{:>10}{:>24}{:>24}{:>24}",
        "board", "measured", "with measured parts", "with fitted parts", "published"
    );
    let mut sums = [0.0; 3];
    for (group, rows) in &groups {
        let clock = Megahertz(rows[0].clock_mhz);
        let base = board.base_power.as_ref().and_then(|b| b.at(clock)).expect("base power is known");
        let measured: Vec<Share> = rows
            .iter()
            .map(|r| Share {
                dynamic_power: Watts(r.isolated_dynamic_w),
                utilisation: r.rate_rps / r.isolated_throughput_rps,
            })
            .collect();
        let fitted: Vec<Share> = rows
            .iter()
            .map(|r| {
                let model =
                    models.iter().find(|m| m.model == r.model).expect("the model is in the catalogue");
                let cell = fit::Cell { slices: r.compute_slices, batch: r.batch, clock };
                let estimate = fit::estimate(model, cell).expect("the cell is on the board");
                Share {
                    dynamic_power: estimate.dynamic_power.expect("power is fitted"),
                    utilisation: r.rate_rps * estimate.batch_time.get() / f64::from(r.batch),
                }
            })
            .collect();
        let published_base =
            PUBLISHED_BASE.iter().find(|(c, _)| *c == clock.0).map_or(base.get(), |(_, w)| *w);
        let published = published_base + rows.iter().map(|r| r.isolated_dynamic_w).sum::<f64>();
        let estimates =
            [board_power(base, &measured, limit).get(), board_power(base, &fitted, limit).get(), published];
        let seen = rows[0].measured_mean_w;
        print!("{group:<8}{seen:>8.1} W");
        for (sum, estimate) in sums.iter_mut().zip(estimates) {
            let error = 100.0 * (estimate / seen - 1.0);
            *sum += error.abs();
            print!("{:>24}", format!("{estimate:.1} W ({error:+.2} %)"));
        }
        println!();
    }
    print!("{:<18}", "mean error");
    for sum in sums {
        print!("{:>24}", format!("{:.2} %", sum / groups.len() as f64));
    }
    println!();
}
