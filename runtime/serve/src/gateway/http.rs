//! Connections of HTTP clients: requests of the protocol in, answers out.

use super::front::{Front, Open};
use crate::protocol::{self, MODEL_VERSION, Refusal};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

mod body;
mod documents;

use body::Chunks;
pub(crate) use documents::{EXTENSIONS, SERVER, platform};

/// Where JSON ends and raw tensors begin, in requests and answers.
const JSON_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// Raw tensors up to this (bytes) are copied behind the JSON; larger ones are sent from where they are.
const COPIED: usize = 16 << 10;

/// What a listener is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Inference,
    Metrics,
}

/// Takes connections until the gateway drains.
pub(crate) async fn accept(
    front: Arc<Front>,
    listener: TcpListener,
    purpose: Purpose,
    mut ending: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|is_ending| *is_ending) => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(stream) = tuned(stream, front.options.limits.write_time) else { continue };
                let open = match (purpose, front.connect()) {
                    // What is measured is wanted most when there is too much of everything.
                    (Purpose::Metrics, _) => None,
                    (Purpose::Inference, Ok(open)) => Some(open),
                    (Purpose::Inference, Err(open)) => {
                        turn_away(&stream, open);
                        continue;
                    }
                };
                tokio::spawn(connection(Arc::clone(&front), open, stream, purpose, ending.clone()));
            }
            // Out of files, most likely: a connection that ends gives some back.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Sends small answers at once, notices a peer that is gone, and one that takes nothing.
pub(crate) fn tuned(stream: TcpStream, write_time: Duration) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(&stream);
    let idle = Duration::from_secs(30);
    socket.set_tcp_keepalive(&socket2::TcpKeepalive::new().with_time(idle).with_interval(idle / 3))?;
    // Also ends a connection whose peer lives but does not read (tcp(7): "or buffered data may remain
    // untransmitted (due to zero window size)").
    socket.set_tcp_user_timeout(Some(write_time))?;
    Ok(stream)
}

fn turn_away(stream: &TcpStream, open: usize) {
    let body = format!("{{\"error\":\"too many connections: {open} are open\"}}");
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n";
    let length = body.len();
    // As much as the empty socket takes, which is all of it; otherwise the client sees the end only.
    let _ = stream.try_write(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes());
}

