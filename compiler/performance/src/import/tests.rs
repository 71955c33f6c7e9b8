//! The traps of each format, one small file each. All numbers are made up.

use super::*;
use crate::fixture::board;
use ent_plan::diagnostic::Severity;
use ent_plan::performance::Measurement;
use ent_plan::units::{Megahertz, Watts};

fn import(text: &str) -> Outcome<Vec<PerformanceTable>> {
    let boards = [board()];
    let context = Context { boards: &boards, board: Some(0), model: Some("net"), source: "made up" };
    measurements(text, FileId(0), &context)
}

fn plain(text: &str) -> Vec<Measurement> {
    let outcome = import(text);
    assert!(!outcome.has_errors(), "{:#?}", outcome.diagnostics);
    outcome.value.into_iter().flat_map(|t| t.measurements).collect()
}

fn only_error(text: &str) -> (Code, String, String) {
    let outcome = import(text);
    let errors: Vec<_> = outcome.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 1, "{:#?}", outcome.diagnostics);
    let span = errors[0].primary.span;
    let under = text.get(span.start as usize..span.end as usize).unwrap_or("");
    (errors[0].code, errors[0].message.clone(), under.to_owned())
}

const ENERTUNE: &str =
    "model,batch_size,mig_slices,frequency,avg_power_draw,dynamic_power_draw,throughput,latency\n";
const OWN: &str =
    "model,slices,processes,batch,clock_mhz,throughput_rps,latency_p99_ms,board_power_w,dynamic_power_w\n";
const PARVAGPU: &str = "Mig instance,Batch size,Workload Number,Throughput,Latency\r\n";

#[test]
fn an_enertune_row_is_read_in_its_units() {
    let rows = plain(&format!("{ENERTUNE}net,4,2.0,600,66,20,200,20\n"));
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].n_compute_slices, 2);
    assert_eq!(rows[0].clock, Some(Megahertz(600)));
    assert!((rows[0].latency_p99.get() - 0.020).abs() < 1e-12);
    assert_eq!(rows[0].dynamic_power, Some(Watts(20.0)));
    assert_eq!(rows[0].row, 2);
    assert!(!rows[0].is_suspect);
}

#[test]
fn dynamic_power_that_repeats_board_power_is_recomputed_from_base() {
    let text = format!("{ENERTUNE}net,4,2,600,66,66,200,20\nnet,8,2,600,70,70,250,32\n");
    let outcome = import(&text);
    assert!(!outcome.has_errors());
    assert_eq!(outcome.value[0].measurements[0].dynamic_power, Some(Watts(20.0)));
    assert_eq!(outcome.value[0].measurements[1].dynamic_power, Some(Watts(24.0)));
    assert_eq!(outcome.diagnostics.len(), 1);
    assert_eq!(outcome.diagnostics[0].code, Code::MeasurementRow);
}

#[test]
fn repeats_become_their_mean_with_a_warning() {
    let text = format!("{ENERTUNE}net,4,2,600,66,20,200,20\nnet,4,2.0,600,68,22,210,20\n");
    let outcome = import(&text);
    assert!(!outcome.has_errors());
    assert_eq!(outcome.value[0].measurements.len(), 1);
    assert!((outcome.value[0].measurements[0].throughput.get() - 205.0).abs() < 1e-9);
    assert_eq!(outcome.value[0].measurements[0].dynamic_power, Some(Watts(21.0)));
    assert_eq!(outcome.diagnostics[0].code, Code::DuplicateMeasurement);
    assert!(outcome.diagnostics[0].message.contains("rows 2 and 3"));
}

#[test]
fn repeats_that_contradict_each_other_are_an_error() {
    let (code, message, under) =
        only_error(&format!("{ENERTUNE}net,4,2,600,66,20,200,20\nnet,4,2,600,66,20,400,10\n"));
    assert_eq!(code, Code::DuplicateMeasurement);
    assert!(message.contains("rows 2 and 3"));
    assert_eq!(under, "net,4,2,600,66,20,400,10");
}

