//! Who has a GPU open: processes that attach, NVML sessions, and what goes when the last of them goes.

use super::state::{Process, Session};
use super::{Answer, Device, RunningProcess, Serial, Silicon};
use crate::returns::Return;

impl Silicon {
    /// Who sits on a device: on a whole GPU everybody, instances included.
    ///
    /// # Errors
    /// `NoPermission` on a GPU in MIG mode without rights (nvml.h: aggregate information "only if the caller
    /// has appropriate privileges"); `InvalidArgument` on a MIG device that is gone.
    pub fn processes(&self, device: Device) -> Answer<Vec<RunningProcess>> {
        let (gpu, seat) = self.seat(device)?;
        let state = self.gpu_state(gpu);
        if seat.is_none() && state.mig {
            self.require_rights()?;
        }
        let is_here = |p: &&Process| (seat.is_none() || p.on == seat) && self.is_alive(p);
        let running = |p: &Process| {
            let found = p.on.and_then(|serial| self.find_compute_instance(serial).ok());
            RunningProcess {
                pid: p.pid,
                name: p.name.clone(),
                gpu_instance_id: found.map(|(_, instance, _)| instance.id),
                compute_instance_id: found.map(|(_, _, compute)| compute.id),
            }
        };
        Ok(state.processes.iter().filter(is_here).map(running).collect())
    }

    /// The name of a process that has some GPU open.
    ///
    /// # Errors
    /// `NotFound` when none with this id has.
    pub fn process_name(&self, pid: u32) -> Answer<String> {
        let all = self.state.gpus.iter().flat_map(|g| &g.processes);
        all.into_iter().find(|p| p.pid == pid).map(|p| p.name.clone()).ok_or(Return::NotFound)
    }

    /// A process begins to use a device, as making a CUDA context does. Nothing changes when it already
    /// does.
    ///
    /// # Errors
    /// `NotFound` when there is no such process; `InvalidArgument` on a device that is not there.
    pub fn attach(&mut self, device: Device, pid: u32, name: &str) -> Answer<()> {
        let (gpu, on) = self.seat(device)?;
        let started = (self.started)(pid).ok_or(Return::NotFound)?;
        let processes = &mut self.gpu_state_mut(gpu).processes;
        let is_same = |p: &Process| p.pid == pid && p.on == on && p.started == Some(started);
        if !processes.iter().any(is_same) {
            // An earlier process with this id has ended.
            processes.retain(|p| p.pid != pid || p.on != on);
            let name = name.to_owned();
            processes.push(Process { pid, started: Some(started), name, on, dynamic_w: 0.0 });
        }
        Ok(())
    }

    /// A process lets a device go.
    ///
    /// # Errors
    /// `NotFound` when it was not on it.
    pub fn detach(&mut self, device: Device, pid: u32) -> Answer<()> {
        let (gpu, on) = self.seat(device)?;
        self.process_mut(device, pid)?;
        self.gpu_state_mut(gpu).processes.retain(|p| !(p.pid == pid && p.on == on));
        self.unload(gpu);
        Ok(())
    }

    /// From now on the process draws this much beyond the base power (W); 0 when it idles.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no power, `NotFound` when it is not on the device.
    pub fn load(&mut self, device: Device, pid: u32, dynamic_w: f64) -> Answer<()> {
        if !dynamic_w.is_finite() || dynamic_w < 0.0 {
            return Err(Return::InvalidArgument);
        }
        self.process_mut(device, pid)?.dynamic_w = dynamic_w;
        Ok(())
    }

    /// The process has drawn this much energy (J) beyond what [`Self::load`] says.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no energy, `NotFound` when it is not on the device, `NotSupported` when
    /// the board counts none.
    pub fn spend(&mut self, device: Device, pid: u32, joules: f64) -> Answer<()> {
        if !joules.is_finite() || joules < 0.0 {
            return Err(Return::InvalidArgument);
        }
        self.process_mut(device, pid)?;
        let (gpu, _) = self.seat(device)?;
        self.total_energy(Device::Gpu(gpu))?;
        self.gpu_state_mut(gpu).energy.millijoules += joules * 1000.0;
        Ok(())
    }

    /// A process initialises NVML: until it ends or shuts NVML down, drivers stay loaded.
    ///
    /// # Errors
    /// `NotFound` when there is no such process.
    pub fn open_session(&mut self, pid: u32) -> Answer<()> {
        let started = (self.started)(pid).ok_or(Return::NotFound)?;
        let session = Session { pid, started };
        if !self.state.sessions.contains(&session) {
            self.state_mut().sessions.push(session);
        }
        Ok(())
    }

    /// A process shuts NVML down.
    pub fn close_session(&mut self, pid: u32) {
        self.state_mut().sessions.retain(|s| s.pid != pid);
        (0..self.n_gpus()).for_each(|gpu| self.unload(gpu));
    }

