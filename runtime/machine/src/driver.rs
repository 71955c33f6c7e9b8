//! The one handle on NVML: which library answers, what the machine is, one step at a time.

use crate::changes::Step;
use crate::error::{DeviceError, OpenError};
use crate::observed::Observed;
use std::path::PathBuf;

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

/// An open NVML library.
pub struct Driver {}

impl Driver {
    /// Loads and starts the library.
    ///
    /// # Errors
    /// When there is none, it cannot be loaded, or its driver does not run.
    pub fn open(_library: &Library) -> Result<Self, OpenError> {
        Ok(Self {})
    }

    /// Reads the whole machine. Needs no rights.
    ///
    /// # Errors
    /// When a GPU cannot be read; what it cannot do is `None`, not an error.
    pub fn observe(&self) -> Result<Observed, DeviceError> {
        Err(DeviceError {
            gpu: None,
            operation: "observe".to_owned(),
            call: "",
            kind: crate::error::DeviceErrorKind::NotSupported,
        })
    }

    /// Carries out one step and reads back that it came about. Doing a step that is already done is no
    /// error: after a crash nobody knows whether the last one was.
    ///
    /// # Errors
    /// What the driver said. What came about of the step is then unknown: observe.
    pub fn perform(&self, _step: &Step) -> Result<(), DeviceError> {
        Ok(())
    }
}
