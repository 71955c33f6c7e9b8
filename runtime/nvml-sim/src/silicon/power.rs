//! Power and energy: what the board draws now, what it has drawn, what its sensor shows of it.
//!
//! Power is the board's base power at its clock, plus what each process says it draws beyond that, and never
//! more than the power limit. Base power is interpolated between clocks at which it was captured and never
//! beyond them. A board of which nobody captured it supports no power reading, unless `machine.toml` gives
//! its idle power: nothing is guessed.

use super::machine::fraction;
use super::{Answer, Device, PowerLimitRange, Silicon};
use crate::returns::Return;
use ent_plan::units::{Megahertz, Watts};

/// Earlier energies that are remembered for a sensor with a window.
const HISTORY: usize = 64;

/// Watts for a nanosecond are this many millijoules.
const MILLIJOULES: f64 = 1e-6;

/// Watts → milliwatts, as the driver counts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "power is positive and below 4 MW"
)]
fn milliwatts(watts: f64) -> u32 {
    (watts * 1000.0).round().clamp(0.0, f64::from(u32::MAX)) as u32
}

/// Nanoseconds as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "a span below 100 days is exact, a longer one close enough")]
fn span(ns: u64) -> f64 {
    ns as f64
}

impl Silicon {
    /// What the power sensor shows (mW): the power as it is, or the mean of the last whole window of a
    /// described sensor, with its noise.
    ///
    /// (nvml.h, `nvmlDeviceGetPowerUsage`: instantaneous on GA100, a mean over 1 s on newer boards; readings
    /// change every 100 ms and see 25 ms of them on an A100: Yang, Adamek, Armour, SC'24. Describe that
    /// sensor to have it.)
    ///
    /// # Errors
    /// `NotSupported` when the base power was not captured at this clock, or on a MIG device.
    pub fn power_usage(&self, device: Device) -> Answer<u32> {
        let gpu = self.whole_gpu(device)?;
        let watts = self.watts(gpu).ok_or(Return::NotSupported)?;
        let Some(sensor) = self.machine.sensor else { return Ok(milliwatts(watts)) };
        let window = u64::from(sensor.window_ms) * 1_000_000;
        let tick = self.now_ns.checked_div(window).unwrap_or(self.now_ns);
        let mean = if window == 0 { watts } else { self.mean_watts(gpu, tick * window, window, watts) };
        let noise = 2.0 * fraction(self.machine.seed, &format!("{gpu} {tick}")) - 1.0;
        Ok(milliwatts(mean + noise * sensor.noise_w))
    }

    /// The power as it is, without any sensor (mW).
    ///
    /// # Errors
    /// As [`Self::power_usage`].
    pub fn power_instant(&self, device: Device) -> Answer<u32> {
        let gpu = self.whole_gpu(device)?;
        self.watts(gpu).map(milliwatts).ok_or(Return::NotSupported)
    }

