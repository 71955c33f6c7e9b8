//! What a service says that it takes → a request that it takes: zeros of the right shape.

use super::{LoadError, Target};
use bytes::Bytes;
use ent_wire::Datatype;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Inputs with more bytes than this are sent as they are, not as text.
const TEXT: u64 = 256;

/// The largest input of one request (bytes).
const LARGEST: u64 = 64 << 20;

/// A request's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    bytes: Bytes,
    /// Length of the JSON in front of raw tensors.
    head: Option<usize>,
}

/// A body with one row of zeros for each input that a model's metadata names
/// (`GET /v2/models/NAME`), or for one input where it names none.
///
/// # Errors
/// What cannot be sent.
pub fn body(metadata: &Value) -> Result<Body, String> {
    let none = Vec::new();
    let named = metadata.get("inputs").and_then(Value::as_array).unwrap_or(&none);
    let default = [json!({ "name": "input", "datatype": "FP32", "shape": [-1, 1] })];
    let named = if named.is_empty() { default.as_slice() } else { named.as_slice() };
    let mut inputs = Vec::new();
    let mut raw = Vec::new();
    for input in named {
        let word = |key: &str| input.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (name, datatype) = (word("name"), word("datatype"));
        let known: Datatype = serde_json::from_value(Value::String(datatype.clone()))
            .map_err(|_| format!("its input `{name}` is of a type that is not known: `{datatype}`"))?;
        let dimensions = input.get("shape").and_then(Value::as_array).unwrap_or(&none);
        let free = |n: &Value| n.as_i64().filter(|n| *n > 0).unwrap_or(1);
        let mut shape: Vec<i64> = dimensions.iter().map(free).collect();
        if let Some(rows) = shape.first_mut() {
            *rows = 1;
        }
        let elements =
            shape.iter().try_fold(1_u64, |product, n| product.checked_mul(u64::try_from(*n).ok()?));
        // An element of BYTES is its length, four bytes, and then nothing.
        let bytes = elements.and_then(|n| n.checked_mul(known.size().unwrap_or(4) as u64));
        let Some(bytes) = bytes.filter(|bytes| raw.len() as u64 + bytes <= LARGEST) else {
            return Err(format!("its input `{name}` of shape {shape:?} is too large to be sent"));
        };
        let elements = usize::try_from(elements.unwrap_or(0)).unwrap_or(0);
        if bytes <= TEXT {
            let zero = if known == Datatype::Bool {
                json!(false)
            } else if known == Datatype::Bytes {
                json!("")
            } else if matches!(known, Datatype::Fp32 | Datatype::Fp64) {
                json!(0.0)
            } else {
                json!(0)
            };
            // Half precision has no form in JSON.
            if !matches!(known, Datatype::Fp16 | Datatype::Bf16) {
                let data = vec![zero; elements];
                inputs.push(json!({ "name": name, "datatype": datatype, "shape": shape, "data": data }));
                continue;
            }
        }
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        raw.resize(raw.len() + size, 0_u8);
        let parameters = json!({ "binary_data_size": bytes });
        inputs.push(json!({ "name": name, "datatype": datatype, "shape": shape, "parameters": parameters }));
    }
    let head = json!({ "inputs": inputs }).to_string();
    if raw.is_empty() {
        return Ok(Body { bytes: Bytes::from(head), head: None });
    }
    let length = head.len();
    let mut bytes = head.into_bytes();
    bytes.extend(raw);
    Ok(Body { bytes: Bytes::from(bytes), head: Some(length) })
}

/// What a gateway says of a model.
///
/// # Errors
/// When it does not answer, or does not have the model.
pub fn metadata(target: &Target, service: &str) -> Result<Value, LoadError> {
    let fail = |reason: String| LoadError::Service { service: service.to_owned(), reason };
    let (status, body) = get(target, &format!("/v2/models/{service}"))?;
    let value: Value = serde_json::from_slice(&body).map_err(|e| fail(format!("its metadata: {e}")))?;
    if (200..300).contains(&status) {
        return Ok(value);
    }
    let words = value.get("error").and_then(Value::as_str).unwrap_or("no reason was given");
    Err(fail(format!("HTTP {status}: {words}")))
}

