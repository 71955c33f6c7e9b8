//! A deployment → the processes that it needs: workers, and an MPS daemon where they share a device.

use super::SimulatedMachine;
use super::folder::WORKERS;
use super::job::Program;
use crate::deployment::{Deployment, Replica, Service};
use ent_wire::Executor;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// NVIDIA's daemon that lets processes share a device.
const MPS: &str = "nvidia-cuda-mps-control";

/// Which process of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The MPS daemon of a device. First in order: workers need it.
    Mps(String),
    /// A worker.
    Worker {
        /// The replica.
        replica: String,
        /// Its epoch.
        epoch: u64,
        /// Its service.
        service: String,
        /// Which of its processes.
        process: u32,
    },
}

impl Key {
    /// Whether it is a worker of that replica.
    pub(super) fn is_of(&self, id: &str, of: u64) -> bool {
        matches!(self, Self::Worker { replica, epoch, .. } if replica == id && *epoch == of)
    }
}

/// What processes are started with.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    /// The worker's executable.
    pub(super) worker: PathBuf,
    /// The folder with the sockets.
    pub(super) folder: PathBuf,
    /// The simulated machine that the boards are of.
    pub(super) simulated: Option<SimulatedMachine>,
}

/// The device that a replica's processes see; `None` without a board.
pub(super) fn device(replica: &Replica) -> Option<&str> {
    replica.mig_device.as_deref().or(replica.gpu.as_deref())
}

/// Whether processes share the device by MPS.
fn shares(replica: &Replica) -> bool {
    replica.executor == Executor::Torch && (replica.mps_percent.is_some() || replica.processes > 1)
}

impl Launch {
    /// All processes of a deployment.
    pub(super) fn programs(&self, deployment: &Deployment) -> BTreeMap<Key, Program> {
        let mut programs = BTreeMap::new();
        for service in &deployment.services {
            for replica in &service.replicas {
                if let Some(device) = device(replica).filter(|_| shares(replica)) {
                    programs.insert(Key::Mps(device.to_owned()), self.mps(device));
                }
                for process in 0..replica.processes {
                    let key = Key::Worker {
                        replica: replica.id.clone(),
                        epoch: replica.epoch,
                        service: service.name.clone(),
                        process,
                    };
                    programs.insert(key, self.worker(service, replica, process));
                }
            }
        }
        programs
    }

    /// The daemon is in the foreground, so that it is watched like everything else; it alone sees the device
    /// by its UUID, and what its clients see through it is device 0 (NVIDIA MPS documentation, "Environment
    /// variables"; MIG User Guide, "MPS with MIG").
    fn mps(&self, device: &str) -> Program {
        let (pipe, log) = (self.pipe(device), self.folder.join("mps").join(format!("{device}.log")));
        Program {
            name: format!("mps {device}"),
            path: MPS.into(),
            arguments: vec!["-f".into()],
            environment: vec![
                ("CUDA_VISIBLE_DEVICES", device.into()),
                ("CUDA_MPS_PIPE_DIRECTORY", pipe.into()),
                ("CUDA_MPS_LOG_DIRECTORY", log.into()),
            ],
            folder: self.folder.clone(),
        }
    }

    fn pipe(&self, device: &str) -> PathBuf {
        self.folder.join("mps").join(device)
    }

