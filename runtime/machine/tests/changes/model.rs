//! Boards → a machine in memory that carries steps out and allows nothing a board would not.
//!
//! It shares no rule with what it tests: legality is that of `ent_plan::device::layouts`, which lists every
//! legal layout, and every step that does not fit its state is a panic.

use ent_machine::changes::{Changes, Operation, Step};
use ent_machine::observed::{
    GpuUuid, MigMode, Observed, ObservedComputeInstance, ObservedGpu, ObservedInstance, ObservedProfile,
};
use ent_machine::state::{InstanceState, State};
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_plan::device::{self, Board, PlacedProfile, layouts};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// An instance in short: profile and first memory slice.
pub(crate) type At<'a> = (&'a str, u32);

/// A machine and what NVML would not tell of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) observed: Observed,
    pub(crate) locked: BTreeMap<GpuUuid, (u32, u32)>,
}

static BOARDS: LazyLock<BTreeMap<&'static str, Board>> =
    LazyLock::new(|| device::board_ids().map(|id| (id, device::board(id).unwrap())).collect());

fn board(id: &str) -> Option<&'static Board> {
    BOARDS.get(id)
}

/// `GPU-0`, `GPU-1`, …
pub(crate) fn uuid(index: u32) -> GpuUuid {
    GpuUuid(format!("GPU-{index}"))
}

/// A machine with these boards, MIG mode on, nothing on them.
pub(crate) fn machine(boards: &[&str]) -> Model {
    let gpus = boards.iter().zip(0..).map(|(id, index)| gpu(id, index)).collect();
    let observed = Observed {
        driver_version: "575.57.08".to_owned(),
        library: "libnvidia-ml.so.1".to_owned(),
        is_simulated: true,
        boot_id: "boot-1".to_owned(),
        gpus,
        unreadable: Vec::new(),
    };
    Model { observed, locked: BTreeMap::new() }
}

fn gpu(id: &str, index: u32) -> ObservedGpu {
    let board = board(id).unwrap();
    let profiles = board.profiles.iter().map(|p| ObservedProfile {
        name: p.name.clone(),
        id: p.gi_profile_id.unwrap_or(0),
        n_compute_slices: p.n_compute_slices,
        max_instances: p.max_instances,
        n_sms: p.n_sms.unwrap_or(0),
        memory_mib: 0,
    });
    ObservedGpu {
        uuid: uuid(index),
        index,
        name: board.title.clone(),
        pci_bus_id: format!("00000000:{index:02x}:00.0"),
        pci_device_id: board.pci_device_ids[0].clone(),
        board: Some(id.to_owned()),
        mig: Some(MigMode { current: true, pending: true }),
        is_persistent: Some(true),
        sm_clock_mhz: Some(210),
        supported_sm_clocks_mhz: board.clocks.iter().map(|clock| clock.0).collect(),
        power_limit_mw: Some(300_000),
        default_power_limit_mw: Some(300_000),
        power_mw: None,
        energy_mj: None,
        profiles: profiles.collect(),
        instances: Vec::new(),
        unplaced: Vec::new(),
        holders: Vec::new(),
    }
}

/// An instance with a compute instance as wide as itself.
pub(crate) fn instance(board: &Board, (profile, start): At<'_>) -> ObservedInstance {
    let of_board = board.profile(profile).unwrap();
    let whole = ObservedComputeInstance { id: 0, is_whole: true, uuid: None };
    ObservedInstance {
        // Not the start: ids follow neither creation nor place.
        gpu_instance_id: 20 - start,
        profile: profile.to_owned(),
        profile_id: of_board.gi_profile_id.unwrap_or(0),
        start,
        size: of_board.n_memory_slices,
        compute_instances: vec![whole],
    }
}

impl Model {
    /// The GPU with this index.
    pub(crate) fn gpu(&mut self, index: u32) -> &mut ObservedGpu {
        self.observed.gpus.iter_mut().find(|gpu| gpu.index == index).unwrap()
    }

