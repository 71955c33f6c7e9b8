//! What happens → Prometheus metrics, and numbers for [`super::Stats`].
//!
//! Counters and histograms count as things happen; gauges are looked up when somebody asks.

use super::front::Table;
use super::replica::Look;
use super::stats::{Outcomes, ReplicaStats, ServiceStats};
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::{
    CounterVec, Encoder, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGaugeVec, Opts,
    Registry, TextEncoder,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How requests end, as the label `outcome`.
const OUTCOMES: [&str; 6] = ["served", "shed", "full", "invalid", "failed", "cancelled"];

/// All metrics of a gateway.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) registry: Registry,
    requests: IntCounterVec,
    violations: IntCounterVec,
    retries: IntCounterVec,
    plan: IntGaugeVec,
    attainment: GaugeVec,
    ready: IntGaugeVec,
    promise: GaugeVec,
    queued: IntGaugeVec,
    in_flight: IntGaugeVec,
    workers: IntGaugeVec,
    batch: IntGaugeVec,
    batches: CounterVec,
    rows: CounterVec,
    compute: CounterVec,
    energy: CounterVec,
    lost: CounterVec,
    services: Mutex<BTreeMap<String, Arc<ServiceMetrics>>>,
    /// Held while what is looked up is written down.
    reading: Mutex<()>,
}

/// Counters of one service, for as long as the gateway lives.
#[derive(Debug)]
pub(crate) struct ServiceMetrics {
    pub(crate) latency: Histogram,
    pub(crate) violations: IntCounter,
    pub(crate) retries: IntCounter,
    pub(crate) served: IntCounter,
    pub(crate) shed: IntCounter,
    pub(crate) full: IntCounter,
    pub(crate) invalid: IntCounter,
    pub(crate) failed: IntCounter,
    pub(crate) cancelled: IntCounter,
}

/// Bounds of latency (s): from a quarter of a millisecond to a minute in steps of about a third, and the
/// promise, so that attainment can be read off.
fn bounds(promise_s: f64) -> Vec<f64> {
    let mut bounds: Vec<f64> = (0..44).map(|i| 0.000_25 * 10_f64.powf(f64::from(i) / 8.0)).collect();
    bounds.push(promise_s);
    bounds.sort_by(f64::total_cmp);
    bounds.dedup_by(|a, b| (*a - *b).abs() < 1e-9);
    bounds
}

