//! Every example, planned: status, gap, boards, promises; and what its README says of it.

use ent_plan::diagnostic::Code;
use ent_plan::plan::{LatencyRule, Plan, Status};
use ent_planner::Planner;
use ent_tests::planning::{Answer, Question, ask, data};

fn example(name: &str, question: &Question<'_>) -> Answer {
    ask(&format!("examples/{name}/program.ent"), question)
}

/// What every plan of an example is: it keeps its promises and is within the gap that was asked for.
#[track_caller]
fn within(answer: &Answer, gap: f64) -> &Plan {
    let plan = answer.kept();
    let Some(proven) = plan.objective.gap else { unreachable!("an exact planner proves a bound") };
    assert!(matches!(plan.status, Status::Optimal | Status::WithinGap), "{:?}: {proven}", plan.status);
    assert!(proven <= gap, "{proven}");
    assert!(plan.objective.bound <= plan.objective.value);
    for service in &plan.services {
        assert!(service.served_rps >= service.rate_rps * (1.0 - 1e-9), "{}", service.name);
        assert!(
            service.predicted_latency_ms.is_some_and(|ms| ms <= service.promised_latency_ms),
            "{}",
            service.name
        );
    }
    plan
}

/// The example's README has these words.
#[track_caller]
fn says(name: &str, words: &str) {
    let readme = ent_tests::read(&format!("examples/{name}/README.md"));
    assert!(readme.contains(words), "examples/{name}/README.md does not say: {words}");
}

#[test]
fn the_quickstart_is_proven_optimal_on_one_board() {
    let answer = example("quickstart", &Question::default());
    let plan = within(&answer, 1e-6);
    assert_eq!((plan.status, plan.gpus.len()), (Status::Optimal, 1));
    assert!(plan.diagnostics.is_empty(), "{:?}", plan.diagnostics);
    says("quickstart", &format!("{:.1} W", plan.metrics.mean_power_w.unwrap()));
}

#[test]
fn the_carbon_example_counts_its_own_day() {
    let answer = example("carbon", &Question { gap: 0.08, ..Question::default() });
    let plan = within(&answer, 0.08);
    let day = ent_tests::read("examples/carbon/day.csv");
    let values: Vec<f64> =
        day.lines().filter_map(|line| line.rsplit(',').next()?.trim().parse().ok()).collect();
    assert_eq!(values.len(), 24);
    let mean = values.iter().sum::<f64>() / 24.0;
    let used = plan.accounting.carbon_intensity_g_per_kwh.unwrap();
    assert!((used - mean).abs() < 1e-9 * mean, "{used} of {mean}");
    // Grams: PUE 1.2, mean power and intensity, and 150 kg over four years for each used board.
    let operation = 1.2 * plan.metrics.mean_power_w.unwrap() / 1e3 * 24.0 * mean;
    let embodied = plan.gpus.len() as f64 * 150e3 / (4.0 * 365.25 * 24.0) * 24.0;
    let value = plan.objective.value.unwrap();
    assert!((value - operation - embodied).abs() <= 2e-3 * value, "{value} g, {operation} + {embodied}");
}

#[test]
fn the_mixed_fleet_says_that_part_of_it_is_invented() {
    let answer = example("mixed-fleet", &Question { gap: 0.08, ..Question::default() });
    let plan = within(&answer, 0.08);
    let invented: Vec<_> =
        plan.diagnostics.iter().filter(|note| note.code == Code::IllustrativeData.word()).collect();
    assert!(!invented.is_empty(), "{:?}", plan.diagnostics);
    assert!(invented.iter().all(|note| note.severity == "warning" && note.location.is_some()));
    assert!(plan.boards.iter().any(|board| board.is_illustration));
}

#[test]
fn the_scenario_of_measured_tables_takes_two_boards() {
    if data("examples/parvagpu").is_none() {
        return;
    }
    let answer = example("parvagpu", &Question { rule: Some(LatencyRule::Execution), ..Question::default() });
    let plan = within(&answer, 0.0);
    assert_eq!((plan.status, plan.gpus.len()), (Status::Optimal, 2));
    assert_eq!(plan.metrics.power_w, None, "the tables have no power");
    says("parvagpu", "two boards");
}

#[test]
fn promises_that_conflict_are_named_with_what_would_mend_them() {
    let answer = example("infeasible", &Question::default());
    assert_eq!(answer.plan.as_ref().map(|plan| plan.status), Some(Status::Infeasible));
    let [error] = answer.diagnostics.as_slice() else { unreachable!("one answer: {:?}", answer.diagnostics) };
    assert_eq!(error.code, Code::ConflictingRequirements);
    let labels: Vec<&str> = std::iter::once(&error.primary)
        .chain(&error.secondary)
        .map(|label| answer.sources.snippet(label.span))
        .collect();
    let mut sorted = labels.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["1", "classify", "search"], "`thumbnails` has no part in it");
    let help = error.help.as_deref().unwrap();
    assert!(help.contains("2 boards of `a100-80gb-pcie` instead of 1"), "{help}");
    assert!(help.contains("for `classify`") && help.contains("for `search`"), "{help}");
    says("infeasible", "2 boards of `a100-80gb-pcie` instead of 1");
    // The first change that the help names does mend it.
    let text = ent_tests::read("examples/infeasible/program.ent")
        .replace("a100_80gb_pcie x 1", "a100_80gb_pcie x 2");
    let texts = [("program.ent".to_owned(), text)].into_iter().collect();
    ask("program.ent", &Question { texts, planner: Planner::Greedy, ..Question::default() }).kept();
}

#[test]
fn the_flagship_keeps_its_promises_as_clients_see_them_on_twelve_boards() {
    let answer = example("enertune", &Question { planner: Planner::Greedy, ..Question::default() });
    let plan = answer.kept();
    assert_eq!(plan.services.len(), 11);
    assert!((8..=12).contains(&plan.gpus.len()), "{}", plan.gpus.len());
    assert!(plan.unused.iter().all(|unused| unused.is_off));
}

#[test]
fn the_flagship_has_the_published_rates_at_any_load() {
    let half = example(
        "enertune",
        &Question {
            planner: Planner::Greedy,
            set: vec![("load", "200%"), ("boards", "40")],
            rule: Some(LatencyRule::Execution),
            ..Question::default()
        },
    );
    let plan = half.kept();
    let rate = |name: &str| plan.services.iter().find(|s| s.name == name).map(|s| s.rate_rps);
    assert_eq!(rate("vgg11"), Some(2.0 * 744.65));
    assert_eq!(rate("resnet50"), Some(1391.97), "it does not grow beyond 100 %");
    assert_eq!(rate("gpt"), Some(0.16192860916956147));
}
