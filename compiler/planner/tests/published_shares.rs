//! Plans of the planners that share boards by MPS: legal, and recomputed to the last number.

#![expect(clippy::panic, reason = "a test stops, and says why, when what it needs is not there")]

use ent_lang::Program;
use ent_performance::{PerformanceSet, verify};
use ent_plan::diagnostic::{Diagnostic, Sources};
use ent_plan::plan::{LatencyRule, Plan, Sharing, Status, check};
use ent_plan::text::LoadError;
use ent_planner::published::{Interference, Mode, Request, Utilisation, gpulets, shared_by_mps, usher};

/// Two services of very different needs, and one that asks for less than a request per second.
const SPEC: &str = r#"
import "catalog:nvidia/a100-80gb-pcie"
import "catalog:performance/a100-80gb-pcie"

param scale = 1

model densenet { performance = a100_80gb_pcie.densenet169 }
model resnet { performance = a100_80gb_pcie.resnet50 }
model gpt { performance = a100_80gb_pcie.gpt }

service tag {
  model = densenet
  rate = 120 req/s * scale
  latency = p99 <= 150 ms
}

service search {
  model = resnet
  rate = 400 req/s * scale
  latency = p99 <= 100 ms
}

service write {
  model = gpt
  rate = 0.1 req/s
  latency = p99 <= 60 s
}

hardware {
  node "hall" { gpu = a100_80gb_pcie x 6 }
}

objective { minimize power }
"#;

fn world(text: &str) -> (Program, PerformanceSet) {
    let mut sources = Sources::default();
    let text = text.to_owned();
    let mut load = move |path: &str| {
        if path == "shares.ent" { Ok(text.clone().into_bytes()) } else { Err(LoadError::Missing) }
    };
    let compiled = ent_lang::compile("shares.ent", &ent_lang::Options::default(), &mut load, &mut sources);
    let program = compiled.value.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let performance = ent_performance::load(&program, &mut load, &mut sources).value;
    (program, performance)
}

/// Made up, in the range of what profilers show.
fn interference() -> Interference {
    let of = |model: &str, batch: u32, compute: f64, memory: f64| Utilisation {
        model: model.to_owned(),
        batch,
        compute,
        l2: memory,
        memory,
    };
    Interference {
        utilisation: vec![
            of("densenet", 1, 0.18, 0.07),
            of("densenet", 8, 0.25, 0.21),
            of("resnet", 4, 0.26, 0.29),
            of("resnet", 16, 0.34, 0.44),
            of("gpt", 1, 0.34, 0.47),
        ],
        constants: [-0.15, 0.08, 0.09, -0.07, 1.03],
    }
}

fn asked(mode: Mode, rule: LatencyRule) -> Request {
    Request { mode, metric: None, rule }
}

/// What is wrong with a plan besides promises that its planner does not keep.
fn faults(program: &Program, performance: &PerformanceSet, plan: &Plan) -> Vec<String> {
    let is_promise = |fault: &str| {
        ["promise", "above the promised", "are served of", " gets "].iter().any(|words| fault.contains(words))
    };
    let own = check(plan.clone()).err().unwrap_or_default();
    let program = shared_by_mps(program);
    own.into_iter()
        .chain(verify(&program, performance, plan))
        .map(|f| f.to_string())
        .filter(|f| !is_promise(f))
        .collect()
}

fn words(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| format!("{}: {}", d.message, d.primary.text)).collect()
}

