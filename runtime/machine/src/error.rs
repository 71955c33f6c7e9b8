//! What goes wrong with the world: the driver, the disk, another entc.
//!
//! Each error says what happened to what, and carries enough to say what the machine is now and what to
//! do. Whether anything was changed decides the exit code: 3 nothing, 4 some.

use crate::changes::Step;
use crate::observed::GpuUuid;
use std::path::PathBuf;

/// What kind of "no" the driver said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceErrorKind {
    /// It needs rights this process does not have.
    NoPermission,
    /// A process, a daemon or a kernel module has the GPU or the instance open.
    InUse,
    /// This GPU or driver cannot do it.
    NotSupported,
    /// There is no room for the instance.
    InsufficientResources,
    /// It takes effect only after a reset or a reboot.
    ResetRequired,
    /// The GPU fell off the bus.
    Lost,
    /// The driver does not know the device, instance or profile.
    NotFound,
    /// The driver took too long.
    Timeout,
    /// The library lacks the call: the driver is too old.
    MissingSymbol,
    /// What was asked for did not come about, although the driver reported success.
    NotVerified,
    /// Somebody else made it since the machine was read: it is not ours.
    AlreadyThere,
    /// Any other return code of NVML.
    Other(u32),
}

/// The driver refused an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{operation}{}: {}", .gpu.as_ref().map(|g| format!(" on {g}")).unwrap_or_default(), .kind.words())]
pub struct DeviceError {
    /// The GPU; `None` when it is about the machine.
    pub gpu: Option<GpuUuid>,
    /// What was being done, in words: `create 1g.10gb at slice 3`, `read MIG mode`.
    pub operation: String,
    /// The C function that refused, `nvmlDeviceCreateGpuInstanceWithPlacement`.
    pub call: &'static str,
    /// What kind of refusal.
    pub kind: DeviceErrorKind,
}

impl DeviceErrorKind {
    /// A word for scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::NoPermission => "no-permission",
            Self::InUse => "in-use",
            Self::NotSupported => "not-supported",
            Self::InsufficientResources => "insufficient-resources",
            Self::ResetRequired => "reset-required",
            Self::Lost => "gpu-lost",
            Self::NotFound => "not-found",
            Self::Timeout => "timeout",
            Self::MissingSymbol => "missing-symbol",
            Self::NotVerified => "not-verified",
            Self::AlreadyThere => "already-there",
            Self::Other(_) => "driver-error",
        }
    }

    /// What it means.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::NoPermission => "this process may not do that".to_owned(),
            Self::InUse => "something has it open".to_owned(),
            Self::NotSupported => "this GPU or driver cannot do that".to_owned(),
            Self::InsufficientResources => "there is no room for it".to_owned(),
            Self::ResetRequired => "it takes effect only after a reset or a reboot".to_owned(),
            Self::Lost => "the GPU has fallen off the bus".to_owned(),
            Self::NotFound => "the driver does not know it".to_owned(),
            Self::Timeout => "the driver did not answer in time".to_owned(),
            Self::MissingSymbol => "the driver's library has no such call; it is too old".to_owned(),
            Self::AlreadyThere => "somebody else has made it meanwhile".to_owned(),
            Self::NotVerified => "the driver reported success, but reading back shows otherwise".to_owned(),
            Self::Other(code) => match code_in_words(code) {
                Some(words) => format!("NVML returned code {code}, {words}"),
                None => format!("NVML returned code {code}"),
            },
        }
    }
}

/// What nvml.h (`nvmlReturn_t`) says of the codes that are no kind of their own.
fn code_in_words(code: u32) -> Option<&'static str> {
    Some(match code {
        1 => "the library was not started",
        2 => "an argument is invalid",
        7 => "a buffer is too small",
        8 => "the external power cables are not attached",
        9 => "the driver is not loaded",
        11 => "the kernel found an interrupt problem",
        12 => "a library is missing",
        14 => "the board's InfoROM is corrupted",
        17 => "the operating system refused",
        18 => "driver and library are of different versions",
        20 => "out of memory",
        21 => "there is no data",
        24 => "this clock is not supported",
        25 => "the call has another version",
        26 => "the call is deprecated",
        27 => "the driver is not ready",
        29 => "the device is in a state that does not allow it",
        999 => "an internal error of the driver",
        _ => return None,
    })
}

