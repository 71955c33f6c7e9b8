//! What a program's performance references give, and how they fail.

use super::*;
use crate::fixture::program;
use crate::predict::PointKey;
use ent_plan::diagnostic::Located;
use ent_plan::units::Megahertz;

const ROWS: &str = "model,slices,batch,clock_mhz,throughput_rps,latency_p99_ms,board_power_w\n\
    cat,1,1,600,100,10,56\ncat,1,4,600,160,25,60\ndog,2,2,1050,90,22.3,80\n";

fn refer(program: &mut Program, file: &str, entry: Option<&str>, source: PerformanceSource) {
    for model in &mut program.models {
        let reference = PerformanceRef { file: file.to_owned(), entry: entry.map(str::to_owned), source };
        model.performance.push(Located::new(reference, Span::default()));
    }
}

fn load_text(program: &Program, text: &str) -> Outcome<PerformanceSet> {
    let mut sources = Sources::default();
    load(program, &mut |_| Ok(text.as_bytes().to_vec()), &mut sources)
}

#[test]
fn table_rows_are_the_only_points_and_keep_their_throughput() {
    let mut program = program(&["cat", "dog"]);
    refer(&mut program, "rows.csv", None, PerformanceSource::Table);
    let outcome = load_text(&program, ROWS);
    assert!(!outcome.has_errors(), "{:#?}", outcome.diagnostics);
    let board = &program.boards[0];
    let cat = outcome.value.get(0, 0).unwrap();
    let points = cat.points(board);
    assert_eq!(
        points.iter().map(|p| (p.profile, p.batch, p.clock.0)).collect::<Vec<_>>(),
        [(0, 1, 600), (0, 4, 600)]
    );
    let prediction = cat.predict(board, points[1]).unwrap();
    assert_eq!(prediction.capacity(1), 160.0);
    let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.millis()).collect();
    for (time, expected) in times.iter().zip([10.0, 15.0, 20.0, 25.0]) {
        assert!((time - expected).abs() < 1e-9);
    }
    let powers: Vec<f64> = prediction.dynamic_power.iter().map(|w| w.get()).collect();
    assert!((powers[0] - 10.0).abs() < 1e-9 && (powers[3] - 14.0).abs() < 1e-9);
    assert_eq!(prediction.latency_p99, ent_plan::units::Seconds(0.025));
    assert_eq!((prediction.time_error, prediction.source), (0.0, "table"));
    // Neither another clock, nor a batch in between, nor the double-memory profile was measured.
    for (profile, batch, clock) in [(0, 1, 210), (0, 2, 600), (2, 1, 600), (1, 1, 600), (9, 1, 600)] {
        let key = PointKey { profile, processes: 1, batch, clock: Megahertz(clock) };
        assert_eq!(cat.predict(board, key), None);
    }
    assert!(outcome.value.get(0, 1).is_none() && outcome.value.get(7, 0).is_none());
}

#[test]
fn an_entry_the_file_lacks_is_named_with_a_near_one() {
    let mut program = program(&["cats"]);
    refer(&mut program, "rows.csv", None, PerformanceSource::Table);
    let outcome = load_text(&program, ROWS);
    assert_eq!(outcome.diagnostics.len(), 1);
    assert_eq!(outcome.diagnostics[0].code, Code::UnknownName);
    assert_eq!(outcome.diagnostics[0].help.as_deref(), Some("did you mean `cat`?"));
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let mut program = program(&["cat"]);
    refer(&mut program, "rows.csv", None, PerformanceSource::Table);
    let mut sources = Sources::default();
    let missing = load(&program, &mut |_| Err(LoadError::Missing), &mut sources);
    assert_eq!(missing.diagnostics[0].code, Code::MissingFile);
    for bytes in [&b""[..], &[0xff, 0xfe, 0x61, 0x00], &[0x00, 0x01], &[0x61, 0xc3, 0x28]] {
        let outcome = load(&program, &mut |_| Ok(bytes.to_vec()), &mut sources);
        assert_eq!(outcome.diagnostics.len(), 1);
        assert_eq!(outcome.diagnostics[0].code, Code::UnreadableFile);
    }
    refer(&mut program, "x.json", None, PerformanceSource::Fitted);
    program.models[0].performance.remove(0);
    let outcome = load(&program, &mut |_| Ok(b"{\"models\": 3}".to_vec()), &mut sources);
    assert_eq!(outcome.diagnostics[0].code, Code::UnreadableFile);
}

