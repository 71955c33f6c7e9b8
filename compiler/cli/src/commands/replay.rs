//! Plan + seeds → what its promises do under simulated arrivals, pooled over the seeds.
//!
//! Seeds run side by side on the machine's cores and are pooled in their order, so that the result does
//! not depend on how many cores there are.

use crate::arguments::Runs;
use ent_lang::program::Arrivals;
use ent_performance::simulate::{Latencies, Options, Simulation, simulate};
use ent_plan::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// What a plan did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Replay {
    /// First seed.
    pub(crate) seed: u64,
    /// How many.
    pub(crate) seeds: u32,
    /// The services, in the plan's order.
    pub(crate) services: Vec<ReplayedService>,
    /// The boards, in the plan's order.
    pub(crate) gpus: Vec<ReplayedGpu>,
    /// Mean power of the used boards (W), simulated; `null` without power data.
    pub(crate) mean_power_w: Option<f64>,
    /// Requests simulated, those that only fill the queues included.
    pub(crate) requests: u64,
    /// How long the simulation took (s).
    pub(crate) simulate_seconds: f64,
}

/// What one service got.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ReplayedService {
    /// Its name.
    pub(crate) name: String,
    /// The rate it asks for (req/s).
    pub(crate) rate_rps: f64,
    /// How requests arrived.
    pub(crate) arrivals: String,
    /// Requests counted, over all seeds.
    pub(crate) requests: u64,
    /// The promised percentile, 0.99 for p99.
    pub(crate) percentile: f64,
    /// Half are faster (ms).
    pub(crate) p50_ms: f64,
    /// 95 in a hundred are faster (ms).
    pub(crate) p95_ms: f64,
    /// 99 in a hundred are faster (ms).
    pub(crate) p99_ms: f64,
    /// Latency at the promised percentile (ms), pooled over the seeds.
    pub(crate) latency_ms: f64,
    /// The same, of the best and of the worst seed (ms).
    pub(crate) latency_range_ms: [f64; 2],
    /// What the plan predicts there (ms).
    pub(crate) predicted_latency_ms: Option<f64>,
    /// The promise (ms).
    pub(crate) promised_latency_ms: f64,
    /// Share of requests within the promise.
    pub(crate) attainment: f64,
    /// Whether the pooled percentile is within the promise.
    pub(crate) is_kept: bool,
    /// Mean batch size.
    pub(crate) mean_batch: f64,
    /// Busy executors over all executors, mean over time.
    pub(crate) utilisation: f64,
    /// Dynamic energy per request (J); `null` without power data.
    pub(crate) energy_j_per_request: Option<f64>,
}

/// What one board drew.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ReplayedGpu {
    /// The node it is in.
    pub(crate) node: String,
    /// Its index in the node.
    pub(crate) index: u32,
    /// What the plan predicts (W).
    pub(crate) predicted_mean_power_w: Option<f64>,
    /// Mean power (W), simulated.
    pub(crate) mean_power_w: Option<f64>,
}

/// Gaps of recorded arrivals (s), by service.
pub(super) type Traces = BTreeMap<String, Vec<f64>>;

