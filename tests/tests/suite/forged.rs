//! A plan of the planner's own, changed in one place: the verification finds it.

use ent_plan::plan::{LatencyRule, Plan, Status, check};
use ent_planner::Planner;
use ent_tests::planning::{Answer, Question, ask};

fn honest() -> Answer {
    let question =
        Question { planner: Planner::Greedy, rule: Some(LatencyRule::Execution), ..Question::default() };
    let answer = ask("examples/quickstart/program.ent", &question);
    answer.kept();
    answer
}

#[test]
fn a_changed_promise_rate_or_time_is_found_by_verification() {
    type Change = fn(&mut Plan);
    let changes: [(&str, Change); 9] = [
        ("promised_latency_ms", |p| p.gpus[0].instances[0].promised_latency_ms *= 2.0),
        ("services[0].promised_latency_ms", |p| p.services[0].promised_latency_ms *= 2.0),
        ("services[0].percentile", |p| p.services[0].percentile = 0.5),
        ("services[0].rate_rps", |p| p.services[0].rate_rps *= 0.5),
        ("services[0].arrivals", |p| p.services[0].arrivals = "uniform".to_owned()),
        ("utilisation", |p| p.gpus[0].instances[0].rate_rps *= 0.5),
        ("batch_times_ms", |p| p.gpus[0].instances[0].batch_times_ms.iter_mut().for_each(|t| *t *= 0.9)),
        ("batch_energy_j", |p| p.gpus[0].instances[0].batch_energy_j.iter_mut().for_each(|e| *e *= 0.9)),
        ("predicted_latency_ms", |p| p.gpus[0].instances[0].predicted_latency_ms *= 0.9),
    ];
    let answer = honest();
    for (place, change) in changes {
        let mut plan = answer.plan.clone().unwrap();
        change(&mut plan);
        let faults = ent_performance::verify::verify(&answer.program, &answer.performance, &plan);
        assert!(faults.iter().any(|f| f.place.contains(place)), "{place}: {faults:?}");
    }
}

#[test]
fn a_plan_that_is_faster_everywhere_still_fails_verification() {
    // Consistent in itself: times, capacity and admissible rate all a tenth better.
    let answer = honest();
    let mut plan = answer.plan.clone().unwrap();
    for instance in plan.gpus.iter_mut().flat_map(|g| &mut g.instances) {
        instance.batch_times_ms.iter_mut().for_each(|t| *t /= 1.1);
        instance.capacity_rps *= 1.1;
        instance.admissible_rps *= 1.1;
        instance.utilisation /= 1.1;
        instance.predicted_latency_ms /= 1.1;
    }
    let faults = ent_performance::verify::verify(&answer.program, &answer.performance, &plan);
    for what in ["batch_times_ms", "capacity_rps", "admissible_rps", "predicted_latency_ms"] {
        assert!(faults.iter().any(|f| f.place.contains(what)), "{what}: {faults:?}");
    }
}

#[test]
fn a_plan_with_a_status_it_did_not_earn_fails_its_check() {
    let mut plan = honest().plan.unwrap();
    assert_eq!(plan.status, Status::Feasible);
    plan.status = Status::Optimal;
    assert!(check(plan).is_err(), "greedy proves nothing");
}

#[test]
fn instances_moved_onto_each_other_fail_the_check() {
    let mut plan = honest().plan.unwrap();
    let gpu = plan.gpus.iter_mut().find(|g| g.instances.len() > 1).unwrap();
    let start = gpu.instances[0].start;
    gpu.instances[1].start = start;
    let faults = check(plan).err().unwrap();
    assert!(faults.iter().any(|f| f.message.contains("overlap") || f.place.contains("start")), "{faults:?}");
}
