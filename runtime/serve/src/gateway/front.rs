//! What all connections share: the services as they are now, limits and counts.

use super::metrics::Metrics;
use super::replica::Replica;
use super::service::{Route, Service, infer};
use super::traces::{Traced, Traces};
use super::{Options, Stats};
use crate::deployment::{self, Deployment};
use crate::protocol::{InferRequest, Refusal, Share};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use tokio::runtime;

/// The services of one deployment.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) plan: Option<String>,
    pub(crate) services: BTreeMap<String, Arc<Service>>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) options: Options,
    pub(crate) metrics: Metrics,
    pub(crate) started: Instant,
    pub(crate) is_draining: AtomicBool,
    /// Open connections of clients.
    pub(crate) connections: AtomicUsize,
    /// Requests that are being answered.
    pub(crate) open: AtomicU64,
    /// Bytes of bodies that are held.
    held: AtomicU64,
    serial: AtomicU64,
    table: RwLock<Arc<Table>>,
    /// Replicas that have workers or are to get some: those of the table, those that are about to be of
    /// it, and those that end their last batches.
    replicas: Mutex<Vec<(String, Arc<Replica>)>>,
    /// Held by whoever changes the deployment.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) runtime: runtime::Handle,
    traces: Option<Traces>,
}

impl Front {
    pub(crate) fn new(options: Options, runtime: runtime::Handle) -> io::Result<Self> {
        let traces = options.tracing.as_ref().map(Traces::start).transpose()?;
        Ok(Self {
            options,
            traces,
            metrics: Metrics::new().map_err(io::Error::other)?,
            started: Instant::now(),
            is_draining: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            open: AtomicU64::new(0),
            held: AtomicU64::new(0),
            serial: AtomicU64::new(0),
            table: RwLock::default(),
            replicas: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            runtime,
        })
    }

    /// The services as they are now.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }

    /// A service as it is now.
    pub(crate) fn service(&self, name: &str) -> Result<Arc<Service>, Refusal> {
        let table = self.table.read();
        table.services.get(name).map(Arc::clone).ok_or_else(|| Refusal::UnknownModel(name.to_owned()))
    }

