//! Batch times and energies, a promise, a rate → the least energy a request can cost there.
//!
//! What a batch server spends depends on its batch sizes, which only an evaluation of its queue tells. But
//! large batches need time to come together, and the promise bounds that time.
//!
//! Let the oldest request of a batch wait W, and let the promise be that a share p of requests is answered
//! within D. The batch has one request and those that arrive in W: on average at most `1 + r W`, and
//! `(cv² - 1) / 2` more when arrivals come in bursts (renewal theory: gaps of a decreasing hazard rate).
//! Where W exceeds `D - t`, the requests of the excess X are late, at least `r X` of them, so that
//! `r E[X] <= (1 - p) k` for mean batches of k. Together: `k <= (1 + bursts + r (D - t(k))) / p`.
//!
//! Batch sizes vary around their mean, so times and energies are taken from their lower convex hulls.

use ent_lang::program::Arrivals;
use ent_performance::Prediction;
use ent_performance::operate::{self, Promise};

/// Room for what the queueing model approximates: more requests come together than the promise allows.
const SLACK: f64 = 1.02;

/// Lower bounds on the dynamic energy per request (J), each at its rate (req/s) and below.
pub(super) fn least_energies(
    prediction: &Prediction,
    processes: u32,
    promise: Promise<'_>,
    rates: impl Iterator<Item = f64>,
) -> Vec<f64> {
    let energies = hull(&operate::batch_energy(prediction, processes));
    let times = hull(&prediction.batch_times.iter().map(|t| t.get()).collect::<Vec<f64>>());
    let bursts = match promise.arrivals {
        Arrivals::Gamma { cv } => 0.5 * (cv * cv - 1.0).max(0.0),
        Arrivals::Uniform | Arrivals::Poisson | Arrivals::Trace { .. } => 0.0,
    };
    // What the queueing model keeps: a margin is left, and execution itself has a tail.
    let full = prediction.batch_times.last().map_or(0.0, |t| t.get());
    let tail = (prediction.latency_p99.get() - full).max(0.0);
    let bound = promise.bound / operate::SAFETY - tail;
    let reach = |time: f64, rate: f64| {
        let alone = 1.0 + bursts + SLACK * rate * (bound - time).max(0.0);
        alone / promise.percentile.max(f64::MIN_POSITIVE)
    };
    rates.map(|rate| least(&energies, &times, |time| reach(time, rate))).collect()
}

/// The least energy per request of mean batches that are within reach.
fn least(energies: &[f64], times: &[f64], reach: impl Fn(f64) -> f64) -> f64 {
    let mut least = f64::INFINITY;
    let mut before: Option<f64> = None;
    for ((joules, &time), size) in energies.iter().zip(times).zip(1u32..) {
        let size = f64::from(size);
        let most = reach(time);
        if size <= most || before.is_none() {
            least = least.min(joules / size);
            before = Some(*joules);
            continue;
        }
        // The largest mean batch lies between two sizes. A hull is straight there.
        if let Some(before) = before {
            let most = reach(times.get(size as usize - 2).copied().unwrap_or(time)).clamp(size - 1.0, size);
            least = least.min((before + (joules - before) * (most - (size - 1.0))) / most);
        }
        break;
    }
    if least.is_finite() { least.max(0.0) } else { 0.0 }
}

/// The lower convex hull of values at 1, 2, …
fn hull(values: &[f64]) -> Vec<f64> {
    let mut corners: Vec<usize> = Vec::new();
    for at in 0..values.len() {
        while let [.., a, b] = corners.as_slice() {
            let slope = |from: usize, to: usize| (values[to] - values[from]) / (to - from) as f64;
            if slope(*a, *b) < slope(*b, at) {
                break;
            }
            corners.pop();
        }
        corners.push(at);
    }
    let mut all = Vec::with_capacity(values.len());
    for pair in corners.windows(2) {
        if let [a, b] = *pair {
            let step = (values[b] - values[a]) / (b - a) as f64;
            all.extend((a..b).map(|at| values[a] + step * (at - a) as f64));
        }
    }
    all.extend(values.last());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::plan::LatencyRule;
    use ent_plan::units::{Seconds, Watts};

    #[test]
    fn a_hull_is_straight_between_corners_and_never_above() {
        assert_eq!(hull(&[1.0, 3.0, 2.0, 4.0]), vec![1.0, 1.5, 2.0, 4.0]);
        assert_eq!(hull(&[5.0]), vec![5.0]);
    }

    #[test]
    fn no_evaluated_queue_costs_less_than_the_least() {
        let arrivals = [
            Arrivals::Uniform,
            Arrivals::Poisson,
            Arrivals::Gamma { cv: 0.5 },
            Arrivals::Gamma { cv: 1.5 },
            Arrivals::Gamma { cv: 2.5 },
        ];
        let mut tightest = f64::INFINITY;
        // Batch times that grow slowly at first, evenly, and fast at first.
        for bend in [1.4, 0.6] {
            let time = |k: u32| Seconds(0.010 + 0.030 * (f64::from(k - 1) / 7.0).powf(bend));
            let prediction = Prediction {
                batch_times: (1..=8).map(time).collect(),
                dynamic_power: (1..=8u32).map(|k| Watts(30.0 + f64::from(k))).collect(),
                latency_p99: Seconds(0.041),
                time_error: 0.0,
                power_error: 0.0,
                source: "table",
            };
            for arrivals in &arrivals {
                for percentile in [0.5, 0.9, 0.99] {
                    for bound in [0.06, 0.12, 0.5] {
                        let promise = Promise { rule: LatencyRule::Queueing, arrivals, percentile, bound };
                        let most = operate::admissible(&prediction, 1, promise);
                        for share in [0.3, 1.0] {
                            let rate = share * most;
                            if rate <= 0.0 {
                                continue;
                            }
                            let least = least_energies(&prediction, 1, promise, [rate].into_iter())[0] * rate;
                            let mean = operate::mean_dynamic_power(&prediction, 1, promise, rate).unwrap();
                            assert!(
                                least <= mean * (1.0 + 1e-9),
                                "{least} W above {mean} W: {arrivals:?}, {percentile}, {bound} s, {rate}/s, {bend}"
                            );
                            tightest = tightest.min(mean / least);
                        }
                    }
                }
            }
        }
        assert!(tightest < 1.01, "never within {tightest} of what is evaluated");
    }
}
