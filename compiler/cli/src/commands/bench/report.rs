//! What was sent, measured and simulated → one report.

use super::energy::{Reading, used};
use ent_performance::simulate::{Options, SimulatedService, Simulation};
use ent_plan::plan::{Instance, Plan, Service};
use ent_serve::gateway::ServiceStats;
use ent_serve::load::{Measured, MeasuredService};
use ent_serve::supervisor::Status;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Version of this format.
const FORMAT_VERSION: &str = "1.0";

/// What `entc bench --format json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Benchmark {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// The program's file.
    pub(crate) program: String,
    /// The plan's checksum.
    pub(crate) plan: Option<String>,
    /// The node that was measured.
    pub(crate) node: String,
    /// The seed of the arrivals.
    pub(crate) seed: u64,
    /// Offered load over the planned one.
    pub(crate) load: f64,
    /// How long requests were sent (s).
    pub(crate) duration_s: f64,
    /// From the first request to the last answer (s).
    pub(crate) seconds: f64,
    /// Whether it was stopped before all requests were sent.
    pub(crate) is_interrupted: bool,
    /// Requests that were sent.
    pub(crate) sent: u64,
    /// Requests that were answered well.
    pub(crate) answered: u64,
    /// Requests that were not.
    pub(crate) failed: u64,
    /// How late requests were sent, which latencies include (ms): the client's own fault.
    pub(crate) client_lag_ms: Lag,
    /// Connections that were opened.
    pub(crate) connections: u64,
    /// The machine's load average over a minute, before and after: what is measured on a busy machine is
    /// measured with it.
    pub(crate) load_average: [Option<f64>; 2],
    /// The services, in the plan's order.
    pub(crate) services: Vec<BenchedService>,
    /// Relative error bands of what is predicted, one standard deviation of the fitted models; 0 for measured
    /// tables: the largest of the plan's instances.
    pub(crate) predicted_error: PredictedError,
    /// Energy of the boards; `null` when they do not count it, or not all services were sent to.
    pub(crate) energy: Option<BenchedEnergy>,
}

/// Relative error bands of predictions, one standard deviation.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct PredictedError {
    /// Of batch times, and so of latencies.
    pub(crate) time: f64,
    /// Of dynamic power, and so of energies.
    pub(crate) power: f64,
}

/// Percentiles of lateness (ms).
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct Lag {
    /// Half were less late.
    pub(crate) p50: f64,
    /// 99 in a hundred were less late.
    pub(crate) p99: f64,
    /// The latest.
    pub(crate) max: f64,
}

/// One number in three ways; `null` where it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Threefold {
    /// By the plan.
    pub(crate) predicted: Option<f64>,
    /// Of the very arrivals that were sent, in simulation.
    pub(crate) simulated: Option<f64>,
    /// Of the requests that were sent.
    pub(crate) measured: Option<f64>,
}

/// What one service did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BenchedService {
    /// Its name.
    pub(crate) name: String,
    /// What took the time of its batches: `modelled`, `torch`.
    pub(crate) executor: Option<String>,
    /// The rate at which requests were sent (req/s).
    pub(crate) rate_rps: f64,
    /// How they arrived.
    pub(crate) arrivals: String,
    /// Requests that were sent.
    pub(crate) sent: u64,
    /// Requests that were answered well.
    pub(crate) answered: u64,
    /// Requests that were not.
    pub(crate) failed: u64,
    /// Why not, with how often and what the first of them said.
    pub(crate) failures: BTreeMap<String, BenchedFailure>,
    /// Requests whose latency counts: the first ones only fill the queues.
    pub(crate) counted: u64,
    /// The promised percentile, 0.99 for p99.
    pub(crate) percentile: f64,
    /// The promise (ms).
    pub(crate) promised_latency_ms: f64,
    /// Latency at the promised percentile (ms).
    pub(crate) latency_ms: Threefold,
    /// Half are faster (ms).
    pub(crate) p50_ms: Threefold,
    /// 95 in a hundred are faster (ms).
    pub(crate) p95_ms: Threefold,
    /// 99 in a hundred are faster (ms).
    pub(crate) p99_ms: Threefold,
    /// Mean latency (ms).
    pub(crate) mean_ms: Threefold,
    /// Share of the requests within the promise.
    pub(crate) attainment: Threefold,
    /// Whether the promise was kept; `null` when no request counted.
    pub(crate) is_kept: Option<bool>,
    /// Mean batch size.
    pub(crate) mean_batch: Threefold,
    /// Dynamic energy per request (J): measured is what the executors report.
    pub(crate) dynamic_j_per_request: Threefold,
}

/// Failures of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BenchedFailure {
    /// How many.
    pub(crate) count: u64,
    /// What the first of them said.
    pub(crate) example: String,
}

