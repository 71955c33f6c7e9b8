//! Large, deep and foreign input → an answer, in time and within the stack.

use ent_lang::program::{Arrivals, Intensity, PerformanceRef, PerformanceSource, Program, UnusedBoards};
use ent_lang::{Options, compile};
use ent_plan::device::Confidence;
use ent_plan::diagnostic::{Code, Outcome, Sources};
use ent_plan::plan::{LatencyRule, Metric, Sharing};
use ent_plan::text::LoadError;
use ent_plan::units::{GramsPerKilowattHour, Megahertz, Watts};

fn compiled(bytes: &[u8], set: &[(&str, &str)]) -> Outcome<Option<Program>> {
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let options = Options { set, ..Options::default() };
    let mut load =
        |name: &str| if name == "x/main.ent" { Ok(bytes.to_vec()) } else { Err(LoadError::Missing) };
    compile("x/main.ent", &options, &mut load, &mut Sources::default())
}

fn codes(text: &str) -> Vec<Code> {
    compiled(text.as_bytes(), &[]).diagnostics.iter().map(|d| d.code).collect()
}

#[test]
fn deep_nesting_of_any_bracket_is_refused_and_not_followed() {
    for open in ["(", "[", "{", "a {\n", "let x = (", "f(", "a[", "\" {\n", "// {\n", "({[", "a = [{"] {
        let text = open.repeat(100_000);
        let found = codes(&text);
        assert!(
            found.contains(&Code::Syntax) || open == "// {\n",
            "{open:?}: {:?}",
            &found[..found.len().min(3)]
        );
    }
    // Closing brackets that close nothing do not hide the depth.
    assert_eq!(codes(&"a { )\n".repeat(100_000)), [Code::Syntax]);
}

#[test]
fn the_deepest_nesting_that_is_allowed_is_read() {
    let text = format!("let x = {}1{}", "(".repeat(64), ")".repeat(64));
    assert!(!codes(&text).contains(&Code::Syntax));
    let text = "a {\n".repeat(64) + &"}\n".repeat(64);
    assert!(!codes(&text).contains(&Code::Syntax));
}

#[test]
fn long_chains_of_anything_do_not_exhaust_the_stack() {
    let sum = format!("let x = 1{}", " + 1".repeat(200_000));
    assert!(!codes(&sum).contains(&Code::Syntax));
    let path = format!("let x = a{}", ".a".repeat(200_000));
    assert!(!codes(&path).contains(&Code::Syntax));
    let lets: String = (0..100_000).map(|i| format!("let a{} = a{i}\n", i + 1)).collect();
    assert!(!codes(&format!("let a0 = 1\n{lets}")).contains(&Code::CyclicDefinition));
    let cycle = codes(&format!("let a0 = a100000\n{lets}"));
    assert_eq!(cycle.iter().filter(|c| **c == Code::CyclicDefinition).count(), 1);
    let boards: String = (0..20_000).map(|i| format!("board b{i} {{ base = b{} }}\n", i + 1)).collect();
    assert!(codes(&boards).contains(&Code::UnknownName));
}

#[test]
fn values_do_not_grow_by_naming_each_other() {
    let mut text = "let a0 = [1, 2, 3]\n".to_owned();
    for i in 0..60 {
        text += &format!("let a{} = [a{i}, a{i}, a{i}]\n", i + 1);
    }
    assert!(codes(&text).contains(&Code::TypeMismatch));
}

#[test]
fn megabytes_of_mistakes_end_in_a_bounded_number_of_errors() {
    for line in ["!\n", "a = = 1\n", "let x = y\n", "foo {}\n", "}\n", "\"\n", "a = [1,\n", "service s {}\n"]
    {
        let text = line.repeat((1 << 20) / line.len());
        let outcome = compiled(text.as_bytes(), &[]);
        let n_errors = outcome.diagnostics.len();
        assert!((1..=400).contains(&n_errors), "{line:?}: {n_errors}");
    }
}

#[test]
fn files_that_are_no_programs_are_refused_with_what_they_are() {
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("let x = 1".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let cases: [(&[u8], &str); 6] = [
        (b"", "empty"),
        (b" \r\n\t", "empty"),
        (&utf16, "UTF-16"),
        (&[0x7f, b'E', b'L', b'F', 0, 1, 2], "zero"),
        (&[0x80, 0x81], "not UTF-8"),
        (&vec![b' '; 10_000_000], "10000000 bytes"),
    ];
    for (bytes, why) in cases {
        let outcome = compiled(bytes, &[]);
        assert!(outcome.value.is_none());
        let [only] = outcome.diagnostics.as_slice() else { panic!("{why}: {:?}", outcome.diagnostics) };
        assert_eq!(only.code, Code::UnreadableFile);
        assert!(only.primary.text.contains(why), "{why}: {}", only.primary.text);
    }
    let mut missing = |_: &str| Err(LoadError::Missing);
    let outcome = compile("gone.ent", &Options::default(), &mut missing, &mut Sources::default());
    assert_eq!(outcome.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::MissingFile]);
}

const EVERY_PART: &str = include_str!("every_part.ent");

#[test]
fn line_ends_tabs_and_byte_order_marks_do_not_matter() {
    let plain = compiled(EVERY_PART.as_bytes(), &[]).value.unwrap();
    let values = |program: &Program| {
        let service = &program.services[0];
        (service.rate.value, service.slo.value, program.nodes.len(), program.models[0].performance.len())
    };
    for text in [
        EVERY_PART.replace('\n', "\r\n"),
        EVERY_PART.replace('\n', "\r"),
        EVERY_PART.replace("  ", "\t"),
        format!("\u{feff}{EVERY_PART}"),
        EVERY_PART.trim_end().to_owned(),
    ] {
        let outcome = compiled(text.as_bytes(), &[]);
        assert_eq!(outcome.diagnostics, []);
        assert_eq!(values(&outcome.value.unwrap()), values(&plain));
    }
}

