//! Requests and answers of the protocol's gRPC form.

use super::grpc::infer_parameter::ParameterChoice;
use super::grpc::model_infer_request::InferInputTensor;
use super::grpc::model_infer_response::InferOutputTensor;
use super::grpc::{InferParameter, InferTensorContents, ModelInferRequest, ModelInferResponse};
use super::{InferRequest, MODEL_VERSION, Refusal, RequestedOutput, Share, TensorData, elements};
use bytes::Bytes;
use ent_wire::Datatype;
use std::collections::HashMap;
use std::time::Duration;

type Parameters = HashMap<String, InferParameter>;

/// Reads a request. Raw tensors are not copied.
///
/// # Errors
/// What is wrong with it, in words; [`super::check`] has the rest.
pub fn from_message(message: ModelInferRequest) -> Result<InferRequest, Refusal> {
    let is_raw = !message.raw_input_contents.is_empty();
    let (wanted, present) = (message.inputs.len(), message.raw_input_contents.len());
    if is_raw && wanted != present {
        return Err(Refusal::Invalid(format!("{wanted} inputs have {present} raw contents")));
    }
    if !matches!(integer(&message.parameters, "sequence_id"), None | Some(0)) {
        return Err(Refusal::Unsupported("a sequence of requests"));
    }
    let mut raw = message.raw_input_contents.into_iter();
    let mut inputs = Vec::with_capacity(wanted);
    for input in message.inputs {
        unsupported(&input.parameters)?;
        let datatype = input.datatype.parse::<Datatype>().map_err(|e| Refusal::Invalid(e.to_string()))?;
        let data = match (raw.next(), &input.contents) {
            (Some(_), Some(contents)) if *contents != InferTensorContents::default() => {
                let name = input.name;
                return Err(Refusal::Invalid(format!("input `{name}` has both raw contents and its own")));
            }
            (Some(raw), _) => raw,
            (None, contents) => typed(&input, datatype, contents.as_ref())?,
        };
        inputs.push(TensorData { name: input.name, datatype, shape: input.shape, data });
    }
    let mut outputs = Vec::with_capacity(message.outputs.len());
    for output in message.outputs {
        unsupported(&output.parameters)?;
        outputs.push(RequestedOutput { name: output.name, is_binary: None });
    }
    let timeout = integer(&message.parameters, "timeout").and_then(|us| u64::try_from(us).ok());
    Ok(InferRequest {
        id: (!message.id.is_empty()).then_some(message.id),
        inputs,
        outputs,
        is_binary: true,
        timeout: timeout.filter(|us| *us > 0).map(Duration::from_micros),
    })
}

fn integer(parameters: &Parameters, name: &str) -> Option<i64> {
    match parameters.get(name)?.parameter_choice.as_ref()? {
        ParameterChoice::Int64Param(n) => Some(*n),
        ParameterChoice::Uint64Param(n) => Some(i64::try_from(*n).unwrap_or(i64::MAX)),
        ParameterChoice::StringParam(text) => Some(i64::from(!text.is_empty())),
        ParameterChoice::BoolParam(_) | ParameterChoice::DoubleParam(_) => None,
    }
}

fn unsupported(parameters: &Parameters) -> Result<(), Refusal> {
    if parameters.contains_key("shared_memory_region") {
        return Err(Refusal::Unsupported("shared memory between client and server"));
    }
    if integer(parameters, "classification").is_some_and(|n| n > 0) {
        return Err(Refusal::Unsupported("classification"));
    }
    Ok(())
}

/// Elements from the field of their datatype, as bytes.
fn typed(
    input: &InferInputTensor,
    datatype: Datatype,
    contents: Option<&InferTensorContents>,
) -> Result<Bytes, Refusal> {
    let name = &input.name;
    let invalid = |what: String| Refusal::Invalid(format!("input `{name}` {what}"));
    let none = InferTensorContents::default();
    let from = contents.unwrap_or(&none);
    let mut bytes = Vec::new();
    macro_rules! all {
        ($field:ident, $kind:ty) => {{
            for value in &from.$field {
                let value = <$kind>::try_from(*value)
                    .map_err(|_| invalid(format!("is {datatype}, but has the element {value}")))?;
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            from.$field.len()
        }};
    }
    let count = match datatype {
        Datatype::Bool => {
            bytes.extend(from.bool_contents.iter().map(|b| u8::from(*b)));
            from.bool_contents.len()
        }
        Datatype::Int8 => all!(int_contents, i8),
        Datatype::Int16 => all!(int_contents, i16),
        Datatype::Int32 => all!(int_contents, i32),
        Datatype::Int64 => all!(int64_contents, i64),
        Datatype::Uint8 => all!(uint_contents, u8),
        Datatype::Uint16 => all!(uint_contents, u16),
        Datatype::Uint32 => all!(uint_contents, u32),
        Datatype::Uint64 => all!(uint64_contents, u64),
        Datatype::Fp32 => all!(fp32_contents, f32),
        Datatype::Fp64 => all!(fp64_contents, f64),
        Datatype::Fp16 | Datatype::Bf16 => {
            return Err(invalid(format!("is {datatype}, which has to be sent as raw contents")));
        }
        Datatype::Bytes => {
            for string in &from.bytes_contents {
                let length = u32::try_from(string.len()).map_err(|_| invalid("is too long".to_owned()))?;
                bytes.extend_from_slice(&length.to_le_bytes());
                bytes.extend_from_slice(string);
            }
            from.bytes_contents.len()
        }
    };
    match elements(&input.shape) {
        Some(expected) if expected == count => Ok(bytes.into()),
        Some(expected) => Err(invalid(format!(
            "has {count} elements in the contents of {datatype}; its shape has {expected}"
        ))),
        None => Err(invalid(format!("has an impossible shape {:?}", input.shape))),
    }
}

/// Writes the answer to a request for a model, with raw tensors.
#[must_use]
pub fn to_message(model: &str, request: &InferRequest, share: &Share) -> ModelInferResponse {
    let word = ParameterChoice::StringParam(share.answer.executor.word().to_owned());
    let executor = InferParameter { parameter_choice: Some(word) };
    let mut message = ModelInferResponse {
        model_name: model.to_owned(),
        model_version: MODEL_VERSION.to_owned(),
        id: request.id.clone().unwrap_or_default(),
        parameters: HashMap::from([("executor".to_owned(), executor)]),
        ..ModelInferResponse::default()
    };
    for output in share.outputs() {
        if request.outputs.is_empty() || request.outputs.iter().any(|o| o.name == output.name) {
            message.outputs.push(InferOutputTensor {
                name: output.name.to_owned(),
                datatype: output.datatype.name().to_owned(),
                shape: output.shape().collect(),
                ..InferOutputTensor::default()
            });
            message.raw_output_contents.push(output.data);
        }
    }
    message
}
