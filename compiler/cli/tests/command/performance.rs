//! Fitting and showing performance models.

use crate::run::{names, run, told};
use std::fmt::Write as _;
use std::path::Path;

/// Measurements by a formula: what a model that is pure work on the compute slices would give.
fn write_measurements(folder: &Path, header: &str) {
    let mut text = format!("{header}\n");
    for (clock, base) in [(780, 46.7), (1050, 49.6), (1410, 73.4)] {
        for slices in [1, 2, 3, 4, 7] {
            for batch in [1, 2, 4, 8, 16] {
                let ghz = f64::from(clock) / 1000.0;
                let latency = (2.0 + 3.0 * f64::from(batch)) / (f64::from(slices).powf(0.9) * ghz) + 0.5;
                let throughput = f64::from(batch) / latency * 1000.0;
                let dynamic = 6.0 * f64::from(slices) * ghz * ghz;
                let total = base + dynamic;
                writeln!(text, "toy,{batch},{slices},{clock},{total},{dynamic},{throughput},{latency}")
                    .unwrap();
            }
        }
    }
    std::fs::write(folder.join("toy.csv"), text).unwrap();
}

const HEADER: &str =
    "model,batch_size,mig_slices,frequency,avg_power_draw,dynamic_power_draw,throughput,latency";

#[test]
fn measurements_become_a_file_that_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    write_measurements(folder.path(), HEADER);
    let (code, out, err) = told(&run(folder.path(), &["performance", "fit", "toy.csv", "-o", "toy.json"]));
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("wrote toy.json"), "{err}");
    let (code, out, err) = told(&run(folder.path(), &["performance", "show", "toy.json"]));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("toy") && out.contains("power error") && out.contains("toy.csv"), "{out}");
    let (_, out, _) = told(&run(folder.path(), &["performance", "show", "toy.json", "--format", "json"]));
    let models: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(models[0]["model"], "toy");
    assert_eq!(models[0]["n_measurements"], 75);
}

#[test]
fn a_fit_that_fails_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write_measurements(folder.path(), &HEADER.replace("latency", "lateness"));
    for (arguments, word) in [
        (&["performance", "fit", "toy.csv", "-o", "toy.json"][..], "measurement-column"),
        (&["performance", "fit", "none.csv", "-o", "toy.json"], "missing-file"),
        (&["performance", "fit", "toy.csv", "-o", "toy.json", "--board", "a101"], "unknown-board"),
        (&["performance", "show", "toy.csv"], "unreadable-file"),
        (&["performance", "show", "catalog:performance/none"], "unknown-name"),
    ] {
        let (code, out, err) = told(&run(folder.path(), arguments));
        assert_eq!((code, out.as_str()), (1, ""), "{arguments:?}");
        assert!(err.contains(&format!("error[{word}]")), "{arguments:?}: {err}");
    }
    assert_eq!(names(folder.path()), ["toy.csv"]);
}

#[test]
fn the_catalogue_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out, _) =
        told(&run(folder.path(), &["performance", "show", "catalog:performance/a100-80gb-pcie"]));
    assert_eq!(code, 0);
    assert!(out.contains("resnet50") && out.contains("EnerTune"), "{out}");
}