/// Energy of the boards that the plan uses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct BenchedEnergy {
    /// How many boards.
    pub(crate) boards: usize,
    /// Seconds between the readings of their counters.
    pub(crate) seconds: f64,
    /// Whether the counters are the boards' own (`measured`) or a simulated driver's (`simulated`).
    pub(crate) source: &'static str,
    /// Energy (J) over these seconds, for the requests that were sent.
    pub(crate) joules: Threefold,
    /// Mean power (W).
    pub(crate) watts: Threefold,
    /// Energy per answered request (J), base power included.
    pub(crate) joules_per_request: Threefold,
}

/// What a report is made of.
pub(super) struct Seen<'a> {
    /// The plan, of this node.
    pub(super) plan: &'a Plan,
    /// The node.
    pub(super) node: &'a str,
    /// How arrivals were made.
    pub(super) options: &'a Options,
    /// How long requests were to be sent.
    pub(super) duration: Duration,
    /// The services that were chosen; all when empty.
    pub(super) chosen: &'a [String],
    /// What was measured.
    pub(super) measured: &'a Measured,
    /// The same arrivals in simulation.
    pub(super) simulated: &'a Simulation,
    /// The boards' counters before and after.
    pub(super) energy: Option<(Reading, Reading)>,
    /// The gateway before and after.
    pub(super) gateway: Option<(&'a Status, &'a Status)>,
    /// The machine's load before and after.
    pub(super) load_average: [Option<f64>; 2],
    /// Whether it was stopped.
    pub(super) is_interrupted: bool,
}

/// Puts it together.
pub(super) fn benchmark(seen: &Seen<'_>) -> Benchmark {
    let services: Vec<BenchedService> = seen
        .measured
        .services
        .iter()
        .filter_map(|measured| {
            let planned = seen.plan.services.iter().find(|s| s.name == measured.service)?;
            let simulated = seen.simulated.services.iter().find(|s| s.name == measured.service)?;
            Some(service(planned, measured, simulated, seen))
        })
        .collect();
    let lag = |p: f64| seen.measured.lag.value_at_quantile(p) as f64 * 1e-6;
    let total = |of: fn(&BenchedService) -> u64| services.iter().map(of).sum::<u64>();
    Benchmark {
        format_version: FORMAT_VERSION,
        program: seen.plan.program.clone(),
        plan: seen.plan.checksum.clone(),
        node: seen.node.to_owned(),
        seed: seen.options.seed,
        load: seen.options.load.unwrap_or(1.0),
        duration_s: seen.duration.as_secs_f64(),
        seconds: seen.measured.seconds,
        is_interrupted: seen.is_interrupted,
        sent: total(|s| s.sent),
        answered: total(|s| s.answered),
        failed: total(|s| s.failed),
        client_lag_ms: Lag { p50: lag(0.5), p99: lag(0.99), max: lag(1.0) },
        connections: seen.measured.connections,
        load_average: seen.load_average,
        energy: energy(seen, &services),
        services,
        predicted_error: predicted_error(seen.plan),
    }
}

fn predicted_error(plan: &Plan) -> PredictedError {
    let instances = || plan.gpus.iter().flat_map(|gpu| &gpu.instances);
    PredictedError {
        time: instances().map(|i| i.time_error).fold(0.0, f64::max),
        power: instances().map(|i| i.power_error).fold(0.0, f64::max),
    }
}

fn service(
    planned: &Service,
    measured: &MeasuredService,
    simulated: &SimulatedService,
    seen: &Seen<'_>,
) -> BenchedService {
    let has_any = !measured.latencies.is_empty();
    let known = |value: f64| has_any.then_some(value);
    let is_simulated = simulated.requests > 0;
    let in_simulation = |value: f64| is_simulated.then_some(value);
    let at = |p: f64, predicted: Option<f64>, simulated: f64| Threefold {
        predicted,
        simulated: in_simulation(simulated),
        measured: known(measured.latency_ms(p)),
    };
    let percentiles = &simulated.percentiles_ms;
    let attainment = measured.attainment();
    let executed = executed(&planned.name, seen.gateway);
    let per_request = per_request(&planned.name, seen.plan);
    let failures = measured.failures.iter().map(|(reason, failure)| {
        (reason.clone(), BenchedFailure { count: failure.count, example: failure.example.clone() })
    });
    BenchedService {
        name: planned.name.clone(),
        executor: measured.executor.clone(),
        rate_rps: planned.rate_rps * seen.options.load.unwrap_or(1.0),
        arrivals: planned.arrivals.clone(),
        sent: measured.sent,
        answered: measured.answered,
        failed: measured.failed(),
        failures: failures.collect(),
        counted: measured.counted,
        percentile: planned.percentile,
        promised_latency_ms: planned.promised_latency_ms,
        latency_ms: at(planned.percentile, planned.predicted_latency_ms, simulated.latency_ms),
        p50_ms: at(0.5, None, percentiles.p50),
        p95_ms: at(0.95, None, percentiles.p95),
        p99_ms: at(0.99, None, percentiles.p99),
        mean_ms: Threefold {
            predicted: None,
            simulated: in_simulation(simulated.mean_ms),
            measured: known(measured.latencies.mean() * 1e-6),
        },
        attainment: Threefold {
            predicted: None,
            simulated: in_simulation(simulated.attainment),
            measured: attainment,
        },
        is_kept: attainment.map(|attainment| attainment >= planned.percentile),
        mean_batch: Threefold {
            predicted: None,
            simulated: in_simulation(simulated.mean_batch),
            measured: executed.and_then(|e| e.mean_batch),
        },
        dynamic_j_per_request: Threefold {
            predicted: per_request,
            simulated: in_simulation(simulated.energy_j / simulated.requests.max(1) as f64)
                .filter(|_| per_request.is_some()),
            measured: executed.and_then(|e| e.j_per_request),
        },
    }
}

