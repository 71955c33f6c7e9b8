//! What is known of each planner's plan: its metrics, what it keeps, and how it measures up.

use crate::commands::Replay;
use crate::render::json::Shown;
use ent_plan::diagnostic::Code;
use ent_plan::plan::{Fault, LatencyRule, Metric, Metrics, Plan, Status, check_boards};
use schemars::JsonSchema;
use serde::Serialize;

/// Planners side by side.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Comparison {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// The version of entc that made it.
    pub(crate) entc_version: &'static str,
    /// The spec.
    pub(crate) program: String,
    /// What entc's own planners minimise, and ratios are of.
    pub(crate) metric: Metric,
    /// Which latency the promises are about.
    pub(crate) latency_rule: LatencyRule,
    /// The measured table in place of fitted models.
    pub(crate) table: Option<String>,
    /// Whether published planners decide exactly like their originals.
    pub(crate) is_conformant: bool,
    /// First seed of the simulations.
    pub(crate) seed: u64,
    /// Seeds pooled.
    pub(crate) seeds: u32,
    /// Requests per service and seed, where they were asked for.
    pub(crate) requests: Option<u64>,
    /// Simulated seconds per seed, where they were asked for.
    pub(crate) duration_s: Option<f64>,
    /// By load, as asked.
    pub(crate) loads: Vec<AtLoad>,
}

/// The plans for one load.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct AtLoad {
    /// The load as a fraction; `null` for the spec as it is.
    pub(crate) load: Option<f64>,
    /// One of each planner, in the order asked.
    pub(crate) plans: Vec<Judged>,
}

/// One planner's plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Judged {
    /// The planner.
    pub(crate) planner: String,
    /// How far the plan is proven; `unknown` or `infeasible` when there is none.
    pub(crate) status: Status,
    /// Its metrics.
    pub(crate) metrics: Metrics,
    /// Its value in the metric that is minimised.
    pub(crate) value: Option<f64>,
    /// The planner's bound.
    pub(crate) bound: Option<f64>,
    /// The gap between them.
    pub(crate) gap: Option<f64>,
    /// `value` over that of `optimal`, for plans that can be built and carry every service.
    pub(crate) ratio: Option<f64>,
    /// Mean power in simulation (W).
    pub(crate) simulated_mean_power_w: Option<f64>,
    /// Whether it can be built and carries the whole rate of every service.
    pub(crate) carries_all: bool,
    /// What each service gets.
    pub(crate) services: Vec<Verdict>,
    /// Why its boards cannot be set up as it says.
    pub(crate) board_faults: Vec<String>,
    /// What else does not hold: limits, sums.
    pub(crate) faults: Vec<String>,
    /// What the planner says.
    pub(crate) diagnostics: Vec<Shown>,
    /// How long it planned (s).
    pub(crate) plan_seconds: f64,
}

/// What one service gets.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Verdict {
    /// Its name.
    pub(crate) name: String,
    /// The rate it asks for (req/s).
    pub(crate) rate_rps: f64,
    /// The rate the plan serves (req/s).
    pub(crate) served_rps: f64,
    /// The promised percentile.
    pub(crate) percentile: f64,
    /// The promise (ms).
    pub(crate) promised_latency_ms: f64,
    /// What the plan predicts (ms).
    pub(crate) predicted_latency_ms: Option<f64>,
    /// The same percentile in simulation (ms), pooled over the seeds.
    pub(crate) simulated_latency_ms: Option<f64>,
    /// Share of requests within the promise, in simulation.
    pub(crate) attainment: Option<f64>,
    /// Whether the verifier has nothing against it.
    pub(crate) is_kept_verified: bool,
    /// Whether the pooled percentile is within the promise.
    pub(crate) is_kept_simulated: bool,
    /// What the verifier has against it.
    pub(crate) faults: Vec<String>,
}

/// Relative tolerance of rates: what printing and summing lose.
const TOLERANCE: f64 = 1e-6;

