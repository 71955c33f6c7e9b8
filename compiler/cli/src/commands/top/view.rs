//! Two samples of metrics → rates, percentiles and watts between them.

use super::sample::Sample;
use std::collections::BTreeSet;

/// What is drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// Where it is from.
    pub(crate) source: String,
    /// The plan's checksum.
    pub(crate) plan: Option<String>,
    /// Boards, by index.
    pub(crate) boards: Vec<BoardRow>,
    /// Services, by name.
    pub(crate) services: Vec<ServiceRow>,
}

/// One board.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BoardRow {
    /// Its index.
    pub(crate) index: String,
    /// Its name.
    pub(crate) name: String,
    /// Whose watts they are: `measured`, `simulated`.
    pub(crate) source: String,
    /// Power now (W).
    pub(crate) watts: Option<f64>,
    /// Mean power since the last look (W), by its energy counter.
    pub(crate) mean_watts: Option<f64>,
    /// Mean power at the planned load (W), predicted.
    pub(crate) predicted_watts: Option<f64>,
    /// SM clock (MHz).
    pub(crate) mhz: Option<f64>,
}

/// One service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServiceRow {
    /// Its name.
    pub(crate) name: String,
    /// What takes the time of its batches.
    pub(crate) executor: String,
    /// Whether it can be called.
    pub(crate) is_ready: bool,
    /// Warm workers.
    pub(crate) workers: f64,
    /// Requests served per second since the last look.
    pub(crate) rate: f64,
    /// Requests not served, per second since the last look.
    pub(crate) refused: f64,
    /// Half were faster since the last look (ms).
    pub(crate) p50_ms: Option<f64>,
    /// 99 in a hundred were faster (ms).
    pub(crate) p99_ms: Option<f64>,
    /// The promise (ms).
    pub(crate) promise_ms: Option<f64>,
    /// Share within the promise, since it started.
    pub(crate) attainment: Option<f64>,
    /// Mean batch since the last look.
    pub(crate) batch: Option<f64>,
    /// Requests that wait.
    pub(crate) queued: f64,
}

/// What happened between two samples.
pub(super) fn view(before: &Sample, now: &Sample, source: &str) -> View {
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let services: BTreeSet<&String> =
        now.all("entc_model_ready").iter().filter_map(|(labels, _)| labels.get("service")).collect();
    let plan = now.all("entc_plan_info").first().and_then(|(labels, _)| labels.get("hash").cloned());
    View {
        source: source.to_owned(),
        plan: plan.filter(|hash| hash != "none"),
        boards: boards(before, now, seconds),
        services: services.into_iter().map(|name| service(before, now, seconds, name)).collect(),
    }
}

/// How much a counter grew; a counter that began anew grew by what it is.
fn growth(before: &Sample, now: &Sample, name: &str, labels: &[(&str, &str)]) -> f64 {
    let (then, now) = (before.sum(name, labels).unwrap_or(0.0), now.sum(name, labels).unwrap_or(0.0));
    if now < then { now } else { now - then }
}

fn boards(before: &Sample, now: &Sample, seconds: f64) -> Vec<BoardRow> {
    let mut rows: Vec<BoardRow> = Vec::new();
    for (labels, watts) in now.all("entc_gpu_power_watts") {
        let of = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let uuid = of("uuid");
        let one = [("uuid", uuid.as_str())];
        let joules = growth(before, now, "entc_gpu_energy_joules_total", &one);
        rows.push(BoardRow {
            index: of("gpu"),
            name: of("board"),
            source: of("source"),
            watts: Some(*watts),
            mean_watts: (joules > 0.0 && seconds > 0.0).then(|| joules / seconds),
            predicted_watts: now.sum("entc_gpu_predicted_power_watts", &one),
            mhz: now.sum("entc_gpu_sm_clock_hertz", &one).map(|hertz| hertz * 1e-6),
        });
    }
    rows.sort_by_key(|row| row.index.parse::<u32>().unwrap_or(u32::MAX));
    rows
}

fn service(before: &Sample, now: &Sample, seconds: f64, name: &str) -> ServiceRow {
    let one = [("service", name)];
    let per_second = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let served =
        growth(before, now, "entc_model_requests_total", &[("service", name), ("outcome", "served")]);
    let all = growth(before, now, "entc_model_requests_total", &one);
    let executor = now
        .all("entc_workers")
        .iter()
        .find(|(labels, _)| labels.get("service").is_some_and(|s| s == name))
        .and_then(|(labels, _)| labels.get("executor").cloned());
    let batches = growth(before, now, "entc_batches_total", &one);
    let rows = growth(before, now, "entc_batch_rows_total", &one);
    let buckets = buckets(before, now, name);
    ServiceRow {
        name: name.to_owned(),
        executor: executor.unwrap_or_default(),
        is_ready: now.sum("entc_model_ready", &one).is_some_and(|ready| ready > 0.0),
        workers: now.sum("entc_workers", &one).unwrap_or(0.0),
        rate: per_second(served),
        refused: per_second(all - served),
        p50_ms: percentile(&buckets, 0.5),
        p99_ms: percentile(&buckets, 0.99),
        promise_ms: now.sum("entc_slo_latency_seconds", &one).map(|s| s * 1e3),
        attainment: now.sum("entc_slo_attainment", &one),
        batch: (batches > 0.0).then(|| rows / batches),
        queued: now.sum("entc_queue_requests", &one).unwrap_or(0.0),
    }
}