/// Asks for a path once: the status, and the body.
///
/// # Errors
/// [`LoadError::Unreachable`] when there is no answer.
pub fn get(target: &Target, path: &str) -> Result<(u16, Bytes), LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exchange = async {
        let stream = tokio::net::TcpStream::connect(target.address).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let request = plain(target, Method::GET, path).body(Full::new(Bytes::new()));
        let request = request.map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), 64 << 20).collect().await;
        Ok((status, body.map_err(io::Error::other)?.to_bytes()))
    };
    let answer = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(10), exchange).await });
    let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    answer.map_err(|source| LoadError::Unreachable { address: target.address, source })
}

fn plain(target: &Target, method: Method, path: &str) -> hyper::http::request::Builder {
    let builder = Request::builder().method(method).uri(path).header("host", &target.host);
    match &target.token {
        Some(token) => builder.header("authorization", format!("Bearer {token}")),
        None => builder,
    }
}

/// A request that is sent again and again.
pub(super) struct Prepared {
    request: Request<Full<Bytes>>,
    /// Whether an answer was looked into.
    is_known: AtomicBool,
}

impl Prepared {
    pub(super) fn new(target: &Target, service: &str, body: &Body) -> Result<Self, LoadError> {
        let fail = |e: hyper::http::Error| LoadError::Service {
            service: service.to_owned(),
            reason: format!("a request cannot be made for it: {e}"),
        };
        let mut builder = plain(target, Method::POST, &format!("/v2/models/{service}/infer"));
        builder = match body.head {
            Some(head) => builder
                .header("content-type", "application/octet-stream")
                .header("inference-header-content-length", head),
            None => builder.header("content-type", "application/json"),
        };
        let request = builder.body(Full::new(body.bytes.clone())).map_err(fail)?;
        Ok(Self { request, is_known: AtomicBool::new(false) })
    }

    /// The request once more.
    pub(super) fn http(&self) -> Request<Full<Bytes>> {
        self.request.clone()
    }

    /// What took the time of the first answer.
    pub(super) fn look(&self, body: &[u8]) -> Option<String> {
        if self.is_known.swap(true, Ordering::Relaxed) {
            return None;
        }
        let first = serde_json::Deserializer::from_slice(body).into_iter::<Value>().next()?.ok()?;
        first.get("parameters")?.get("executor")?.as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_names_no_input_gets_one_number() {
        let body = body(&json!({ "name": "net", "inputs": [] })).unwrap();
        assert_eq!(body.head, None);
        let value: Value = serde_json::from_slice(&body.bytes).unwrap();
        assert_eq!(value["inputs"][0]["shape"], json!([1, 1]));
        assert_eq!(value["inputs"][0]["data"], json!([0.0]));
    }

    #[test]
    fn large_inputs_are_sent_raw_and_free_dimensions_are_one() {
        let image = json!({ "name": "image", "datatype": "FP32", "shape": [-1, 3, 224, 224] });
        let length = json!({ "name": "length", "datatype": "INT64", "shape": [-1, -1] });
        let body = body(&json!({ "inputs": [image, length] })).unwrap();
        let head = body.head.unwrap();
        assert_eq!(body.bytes.len(), head + 3 * 224 * 224 * 4);
        let value: Value = serde_json::from_slice(&body.bytes[..head]).unwrap();
        assert_eq!(value["inputs"][0]["shape"], json!([1, 3, 224, 224]));
        assert_eq!(value["inputs"][0]["parameters"]["binary_data_size"], json!(3 * 224 * 224 * 4));
        assert_eq!(value["inputs"][1]["data"], json!([0]));
    }

    #[test]
    fn what_cannot_be_sent_is_said() {
        let of = |datatype: &str, shape: Value| {
            body(&json!({ "inputs": [{ "name": "x", "datatype": datatype, "shape": shape }] }))
        };
        assert!(of("FP33", json!([-1])).unwrap_err().contains("FP33"));
        assert!(
            of("FP32", json!([1, 1_000_000_000, 1_000_000_000_000_i64])).unwrap_err().contains("too large")
        );
        assert!(of("FP16", json!([1, 2])).unwrap().head.is_some());
    }
}
