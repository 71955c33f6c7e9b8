//! What runs a batch: the modelled executor, or torch.

use crate::arguments::{Arguments, Kind};
use crate::error::WorkerError;
use crate::modelled::Modelled;
use ent_wire::{Configure, Execute, Model, Signature, Tensor};

/// An executor with its network.
pub(crate) enum Executor {
    /// Takes the predicted time.
    Modelled(Modelled),
    /// Runs the network.
    #[cfg(feature = "torch")]
    Torch(Box<crate::torch::Torch>),
}

/// Results of a batch.
pub(crate) struct Answer {
    /// Their heads.
    pub(crate) tensors: Vec<Tensor<'static>>,
    /// Their bytes, in the same order.
    pub(crate) bytes: Vec<Vec<u8>>,
    /// What the batch took (J), where that is known.
    pub(crate) energy_j: Option<f64>,
}

impl Executor {
    /// Loads a network.
    pub(crate) fn load(arguments: &Arguments, model: Model) -> Result<Self, WorkerError> {
        match arguments.executor {
            Kind::Modelled => Ok(Self::Modelled(Modelled::new(model.signature))),
            #[cfg(feature = "torch")]
            Kind::Torch => crate::torch::Torch::load(arguments, &model).map(|t| Self::Torch(Box::new(t))),
            #[cfg(not(feature = "torch"))]
            Kind::Torch => Err(WorkerError::NoTorch),
        }
    }

    /// Takes new batch sizes, and runs each once.
    pub(crate) fn warm(&mut self, configure: Configure) -> Result<(), WorkerError> {
        match self {
            Self::Modelled(modelled) => {
                modelled.configure(configure);
                Ok(())
            }
            #[cfg(feature = "torch")]
            Self::Torch(torch) => torch.warm(configure.batch),
        }
    }

    /// What the network takes and gives, as far as the executor knows.
    pub(crate) fn signature(&self) -> Option<Signature> {
        match self {
            Self::Modelled(modelled) => modelled.signature().cloned(),
            #[cfg(feature = "torch")]
            Self::Torch(torch) => torch.signature().cloned(),
        }
    }

    /// Runs a batch. The error is for the client; the worker goes on.
    pub(crate) fn run(&mut self, batch: &Execute<'_>, body: &[u8]) -> Result<Answer, String> {
        #[cfg(not(feature = "torch"))]
        let _: &[u8] = body;
        match self {
            Self::Modelled(modelled) => modelled.run(batch),
            #[cfg(feature = "torch")]
            Self::Torch(torch) => torch.run(batch, body),
        }
    }
}
