//! Prediction + promise + rate → what an instance does: admissible rate, latency, power.
//!
//! The one place where these are computed. Planners build their choices from [`admissible`], fill in
//! plans from [`operate`], and the verifier recomputes plans with the same two.

use crate::predict::Prediction;
use crate::queueing::{self, BatchServer};
use ent_lang::program::Arrivals;
use ent_plan::plan::LatencyRule;

/// Predicted latency times this is kept within the promise under [`LatencyRule::Queueing`].
///
/// The queueing model is within a few percent of simulation and a simulated percentile scatters by
/// about one percent; a promise printed as kept must be kept in simulation.
pub const SAFETY: f64 = 1.05;

/// No plan loads an instance above this share of its capacity under [`LatencyRule::Queueing`].
pub const MAX_UTILISATION: f64 = 0.999;

/// What an instance has to keep.
#[derive(Clone, Copy, Debug)]
pub struct Promise<'a> {
    /// Which latency the promise is about.
    pub rule: LatencyRule,
    /// How requests arrive at the instance.
    pub arrivals: &'a Arrivals,
    /// The promised percentile, 0.99 for p99. The execution rule looks at p99 whatever this is.
    pub percentile: f64,
    /// The bound (s).
    pub bound: f64,
}

/// An instance at work at an offered rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Rate at which it saturates with full batches (req/s).
    pub capacity: f64,
    /// The highest rate at which the promise holds (req/s).
    pub admissible: f64,
    /// The oldest request waits at most this long for its batch to fill (s).
    pub max_wait: f64,
    /// `rate / capacity`.
    pub utilisation: f64,
    /// Predicted latency (s): of the promised percentile under queueing, p99 of execution otherwise.
    pub predicted_latency: f64,
    /// Dynamic power when always busy with full batches (W); `None` without power data.
    pub dynamic_power: Option<f64>,
    /// Mean dynamic power at the offered rate (W); `None` without power data.
    pub mean_dynamic_power: Option<f64>,
    /// Dynamic energy of a batch of k (J), at index k - 1; empty without power data.
    pub batch_energy: Vec<f64>,
}

/// Dynamic energy of one batch of k requests (J), at index k - 1: the instance draws `d(k)` while
/// all its processes run batches of k, so one batch's share is `d(k) t(k) / processes`.
#[must_use]
pub fn batch_energy(prediction: &Prediction, processes: u32) -> Vec<f64> {
    prediction
        .batch_times
        .iter()
        .zip(&prediction.dynamic_power)
        .map(|(t, d)| d.get() * t.get() / f64::from(processes))
        .collect()
}

/// The execution latency's tail beyond the mean time of a full batch (s), never negative.
fn execution_tail(prediction: &Prediction) -> f64 {
    let full = prediction.batch_times.last().map_or(0.0, |t| t.get());
    (prediction.latency_p99.get() - full).max(0.0)
}

/// The highest rate (req/s) at which this operating point keeps the promise; 0 when it never does.
#[must_use]
pub fn admissible(prediction: &Prediction, processes: u32, promise: Promise<'_>) -> f64 {
    let capacity = prediction.capacity(processes);
    match promise.rule {
        LatencyRule::Execution => {
            if prediction.latency_p99.get() <= promise.bound {
                capacity
            } else {
                0.0
            }
        }
        LatencyRule::Queueing => {
            let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get()).collect();
            let server = BatchServer { batch_times: &times, processes, max_wait: 0.0 };
            let bound = promise.bound / SAFETY - execution_tail(prediction);
            if bound <= 0.0 {
                return 0.0;
            }
            queueing::admissible_rate(server, promise.arrivals, promise.percentile, bound)
                .min(MAX_UTILISATION * capacity)
        }
    }
}

/// The operation at an offered rate (req/s), with the fill wait that costs the least energy.
#[must_use]
pub fn operate(prediction: &Prediction, processes: u32, promise: Promise<'_>, rate: f64) -> Operation {
    let max_wait = match promise.rule {
        LatencyRule::Execution => 0.0,
        LatencyRule::Queueing => {
            let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get()).collect();
            let energy = batch_energy(prediction, processes);
            let bound = promise.bound / SAFETY - execution_tail(prediction);
            if energy.is_empty() || bound <= 0.0 {
                0.0
            } else {
                let server = BatchServer { batch_times: &times, processes, max_wait: 0.0 };
                queueing::best_wait(server, promise.arrivals, rate, promise.percentile, bound, &energy)
            }
        }
    };
    operate_with_wait(prediction, processes, promise, rate, max_wait)
}

