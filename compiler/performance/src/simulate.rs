//! Plan → what its queues and promises do under simulated arrivals.
//!
//! A discrete-event simulation, deterministic by seed. Services are independent of each other: the plan
//! fixes every instance's batch times. A service's requests are spread over its instances in proportion
//! to the planned rates: at random when arrivals are Poisson (every instance then sees Poisson arrivals),
//! else in turn by smooth weighted round robin, which leaves an instance's arrivals at most as irregular
//! as the service's own. Both are what the queueing model assumes.

use crate::queueing::BatchServer;
use ent_lang::program::Arrivals;
use ent_plan::plan::{Instance, Plan};
use serde::Serialize;
use std::collections::BTreeMap;

mod executor;
mod latencies;
mod stream;

use executor::Executors;
pub use latencies::Latencies;
pub use stream::Stream;

/// Share of the requests that only fill the queues and are not counted.
const WARM_UP: f64 = 0.02;

/// How long to simulate, and what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Same seed, same result.
    pub seed: u64,
    /// Requests per service; 100,000 when neither this nor `duration` is given.
    pub requests: Option<u64>,
    /// Simulated seconds, when `requests` is not given.
    pub duration: Option<f64>,
    /// No request arrives after this (s), when neither is given: the number of requests is then left to
    /// chance, as it is where requests are real.
    pub until: Option<f64>,
    /// Arrivals in place of the plan's, by service.
    pub arrivals: BTreeMap<String, Arrivals>,
    /// Gaps (s) of services whose arrivals are a trace, by service. They are scaled to the service's
    /// rate and repeated; a trace without them is simulated as Poisson.
    pub traces: BTreeMap<String, Vec<f64>>,
    /// Offered load over the planned one; 1 when not given.
    pub load: Option<f64>,
}

/// Percentiles of latency (ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half are faster.
    pub p50: f64,
    /// Nine in ten are faster.
    pub p90: f64,
    /// 95 in a hundred are faster.
    pub p95: f64,
    /// 99 in a hundred are faster.
    pub p99: f64,
    /// 999 in a thousand are faster.
    pub p999: f64,
}

impl Percentiles {
    fn of(sample: &Latencies) -> Self {
        let at = |p| sample.percentile(p) * 1e3;
        Self { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), p999: at(0.999) }
    }
}

/// What one instance did.
#[derive(Clone, Debug, Serialize)]
pub struct SimulatedInstance {
    /// Index of its board in the plan's `gpus`.
    pub gpu: usize,
    /// Its index on the board.
    pub instance: usize,
    /// Requests counted.
    pub requests: u64,
    /// Latency at the promised percentile (ms).
    pub latency_ms: f64,
    /// Mean batch size.
    pub mean_batch: f64,
    /// Share of time its executors were busy.
    pub busy: f64,
    /// Mean dynamic power (W); 0 without power data.
    pub mean_dynamic_power_w: f64,
}

/// What one service got.
#[derive(Clone, Debug, Serialize)]
pub struct SimulatedService {
    /// Its name.
    pub name: String,
    /// Requests counted.
    pub requests: u64,
    /// Simulated time that was counted (s).
    pub seconds: f64,
    /// Latency percentiles.
    pub percentiles_ms: Percentiles,
    /// Mean latency (ms).
    pub mean_ms: f64,
    /// Latency at the promised percentile (ms).
    pub latency_ms: f64,
    /// What the plan predicts there (ms).
    pub predicted_latency_ms: Option<f64>,
    /// The promise (ms).
    pub promised_latency_ms: f64,
    /// Share of requests within the promise.
    pub attainment: f64,
    /// Whether the promised percentile is within the promise.
    pub is_kept: bool,
    /// Mean batch size.
    pub mean_batch: f64,
    /// Busy executors over all executors of its instances, mean over time.
    pub busy: f64,
    /// Dynamic energy of its batches (J); 0 without power data.
    pub energy_j: f64,
    /// The latencies themselves, to be pooled over seeds.
    #[serde(skip)]
    pub latencies: Latencies,
}

