//! A plan that is applied, and the machine as it is → what is to run on it.
//!
//! A plan says which instances there are to be; which MIG device one became is seen on the machine, and which
//! service has it in entc's state.

use crate::exit::{Stop, Trouble};
use ent_machine::observed::{Observed, ObservedGpu, ObservedInstance};
use ent_machine::state::{InstanceState, State};
use ent_plan::plan::{Gpu, Instance, Plan, Sharing};
use ent_serve::deployment::{Deployment, FORMAT_VERSION, Replica, Service, can_be_called};
use ent_wire::{Executor, Model};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files of networks, by name: absolute paths.
pub(super) type Artifacts = BTreeMap<String, PathBuf>;

/// The files of a plan's networks. A path that is not absolute is relative to the working folder.
pub(super) fn artifacts(plan: &Plan) -> Artifacts {
    let absolute = |path: &str| std::path::absolute(path).unwrap_or_else(|_| Path::new(path).to_path_buf());
    plan.models.iter().map(|model| (model.name.clone(), absolute(&model.artifact))).collect()
}

/// The files of networks that a deployment has; where its plan is applied again, from another folder perhaps.
pub(super) fn artifacts_of(deployment: &Deployment) -> Artifacts {
    let file = |service: &Service| {
        Some((service.model.name.clone(), PathBuf::from(service.model.artifact.as_ref()?)))
    };
    deployment.services.iter().filter_map(file).collect()
}

/// Refuses networks whose files are not there, or are too large for an instance that is to run them, before
/// anything is changed. On a simulated machine no network runs, and no file is needed.
///
/// # Errors
/// Every service that cannot be called by its name, every file that is missing, and every instance that is too
/// small.
pub(super) fn can_run(
    plan: &Plan,
    node: &str,
    artifacts: &Artifacts,
    observed: &Observed,
) -> Result<(), Stop> {
    let unnamed = plan.services.iter().filter(|s| !can_be_called(&s.name)).map(|service| {
        Trouble::new(
            "service-name",
            format!("`{}` cannot be called: a service's name is a part of a URL's path", service.name),
            "name it with letters, digits, `-`, `_`, `.` and `~`, or apply with `--no-serve`",
        )
    });
    let unnamed: Vec<Trouble> = unnamed.collect();
    if !unnamed.is_empty() {
        return Err(Stop::World(unnamed));
    }
    if observed.is_simulated {
        return Ok(());
    }
    let missing = artifacts.iter().filter(|(_, path)| !path.is_file()).map(|(name, path)| {
        Trouble::new(
            "missing-artifact",
            format!("the network of model `{name}` is not there: `{}`", path.display()),
            "put the TorchScript file there, or apply with `--no-serve`",
        )
    });
    let mut troubles: Vec<Trouble> = missing.collect();
    let mut told = BTreeSet::new();
    for planned in plan.gpus.iter().filter(|gpu| gpu.node == node) {
        let menu = on_machine(planned, observed).map(|gpu| gpu.profiles.as_slice()).unwrap_or_default();
        for instance in &planned.instances {
            let profile = menu.iter().find(|profile| Some(&profile.name) == instance.profile.as_ref());
            let file = artifacts.get(&instance.model).and_then(|path| path.metadata().ok());
            let (Some(profile), Some(file)) = (profile, file) else { continue };
            // Weights alone: each process loads its own.
            let needed = file.len().saturating_mul(u64::from(instance.processes)) >> 20;
            if needed > profile.memory_mib && told.insert((&instance.model, &profile.name)) {
                troubles.push(Trouble::new(
                    "model-too-large",
                    format!(
                        "model `{}` has at least {needed} MiB of weights in {} process(es); `{}` has {} MiB",
                        instance.model, instance.processes, profile.name, profile.memory_mib
                    ),
                    "write `memory = …` at the model, so that it is planned on larger instances",
                ));
            }
        }
    }
    if troubles.is_empty() { Ok(()) } else { Err(Stop::World(troubles)) }
}