async fn connection(
    front: Arc<Front>,
    _open: Option<Open>,
    stream: TcpStream,
    purpose: Purpose,
    mut ending: watch::Receiver<bool>,
) {
    let front = &front;
    let service = service_fn(|request| async move {
        Ok::<_, Infallible>(match purpose {
            Purpose::Inference => answer(front, request).await,
            Purpose::Metrics => metrics(front, &request),
        })
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(front.options.limits.head_time).pipeline_flush(true);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // What goes wrong with one connection is its client's to know, and it does.
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|is_ending| *is_ending) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn answer(front: &Arc<Front>, request: Request<Incoming>) -> Response<Chunks> {
    let (head, incoming) = request.into_parts();
    let mut unread = Some(incoming);
    let answered = route(front, &head, &mut unread).await;
    let mut response = answered.unwrap_or_else(|refusal| refuse(&refusal));
    // A connection that still has a body in it cannot take another request, and its client has to hear so.
    if let Some(incoming) = unread
        && !body::read_off(incoming, front.options.limits.body_bytes).await
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// An error of the protocol: a status, and why.
fn refuse(refusal: &Refusal) -> Response<Chunks> {
    let text = serde_json::json!({ "error": refusal.words() }).to_string();
    let mut response = Response::new(Chunks::one(text.into()));
    *response.status_mut() =
        StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    if let Some(seconds) = refusal.retry_after_s() {
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    if matches!(refusal, Refusal::Unauthorised) {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

fn json(text: String) -> Response<Chunks> {
    let mut response = Response::new(Chunks::one(text.into()));
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// Whether the token is sent, or none is needed.
pub(crate) fn is_authorised(token: Option<&str>, sent: Option<&[u8]>) -> bool {
    let Some(token) = token else { return true };
    let Some(sent) = sent.and_then(|s| s.strip_prefix(b"Bearer ")) else { return false };
    // Every byte is looked at, so that the time taken does not tell how much of it is right.
    let differs = sent.iter().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    differs == 0 && sent.len() == token.len()
}

/// Leaves the body in `unread` where it was not needed.
async fn route(
    front: &Arc<Front>,
    head: &Parts,
    unread: &mut Option<Incoming>,
) -> Result<Response<Chunks>, Refusal> {
    let sent = head.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if !is_authorised(front.options.token.as_deref(), sent) {
        return Err(Refusal::Unauthorised);
    }
    let path = head.uri.path();
    let unknown = || Refusal::UnknownPath(path.chars().take(200).collect());
    let mut parts = path.strip_prefix("/v2").ok_or_else(unknown)?.split('/').skip(1);
    let get = |response| if head.method == Method::GET { Ok(response) } else { Err(Refusal::Method("GET")) };
    let rest: [Option<&str>; 6] = std::array::from_fn(|_| parts.next().filter(|p| !p.is_empty()));
    let (model, verb) = match rest {
        [None, ..] => return get(json(documents::server())),
        [Some("health"), Some("live"), None, ..] => return get(documents::health(true)),
        [Some("health"), Some("ready"), None, ..] => return get(documents::health(front.is_ready())),
        [Some("models"), Some("stats"), None, ..] => return get(json(documents::statistics(front, None))),
        [Some("models"), Some(model), verb, None, ..] => (model, verb),
        [Some("models"), Some(model), Some("versions"), Some(version), verb, None] => {
            if version != MODEL_VERSION {
                let (model, version) = (model.to_owned(), version.to_owned());
                return Err(Refusal::UnknownVersion { model, version });
            }
            (model, verb)
        }
        _ => return Err(unknown()),
    };
    let service = front.service(model)?;
    match verb {
        Some("infer") if head.method == Method::POST => infer(front, service, head, unread).await,
        Some("infer") => Err(Refusal::Method("POST")),
        None => get(json(documents::model(&service))),
        Some("ready") => {
            get(documents::health(service.is_ready() && !front.is_draining.load(Ordering::Relaxed)))
        }
        Some("config") => get(json(documents::configuration(&service))),
        Some("stats") => get(json(documents::statistics(front, Some(model)))),
        Some(_) => Err(unknown()),
    }
}

async fn infer(
    front: &Arc<Front>,
    service: Arc<super::service::Service>,
    head: &Parts,
    unread: &mut Option<Incoming>,
) -> Result<Response<Chunks>, Refusal> {
    let _begun = front.begin();
    let json_length = json_length(&head.headers);
    if head.headers.get(header::CONTENT_ENCODING).is_some_and(|e| e.as_bytes() != b"identity") {
        return Err(Refusal::Unsupported("a compressed body"));
    }
    let received = body::receive(front, unread).await;
    let arrived = Instant::now();
    let (parsed, _held) = match (received, json_length) {
        (Ok((bytes, held)), Ok(length)) => (protocol::parse(&bytes, length), Some(held)),
        (Err(refusal), _) | (_, Err(refusal)) => (Err(refusal), None),
    };
    let traced = front.trace(&service.name, arrived, |name| head.headers.get(name)?.to_str().ok());
    let (request, share) = front.infer(Arc::clone(&service), parsed, arrived, traced).await?;
    let mut written = protocol::write(&service.name, &request, &share)?;
    let json_length = written.json.len();
    let is_binary = !written.raw.is_empty();
    let raw: usize = written.raw.iter().map(Bytes::len).sum();
    let chunks = if raw <= COPIED {
        written.raw.iter().for_each(|raw| written.json.extend_from_slice(raw));
        Chunks::one(written.json.into())
    } else {
        Chunks::many(std::iter::once(Bytes::from(written.json)).chain(written.raw))
    };
    let mut response = Response::new(chunks);
    let headers = response.headers_mut();
    if is_binary {
        headers.insert(header::CONTENT_TYPE, BINARY);
        headers.insert(JSON_LENGTH, json_length.into());
    } else {
        headers.insert(header::CONTENT_TYPE, JSON);
    }
    Ok(response)
}

fn json_length(headers: &HeaderMap) -> Result<Option<usize>, Refusal> {
    let Some(value) = headers.get(JSON_LENGTH) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || Refusal::Invalid(format!("`{JSON_LENGTH}` is not a number of bytes"));
    number.map(Some).ok_or_else(wrong)
}

fn metrics(front: &Front, request: &Request<Incoming>) -> Response<Chunks> {
    let sent = request.headers().get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    if !is_authorised(front.options.token.as_deref(), sent) {
        return refuse(&Refusal::Unauthorised);
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => {
            let mut response = Response::new(Chunks::one(front.metrics.text(&front.table()).into()));
            let format = HeaderValue::from_static(prometheus::TEXT_FORMAT);
            response.headers_mut().insert(header::CONTENT_TYPE, format);
            response
        }
        (_, "/metrics") => refuse(&Refusal::Method("GET")),
        (_, path) => refuse(&Refusal::UnknownPath(path.chars().take(200).collect())),
    }
}

/// Listens on an address, or says why not.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, super::StartError> {
    let fail = |source| super::StartError::Listen { address: address.to_string(), source };
    let bind = || {
        let kind = if address.is_ipv4() { socket2::Domain::IPV4 } else { socket2::Domain::IPV6 };
        let socket = socket2::Socket::new(kind, socket2::Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(4096)?;
        TcpListener::from_std(socket.into())
    };
    bind().map_err(fail)
}