/// What a service's executors did between two looks at the gateway.
#[derive(Clone, Copy)]
struct Executed {
    mean_batch: Option<f64>,
    j_per_request: Option<f64>,
}

fn executed(name: &str, gateway: Option<(&Status, &Status)>) -> Option<Executed> {
    let (before, after) = gateway?;
    let of = |status: &Status| {
        let service = status.stats.services.iter().find(|s| s.name == name)?;
        Some(sums(service))
    };
    let ((batches, rows, joules), (batches_after, rows_after, joules_after)) = (of(before)?, of(after)?);
    let (batches, rows) = (batches_after.checked_sub(batches)?, rows_after.checked_sub(rows)?);
    let per = |value: f64, n: u64| (n > 0).then(|| value / n as f64);
    let joules = joules_after - joules;
    Some(Executed {
        mean_batch: per(rows as f64, batches),
        j_per_request: per(joules, rows).filter(|_| joules > 0.0),
    })
}

/// Batches, rows and joules of a service so far.
fn sums(service: &ServiceStats) -> (u64, u64, f64) {
    let rows = |sizes: &[u64]| sizes.iter().zip(1..).map(|(n, k): (&u64, u64)| n * k).sum::<u64>();
    service.replicas.iter().fold((0, 0, 0.0), |(batches, all, joules), replica| {
        (batches + replica.batches, all + rows(&replica.batch_sizes), joules + replica.energy_j)
    })
}

/// Dynamic energy of a request that a plan predicts (J), over a service's instances.
fn per_request(service: &str, plan: &Plan) -> Option<f64> {
    let of = || plan.gpus.iter().flat_map(|gpu| &gpu.instances).filter(|i| i.service == service);
    let watts: Option<f64> = of().map(|i: &Instance| i.mean_dynamic_power_w).sum();
    let rate: f64 = of().map(|i| i.rate_rps).sum();
    watts.filter(|_| rate > 0.0).map(|watts| watts / rate)
}

/// What the boards used, beside what the plan and the simulation say of the requests that were sent: base power
/// over the same seconds, and each request's dynamic energy.
fn energy(seen: &Seen<'_>, services: &[BenchedService]) -> Option<BenchedEnergy> {
    let (begin, end) = seen.energy.as_ref()?;
    if !seen.chosen.is_empty() {
        return None;
    }
    let used = used(begin, end);
    let base: Option<f64> = seen.plan.gpus.iter().map(|gpu| gpu.base_power_w).sum();
    let dynamic = |of: fn(&Threefold) -> Option<f64>| -> Option<f64> {
        services.iter().map(|s| Some(of(&s.dynamic_j_per_request)? * s.sent as f64)).sum()
    };
    let with_base = |joules: Option<f64>| base.zip(joules).map(|(watts, j)| watts * used.seconds + j);
    let joules = Threefold {
        predicted: with_base(dynamic(|t| t.predicted)),
        simulated: with_base(dynamic(|t| t.simulated)),
        measured: Some(used.joules),
    };
    let over = |divisor: f64| {
        let one = |j: Option<f64>| j.filter(|_| divisor > 0.0).map(|j| j / divisor);
        Threefold {
            predicted: one(joules.predicted),
            simulated: one(joules.simulated),
            measured: one(joules.measured),
        }
    };
    let answered: u64 = services.iter().map(|s| s.answered).sum();
    Some(BenchedEnergy {
        boards: used.boards,
        seconds: used.seconds,
        source: used.source,
        joules,
        watts: over(used.seconds),
        joules_per_request: over(answered as f64),
    })
}
