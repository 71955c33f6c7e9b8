//! The machine that a command is about: which library answers, where entc remembers it, which node it is.
//!
//! Nothing is chosen in silence: which library talks to which machine is printed before anything else, also
//! when little is to be said.

mod boards;
mod half_way;
mod library;
mod node;
mod simulated;
mod trouble;

pub(crate) use boards::{boards_of, fill, fits};
pub(crate) use half_way::{HalfWay, half_way};
pub(crate) use node::{of_plan, this_node};
pub(crate) use simulated::make_if_missing;
pub(crate) use trouble::{
    device, failed, failed_step, going_back, persistence, refusals, stale, store, wrong_simulation,
};

use crate::arguments;
use crate::exit::Stop;
use ent_machine::observed::{GpuUuid, Observed};
use ent_machine::store::Store;
use ent_machine::{Driver, Library};
use std::path::{Path, PathBuf};

/// A machine that can be talked to.
pub(crate) struct Machine {
    /// Its driver.
    pub(crate) driver: Driver,
    /// Which library answers.
    pub(crate) library: Library,
}

/// Where entc's state of a machine is, unless the user says otherwise.
const STATE: &str = "/var/lib/entc";

/// The library that a command line names; the system's unless it names one.
///
/// # Errors
/// When the simulated library or a folder for its machine cannot be found.
pub(crate) fn choose(arguments: &arguments::Library) -> Result<Library, Stop> {
    library::choose(arguments)
}

/// The worker's executable.
///
/// # Errors
/// When it is nowhere.
pub(crate) fn worker() -> Result<PathBuf, Stop> {
    library::worker()
}

/// Opens a library, and says which.
///
/// # Errors
/// When it is not there, cannot be loaded, has no driver, or no machine to simulate.
pub(crate) fn open(library: Library) -> Result<Machine, Stop> {
    crate::bug::processing("machine");
    let driver = Driver::open(&library).map_err(|error| trouble::not_open(&library, &error))?;
    crate::terminal::error_line(&format!("nvml: {}", told(&library)));
    Ok(Machine { driver, library })
}

impl Machine {
    /// Chooses and opens.
    ///
    /// # Errors
    /// As [`choose`] and [`open`].
    pub(crate) fn of(arguments: &arguments::Library) -> Result<Self, Stop> {
        open(choose(arguments)?)
    }

    /// Reads the whole machine.
    ///
    /// # Errors
    /// When a GPU cannot be read.
    pub(crate) fn observe(&self) -> Result<Observed, Stop> {
        crate::bug::processing("observed");
        self.driver.observe().map_err(|error| device(&error).into())
    }
}

/// What talks to which machine: `simulated machine in DIR (libent_nvml_sim.so)`.
pub(crate) fn told(library: &Library) -> String {
    match library {
        Library::System => "the system's libnvidia-ml.so.1".to_owned(),
        Library::Path(path) => path.display().to_string(),
        Library::Simulated { library, state } => {
            let name = library.file_name().unwrap_or(library.as_os_str());
            format!("simulated machine in {} ({})", state.display(), name.display())
        }
    }
}

/// The store of a machine's state and journal.
pub(crate) fn store_of(arguments: &arguments::Machine, library: &Library) -> Store {
    Store::at(&state_folder(arguments, library))
}

/// The folder of a machine's state and journal. A simulated machine's is inside its own, so that the state
/// of a machine that does not exist never mixes with that of one that does.
pub(crate) fn state_folder(arguments: &arguments::Machine, library: &Library) -> PathBuf {
    match (&arguments.state, library) {
        (Some(folder), _) => folder.clone(),
        (None, Library::Simulated { state, .. }) => state.join("entc"),
        (None, Library::System | Library::Path(_)) => Path::new(STATE).to_path_buf(),
    }
}

/// The GPUs that the user names, by index or UUID.
///
/// # Errors
/// A name that no GPU has.
pub(crate) fn named_gpus(names: &[String], observed: &Observed) -> Result<Vec<GpuUuid>, Stop> {
    let find = |name: &String| {
        let is_it =
            |gpu: &&ent_machine::observed::ObservedGpu| gpu.uuid.0 == *name || name.parse() == Ok(gpu.index);
        observed.gpus.iter().find(is_it).map(|gpu| gpu.uuid.clone()).ok_or_else(|| {
            let known: Vec<String> =
                observed.gpus.iter().map(|g| format!("{} ({})", g.index, g.uuid)).collect();
            Stop::Refused {
                code: "unknown-gpu",
                message: format!("this machine has no GPU `{name}`"),
                help: Some(format!("name one of: {}", known.join(", "))),
            }
        })
    };
    names.iter().map(find).collect()
}
