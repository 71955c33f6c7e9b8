//! Requests and answers of the protocol's HTTP form: JSON, with raw tensors behind it where asked.

use super::elements::{read, string_json, write as write_elements};
use super::{InferRequest, MODEL_VERSION, Refusal, RequestedOutput, Share, TensorData, elements};
use bytes::Bytes;
use ent_wire::Datatype;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    parameters: Option<RequestParameters<'a>>,
    #[serde(borrow)]
    inputs: Vec<Input<'a>>,
    #[serde(borrow, default)]
    outputs: Option<Vec<Output<'a>>>,
}

#[derive(Default, Deserialize)]
struct RequestParameters<'a> {
    #[serde(default)]
    binary_data_output: bool,
    /// Microseconds.
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(borrow, default)]
    sequence_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    shape: Vec<i64>,
    datatype: Datatype,
    #[serde(borrow, default)]
    parameters: Option<TensorParameters<'a>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct TensorParameters<'a> {
    #[serde(default)]
    binary_data_size: Option<u64>,
    #[serde(default)]
    binary_data: Option<bool>,
    #[serde(borrow, default)]
    shared_memory_region: Option<&'a RawValue>,
    #[serde(default)]
    classification: Option<u64>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    parameters: Option<TensorParameters<'a>>,
}

/// Reads a request. `json_length` is how much of the body is JSON (`Inference-Header-Content-Length`);
/// the raw tensors follow, and are not copied.
///
/// # Errors
/// What is wrong with it, in words. Shapes and data fit each other afterwards in number of bytes as far
/// as JSON tells; [`super::check`] has the rest.
pub fn parse(body: &Bytes, json_length: Option<usize>) -> Result<InferRequest, Refusal> {
    let invalid = |message: String| Refusal::Invalid(message);
    let length = json_length.unwrap_or(body.len());
    let Some(json) = body.get(..length) else {
        let total = body.len();
        return Err(invalid(format!("the header says {length} bytes of JSON, but the body has {total}")));
    };
    let request: Request<'_> = serde_json::from_slice(json)
        .map_err(|e| invalid(format!("the request is not one of the protocol: {e}")))?;
    let parameters = request.parameters.unwrap_or_default();
    let is_sequence = |id: &RawValue| !matches!(id.get(), "0" | "\"\"" | "null");
    if parameters.sequence_id.is_some_and(is_sequence) {
        return Err(Refusal::Unsupported("a sequence of requests"));
    }
    let mut raw = body.slice(length..);
    let mut inputs = Vec::with_capacity(request.inputs.len());
    for input in request.inputs {
        let parameters = input.parameters.unwrap_or_default();
        unsupported(&parameters)?;
        let name = input.name.into_owned();
        let data = match (parameters.binary_data_size, input.data) {
            (Some(_), Some(_)) => {
                return Err(invalid(format!("input `{name}` has both `data` and `binary_data_size`")));
            }
            (None, None) => {
                return Err(invalid(format!("input `{name}` has neither `data` nor `binary_data_size`")));
            }
            (Some(size), None) => {
                let Some(size) = usize::try_from(size).ok().filter(|size| *size <= raw.len()) else {
                    let left = raw.len();
                    return Err(invalid(format!(
                        "input `{name}` says {size} bytes of binary data, but {left} are left in the body"
                    )));
                };
                raw.split_to(size)
            }
            (None, Some(data)) => {
                let Some(count) = elements(&input.shape) else {
                    let shape = &input.shape;
                    return Err(invalid(format!("input `{name}` has an impossible shape {shape:?}")));
                };
                read(&name, input.datatype, count, data.get())?
            }
        };
        inputs.push(TensorData { name, datatype: input.datatype, shape: input.shape, data });
    }
    if !raw.is_empty() {
        let left = raw.len();
        return Err(invalid(format!("{left} bytes of the body belong to no input")));
    }
    let mut outputs = Vec::new();
    for output in request.outputs.unwrap_or_default() {
        let parameters = output.parameters.unwrap_or_default();
        unsupported(&parameters)?;
        outputs.push(RequestedOutput { name: output.name.into_owned(), is_binary: parameters.binary_data });
    }
    Ok(InferRequest {
        id: request.id.map(Cow::into_owned),
        inputs,
        outputs,
        is_binary: parameters.binary_data_output,
        timeout: parameters.timeout.filter(|us| *us > 0).map(Duration::from_micros),
    })
}

fn unsupported(parameters: &TensorParameters<'_>) -> Result<(), Refusal> {
    if parameters.shared_memory_region.is_some() {
        return Err(Refusal::Unsupported("shared memory between client and server"));
    }
    if parameters.classification.is_some_and(|n| n > 0) {
        return Err(Refusal::Unsupported("classification"));
    }
    Ok(())
}

/// An answer, written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The JSON.
    pub json: Vec<u8>,
    /// Raw tensors to follow it.
    pub raw: Vec<Bytes>,
}

/// Writes the answer to a request for a model.
///
/// # Errors
/// When an output cannot be JSON and was not asked for as binary data.
pub fn write(model: &str, request: &InferRequest, share: &Share) -> Result<Written, Refusal> {
    let mut written = Written { json: Vec::with_capacity(256), raw: Vec::new() };
    let json = &mut written.json;
    json.push(b'{');
    if let Some(id) = &request.id {
        json.extend_from_slice(b"\"id\":");
        string_json(id, json);
        json.push(b',');
    }
    json.extend_from_slice(b"\"model_name\":");
    string_json(model, json);
    json.extend_from_slice(b",\"model_version\":\"");
    json.extend_from_slice(MODEL_VERSION.as_bytes());
    json.extend_from_slice(b"\",\"parameters\":{\"executor\":\"");
    json.extend_from_slice(share.answer.executor.word().as_bytes());
    json.extend_from_slice(b"\"},\"outputs\":[");
    let mut is_first = true;
    for output in share.outputs() {
        let wanted = request.outputs.iter().find(|o| o.name == output.name);
        if wanted.is_none() && !request.outputs.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            json.push(b',');
        }
        json.extend_from_slice(b"{\"name\":");
        string_json(output.name, json);
        json.extend_from_slice(b",\"datatype\":\"");
        json.extend_from_slice(output.datatype.name().as_bytes());
        json.extend_from_slice(b"\",\"shape\":[");
        let mut buffer = itoa::Buffer::new();
        for (i, dimension) in output.shape().enumerate() {
            if i > 0 {
                json.push(b',');
            }
            json.extend_from_slice(buffer.format(dimension).as_bytes());
        }
        json.push(b']');
        if wanted.and_then(|o| o.is_binary).unwrap_or(request.is_binary) {
            json.extend_from_slice(b",\"parameters\":{\"binary_data_size\":");
            json.extend_from_slice(buffer.format(output.data.len()).as_bytes());
            json.extend_from_slice(b"}}");
            written.raw.push(output.data);
        } else {
            json.extend_from_slice(b",\"data\":");
            write_elements(output.name, output.datatype, &output.data, json)?;
            json.push(b'}');
        }
    }
    json.extend_from_slice(b"]}");
    Ok(written)
}