    /// Energy since the machine was booted (mJ).
    ///
    /// # Errors
    /// As [`Self::power_usage`].
    pub fn total_energy(&self, device: Device) -> Answer<u64> {
        let gpu = self.whole_gpu(device)?;
        let millijoules = self.millijoules(gpu).ok_or(Return::NotSupported)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "energy is positive")]
        let whole = millijoules as u64;
        Ok(whole)
    }

    /// The power limit that was set (mW).
    ///
    /// # Errors
    /// `NotSupported` when the board's limits were not captured, or on a MIG device.
    pub fn power_limit(&self, device: Device) -> Answer<u32> {
        let default = self.default_power_limit(device)?;
        let gpu = self.whole_gpu(device)?;
        Ok(self.gpu_state(gpu).power_limit_mw.unwrap_or(default))
    }

    /// The power limit as shipped (mW).
    ///
    /// # Errors
    /// As [`Self::power_limit`].
    pub fn default_power_limit(&self, device: Device) -> Answer<u32> {
        let gpu = self.whole_gpu(device)?;
        let limits = self.gpu(gpu).board.power_limits.ok_or(Return::NotSupported)?;
        Ok(milliwatts(limits.default.get()))
    }

    /// The power limit in force (mW); here always the one that was set.
    ///
    /// # Errors
    /// As [`Self::power_limit`].
    pub fn enforced_power_limit(&self, device: Device) -> Answer<u32> {
        self.power_limit(device)
    }

    /// The lowest and highest power limit that can be set (mW).
    ///
    /// # Errors
    /// As [`Self::power_limit`]; also when the lowest was not captured.
    pub fn power_limit_range(&self, device: Device) -> Answer<PowerLimitRange> {
        let gpu = self.whole_gpu(device)?;
        let limits = self.gpu(gpu).board.power_limits.ok_or(Return::NotSupported)?;
        let min = limits.min.ok_or(Return::NotSupported)?;
        Ok(PowerLimitRange { min: milliwatts(min.get()), max: milliwatts(limits.max.get()) })
    }

    /// Sets the power limit (mW).
    ///
    /// # Errors
    /// `InvalidArgument` out of range (nvml.h); `NoPermission` without rights; as
    /// [`Self::power_limit_range`].
    pub fn set_power_limit(&mut self, device: Device, milliwatts: u32) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        let range = self.power_limit_range(device)?;
        if milliwatts < range.min || milliwatts > range.max {
            return Err(Return::InvalidArgument);
        }
        self.require_rights()?;
        self.gpu_state_mut(gpu).power_limit_mw = Some(milliwatts);
        Ok(())
    }

    /// Moves on to a time, at the power that was drawn since the last one. A clock that goes backwards
    /// stands still.
    pub(crate) fn advance(&mut self, now_ns: u64) {
        for gpu in 0..self.n_gpus() {
            self.now_ns = now_ns;
            let millijoules = self.millijoules(gpu);
            let has_window = self.machine.sensor.is_some_and(|s| s.window_ms > 0);
            let energy = &mut self.gpu_state_mut(gpu).energy;
            if has_window && energy.since_ns < now_ns {
                energy.history.push((energy.since_ns, energy.millijoules));
                let surplus = energy.history.len().saturating_sub(HISTORY);
                energy.history.drain(..surplus);
            }
            energy.millijoules = millijoules.unwrap_or(energy.millijoules);
            energy.since_ns = energy.since_ns.max(now_ns);
        }
        self.now_ns = now_ns;
    }

    /// Whether the power limit holds the board back.
    pub(crate) fn is_at_power_limit(&self, gpu: usize) -> bool {
        self.unlimited_watts(gpu).zip(self.watts(gpu)).is_some_and(|(wanted, drawn)| wanted > drawn)
    }

    /// Energy up to now (mJ).
    fn millijoules(&self, gpu: usize) -> Option<f64> {
        let energy = &self.gpu_state(gpu).energy;
        let elapsed = span(self.now_ns.saturating_sub(energy.since_ns));
        Some(energy.millijoules + self.watts(gpu)? * elapsed * MILLIJOULES)
    }

    /// The power now (W).
    fn watts(&self, gpu: usize) -> Option<f64> {
        let wanted = self.unlimited_watts(gpu)?;
        let limit = self.power_limit(Device::Gpu(gpu)).map_or(f64::INFINITY, |mw| f64::from(mw) / 1000.0);
        Some(wanted.min(limit))
    }

    fn unlimited_watts(&self, gpu: usize) -> Option<f64> {
        let dynamic: f64 = self.gpu_state(gpu).processes.iter().map(|p| p.dynamic_w).sum();
        Some(self.base_watts(gpu)? + dynamic)
    }

    /// The base power at the clock now (W).
    fn base_watts(&self, gpu: usize) -> Option<f64> {
        let own = self.gpu(gpu);
        let Some(base) = &own.board.base_power else { return own.idle_power_w };
        interpolate(&base.points, self.sm_clock(gpu)?)
    }

    /// Mean power over the window that ended at a time (W): from the energies that are remembered.
    fn mean_watts(&self, gpu: usize, end: u64, window: u64, now: f64) -> f64 {
        let energy = &self.gpu_state(gpu).energy;
        let mut points: Vec<(u64, f64)> = energy.history.clone();
        points.push((energy.since_ns, energy.millijoules));
        points.push((self.now_ns, self.millijoules(gpu).unwrap_or(energy.millijoules)));
        let at = |time: u64| {
            let after = points.partition_point(|(t, _)| *t <= time);
            let (Some(a), Some(b)) = (points.get(after.wrapping_sub(1)), points.get(after)) else {
                return points.get(after).or(points.last()).map_or(0.0, |(_, e)| *e);
            };
            a.1 + (b.1 - a.1) * span(time - a.0) / span(b.0 - a.0)
        };
        let oldest = points.first().map_or(end, |(t, _)| *t);
        let start = end.saturating_sub(window).max(oldest);
        if start >= end {
            return now;
        }
        (at(end) - at(start)) / (span(end - start) * MILLIJOULES)
    }
}