    /// Whether every service can be called.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_draining.load(Ordering::Relaxed) && self.table().services.values().all(|s| s.is_ready())
    }

    /// A number that no other caller gets.
    pub(crate) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed)
    }

    /// The replica that a worker says it is of.
    pub(crate) fn replica(&self, service: &str, id: &str, epoch: u64) -> Option<Arc<Replica>> {
        let replicas = self.replicas.lock();
        let is_it = |(of, r): &&(String, Arc<Replica>)| of == service && r.id == id && r.epoch == epoch;
        // The newest, where one that ends has the same name.
        replicas.iter().rev().find(is_it).map(|(_, r)| Arc::clone(r))
    }

    /// All replicas with workers.
    pub(crate) fn replicas(&self) -> Vec<Arc<Replica>> {
        self.replicas.lock().iter().map(|(_, r)| Arc::clone(r)).collect()
    }

    /// Makes a replica that workers can join; it gets no requests yet.
    pub(crate) fn make(
        &self,
        service: &deployment::Service,
        plan: &deployment::Replica,
    ) -> io::Result<Arc<Replica>> {
        let _inside = self.runtime.enter();
        let replica = Arc::new(Replica::new(plan, &service.model)?);
        let timed = Arc::clone(&replica);
        self.runtime.spawn(async move {
            // It ends with the runtime.
            let _ = timed.keep_time().await;
        });
        self.replicas.lock().push((service.name.clone(), Arc::clone(&replica)));
        Ok(replica)
    }

    /// Forgets a replica.
    pub(crate) fn forget(&self, replica: &Arc<Replica>) {
        self.replicas.lock().retain(|(_, r)| !Arc::ptr_eq(r, replica));
    }

    /// Puts a deployment's services in the place of the present ones, with replicas that were made before.
    /// Returns the replicas that are of no service any more.
    pub(crate) fn put(
        &self,
        deployment: &Deployment,
        find: impl Fn(&deployment::Service, &deployment::Replica) -> Option<Arc<Replica>>,
    ) -> io::Result<Vec<Arc<Replica>>> {
        let before = self.table();
        let mut services = BTreeMap::new();
        for service in &deployment.services {
            let routes = service
                .replicas
                .iter()
                .filter_map(|r| Some(Route { replica: find(service, r)?, rate: r.rate_rps }));
            let metrics = self.metrics.service(&service.name, service.promised_latency_ms * 1e-3);
            let known = before.services.get(&service.name).filter(|s| s.model == service.model);
            let reported = known.map(|s| Arc::clone(&s.reported)).unwrap_or_default();
            let metrics = metrics.map_err(io::Error::other)?;
            let new = Service::new(service, routes.collect(), metrics, reported);
            services.insert(service.name.clone(), Arc::new(new));
        }
        let table = Arc::new(Table { plan: deployment.plan.clone(), services });
        let stays = |replica: &Arc<Replica>| {
            table.services.values().flat_map(|s| &s.routes).any(|r| Arc::ptr_eq(&r.replica, replica))
        };
        let old = before.services.values().flat_map(|s| &s.routes).map(|r| &r.replica);
        let gone = old.filter(|r| !stays(r)).map(Arc::clone).collect();
        *self.table.write() = table;
        Ok(gone)
    }

    /// Counts a body's bytes as held for as long as the guard lives.
    pub(crate) fn hold(self: &Arc<Self>, bytes: u64) -> Result<Held, Refusal> {
        let mut held = Held { front: Arc::clone(self), bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// Counts a request as open for as long as the guard lives: draining waits for it.
    pub(crate) fn begin(&self) -> Begun<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Begun(self)
    }

    /// Counts a connection as open for as long as the guard lives; `Err` says how many there are, when
    /// there are too many.
    pub(crate) fn connect(self: &Arc<Self>) -> Result<Open, usize> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let open = Open(Arc::clone(self));
        if before >= self.options.limits.connections { Err(before) } else { Ok(open) }
    }

    /// Begins to trace a request, if requests are traced and this one is drawn; `header` gives what its client
    /// sent under a name.
    pub(crate) fn trace<'a>(
        &self,
        service: &str,
        arrived: Instant,
        header: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Box<Traced>> {
        self.traces.as_ref()?.begin(service, arrived, header)
    }

    /// Answers a request that arrived then, and counts how it ended. Dropped on the way, it counts as cancelled.
    pub(crate) async fn infer(
        &self,
        service: Arc<Service>,
        request: Result<InferRequest, Refusal>,
        arrived: Instant,
        mut traced: Option<Box<Traced>>,
    ) -> Result<(Arc<InferRequest>, Share), Refusal> {
        let mut ending = Ending { service: Arc::clone(&service), is_over: false };
        let result = match request {
            Ok(request) => infer(self, service, request, arrived, traced.as_deref_mut()).await,
            Err(refusal) => Err(refusal),
        };
        ending.is_over = true;
        if let (Some(open), Err(refusal)) = (&mut traced, &result) {
            open.refused(refusal);
        }
        let metrics = &ending.service.metrics;
        match &result {
            Ok(_) => {
                let took = arrived.elapsed();
                metrics.served.inc();
                metrics.latency.observe(took.as_secs_f64());
                if took > ending.service.promise {
                    metrics.violations.inc();
                }
            }
            Err(Refusal::Late { .. } | Refusal::Draining) => metrics.shed.inc(),
            Err(Refusal::Full(_)) => metrics.full.inc(),
            Err(refusal) if refusal.status() < 500 => metrics.invalid.inc(),
            Err(_) => metrics.failed.inc(),
        }
        result
    }

    /// What it did so far.
    pub(crate) fn stats(&self) -> Stats {
        let table = self.table();
        Stats {
            plan: table.plan.clone(),
            uptime_s: self.started.elapsed().as_secs_f64(),
            is_ready: self.is_ready(),
            connections: self.connections.load(Ordering::Relaxed) as u64,
            services: Metrics::services(&table),
        }
    }
}

/// An open request.
pub(crate) struct Begun<'a>(&'a Front);

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Open(pub(crate) Arc<Front>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that is being answered: when it is dropped on the way, its client has gone.
struct Ending {
    service: Arc<Service>,
    is_over: bool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if !self.is_over {
            self.service.metrics.cancelled.inc();
        }
    }
}

/// Bytes that count as held.
#[derive(Debug)]
pub(crate) struct Held {
    front: Arc<Front>,
    bytes: u64,
}

impl Held {
    /// Counts so many bytes in all, if there is room for them.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Refusal> {
        let limit = self.front.options.limits.held_bytes;
        let more = bytes.saturating_sub(self.bytes);
        self.bytes += more;
        if self.front.held.fetch_add(more, Ordering::Relaxed).saturating_add(more) > limit {
            return Err(Refusal::Full(format!("their bodies are over {limit} bytes together")));
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.front.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
