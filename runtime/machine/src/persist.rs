//! A plan that is applied → a systemd unit that applies it again after each boot.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The unit's name.
pub const UNIT: &str = "entc-reassert.service";

/// The name of the unit that runs the supervisor, where one is wanted.
pub const SERVE_UNIT: &str = "entc-serve.service";

/// Why a unit cannot be installed or removed.
#[derive(Debug, thiserror::Error)]
pub enum PersistError {
    /// The unit file cannot be written or removed; nothing was enabled.
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
    #[error("this system has no `systemctl`; the unit is `{}`, and nothing starts it", .0.display())]
    NoSystemd(PathBuf),
    /// There is one, but it was not booted with: in a container, or under another init.
    #[error(
        "this system was not booted with systemd; the unit is `{}`, and nothing starts it until \
         `systemctl enable {UNIT}` is run under systemd",
        .0.display()
    )]
    NotBooted(PathBuf),
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
///
/// It runs once a boot, after persistenced, which else might turn persistence mode off again, and before
/// the kubelet, which would offer whole boards first.
#[must_use]
pub fn unit(command: &[String]) -> String {
    let command: Vec<String> = command.iter().map(|argument| quoted(argument)).collect();
    format!(
        "[Unit]\n\
         Description=Bring the GPUs back to the plan that entc applied\n\
         After=local-fs.target systemd-modules-load.service nvidia-persistenced.service\n\
         Before=kubelet.service\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={}\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        command.join(" ")
    )
}

/// The text of the unit that keeps the supervisor running. `command` is what it runs: the path of entc and
/// `serve run …`.
///
/// It comes after the machine is as planned. Only the supervisor is told to end: it ends its workers in order
/// (systemd.kill(5), `KillMode=mixed`).
#[must_use]
pub fn serve_unit(command: &[String]) -> String {
    let command: Vec<String> = command.iter().map(|argument| quoted(argument)).collect();
    format!(
        "[Unit]\n\
         Description=Serve the plan that entc applied\n\
         After=network.target {UNIT}\n\
         Requires={UNIT}\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={}\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         KillMode=mixed\n\
         TimeoutStopSec=90\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n",
        command.join(" ")
    )
}

/// An argument as `ExecStart` takes it: in quotes, with specifiers and variables made plain
/// (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers").
fn quoted(argument: &str) -> String {
    let mut text = String::from("\"");
    for character in argument.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            '%' | '$' => text.extend([character, character]),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

/// Writes the unit into a folder (`/etc/systemd/system`) and enables it.
///
/// # Errors
/// When it cannot be written or enabled.
pub fn install(folder: &Path, command: &[String]) -> Result<PathBuf, PersistError> {
    written(folder, UNIT, &unit(command))
}

/// Writes the supervisor's unit into a folder and enables it; it starts with the next boot.
///
/// # Errors
/// As [`install`].
pub fn install_serving(folder: &Path, command: &[String]) -> Result<PathBuf, PersistError> {
    written(folder, SERVE_UNIT, &serve_unit(command))
}

/// Writes a unit and enables it.
fn written(folder: &Path, name: &str, text: &str) -> Result<PathBuf, PersistError> {
    let path = folder.join(name);
    let io = |source| PersistError::Io { what: "write", path: path.clone(), source };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(io)?;
    // systemd warns about units that others may write, and wants to read them.
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(readable).and_then(|()| file.as_file().sync_all()).map_err(io)?;
    file.persist(&path).map_err(|error| io(error.error))?;
    systemctl(&path, &["daemon-reload"])?;
    systemctl(&path, &["enable", name])?;
    Ok(path)
}

/// Disables and removes the units; whether there was one.
///
/// # Errors
/// When it cannot be disabled or removed.
pub fn remove(folder: &Path) -> Result<bool, PersistError> {
    // First the one that needs the other.
    let serves = removed(folder, SERVE_UNIT)?;
    let applies = removed(folder, UNIT)?;
    Ok(serves || applies)
}

fn removed(folder: &Path, name: &str) -> Result<bool, PersistError> {
    let path = folder.join(name);
    if !path.exists() {
        return Ok(false);
    }
    match systemctl(&path, &["disable", name]) {
        // Where there is no systemd nothing can be enabled.
        Ok(()) | Err(PersistError::NoSystemd(_) | PersistError::NotBooted(_)) => {}
        Err(error) => return Err(error),
    }
    std::fs::remove_file(&path).map_err(|source| PersistError::Io {
        what: "remove",
        path: path.clone(),
        source,
    })?;
    match systemctl(&path, &["daemon-reload"]) {
        Ok(()) | Err(PersistError::NoSystemd(_) | PersistError::NotBooted(_)) => Ok(true),
        Err(error) => Err(error),
    }
}

fn systemctl(unit: &Path, arguments: &[&str]) -> Result<(), PersistError> {
    let command = || format!("systemctl {}", arguments.join(" "));
    let output = Command::new("systemctl").args(arguments).env("LC_ALL", "C").output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            // systemd's own words (when sd_booted(3) says no), in the C locale that is asked for.
            if reason.contains("not been booted with systemd") {
                return Err(PersistError::NotBooted(unit.to_path_buf()));
            }
            let reason = if reason.is_empty() { output.status.to_string() } else { reason };
            Err(PersistError::Systemctl { command: command(), reason })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(PersistError::NoSystemd(unit.to_path_buf())),
        Err(error) => Err(PersistError::Systemctl { command: command(), reason: error.to_string() }),
    }
}
