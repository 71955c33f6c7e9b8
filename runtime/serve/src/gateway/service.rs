//! One service: which replica gets a request, and what is tried again.
//!
//! A request goes to a replica by the planned rates, at random where arrivals are Poisson and in turn
//! otherwise, as plans are simulated: every replica then sees the arrivals that its predicted latency and
//! energy rest on. Only when that replica would miss the promise does another one that is faster get it.

use super::front::Front;
use super::metrics::ServiceMetrics;
use super::replica::{NotTaken, Queued, Replica, Reply};
use super::traces::Traced;
use super::{Limits, Shedding};
use crate::deployment;
use crate::protocol::{InferRequest, Refusal, Share, check, default_outputs};
use ent_wire::{Model, Signature};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One service as a deployment has it. Another deployment has another, with the replicas that stay.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) name: String,
    pub(crate) model: Model,
    pub(crate) promise: Duration,
    pub(crate) percentile: f64,
    pub(crate) routes: Vec<Route>,
    pub(crate) metrics: Arc<ServiceMetrics>,
    /// What its workers say that the network takes and gives, where the deployment does not.
    pub(crate) reported: Arc<OnceLock<Signature>>,
    defaults: Signature,
    is_random: bool,
    dice: AtomicU64,
    /// What each replica is owed, in turn.
    credit: Mutex<Vec<f64>>,
}

/// A replica and its share of the requests.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) replica: Arc<Replica>,
    /// Its planned rate (req/s).
    pub(crate) rate: f64,
}

impl Service {
    pub(crate) fn new(
        plan: &deployment::Service,
        routes: Vec<Route>,
        metrics: Arc<ServiceMetrics>,
        reported: Arc<OnceLock<Signature>>,
    ) -> Self {
        let is_planned = routes.iter().any(|r| r.rate > 0.0);
        // Without rates all are alike.
        let rate = |r: Route| Route { rate: if is_planned { r.rate } else { 1.0 }, ..r };
        let routes: Vec<Route> = routes.into_iter().map(rate).collect();
        Self {
            name: plan.name.clone(),
            model: plan.model.clone(),
            promise: Duration::try_from_secs_f64(plan.promised_latency_ms * 1e-3).unwrap_or(Duration::MAX),
            percentile: plan.percentile,
            credit: Mutex::new(vec![0.0; routes.len()]),
            routes,
            metrics,
            reported,
            defaults: default_outputs(),
            is_random: plan.arrivals.trim() == "poisson",
            dice: AtomicU64::new(0),
        }
    }

    /// Whether it can be called.
    pub(crate) fn is_ready(&self) -> bool {
        self.routes.iter().any(|r| r.replica.is_ready())
    }

    /// What its network takes and gives, as far as anybody said.
    pub(crate) fn signature(&self) -> Option<&Signature> {
        self.model.signature.as_ref().or_else(|| self.reported.get())
    }

    /// What it gives.
    pub(crate) fn outputs(&self) -> &Signature {
        self.signature().filter(|s| !s.outputs.is_empty()).unwrap_or(&self.defaults)
    }

    /// Rows of the largest request.
    pub(crate) fn batch(&self) -> u32 {
        self.routes.iter().map(|r| r.replica.batch()).max().unwrap_or(0)
    }

    /// The replica whose turn it is, among those that are ready or, if none is, all of them.
    fn choose(&self, rows: u32, except: Option<&Arc<Replica>>) -> Option<&Arc<Replica>> {
        if let [route] = self.routes.as_slice() {
            return Some(&route.replica);
        }
        let fits = |r: &Route| r.replica.batch() >= rows && r.rate > 0.0;
        let is_other = |r: &Route| except.is_none_or(|e| !Arc::ptr_eq(e, &r.replica));
        let best = |r: &Route| fits(r) && r.replica.is_ready() && is_other(r);
        let good = |r: &Route| fits(r) && r.replica.is_ready();
        let any: [&dyn Fn(&Route) -> bool; 4] = [&best, &good, &fits, &|r| r.replica.batch() >= rows];
        any.into_iter().find_map(|may| self.turn(may))
    }

    fn turn(&self, may: &dyn Fn(&Route) -> bool) -> Option<&Arc<Replica>> {
        let total: f64 = self.routes.iter().filter(|r| may(r)).map(|r| r.rate).sum();
        if total <= 0.0 {
            return self.routes.iter().find(|r| may(r)).map(|r| &r.replica);
        }
        if self.is_random {
            let mut left = self.throw() * total;
            let mut last = None;
            for route in self.routes.iter().filter(|r| may(r)) {
                last = Some(&route.replica);
                left -= route.rate;
                if left < 0.0 {
                    break;
                }
            }
            return last;
        }
        let mut credit = self.credit.lock();
        let mut best: Option<(usize, f64)> = None;
        for (i, (route, credit)) in self.routes.iter().zip(credit.iter_mut()).enumerate() {
            if may(route) {
                *credit += route.rate / total;
                if best.is_none_or(|(_, most)| *credit > most) {
                    best = Some((i, *credit));
                }
            }
        }
        let (chosen, _) = best?;
        if let Some(credit) = credit.get_mut(chosen) {
            *credit -= 1.0;
        }
        self.routes.get(chosen).map(|r| &r.replica)
    }