/// Simulates a plan for each seed.
pub(super) fn replay(plan: &Plan, runs: &Runs, traces: &Traces) -> Replay {
    let started = Instant::now();
    let seeds: Vec<u64> = (0..u64::from(runs.seeds)).map(|k| runs.seed.wrapping_add(k)).collect();
    let options = |seed: u64| Options {
        seed,
        requests: runs.requests,
        duration: runs.duration.map(|d| d.as_secs_f64()),
        arrivals: traces.keys().map(|name| (name.clone(), Arrivals::Trace { file: String::new() })).collect(),
        traces: traces.clone(),
        load: None,
        until: None,
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let mut pools: Vec<Pool> = plan.services.iter().map(|_| Pool::default()).collect();
    let mut watts: Vec<Option<f64>> = vec![Some(0.0); plan.gpus.len()];
    // In waves, so that only as many samples are held as there are cores.
    for wave in seeds.chunks(cores) {
        let simulations: Vec<Simulation> = std::thread::scope(|scope| {
            let running: Vec<_> =
                wave.iter().map(|seed| scope.spawn(|| simulate(plan, &options(*seed)))).collect();
            running.into_iter().filter_map(|run| run.join().ok()).collect()
        });
        for simulation in &simulations {
            pools.iter_mut().zip(&simulation.services).for_each(|(pool, one)| pool.add(one));
            for (sum, gpu) in watts.iter_mut().zip(&simulation.gpus) {
                *sum = sum.zip(gpu.mean_power_w).map(|(sum, watts)| sum + watts / seeds.len() as f64);
            }
        }
    }
    let has_power = plan.gpus.iter().flat_map(|g| &g.instances).all(|i| !i.batch_energy_j.is_empty());
    let watts: Vec<Option<f64>> = watts.into_iter().map(|w| w.filter(|_| has_power)).collect();
    let services: Vec<ReplayedService> = plan
        .services
        .iter()
        .zip(pools)
        .map(|(service, pool)| pool.service(service, traces.contains_key(&service.name), has_power))
        .collect();
    let gpus = plan.gpus.iter().zip(&watts).map(|(gpu, watts)| ReplayedGpu {
        node: gpu.node.clone(),
        index: gpu.index,
        predicted_mean_power_w: gpu.mean_power_w,
        mean_power_w: *watts,
    });
    let asked = |s: &ReplayedService| {
        let each = runs.duration.map_or(100_000, |d| (d.as_secs_f64() * s.rate_rps).ceil() as u64);
        if s.requests == 0 { 0 } else { runs.requests.unwrap_or(each) * u64::from(runs.seeds) }
    };
    Replay {
        seed: runs.seed,
        seeds: runs.seeds,
        requests: services.iter().map(asked).sum(),
        services,
        gpus: gpus.collect(),
        mean_power_w: watts.iter().copied().sum(),
        simulate_seconds: started.elapsed().as_secs_f64(),
    }
}

/// What several seeds gave for one service.
#[derive(Default)]
struct Pool {
    latencies: Option<Latencies>,
    range: Option<[f64; 2]>,
    requests: u64,
    batches: f64,
    busy: f64,
    energy_j: f64,
    n: u32,
}

impl Pool {
    fn add(&mut self, one: &ent_performance::simulate::SimulatedService) {
        match &mut self.latencies {
            Some(all) => all.pool(&one.latencies),
            None => self.latencies = Some(one.latencies.clone()),
        }
        let at = one.latency_ms;
        self.range = Some(self.range.map_or([at, at], |[low, high]| [low.min(at), high.max(at)]));
        self.requests += one.requests;
        if one.mean_batch > 0.0 {
            self.batches += one.requests as f64 / one.mean_batch;
        }
        self.busy += one.busy;
        self.energy_j += one.energy_j;
        self.n += 1;
    }

    fn service(self, service: &ent_plan::plan::Service, is_trace: bool, has_power: bool) -> ReplayedService {
        let latencies = self.latencies.unwrap_or_else(|| Latencies::new(service.promised_latency_ms * 1e-3));
        let at = |p: f64| latencies.percentile(p) * 1e3;
        let requests = self.requests as f64;
        let attainment = if self.requests == 0 { 0.0 } else { latencies.attainment() };
        ReplayedService {
            name: service.name.clone(),
            rate_rps: service.rate_rps,
            arrivals: if is_trace { "trace".to_owned() } else { service.arrivals.clone() },
            requests: self.requests,
            percentile: service.percentile,
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            latency_ms: at(service.percentile),
            latency_range_ms: self.range.unwrap_or_default(),
            predicted_latency_ms: service.predicted_latency_ms,
            promised_latency_ms: service.promised_latency_ms,
            attainment,
            is_kept: self.requests > 0 && attainment >= service.percentile,
            mean_batch: if self.batches > 0.0 { requests / self.batches } else { 0.0 },
            utilisation: self.busy / f64::from(self.n.max(1)),
            energy_j_per_request: (has_power && self.requests > 0).then(|| self.energy_j / requests),
        }
    }
}
