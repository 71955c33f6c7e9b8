//! The one handle on NVML: which library answers, what the machine is, one step at a time.
//!
//! Everything goes through the C functions of one loaded library; a simulated machine is another library
//! and not another path. `raw` has the calls that nvml-wrapper lacks and all `unsafe`; `profiles` reads
//! the menu, `observe` the machine, `perform` does a step. No handle of a device outlives a call of this
//! interface: a change of mode may reset the GPU, and its handles die with that.

mod conformance;
mod observe;
mod perform;
mod profiles;
mod raw;
mod rights;

pub use conformance::{Finding, Verdict, conformance};
pub use rights::Rights;

use crate::catalogue;
use crate::changes::Step;
use crate::error::{DeviceError, OpenError};
use crate::observed::{GpuUuid, Observed};
use ent_plan::device::Board;
use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use raw::{Answer, Loaded, Refused};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Which NVML library to talk to. Never chosen in silence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Library {
    /// The system's `libnvidia-ml.so.1`.
    System,
    /// One by path.
    Path(PathBuf),
    /// entc's simulated one, over a machine kept in a folder.
    Simulated {
        /// The library.
        library: PathBuf,
        /// The folder with `machine.toml`.
        state: PathBuf,
    },
}

/// The names under which a system has the library: the first is the driver's own, the second is what some
/// containers and development packages have only.
const SYSTEM: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// The file in the folder of a simulated machine that says what it is.
const DESCRIPTION: &str = "machine.toml";

/// An open NVML library.
pub struct Driver {
    // Declared, and so dropped, before `loaded`: shutting NVML down needs the library.
    nvml: Nvml,
    loaded: Loaded,
    name: String,
    is_simulated: bool,
}

impl Driver {
    /// Loads and starts the library.
    ///
    /// A file of the simulated library simulates one machine at a time in a process: while a driver is
    /// open, another machine needs a copy of the file.
    ///
    /// # Errors
    /// When there is none, it cannot be loaded, or its driver does not run.
    pub fn open(library: &Library) -> Result<Self, OpenError> {
        let (loaded, path) = load(library)?;
        let name = path.display().to_string();
        let is_simulated = loaded.is_simulated();
        if let Library::Simulated { state, .. } = library {
            if !state.join(DESCRIPTION).is_file() {
                return Err(OpenError::NoSimulatedMachine(state.clone()));
            }
            match loaded.simulate(state) {
                None => {
                    let reason = "it is an NVML library, but not entc's simulated one".to_owned();
                    return Err(OpenError::NotLoadable { library: name, reason });
                }
                Some(Err(refused)) => {
                    let what = if refused.kind == raw::INVALID_STATE {
                        "another driver in this process has it open".to_owned()
                    } else {
                        refused.kind.words()
                    };
                    let reason = format!("{}: {what}", state.display());
                    return Err(OpenError::NoDriver { library: name, reason });
                }
                Some(Ok(())) => {}
            }
        }
        let nvml = Nvml::builder().lib_path(path.as_os_str()).init().map_err(|e| not_started(&name, &e))?;
        Ok(Self { nvml, loaded, name, is_simulated })
    }

    /// Reads the whole machine. Needs no rights: what this process may not see is said to be unseen. A
    /// GPU that has fallen off the bus is listed as unreadable and does not hide the others.
    ///
    /// # Errors
    /// When a GPU cannot be read; what it cannot do is `None`, not an error.
    pub fn observe(&self) -> Result<Observed, DeviceError> {
        observe::machine(self)
    }

    /// Carries out one step and reads back that it came about. Doing a step that is already done is no
    /// error, but for a creation: what is there already is somebody else's.
    ///
    /// Locked clocks are the one thing that is not read back: NVML has no call for it, and the clock that
    /// runs may be lower for good reasons (power, heat).
    ///
    /// # Errors
    /// What the driver said. What came about of the step is then unknown: observe.
    pub fn perform(&self, step: &Step) -> Result<(), DeviceError> {
        perform::step(self, step)
    }

    /// What this process may change on the machine. Asks, and changes nothing.
    #[must_use]
    pub fn rights(&self) -> Rights {
        rights::of(self)
    }