    /// A number in [0, 1), by SplitMix64 (Steele, Lea, Flood 2014) over a counter that all threads share.
    fn throw(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.dice.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Puts a request in a replica's line. `Err(None)` when the deployment has just changed.
    fn admit(
        &self,
        mut queued: Queued,
        rows: u32,
        since: Instant,
        except: Option<&Arc<Replica>>,
        (limits, shedding): (&Limits, &Shedding),
    ) -> Result<(Arc<Replica>, u64), Option<Refusal>> {
        let Some(mut replica) = self.choose(rows, except) else {
            let reason = format!("model `{}` has no replica in the deployment", self.name);
            return Err(Some(Refusal::Absent(reason)));
        };
        let allowed = |standing| shedding.allowed(self.promise, standing, since);
        if self.routes.len() > 1 && replica.predict(rows) > self.promise {
            let others = self.routes.iter().map(|r| &r.replica).filter(|r| r.is_ready() && r.batch() >= rows);
            replica = others.min_by_key(|r| r.predict(rows)).unwrap_or(replica);
        }
        match replica.submit(queued, rows, since, limits.queued_requests, allowed) {
            Ok(ticket) => Ok((Arc::clone(replica), ticket)),
            Err((NotTaken::Closed, _)) => Err(None),
            Err((NotTaken::Full(waiting), _)) => {
                Err(Some(Refusal::Full(format!("{waiting} for model `{}`", self.name))))
            }
            Err((NotTaken::Late { predicted, allowed }, back)) => {
                queued = back;
                let of = if queued.deadline.is_some() { "the client's timeout" } else { "the promise" };
                let ms = |d: Duration| d.as_secs_f64() * 1e3;
                let reason = format!(
                    "model `{}` is overloaded: the answer would take {:.0} ms, where {:.0} ms are allowed by {of}",
                    self.name,
                    ms(predicted),
                    ms(allowed)
                );
                Err(Some(Refusal::Late { reason, retry_after: predicted.saturating_sub(allowed) }))
            }
        }
    }
}

impl Shedding {
    /// How long a request may take, given since when its queue stands.
    fn allowed(&self, promise: Duration, standing: Option<Instant>, now: Instant) -> Duration {
        let is_overload = standing.is_some_and(|since| now.saturating_duration_since(since) >= self.standing);
        let promises = if is_overload { self.overload } else { self.burst };
        Duration::try_from_secs_f64(promise.as_secs_f64() * promises).unwrap_or(Duration::MAX)
    }
}

/// A request in a replica's line. Its client may go away: then it leaves the line.
struct InLine<'a> {
    replica: &'a Arc<Replica>,
    ticket: Option<u64>,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.replica.cancel(ticket);
        }
    }
}

/// Has a request answered by its service.
pub(crate) async fn infer(
    front: &Front,
    mut service: Arc<Service>,
    request: InferRequest,
    arrived: Instant,
    traced: Option<&mut Traced>,
) -> Result<(Arc<InferRequest>, Share), Refusal> {
    let rows = match check(&request, service.signature(), service.outputs(), service.batch()) {
        // Nothing can be too large for a service that has no replicas: it is told what is missing instead.
        Err(_) if service.routes.is_empty() => 1,
        checked => checked?,
    };
    let deadline = request.timeout.and_then(|timeout| arrived.checked_add(timeout));
    let request = Arc::new(request);
    let limits = (&front.options.limits, &front.options.shedding);
    let (mut is_alone, mut was_taken) = (false, false);
    let mut died: Option<Arc<Replica>> = None;
    loop {
        let (reply, answer) = oneshot::channel();
        let queued = Queued { request: Arc::clone(&request), is_alone, was_taken, deadline, reply };
        let (replica, ticket) = match service.admit(queued, rows, arrived, died.as_ref(), limits) {
            Ok(place) => place,
            Err(Some(refusal)) => return Err(refusal),
            Err(None) => {
                service = front.service(&service.name)?;
                tokio::task::yield_now().await;
                continue;
            }
        };
        was_taken = true;
        let mut line = InLine { replica: &replica, ticket: Some(ticket) };
        let reply = match deadline {
            None => answer.await,
            // A worker that hangs keeps nobody longer than he said; dropped, the request leaves the line.
            Some(deadline) => match tokio::time::timeout_at(deadline.into(), answer).await {
                Ok(reply) => reply,
                Err(_) => Ok(Reply::Expired),
            },
        };
        if !matches!(reply, Ok(Reply::Expired)) {
            line.ticket = None;
        }
        match reply {
            Ok(Reply::Answered(share, ran)) => {
                if let Some(open) = traced {
                    open.answered(&replica.id, &ran);
                }
                return Ok((request, share));
            }
            Ok(Reply::Moved) => {}
            // A request that broke a worker or its batch may do so again: this time without company.
            Ok(Reply::Lost) if died.is_none() => {
                service.metrics.retries.inc();
                is_alone = true;
                died = Some(Arc::clone(&replica));
            }
            Ok(Reply::Failed { had_company: true, .. }) if !is_alone => {
                service.metrics.retries.inc();
                is_alone = true;
            }
            Ok(Reply::Lost) => {
                let message = "two workers ended while they had the request".to_owned();
                return Err(Refusal::Failed(message));
            }
            Ok(Reply::Failed { message, .. }) => return Err(Refusal::Failed(message)),
            Ok(Reply::Expired) => {
                let reason = "the client's timeout passed while the request waited".to_owned();
                return Err(Refusal::Late { reason, retry_after: Duration::ZERO });
            }
            Ok(Reply::Absent) => {
                let waited = front.options.limits.absence_time.as_secs();
                let reason = format!("no worker of model `{}` came back within {waited} s", service.name);
                return Err(Refusal::Absent(reason));
            }
            Err(_) => return Err(Refusal::Draining),
        }
        service = front.service(&service.name)?;
    }
}
