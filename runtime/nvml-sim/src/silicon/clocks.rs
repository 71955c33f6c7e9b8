//! Clocks: what a board can run at, what it is held to, what it runs at now.
//!
//! One SM clock for the whole GPU, whatever it is cut into: no call takes a clock for a MIG device.

use super::{Answer, Clock, Device, Silicon};
use crate::returns::Return;

/// `NVML_CLOCK_LIMIT_ID_*` (nvml.h, `nvmlClockLimitId_t`): the board's rated clock, and no limit.
const RATED: u32 = 0xffff_ff01;
const UNLIMITED: u32 = 0xffff_ff02;
const FIRST_SYMBOL: u32 = 0xffff_ff00;

/// `nvmlClocksEventReason*` (nvml.h).
const REASON_IDLE: u64 = 0x1;
const REASON_CLOCKS_SETTING: u64 = 0x2;
const REASON_POWER_CAP: u64 = 0x4;

impl Silicon {
    /// The memory clocks (MHz), highest first. One is known of each board.
    ///
    /// # Errors
    /// `NotSupported` when none was captured, or on a MIG device.
    pub fn supported_memory_clocks(&self, device: Device) -> Answer<Vec<u32>> {
        let gpu = self.whole_gpu(device)?;
        self.gpu(gpu).board.memory_clock.map(|c| vec![c.0]).ok_or(Return::NotSupported)
    }

    /// The SM clocks at a memory clock (MHz), highest first.
    ///
    /// # Errors
    /// `NotFound` for another memory clock (nvml.h); `NotSupported` when none was captured, or on a MIG
    /// device.
    pub fn supported_graphics_clocks(&self, device: Device, memory_mhz: u32) -> Answer<Vec<u32>> {
        let gpu = self.whole_gpu(device)?;
        let board = &self.gpu(gpu).board;
        if board.clocks.is_empty() || board.memory_clock.is_none() {
            return Err(Return::NotSupported);
        }
        if board.memory_clock.map(|c| c.0) != Some(memory_mhz) {
            return Err(Return::NotFound);
        }
        Ok(board.clocks.iter().rev().map(|c| c.0).collect())
    }

    /// The clock now (MHz). The SMs run at the highest clock they may when something runs, and at the
    /// lowest when not; locked clocks hold either way (nvml.h, `nvmlDeviceSetGpuLockedClocks`: "regardless
    /// if a cuda app is running").
    ///
    /// # Errors
    /// `NotSupported` when the board's clocks were not captured, for the video clock, or on a MIG device.
    pub fn clock(&self, device: Device, clock: Clock) -> Answer<u32> {
        let gpu = self.whole_gpu(device)?;
        match clock {
            Clock::Sm | Clock::Graphics => self.sm_clock(gpu).ok_or(Return::NotSupported),
            // At which memory clock an idle board rests was not captured.
            Clock::Memory => self.gpu(gpu).board.memory_clock.map(|c| c.0).ok_or(Return::NotSupported),
            Clock::Video => Err(Return::NotSupported),
        }
    }

    /// The highest clock (MHz).
    ///
    /// # Errors
    /// As [`Self::clock`].
    pub fn max_clock(&self, device: Device, clock: Clock) -> Answer<u32> {
        let gpu = self.whole_gpu(device)?;
        let board = &self.gpu(gpu).board;
        let highest = match clock {
            Clock::Sm | Clock::Graphics => board.clocks.last(),
            Clock::Memory => board.memory_clock.as_ref(),
            Clock::Video => None,
        };
        highest.map(|c| c.0).ok_or(Return::NotSupported)
    }