#[test]
fn a_row_whose_implied_base_is_unlike_the_others_is_suspect() {
    let rows = plain(&format!(
        "{ENERTUNE}net,1,2,600,66,20,100,10\nnet,2,2,600,67,21,150,13.4\nnet,4,2,600,68,22,200,20\nnet,8,2,600,69,24.6,210,38\n"
    ));
    assert_eq!(rows.iter().map(|r| r.is_suspect).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn a_row_at_the_power_limit_is_suspect() {
    let rows = plain(&format!("{ENERTUNE}net,32,7,1410,297,223,900,35.6\nnet,16,7,1410,270,196,880,18.2\n"));
    assert_eq!(rows.iter().map(|r| r.is_suspect).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn parvagpu_throughput_is_of_one_process_and_latency_in_seconds() {
    let rows = plain(&format!(
        "{PARVAGPU}1,4,1,100,0.04\r\n1,4,3,40,0.1\r\n2,256,5,0,0\r\n3,4,1,N/A,N/A\r\n7,1,2,50,0.02"
    ));
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1].processes, 3);
    assert!((rows[1].throughput.get() - 120.0).abs() < 1e-9);
    assert!((rows[1].latency_p99.get() - 0.1).abs() < 1e-12);
    assert_eq!(rows[1].clock, None);
    assert_eq!(rows[1].board_power, None);
    assert_eq!((rows[2].n_compute_slices, rows[2].row), (7, 6));
}

#[test]
fn own_layout_leaves_columns_out() {
    let rows = plain("slices,batch,throughput_rps,latency_p99_ms\n1,1,100,10\n");
    assert_eq!(rows[0].processes, 1);
    assert_eq!(rows[0].clock, None);
    let rows = plain(
        "# source: a bench\nslices,batch,clock_mhz,throughput_rps,latency_p99_ms,board_power_w\n\n1,1,600,100,10,56\n",
    );
    assert_eq!(rows[0].dynamic_power, Some(Watts(10.0)));
    assert_eq!(rows[0].row, 4);
}

#[test]
fn comments_name_the_source_and_mark_illustrations() {
    let outcome =
        import("# source: nobody\n# illustration\nslices,batch,throughput_rps,latency_p99_ms\n1,1,100,10\n");
    assert_eq!(outcome.value[0].source, "nobody");
    assert!(outcome.value[0].is_illustration);
    assert!(!import("slices,batch,throughput_rps,latency_p99_ms\n1,1,100,10\n").value[0].is_illustration);
}

#[test]
fn wrong_units_are_named() {
    let cases = [
        ("slices,batch,throughput_rps,latency_p99_ms\n1,1,100,10000\n2,1,200,5000\n", "microseconds"),
        ("slices,batch,throughput_rps,latency_p99_ms\n1,1,100,0.01\n2,1,200,0.005\n", "in seconds"),
        ("Mig instance,Batch size,Workload Number,Throughput,Latency\n1,1,1,100,10\n", "milliseconds"),
        ("slices,processes,batch,throughput_rps,latency_p99_ms\n1,4,1,100,10\n2,4,1,200,5\n", "one process"),
        ("slices,batch,clock_mhz,throughput_rps,latency_p99_ms\n1,1,1.41,100,10\n", "GHz"),
        ("slices,batch,clock_mhz,throughput_rps,latency_p99_ms\n1,1,1410000,100,10\n", "kHz"),
        ("slices,batch,throughput_rps,latency_p99_ms,board_power_w\n1,1,100,10,70000\n", "mW"),
        ("slices,batch,throughput_rps,latency_p99_ms,board_power_w\n1,1,100,10,0.07\n", "kW"),
    ];
    for (text, unit) in cases {
        let outcome = import(text);
        assert_eq!(outcome.diagnostics.len(), 1, "{text}{:#?}", outcome.diagnostics);
        assert_eq!(outcome.diagnostics[0].code, Code::MeasurementUnits);
        assert!(outcome.diagnostics[0].primary.text.contains(unit), "{:?}", outcome.diagnostics[0]);
        assert!(outcome.value.is_empty());
    }
}

#[test]
fn one_row_in_another_unit_is_found() {
    let (code, message, under) = only_error(
        "slices,batch,throughput_rps,latency_p99_ms\n1,1,100,10\n2,1,200,5\n3,1,300,0.0033\n4,1,400,2.5\n",
    );
    assert_eq!(code, Code::MeasurementUnits);
    assert!(message.contains("row 4"));
    assert_eq!(under, "3,1,300,0.0033");
}

#[test]
fn faulty_cells_are_found_where_they_are() {
    let cases = [
        ("net,2,1,4,600,0,0,56,10", Code::MeasurementRow, "zero throughput", "0"),
        ("net,2,1,4,600,200,-20,56,10", Code::MeasurementRow, "negative", "-20"),
        ("net,2,1,4,600,NaN,20,56,10", Code::MeasurementRow, "not a finite", "NaN"),
        ("net,2,1,4,600,200,inf,56,10", Code::MeasurementRow, "not a finite", "inf"),
        ("net,2,1,4,600,many,20,56,10", Code::MeasurementRow, "not a number", "many"),
        ("net,2,1,4,600,1e300,20,56,10", Code::MeasurementRow, "absurd", "1e300"),
        ("net,2,1,4,600,200,20,1e200,10", Code::MeasurementRow, "absurd", "1e200"),
        ("net,2.5,1,4,600,200,20,56,10", Code::MeasurementRow, "whole number", "2.5"),
        ("net,2,1,0,600,200,20,56,10", Code::MeasurementRow, "whole number", "0"),
        (
            "net,2,1,4,600,200,20,30,",
            Code::MeasurementRow,
            "below the board's base",
            "net,2,1,4,600,200,20,30,",
        ),
        ("net,2,1,4,600,200,20", Code::MeasurementRow, "has 7 values", "net,2,1,4,600,200,20"),
        (
            "net,2,1,4,600,200,20,56,10,9",
            Code::MeasurementRow,
            "has 10 values",
            "net,2,1,4,600,200,20,56,10,9",
        ),
        (
            "net,5,1,4,600,200,20,56,10",
            Code::UnknownProfile,
            "5 compute slices",
            "net,5,1,4,600,200,20,56,10",
        ),
        ("net,2,1,4,601,200,20,56,10", Code::ClockOffLadder, "601 MHz", "net,2,1,4,601,200,20,56,10"),
    ];
    for (row, code, message, under) in cases {
        let good = "net,1,1,4,600,100,40,56,10\n";
        let (found, says, shown) = only_error(&format!("{OWN}{good}{row}\n"));
        assert_eq!((found, shown.as_str()), (code, under), "{row}");
        assert!(says.contains("row 3") && says.contains(message), "{row}: {says}");
    }
}

#[test]
fn columns_are_missed_doubled_and_ignored() {
    let (code, message, _) = only_error("model,slices,batch,throughput_rps\nnet,1,1,100\n");
    assert_eq!(code, Code::MeasurementColumn);
    assert!(message.contains("latency_p99_ms"));
    let (code, message, _) = only_error("slices,batch,batch,throughput_rps,latency_p99_ms\n1,1,1,100,10\n");
    assert_eq!(code, Code::MeasurementColumn);
    assert!(message.contains("given twice"));
    let (code, _, _) = only_error("a,b,c\n1,2,3\n");
    assert_eq!(code, Code::MeasurementColumn);
    let (code, _, _) = only_error("1,1,100,10\n1,1,100,10\n");
    assert_eq!(code, Code::MeasurementColumn);
    let outcome = import("slices,batch,throughput_rps,latency_p99_ms,weather\n1,1,100,10,fair\n");
    assert!(!outcome.has_errors());
    assert_eq!(outcome.value[0].measurements.len(), 1);
    assert_eq!(outcome.diagnostics[0].code, Code::MeasurementColumn);
    let (code, message, _) = only_error("slices,batch,throughput_rps,latency_p99_ms\n");
    assert_eq!(code, Code::MeasurementRow);
    assert!(message.contains("no measurements"));
}

#[test]
fn a_table_without_a_board_says_how_to_name_one() {
    let boards = [board(), Board { id: "other".to_owned(), ..board() }];
    let context = Context { boards: &boards, board: None, model: Some("net"), source: "" };
    let outcome =
        measurements("slices,batch,throughput_rps,latency_p99_ms\n1,1,100,10\n", FileId(0), &context);
    assert!(outcome.diagnostics[0].help.as_ref().unwrap().contains("`board`"));
    let text = "board,slices,batch,throughput_rps,latency_p99_ms\nother,1,1,100,10\ntest_board,1,1,100,10\n";
    let outcome = measurements(text, FileId(0), &context);
    assert!(!outcome.has_errors());
    assert_eq!(outcome.value.iter().map(|t| t.board.as_str()).collect::<Vec<_>>(), ["other", "test-board"]);
}

#[test]
fn a_thousand_faulty_rows_are_not_a_thousand_diagnostics() {
    let text = format!("{OWN}{}", "net,1,1,4,600,x,40,56,10\n".repeat(1000));
    let outcome = import(&text);
    assert_eq!(outcome.diagnostics.len(), MAX_ROW_FAULTS + 1);
    assert!(outcome.diagnostics.last().unwrap().message.contains("980 more"));
}

#[test]
fn carbon_series_are_read_and_gaps_are_errors() {
    let read = |text: &str| carbon(text, FileId(0));
    let plain = |text: &str| {
        let outcome = read(text);
        assert!(!outcome.has_errors(), "{:#?}", outcome.diagnostics);
        outcome.value.iter().map(|v| v.get()).collect::<Vec<_>>()
    };
    assert_eq!(plain("north\n100\n120.5\n0"), [100.0, 120.5, 0.0]);
    assert_eq!(plain("10\n20\n"), [10.0, 20.0]);
    assert_eq!(plain("time,value\r\n2024-01-01T00:00Z,310\r\n2024-01-01T01:00Z,290\r\n"), [310.0, 290.0]);
    assert_eq!(plain("zone,Carbon Intensity gCO\u{2082}eq/kWh,wind %\nX,55,3\n"), [55.0]);
    for (text, what) in [
        ("a\n100\n\"\"\n120\n", "missing"),
        ("t,v\n1,100\n2,\n", "missing"),
        ("a\n100\n\n120\n\n", "missing"),
        ("a\n100\nnan\n", "not a finite"),
        ("a\n100\n-3\n", "negative"),
        ("a\n100\n250000\n", "not a grid"),
        ("a\n100\nlow\n", "not a number"),
        ("a,b,c\n1,2,3\n", "cannot be told"),
        ("intensity direct,intensity lca\n1,2\n", "cannot be told"),
        ("a\n", "no values"),
    ] {
        let outcome = read(text);
        assert_eq!(outcome.diagnostics.len(), 1, "{text}{:#?}", outcome.diagnostics);
        assert!(outcome.diagnostics[0].message.contains(what), "{:?}", outcome.diagnostics[0]);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_imported_or_refused(text in "\\PC{0,200}|([a-z0-9,.\"#\\r\\n-]{0,200})") {
        let _ = carbon(&text, FileId(0));
        let outcome = import(&text);
        for diagnostic in &outcome.diagnostics {
            let span = diagnostic.primary.span;
            assert!(text.get(span.start as usize..span.end as usize).is_some());
        }
    }

    #[test]
    fn what_is_imported_is_finite_and_positive(
        cells in proptest::collection::vec(proptest::collection::vec("-?[0-9]{0,3}(\\.[0-9]{1,2})?(e[0-9]{1,3})?|nan|inf|N/A", 8), 1..6),
    ) {
        let rows: Vec<String> = cells.iter().map(|row| format!("net,{}", row.join(","))).collect();
        let outcome = import(&format!("{OWN}net,1,1,4,600,100,40,56,10\n{}\n", rows.join("\n")));
        for m in outcome.value.iter().flat_map(|t| &t.measurements) {
            let numbers = [Some(m.throughput.get()), Some(m.latency_p99.get()), m.board_power.map(Watts::get)];
            assert!(numbers.into_iter().flatten().all(|v| v.is_finite() && v > 0.0));
            assert!(m.dynamic_power.is_none_or(|w| w.get().is_finite() && w.get() >= 0.0));
        }
    }
}
