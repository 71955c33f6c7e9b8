//! Coefficients + operating point → time of a batch and dynamic power, with their derivatives.
//!
//! Time (ms): compute work that shrinks with SMs and clock, memory work that shrinks with memory slices,
//! and the host's own pace, whichever is slower (a smooth maximum). Dynamic power (W): energy of a batch,
//! which hardly depends on the size of the instance, over its time, plus what busy slices draw.

/// Coefficients of a model.
pub(crate) const N_COEFFICIENTS: usize = 10;

/// Logarithms of the coefficients, in the order of the constants below.
pub(crate) type LogCoefficients = [f64; N_COEFFICIENTS];

/// Clock cycles of a batch that no SM shares (ms GHz).
pub(crate) const SERIAL: usize = 0;
/// Work of a batch on one compute slice (ms GHz), of each request and of the batch itself.
pub(crate) const WORK_EACH: usize = 1;
pub(crate) const WORK_BATCH: usize = 2;
/// Memory time on one memory slice (ms), of the batch (weights) and of each request (activations).
pub(crate) const MEMORY_BATCH: usize = 3;
pub(crate) const MEMORY_EACH: usize = 4;
/// Host time (ms).
pub(crate) const HOST_BATCH: usize = 5;
pub(crate) const HOST_EACH: usize = 6;
/// Dynamic energy at unit voltage (mJ).
pub(crate) const ENERGY_BATCH: usize = 7;
pub(crate) const ENERGY_EACH: usize = 8;
/// Power of a busy compute slice (W).
pub(crate) const SLICE_POWER: usize = 9;

/// The coefficients in milliseconds: scaling them all scales the time.
pub(crate) const TIMES: std::ops::RangeInclusive<usize> = SERIAL..=HOST_EACH;

/// An operating point as the form sees it, the curves' values taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormPoint {
    /// Requests in the batch.
    pub(crate) batch: f64,
    /// Compute slices.
    pub(crate) slices: f64,
    /// Clock (GHz).
    pub(crate) ghz: f64,
    /// Compute time relative to one compute slice.
    pub(crate) compute: f64,
    /// Memory time relative to one memory slice.
    pub(crate) memory: f64,
    /// Energy relative to the reference clock.
    pub(crate) voltage: f64,
    /// Slice power relative to the reference clock.
    pub(crate) overhead: f64,
}

/// Values and derivatives of the form at a point.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FormValue {
    /// ln ms.
    pub(crate) ln_time: f64,
    /// ln W.
    pub(crate) ln_power: f64,
    /// By the log-coefficients.
    pub(crate) time_by: LogCoefficients,
    pub(crate) power_by: LogCoefficients,
    /// `ln_time` by ln compute and ln memory.
    pub(crate) time_by_compute: f64,
    pub(crate) time_by_memory: f64,
    /// `ln_power` by ln voltage and ln overhead.
    pub(crate) power_by_voltage: f64,
    pub(crate) power_by_overhead: f64,
}

/// Sharpness of the maximum of device and host time.
const SHARPNESS: f64 = 8.0;

/// The form at a point.
pub(crate) fn evaluate(logs: &LogCoefficients, at: &FormPoint) -> FormValue {
    let c = logs.map(f64::exp);
    let b = at.batch;
    let serial = c[SERIAL] / at.ghz;
    let work_each = c[WORK_EACH] * b * at.compute / at.ghz;
    let work_batch = c[WORK_BATCH] * at.compute / at.ghz;
    let memory_batch = c[MEMORY_BATCH] * at.memory;
    let memory_each = c[MEMORY_EACH] * b * at.memory;
    let device = serial + work_each + work_batch + memory_batch + memory_each;
    let host = c[HOST_BATCH] + c[HOST_EACH] * b;
    // Written with the ratio so that a slow model does not overflow the eighth power.
    let ratio = (SHARPNESS * (host.ln() - device.ln())).exp();
    let share = 1.0 / (1.0 + ratio);
    let ln_time = if ratio.is_finite() { device.ln() + ratio.ln_1p() / SHARPNESS } else { host.ln() };
    let by_device = share / device;
    let by_host = (1.0 - share) / host;
    let mut value = FormValue { ln_time, ..FormValue::default() };
    value.time_by[SERIAL] = by_device * serial;
    value.time_by[WORK_EACH] = by_device * work_each;
    value.time_by[WORK_BATCH] = by_device * work_batch;
    value.time_by[MEMORY_BATCH] = by_device * memory_batch;
    value.time_by[MEMORY_EACH] = by_device * memory_each;
    value.time_by[HOST_BATCH] = by_host * c[HOST_BATCH];
    value.time_by[HOST_EACH] = by_host * c[HOST_EACH] * b;
    value.time_by_compute = by_device * (work_each + work_batch);
    value.time_by_memory = by_device * (memory_batch + memory_each);

    let energy_batch = c[ENERGY_BATCH] * at.voltage;
    let energy_each = c[ENERGY_EACH] * b * at.voltage;
    let work = (energy_batch + energy_each) / ln_time.exp();
    let overhead = c[SLICE_POWER] * at.slices * at.overhead;
    let power = work + overhead;
    value.ln_power = power.ln();
    let share = work / power;
    for i in TIMES {
        value.power_by[i] = -share * value.time_by[i];
    }
    value.power_by[ENERGY_BATCH] = share * energy_batch / (energy_batch + energy_each);
    value.power_by[ENERGY_EACH] = share * energy_each / (energy_batch + energy_each);
    value.power_by[SLICE_POWER] = 1.0 - share;
    value.power_by_voltage = share;
    value.power_by_overhead = 1.0 - share;
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_those_of_the_form() {
        let at = FormPoint {
            batch: 8.0,
            slices: 3.0,
            ghz: 0.87,
            compute: 0.33,
            memory: 0.27,
            voltage: 1.1,
            overhead: 1.2,
        };
        for host in [-3.0, 1.0, 2.0] {
            let logs = [0.3, 0.1, -0.5, -0.2, -1.0, host, -2.0, 4.0, 5.0, 0.7];
            let value = evaluate(&logs, &at);
            for i in 0..N_COEFFICIENTS {
                let (mut up, mut down) = (logs, logs);
                up[i] += 1e-5;
                down[i] -= 1e-5;
                let (up, down) = (evaluate(&up, &at), evaluate(&down, &at));
                assert!(((up.ln_time - down.ln_time) / 2e-5 - value.time_by[i]).abs() < 1e-6);
                assert!(((up.ln_power - down.ln_power) / 2e-5 - value.power_by[i]).abs() < 1e-6);
            }
            let shifted = evaluate(&logs, &FormPoint { compute: at.compute * 1e-5_f64.exp(), ..at });
            assert!(((shifted.ln_time - value.ln_time) / 1e-5 - value.time_by_compute).abs() < 1e-4);
        }
    }
}
