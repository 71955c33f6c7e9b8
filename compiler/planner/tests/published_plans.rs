//! Published planners on programs: their plans are plans, and what they miss is said.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use ent_lang::{Options, Program, compile};
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Code, Diagnostic, Outcome, Severity, Sources};
use ent_plan::plan::{LatencyRule, Metric, Plan, Status, check};
use ent_plan::text::LoadError;
use ent_planner::published::{Mode, Request, enertune, fgd, parvagpu};
use std::path::{Path, PathBuf};

type Planner = fn(&Program, &PerformanceSet, Request) -> Outcome<Plan>;

fn place(program: &Program, performance: &PerformanceSet, request: Request) -> Outcome<Plan> {
    fgd::plan(program, performance, request, &fgd::FgdInput::default())
}

const PLANNERS: [(&str, Planner); 3] =
    [(parvagpu::NAME, parvagpu::plan), (enertune::NAME, enertune::plan), (fgd::NAME, place)];

const MODES: [Mode; 2] = [Mode::Conformant, Mode::Native];
const RULES: [LatencyRule; 2] = [LatencyRule::Execution, LatencyRule::Queueing];

fn folder(variable: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: {variable} is not set");
    }
    folder
}

/// A program of the examples, and its own text in place of a part of it.
fn program(name: &str, set: &[(&str, &str)], change: impl Fn(String) -> String) -> (Program, Sources) {
    let mut sources = Sources::default();
    let set = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let options = Options { set, ..Options::default() };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).join("program.ent");
    let mut load = |file: &str| {
        let text = std::fs::read_to_string(file).map_err(|_| LoadError::Missing)?;
        Ok(change(text).into_bytes())
    };
    let outcome = compile(&path.to_string_lossy(), &options, &mut load, &mut sources);
    (outcome.value.unwrap_or_else(|| panic!("{:?}", outcome.diagnostics)), sources)
}

fn performance(program: &Program, sources: &mut Sources, data: Option<&Path>) -> PerformanceSet {
    let mut load = |file: &str| {
        let file = file.strip_prefix("data:").zip(data).map(|(name, data)| data.join(name));
        std::fs::read(file.ok_or(LoadError::Missing)?).map_err(|_| LoadError::Missing)
    };
    let outcome = ent_performance::load(program, &mut load, sources);
    assert!(!outcome.has_errors(), "{:?}", outcome.diagnostics);
    outcome.value
}

fn all_are_limitations(diagnostics: &[Diagnostic]) {
    for d in diagnostics {
        assert_eq!((d.code, d.severity), (Code::PlannerLimitation, Severity::Warning), "{d:?}");
    }
}

#[test]
fn a_published_plan_passes_the_check_or_says_what_it_misses() {
    for load in ["10%", "50%", "100%", "150%"] {
        let (program, mut sources) = program("enertune", &[("load", load)], |text| text);
        let performance = performance(&program, &mut sources, None);
        for (name, planner) in PLANNERS {
            for (mode, rule) in MODES.into_iter().flat_map(|m| RULES.map(|r| (m, r))) {
                let request = Request { mode, metric: Some(Metric::Power), rule };
                let Outcome { value: plan, diagnostics } = planner(&program, &performance, request);
                let what = format!("{name}, {load}, {mode:?}, {rule:?}");
                assert_eq!((plan.planner.as_str(), plan.status), (name, Status::Feasible), "{what}");
                assert_eq!(plan.objective.bound, None);
                assert!(!plan.gpus.is_empty(), "{what}");
                all_are_limitations(&diagnostics);
                for service in &plan.services {
                    assert!(service.served_rps <= service.rate_rps * (1.0 + 1e-9), "{what}: {service:?}");
                    assert!(service.predicted_latency_ms.is_none_or(f64::is_finite), "{what}: {service:?}");
                }
                // Whatever the check finds, a warning has said: FGD warns of its blindness in any case.
                let said = diagnostics.len() - usize::from(name == fgd::NAME);
                if let Err(faults) = check(plan.clone()) {
                    assert!(said > 0, "{what}: {faults:?}");
                }
                let again = planner(&program, &performance, request);
                assert_eq!((again.value, again.diagnostics), (plan, diagnostics), "{what}");
            }
        }
    }
}

#[test]
fn a_native_plan_of_enertune_keeps_every_promise_it_carries() {
    let (program, mut sources) = program("enertune", &[("load", "50%")], |text| text);
    let performance = performance(&program, &mut sources, None);
    for rule in RULES {
        let request = Request { mode: Mode::Native, metric: Some(Metric::Power), rule };
        let plan = enertune::plan(&program, &performance, request).value;
        for gpu in &plan.gpus {
            for i in &gpu.instances {
                assert!(i.rate_rps <= i.admissible_rps * (1.0 + 1e-9), "{rule:?}: {i:?}");
                assert!(i.predicted_latency_ms <= i.promised_latency_ms * (1.0 + 1e-9), "{rule:?}: {i:?}");
            }
        }
    }
}