/// Between two captured points on a straight line; nothing outside them.
fn interpolate(points: &[(Megahertz, Watts)], mhz: u32) -> Option<f64> {
    let after = points.partition_point(|(clock, _)| clock.0 < mhz);
    let (upper, at_upper) = points.get(after)?;
    if upper.0 == mhz {
        return Some(at_upper.get());
    }
    let (lower, at_lower) = points.get(after.checked_sub(1)?)?;
    let part = f64::from(mhz - lower.0) / f64::from(upper.0 - lower.0);
    Some(at_lower.get() + (at_upper.get() - at_lower.get()) * part)
}

#[cfg(test)]
mod tests {
    use super::super::trial::{cut, machine, of};
    use super::*;
    use crate::description::Sensor;

    const GPU: Device = Device::Gpu(0);
    const SECOND: u64 = 1_000_000_000;

    fn later(silicon: &mut Silicon, seconds: f64) {
        silicon.advance(silicon.now_ns + (seconds * 1e9) as u64);
    }

    #[test]
    fn base_power_is_interpolated_and_never_extrapolated() {
        let points = [(Megahertz(210), Watts(43.0)), (Megahertz(240), Watts(46.0))];
        let at = |mhz| interpolate(&points, mhz);
        assert_eq!((at(210), at(240), at(220)), (Some(43.0), Some(46.0), Some(44.0)));
        assert_eq!((at(195), at(255)), (None, None));
        assert_eq!(interpolate(&[], 210), None);
    }

    #[test]
    fn power_is_the_base_at_the_clock_and_what_runs() {
        let mut a100 = machine("a100-80gb-pcie");
        let board = ent_plan::device::board("a100-80gb-pcie").unwrap();
        let base = |mhz| {
            (board.base_power.as_ref().unwrap().at(Megahertz(mhz)).unwrap().get() * 1000.0).round() as u32
        };
        assert_eq!(a100.power_usage(GPU), Ok(base(210)));
        a100.attach(GPU, 7, "python").unwrap();
        a100.attach(GPU, 8, "python").unwrap();
        a100.load(GPU, 7, 40.0).unwrap();
        a100.load(GPU, 8, 60.5).unwrap();
        assert_eq!(a100.power_usage(GPU), Ok(base(1410) + 100_500));
        a100.set_gpu_locked_clocks(GPU, 1050, 1050).unwrap();
        assert_eq!(a100.power_instant(GPU), Ok(base(1050) + 100_500));
        a100.detach(GPU, 8).unwrap();
        assert_eq!(
            a100.power_usage(GPU),
            Ok(base(1050) + 40_000),
            "the last client but one took no lock away"
        );
    }

    #[test]
    fn energy_is_power_over_time() {
        let mut a100 = machine("a100-80gb-pcie");
        a100.attach(GPU, 7, "python").unwrap();
        let idle = f64::from(a100.power_usage(GPU).unwrap());
        later(&mut a100, 10.0);
        assert!((a100.total_energy(GPU).unwrap() as f64 - idle * 10.0).abs() < 10.0);
        a100.load(GPU, 7, 100.0).unwrap();
        let busy = f64::from(a100.power_usage(GPU).unwrap());
        // Between two saves it grows all the same.
        a100.now_ns += 2 * SECOND;
        assert!((a100.total_energy(GPU).unwrap() as f64 - idle * 10.0 - busy * 2.0).abs() < 10.0);
        let before = a100.total_energy(GPU).unwrap();
        a100.spend(GPU, 7, 3.5).unwrap();
        assert_eq!(a100.total_energy(GPU).unwrap(), before + 3500);
        // A clock that goes backwards takes nothing away.
        let now = a100.now_ns;
        a100.advance(now);
        let before = a100.total_energy(GPU).unwrap();
        a100.advance(now - SECOND);
        assert_eq!(a100.total_energy(GPU).unwrap(), before);
        a100.advance(now);
        assert_eq!(a100.total_energy(GPU).unwrap(), before);
    }

    #[test]
    fn nothing_is_guessed_of_a_board_that_nobody_measured() {
        let mut h100 = machine("h100-80gb-sxm");
        assert_eq!(h100.power_usage(GPU), Err(Return::NotSupported));
        assert_eq!(h100.total_energy(GPU), Err(Return::NotSupported));
        assert_eq!(h100.power_limit(GPU), Ok(700_000));
        h100.attach(GPU, 7, "python").unwrap();
        assert_eq!(h100.spend(GPU, 7, 1.0), Err(Return::NotSupported));
        let mut told = of("h100-80gb-sxm", |d| d.gpu[0].idle_power_w = Some(72.0));
        told.attach(GPU, 7, "python").unwrap();
        told.load(GPU, 7, 100.0).unwrap();
        assert_eq!(told.power_usage(GPU), Ok(172_000));
    }