/// What is to run on the node.
///
/// # Errors
/// `no-instance` when the machine has no MIG device for an instance of the plan.
pub(super) fn deployment(
    plan: &Plan,
    node: &str,
    observed: &Observed,
    state: &State,
    artifacts: &Artifacts,
) -> Result<Deployment, Stop> {
    let mut replicas: BTreeMap<&str, Vec<Replica>> = BTreeMap::new();
    let mut models: BTreeMap<&str, &str> = BTreeMap::new();
    for planned in plan.gpus.iter().filter(|gpu| gpu.node == node) {
        let gpu = on_machine(planned, observed)?;
        let places = places(planned, gpu, state)?;
        for (instance, (id, mig_device)) in planned.instances.iter().zip(places) {
            let artifact = artifacts.get(&instance.model);
            let executor = match artifact {
                Some(_) if !observed.is_simulated => Executor::Torch,
                _ => Executor::Modelled,
            };
            models.entry(instance.service.as_str()).or_insert(instance.model.as_str());
            replicas.entry(instance.service.as_str()).or_default().push(Replica {
                id,
                epoch: 0,
                node: node.to_owned(),
                index: planned.index,
                gpu: Some(gpu.uuid.0.clone()),
                mig_device,
                mps_percent: instance.mps_percent,
                processes: instance.processes,
                batch: instance.batch,
                max_wait_ms: instance.max_wait_ms,
                batch_times_ms: instance.batch_times_ms.clone(),
                batch_energy_j: instance.batch_energy_j.clone(),
                rate_rps: instance.rate_rps,
                executor,
            });
        }
    }
    let service = |service: &ent_plan::plan::Service| {
        let replicas = replicas.remove(service.name.as_str())?;
        let name = (*models.get(service.name.as_str())?).to_owned();
        let artifact = artifacts.get(&name).filter(|_| !observed.is_simulated);
        Some(Service {
            name: service.name.clone(),
            model: Model { artifact: artifact.map(|path| path.display().to_string()), name, signature: None },
            percentile: service.percentile,
            promised_latency_ms: service.promised_latency_ms,
            arrivals: service.arrivals.clone(),
            rate_rps: replicas.iter().map(|r| r.rate_rps).sum(),
            replicas,
        })
    };
    let services = plan.services.iter().filter_map(service).collect();
    Ok(Deployment { format_version: FORMAT_VERSION.to_owned(), plan: plan.checksum.clone(), services })
}

/// The GPU that a planned board is.
fn on_machine<'a>(planned: &Gpu, observed: &'a Observed) -> Result<&'a ObservedGpu, Stop> {
    let is_it = |gpu: &&ObservedGpu| match &planned.uuid {
        Some(uuid) => gpu.uuid.0 == *uuid,
        None => gpu.index == planned.index,
    };
    observed.gpus.iter().find(is_it).ok_or_else(|| missing(planned, "the GPU"))
}

fn missing(planned: &Gpu, what: &str) -> Stop {
    Trouble::new(
        "no-instance",
        format!("{what} that the plan has on gpu {} is not there", planned.index),
        "see what drifted with `entc drift`, and apply the plan again",
    )
    .into()
}

/// The place of each planned instance, in the plan's order: its name, and the MIG device.
fn places(planned: &Gpu, gpu: &ObservedGpu, state: &State) -> Result<Vec<(String, Option<String>)>, Stop> {
    let index = gpu.index;
    match planned.sharing {
        Sharing::Whole => Ok(planned.instances.iter().map(|_| (format!("gpu{index}/whole"), None)).collect()),
        Sharing::Mps => {
            Ok((0..planned.instances.len()).map(|share| (format!("gpu{index}/mps@{share}"), None)).collect())
        }
        Sharing::Mig => {
            let ours = state.gpus.get(&gpu.uuid).map(|gpu| gpu.instances.as_slice()).unwrap_or_default();
            let taken = join(&planned.instances, &gpu.instances, ours);
            let named = taken.into_iter().zip(&planned.instances).map(|(instance, wanted)| {
                let profile = wanted.profile.as_deref().unwrap_or_default();
                let found = instance.and_then(|i| Some((i, i.mig_device()?)));
                let Some((instance, device)) = found else {
                    return Err(missing(planned, &format!("the instance {profile} of `{}`", wanted.service)));
                };
                let id = format!("gpu{index}/{}@{}", instance.profile, instance.start);
                Ok((id, Some(device.0.clone())))
            });
            named.collect()
        }
    }
}

