//! The torch executor: TorchScript on a CPU or a CUDA device.
//!
//! What the network takes is known from the file beside it (see [`signature`]) or from the gateway; without
//! either, batches are run as they come and no size is run before.

mod cuda;
mod signature;
mod tensor;

use crate::arguments::{Arguments, Place};
use crate::error::WorkerError;
use crate::executor::Answer;
use ent_wire::{Execute, Model, Signature};
use signature::{Argument, Described};
use std::path::Path;
use tch::{CModule, Device, IValue, Tensor};

/// A loaded network.
pub(crate) struct Torch {
    module: CModule,
    device: Device,
    described: Option<Described>,
}

impl Torch {
    pub(crate) fn load(arguments: &Arguments, model: &Model) -> Result<Self, WorkerError> {
        let Some(artifact) = &model.artifact else {
            let message = format!("model `{}` has no artifact, a TorchScript file", model.name);
            return Err(WorkerError::Network(message));
        };
        let refuse = |reason: String| WorkerError::Network(format!("cannot load `{artifact}`: {reason}"));
        std::fs::metadata(artifact).map_err(|error| refuse(error.to_string()))?;
        let described = match Described::beside(Path::new(artifact))? {
            Some(described) => Some(described),
            None => model.signature.clone().map(Described::from),
        };
        let has_cuda = arguments.device != Place::Cpu && cuda::is_available();
        let device = match (arguments.device, has_cuda) {
            (Place::Cuda, false) => return Err(refuse("there is no CUDA device".to_owned())),
            (_, true) => Device::Cuda(0),
            (_, false) => Device::Cpu,
        };
        tch::set_num_threads(i32::try_from(arguments.threads.max(1)).unwrap_or(1));
        tch::set_num_interop_threads(1);
        let mut module = CModule::load_on_device(artifact, device).map_err(|e| refuse(first_line(&e)))?;
        module.set_eval();
        Ok(Self { module, device, described })
    }

    pub(crate) fn signature(&self) -> Option<&Signature> {
        self.described.as_ref().map(|d| &d.signature)
    }

    /// Runs each batch size once, so that no request pays for a first time.
    pub(crate) fn warm(&mut self, largest: u32) -> Result<(), WorkerError> {
        let Some(described) = &self.described else { return Ok(()) };
        for rows in 1..=i64::from(largest) {
            let inputs = described.zeros(rows, self.device).map_err(WorkerError::Network)?;
            let ran = self.forward(&inputs).map_err(|reason| {
                WorkerError::Network(format!("the network does not take a batch of {rows}: {reason}"))
            })?;
            tensor::flat(ran).map_err(WorkerError::Network)?;
        }
        if let Device::Cuda(index) = self.device {
            tch::Cuda::synchronize(index as i64);
        }
        Ok(())
    }

    pub(crate) fn run(&mut self, batch: &Execute<'_>, body: &[u8]) -> Result<Answer, String> {
        let mut inputs = Vec::with_capacity(batch.inputs.len());
        let mut rest = body;
        for input in &batch.inputs {
            let length = usize::try_from(input.bytes).unwrap_or(usize::MAX);
            let (bytes, more) = rest.split_at_checked(length).ok_or("the batch ends inside a tensor")?;
            inputs.push((input.name.as_ref(), tensor::read(input, bytes, self.device)?));
            rest = more;
        }
        let outputs = tensor::flat(self.forward(&inputs)?)?;
        let names = self.signature().map(|s| s.outputs.as_slice()).unwrap_or_default();
        let mut answer = Answer { tensors: Vec::new(), bytes: Vec::new(), energy_j: None };
        for (index, output) in outputs.iter().enumerate() {
            let name = names.get(index).map_or_else(|| format!("output{index}"), |spec| spec.name.clone());
            let (head, bytes) = tensor::write(&name, output)?;
            answer.tensors.push(head);
            answer.bytes.push(bytes);
        }
        Ok(answer)
    }

    /// Runs the network on named inputs: in the order of its arguments where that is known, else as they came.
    fn forward(&self, inputs: &[(&str, Tensor)]) -> Result<IValue, String> {
        let arguments: Vec<IValue> = match &self.described {
            Some(described) => {
                let value = |argument: &Argument| match argument {
                    Argument::Input(name) => {
                        let found = inputs.iter().find(|(n, _)| n == name);
                        let tensor = found.map(|(_, tensor)| IValue::Tensor(tensor.shallow_clone()));
                        tensor.ok_or_else(|| format!("input `{name}` is missing"))
                    }
                    Argument::Integer(value) => Ok(IValue::Int(*value)),
                    Argument::Number(value) => Ok(IValue::Double(*value)),
                    Argument::Switch(value) => Ok(IValue::Bool(*value)),
                };
                described.arguments.iter().map(value).collect::<Result<_, String>>()?
            }
            None => inputs.iter().map(|(_, tensor)| IValue::Tensor(tensor.shallow_clone())).collect(),
        };
        tch::no_grad(|| self.module.forward_is(&arguments)).map_err(|error| first_line(&error))
    }
}

/// What torch says, without its stack.
fn first_line(error: &tch::TchError) -> String {
    let text = error.to_string();
    let is_said = |line: &&str| {
        let line = line.trim();
        !line.is_empty()
            && !line.ends_with("(most recent call last):")
            && !line.starts_with("Internal torch error")
    };
    let mut lines: Vec<&str> = text.lines().filter(is_said).collect();
    // The reason is the line that begins with the error's class; torch puts where it was before it.
    let reason = lines.iter().position(|line| line.contains("Error:"));
    if let Some(at) = reason {
        lines.drain(..at);
    }
    lines.first().map_or_else(|| "torch gives no reason".to_owned(), |line| line.trim().to_owned())
}
