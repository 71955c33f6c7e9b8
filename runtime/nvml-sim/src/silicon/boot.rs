//! Boots, resets and losses: what survives which.

use super::machine::{Machine, uuid};
use super::state::{GpuState, Process, State, VERSION};
use super::{Answer, Device, Placement, Silicon};
use crate::description::Description;
use crate::returns::Return;
use std::sync::Arc;

impl Silicon {
    /// A described machine at its first boot. `started` tells when a process started, if there is one.
    ///
    /// # Errors
    /// In words, when a described instance does not fit.
    pub(crate) fn first_boot(
        machine: Arc<Machine>,
        now_ns: u64,
        started: fn(u32) -> Option<u64>,
    ) -> Result<Self, String> {
        let state = |described: usize, board: &str| {
            let is_cut = machine.description.gpu.get(described).is_some_and(|d| d.mig);
            GpuState::new(board, is_cut, machine.is_persistent_at_boot, now_ns)
        };
        let gpus = machine.gpus.iter().map(|gpu| state(gpu.described, &gpu.board.id)).collect();
        let state = State { version: VERSION, boot: 1, next_serial: 1, sessions: Vec::new(), gpus };
        let is_privileged = machine.is_privileged;
        let mut silicon = Self { machine, state: Arc::new(state), now_ns, started, is_privileged: true };
        for gpu in 0..silicon.n_gpus() {
            silicon.furnish(gpu).map_err(|(what, why)| format!("{what} of GPU {gpu}: {why}"))?;
        }
        silicon.is_privileged = is_privileged;
        Ok(silicon)
    }

    /// Makes what is described to be there at first boot.
    fn furnish(&mut self, gpu: usize) -> Result<(), (String, Return)> {
        let machine = Arc::clone(&self.machine);
        let Some(described) = machine.description.gpu.get(self.gpu(gpu).described) else { return Ok(()) };
        if described.mig && !self.has_mig(gpu) {
            return Err(("`mig = true`".to_owned(), Return::NotSupported));
        }
        let mut seats = Vec::new();
        for instance in &described.instances {
            let fault = |why: Return| (format!("`{}`", instance.profile), why);
            let board = &self.gpu(gpu).board;
            let profile = board.profile(&instance.profile).ok_or_else(|| fault(Return::NotFound))?;
            let (id, size) = (profile.gi_profile_id, profile.n_memory_slices);
            let placement = instance.start.map(|start| Placement { start, size });
            let id = id.ok_or_else(|| fault(Return::NotSupported))?;
            let serial = self.create_gpu_instance(Device::Gpu(gpu), id, placement).map_err(fault)?;
            let whole = |p: &u32| {
                self.compute_instance_profile(serial, *p, 0)
                    .is_ok_and(|i| i.name == format!("MIG {}", instance.profile))
            };
            let whole = (0..7).find(whole).ok_or_else(|| fault(Return::NotSupported))?;
            let seat = instance.compute.then(|| self.create_compute_instance(serial, whole, None));
            seats.push(seat.transpose().map_err(fault)?);
        }
        for process in &described.processes {
            let on = process.instance.and_then(|index| seats.get(index).copied().flatten());
            let name = process.name.clone();
            self.gpu_state_mut(gpu).processes.push(Process {
                pid: process.pid,
                started: None,
                name,
                on,
                dynamic_w: 0.0,
            });
        }
        Ok(())
    }

    /// Number of this boot, from 1. A handle of an earlier boot is dead; so would its process be.
    #[must_use]
    pub fn boot(&self) -> u64 {
        self.state.boot
    }

    /// Text that differs at each boot and on each machine.
    #[must_use]
    pub fn boot_id(&self) -> String {
        let first = self.machine.gpus.first().map_or("", |g| g.uuid.as_str());
        uuid("boot", self.machine.seed, &format!("{first} {}", self.state.boot))
    }

    /// Turns the machine off and on.
    ///
    /// Gone are GPU and compute instances, processes, locked clocks, power limits, persistence mode (unless
    /// a daemon turns it on) and the energy counters. MIG mode on Ampere is in the InfoROM: it stays, and
    /// what was pending is active. From Hopper on it is gone. (NVIDIA MIG User Guide, Getting Started.)
    /// A GPU that had fallen off the bus is back.
    pub fn reboot(&mut self) {
        for gpu in 0..self.n_gpus() {
            let is_kept = self.gpu(gpu).family.mig_mode_needs_reset();
            let is_cut = is_kept && self.gpu_state(gpu).mig_pending;
            let board = self.gpu(gpu).board.id.clone();
            let is_persistent = self.machine.is_persistent_at_boot;
            *self.gpu_state_mut(gpu) = GpuState::new(&board, is_cut, is_persistent, self.now_ns);
        }
        let state = self.state_mut();
        state.boot += 1;
        state.sessions.clear();
    }