impl Judged {
    /// Judges a plan by its faults and its simulation.
    pub(crate) fn new(
        plan: &Plan,
        faults: &[Fault],
        replay: Option<&Replay>,
        diagnostics: Vec<Shown>,
        plan_seconds: f64,
    ) -> Self {
        let has_plan = !plan.gpus.is_empty();
        let mut of_services: Vec<Vec<String>> = vec![Vec::new(); plan.services.len()];
        let text = |fault: &Fault| format!("{}: {}", fault.place, fault.message);
        let of_boards: Vec<String> = check_boards(plan).iter().map(text).collect();
        let mut others = Vec::new();
        for fault in faults.iter().map(|f| (f, text(f))).filter(|(_, t)| !of_boards.contains(t)) {
            match subject(plan, &fault.0.place) {
                Some(service) => of_services[service].push(fault.1),
                None => others.push(fault.1),
            }
        }
        let services: Vec<Verdict> = plan
            .services
            .iter()
            .zip(of_services)
            .enumerate()
            .map(|(index, (service, faults))| {
                let seen = replay.and_then(|r| r.services.get(index)).filter(|s| s.requests > 0);
                Verdict {
                    name: service.name.clone(),
                    rate_rps: service.rate_rps,
                    served_rps: service.served_rps,
                    percentile: service.percentile,
                    promised_latency_ms: service.promised_latency_ms,
                    predicted_latency_ms: service.predicted_latency_ms,
                    simulated_latency_ms: seen.map(|s| s.latency_ms),
                    attainment: seen.map(|s| s.attainment),
                    is_kept_verified: has_plan && faults.is_empty(),
                    is_kept_simulated: seen.is_some_and(|s| s.is_kept),
                    faults,
                }
            })
            .collect();
        let carries_all = has_plan && of_boards.is_empty() && services.iter().all(Verdict::is_carried);
        Self {
            planner: plan.planner.clone(),
            status: plan.status,
            metrics: plan.metrics.clone(),
            value: plan.objective.value.filter(|_| has_plan),
            bound: plan.objective.bound,
            gap: plan.objective.gap,
            ratio: None,
            simulated_mean_power_w: replay.and_then(|r| r.mean_power_w),
            carries_all,
            services,
            board_faults: of_boards,
            faults: others,
            diagnostics,
            plan_seconds,
        }
    }

    /// Whether there is a plan.
    pub(crate) fn has_plan(&self) -> bool {
        self.value.is_some() || self.metrics.gpus > 0
    }

    /// Promises that the verifier sees kept.
    pub(crate) fn n_verified(&self) -> usize {
        self.services.iter().filter(|s| s.is_kept_verified).count()
    }

    /// Promises that are kept in simulation.
    pub(crate) fn n_simulated(&self) -> usize {
        self.services.iter().filter(|s| s.is_kept_simulated).count()
    }

    /// What it misses, in few words: no plan at all, services left out or short, boards that cannot be built.
    pub(crate) fn misses(&self) -> Vec<String> {
        if !self.has_plan() {
            let error = self.diagnostics.iter().find(|d| d.is_error());
            let why = error.or_else(|| self.diagnostics.iter().find(|d| d.is(Code::PlannerLimitation)));
            return vec![why.map_or_else(|| "has no plan".to_owned(), Shown::in_one_line)];
        }
        let mut all = Vec::new();
        let names = |of: &dyn Fn(&&Verdict) -> bool| -> Vec<String> {
            self.services.iter().filter(|s| of(s)).map(|s| s.name.clone()).collect()
        };
        let out = names(&|s| s.served_rps <= 0.0);
        if !out.is_empty() {
            all.push(format!("leaves out {}", out.join(", ")));
        }
        for service in self.services.iter().filter(|s| s.served_rps > 0.0 && !s.is_carried()) {
            let share = 100.0 * service.served_rps / service.rate_rps;
            all.push(format!("carries {share:.1} % of {}", service.name));
        }
        let broken = names(&|s| s.is_carried() && !s.is_kept_verified);
        if !broken.is_empty() {
            all.push(format!("breaks the promise of {}", broken.join(", ")));
        }
        if let Some(first) = self.board_faults.first() {
            all.push(format!("cannot be set up ({} faults): {first}", self.board_faults.len()));
        }
        all.extend(self.faults.iter().cloned());
        all
    }
}

