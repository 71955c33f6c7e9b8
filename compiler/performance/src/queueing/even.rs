//! Evenly spaced arrivals → latency percentiles, by playing out what cannot vary.

use super::{BatchServer, Behaviour};

/// Requests that are counted, after as many that are not.
const REQUESTS: usize = 4096;

/// The behaviour under evenly spaced arrivals at a rate (req/s).
pub(super) fn behaviour(server: BatchServer<'_>, rate: f64, percentile: f64) -> Behaviour {
    let batch = server.batch_times.len();
    let gap = 1.0 / rate;
    let mut free = vec![f64::NEG_INFINITY; server.processes.max(1) as usize];
    let mut sizes = vec![0.0; batch];
    let mut latencies = Vec::with_capacity(REQUESTS + batch);
    let mut busy = 0.0;
    let mut next = 0;
    while latencies.len() < REQUESTS {
        let (executor, at) = free
            .iter()
            .enumerate()
            .fold((0, f64::INFINITY), |best, (i, f)| if *f < best.1 { (i, *f) } else { best });
        let oldest = next as f64 * gap;
        let full = (next + batch - 1) as f64 * gap;
        let start = at.max(full.min(oldest + server.max_wait));
        // A request that arrives as the batch starts joins it, rounding included.
        let waiting = ((start - oldest) / gap + 1e-9).floor() as usize + 1;
        let k = waiting.min(batch);
        let time = server.batch_times[k - 1];
        free[executor] = start + time;
        if next >= REQUESTS {
            sizes[k - 1] += 1.0;
            busy += time;
            for i in 0..k {
                latencies.push(start + time - (next + i) as f64 * gap);
            }
        }
        next += k;
    }
    let batches: f64 = sizes.iter().sum();
    sizes.iter_mut().for_each(|n| *n /= batches);
    let counted = latencies.len();
    latencies.sort_by(f64::total_cmp);
    let rank = ((percentile * counted as f64).ceil() as usize).clamp(1, counted) - 1;
    let seconds = counted as f64 * gap * f64::from(server.processes.max(1));
    Behaviour { latency: latencies[rank], batch_sizes: sizes, busy: (busy / seconds).min(1.0) }
}