#[test]
fn a_program_means_what_it_says() {
    let program = compiled(EVERY_PART.as_bytes(), &[("load", "50%"), ("boards", "5")]).value.unwrap();
    assert_eq!(program.name, "x/main.ent");
    assert_eq!(program.params.get("load").map(String::as_str), Some("50%"));
    assert_eq!(program.params.get("boards").map(String::as_str), Some("5"));
    let service = &program.services[0];
    assert_eq!(service.rate.value.get(), 0.5 * (0.5 * 1391.97));
    assert_eq!(service.slo.value.bound.get(), 47.576_308_250_427_26 / 1000.0);
    assert_eq!(service.slo.value.percentile, 99.9 / 100.0);
    assert_eq!(service.arrivals.value, Arrivals::Gamma { cv: 2.0 });
    let replicas = service.replicas.unwrap().value;
    assert_eq!((replicas.min, replicas.max), (2, 6));
    let pin = &service.pin.as_ref().unwrap().value;
    assert_eq!(pin.profile.as_ref().unwrap().value, "3g.40gb");
    assert_eq!(pin.batch.unwrap().value, 8);
    assert_eq!(pin.clock.unwrap().value, Megahertz(1050));
    assert_eq!(pin.processes, None);
    assert!(service.isolate.unwrap().value);
    let model = &program.models[service.model.value];
    assert_eq!(model.artifact.as_ref().unwrap().value, "x/models/\"resnet\".pt");
    let references: Vec<&PerformanceRef> = model.performance.iter().map(|p| &p.value).collect();
    let reference = |file: &str, entry: &str| PerformanceRef {
        file: file.to_owned(),
        entry: Some(entry.to_owned()),
        source: PerformanceSource::Fitted,
    };
    assert_eq!(
        references,
        [
            &reference("catalog:performance/a100-80gb-pcie", "resnet50"),
            &reference("x/h100.json", "resnet/50")
        ]
    );
    let [node, spare] = program.nodes.as_slice() else { panic!("two nodes") };
    assert_eq!((node.count.value, node.unused, node.sharing), (5, UnusedBoards::Off, Sharing::Mig));
    assert_eq!(node.price.unwrap().value.get(), 2.1);
    assert_eq!(node.clocks.as_ref().unwrap().value.len(), 14);
    assert_eq!(program.boards[node.board.value].id, "a100-80gb-pcie");
    let tuned = &program.boards[spare.board.value];
    assert_eq!((tuned.id.as_str(), tuned.is_illustration), ("tuned", false));
    let power = tuned.base_power.as_ref().unwrap();
    assert_eq!(power.confidence, Confidence::User);
    assert_eq!(power.points, [(Megahertz(210), Watts(43.8)), (Megahertz(1410), Watts(73.4))]);
    assert_eq!(tuned.power_limits.unwrap().default, Watts(250.0));
    assert_eq!(tuned.profile("1g.10gb").unwrap().memory.unwrap().get(), 9.5 * f64::from(1 << 30));
    let intensity = &program.carbon.intensity.as_ref().unwrap().value;
    let Intensity::Series { file, step, start, .. } = intensity else { panic!("a series") };
    assert_eq!(
        (file.as_str(), step.get(), start.as_deref()),
        ("x/grid.csv", 3600.0, Some("2025-03-01T00:00Z"))
    );
    let embodied = program.carbon.embodied.unwrap().value;
    assert_eq!((embodied.per_gpu.get(), embodied.lifetime.get()), (150_000.0, 4.0 * 365.0 * 86_400.0));
    assert_eq!(program.objective.minimize.value, Metric::Energy);
    assert_eq!(program.objective.horizon.get(), 86_400.0);
    let limits: Vec<_> = program.objective.limits.iter().map(|l| (l.metric, l.at_most)).collect();
    assert_eq!(limits, [(Metric::Power, 1100.0), (Metric::Gpus, 8.0)]);
    assert_eq!(program.latency_rule, None);
}

#[test]
fn numbers_keep_every_digit() {
    let text = EVERY_PART
        .replace("load * peak", "load * 0.0923146137935218 req/s")
        .replace("csv(\"grid.csv\", start = \"2025-03-01T00:00Z\", step = 1 h)", "load * 490 gCO2/kWh");
    let program = compiled(text.as_bytes(), &[]).value.unwrap();
    assert_eq!(program.services[0].rate.value.get(), 0.092_314_613_793_521_8);
    let intensity = &program.carbon.intensity.as_ref().unwrap().value;
    assert_eq!(*intensity, Intensity::Constant(GramsPerKilowattHour(490.0)));
}

#[test]
fn the_caller_overrides_the_objective_and_the_latency_rule() {
    let options = Options {
        minimize: Some(Metric::Power),
        latency_rule: Some(LatencyRule::Execution),
        ..Options::default()
    };
    let mut load = |_: &str| Ok(EVERY_PART.as_bytes().to_vec());
    let program = compile("main.ent", &options, &mut load, &mut Sources::default()).value.unwrap();
    assert_eq!(program.objective.minimize.value, Metric::Power);
    assert_eq!(program.latency_rule, Some(LatencyRule::Execution));
}