    #[test]
    fn the_power_limit_holds() {
        let mut a100 = machine("a100-80gb-pcie");
        assert_eq!(a100.power_limit_range(GPU), Ok(PowerLimitRange { min: 150_000, max: 300_000 }));
        for wrong in [149_999, 300_001, 0, u32::MAX] {
            assert_eq!(a100.set_power_limit(GPU, wrong), Err(Return::InvalidArgument));
        }
        a100.set_power_limit(GPU, 150_000).unwrap();
        assert_eq!((a100.power_limit(GPU), a100.default_power_limit(GPU)), (Ok(150_000), Ok(300_000)));
        a100.attach(GPU, 7, "python").unwrap();
        a100.load(GPU, 7, 200.0).unwrap();
        assert_eq!(a100.power_usage(GPU), Ok(150_000));
        assert_eq!(a100.clocks_event_reasons(GPU), Ok(0x4));
        let mut user = of("a100-80gb-pcie", |d| d.privileged = false);
        assert_eq!(user.set_power_limit(GPU, 200_000), Err(Return::NoPermission));
        let mut unknown = machine("b200-180gb");
        assert_eq!(unknown.set_power_limit(GPU, 200_000), Err(Return::NotSupported));
        let half_known = machine("h100-80gb-pcie");
        assert_eq!(half_known.power_limit(GPU), Ok(350_000));
        assert_eq!(half_known.power_limit_range(GPU), Err(Return::NotSupported));
    }

    #[test]
    fn a_mig_device_has_neither_power_nor_energy() {
        let mut a100 = cut("a100-80gb-pcie");
        let instance = a100.create_gpu_instance(GPU, 19, None).unwrap();
        let mig = Device::Mig(a100.create_compute_instance(instance, 0, None).unwrap());
        assert_eq!(a100.power_usage(mig), Err(Return::NotSupported));
        assert_eq!(a100.total_energy(mig), Err(Return::NotSupported));
        assert_eq!(a100.set_power_limit(mig, 200_000), Err(Return::NotSupported));
        a100.attach(mig, 7, "python").unwrap();
        a100.load(mig, 7, 33.0).unwrap();
        assert!(a100.power_usage(GPU).unwrap() > 33_000 + 70_000, "what it draws shows on its GPU");
    }

    #[test]
    fn a_sensor_shows_the_mean_of_its_last_window() {
        let sensor = Some(Sensor { window_ms: 100, noise_w: 0.0 });
        let mut told = of("h100-80gb-sxm", |d| {
            d.gpu[0].idle_power_w = Some(70.0);
            d.sensor = sensor;
        });
        told.attach(GPU, 7, "python").unwrap();
        later(&mut told, 1.0);
        // 60 ms into a window the load begins: nothing to see until the window ends, then 40 % of it.
        later(&mut told, 0.06);
        told.load(GPU, 7, 100.0).unwrap();
        later(&mut told, 0.03);
        assert_eq!((told.power_usage(GPU), told.power_instant(GPU)), (Ok(70_000), Ok(170_000)));
        later(&mut told, 0.02);
        assert_eq!(told.power_usage(GPU), Ok(110_000));
        later(&mut told, 0.1);
        assert_eq!(told.power_usage(GPU), Ok(170_000));
        // Energy that was spent at once is seen too.
        told.load(GPU, 7, 0.0).unwrap();
        told.spend(GPU, 7, 1.0).unwrap();
        later(&mut told, 0.2);
        later(&mut told, 0.05);
        assert_eq!(told.power_usage(GPU), Ok(70_000));
    }

    #[test]
    fn noise_is_bounded_and_the_same_within_a_window() {
        let noisy = |seed| {
            of("a100-80gb-pcie", |d| {
                d.seed = seed;
                d.sensor = Some(Sensor { window_ms: 100, noise_w: 3.0 });
            })
        };
        let mut silicon = noisy(1);
        let truth = i64::from(silicon.power_instant(GPU).unwrap());
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            let reading = silicon.power_usage(GPU).unwrap();
            assert!((i64::from(reading) - truth).abs() <= 3001);
            silicon.now_ns += 10;
            assert_eq!(silicon.power_usage(GPU).unwrap(), reading);
            seen.insert(reading);
            later(&mut silicon, 0.1);
        }
        assert!(seen.len() > 40);
        assert_eq!(noisy(1).power_usage(GPU), noisy(1).power_usage(GPU));
        assert_ne!(noisy(1).power_usage(GPU), noisy(2).power_usage(GPU));
    }
}