/// Mean dynamic power (W) at an offered rate (req/s), as [`operate`] has it and no more: what a planner
/// asks thousands of times. `None` without power data.
#[must_use]
pub fn mean_dynamic_power(
    prediction: &Prediction,
    processes: u32,
    promise: Promise<'_>,
    rate: f64,
) -> Option<f64> {
    let energy = batch_energy(prediction, processes);
    if energy.is_empty() {
        return None;
    }
    if promise.rule == LatencyRule::Execution {
        let capacity = prediction.capacity(processes);
        return prediction.dynamic_power.last().map(|d| d.get() * rate / capacity);
    }
    let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get()).collect();
    let bound = promise.bound / SAFETY - execution_tail(prediction);
    let mut server = BatchServer { batch_times: &times, processes, max_wait: 0.0 };
    if bound > 0.0 {
        server.max_wait =
            queueing::best_wait(server, promise.arrivals, rate, promise.percentile, bound, &energy);
    }
    let behaviour = queueing::behaviour(server, promise.arrivals, rate, promise.percentile);
    Some(queueing::mean_power(&behaviour, rate, &energy))
}

/// Predicted latency (s) at an offered rate (req/s) with no fill wait, as [`operate_with_wait`] has it and
/// no more.
#[must_use]
pub fn predicted_latency(prediction: &Prediction, processes: u32, promise: Promise<'_>, rate: f64) -> f64 {
    if promise.rule == LatencyRule::Execution {
        return prediction.latency_p99.get();
    }
    let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get()).collect();
    let server = BatchServer { batch_times: &times, processes, max_wait: 0.0 };
    queueing::behaviour(server, promise.arrivals, rate, promise.percentile).latency
        + execution_tail(prediction)
}

/// The operation at an offered rate (req/s) and a given fill wait (s).
#[must_use]
pub fn operate_with_wait(
    prediction: &Prediction,
    processes: u32,
    promise: Promise<'_>,
    rate: f64,
    max_wait: f64,
) -> Operation {
    let capacity = prediction.capacity(processes);
    let utilisation = if capacity > 0.0 { rate / capacity } else { f64::INFINITY };
    let energy = batch_energy(prediction, processes);
    let dynamic_power = prediction.dynamic_power.last().map(|d| d.get());
    let (predicted_latency, mean_dynamic_power) = match promise.rule {
        LatencyRule::Execution => (prediction.latency_p99.get(), dynamic_power.map(|d| d * utilisation)),
        LatencyRule::Queueing => {
            let times: Vec<f64> = prediction.batch_times.iter().map(|t| t.get()).collect();
            let server = BatchServer { batch_times: &times, processes, max_wait };
            let behaviour = queueing::behaviour(server, promise.arrivals, rate, promise.percentile);
            let mean = (!energy.is_empty()).then(|| queueing::mean_power(&behaviour, rate, &energy));
            // No request is faster than a batch of one, whatever rounding says at rates next to nothing.
            let shortest = times.first().copied().unwrap_or(0.0);
            (behaviour.latency.max(shortest) + execution_tail(prediction), mean)
        }
    };
    Operation {
        capacity,
        admissible: admissible(prediction, processes, promise),
        max_wait,
        utilisation,
        predicted_latency,
        dynamic_power,
        mean_dynamic_power,
        batch_energy: energy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::units::{Seconds, Watts};

    fn prediction() -> Prediction {
        Prediction {
            batch_times: vec![Seconds(0.010), Seconds(0.016)],
            dynamic_power: vec![Watts(30.0), Watts(40.0)],
            latency_p99: Seconds(0.017),
            time_error: 0.0,
            power_error: 0.0,
            source: "table",
        }
    }

    fn execution(bound: f64) -> Promise<'static> {
        Promise { rule: LatencyRule::Execution, arrivals: &Arrivals::Poisson, percentile: 0.99, bound }
    }

    #[test]
    fn execution_admits_the_capacity_exactly_when_the_batch_latency_is_within_the_promise() {
        assert_eq!(admissible(&prediction(), 1, execution(0.017)), 125.0);
        assert_eq!(admissible(&prediction(), 1, execution(0.0169)), 0.0);
        assert_eq!(admissible(&prediction(), 3, execution(0.017)), 375.0);
    }

    #[test]
    fn execution_scales_dynamic_power_by_utilisation() {
        let at = operate(&prediction(), 1, execution(0.02), 50.0);
        assert_eq!(at.utilisation, 0.4);
        assert_eq!(at.mean_dynamic_power, Some(16.0));
        assert_eq!(at.dynamic_power, Some(40.0));
        assert_eq!(at.predicted_latency, 0.017);
        assert_eq!(at.batch_energy, vec![0.3, 0.64]);
        assert_eq!(at.max_wait, 0.0);
    }

    #[test]
    fn latency_alone_is_the_operations_latency() {
        for rule in [LatencyRule::Execution, LatencyRule::Queueing] {
            let promise = Promise { rule, ..execution(0.1) };
            let at = operate_with_wait(&prediction(), 1, promise, 60.0, 0.0);
            assert_eq!(predicted_latency(&prediction(), 1, promise, 60.0), at.predicted_latency);
        }
    }

    #[test]
    fn a_source_without_power_gives_no_power() {
        let blind = Prediction { dynamic_power: Vec::new(), ..prediction() };
        let at = operate(&blind, 1, execution(0.02), 50.0);
        assert_eq!((at.dynamic_power, at.mean_dynamic_power), (None, None));
        assert!(at.batch_energy.is_empty());
    }
}