#[test]
fn too_few_boards_leave_services_out_and_say_so() {
    let (program, mut sources) = program("enertune", &[("boards", "1")], |text| text);
    let performance = performance(&program, &mut sources, None);
    for (name, planner) in PLANNERS {
        let request = Request { mode: Mode::Native, metric: None, rule: LatencyRule::Execution };
        let Outcome { value: plan, diagnostics } = planner(&program, &performance, request);
        assert_eq!(plan.gpus.len(), 1, "{name}");
        let missing = plan.services.iter().filter(|s| s.replicas == 0);
        assert!(missing.clone().count() > 0, "{name}");
        for service in missing {
            let said = format!("`{name}` leaves `{}` out", service.name);
            assert!(diagnostics.iter().any(|d| d.message == said), "{said}");
        }
    }
}

#[test]
fn boards_that_are_not_shared_by_mig_are_refused_by_name() {
    let whole = |text: String| text.replace("unused = off", "unused = off\n    sharing = whole");
    let (program, mut sources) = program("enertune", &[], whole);
    let performance = performance(&program, &mut sources, None);
    for (name, planner) in PLANNERS {
        let request = Request { mode: Mode::Native, metric: None, rule: LatencyRule::Queueing };
        let Outcome { value: plan, diagnostics } = planner(&program, &performance, request);
        assert_eq!(plan.status, Status::Unknown);
        assert!(plan.gpus.is_empty());
        assert_eq!(diagnostics.len(), 1);
        assert_eq!(
            (diagnostics[0].code, diagnostics[0].severity),
            (Code::PlannerLimitation, Severity::Error)
        );
        assert!(diagnostics[0].message.contains(name));
    }
}

#[test]
fn fgd_gives_the_part_it_is_told() {
    let (program, mut sources) = program("enertune", &[("load", "25%")], |text| text);
    let performance = performance(&program, &mut sources, None);
    let request = Request { mode: Mode::Native, metric: None, rule: LatencyRule::Execution };
    let given = fgd::FgdInput { allocations: vec![Some(fgd::Allocation { slices: 2, batch: 8 })] };
    let plan = fgd::plan(&program, &performance, request, &given).value;
    let own = plan.gpus.iter().flat_map(|g| &g.instances).find(|i| i.service == "resnet50").unwrap();
    assert_eq!((own.profile.as_deref(), own.batch), (Some("2g.20gb"), 8));
}

#[test]
fn parvagpu_plans_its_first_scenario_on_two_boards() {
    let Some(data) = folder("ENT_DATA") else { return };
    let (program, mut sources) = program("parvagpu", &[], |text| text);
    let performance = performance(&program, &mut sources, Some(&data));
    let request = Request { mode: Mode::Conformant, metric: None, rule: LatencyRule::Execution };
    let Outcome { value: plan, diagnostics } = parvagpu::plan(&program, &performance, request);
    assert_eq!(plan.metrics.gpus, 2);
    all_are_limitations(&diagnostics);
    let first: Vec<(&str, Option<u32>, u32, u32)> =
        plan.gpus[0].instances.iter().map(|i| (i.service.as_str(), i.start, i.batch, i.processes)).collect();
    assert_eq!(
        first,
        [("densenet121", Some(0), 16, 3), ("vgg19", Some(2), 32, 2), ("resnet50", Some(4), 64, 2)]
    );
}

#[test]
fn enertune_plans_the_published_workload_as_published() {
    let Some(data) = folder("ENT_DATA") else { return };
    let (program, mut sources) = program("enertune", &[("load", "50%"), ("boards", "4")], |text| text);
    let bytes = std::fs::read(data.join("enertune/model_datastore.csv")).unwrap();
    let table = PerformanceSet::from_table(&program, "model_datastore.csv", &bytes, &mut sources);
    let request =
        Request { mode: Mode::Conformant, metric: Some(Metric::Power), rule: LatencyRule::Execution };
    let Outcome { value: plan, diagnostics } = enertune::plan(&program, &table.value, request);
    all_are_limitations(&diagnostics);
    // The published total is 442.05 W with a table of base powers that is up to 2 W lower.
    let power = plan.metrics.power_w.unwrap();
    assert!((442.05..447.0).contains(&power), "{power}");
    let mut clocks: Vec<u32> = plan.gpus.iter().map(|g| g.sm_clock_mhz.0).collect();
    clocks.sort_unstable();
    assert_eq!(clocks, [330, 510, 690, 780]);
}
