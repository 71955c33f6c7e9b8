//! The state folder → the files of a supervisor in it: the deployment, the lock, the sockets, the log.
//!
//! Only one supervisor at a time runs in a folder. The lock belongs to the open file, so that the system
//! gives it up with the process, however that ends.

use super::SupervisorError;
use crate::deployment::Deployment;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Longest path of a Unix socket (bytes): unix(7), `sun_path` is 108 bytes with its end.
const LONGEST: usize = 107;

/// What runs.
#[must_use]
pub fn deployment_path(folder: &Path) -> PathBuf {
    folder.join("deployment.json")
}

/// What is to run next; it takes the place of the other when it does.
#[must_use]
pub fn next_path(folder: &Path) -> PathBuf {
    folder.join("deployment.next.json")
}

/// What the supervisor and its workers say.
#[must_use]
pub fn log_path(folder: &Path) -> PathBuf {
    folder.join("serve.log")
}

/// The name of the socket that the supervisor is asked on.
pub(super) const CONTROL: &str = "control.sock";

/// The name of the socket that workers connect to.
pub(super) const WORKERS: &str = "workers.sock";

/// A Unix socket in a folder, by a path that is short enough for one.
#[derive(Debug)]
pub(super) struct Address {
    /// The path to bind or connect to.
    pub(super) path: PathBuf,
    /// Keeps the short path good.
    _folder: Option<File>,
}

impl Address {
    /// The socket's path, or one through this process's own descriptors where that is too long.
    pub(super) fn of(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(name);
        if path.as_os_str().len() <= LONGEST {
            return Ok(Self { path, _folder: None });
        }
        let opened = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd()));
        Ok(Self { path, _folder: Some(opened) })
    }
}

/// Makes the folder if it is not there.
pub(super) fn make(folder: &Path) -> Result<(), SupervisorError> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
    made.map_err(|source| SupervisorError::File { what: "create", path: folder.to_path_buf(), source })
}

/// The right to be the one supervisor of a folder.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes it.
    pub(super) fn take(folder: &Path) -> Result<Self, SupervisorError> {
        let path = folder.join("serve.lock");
        let fail = |source| SupervisorError::File { what: "lock", path: path.clone(), source };
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(source)) => return Err(fail(source)),
            Err(TryLockError::WouldBlock) => {
                let pid = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok());
                return Err(SupervisorError::Running { folder: folder.to_path_buf(), pid });
            }
        }
        // A courtesy to those who are refused: the lock holds without it.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }

    /// Whether a supervisor has it.
    pub(super) fn is_taken(folder: &Path) -> bool {
        let opened = OpenOptions::new().read(true).write(true).open(folder.join("serve.lock"));
        opened.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
    }
}

/// Reads what is to run.
pub(super) fn read(path: &Path) -> Result<Option<Deployment>, SupervisorError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(SupervisorError::File { what: "read", path: path.to_path_buf(), source });
        }
    };
    let damaged = |reason: String| SupervisorError::Damaged { path: path.to_path_buf(), reason };
    let deployment: Deployment =
        serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    deployment.validate().map_err(|error| damaged(error.to_string()))?;
    Ok(Some(deployment))
}

/// What runs in a folder, or ran there last.
///
/// # Errors
/// When the file cannot be read or is damaged.
pub fn deployment(folder: &Path) -> Result<Option<Deployment>, SupervisorError> {
    read(&deployment_path(folder))
}

/// Forgets what ran in a folder: nothing of it can run again.
///
/// # Errors
/// When a file cannot be removed.
pub fn forget(folder: &Path) -> Result<(), SupervisorError> {
    for path in [next_path(folder), deployment_path(folder)] {
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(SupervisorError::File { what: "remove", path, source });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Writes down what is to run in a folder, for a supervisor that somebody else starts. Returns it with the
/// epochs that it has there.
///
/// # Errors
/// When it cannot run, or the file cannot be written.
pub fn write_down(folder: &Path, wanted: &Deployment) -> Result<Deployment, SupervisorError> {
    make(folder)?;
    let path = deployment_path(folder);
    wanted
        .validate()
        .map_err(|error| SupervisorError::Damaged { path: path.clone(), reason: error.to_string() })?;
    let mut wanted = wanted.clone();
    // A damaged file of an earlier deployment does not keep a new one from being served.
    if let Ok(Some(present)) = deployment(folder) {
        super::number(&mut wanted, &present);
    }
    write(&path, &wanted)?;
    Ok(wanted)
}

/// Writes a deployment beside its place and renames it over: a reader sees the old one or the new one. It
/// holds nobody's secret, but only this user writes it.
pub(super) fn write(path: &Path, deployment: &Deployment) -> Result<(), SupervisorError> {
    let fail = |source| SupervisorError::File { what: "write", path: path.to_path_buf(), source };
    let mut text = serde_json::to_vec_pretty(deployment).map_err(|error| fail(error.into()))?;
    text.push(b'\n');
    let new = path.with_extension("json.new");
    let opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&new);
    let written = opened.and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()));
    written.and_then(|()| std::fs::rename(&new, path)).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_folder_has_one_supervisor_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!Lock::is_taken(folder.path()));
        let lock = Lock::take(folder.path()).unwrap();
        assert!(Lock::is_taken(folder.path()));
        let Err(SupervisorError::Running { pid, .. }) = Lock::take(folder.path()) else { panic!() };
        assert_eq!(pid, Some(std::process::id()));
        drop(lock);
        assert!(!Lock::is_taken(folder.path()));
        assert!(Lock::take(folder.path()).is_ok());
    }

    #[test]
    fn sockets_of_deep_folders_can_be_reached() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        make(&deep).unwrap();
        let address = Address::of(&deep, CONTROL).unwrap();
        let _listener = UnixListener::bind(&address.path).unwrap();
        assert!(deep.join(CONTROL).exists());
        let other = Address::of(&deep, CONTROL).unwrap();
        assert!(UnixStream::connect(&other.path).is_ok());
    }

    #[test]
    fn a_damaged_deployment_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(deployment(folder.path()).unwrap().is_none());
        for text in ["", "{", "[]", r#"{"format_version":"9.0","services":[]}"#] {
            std::fs::write(deployment_path(folder.path()), text).unwrap();
            let error = deployment(folder.path()).unwrap_err().to_string();
            assert!(error.contains("deployment.json"), "{error}");
        }
    }
}