    /// Whether this process may do every kind of step.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        let rights = self.rights();
        rights.modes && rights.instances && rights.clocks
    }

    /// The library that answers, as it was asked for: a name for the loader, or a path.
    #[must_use]
    pub fn library_name(&self) -> &str {
        &self.name
    }

    /// Whether the library that answers is entc's simulated one.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// Changes at every boot of the machine: the kernel's own id, or the simulated machine's. Empty when
    /// there is none to be read.
    #[must_use]
    pub fn boot_id(&self) -> String {
        if self.is_simulated {
            return self.loaded.boot_id().unwrap_or_default();
        }
        // proc(5), /proc/sys/kernel/random/boot_id: a UUID made at boot.
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        id.trim().to_owned()
    }

    /// The catalogue's board with this combined PCI device id.
    fn board(&self, pci_device_id: &str) -> Option<&'static Board> {
        let is_it = |board: &&'static Board| {
            board.pci_device_ids.iter().any(|id| id.eq_ignore_ascii_case(pci_device_id))
        };
        catalogue::boards().find(is_it)
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("library", &self.name).finish_non_exhaustive()
    }
}

/// Loads the library that is asked for, and says under which name.
fn load(library: &Library) -> Result<(Loaded, PathBuf), OpenError> {
    match library {
        Library::System => {
            let mut first = None;
            for name in SYSTEM {
                match Loaded::load(OsStr::new(name)) {
                    Ok(loaded) => return Ok((loaded, PathBuf::from(name))),
                    Err(reason) => {
                        first.get_or_insert_with(|| not_loaded(name, reason));
                    }
                }
            }
            Err(first.unwrap_or_else(|| OpenError::NoLibrary(SYSTEM[0].to_owned())))
        }
        Library::Path(path) | Library::Simulated { library: path, .. } => {
            let path = with_folder(path);
            if !path.exists() {
                return Err(OpenError::NoLibrary(path.display().to_string()));
            }
            let loaded = Loaded::load(path.as_os_str());
            loaded.map_err(|reason| not_loaded(&path.display().to_string(), reason)).map(|l| (l, path))
        }
    }
}

/// A path with a folder in it: the loader searches the system for a name without one.
fn with_folder(path: &Path) -> PathBuf {
    if path.components().count() > 1 || path.is_absolute() { path.into() } else { Path::new(".").join(path) }
}

/// The loader's message, typed. glibc and musl both begin it with the name that was not found; a library
/// whose own dependency is missing begins with that one's.
fn not_loaded(library: &str, reason: String) -> OpenError {
    let is_absent = reason.contains("No such file") && reason.contains(library);
    if is_absent {
        OpenError::NoLibrary(library.to_owned())
    } else {
        OpenError::NotLoadable { library: library.to_owned(), reason }
    }
}

/// Why NVML did not start.
fn not_started(library: &str, error: &NvmlError) -> OpenError {
    let library = library.to_owned();
    if matches!(error, NvmlError::FailedToLoadSymbol(_)) {
        let reason = "it has no nvmlInit_v2, so it is no NVML library".to_owned();
        return OpenError::NotLoadable { library, reason };
    }
    if let NvmlError::LibloadingError(error) = error {
        return OpenError::NotLoadable { library, reason: error.to_string() };
    }
    let reason = if matches!(error, NvmlError::LibRmVersionMismatch) {
        "driver and library are of different versions: the driver was updated, and its kernel modules were \
         not reloaded"
            .to_owned()
    } else {
        error.to_string()
    };
    OpenError::NoDriver { library, reason }
}

/// What was refused, with the GPU and in words what was being done.
fn refusal(gpu: Option<&GpuUuid>, operation: impl Into<String>, refused: Refused) -> DeviceError {
    DeviceError { gpu: gpu.cloned(), operation: operation.into(), call: refused.call, kind: refused.kind }
}

/// What a GPU may be unable to say: nothing then. Only a GPU that is lost is an error, because then
/// nothing it says can be relied on.
fn optional<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(refused) if refused.kind == crate::error::DeviceErrorKind::Lost => Err(refused),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_told_from_one_that_does_not_load() {
        let absent = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory";
        assert_eq!(
            not_loaded("libnvidia-ml.so.1", absent.to_owned()),
            OpenError::NoLibrary("libnvidia-ml.so.1".to_owned())
        );
        let needs = "libcuda.so.1: cannot open shared object file: No such file or directory";
        assert!(matches!(
            not_loaded("/opt/libnvidia-ml.so.1", needs.to_owned()),
            OpenError::NotLoadable { .. }
        ));
    }

    #[test]
    fn opening_what_is_no_library_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let absent = folder.path().join("libnvidia-ml.so.1");
        assert_eq!(
            Driver::open(&Library::Path(absent.clone())).unwrap_err(),
            OpenError::NoLibrary(absent.display().to_string())
        );
        std::fs::write(&absent, "no ELF file").unwrap();
        assert!(matches!(
            Driver::open(&Library::Path(absent)).unwrap_err(),
            OpenError::NotLoadable { reason, .. } if !reason.is_empty()
        ));
    }
}