/// Upper bounds (s) and how many were at or below each, of what came between two samples; by bound.
fn buckets(before: &Sample, now: &Sample, service: &str) -> Vec<(f64, f64)> {
    const NAME: &str = "entc_model_request_duration_seconds_bucket";
    let mut found: Vec<(f64, f64)> = now
        .all(NAME)
        .iter()
        .filter(|(labels, _)| labels.get("service").is_some_and(|s| s == service))
        .filter_map(|(labels, _)| {
            let le = labels.get("le")?;
            let bound = if le == "+Inf" { f64::INFINITY } else { le.parse().ok()? };
            Some((bound, growth(before, now, NAME, &[("service", service), ("le", le)])))
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

/// The latency (ms) below which a share is, on a straight line within its bucket; in the last, which has no
/// end, its beginning.
fn percentile(buckets: &[(f64, f64)], share: f64) -> Option<f64> {
    let total = buckets.last().map(|(_, n)| *n).filter(|n| *n > 0.0)?;
    let rank = share * total;
    let (mut low, mut below) = (0.0, 0.0);
    for (bound, n) in buckets {
        if *n >= rank {
            let inside = if *n > below { (rank - below) / (n - below) } else { 1.0 };
            let seconds = if bound.is_finite() { low + (bound - low) * inside } else { low };
            return Some(seconds * 1e3);
        }
        (low, below) = (*bound, *n);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const BEFORE: &str = r#"
entc_model_ready{service="a"} 1
entc_model_requests_total{service="a",outcome="served"} 100
entc_model_requests_total{service="a",outcome="shed"} 0
entc_model_request_duration_seconds_bucket{service="a",le="0.01"} 100
entc_model_request_duration_seconds_bucket{service="a",le="0.02"} 100
entc_model_request_duration_seconds_bucket{service="a",le="+Inf"} 100
entc_gpu_power_watts{gpu="0",uuid="GPU-1",board="A100",source="simulated"} 70
entc_gpu_energy_joules_total{gpu="0",uuid="GPU-1",board="A100",source="simulated"} 1000
"#;

    const NOW: &str = r#"
entc_model_ready{service="a"} 1
entc_workers{service="a",replica="gpu0/1g@0",executor="modelled"} 1
entc_workers{service="a",replica="gpu0/1g@1",executor="modelled"} 1
entc_model_requests_total{service="a",outcome="served"} 300
entc_model_requests_total{service="a",outcome="shed"} 20
entc_model_request_duration_seconds_bucket{service="a",le="0.01"} 200
entc_model_request_duration_seconds_bucket{service="a",le="0.02"} 300
entc_model_request_duration_seconds_bucket{service="a",le="+Inf"} 300
entc_batches_total{service="a",replica="gpu0/1g@0",executor="modelled"} 10
entc_batch_rows_total{service="a",replica="gpu0/1g@0",executor="modelled"} 45
entc_gpu_power_watts{gpu="0",uuid="GPU-1",board="A100",source="simulated"} 90
entc_gpu_energy_joules_total{gpu="0",uuid="GPU-1",board="A100",source="simulated"} 1160
entc_gpu_predicted_power_watts{gpu="0",uuid="GPU-1",board="A100"} 82
entc_gpu_sm_clock_hertz{gpu="0",uuid="GPU-1",board="A100",source="simulated"} 960000000
entc_plan_info{hash="sha256:abc"} 1
"#;

    #[test]
    fn a_view_is_what_happened_between_two_looks() {
        let start = Instant::now();
        let (before, now) = (Sample::read(BEFORE, start), Sample::read(NOW, start + Duration::from_secs(2)));
        let view = view(&before, &now, "here");
        assert_eq!(view.plan.as_deref(), Some("sha256:abc"));
        let service = &view.services[0];
        assert_eq!((service.rate, service.refused, service.workers), (100.0, 10.0, 2.0));
        assert_eq!((service.p50_ms, service.batch), (Some(10.0), Some(4.5)));
        assert!((service.p99_ms.unwrap() - 19.8).abs() < 1e-9);
        let board = &view.boards[0];
        assert_eq!(
            (board.watts, board.mean_watts, board.predicted_watts),
            (Some(90.0), Some(80.0), Some(82.0))
        );
        assert_eq!(board.mhz, Some(960.0));
    }

    #[test]
    fn without_requests_there_is_no_latency() {
        let sample = Sample::read(NOW, Instant::now());
        let view = view(&sample, &sample, "here");
        assert_eq!((view.services[0].p50_ms, view.services[0].rate), (None, 0.0));
    }
}
