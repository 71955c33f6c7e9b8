//! A simulated machine, a store, and what an observer from outside sees of both.

use ent_machine::observed::GpuUuid;
use ent_machine::state::State;
use ent_machine::store::Store;
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::Description;
use ent_nvml_sim::machine::{LIBRARY, built_library};
use ent_nvml_sim::silicon::{Device, Silicon, state};
use ent_plan::device::Board;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;
use tempfile::TempDir;

/// A folder in memory where there is one: every line of a journal waits for its disk.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}

/// The catalogue, read once.
pub(crate) fn board(id: &str) -> &'static Board {
    static BOARDS: LazyLock<BTreeMap<&'static str, Board>> = LazyLock::new(|| {
        ent_plan::device::board_ids().map(|id| (id, ent_plan::device::board(id).unwrap())).collect()
    });
    &BOARDS[id]
}

/// A library of its own for one test: a loaded library is a client of one machine at a time.
pub(crate) struct Lab {
    folder: TempDir,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = folder();
        std::fs::copy(built_library().unwrap(), folder.path().join(LIBRARY)).unwrap();
        Self { folder }
    }

    pub(crate) fn world(&self, description: &Description) -> World {
        let folder = folder();
        let machine = folder.path().join("machine");
        description.write(&machine).unwrap();
        let silicon = ent_nvml_sim::store::Store::open(&machine).unwrap();
        let boards =
            description.gpu.iter().flat_map(|gpu| std::iter::repeat_n(board(&gpu.board), gpu.count as usize));
        let boards: Vec<&Board> = boards.collect();
        let uuid = |gpu: usize| silicon.with(|s| GpuUuid(s.uuid(Device::Gpu(gpu)).unwrap())).unwrap();
        let uuids = (0..boards.len()).map(uuid).collect();
        World { library: self.folder.path().join(LIBRARY), folder, silicon, boards, uuids }
    }
}

/// A machine with a store.
pub(crate) struct World {
    pub(crate) library: PathBuf,
    folder: TempDir,
    silicon: ent_nvml_sim::store::Store,
    /// By index.
    pub(crate) boards: Vec<&'static Board>,
    pub(crate) uuids: Vec<GpuUuid>,
}

impl World {
    pub(crate) fn machine(&self) -> PathBuf {
        self.folder.path().join("machine")
    }

    pub(crate) fn store_folder(&self) -> PathBuf {
        self.folder.path().join("entc")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.store_folder()).unwrap()
    }

    pub(crate) fn state(&self) -> State {
        self.store().state().unwrap()
    }

    /// Whether the last transaction is over.
    pub(crate) fn is_open(&self) -> bool {
        self.store().journal().unwrap().is_some_and(|journal| journal.is_open())
    }

    pub(crate) fn driver(&self) -> Driver {
        Driver::open(&Library::Simulated { library: self.library.clone(), state: self.machine() }).unwrap()
    }

    pub(crate) fn lock(&self) -> ent_machine::store::Locked {
        self.store().lock("test", Duration::ZERO).unwrap()
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Silicon) -> T) -> T {
        self.silicon.with_mut(change).unwrap()
    }

    /// What is to go wrong from now on; nothing when empty.
    pub(crate) fn set_faults(&self, faults: &serde_json::Value) {
        let path = self.machine().join(ent_nvml_sim::faults::FILE);
        std::fs::write(path, faults.to_string()).unwrap();
    }

    /// The same machine and store once more, in other folders.
    pub(crate) fn copy(&self, lab: &Lab) -> World {
        let folder = folder();
        for name in ["machine", "entc"] {
            let (from, to) = (self.folder.path().join(name), folder.path().join(name));
            std::fs::create_dir(&to).unwrap();
            for entry in std::fs::read_dir(&from).into_iter().flatten() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
        let silicon = ent_nvml_sim::store::Store::open(&folder.path().join("machine")).unwrap();
        World {
            library: lab.folder.path().join(LIBRARY),
            folder,
            silicon,
            boards: self.boards.clone(),
            uuids: self.uuids.clone(),
        }
    }

    /// The machine, seen past NVML.
    pub(crate) fn snapshot(&self) -> Snapshot {
        snapshot(&self.machine(), &self.uuids)
    }

    /// The machine's name for a boot.
    pub(crate) fn boot_id(&self) -> String {
        self.silicon.with(Silicon::boot_id).unwrap()
    }

    /// Takes the end of the last line of the journal away, as a crash while it was written does.
    pub(crate) fn tear_end(&self) {
        let path = self.store().journal_path();
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() - 5).unwrap();
    }
}

/// A machine from outside, without what moves by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) boot: u64,
    pub(crate) gpus: Vec<Gpu>,
}

/// A GPU from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Gpu {
    pub(crate) uuid: GpuUuid,
    pub(crate) mig: bool,
    pub(crate) mig_pending: bool,
    pub(crate) is_persistent: bool,
    pub(crate) locked: Option<(u32, u32)>,
    /// As shipped, where it was not set.
    pub(crate) power_limit_mw: Option<u32>,
    pub(crate) is_lost: bool,
    /// By start.
    pub(crate) instances: Vec<Instance>,
}

/// A GPU instance from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Instance {
    /// Never given twice: who has the same one was not touched.
    pub(crate) serial: u64,
    pub(crate) profile: String,
    pub(crate) start: u32,
    pub(crate) size: u32,
    /// Serials of its compute instances.
    pub(crate) compute: Vec<u64>,
    /// Whether it has one compute instance, with all its compute slices.
    pub(crate) is_whole: bool,
}

impl Instance {
    pub(crate) fn place(&self) -> (u32, u32, &str) {
        (self.start, self.size, &self.profile)
    }
}

pub(crate) fn snapshot(machine: &Path, uuids: &[GpuUuid]) -> Snapshot {
    let text = std::fs::read(machine.join(ent_nvml_sim::store::STATE_FILE)).unwrap();
    let state: state::State = serde_json::from_slice(&text).unwrap();
    let gpus = state.gpus.iter().zip(uuids).map(|(gpu, uuid)| {
        let board = board(&gpu.board);
        let shipped = board.power_limits.map(|limits| (limits.default.0 * 1000.0).round() as u32);
        let mut instances: Vec<Instance> = gpu.instances.iter().map(|i| instance(board, i)).collect();
        instances.sort_by_key(|i| i.start);
        Gpu {
            uuid: uuid.clone(),
            mig: gpu.mig,
            mig_pending: gpu.mig_pending,
            is_persistent: gpu.is_persistent,
            locked: gpu.locked_clocks,
            power_limit_mw: gpu.power_limit_mw.or(shipped),
            is_lost: gpu.is_lost,
            instances,
        }
    });
    Snapshot { boot: state.boot, gpus: gpus.collect() }
}

fn instance(board: &Board, instance: &state::GpuInstance) -> Instance {
    let is_it =
        |profile: &&ent_plan::device::GpuInstanceProfile| profile.gi_profile_id == Some(instance.profile_id);
    let profile = board.profiles.iter().find(is_it).unwrap();
    let width = |compute: &state::ComputeInstance| compute.placement.size;
    Instance {
        serial: instance.serial,
        profile: profile.name.clone(),
        start: instance.placement.start,
        size: instance.placement.size,
        compute: instance.compute_instances.iter().map(|compute| compute.serial).collect(),
        is_whole: instance.compute_instances.iter().map(width).eq([profile.n_compute_slices]),
    }
}