    fn worker(&self, service: &Service, replica: &Replica, process: u32) -> Program {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |name: &str, value: &Path| arguments.extend([name.into(), value.into()]);
        // The working folder has it: by this name it is never too long for a socket.
        add("--socket", Path::new(WORKERS));
        add("--service", Path::new(&service.name));
        add("--replica", Path::new(&replica.id));
        add("--epoch", Path::new(&replica.epoch.to_string()));
        add("--process", Path::new(&process.to_string()));
        add("--executor", Path::new(replica.executor.word()));
        let mut environment: Vec<(&'static str, OsString)> = Vec::new();
        match (replica.executor, device(replica), &self.simulated) {
            (_, Some(device), Some(simulated)) => {
                add("--simulated", &simulated.library);
                add("--sim-state", &simulated.folder);
                add("--board", Path::new(device));
            }
            (Executor::Torch, Some(device), None) => {
                // Never the CPU in silence.
                add("--device", Path::new("cuda"));
                environment.extend(self.sees(replica, device));
            }
            (Executor::Torch, None, _) => add("--device", Path::new("cpu")),
            (Executor::Modelled, _, _) => {}
        }
        let place = format!("{} of {}", replica.id, service.name);
        let name = if replica.processes > 1 { format!("{place} #{process}") } else { place };
        Program { name, path: self.worker.clone(), arguments, environment, folder: self.folder.clone() }
    }

    /// The device that a worker sees. Software that reads `NVIDIA_VISIBLE_DEVICES` in place of CUDA's own
    /// variable is told the same.
    fn sees(&self, replica: &Replica, device: &str) -> Vec<(&'static str, OsString)> {
        let mut environment: Vec<(&'static str, OsString)> =
            vec![("CUDA_DEVICE_ORDER", "PCI_BUS_ID".into()), ("NVIDIA_VISIBLE_DEVICES", device.into())];
        if shares(replica) {
            environment.push(("CUDA_VISIBLE_DEVICES", "0".into()));
            environment.push(("CUDA_MPS_PIPE_DIRECTORY", self.pipe(device).into()));
            if let Some(percent) = replica.mps_percent {
                environment.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string().into()));
            }
        } else {
            environment.push(("CUDA_VISIBLE_DEVICES", device.into()));
        }
        environment
    }
}

/// Folders that programs need before they start.
pub(super) fn folders(program: &Program) -> impl Iterator<Item = &Path> {
    let is_folder = |name: &str| name.starts_with("CUDA_MPS_") && name.ends_with("_DIRECTORY");
    program.environment.iter().filter(move |(name, _)| is_folder(name)).map(|(_, value)| Path::new(value))
}

/// The replicas that have to be gone before others of a deployment can start: on one device there is no room
/// for two networks, as far as anybody knows. A modelled executor needs no room.
pub(super) fn in_the_way<'a>(present: &'a Deployment, next: &'a Deployment) -> Vec<(&'a str, &'a Replica)> {
    let all = |deployment: &'a Deployment| {
        deployment.services.iter().flat_map(|s| s.replicas.iter().map(move |r| (s.name.as_str(), r)))
    };
    let is_there = |(service, replica): &(&str, &Replica), of: &'a Deployment| {
        all(of).any(|(s, r)| s == *service && r.id == replica.id && r.epoch == replica.epoch)
    };
    let new: Vec<&Replica> = all(next).filter(|one| !is_there(one, present)).map(|(_, r)| r).collect();
    let needs_room = |old: &Replica| {
        let device = device(old).filter(|_| old.executor == Executor::Torch && old.mps_percent.is_none());
        device.is_some_and(|device| {
            new.iter().any(|new| new.executor == Executor::Torch && self::device(new) == Some(device))
        })
    };
    all(present).filter(|one| !is_there(one, next)).filter(|(_, old)| needs_room(old)).collect()
}