/// What one board drew.
#[derive(Clone, Debug, Serialize)]
pub struct SimulatedGpu {
    /// The node it is in.
    pub node: String,
    /// Its index in the node.
    pub index: u32,
    /// Mean power (W); `None` when the plan knows no base power.
    pub mean_power_w: Option<f64>,
}

/// What a plan did under simulated arrivals.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// The seed.
    pub seed: u64,
    /// Services, in the plan's order.
    pub services: Vec<SimulatedService>,
    /// Instances, by board and start.
    pub instances: Vec<SimulatedInstance>,
    /// Boards, in the plan's order.
    pub gpus: Vec<SimulatedGpu>,
    /// Mean power of all used boards (W).
    pub mean_power_w: Option<f64>,
}

/// What one instance did by itself.
#[derive(Clone, Debug)]
pub struct SimulatedServer {
    /// The latencies.
    pub latencies: Latencies,
    /// Share of batches that had k requests, at index k - 1.
    pub batch_sizes: Vec<f64>,
    /// Share of time the executors were busy.
    pub busy: f64,
}

/// Simulates one instance at a rate (req/s) for so many requests.
#[must_use]
pub fn simulate_server(
    server: BatchServer<'_>,
    arrivals: &Arrivals,
    rate: f64,
    requests: u64,
    seed: u64,
) -> SimulatedServer {
    if server.batch_times.is_empty() || !(rate > 0.0 && rate.is_finite()) {
        return SimulatedServer {
            latencies: Latencies::new(f64::INFINITY),
            batch_sizes: Vec::new(),
            busy: 0.0,
        };
    }
    let mut stream = Stream::new(arrivals, None, rate, seed, 0);
    let from = requests as f64 * WARM_UP / rate;
    let mut executors = Executors::new(server, &[], f64::INFINITY, from);
    let mut last = from;
    for _ in 0..requests {
        last = stream.next_arrival();
        executors.arrive(last);
    }
    executors.finish();
    let batches = executors.batches.max(1) as f64;
    SimulatedServer {
        batch_sizes: executors.sizes.iter().map(|n| *n as f64 / batches).collect(),
        busy: executors.busy / ((last - from).max(f64::MIN_POSITIVE) * executors.free_count()),
        latencies: executors.latencies,
    }
}

/// Reads a plan's words for arrivals: `poisson`, `uniform`, `gamma(cv = 2)`, `trace(…)`.
#[must_use]
pub fn arrivals_from_words(words: &str) -> Option<Arrivals> {
    let words = words.trim();
    match words {
        "poisson" => Some(Arrivals::Poisson),
        "uniform" => Some(Arrivals::Uniform),
        _ if words.starts_with("trace") => Some(Arrivals::Trace { file: String::new() }),
        _ => {
            let inner = words.strip_prefix("gamma(")?.strip_suffix(')')?;
            let value = inner.split_once('=').map_or(inner, |(_, v)| v);
            let cv: f64 = value.trim().parse().ok()?;
            (cv > 0.0 && cv.is_finite()).then_some(Arrivals::Gamma { cv })
        }
    }
}

/// What is offered to one service.
struct Offered<'a> {
    /// Its instances, with the indices of board and instance.
    places: Vec<(usize, usize, &'a Instance)>,
    stream: Stream,
    arrivals: Arrivals,
    /// How many requests, at most.
    requests: u64,
    /// None after this (s).
    until: f64,
    /// Nothing that arrives before this is counted (s).
    from: f64,
}

impl Offered<'_> {
    /// Gives each request's arrival and instance, in order. Returns when counting ends (s).
    fn each(&mut self, mut request: impl FnMut(f64, usize)) -> f64 {
        let mut router = Router::new(self.places.iter().map(|(_, _, i)| i.rate_rps), &self.arrivals);
        let mut last = self.from;
        for _ in 0..self.requests {
            let at = self.stream.next_arrival();
            if at > self.until {
                break;
            }
            last = at;
            // Routing draws from the same source between two arrivals.
            request(at, router.choose(&mut self.stream));
        }
        if self.until.is_finite() { self.until } else { last }
    }
}