#[test]
fn a_table_in_place_of_the_models_names_the_service_it_lacks() {
    let program = program(&["cat", "owl"]);
    let mut sources = Sources::default();
    let outcome = PerformanceSet::from_table(&program, "rows.csv", ROWS.as_bytes(), &mut sources);
    assert_eq!(outcome.diagnostics.len(), 1);
    assert_eq!(outcome.diagnostics[0].code, Code::SloWithoutMeasurement);
    assert!(outcome.diagnostics[0].message.contains("serve_owl"));
    assert!(outcome.value.get(0, 0).is_some() && outcome.value.get(1, 0).is_none());
    assert_eq!(sources.iter().count(), 1);
}

#[test]
fn invented_rows_are_marked() {
    let mut program = program(&["cat"]);
    refer(&mut program, "rows.csv", None, PerformanceSource::Table);
    let outcome = load_text(&program, &format!("# illustration: nobody measured this\n{ROWS}"));
    assert!(!outcome.has_errors());
    assert_eq!(outcome.diagnostics[0].code, Code::IllustrativeData);
    assert!(outcome.value.get(0, 0).unwrap().is_illustration);
}

#[test]
fn rows_without_a_clock_were_measured_at_the_highest() {
    let mut program = program(&["net"]);
    refer(&mut program, "net.csv", None, PerformanceSource::Table);
    let text = "Mig instance,Batch size,Workload Number,Throughput,Latency\r\n1,4,3,40,0.1\r\n1,8,3,0,0";
    let outcome = load_text(&program, text);
    assert!(!outcome.has_errors());
    let net = outcome.value.get(0, 0).unwrap();
    let points = net.points(&program.boards[0]);
    assert_eq!(points, [PointKey { profile: 0, processes: 3, batch: 4, clock: Megahertz(1410) }]);
    let prediction = net.predict(&program.boards[0], points[0]).unwrap();
    assert_eq!(prediction.capacity(3), 120.0);
    assert!(prediction.dynamic_power.is_empty());
}

#[test]
fn rows_without_a_clock_on_a_board_without_clocks_are_left_to_the_planner() {
    let mut program = program(&["net"]);
    program.boards[0].clocks.clear();
    program.boards[0].base_power = None;
    for source in [PerformanceSource::Table, PerformanceSource::Fitted] {
        program.models[0].performance.clear();
        refer(&mut program, "net.csv", None, source);
        let outcome = load_text(&program, "slices,batch,throughput_rps,latency_p99_ms\n1,1,100,10\n");
        assert!(outcome.diagnostics.is_empty(), "{:#?}", outcome.diagnostics);
        assert!(outcome.value.get(0, 0).is_none());
    }
}

#[test]
fn a_csv_file_is_fitted_unless_the_program_says_table() {
    let mut program = program(&["cat"]);
    refer(&mut program, "rows.csv", None, PerformanceSource::Fitted);
    let outcome = load_text(&program, ROWS);
    assert_eq!(outcome.diagnostics[0].code, Code::TooFewMeasurements);
    let mut rows = String::from("slices,batch,clock_mhz,throughput_rps,latency_p99_ms,dynamic_power_w\n");
    for (slices, batch, clock, rate) in [
        (1, 1, 210, 40.0),
        (1, 8, 1050, 220.0),
        (2, 4, 1410, 420.0),
        (4, 8, 600, 500.0),
        (7, 32, 1410, 2100.0),
        (7, 1, 600, 160.0),
    ] {
        let latency = 1e3 * f64::from(batch) / rate;
        rows.push_str(&format!("{slices},{batch},{clock},{rate},{latency},{}\n", rate / 15.0));
    }
    let outcome = load_text(&program, &rows);
    assert!(outcome.diagnostics.is_empty(), "{:#?}", outcome.diagnostics);
    let cat = outcome.value.get(0, 0).unwrap();
    let board = &program.boards[0];
    let points = cat.points(board);
    let key = points.iter().find(|p| p.profile == 4 && p.batch == 16).unwrap();
    assert_eq!(cat.predict(board, *key).unwrap().source, "fitted");
}

#[test]
fn a_board_block_that_starts_from_a_known_board_keeps_its_performance() {
    let mut program = program(&["vgg11"]);
    let known = ent_plan::device::board("a100-80gb-pcie").unwrap();
    program.boards[0] = Board { id: "mine".to_owned(), ..known };
    refer(&mut program, "catalog:performance/a100-80gb-pcie", Some("vgg11"), PerformanceSource::Fitted);
    let mut sources = Sources::default();
    let mut none = |_: &str| Err(LoadError::Missing);
    assert!(load(&program, &mut none, &mut sources).value.get(0, 0).is_some());
    program.boards[0].is_illustration = true;
    let outcome = load(&program, &mut none, &mut sources);
    assert_eq!(outcome.diagnostics[0].code, Code::SloWithoutMeasurement);
}
