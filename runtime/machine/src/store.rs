//! A folder → the state and the journal of one machine, one writer at a time.
//!
//! `state.json`, `journal.jsonl`, `journal.previous.jsonl` (the transaction before the last) and `lock`.
//! Reading needs no lock: files are replaced by rename, so that a reader sees the old one or the new one.

use crate::error::StoreError;
use crate::journal::{Ending, Journal, Transaction};
use crate::state::{FORMAT_VERSION, State};
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a lock is tried while it is waited for.
const POLL: Duration = Duration::from_millis(20);

/// How long the holder of a lock may take to write its name into it.
const NAMING: Duration = Duration::from_millis(200);

/// The folder with a machine's state and journal.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// A store that this process alone may write; given up when dropped, or with the process.
#[derive(Debug)]
pub struct Locked {
    store: Store,
    /// The lock belongs to the open file: the system gives it up with the process, however that ends.
    lock: File,
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough while a child that was just forked still has the file, too.
        let _ = self.lock.unlock();
    }
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

    /// A store to be written: the folder is created where it is not there. Everybody may read it, so
    /// that `entc drift` needs no rights.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        if !folder.is_dir() {
            let created = DirBuilder::new().recursive(true).mode(0o755).create(folder);
            // Whatever the umask of whoever came first takes away; a folder of somebody else's stays as it is.
            let readable =
                created.and_then(|()| std::fs::set_permissions(folder, Permissions::from_mode(0o755)));
            readable.map_err(io("create", folder))?;
        }
        Ok(Self::at(folder))
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the last journal is.
    #[must_use]
    pub fn journal_path(&self) -> PathBuf {
        self.folder.join("journal.jsonl")
    }

    /// Where the journal before the last one is kept.
    #[must_use]
    pub fn previous_journal_path(&self) -> PathBuf {
        self.folder.join("journal.previous.jsonl")
    }

    /// Where the state is.
    #[must_use]
    pub fn state_path(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    /// Where the plan is kept that is to be applied again after a boot.
    #[must_use]
    pub fn plan_path(&self) -> PathBuf {
        self.folder.join("plan.json")
    }

    /// Takes the lock, waiting up to `timeout` for another entc to give it up.
    ///
    /// # Errors
    /// Which process holds it; or that the folder cannot be written.
    pub fn lock(&self, command: &str, timeout: Duration) -> Result<Locked, StoreError> {
        let path = self.folder.join("lock");
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(io("open", &path))?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(io("lock", &path)(source)),
                Err(TryLockError::WouldBlock) => {
                    let waited = begin.elapsed();
                    let holder = holder(&path);
                    // A holder that has just taken the lock has not yet written its name.
                    if waited >= timeout && (holder.is_some() || waited >= NAMING) {
                        let (pid, command) = holder.unwrap_or_default();
                        return Err(StoreError::Locked { pid, command });
                    }
                    std::thread::sleep(POLL);
                }
            }
        }
        // The name is a courtesy to those who are refused: on a full disk the lock holds without it.
        let _ = file.set_len(0);
        let _ = write!(file, "{}\n{command}\n", std::process::id());
        Ok(Locked { store: self.clone(), lock: file })
    }

    /// The state; that of an untouched machine when there is none and none was written.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, is of a newer format, or is gone.
    pub fn state(&self) -> Result<State, StoreError> {
        let path = self.state_path();
        let Some(bytes) = read(&path)? else { return self.none(path) };
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| damaged(&path, error.to_string()))?;
        check_format(&path, value.get("format_version"), FORMAT_VERSION)?;
        serde_json::from_value(value).map_err(|error| damaged(&path, error.to_string()))
    }

    /// The state of a machine without a file of it: the file is written before a journal ends, so an ended
    /// one that left something of ours says that it was lost.
    fn none(&self, path: PathBuf) -> Result<State, StoreError> {
        // A journal that cannot be read is told by whoever goes by it.
        let Ok(Some(journal)) = self.journal() else { return Ok(State::default()) };
        let header = &journal.header;
        let is_something = match journal.ending() {
            None => false,
            Some(Ending::RolledBack) => !header.state_before.gpus.is_empty(),
            Some(Ending::Done) => header.transaction != Transaction::Destroy,
        };
        if is_something {
            let transaction = header.transaction.word();
            return Err(StoreError::Missing { path, journal: journal.path, transaction });
        }
        Ok(State::default())
    }

    /// The last journal, open or ended; `None` when there was no transaction yet.
    ///
    /// # Errors
    /// When it cannot be read, its first line is damaged, or it is of a newer format.
    pub fn journal(&self) -> Result<Option<Journal>, StoreError> {
        // A crash between the two renames of a new journal leaves only the previous one, which had ended.
        for path in [self.journal_path(), self.previous_journal_path()] {
            if let Some(bytes) = read(&path)? {
                return Journal::parse(&path, &bytes).map(Some);
            }
        }
        Ok(None)
    }
}

