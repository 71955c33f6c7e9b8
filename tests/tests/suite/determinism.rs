//! The same question twice gives the same bytes; a plan that a limit stopped says so.

use crate::small::{Row, World, boards, service};
use ent_plan::plan::{Metric, Status};
use ent_planner::Planner;
use ent_tests::planning::{Question, ask};

/// Six services on eight boards: more than one look settles.
fn world() -> World {
    let mut rows = Vec::new();
    for model in 0..6u32 {
        for slices in [1, 2, 3, 4, 7] {
            for clock in [500, 1000] {
                for batch in [1, 4] {
                    let size = f64::from(slices).powf(0.7 + 0.04 * f64::from(model));
                    let speed = (f64::from(clock) / 1000.0).powf(0.6);
                    rows.push(Row {
                        model: model as usize,
                        slices,
                        batch,
                        clock,
                        throughput: (25.0 + 3.0 * f64::from(model)) * size * speed * f64::from(batch).sqrt(),
                        dynamic: (7.0 + f64::from(model % 3)) * size * speed.powi(3),
                    });
                }
            }
        }
    }
    let rates = [310.0, 120.0, 75.0, 190.0, 260.0, 33.0];
    World {
        services: rates.iter().map(|&rate| service(rate, "")).collect(),
        rows,
        hardware: boards(8),
        objective: "minimize energy".to_owned(),
    }
}

fn file(question: &Question<'_>) -> String {
    let answer = ask("small.ent", question);
    serde_json::to_string_pretty(answer.kept()).unwrap()
}

#[test]
fn two_runs_with_a_node_limit_are_the_same_byte_for_byte() {
    for minimize in [Metric::Power, Metric::Energy] {
        for planner in [Planner::Optimal, Planner::Greedy] {
            let question = Question {
                minimize: Some(minimize),
                planner,
                node_limit: Some(20),
                rule: Some(ent_plan::plan::LatencyRule::Execution),
                ..world().question()
            };
            assert!(file(&question) == file(&question), "{minimize:?} by {planner:?} differs");
        }
    }
}

#[test]
fn a_plan_that_time_stopped_says_so() {
    let question = Question {
        time_limit: Some(0.0),
        rule: Some(ent_plan::plan::LatencyRule::Execution),
        ..world().question()
    };
    let answer = ask("small.ent", &question);
    let plan = answer.kept();
    assert_eq!(plan.status, Status::Feasible);
    assert_eq!(plan.stopped_by.as_deref(), Some("time limit"));
}

#[test]
fn a_plan_that_the_node_limit_stopped_says_so() {
    let question = Question {
        node_limit: Some(0),
        rule: Some(ent_plan::plan::LatencyRule::Execution),
        ..world().question()
    };
    let answer = ask("small.ent", &question);
    let plan = answer.kept();
    assert_eq!(plan.status, Status::Feasible, "{:?}", plan.objective);
    assert_eq!(plan.stopped_by.as_deref(), Some("node limit"));
}
