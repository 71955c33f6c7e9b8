//! What can keep a worker from running.

use ent_wire::WireError;

/// A worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    /// The connection to the gateway.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The network cannot be loaded or run; trying again will not help.
    #[cfg(feature = "torch")]
    #[error("{0}")]
    Network(String),
    /// This build has no torch.
    #[cfg(not(feature = "torch"))]
    #[error("this worker was built without torch; build it with `sh setup/torch.sh`")]
    NoTorch,
    /// The simulated machine.
    #[error("the simulated board: {0}")]
    Simulated(String),
}

impl WorkerError {
    /// 1: it cannot run what it was given. 2: the gateway is gone, and another try may help.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Wire(WireError::Refused(_)) => 1,
            Self::Wire(_) => 2,
            #[cfg(not(feature = "torch"))]
            Self::NoTorch => 1,
            #[cfg(feature = "torch")]
            Self::Network(_) => 1,
            Self::Simulated(_) => 1,
        }
    }
}