/// Which of the machine's instances each planned one became. The plan's own place first, if it carries the
/// service; then one that entc made for the service; then any of the profile.
fn join<'a>(
    planned: &[Instance],
    there: &'a [ObservedInstance],
    ours: &[InstanceState],
) -> Vec<Option<&'a ObservedInstance>> {
    let mut taken: Vec<Option<usize>> = vec![None; planned.len()];
    let carries = |instance: &ObservedInstance, service: &str| {
        ours.iter().any(|o| o.is_at(instance) && o.service.as_deref() == Some(service))
    };
    let is_profile = |instance: &ObservedInstance, wanted: &Instance| {
        Some(instance.profile.as_str()) == wanted.profile.as_deref()
    };
    type Rule<'r> = &'r dyn Fn(&ObservedInstance, &Instance) -> bool;
    let rules: [Rule<'_>; 3] = [
        &|i, wanted| Some(i.start) == wanted.start && carries(i, &wanted.service),
        &|i, wanted| carries(i, &wanted.service),
        &|_, _| true,
    ];
    for rule in rules {
        for (place, wanted) in planned.iter().enumerate() {
            if taken.get(place).is_some_and(Option::is_none) {
                let free = |index: &usize| !taken.contains(&Some(*index));
                let found = (0..there.len()).filter(free).find(|index| {
                    there.get(*index).is_some_and(|i| is_profile(i, wanted) && rule(i, wanted))
                });
                if let Some(slot) = taken.get_mut(place) {
                    *slot = found;
                }
            }
        }
    }
    taken.into_iter().map(|index| index.and_then(|index| there.get(index))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_machine::observed::{GpuUuid, MigDeviceUuid, ObservedComputeInstance};
    use ent_machine::state::GpuState;

    fn there(profile: &str, start: u32) -> ObservedInstance {
        let uuid = Some(MigDeviceUuid(format!("MIG-{start}")));
        ObservedInstance {
            gpu_instance_id: start + 7,
            profile: profile.to_owned(),
            profile_id: 19,
            start,
            size: 1,
            compute_instances: vec![ObservedComputeInstance { id: 0, is_whole: true, uuid }],
        }
    }

    fn ours(profile: &str, start: u32, service: &str) -> InstanceState {
        InstanceState { profile: profile.to_owned(), start, size: 1, service: Some(service.to_owned()) }
    }

    /// The sample plan, its two instances being of two services on `1g.10gb`.
    fn plan() -> Plan {
        let mut plan = ent_plan::plan::sample::plan();
        for (instance, (service, start)) in plan.gpus[0].instances.iter_mut().zip([("a", 0), ("b", 1)]) {
            instance.profile = Some("1g.10gb".to_owned());
            (instance.service, instance.start, instance.size) = (service.to_owned(), Some(start), Some(1));
        }
        plan.gpus.truncate(1);
        plan.gpus[0].uuid = None;
        let service = plan.services[0].clone();
        plan.services = ["a", "b"]
            .map(|name| ent_plan::plan::Service { name: name.to_owned(), ..service.clone() })
            .to_vec();
        plan
    }

    fn machine(instances: Vec<ObservedInstance>, is_simulated: bool) -> Observed {
        let plan = plan();
        Observed {
            driver_version: "575".into(),
            library: "lib".into(),
            is_simulated,
            boot_id: "boot".into(),
            gpus: vec![ObservedGpu {
                uuid: GpuUuid("GPU-1".into()),
                index: plan.gpus[0].index,
                name: "A100".into(),
                pci_bus_id: String::new(),
                pci_device_id: String::new(),
                board: Some(plan.gpus[0].board.clone()),
                mig: None,
                is_persistent: None,
                sm_clock_mhz: None,
                supported_sm_clocks_mhz: Vec::new(),
                power_limit_mw: None,
                default_power_limit_mw: None,
                power_mw: None,
                energy_mj: None,
                profiles: Vec::new(),
                instances,
                unplaced: Vec::new(),
                holders: Vec::new(),
            }],
            unreadable: Vec::new(),
        }
    }

    fn state(instances: Vec<InstanceState>) -> State {
        let gpu = GpuState { instances, ..GpuState::default() };
        State { gpus: [(GpuUuid("GPU-1".into()), gpu)].into(), ..State::default() }
    }

    fn ids(deployment: &Deployment) -> Vec<(String, Option<String>)> {
        let all = deployment.services.iter().flat_map(|s| &s.replicas);
        all.map(|r| (r.id.clone(), r.mig_device.clone())).collect()
    }

    #[test]
    fn a_replica_sits_where_its_service_was_put_and_not_where_the_plan_thought() {
        let plan = plan();
        let node = plan.gpus[0].node.clone();
        let observed = machine(vec![there("1g.10gb", 2), there("1g.10gb", 5)], true);
        let state = state(vec![ours("1g.10gb", 2, "b"), ours("1g.10gb", 5, "a")]);
        let made = deployment(&plan, &node, &observed, &state, &Artifacts::new()).unwrap();
        let index = plan.gpus[0].index;
        assert_eq!(
            ids(&made),
            [
                (format!("gpu{index}/1g.10gb@5"), Some("MIG-5".to_owned())),
                (format!("gpu{index}/1g.10gb@2"), Some("MIG-2".to_owned())),
            ]
        );
        assert!(made.validate().is_ok());
        assert_eq!(made.services[0].replicas[0].executor, Executor::Modelled);
    }

    #[test]
    fn an_instance_that_is_not_there_is_named() {
        let plan = plan();
        let node = plan.gpus[0].node.clone();
        let observed = machine(vec![there("1g.10gb", 0), there("2g.20gb", 2)], true);
        let state = state(vec![ours("1g.10gb", 0, "a")]);
        let Err(Stop::World(troubles)) = deployment(&plan, &node, &observed, &state, &Artifacts::new())
        else {
            panic!()
        };
        assert!(troubles[0].message.contains("1g.10gb of `b`"), "{troubles:?}");
    }

    #[test]
    fn networks_with_a_file_run_on_real_boards_only() {
        let plan = plan();
        let node = plan.gpus[0].node.clone();
        let instances = || vec![there("1g.10gb", 0), there("1g.10gb", 1)];
        let state = state(vec![ours("1g.10gb", 0, "a"), ours("1g.10gb", 1, "b")]);
        let model = plan.gpus[0].instances[0].model.clone();
        let artifacts: Artifacts = [(model, PathBuf::from("/models/net.pt"))].into();
        let of = |simulated| {
            let made =
                deployment(&plan, &node, &machine(instances(), simulated), &state, &artifacts).unwrap();
            (made.services[0].replicas[0].executor, made.services[0].model.artifact.clone())
        };
        assert_eq!(of(true), (Executor::Modelled, None));
        assert_eq!(of(false), (Executor::Torch, Some("/models/net.pt".to_owned())));
        assert!(can_run(&plan, &node, &artifacts, &machine(Vec::new(), true)).is_ok());
        let mut odd = plan.clone();
        odd.services[0].name = "a b".to_owned();
        let refused = can_run(&odd, &node, &artifacts, &machine(Vec::new(), true));
        let Err(Stop::World(troubles)) = refused else { panic!() };
        assert_eq!(troubles[0].code, "service-name");
        assert!(can_run(&plan, &node, &artifacts, &machine(Vec::new(), false)).is_err());
    }

    #[test]
    fn a_network_larger_than_its_instance_is_refused_before_anything_changes() {
        let plan = plan();
        let node = plan.gpus[0].node.clone();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("net.pt");
        // Sparse: it takes no room on the disk.
        std::fs::File::create(&file).unwrap().set_len(5 << 30).unwrap();
        let artifacts: Artifacts = [(plan.gpus[0].instances[0].model.clone(), file)].into();
        let with = |memory_mib| {
            let mut machine = machine(Vec::new(), false);
            machine.gpus[0].profiles = vec![ent_machine::observed::ObservedProfile {
                name: "1g.10gb".into(),
                id: 19,
                n_compute_slices: 1,
                max_instances: 7,
                n_sms: 14,
                memory_mib,
            }];
            can_run(&plan, &node, &artifacts, &machine)
        };
        let Err(Stop::World(troubles)) = with(4864) else { panic!() };
        assert_eq!((troubles.len(), troubles[0].code), (1, "model-too-large"), "{troubles:?}");
        assert!(troubles[0].message.contains("4864 MiB"), "{troubles:?}");
        assert!(with(9728 * 4).is_ok());
    }
}