/// What is offered to a service, by its index; nothing where it has no instance or no rate.
fn offered<'a>(plan: &'a Plan, lane: usize, options: &Options) -> Option<Offered<'a>> {
    let service = plan.services.get(lane)?;
    let places: Vec<(usize, usize, &Instance)> = plan
        .gpus
        .iter()
        .enumerate()
        .flat_map(|(g, gpu)| gpu.instances.iter().enumerate().map(move |(i, instance)| (g, i, instance)))
        .filter(|(_, _, i)| i.service == service.name && i.rate_rps > 0.0 && !i.batch_times_ms.is_empty())
        .collect();
    let rate = service.rate_rps * options.load.unwrap_or(1.0);
    if places.is_empty() || !(rate > 0.0 && rate.is_finite()) {
        return None;
    }
    let until = options.until.filter(|_| options.requests.is_none() && options.duration.is_none());
    let requests = match (options.requests, options.duration, until) {
        (Some(requests), _, _) => requests,
        (None, Some(duration), _) => (duration * rate).ceil().max(1.0) as u64,
        (None, None, Some(_)) => u64::MAX,
        (None, None, None) => 100_000,
    };
    let from = until.unwrap_or(requests as f64 / rate) * WARM_UP;
    let arrivals = options
        .arrivals
        .get(&service.name)
        .cloned()
        .or_else(|| arrivals_from_words(&service.arrivals))
        .unwrap_or(Arrivals::Poisson);
    let trace = options.traces.get(&service.name).map(Vec::as_slice);
    let stream = Stream::new(&arrivals, trace, rate, options.seed, lane as u64);
    Some(Offered { places, stream, arrivals, requests, until: until.unwrap_or(f64::INFINITY), from })
}

/// When one service's requests arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceArrivals {
    /// Its name.
    pub name: String,
    /// When (s), in order.
    pub at: Vec<f64>,
    /// Requests that arrive before this only fill the queues, and are not counted (s).
    pub from: f64,
}

/// The very arrivals that [`simulate`] sees with the same options, so that they can be sent to something real.
/// Services without an instance have none.
#[must_use]
pub fn arrivals(plan: &Plan, options: &Options) -> Vec<ServiceArrivals> {
    let of = |(lane, service): (usize, &ent_plan::plan::Service)| {
        let name = service.name.clone();
        let Some(mut offered) = offered(plan, lane, options) else {
            return ServiceArrivals { name, at: Vec::new(), from: 0.0 };
        };
        let mut at = Vec::new();
        offered.each(|arrival, _| at.push(arrival));
        ServiceArrivals { name, at, from: offered.from }
    };
    plan.services.iter().enumerate().map(of).collect()
}

