//! What a driver answers: NVML's return codes, by their names.
//!
//! Numbers are those of nvml.h (`nvmlReturn_t`, as bound by nvml-wrapper-sys 0.10.0). Only the codes that
//! the simulated driver gives, or that a fault may be told to give, are listed.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $word:literal;)*) => {
        /// Why a call did not succeed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error)]
        #[serde(rename_all = "kebab-case")]
        #[repr(u32)]
        pub enum Return {
            $($(#[$doc])* #[error($word)] $name = $number,)*
        }

        impl Return {
            /// All of them, by number.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

codes! {
    /// NVML was not initialised in this process.
    Uninitialized = 1, "uninitialized";
    /// A wrong argument.
    InvalidArgument = 2, "invalid argument";
    /// The device, its mode or its driver cannot do this.
    NotSupported = 3, "not supported";
    /// The caller may not.
    NoPermission = 4, "insufficient permissions";
    /// There is no such thing.
    NotFound = 6, "not found";
    /// The buffer is too small; the size that is needed was written.
    InsufficientSize = 7, "insufficient size";
    /// Nothing to answer with: no driver, or no readable machine.
    DriverNotLoaded = 9, "driver not loaded";
    /// It took too long.
    Timeout = 10, "timeout";
    /// This library has no such function.
    FunctionNotFound = 13, "function not found";
    /// The GPU fell off the bus.
    GpuIsLost = 15, "GPU is lost";
    /// The GPU needs a reset first.
    ResetRequired = 16, "reset required";
    /// The operating system refused (reading or writing the machine's files).
    OperatingSystem = 17, "operating system call failed";
    /// The library and the rest of the driver are of different versions.
    LibRmVersionMismatch = 18, "library and driver versions differ";
    /// Somebody uses it.
    InUse = 19, "in use by another client";
    /// Out of memory.
    Memory = 20, "insufficient memory";
    /// Nothing to read.
    NoData = 21, "no data";
    /// No room left for such an instance.
    InsufficientResources = 23, "insufficient resources";
    /// This clock is not supported.
    FreqNotSupported = 24, "frequency not supported";
    /// A struct of another version.
    ArgumentVersionMismatch = 25, "argument version mismatch";
    /// The machine is not ready.
    NotReady = 27, "not ready";
    /// No GPU at all.
    GpuNotFound = 28, "no GPUs found";
    /// Not in this state.
    InvalidState = 29, "invalid state";
    /// The driver itself failed.
    Unknown = 999, "unknown error";
}

impl Return {
    /// The number of nvml.h.
    #[must_use]
    pub fn code(self) -> u32 {
        self as u32
    }
}