impl Verdict {
    /// Whether the whole rate is served.
    pub(crate) fn is_carried(&self) -> bool {
        self.served_rps >= self.rate_rps * (1.0 - TOLERANCE)
    }
}

impl AtLoad {
    /// Fills in the ratios to the plan of `optimal`, where there is one.
    pub(crate) fn measure(&mut self) {
        let of_measure = self.plans.iter().find(|p| p.planner == super::MEASURE).and_then(|p| p.value);
        for plan in self.plans.iter_mut().filter(|p| p.carries_all) {
            plan.ratio = plan.value.zip(of_measure).map(|(value, best)| value / best);
        }
    }
}

/// The service that a fault's place is about: `services[2].rate_rps`, `gpus[0].instances[1]`.
fn subject(plan: &Plan, place: &str) -> Option<usize> {
    let index = |text: &str| -> Option<usize> { text.split(']').next()?.parse().ok() };
    if let Some(rest) = place.strip_prefix("services[") {
        return index(rest).filter(|i| *i < plan.services.len());
    }
    let gpu = plan.gpus.get(index(place.strip_prefix("gpus[")?)?)?;
    let instance = gpu.instances.get(index(place.split_once(".instances[")?.1)?)?;
    plan.services.iter().position(|s| s.name == instance.service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::plan::sample;

    fn fault(place: &str) -> Fault {
        Fault { place: place.to_owned(), message: "it is wrong".to_owned() }
    }

    #[test]
    fn faults_are_laid_at_the_service_they_are_about() {
        let plan = sample::plan();
        let faults = [fault("services[0]"), fault("metrics.power_w")];
        let judged = Judged::new(&plan, &faults, None, Vec::new(), 0.1);
        assert_eq!(judged.n_verified(), plan.services.len() - 1);
        assert_eq!(judged.faults, ["metrics.power_w: it is wrong"]);
        assert!(judged.carries_all);
    }

    #[test]
    fn a_plan_that_drops_a_service_or_cannot_be_built_has_no_ratio() {
        let good = sample::plan();
        let mut dropped = good.clone();
        dropped.planner = "other".to_owned();
        dropped.services[0].served_rps = 0.0;
        let mut overlapping = good.clone();
        overlapping.gpus[0].instances[1].start = overlapping.gpus[0].instances[0].start;
        let judge = |plan: &Plan, faults: &[Fault]| Judged::new(plan, faults, None, Vec::new(), 0.0);
        let mut measured = good.clone();
        measured.planner = crate::commands::compare::MEASURE.to_owned();
        let mut at = AtLoad {
            load: None,
            plans: vec![
                judge(&measured, &[]),
                judge(&dropped, &[]),
                judge(&overlapping, &[]),
                judge(&good, &[fault("gpus[0].instances[0]")]),
            ],
        };
        at.measure();
        assert_eq!(at.plans[0].ratio, Some(1.0));
        assert_eq!(at.plans[1].ratio, None);
        assert_eq!(at.plans[2].ratio, None);
        assert!(at.plans[2].misses()[0].starts_with("cannot be set up"));
        assert_eq!(at.plans[3].ratio, Some(1.0), "a broken promise is shown, and the plan is measured");
        assert!(at.plans[1].misses()[0].starts_with("leaves out"));
    }

    #[test]
    fn a_planner_without_a_plan_keeps_nothing() {
        let mut plan = sample::plan();
        plan.gpus.clear();
        plan.metrics = Metrics::default();
        plan.objective.value = None;
        plan.status = Status::Unknown;
        let judged = Judged::new(&plan, &[], None, Vec::new(), 0.0);
        assert_eq!((judged.n_verified(), judged.n_simulated(), judged.has_plan()), (0, 0, false));
        assert_eq!(judged.misses(), ["has no plan"]);
    }
}