    /// Persistence mode.
    ///
    /// # Errors
    /// `NotSupported` on a MIG device.
    pub fn persistence_mode(&self, device: Device) -> Answer<bool> {
        let gpu = self.whole_gpu(device)?;
        Ok(self.gpu_state(gpu).is_persistent)
    }

    /// Turns persistence mode on or off, until the next boot (nvml.h, `nvmlDeviceSetPersistenceMode`).
    ///
    /// # Errors
    /// `NoPermission` without rights, `NotSupported` on a MIG device.
    pub fn set_persistence_mode(&mut self, device: Device, is_enabled: bool) -> Answer<()> {
        let gpu = self.whole_gpu(device)?;
        self.require_rights()?;
        self.gpu_state_mut(gpu).is_persistent = is_enabled;
        Ok(())
    }

    /// Whether a process or a session that is remembered has ended.
    pub(crate) fn has_ended_processes(&self) -> bool {
        self.state.gpus.iter().flat_map(|g| &g.processes).any(|p| !self.is_alive(p))
            || self.state.sessions.iter().any(|s| (self.started)(s.pid) != Some(s.started))
    }

    /// Forgets processes and sessions that have ended, as the driver does when their files close. Whether
    /// there were any.
    pub(crate) fn reap(&mut self) -> bool {
        if !self.has_ended_processes() {
            return false;
        }
        let started = self.started;
        self.state_mut().sessions.retain(|s| started(s.pid) == Some(s.started));
        for gpu in 0..self.n_gpus() {
            let processes = &mut self.gpu_state_mut(gpu).processes;
            let before = processes.len();
            processes.retain(|p| p.started.is_none() || started(p.pid) == p.started);
            if processes.len() < before || self.state.sessions.is_empty() {
                self.unload(gpu);
            }
        }
        true
    }

    /// Whether a process sits on a compute instance, or on the GPU at all.
    pub(crate) fn has_clients(&self, gpu: usize, on: Option<Serial>) -> bool {
        let is_here = |p: &&Process| on.is_none() || p.on == on;
        self.gpu_state(gpu).processes.iter().filter(is_here).any(|p| self.is_alive(p))
    }

    fn is_alive(&self, process: &Process) -> bool {
        process.started.is_none() || (self.started)(process.pid) == process.started
    }

    fn process_mut(&mut self, device: Device, pid: u32) -> Answer<&mut Process> {
        let (gpu, on) = self.seat(device)?;
        let processes = &mut self.gpu_state_mut(gpu).processes;
        processes.iter_mut().find(|p| p.pid == pid && p.on == on).ok_or(Return::NotFound)
    }