#[test]
fn usher_plans_shares_of_boards() {
    let (program, performance) = world(SPEC);
    for rule in [LatencyRule::Execution, LatencyRule::Queueing] {
        let made = usher::plan(&program, &performance, Some(&interference()), asked(Mode::Native, rule));
        assert!(made.diagnostics.is_empty(), "{:?}", words(&made.diagnostics));
        let plan = made.value;
        assert_eq!(plan.status, Status::Feasible);
        assert_eq!(plan.planner, "usher");
        assert!(plan.gpus.iter().all(|g| g.sharing == Sharing::Mps && g.sm_clock_mhz.0 == 1410));
        assert!(plan.gpus.iter().any(|g| g.instances.len() > 1));
        let instances: Vec<_> = plan.gpus.iter().flat_map(|g| &g.instances).collect();
        assert!(instances.iter().all(|i| i.source == "extrapolated" && i.profile.is_none()));
        for service in &plan.services {
            assert!((service.served_rps / service.rate_rps - 1.0).abs() < 1e-9, "{}", service.name);
        }
        let wrong = faults(&program, &performance, &plan);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

#[test]
fn replicas_divide_the_rate_by_what_they_carry() {
    let (program, performance) = world(SPEC);
    let asked = asked(Mode::Native, LatencyRule::Execution);
    let plan = usher::plan(&program, &performance, Some(&interference()), asked).value;
    for service in &plan.services {
        let own = plan.gpus.iter().flat_map(|g| &g.instances).filter(|i| i.service == service.name);
        let utilisations: Vec<f64> = own.map(|i| i.utilisation).collect();
        assert!(utilisations.iter().all(|u| (u / utilisations[0] - 1.0).abs() < 1e-9), "{utilisations:?}");
    }
}

#[test]
fn usher_without_utilisation_says_so() {
    let (program, performance) = world(SPEC);
    let made = usher::plan(&program, &performance, None, asked(Mode::Native, LatencyRule::Queueing));
    assert_eq!(made.value.status, Status::Unknown);
    assert!(check(made.value).is_ok());
    assert!(words(&made.diagnostics)[0].contains("no utilisation data were given"));
    // Of one model only: its service is left out, and named.
    let mut some = interference();
    some.utilisation.retain(|u| u.model != "gpt");
    let made = usher::plan(&program, &performance, Some(&some), asked(Mode::Native, LatencyRule::Queueing));
    assert_eq!(words(&made.diagnostics).len(), 1, "{:?}", words(&made.diagnostics));
    assert!(words(&made.diagnostics)[0].contains("`write`"));
    assert_eq!(made.value.services[2].replicas, 0);
}

#[test]
fn gpulets_plans_shares_of_boards() {
    let (program, performance) = world(SPEC);
    for interference in [None, Some(interference())] {
        for rule in [LatencyRule::Execution, LatencyRule::Queueing] {
            let made =
                gpulets::plan(&program, &performance, interference.as_ref(), asked(Mode::Native, rule));
            assert!(made.diagnostics.is_empty(), "{:?}", words(&made.diagnostics));
            let plan = made.value;
            assert_eq!(plan.status, Status::Feasible);
            assert!(plan.gpus.iter().all(|g| g.sharing == Sharing::Mps && g.instances.len() <= 2));
            let instances = || plan.gpus.iter().flat_map(|g| &g.instances);
            assert!(instances().all(|i| gpulets::PARTITIONS.contains(&i.mps_percent.unwrap())));
            assert!(instances().filter(|i| i.service == "write").all(|i| i.batch == 1));
            let wrong = faults(&program, &performance, &plan);
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }
}

#[test]
fn the_original_gpulets_cannot_take_a_request_in_ten_seconds() {
    let (program, performance) = world(SPEC);
    let made = gpulets::plan(&program, &performance, None, asked(Mode::Conformant, LatencyRule::Queueing));
    assert_eq!(made.value.status, Status::Unknown);
    assert!(words(&made.diagnostics)[0].contains("below 5 req/s the original never ends"));
}

#[test]
fn what_does_not_fit_on_the_boards_is_said() {
    let (program, performance) = world(&SPEC.replace("x 6", "x 1").replace("scale = 1", "scale = 12"));
    let asked = asked(Mode::Native, LatencyRule::Execution);
    let made = usher::plan(&program, &performance, Some(&interference()), asked);
    assert_eq!(made.value.gpus.len(), 1);
    let said = words(&made.diagnostics);
    assert!(said[0].starts_with("this planner needs more boards: `usher` needs"), "{said:?}");
    let made = gpulets::plan(&program, &performance, None, asked);
    assert_eq!(made.value.gpus.len(), 1);
    assert!(words(&made.diagnostics).iter().any(|d| d.contains("leaves out a service")));
    let wrong = faults(&program, &performance, &made.value);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn requirements_these_planners_do_not_know_and_boards_they_cannot_share_are_named() {
    let pinned = SPEC.replace("p99 <= 60 s", "p99 <= 60 s\n  spread = gpu");
    let (program, performance) = world(&pinned);
    let asked = asked(Mode::Native, LatencyRule::Execution);
    let made = gpulets::plan(&program, &performance, None, asked);
    assert!(words(&made.diagnostics)[0].contains("`gpulets` knows nothing like a spread"));
    let whole = SPEC.replace("x 6", "x 6\n    sharing = whole");
    let (program, performance) = world(&whole);
    let made = gpulets::plan(&program, &performance, None, asked);
    assert_eq!(made.value.status, Status::Unknown);
    assert!(words(&made.diagnostics)[0].contains("no boards may be shared"));
}

#[test]
fn a_share_that_is_not_what_it_says_is_found() {
    let (program, performance) = world(SPEC);
    let asked = asked(Mode::Native, LatencyRule::Execution);
    let mut plan = gpulets::plan(&program, &performance, None, asked).value;
    plan.gpus[0].instances[0].mps_percent = plan.gpus[0].instances[0].mps_percent.map(|p| p - 5);
    let wrong = faults(&program, &performance, &plan);
    assert!(wrong.iter().any(|f| f.contains("batch_times_ms")), "{wrong:#?}");
}
