//! One simulated board, the driver over it, and entc's store, in a folder in memory where there is one.

use ent_machine::apply::{Event, Means, Outcome, Report, Request, apply};
use ent_machine::changes::Changes;
use ent_machine::error::ApplyError;
use ent_machine::journal::Transaction;
use ent_machine::observed::{GpuUuid, Observed, ObservedGpu, ObservedInstance};
use ent_machine::preflight::Allowed;
use ent_machine::store::{Locked, Store};
use ent_machine::target::{ClockTarget, Target, TargetGpu, TargetInstance};
use ent_machine::{Driver, Library};
use ent_nvml_sim::description::{DescribedGpu, Description};
use ent_nvml_sim::machine::{LIBRARY, built_library};
use ent_nvml_sim::silicon::{Device, Silicon};
use ent_plan::device::{Board, Layout, PlacedProfile, board};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// The one GPU.
pub(crate) const GPU: Device = Device::Gpu(0);

/// A machine with one GPU, whose MIG mode is on.
pub(crate) struct Lab {
    // Declared, and so dropped, before its folder: the driver has the library open. `None` while it is opened
    // anew.
    driver: Option<Driver>,
    pub(crate) board: Board,
    pub(crate) uuid: GpuUuid,
    pub(crate) silicon: ent_nvml_sim::store::Store,
    pub(crate) store: Locked,
    folder: TempDir,
}

impl Lab {
    pub(crate) fn new(id: &str) -> Self {
        // Every line of a journal waits for its disk, and it is not disks that are tried here.
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap();
        let machine = folder.path().join("machine");
        let gpu = DescribedGpu { board: id.to_owned(), count: 1, mig: true, ..DescribedGpu::default() };
        // Later than the least driver of every board in the catalogue.
        Description { gpu: vec![gpu], ..Description::of("590.10", &[]) }.write(&machine).unwrap();
        // A library of its own: a loaded one is a client of one machine at a time.
        std::fs::copy(built_library().unwrap(), folder.path().join(LIBRARY)).unwrap();
        let silicon = ent_nvml_sim::store::Store::open(&machine).unwrap();
        let uuid = GpuUuid(silicon.with(|silicon| silicon.uuid(GPU)).unwrap().unwrap());
        let store =
            Store::open(&folder.path().join("entc")).unwrap().lock("layouts", Duration::ZERO).unwrap();
        Self { driver: Some(open(folder.path())), board: board(id).unwrap(), uuid, silicon, store, folder }
    }

    /// Turns the machine off and on.
    pub(crate) fn reboot(&mut self) {
        self.change(Silicon::reboot);
        // The library is open once at a time.
        self.driver = None;
        self.driver = Some(open(self.folder.path()));
    }

    pub(crate) fn driver(&self) -> &Driver {
        self.driver.as_ref().unwrap()
    }

    /// Does something past NVML.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Silicon) -> T) -> T {
        self.silicon.with_mut(change).unwrap()
    }

    pub(crate) fn observe(&self) -> Observed {
        self.driver().observe().unwrap()
    }

    /// The wish that the GPU be cut so; `is_fixed`: at these very places, as when going back.
    pub(crate) fn wish(&self, layout: &Layout, is_fixed: bool) -> Target {
        let instance = |placed: &PlacedProfile| {
            let profile = &self.board.profiles[placed.profile];
            TargetInstance {
                profile: profile.name.clone(),
                start: placed.start,
                size: profile.n_memory_slices,
                is_fixed,
                service: (!is_fixed).then(|| format!("on {}g", profile.n_compute_slices)),
            }
        };
        let gpu = TargetGpu {
            mig: Some(true),
            services: Vec::new(),
            persistence: None,
            instances: layout.iter().map(instance).collect(),
            sm_clock: ClockTarget::Leave,
            power_limit_mw: None,
        };
        Target { gpus: [(self.uuid.clone(), gpu)].into() }
    }

    /// What these instances are as a layout.
    pub(crate) fn layout(&self, gpu: &ObservedGpu) -> Layout {
        let placed = |instance: &ObservedInstance| {
            let profile = self.board.profiles.iter().position(|p| p.name == instance.profile).unwrap();
            PlacedProfile { profile, start: instance.start }
        };
        gpu.instances.iter().map(placed).collect()
    }

    /// A whole transaction.
    pub(crate) fn apply(
        &self,
        observed: &Observed,
        target: &Target,
        changes: &Changes,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> (Report, Result<(), ApplyError>) {
        let request = Request {
            transaction: Transaction::Apply,
            plan: Some("sha256:layouts"),
            node: Some("node"),
            observed,
            target,
            changes,
        };
        apply(&mut self.means(tell), &request)
    }

    pub(crate) fn means<'a>(&'a self, tell: &'a mut dyn FnMut(Event<'_>)) -> Means<'a> {
        Means {
            driver: self.driver(),
            store: &self.store,
            allowed: Allowed { reset: true },
            is_privileged: true,
            keep_going: false,
            is_interrupted: &|| false,
            tell,
        }
    }
}

fn open(folder: &Path) -> Driver {
    let (library, state) = (folder.join(LIBRARY), folder.join("machine"));
    Driver::open(&Library::Simulated { library, state }).unwrap()
}

/// Whether a transaction ended with the machine as wished.
#[track_caller]
pub(crate) fn assert_done((report, result): &(Report, Result<(), ApplyError>)) {
    assert!(result.is_ok() && report.outcome == Outcome::Done, "{result:?}\n{report:?}");
}