    /// A GPU without persistence mode is torn down with its last client; locked clocks and the power limit
    /// go with it (nvml.h: `nvmlDeviceSetPersistenceMode` and the note at
    /// `nvmlDeviceSetPowerManagementLimit`). GPU instances stay.
    fn unload(&mut self, gpu: usize) {
        let has_sessions = !self.state.sessions.is_empty();
        let state = self.gpu_state_mut(gpu);
        if !state.is_persistent && state.processes.is_empty() && !has_sessions {
            state.locked_clocks = None;
            state.locked_memory_clocks = None;
            state.power_limit_mw = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Clock;
    use super::super::trial::{DEAD, ENDED, cut, machine, of};
    use super::*;
    use crate::description::{DescribedInstance, DescribedProcess};

    const GPU: Device = Device::Gpu(0);

    fn pids(silicon: &Silicon, device: Device) -> Vec<u32> {
        silicon.processes(device).unwrap().into_iter().map(|p| p.pid).collect()
    }

    #[test]
    fn a_gpu_lists_all_and_a_mig_device_its_own() {
        let mut a100 = cut("a100-80gb-pcie");
        let mut seats = Vec::new();
        for _ in 0..2 {
            let instance = a100.create_gpu_instance(GPU, 19, None).unwrap();
            seats.push(Device::Mig(a100.create_compute_instance(instance, 0, None).unwrap()));
        }
        a100.attach(seats[0], 7, "python").unwrap();
        a100.attach(seats[0], 7, "python").unwrap();
        a100.attach(seats[1], 8, "tritonserver").unwrap();
        a100.attach(GPU, 9, "dcgm").unwrap();
        assert_eq!(pids(&a100, GPU), [7, 8, 9]);
        assert_eq!(pids(&a100, seats[1]), [8]);
        let all = a100.processes(GPU).unwrap();
        assert_eq!((all[0].gpu_instance_id, all[0].compute_instance_id), (Some(13), Some(0)));
        assert_eq!((all[2].gpu_instance_id, all[2].name.as_str()), (None, "dcgm"));
        assert_eq!(a100.process_name(8).unwrap(), "tritonserver");
        assert_eq!(a100.process_name(10), Err(Return::NotFound));
        assert_eq!(a100.detach(seats[0], 8), Err(Return::NotFound));
        assert_eq!(a100.attach(GPU, DEAD, "nobody"), Err(Return::NotFound));
        assert_eq!(a100.attach(Device::Mig(99), 7, "python"), Err(Return::InvalidArgument));
    }

    #[test]
    fn without_rights_a_gpu_in_mig_mode_lists_nobody() {
        let user = of("a100-80gb-pcie", |d| {
            d.privileged = false;
            d.gpu[0].mig = true;
            d.gpu[0].instances =
                vec![DescribedInstance { profile: "1g.10gb".to_owned(), start: None, compute: true }];
            d.gpu[0].processes = vec![DescribedProcess { name: "x".to_owned(), pid: 5, instance: Some(0) }];
        });
        assert_eq!(user.processes(GPU), Err(Return::NoPermission));
        let mig = user.mig_device_by_index(GPU, 0).unwrap();
        assert_eq!(pids(&user, mig), [5]);
        assert_eq!(machine("a100-80gb-pcie").processes(GPU), Ok(vec![]));
    }

    #[test]
    fn a_process_that_ended_is_gone() {
        let mut a100 = machine("a100-80gb-pcie");
        a100.attach(GPU, ENDED, "python").unwrap();
        a100.load(GPU, ENDED, 100.0).unwrap();
        a100.attach(GPU, 8, "python").unwrap();
        assert_eq!(pids(&a100, GPU), [ENDED, 8]);
        a100.started = |pid| if pid == ENDED { None } else { Some(u64::from(pid)) };
        assert_eq!(pids(&a100, GPU), [8]);
        a100.reap();
        assert_eq!((pids(&a100, GPU), a100.state.gpus[0].processes.len()), (vec![8], 1));
        // The same id, another process.
        a100.attach(GPU, 9, "python").unwrap();
        a100.started = |pid| Some(u64::from(pid) + 1);
        a100.reap();
        assert!(a100.state.gpus[0].processes.is_empty());
    }

    #[test]
    fn a_described_process_needs_not_exist() {
        let mut a100 = of("a100-80gb-pcie", |d| {
            d.gpu[0].processes =
                vec![DescribedProcess { name: "nv-hostengine".to_owned(), pid: DEAD, instance: None }];
        });
        a100.reap();
        assert_eq!(pids(&a100, GPU), [DEAD]);
        a100.detach(GPU, DEAD).unwrap();
        assert!(pids(&a100, GPU).is_empty());
    }

    #[test]
    fn without_persistence_settings_go_with_the_last_client() {
        let locked = |silicon: &Silicon| silicon.clock(GPU, Clock::Sm) == Ok(900);
        let set = |silicon: &mut Silicon| {
            silicon.open_session(20).unwrap();
            silicon.set_gpu_locked_clocks(GPU, 900, 900).unwrap();
            silicon.set_power_limit(GPU, 200_000).unwrap();
        };
        let mut a100 = machine("a100-80gb-pcie");
        set(&mut a100);
        assert!(locked(&a100));
        a100.close_session(20);
        assert!(!locked(&a100) && a100.power_limit(GPU) == Ok(300_000));
        // A process that stays holds them; when it ends, they go.
        set(&mut a100);
        a100.attach(GPU, ENDED, "python").unwrap();
        a100.close_session(20);
        assert!(locked(&a100));
        a100.started = |pid| if pid == ENDED { None } else { Some(u64::from(pid)) };
        a100.reap();
        assert!(!locked(&a100));
        // So does persistence mode.
        set(&mut a100);
        a100.set_persistence_mode(GPU, true).unwrap();
        a100.close_session(20);
        assert!(locked(&a100) && a100.persistence_mode(GPU) == Ok(true));
        // A session that ended without a word counts as closed.
        a100.set_persistence_mode(GPU, false).unwrap();
        a100.open_session(21).unwrap();
        a100.started = |pid| if pid == 21 { None } else { Some(u64::from(pid)) };
        a100.reap();
        assert!(!locked(&a100));
    }

    #[test]
    fn no_power_and_no_energy_are_refused() {
        let mut a100 = machine("a100-80gb-pcie");
        a100.attach(GPU, 7, "python").unwrap();
        for wrong in [f64::NAN, f64::INFINITY, -1.0] {
            assert_eq!(a100.load(GPU, 7, wrong), Err(Return::InvalidArgument));
            assert_eq!(a100.spend(GPU, 7, wrong), Err(Return::InvalidArgument));
        }
        assert_eq!(a100.load(GPU, 8, 1.0), Err(Return::NotFound));
        assert_eq!(a100.spend(GPU, 8, 1.0), Err(Return::NotFound));
        let mut user = of("a100-80gb-pcie", |d| d.privileged = false);
        assert_eq!(user.set_persistence_mode(GPU, true), Err(Return::NoPermission));
    }
}