impl Metrics {
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let of_service = ["service"].as_slice();
        let of_replica = ["service", "replica", "executor"].as_slice();
        fn add<C: Collector + Clone + 'static>(
            registry: &Registry,
            metric: C,
        ) -> Result<C, prometheus::Error> {
            registry.register(Box::new(metric.clone()))?;
            Ok(metric)
        }
        let integer = |name: &str, help: &str, labels: &[&str]| {
            IntGaugeVec::new(Opts::new(name, help), labels).and_then(|m| add(&registry, m))
        };
        let float = |name: &str, help: &str, labels: &[&str]| {
            GaugeVec::new(Opts::new(name, help), labels).and_then(|m| add(&registry, m))
        };
        let total = |name: &str, help: &str, labels: &[&str]| {
            CounterVec::new(Opts::new(name, help), labels).and_then(|m| add(&registry, m))
        };
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels).and_then(|m| add(&registry, m))
        };
        Ok(Self {
            requests: counter("entc_model_requests_total", "Requests by outcome", &["service", "outcome"])?,
            violations: counter("entc_slo_violations_total", "Served, but later than promised", of_service)?,
            retries: counter("entc_model_retries_total", "Attempts that were made again", of_service)?,
            plan: integer("entc_plan_info", "The plan that runs; always 1", &["hash"])?,
            attainment: float(
                "entc_slo_attainment",
                "Share of served requests within the promise",
                of_service,
            )?,
            ready: integer("entc_model_ready", "Whether the service can be called", of_service)?,
            promise: float("entc_slo_latency_seconds", "The promised latency", &["service", "percentile"])?,
            queued: integer("entc_queue_requests", "Requests that wait for a batch", of_replica)?,
            in_flight: integer("entc_in_flight_rows", "Rows that are with workers", of_replica)?,
            workers: integer("entc_workers", "Warm workers", of_replica)?,
            batch: integer("entc_batch_limit_rows", "Rows of the largest batch, planned", of_replica)?,
            batches: total("entc_batches_total", "Batches that were answered", of_replica)?,
            rows: total("entc_batch_rows_total", "Rows of all batches that were answered", of_replica)?,
            compute: total(
                "entc_compute_seconds_total",
                "Time that executors took, as they say",
                of_replica,
            )?,
            energy: total("entc_executor_energy_joules_total", "Energy that executors report", of_replica)?,
            lost: total("entc_worker_losses_total", "Workers that ended unasked", of_replica)?,
            services: Mutex::default(),
            reading: Mutex::default(),
            registry,
        })
    }

    /// The counters of a service: those that it had before, if it was there before.
    pub(crate) fn service(
        &self,
        name: &str,
        promise_s: f64,
    ) -> Result<Arc<ServiceMetrics>, prometheus::Error> {
        let mut services = self.services.lock();
        if let Some(known) = services.get(name) {
            return Ok(Arc::clone(known));
        }
        let options = HistogramOpts::new(
            "entc_model_request_duration_seconds",
            "From a request's arrival to its answer, of those that were served",
        );
        let options = options.const_label("service", name).buckets(bounds(promise_s));
        let latency = Histogram::with_opts(options)?;
        self.registry.register(Box::new(latency.clone()))?;
        let outcome = |outcome: &str| self.requests.with_label_values(&[name, outcome]);
        let [served, shed, full, invalid, failed, cancelled] = OUTCOMES.map(outcome);
        let violations = self.violations.with_label_values(&[name]);
        let retries = self.retries.with_label_values(&[name]);
        let metrics =
            ServiceMetrics { latency, violations, retries, served, shed, full, invalid, failed, cancelled };
        let metrics = Arc::new(metrics);
        services.insert(name.to_owned(), Arc::clone(&metrics));
        Ok(metrics)
    }

    /// All metrics, as Prometheus reads them.
    pub(crate) fn text(&self, table: &Table) -> Vec<u8> {
        let _reading = self.reading.lock();
        for gauges in [&self.queued, &self.in_flight, &self.workers, &self.batch, &self.plan, &self.ready] {
            gauges.reset();
        }
        [&self.promise, &self.attainment].into_iter().for_each(GaugeVec::reset);
        let totals = [&self.batches, &self.rows, &self.compute, &self.energy, &self.lost];
        totals.into_iter().for_each(CounterVec::reset);
        let integer = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.plan.with_label_values(&[table.plan.as_deref().unwrap_or("none")]).set(1);
        for service in table.services.values() {
            let name = service.name.as_str();
            self.ready.with_label_values(&[name]).set(i64::from(service.is_ready()));
            let percentile = service.percentile.to_string();
            self.promise.with_label_values(&[name, &percentile]).set(service.promise.as_secs_f64());
            let served = service.metrics.served.get();
            if served > 0 {
                let late = service.metrics.violations.get();
                self.attainment.with_label_values(&[name]).set(1.0 - late as f64 / served as f64);
            }
            for route in &service.routes {
                let replica = &route.replica;
                let look = replica.look();
                let labels = [name, replica.id.as_str(), replica.executor.word()];
                self.queued.with_label_values(&labels).set(integer(look.queued));
                self.in_flight.with_label_values(&labels).set(integer(look.in_flight));
                self.workers.with_label_values(&labels).set(i64::from(look.workers));
                self.batch.with_label_values(&labels).set(i64::from(look.batch));
                self.batches.with_label_values(&labels).inc_by(look.counts.batches as f64);
                self.rows.with_label_values(&labels).inc_by(rows(&look.counts.sizes) as f64);
                self.compute.with_label_values(&labels).inc_by(look.counts.compute.as_secs_f64());
                self.energy.with_label_values(&labels).inc_by(look.counts.energy_j);
                self.lost.with_label_values(&labels).inc_by(look.counts.lost_workers as f64);
            }
        }
        let mut text = Vec::new();
        // Into memory, and every metric was made by the library itself.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
    }

    /// Services and replicas in numbers.
    pub(crate) fn services(table: &Table) -> Vec<ServiceStats> {
        let services = table.services.values().map(|service| {
            let metrics = &service.metrics;
            let (latency_bounds_s, latency_counts) = buckets(&metrics.latency);
            ServiceStats {
                name: service.name.clone(),
                is_ready: service.is_ready(),
                outcomes: Outcomes {
                    served: metrics.served.get(),
                    shed: metrics.shed.get(),
                    full: metrics.full.get(),
                    invalid: metrics.invalid.get(),
                    failed: metrics.failed.get(),
                    cancelled: metrics.cancelled.get(),
                },
                retries: metrics.retries.get(),
                within_promise: metrics.served.get().saturating_sub(metrics.violations.get()),
                promised_latency_ms: service.promise.as_secs_f64() * 1e3,
                latency_bounds_s,
                latency_counts,
                latency_sum_s: metrics.latency.get_sample_sum(),
                replicas: service.routes.iter().map(|route| replica(route, route.replica.look())).collect(),
            }
        });
        services.collect()
    }
}

fn replica(route: &super::service::Route, look: Look) -> ReplicaStats {
    ReplicaStats {
        id: route.replica.id.clone(),
        epoch: route.replica.epoch,
        executor: route.replica.executor,
        is_ready: route.replica.is_ready(),
        workers: look.workers,
        processes: look.processes,
        queued: look.queued,
        in_flight: look.in_flight,
        batches: look.counts.batches,
        batch_sizes: look.counts.sizes,
        batch: look.batch,
        overrun_s: look.counts.overrun.as_secs_f64(),
        compute_s: look.counts.compute.as_secs_f64(),
        energy_j: look.counts.energy_j,
        lost_workers: look.counts.lost_workers,
    }
}

fn rows(sizes: &[u64]) -> u64 {
    sizes.iter().zip(1..).map(|(batches, rows): (&u64, u64)| batches * rows).sum()
}

/// Upper bounds, and what is in each bucket alone; the last has no bound.
fn buckets(histogram: &Histogram) -> (Vec<f64>, Vec<u64>) {
    let families = histogram.collect();
    let metric = families.first().and_then(|f| f.get_metric().first());
    let Some(metric) = metric else { return Default::default() };
    let histogram = metric.get_histogram();
    let mut before = 0;
    let (mut bounds, mut counts) = (Vec::new(), Vec::new());
    for bucket in histogram.get_bucket() {
        bounds.push(bucket.upper_bound());
        counts.push(bucket.cumulative_count().saturating_sub(before));
        before = bucket.cumulative_count();
    }
    counts.push(histogram.get_sample_count().saturating_sub(before));
    (bounds, counts)
}
