//! A description → a simulated machine for one test, with a library of its own; gone when dropped.
//!
//! A loaded library is one client of one machine. A test that wants several machines in one process
//! needs several files, since the loader knows a file that it has loaded: each [`SimulatedMachine`]
//! has its own copy of the library, under the name that foreign clients look for.
//!
//! What a test does to the machine itself, past NVML, it does here: look at the silicon, attach a
//! process, pull a board out, reboot.

use crate::description::Description;
use crate::faults::{self, Faults};
use crate::silicon::Silicon;
use crate::store::Store;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The name under which NVML's clients look for the library.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// The name under which it is built.
pub const BUILT: &str = "libent_nvml_sim.so";

/// A machine and a library that simulates it, in a temporary folder.
#[derive(Debug)]
pub struct SimulatedMachine {
    folder: TempDir,
    store: Store,
}

impl SimulatedMachine {
    /// Boots a machine for the first time.
    ///
    /// # Errors
    /// When the library has not been built, the machine cannot be, or the disk refuses.
    pub fn new(description: &Description) -> Result<Self, Error> {
        let folder = tempfile::tempdir()?;
        let state = folder.path().join("machine");
        description.write(&state).map_err(Error::other)?;
        std::fs::copy(built_library()?, folder.path().join(LIBRARY))?;
        let store = Store::open(&state).map_err(Error::other)?;
        Ok(Self { folder, store })
    }

    /// Its library. No other machine has this file.
    #[must_use]
    pub fn library(&self) -> PathBuf {
        self.folder.path().join(LIBRARY)
    }

    /// The folder with its `machine.toml` and `state.json`.
    #[must_use]
    pub fn state(&self) -> &Path {
        self.store.folder()
    }

    /// Looks at the silicon as it is now.
    ///
    /// # Errors
    /// When its files cannot be read.
    pub fn look<T>(&self, look: impl FnOnce(&Silicon) -> T) -> Result<T, Error> {
        self.store.with(look).map_err(Error::other)
    }

    /// Does something to the silicon: whatever [`Silicon`] can, no rights needed but those it checks.
    ///
    /// # Errors
    /// When its files cannot be read or written.
    pub fn change<T>(&self, change: impl FnOnce(&mut Silicon) -> T) -> Result<T, Error> {
        self.store.with_mut(change).map_err(Error::other)
    }

    /// Turns the machine off and on. Who had NVML initialised has to do so again.
    ///
    /// # Errors
    /// When its files cannot be read or written.
    pub fn reboot(&self) -> Result<(), Error> {
        self.change(Silicon::reboot)
    }
}

impl SimulatedMachine {
    /// Says what is to go wrong from now on, in place of what was said before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_faults(&self, faults: &Faults) -> Result<(), Error> {
        let new = self.state().join("faults.new");
        std::fs::write(&new, faults.text())?;
        std::fs::rename(new, self.state().join(faults::FILE))
    }

    /// What is to go wrong, and how many of the calls it waits for were made. Nothing, if nobody said so.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn faults(&self) -> Result<Faults, Error> {
        match std::fs::read_to_string(self.state().join(faults::FILE)) {
            Ok(text) => Faults::parse(&text).map_err(Error::other),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Faults(Vec::new())),
            Err(error) => Err(error),
        }
    }
}

/// The library as cargo has built it: beside this executable, or one folder up or down from it.
///
/// # Errors
/// When it is not there.
pub fn built_library() -> Result<PathBuf, Error> {
    let executable = std::env::current_exe()?;
    let beside = executable.parent().unwrap_or(Path::new("."));
    let places = [beside.to_owned(), beside.join("deps"), beside.join("..")];
    let found = places.iter().map(|place| place.join(BUILT)).find(|path| path.is_file());
    found.ok_or_else(|| {
        let build = "build it: cargo build --release -p ent-nvml-sim";
        Error::new(
            ErrorKind::NotFound,
            format!("there is no {BUILT} beside {}; {build}", executable.display()),
        )
    })
}