/// Gives each replica that is new on its place a higher epoch than the one before it there, and each that
/// stays its own: the worker of a replica keeps running only if its service, network, device and executor do.
pub fn number(deployment: &mut Deployment, present: &Deployment) {
    let all = || present.services.iter().flat_map(|s| s.replicas.iter().map(move |r| (s, r)));
    for service in &mut deployment.services {
        let (name, model) = (&service.name, &service.model);
        for replica in &mut service.replicas {
            let stays = |(s, r): &(&Service, &Replica)| {
                s.name == *name
                    && s.model.artifact == model.artifact
                    && s.model.signature == model.signature
                    && r.id == replica.id
                    && (&r.gpu, &r.mig_device, r.mps_percent, r.executor)
                        == (&replica.gpu, &replica.mig_device, replica.mps_percent, replica.executor)
            };
            let highest = all().filter(|(_, r)| r.id == replica.id).map(|(_, r)| r.epoch + 1).max();
            replica.epoch = match all().find(stays) {
                Some((_, same)) => same.epoch,
                None => highest.unwrap_or(0),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::trial::{deployment, replica};

    fn torch(id: &str, device: &str) -> Replica {
        let mig_device = Some(device.to_owned());
        Replica { gpu: Some("GPU-1".into()), mig_device, executor: Executor::Torch, ..replica(id) }
    }

    fn launch(simulated: bool) -> Launch {
        let machine = SimulatedMachine { library: "/l/libsim.so".into(), folder: "/sim".into() };
        Launch {
            worker: "/bin/ent-worker".into(),
            folder: "/state".into(),
            simulated: simulated.then_some(machine),
        }
    }

    fn words(program: &Program) -> String {
        let environment = program.environment.iter().map(|(k, v)| format!("{k}={}", v.display()));
        let arguments = program.arguments.iter().map(|a| a.display().to_string());
        environment.chain(arguments).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_worker_sees_its_mig_device_and_no_other() {
        let programs = launch(false).programs(&deployment(&[("net", torch("gpu0/1g.10gb@3", "MIG-7"))]));
        let told: Vec<String> = programs.values().map(words).collect();
        assert_eq!(
            told,
            [
                "CUDA_DEVICE_ORDER=PCI_BUS_ID NVIDIA_VISIBLE_DEVICES=MIG-7 CUDA_VISIBLE_DEVICES=MIG-7 --socket \
              workers.sock --service net --replica gpu0/1g.10gb@3 --epoch 0 --process 0 --executor torch --device cuda"
            ]
        );
    }

    #[test]
    fn processes_that_share_a_device_share_its_mps_daemon() {
        let mut shared = torch("gpu0/mps@0", "MIG-7");
        (shared.processes, shared.mps_percent) = (2, Some(40));
        let programs = launch(false).programs(&deployment(&[("net", shared)]));
        assert_eq!(programs.len(), 3);
        assert_eq!(programs.keys().next(), Some(&Key::Mps("MIG-7".into())));
        let told: Vec<String> = programs.values().map(words).collect();
        assert!(told[0].contains("CUDA_VISIBLE_DEVICES=MIG-7 CUDA_MPS_PIPE_DIRECTORY=/state/mps/MIG-7"));
        for worker in &told[1..] {
            assert!(worker.contains("CUDA_VISIBLE_DEVICES=0 CUDA_MPS_PIPE_DIRECTORY=/state/mps/MIG-7"));
            assert!(worker.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=40"));
        }
    }

    #[test]
    fn a_worker_on_a_simulated_board_sits_on_it() {
        let mut modelled = torch("gpu0/1g.10gb@3", "MIG-7");
        modelled.executor = Executor::Modelled;
        let programs = launch(true).programs(&deployment(&[("net", modelled)]));
        let told: Vec<String> = programs.values().map(words).collect();
        assert!(told[0].ends_with("--simulated /l/libsim.so --sim-state /sim --board MIG-7"), "{told:?}");
    }

    #[test]
    fn a_worker_without_a_board_runs_on_the_cpu() {
        let cpu = Replica { executor: Executor::Torch, ..replica("cpu0") };
        let programs = launch(false).programs(&deployment(&[("net", cpu)]));
        assert!(words(programs.values().next().unwrap()).ends_with("--device cpu"));
    }

    #[test]
    fn another_service_on_the_same_place_is_another_epoch() {
        let present = deployment(&[("a", torch("gpu0/1g@0", "MIG-1")), ("b", torch("gpu0/1g@1", "MIG-2"))]);
        let mut next = present.clone();
        number(&mut next, &present);
        assert_eq!(next, present);
        next = deployment(&[("b", torch("gpu0/1g@0", "MIG-1")), ("a", torch("gpu0/2g@2", "MIG-3"))]);
        number(&mut next, &present);
        let epochs: Vec<u64> = next.services.iter().map(|s| s.replicas[0].epoch).collect();
        assert_eq!(epochs, [1, 0]);
        // Back again is not what was there at first: its workers are gone.
        let mut back = deployment(&[("a", torch("gpu0/1g@0", "MIG-1"))]);
        number(&mut back, &next);
        assert_eq!(back.services[0].replicas[0].epoch, 2);
    }

    #[test]
    fn only_networks_on_one_device_are_in_each_others_way() {
        let present = deployment(&[("a", torch("gpu0/1g@0", "MIG-1")), ("b", torch("gpu0/1g@1", "MIG-2"))]);
        let mut next = deployment(&[("c", torch("gpu0/1g@0", "MIG-1")), ("b", torch("gpu0/1g@1", "MIG-2"))]);
        number(&mut next, &present);
        let ids: Vec<&str> = in_the_way(&present, &next).iter().map(|(_, r)| r.id.as_str()).collect();
        assert_eq!(ids, ["gpu0/1g@0"]);
        for replicas in next.services.iter_mut().map(|s| &mut s.replicas) {
            replicas.iter_mut().for_each(|r| r.executor = Executor::Modelled);
        }
        assert!(in_the_way(&present, &next).is_empty());
    }
}