    /// Holds the SM clock within a range (MHz), or between `NVML_CLOCK_LIMIT_ID_*` symbols.
    ///
    /// A request is installed as it is: the board then runs at a clock it has, the next one down, and never
    /// beyond its ends. (NVIDIA/open-gpu-kernel-modules issue 1314: success means that the request was
    /// installed; `nvidia-smi -lgc` likewise takes any number.)
    ///
    /// # Errors
    /// `InvalidArgument` when the lowest is above the highest, either is 0, or a number is mixed with a
    /// symbol (nvml.h); `NoPermission` without rights; `NotSupported` when the board's clocks were not
    /// captured, or on a MIG device.
    pub fn set_gpu_locked_clocks(&mut self, device: Device, min_mhz: u32, max_mhz: u32) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        let clocks = &self.gpu(gpu).board.clocks;
        let (Some(lowest), Some(highest)) = (clocks.first(), clocks.last()) else {
            return Err(Return::NotSupported);
        };
        // nvml.h has a table of what the four pairs of symbols mean.
        let range = match (min_mhz, max_mhz) {
            (UNLIMITED, UNLIMITED) => None,
            (RATED, RATED | UNLIMITED) => Some((highest.0, highest.0)),
            (UNLIMITED, RATED) => Some((lowest.0, highest.0)),
            (min, max) if min >= FIRST_SYMBOL || max >= FIRST_SYMBOL || min > max || min == 0 => {
                return Err(Return::InvalidArgument);
            }
            range => Some(range),
        };
        self.require_rights()?;
        self.gpu_state_mut(gpu).locked_clocks = range;
        Ok(())
    }

    /// Lets the SM clock go.
    ///
    /// # Errors
    /// `NoPermission` without rights; `NotSupported` when the board's clocks were not captured, or on a MIG
    /// device.
    pub fn reset_gpu_locked_clocks(&mut self, device: Device) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        if self.gpu(gpu).board.clocks.is_empty() {
            return Err(Return::NotSupported);
        }
        self.require_rights()?;
        self.gpu_state_mut(gpu).locked_clocks = None;
        Ok(())
    }

    /// Holds the memory clock within a range (MHz). Ampere and newer (nvml.h).
    ///
    /// # Errors
    /// As [`Self::set_gpu_locked_clocks`], without symbols.
    pub fn set_memory_locked_clocks(&mut self, device: Device, min_mhz: u32, max_mhz: u32) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        if self.gpu(gpu).board.memory_clock.is_none() {
            return Err(Return::NotSupported);
        }
        if min_mhz > max_mhz || min_mhz == 0 {
            return Err(Return::InvalidArgument);
        }
        self.require_rights()?;
        self.gpu_state_mut(gpu).locked_memory_clocks = Some((min_mhz, max_mhz));
        Ok(())
    }

    /// Lets the memory clock go.
    ///
    /// # Errors
    /// As [`Self::reset_gpu_locked_clocks`].
    pub fn reset_memory_locked_clocks(&mut self, device: Device) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        if self.gpu(gpu).board.memory_clock.is_none() {
            return Err(Return::NotSupported);
        }
        self.require_rights()?;
        self.gpu_state_mut(gpu).locked_memory_clocks = None;
        Ok(())
    }

    /// Why the clock is what it is: `nvmlClocksEventReason*` bits.
    ///
    /// # Errors
    /// `NotSupported` on a MIG device.
    pub fn clocks_event_reasons(&self, device: Device) -> Answer<u64> {
        let gpu = self.whole_gpu(device)?;
        let state = self.gpu_state(gpu);
        let mut reasons = 0;
        if !self.is_busy(gpu) {
            reasons |= REASON_IDLE;
        }
        if state.locked_clocks.is_some() {
            reasons |= REASON_CLOCKS_SETTING;
        }
        if self.is_at_power_limit(gpu) {
            reasons |= REASON_POWER_CAP;
        }
        Ok(reasons)
    }

    /// The performance state: 0 when something runs, 8 when not.
    ///
    /// # Errors
    /// `NotSupported` on a MIG device.
    pub fn performance_state(&self, device: Device) -> Answer<u32> {
        let gpu = self.whole_gpu(device)?;
        Ok(if self.is_busy(gpu) { 0 } else { 8 })
    }

    /// Whether a process draws power.
    pub(crate) fn is_busy(&self, gpu: usize) -> bool {
        self.gpu_state(gpu).processes.iter().any(|p| p.dynamic_w > 0.0)
    }

    /// The SM clock now.
    pub(crate) fn sm_clock(&self, gpu: usize) -> Option<u32> {
        let clocks = &self.gpu(gpu).board.clocks;
        let (lowest, highest) = (clocks.first()?.0, clocks.last()?.0);
        let at_most = |mhz: u32| clocks.iter().rev().map(|c| c.0).find(|c| *c <= mhz).unwrap_or(lowest);
        Some(match (self.gpu_state(gpu).locked_clocks, self.is_busy(gpu)) {
            (None, true) => highest,
            (None, false) => lowest,
            (Some((_, max)), true) => at_most(max),
            (Some((min, _)), false) => at_most(min),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{cut, machine, of};
    use super::*;

    const GPU: Device = Device::Gpu(0);

    fn sm(silicon: &Silicon) -> u32 {
        silicon.clock(GPU, Clock::Sm).unwrap()
    }

    #[test]
    fn clocks_are_listed_from_the_highest() {
        let a100 = machine("a100-80gb-pcie");
        assert_eq!(a100.supported_memory_clocks(GPU), Ok(vec![1512]));
        let clocks = a100.supported_graphics_clocks(GPU, 1512).unwrap();
        assert_eq!((clocks.len(), clocks[0], clocks[80]), (81, 1410, 210));
        assert_eq!(a100.supported_graphics_clocks(GPU, 1215), Err(Return::NotFound));
        assert_eq!(a100.max_clock(GPU, Clock::Graphics), Ok(1410));
        assert_eq!(a100.max_clock(GPU, Clock::Memory), Ok(1512));
        assert_eq!(a100.max_clock(GPU, Clock::Video), Err(Return::NotSupported));
    }

    #[test]
    fn a_board_whose_clocks_nobody_saw_supports_none() {
        let mut b200 = machine("b200-180gb");
        assert_eq!(b200.supported_memory_clocks(GPU), Err(Return::NotSupported));
        assert_eq!(b200.supported_graphics_clocks(GPU, 1512), Err(Return::NotSupported));
        assert_eq!(b200.clock(GPU, Clock::Sm), Err(Return::NotSupported));
        assert_eq!(b200.set_gpu_locked_clocks(GPU, 900, 900), Err(Return::NotSupported));
        assert_eq!(b200.reset_gpu_locked_clocks(GPU), Err(Return::NotSupported));
        assert_eq!(b200.set_memory_locked_clocks(GPU, 900, 900), Err(Return::NotSupported));
    }

    #[test]
    fn the_clock_follows_what_runs_and_what_is_locked() {
        let mut a100 = machine("a100-80gb-pcie");
        assert_eq!(sm(&a100), 210);
        a100.attach(GPU, 7, "python").unwrap();
        assert_eq!((sm(&a100), a100.performance_state(GPU)), (210, Ok(8)));
        a100.load(GPU, 7, 50.0).unwrap();
        assert_eq!((sm(&a100), a100.performance_state(GPU)), (1410, Ok(0)));
        a100.set_gpu_locked_clocks(GPU, 705, 1005).unwrap();
        assert_eq!((sm(&a100), a100.clocks_event_reasons(GPU)), (1005, Ok(REASON_CLOCKS_SETTING)));
        a100.load(GPU, 7, 0.0).unwrap();
        assert_eq!(sm(&a100), 705);
        assert_eq!(a100.clocks_event_reasons(GPU), Ok(REASON_CLOCKS_SETTING | REASON_IDLE));
        a100.reset_gpu_locked_clocks(GPU).unwrap();
        assert_eq!(sm(&a100), 210);
    }

    #[test]
    fn any_range_is_taken_and_runs_at_a_clock_the_board_has() {
        let mut a100 = machine("a100-80gb-pcie");
        for (asked, runs) in [(1000, 990), (1005, 1005), (1, 210), (5000, 1410)] {
            a100.set_gpu_locked_clocks(GPU, asked, asked).unwrap();
            assert_eq!(sm(&a100), runs, "{asked}");
        }
    }

    #[test]
    fn impossible_ranges_are_refused_and_symbols_understood() {
        let mut a100 = machine("a100-80gb-pcie");
        for (min, max) in [(900, 600), (0, 600), (900, UNLIMITED), (RATED, 900), (FIRST_SYMBOL, RATED)] {
            assert_eq!(
                a100.set_gpu_locked_clocks(GPU, min, max),
                Err(Return::InvalidArgument),
                "{min} {max}"
            );
        }
        a100.set_gpu_locked_clocks(GPU, RATED, RATED).unwrap();
        assert_eq!(sm(&a100), 1410);
        a100.set_gpu_locked_clocks(GPU, UNLIMITED, UNLIMITED).unwrap();
        assert_eq!(sm(&a100), 210);
        assert_eq!(a100.set_memory_locked_clocks(GPU, 2, 1), Err(Return::InvalidArgument));
        a100.set_memory_locked_clocks(GPU, 1512, 1512).unwrap();
        a100.reset_memory_locked_clocks(GPU).unwrap();
    }

    #[test]
    fn only_whole_gpus_have_clocks_and_only_root_sets_them() {
        let mut a100 = cut("a100-80gb-pcie");
        let instance = a100.create_gpu_instance(GPU, 19, None).unwrap();
        let mig = Device::Mig(a100.create_compute_instance(instance, 0, None).unwrap());
        assert_eq!(a100.set_gpu_locked_clocks(mig, 900, 900), Err(Return::NotSupported));
        assert_eq!(a100.clock(mig, Clock::Sm), Err(Return::NotSupported));
        assert!(a100.set_gpu_locked_clocks(GPU, 900, 900).is_ok(), "with MIG on, the GPU itself has");
        let mut user = of("a100-80gb-pcie", |d| d.privileged = false);
        assert_eq!(user.set_gpu_locked_clocks(GPU, 900, 900), Err(Return::NoPermission));
        assert_eq!(user.reset_gpu_locked_clocks(GPU), Err(Return::NoPermission));
        assert_eq!(user.set_memory_locked_clocks(GPU, 1512, 1512), Err(Return::NoPermission));
        assert_eq!(user.reset_memory_locked_clocks(GPU), Err(Return::NoPermission));
        assert_eq!(user.clock(GPU, Clock::Sm), Ok(210));
    }
}