/// Simulates a plan. Services without an instance are reported with no requests and no attainment.
#[must_use]
pub fn simulate(plan: &Plan, options: &Options) -> Simulation {
    let mut instances = Vec::new();
    let mut services = Vec::new();
    let times: Vec<Vec<Vec<f64>>> = plan
        .gpus
        .iter()
        .map(|g| g.instances.iter().map(|i| i.batch_times_ms.iter().map(|t| t * 1e-3).collect()).collect())
        .collect();
    for (lane, service) in plan.services.iter().enumerate() {
        let bound = service.promised_latency_ms * 1e-3;
        let Some(mut offered) = offered(plan, lane, options) else {
            services.push(unserved(service));
            continue;
        };
        let from = offered.from;
        let mut executors: Vec<Executors<'_>> = offered
            .places
            .iter()
            .map(|(g, i, instance)| {
                let server = BatchServer {
                    batch_times: &times[*g][*i],
                    processes: instance.processes,
                    max_wait: instance.max_wait_ms * 1e-3,
                };
                Executors::new(server, &instance.batch_energy_j, bound, from)
            })
            .collect();
        let last = offered.each(|at, to| executors[to].arrive(at));
        let seconds = (last - from).max(f64::MIN_POSITIVE);
        let mut pooled = Latencies::new(bound);
        let (mut batches, mut served, mut busy, mut slots, mut energy) = (0, 0, 0.0, 0.0, 0.0);
        for (one, (g, i, _)) in executors.iter_mut().zip(&offered.places) {
            one.finish();
            pooled.pool(&one.latencies);
            batches += one.batches;
            served += one.served;
            busy += one.busy;
            slots += one.free_count();
            energy += one.energy_j;
            instances.push(SimulatedInstance {
                gpu: *g,
                instance: *i,
                requests: one.served,
                latency_ms: one.latencies.percentile(service.percentile) * 1e3,
                mean_batch: one.served as f64 / one.batches.max(1) as f64,
                busy: one.busy / (seconds * one.free_count()),
                mean_dynamic_power_w: one.energy_j / seconds,
            });
        }
        services.push(SimulatedService {
            name: service.name.clone(),
            requests: served,
            seconds,
            percentiles_ms: Percentiles::of(&pooled),
            mean_ms: pooled.mean() * 1e3,
            latency_ms: pooled.percentile(service.percentile) * 1e3,
            predicted_latency_ms: service.predicted_latency_ms,
            promised_latency_ms: service.promised_latency_ms,
            attainment: pooled.attainment(),
            is_kept: pooled.attainment() >= service.percentile,
            mean_batch: served as f64 / batches.max(1) as f64,
            busy: busy / (seconds * slots),
            energy_j: energy,
            latencies: pooled,
        });
    }
    instances.sort_by_key(|i| (i.gpu, i.instance));
    let gpus: Vec<SimulatedGpu> = plan
        .gpus
        .iter()
        .enumerate()
        .map(|(g, gpu)| SimulatedGpu {
            node: gpu.node.clone(),
            index: gpu.index,
            mean_power_w: gpu.base_power_w.map(|base| {
                base + instances.iter().filter(|i| i.gpu == g).map(|i| i.mean_dynamic_power_w).sum::<f64>()
            }),
        })
        .collect();
    let mean_power_w = gpus.iter().map(|g| g.mean_power_w).sum();
    Simulation { seed: options.seed, services, instances, gpus, mean_power_w }
}

/// Adds up what several seeds gave for one service: the pooled latency percentile and attainment.
#[must_use]
pub fn pool(simulations: &[Simulation], service: usize) -> Option<Latencies> {
    let mut samples = simulations.iter().filter_map(|s| s.services.get(service));
    let mut pooled = samples.next()?.latencies.clone();
    for other in samples {
        pooled.pool(&other.latencies);
    }
    Some(pooled)
}

fn unserved(service: &ent_plan::plan::Service) -> SimulatedService {
    SimulatedService {
        name: service.name.clone(),
        requests: 0,
        seconds: 0.0,
        percentiles_ms: Percentiles::default(),
        mean_ms: 0.0,
        latency_ms: 0.0,
        predicted_latency_ms: service.predicted_latency_ms,
        promised_latency_ms: service.promised_latency_ms,
        attainment: 0.0,
        is_kept: false,
        mean_batch: 0.0,
        busy: 0.0,
        energy_j: 0.0,
        latencies: Latencies::new(service.promised_latency_ms * 1e-3),
    }
}

/// Spreads a service's requests over its instances.
struct Router {
    /// Shares of the rate, adding up to 1.
    shares: Vec<f64>,
    /// What each instance is owed, under round robin.
    credit: Vec<f64>,
    is_random: bool,
}

impl Router {
    fn new(rates: impl Iterator<Item = f64>, arrivals: &Arrivals) -> Self {
        let mut shares: Vec<f64> = rates.collect();
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|s| *s /= total);
        let credit = vec![0.0; shares.len()];
        Self { shares, credit, is_random: matches!(arrivals, Arrivals::Poisson) }
    }

    #[inline]
    fn choose(&mut self, stream: &mut Stream) -> usize {
        if self.shares.len() == 1 {
            return 0;
        }
        if self.is_random {
            let mut left = stream.uniform();
            for (i, share) in self.shares.iter().enumerate() {
                left -= share;
                if left < 0.0 {
                    return i;
                }
            }
            return self.shares.len() - 1;
        }
        let mut best = 0;
        for (i, share) in self.shares.iter().enumerate() {
            self.credit[i] += share;
            if self.credit[i] > self.credit[best] {
                best = i;
            }
        }
        self.credit[best] -= 1.0;
        best
    }
}

#[cfg(test)]
mod tests;
