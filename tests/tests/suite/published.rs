//! The published workload on its published table: planned within known values, and proven.

use ent_plan::plan::{LatencyRule, Metric, Plan, Status};
use ent_planner::Planner;
use ent_tests::planning::{Question, ask, data};

fn plan(load: &str, boards: &str, minimize: Metric, planner: Planner, gap: f64) -> Option<Plan> {
    let folder = data("the published workload")?;
    let table = folder.join("enertune/model_datastore.csv").to_str().unwrap().to_owned();
    let question = Question {
        set: vec![("load", load), ("boards", boards)],
        minimize: Some(minimize),
        rule: Some(LatencyRule::Execution),
        table: Some(&table),
        planner,
        gap,
        ..Question::default()
    };
    Some(ask("examples/enertune/program.ent", &question).kept().clone())
}

#[test]
fn the_published_workload_takes_less_than_published_with_proof() {
    // Published for the same table and at most five boards (mean power deployed, power planned): 417 and 685 W,
    // 477 and 710 W.
    for (load, energy_w, power_w) in [("50%", 365.5, 412.0), ("100%", 642.5, 667.5)] {
        let Some(plan_of_energy) = plan(load, "5", Metric::Energy, Planner::Optimal, 0.002) else { return };
        let mean = plan_of_energy.metrics.mean_power_w.unwrap();
        assert!(mean <= energy_w, "{load}: {mean} W mean");
        let plan_of_power = plan(load, "5", Metric::Power, Planner::Optimal, 0.002).unwrap();
        let power = plan_of_power.metrics.power_w.unwrap();
        assert!(power <= power_w, "{load}: {power} W");
        for plan in [plan_of_energy, plan_of_power] {
            assert!(matches!(plan.status, Status::Optimal | Status::WithinGap), "{:?}", plan.status);
            assert!(plan.objective.gap.is_some_and(|gap| gap <= 0.002), "{:?}", plan.objective);
            assert!(plan.gpus.len() <= 5 && plan.services.len() == 11);
        }
    }
}

#[test]
fn greedy_is_within_three_percent_of_any_plan_at_every_load() {
    for (load, boards) in
        [("25%", "5"), ("50%", "5"), ("75%", "5"), ("100%", "5"), ("125%", "8"), ("150%", "8")]
    {
        for minimize in [Metric::Energy, Metric::Power] {
            let Some(greedy) = plan(load, boards, minimize, Planner::Greedy, 0.0) else { return };
            let proven = plan(load, boards, minimize, Planner::Optimal, 0.01).unwrap();
            let (value, bound) = (greedy.objective.value.unwrap(), proven.objective.bound.unwrap());
            assert!(value <= 1.03 * bound, "{load} {minimize:?}: {value}, bound {bound}");
            assert!(proven.objective.value.unwrap() <= value * (1.0 + 1e-9));
        }
    }
}