/// The library could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no such library.
    #[error("no NVML library at `{0}`")]
    NoLibrary(String),
    /// It is there and cannot be loaded.
    #[error("the NVML library `{library}` cannot be loaded: {reason}")]
    NotLoadable {
        /// The library.
        library: String,
        /// The loader's reason.
        reason: String,
    },
    /// It is loaded and its driver is not running, or refuses.
    #[error("the driver behind `{library}` does not start: {reason}")]
    NoDriver {
        /// The library.
        library: String,
        /// NVML's reason.
        reason: String,
    },
    /// The simulated library has no machine to simulate.
    #[error("there is no simulated machine in `{0}`")]
    NoSimulatedMachine(PathBuf),
}

/// Why a plan cannot be for this machine: the field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Which: `driver version`, `uuid of gpu 1`, `MIG mode of gpu 0`.
    pub field: String,
    /// What the plan says.
    pub planned: String,
    /// What the machine says.
    pub observed: String,
}

/// Why nothing is begun: found before the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A word for scripts: `no-permission`, `in-use`, `foreign-instance`, `reset-required`, …
    pub code: &'static str,
    /// The GPU; `None` when it is about the machine.
    pub gpu: Option<GpuUuid>,
    /// What stands in the way, one line.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// State, journal or lock could not be had or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder or a file in it cannot be read or written; nothing after this was done.
    #[error("cannot {what} `{}`: {source}", .path.display())]
    Io {
        /// `read`, `write`, `create`, `lock`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("`{}` is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file was written by a newer entc.
    #[error("`{}` has format {found}; this entc reads {read}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format version.
        found: String,
        /// Ours.
        read: &'static str,
    },
    /// The state is gone, and the last journal says that there was something in it.
    #[error("`{}` is missing, although the last {transaction} ended with something of entc's on this machine", .path.display())]
    Missing {
        /// The state's file.
        path: PathBuf,
        /// The last journal.
        journal: PathBuf,
        /// What it was for, as a word.
        transaction: &'static str,
    },
    /// Another entc is at work on this machine.
    #[error("another entc is at work: pid {pid}, `{command}`")]
    Locked {
        /// Its process id.
        pid: u32,
        /// Its command.
        command: String,
    },
}

/// Why a transaction did not end with the machine as wished. What the machine is afterwards is in
/// [`crate::apply::Report`], which comes with it.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Refused before anything was changed.
    #[error("{}", .0.first().map_or("refused", |refusal| refusal.message.as_str()))]
    Refused(Vec<Refusal>),
    /// A step failed.
    #[error("{}: {source}", .step.operation)]
    Step {
        /// The step.
        step: Box<Step>,
        /// What the driver said.
        source: DeviceError,
    },
    /// The driver could not be read.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The disk, or another entc.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// All steps came about, and read back the machine is not as wished.
    #[error("the machine read back is not as wished: {}", .0.join("; "))]
    NotVerified(Vec<String>),
    /// Going back after a failure failed as well.
    #[error("{first}; going back failed too: {then}")]
    NotRolledBack {
        /// Why it was gone back.
        first: Box<ApplyError>,
        /// Why that failed.
        then: Box<ApplyError>,
    },
    /// Stopped by the user between two steps.
    #[error("interrupted")]
    Interrupted,
}

impl StoreError {
    /// A word for scripts.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Io { .. } => "cannot-write",
            Self::Damaged { .. } => "damaged",
            Self::Newer { .. } => "newer-format",
            Self::Missing { .. } => "state-missing",
            Self::Locked { .. } => "locked",
        }
    }

    /// What to do.
    #[must_use]
    pub fn help(&self) -> String {
        use std::io::ErrorKind;
        match self {
            Self::Io { source, path, .. } => {
                let folder = path.parent().unwrap_or(path).display();
                if matches!(
                    source.kind(),
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
                ) {
                    format!("make room in `{folder}` and run the command again")
                } else if matches!(
                    source.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory
                ) {
                    format!("run as a user who may write to `{folder}`, or give another folder")
                } else {
                    format!("look at `{folder}` and its disk, then run the command again")
                }
            }
            Self::Damaged { path, .. } => {
                let path = path.display();
                format!(
                    "restore it from a copy, or move it away with `mv {path} {path}.damaged`; entc then \
                     takes what is on the machine as foreign: `entc observe` shows it, `entc import` adopts it"
                )
            }
            Self::Newer { .. } => "use the entc that wrote it, or a newer one".to_owned(),
            Self::Missing { journal, .. } => {
                let journal = journal.display();
                format!(
                    "restore it from a copy, or go back to before with `entc rollback`, which needs only the \
                     journal; to forget it, move the journal away with `mv {journal} {journal}.old`: entc then \
                     takes what is on the machine as foreign, and `entc import` adopts it"
                )
            }
            Self::Locked { .. } => "wait until it has ended, or wait for it with `--lock-timeout`".to_owned(),
        }
    }
}