impl Locked {
    /// Replaces the state, all or nothing, and waits until it is on disk.
    ///
    /// # Errors
    /// When it cannot be written; the old one is then still there.
    pub fn write_state(&self, state: &State) -> Result<(), StoreError> {
        let path = self.state_path();
        let mut text = serde_json::to_vec_pretty(state).map_err(|error| io("write", &path)(error.into()))?;
        text.push(b'\n');
        replace(&path, &text)?;
        sync_folder(&self.folder)
    }

    /// Keeps a copy of a plan for `entc apply --reassert`, all or nothing.
    ///
    /// # Errors
    /// When it cannot be written; an old one is then still there.
    pub fn write_plan(&self, plan: &[u8]) -> Result<PathBuf, StoreError> {
        let path = self.plan_path();
        replace(&path, plan)?;
        sync_folder(&self.folder)?;
        Ok(path)
    }
}

/// The process that holds a lock, by the name it wrote; `None` when that is of an earlier, dead one.
fn holder(path: &Path) -> Option<(u32, String)> {
    let text = std::fs::read_to_string(path).ok()?;
    let (pid, command) = text.split_once('\n')?;
    let pid: u32 = pid.parse().ok()?;
    let is_alive = Path::new("/proc").join(pid.to_string()).exists();
    (is_alive && command.ends_with('\n')).then(|| (pid, command.trim_end().to_owned()))
}

/// Writes a file beside its place, waits until it is on disk, and renames it over. The folder is not yet
/// on disk.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let new = beside(path);
    write_new(&new, bytes)?;
    std::fs::rename(&new, path).map_err(io("replace", path))
}

/// The name beside a file under which its successor is written.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

/// Writes a file anew and waits until it is on disk; none is left when that fails.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path);
    let mut file = opened.map_err(io("create", path))?;
    let readable = file.set_permissions(Permissions::from_mode(0o644));
    let written = readable.and_then(|()| file.write_all(bytes)).and_then(|()| file.sync_all());
    written.map_err(|source| {
        let _ = std::fs::remove_file(path);
        io("write", path)(source)
    })
}

/// Waits until renames in a folder are on disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io("write", folder))
}

/// What a file holds; `None` when there is none.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io("read", path)(source)),
    }
}

/// Whether this entc reads a format: the major version decides.
pub(crate) fn check_format(
    path: &Path,
    found: Option<&serde_json::Value>,
    read: &'static str,
) -> Result<(), StoreError> {
    let found = found.and_then(serde_json::Value::as_str);
    let major = |version: &str| version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let (Some(found), Some(ours)) = (found, major(read)) else {
        return Err(damaged(path, "it does not say its format_version".to_owned()));
    };
    match major(found) {
        Some(theirs) if theirs == ours => Ok(()),
        Some(theirs) if theirs > ours => {
            Err(StoreError::Newer { path: path.to_path_buf(), found: found.to_owned(), read })
        }
        _ => Err(damaged(path, format!("there is no format `{found}`"))),
    }
}

pub(crate) fn damaged(path: &Path, reason: String) -> StoreError {
    StoreError::Damaged { path: path.to_path_buf(), reason }
}

pub(crate) fn io(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> StoreError + use<> {
    let path = path.to_path_buf();
    move |source| StoreError::Io { what, path: path.clone(), source }
}
