//! The file beside a TorchScript file → what the network takes and gives.
//!
//! TorchScript does not say shapes. For `resnet.pt` they are written in `resnet.pt.json`:
//!
//! ```json
//! {
//!   "inputs":  [{ "name": "audio", "datatype": "FP32", "shape": [-1, 512] }],
//!   "outputs": [{ "name": "speech", "datatype": "FP32", "shape": [-1, 1] }],
//!   "arguments": ["audio", 16000]
//! }
//! ```
//!
//! `arguments` are those of the network's `forward`, in order: names of inputs, and constants. Without it they
//! are the inputs.

use crate::error::WorkerError;
use ent_wire::{Signature, TensorSpec};
use serde::Deserialize;
use std::path::Path;
use tch::{Device, Tensor};

/// What a network takes and gives, and how it is called.
pub(crate) struct Described {
    pub(crate) signature: Signature,
    pub(crate) arguments: Vec<Argument>,
}

/// An argument of `forward`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Argument {
    /// An input, by name.
    Input(String),
    /// A constant.
    Switch(bool),
    /// A constant.
    Integer(i64),
    /// A constant.
    Number(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    inputs: Vec<TensorSpec>,
    #[serde(default)]
    outputs: Vec<TensorSpec>,
    #[serde(default)]
    arguments: Option<Vec<Argument>>,
}

impl From<Signature> for Described {
    fn from(signature: Signature) -> Self {
        let arguments = signature.inputs.iter().map(|input| Argument::Input(input.name.clone())).collect();
        Self { signature, arguments }
    }
}

impl Described {
    /// Reads the file beside an artifact; `None` when there is none.
    pub(crate) fn beside(artifact: &Path) -> Result<Option<Self>, WorkerError> {
        let mut name = artifact.as_os_str().to_owned();
        name.push(".json");
        let refuse = |reason: String| {
            WorkerError::Network(format!("cannot read `{}`: {reason}", Path::new(&name).display()))
        };
        let text = match std::fs::read_to_string(&name) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refuse(error.to_string())),
        };
        let file: File = serde_json::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        let mut described = Self::from(Signature { inputs: file.inputs, outputs: file.outputs });
        if let Some(arguments) = file.arguments {
            described.arguments = arguments;
        }
        for argument in &described.arguments {
            if let Argument::Input(name) = argument
                && !described.signature.inputs.iter().any(|input| input.name == *name)
            {
                return Err(refuse(format!("argument `{name}` is no input")));
            }
        }
        Ok(Some(described))
    }

    /// Inputs of so many rows, all zero; dimensions that may differ are 1.
    pub(crate) fn zeros(&self, rows: i64, device: Device) -> Result<Vec<(&str, Tensor)>, String> {
        let zeros = |input: &TensorSpec| {
            let others = input.shape.iter().skip(1).map(|n| (*n).max(1));
            let shape: Vec<i64> = std::iter::once(rows).chain(others).collect();
            Tensor::f_zeros(shape, (super::tensor::kind(input.datatype)?, device)).map_err(|e| e.to_string())
        };
        self.signature.inputs.iter().map(|input| Ok((input.name.as_str(), zeros(input)?))).collect()
    }
}
