//! The public measurements through the importers: the traps as they are in the files themselves.
//!
//! Reads `ENT_DATA`; without it the tests say so and pass.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic and say why it skips"
)]

use ent_performance::import;
use ent_plan::device::Board;
use ent_plan::diagnostic::FileId;
use ent_plan::performance::PerformanceTable;

fn data(path: &str) -> Option<String> {
    let Some(root) = std::env::var_os("ENT_DATA") else {
        println!("skipped: ENT_DATA does not name the folder of the public measurements");
        return None;
    };
    let path = std::path::Path::new(&root).join(path);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn a100() -> Board {
    ent_plan::device::board("a100-80gb-pcie").expect("the A100 80GB PCIe is in the catalogue")
}

fn tables(text: &str, model: Option<&str>) -> Vec<PerformanceTable> {
    let boards = [a100()];
    let context = import::Context { boards: &boards, board: Some(0), model, source: "test" };
    let outcome = import::measurements(text, FileId(0), &context);
    assert!(!outcome.has_errors(), "{:#?}", outcome.diagnostics);
    outcome.value
}

#[test]
fn enertune_datastore_has_eleven_models_and_two_synthetic_rows() {
    let Some(text) = data("enertune/model_datastore.csv") else { return };
    let tables = tables(&text, None);
    assert_eq!(tables.len(), 11);
    assert_eq!(tables.iter().map(|t| t.measurements.len()).sum::<usize>(), 3150);
    let suspects = |below: bool| {
        tables
            .iter()
            .flat_map(|t| t.measurements.iter().map(move |m| (t.model.as_str(), m)))
            .filter(|(_, m)| m.is_suspect && (m.board_power.unwrap().get() < 290.0) == below)
            .map(|(model, m)| (model, m.batch, m.n_compute_slices, m.clock.unwrap().0))
            .collect::<Vec<_>>()
    };
    let mut synthetic = suspects(true);
    synthetic.sort_unstable();
    assert_eq!(synthetic, [("vgg19", 16, 2, 420), ("whisper", 16, 2, 600)]);
    assert_eq!(suspects(false).len(), 16);
}

#[test]
fn enertune_profile_files_agree_with_the_datastore() {
    let Some(text) = data("enertune/resnet50-perf-power-profile.csv") else { return };
    let profile = tables(&text, None);
    assert_eq!(profile.len(), 1);
    assert_eq!(profile[0].measurements.len(), 300);
}

#[test]
fn parvagpu_files_lose_the_points_that_did_not_fit() {
    let Some(text) = data("parvagpu/densenet201.csv") else { return };
    let tables = tables(&text, Some("densenet201"));
    assert_eq!(tables[0].measurements.len(), 225 - 94);
    assert!(tables[0].measurements.iter().all(|m| m.clock.is_none() && m.board_power.is_none()));
}

#[test]
fn carbon_files_are_read_whole() {
    for (path, n) in [("carbon/carbon_intensity.csv", 49), ("carbon/carbon_intensity_ciso_sep.csv", 49)] {
        let Some(text) = data(path) else { return };
        let outcome = import::carbon(&text, FileId(0));
        assert!(!outcome.has_errors());
        assert_eq!(outcome.value.len(), n);
    }
}