    /// Resets one GPU, as `nvidia-smi --gpu-reset` does: what is pending becomes active; instances, locked
    /// clocks and the power limit are gone.
    ///
    /// # Errors
    /// `NoPermission` without rights; `NotSupported` in a virtual machine (NVIDIA/gpu-operator issue 1606)
    /// or on a MIG device; `InUse` with clients.
    pub fn reset(&mut self, device: Device) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        if self.gpu(gpu).is_in_vm {
            return Err(Return::NotSupported);
        }
        self.require_rights()?;
        if self.has_clients(gpu, None) {
            return Err(Return::InUse);
        }
        self.reset_gpu(gpu);
        Ok(())
    }

    /// This GPU falls off the bus: every call on it says `GpuIsLost` until the next boot.
    ///
    /// # Errors
    /// `InvalidArgument` when there is no such GPU.
    pub fn lose(&mut self, gpu: usize) -> Answer<()> {
        if gpu >= self.n_gpus() {
            return Err(Return::InvalidArgument);
        }
        self.gpu_state_mut(gpu).is_lost = true;
        Ok(())
    }

    /// What a reset does. Persistence mode stays: it is the driver's.
    pub(crate) fn reset_gpu(&mut self, gpu: usize) {
        let state = self.gpu_state_mut(gpu);
        state.mig = state.mig_pending;
        state.instances.clear();
        state.locked_clocks = None;
        state.locked_memory_clocks = None;
        state.power_limit_mw = None;
    }

    /// Another description of the same boards: only what may change from call to call is taken over.
    pub(crate) fn is_of(state: &State, description: &Description) -> bool {
        let boards = description.gpu.iter().flat_map(|g| std::iter::repeat_n(&g.board, g.count as usize));
        boards.eq(state.gpus.iter().map(|g| &g.board))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Clock;
    use super::super::trial::{cut, machine, of, try_of};
    use super::*;
    use crate::description::DescribedInstance;

    const GPU: Device = Device::Gpu(0);

    fn used(board: &str) -> Silicon {
        let mut silicon = cut(board);
        let instance = silicon.create_gpu_instance(GPU, 19, None).unwrap();
        let compute = silicon.create_compute_instance(instance, 0, None).unwrap();
        silicon.attach(Device::Mig(compute), 7, "python").unwrap();
        silicon.set_persistence_mode(GPU, true).unwrap();
        silicon.set_gpu_locked_clocks(GPU, 900, 900).unwrap();
        silicon.set_power_limit(GPU, 250_000).unwrap();
        silicon
    }

    #[test]
    fn a_reboot_leaves_what_real_ones_leave() {
        for (board, is_kept, idle) in [("a100-80gb-pcie", true, 210), ("h100-80gb-sxm", false, 345)] {
            let mut silicon = used(board);
            let before = (silicon.boot(), silicon.boot_id(), silicon.uuid(GPU));
            silicon.reboot();
            assert_eq!((silicon.boot(), silicon.uuid(GPU)), (2, before.2));
            assert_ne!(silicon.boot_id(), before.1);
            assert_eq!(silicon.mig_mode(GPU), Ok((is_kept, is_kept)), "{board}");
            assert_eq!(silicon.persistence_mode(GPU), Ok(false));
            assert_eq!(silicon.clock(GPU, Clock::Sm), Ok(idle));
            assert_eq!(silicon.power_limit(GPU), silicon.default_power_limit(GPU));
            assert_eq!(silicon.processes(GPU), Ok(vec![]));
            assert!(silicon.gpu_state(0).instances.is_empty());
        }
    }

    #[test]
    fn a_pending_mode_outlives_a_reboot_on_ampere_only() {
        for (board, expected) in [("a100-80gb-pcie", (true, true)), ("h100-80gb-sxm", (false, false))] {
            let mut silicon = machine(board);
            silicon.attach(GPU, 7, "dcgm").unwrap();
            assert_eq!(silicon.set_mig_mode(GPU, true), Ok(Some(Return::InUse)));
            silicon.reboot();
            assert_eq!(silicon.mig_mode(GPU), Ok(expected), "{board}");
        }
    }

    #[test]
    fn a_reset_makes_what_is_pending_active() {
        let mut a100 = machine("a100-80gb-pcie");
        a100.attach(GPU, 7, "dcgm").unwrap();
        a100.set_mig_mode(GPU, true).unwrap();
        assert_eq!(a100.reset(GPU), Err(Return::InUse));
        a100.detach(GPU, 7).unwrap();
        a100.set_gpu_locked_clocks(GPU, 900, 900).unwrap();
        a100.reset(GPU).unwrap();
        assert_eq!((a100.mig_mode(GPU), a100.clock(GPU, Clock::Sm)), (Ok((true, true)), Ok(210)));
        assert_eq!(of("a100-80gb-pcie", |d| d.privileged = false).reset(GPU), Err(Return::NoPermission));
    }

    #[test]
    fn a_lost_gpu_answers_nothing_until_the_next_boot() {
        let mut silicon = of("a100-80gb-pcie", |d| {
            d.gpu[0].count = 2;
            d.gpu[0].mig = true;
        });
        let instance = silicon.create_gpu_instance(GPU, 19, None).unwrap();
        let compute = silicon.create_compute_instance(instance, 0, None).unwrap();
        silicon.lose(0).unwrap();
        assert_eq!(silicon.lose(2), Err(Return::InvalidArgument));
        let lost = Return::GpuIsLost;
        assert_eq!(silicon.uuid(GPU), Err(lost));
        assert_eq!(silicon.mig_mode(GPU), Err(lost));
        assert_eq!(silicon.gpu_instance(instance), Err(lost));
        assert_eq!(silicon.compute_instance(compute), Err(lost));
        assert_eq!(silicon.destroy_compute_instance(compute), Err(lost));
        assert_eq!(silicon.set_gpu_locked_clocks(GPU, 900, 900), Err(lost));
        assert_eq!(silicon.power_usage(GPU), Err(lost));
        assert_eq!(silicon.processes(GPU), Err(lost));
        assert_eq!(silicon.attach(GPU, 7, "python"), Err(lost));
        assert_eq!(silicon.gpu_by_index(0), Err(lost));
        assert_eq!((silicon.n_gpus(), silicon.mig_mode(Device::Gpu(1))), (2, Ok((true, true))));
        silicon.reboot();
        assert_eq!(silicon.mig_mode(GPU), Ok((true, true)));
    }

    #[test]
    fn what_is_described_is_there_at_first_boot_and_not_at_the_second() {
        let mut silicon = of("a100-80gb-pcie", |d| {
            d.privileged = false;
            d.persistenced = true;
            d.gpu[0].mig = true;
            d.gpu[0].instances = vec![
                DescribedInstance { profile: "3g.40gb".to_owned(), start: Some(0), compute: true },
                DescribedInstance { profile: "1g.10gb".to_owned(), start: None, compute: false },
            ];
        });
        let made = |s: &Silicon| -> Vec<(u32, usize)> {
            s.gpu_state(0).instances.iter().map(|i| (i.placement.start, i.compute_instances.len())).collect()
        };
        assert_eq!((made(&silicon), silicon.persistence_mode(GPU)), (vec![(0, 1), (6, 0)], Ok(true)));
        assert_eq!(silicon.create_gpu_instance(GPU, 19, None), Err(Return::NoPermission));
        silicon.reboot();
        assert_eq!((made(&silicon), silicon.persistence_mode(GPU)), (vec![], Ok(true)));
    }

    #[test]
    fn what_does_not_fit_is_no_machine() {
        let with = |profile: &str, start| {
            try_of("a100-80gb-pcie", |d| {
                d.gpu[0].mig = true;
                d.gpu[0].instances =
                    vec![DescribedInstance { profile: profile.to_owned(), start, compute: true }; 2];
            })
        };
        assert!(with("1g.10gb", None).is_ok());
        assert_eq!(with("1g.10gb", Some(3)).unwrap_err(), "`1g.10gb` of GPU 0: insufficient resources");
        assert_eq!(with("7g.80gb", None).unwrap_err(), "`7g.80gb` of GPU 0: insufficient resources");
        assert_eq!(with("3g.40gb", Some(1)).unwrap_err(), "`3g.40gb` of GPU 0: invalid argument");
        let old = try_of("h200-141gb", |d| {
            d.driver_version = "535.104.05".to_owned();
            d.gpu[0].mig = true;
        });
        assert!(old.unwrap_err().contains("not supported"));
    }
}