    /// Puts instances on a GPU.
    pub(crate) fn with(mut self, index: u32, instances: &[At<'_>]) -> Self {
        let gpu = self.gpu(index);
        let board = board(gpu.board.as_ref().unwrap()).unwrap();
        gpu.instances.extend(instances.iter().map(|at| instance(board, *at)));
        gpu.instances.sort_by_key(|i| i.start);
        self
    }

    /// Turns MIG mode off on a GPU, which is empty.
    pub(crate) fn without_mig(mut self, index: u32) -> Self {
        self.gpu(index).mig = Some(MigMode { current: false, pending: false });
        self
    }

    /// Carries steps out.
    pub(crate) fn perform(&mut self, steps: &[Step]) {
        for step in steps {
            self.one(step);
        }
    }

    fn one(&mut self, step: &Step) {
        let gpu = self.observed.gpus.iter_mut().find(|gpu| gpu.uuid == step.gpu).unwrap();
        assert_eq!(gpu.index, step.index);
        let id = gpu.board.clone().unwrap();
        match &step.operation {
            Operation::SetMigMode { enabled, resets } => {
                let mode = gpu.mig.as_mut().expect("MIG mode is set only where there is one");
                let is_ampere = id.starts_with("a100") || id.starts_with("a30");
                assert_eq!(*resets, is_ampere && mode.current != *enabled);
                assert!(mode.current == *enabled || gpu.instances.is_empty(), "instances would be lost");
                *mode = MigMode { current: *enabled, pending: *enabled };
                if *resets {
                    gpu.is_persistent = Some(false);
                    gpu.power_limit_mw = gpu.default_power_limit_mw;
                    self.locked.remove(&gpu.uuid);
                }
            }
            Operation::SetPersistence { enabled } => gpu.is_persistent = Some(*enabled),
            Operation::DestroyInstance { profile, start, size } => {
                let is_it = |i: &ObservedInstance| (&i.profile, i.start, i.size) == (profile, *start, *size);
                let at = gpu.instances.iter().position(is_it).expect("it is there");
                gpu.instances.remove(at);
            }
            Operation::CreateInstance { profile, start, size } => {
                assert!(gpu.mig.unwrap().current, "MIG mode is on");
                let board = board(&id).unwrap();
                let made = instance(board, (profile, *start));
                assert_eq!(made.size, *size);
                match gpu.instances.iter_mut().find(|i| i.start == *start) {
                    Some(orphan) => {
                        assert!(orphan.compute_instances.is_empty() && orphan.profile == *profile);
                        *orphan = ObservedInstance { gpu_instance_id: orphan.gpu_instance_id, ..made };
                    }
                    None => gpu.instances.push(made),
                }
                gpu.instances.sort_by_key(|i| i.start);
                assert!(is_legal(board, &gpu.instances), "{step:?} on {:?}", gpu.instances);
            }
            Operation::LockClocks { min, max } => {
                self.locked.insert(gpu.uuid.clone(), (*min, *max));
            }
            Operation::UnlockClocks => {
                self.locked.remove(&gpu.uuid);
            }
            Operation::SetPowerLimit { milliwatts } => gpu.power_limit_mw = Some(*milliwatts),
        }
    }
}

/// Whether a set of instances is one of the board's legal layouts.
fn is_legal(board: &Board, instances: &[ObservedInstance]) -> bool {
    let of = |i: &ObservedInstance| PlacedProfile {
        profile: board.profiles.iter().position(|p| p.name == i.profile).unwrap(),
        start: i.start,
    };
    let layout: Vec<PlacedProfile> = instances.iter().map(of).collect();
    layouts(board, |profile| layout.iter().any(|placed| placed.profile == profile)).contains(&layout)
}

/// A state in which these instances are ours: GPU, instance, service.
pub(crate) fn ours(model: &Model, instances: &[(u32, At<'_>, &str)]) -> State {
    let mut state = State { boot_id: model.observed.boot_id.clone(), ..State::default() };
    for (index, (profile, start), service) in instances {
        let gpu = model.observed.gpus.iter().find(|gpu| gpu.index == *index).unwrap();
        let size = board(gpu.board.as_ref().unwrap()).unwrap().profile(profile).unwrap().n_memory_slices;
        let service = (!service.is_empty()).then(|| (*service).to_owned());
        let one = InstanceState { profile: (*profile).to_owned(), start: *start, size, service };
        state.gpus.entry(uuid(*index)).or_default().instances.push(one);
    }
    state
}

/// A wish for a GPU that is cut, with its clock as it is: instance and service.
pub(crate) fn cut(board_id: &str, instances: &[(At<'_>, &str)]) -> TargetGpu {
    let board = board(board_id).unwrap();
    let wish = |((profile, start), service): &(At<'_>, &str)| TargetInstance {
        profile: (*profile).to_owned(),
        start: *start,
        size: board.profile(profile).map_or(1, |p| p.n_memory_slices),
        is_fixed: false,
        service: (!service.is_empty()).then(|| (*service).to_owned()),
    };
    TargetGpu {
        mig: Some(true),
        services: Vec::new(),
        persistence: None,
        instances: instances.iter().map(wish).collect(),
        sm_clock: ClockTarget::Leave,
        power_limit_mw: None,
    }
}

/// A wish for some GPUs.
pub(crate) fn wish(gpus: &[(u32, TargetGpu)]) -> Target {
    Target { gpus: gpus.iter().map(|(index, gpu)| (uuid(*index), gpu.clone())).collect() }
}

/// The state after the changes came about: what they keep and create is ours.
pub(crate) fn state_after(before: &State, target: &Target, changes: &Changes, model: &Model) -> State {
    let mut state = before.clone();
    state.boot_id.clone_from(&model.observed.boot_id);
    for (gpu, wish) in &target.gpus {
        let there = changes.kept.iter().chain(&changes.created).filter(|one| one.gpu == *gpu);
        let mut instances: Vec<InstanceState> = there
            .map(|one| InstanceState {
                profile: one.profile.clone(),
                start: one.start,
                size: one.size,
                service: one.service.clone(),
            })
            .collect();
        instances.sort_by_key(|one| one.start);
        let mut made = state.gpus.remove(gpu).unwrap_or_default();
        made.instances = instances;
        match wish.sm_clock {
            ClockTarget::Leave => {}
            ClockTarget::Unlocked => made.locked_sm_clock_mhz = None,
            ClockTarget::Locked { min, max } => made.locked_sm_clock_mhz = Some((min, max)),
        }
        state.gpus.insert(gpu.clone(), made);
    }
    state
}
