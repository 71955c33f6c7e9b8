//! Connections of gRPC clients: the same requests and answers, over HTTP/2.

use super::front::{Front, Open};
use super::http::{EXTENSIONS, SERVER, is_authorised, platform, tuned};
use super::service::Service;
use crate::protocol::grpc::grpc_inference_service_server::{
    GrpcInferenceService, GrpcInferenceServiceServer,
};
use crate::protocol::grpc::model_metadata_response::TensorMetadata;
use crate::protocol::grpc::{
    ModelInferRequest, ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse, ModelReadyRequest,
    ModelReadyResponse, ModelStreamInferResponse, ServerLiveRequest, ServerLiveResponse,
    ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest, ServerReadyResponse,
};
use crate::protocol::{MODEL_VERSION, Refusal, from_message, to_message};
use ent_wire::TensorSpec;
use futures_util::{Stream, StreamExt};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::metadata::MetadataMap;
use tonic::transport::server::Connected;
use tonic::{Code, Request, Response, Status, Streaming};

/// Requests of one stream that are answered at a time.
const OF_ONE_STREAM: usize = 256;

/// Requests of one connection that are answered at a time.
const OF_ONE_CONNECTION: u32 = 1024;

/// Bytes that a client may send before they are taken: a tensor of some size without a pause.
const WINDOW: u32 = 1 << 20;

/// Serves gRPC until the gateway drains, and then what is there.
pub(crate) async fn serve(front: Arc<Front>, listener: TcpListener, mut ending: watch::Receiver<bool>) {
    let limits = front.options.limits.clone();
    let message = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
    let service = GrpcInferenceServiceServer::new(Door { front: Arc::clone(&front) })
        .max_decoding_message_size(message)
        .max_encoding_message_size(usize::MAX);
    let incoming = connections(Arc::clone(&front), listener);
    let drained = async move { drop(ending.wait_for(|is_ending| *is_ending).await) };
    // What goes wrong with one connection is its client's to know, and it does.
    let _ = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(limits.head_time))
        .http2_keepalive_timeout(Some(limits.head_time))
        .max_concurrent_streams(OF_ONE_CONNECTION)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(4 * WINDOW)
        .add_service(service)
        .serve_with_incoming_shutdown(incoming, drained)
        .await;
}

/// Connections as clients make them. One over the limit ends at once: the protocol has no words for it.
fn connections(front: Arc<Front>, listener: TcpListener) -> impl Stream<Item = io::Result<Connection>> {
    futures_util::stream::unfold((front, listener), async |(front, listener)| {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let stream = tuned(stream, front.options.limits.write_time);
                    if let (Ok(stream), Ok(open)) = (stream, front.connect()) {
                        return Some((Ok(Connection { stream, _open: open }), (front, listener)));
                    }
                }
                // Out of files, most likely: a connection that ends gives some back.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    })
}

/// A connection that is counted.
struct Connection {
    stream: TcpStream,
    _open: Open,
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[derive(Clone)]
struct Door {
    front: Arc<Front>,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match &refusal {
            Refusal::Invalid(_) | Refusal::BodyCut(_) | Refusal::Method(_) => Code::InvalidArgument,
            Refusal::Unsupported(_) => Code::Unimplemented,
            Refusal::UnknownModel(_) | Refusal::UnknownVersion { .. } | Refusal::UnknownPath(_) => {
                Code::NotFound
            }
            Refusal::Unauthorised => Code::Unauthenticated,
            Refusal::BodyTooLarge(_) | Refusal::Full(_) => Code::ResourceExhausted,
            Refusal::BodyTooSlow(_) => Code::DeadlineExceeded,
            Refusal::Late { .. } | Refusal::Absent(_) | Refusal::Draining => Code::Unavailable,
            Refusal::Failed(_) => Code::Internal,
        };
        let mut status = Self::new(code, refusal.words());
        if let Some(seconds) = refusal.retry_after_s() {
            // What clients of gRPC look at before they try again.
            status.metadata_mut().insert("grpc-retry-pushback-ms", seconds.saturating_mul(1000).into());
        }
        status
    }
}

impl Door {
    fn authorise(&self, metadata: &MetadataMap) -> Result<(), Refusal> {
        let sent = metadata.get("authorization").map(|v| v.as_bytes());
        let is_authorised = is_authorised(self.front.options.token.as_deref(), sent);
        if is_authorised { Ok(()) } else { Err(Refusal::Unauthorised) }
    }

    fn service(&self, name: &str, version: &str) -> Result<Arc<Service>, Refusal> {
        let service = self.front.service(name)?;
        if version.is_empty() || version == MODEL_VERSION {
            return Ok(service);
        }
        Err(Refusal::UnknownVersion { model: name.to_owned(), version: version.to_owned() })
    }

    async fn infer(
        &self,
        message: ModelInferRequest,
        timeout: Option<Duration>,
        metadata: Option<&MetadataMap>,
    ) -> Result<ModelInferResponse, Refusal> {
        let arrived = Instant::now();
        let _begun = self.front.begin();
        let service = self.service(&message.model_name, &message.model_version)?;
        let raw = message.raw_input_contents.iter().map(|raw| raw.len() as u64).sum();
        let (request, _held) = match self.front.hold(raw) {
            Ok(held) => (from_message(message), Some(held)),
            Err(refusal) => (Err(refusal), None),
        };
        let request = request.map(|mut request| {
            request.timeout = request.timeout.into_iter().chain(timeout).min();
            request
        });
        let traced = self.front.trace(&service.name, arrived, |name| metadata?.get(name)?.to_str().ok());
        let (request, share) = self.front.infer(Arc::clone(&service), request, arrived, traced).await?;
        Ok(to_message(&service.name, &request, &share))
    }
}

/// How long the client waits, as it says in the protocol's own way: up to eight digits and a unit.
fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|n| *n < 100_000_000)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

fn tensors(specs: &[TensorSpec]) -> Vec<TensorMetadata> {
    let one = |s: &TensorSpec| TensorMetadata {
        name: s.name.clone(),
        datatype: s.datatype.name().to_owned(),
        shape: s.shape.clone(),
    };
    specs.iter().map(one).collect()
}

#[tonic::async_trait]
impl GrpcInferenceService for Door {
    type ModelStreamInferStream =
        Pin<Box<dyn Stream<Item = Result<ModelStreamInferResponse, Status>> + Send>>;

    async fn server_live(
        &self,
        _: Request<ServerLiveRequest>,
    ) -> Result<Response<ServerLiveResponse>, Status> {
        Ok(Response::new(ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> Result<Response<ServerReadyResponse>, Status> {
        Ok(Response::new(ServerReadyResponse { ready: self.front.is_ready() }))
    }

    async fn model_ready(
        &self,
        request: Request<ModelReadyRequest>,
    ) -> Result<Response<ModelReadyResponse>, Status> {
        self.authorise(request.metadata())?;
        let ModelReadyRequest { name, version } = request.into_inner();
        let service = self.service(&name, &version)?;
        let ready = service.is_ready() && !self.front.is_draining.load(Ordering::Relaxed);
        Ok(Response::new(ModelReadyResponse { ready }))
    }

    async fn server_metadata(
        &self,
        request: Request<ServerMetadataRequest>,
    ) -> Result<Response<ServerMetadataResponse>, Status> {
        self.authorise(request.metadata())?;
        Ok(Response::new(ServerMetadataResponse {
            name: SERVER.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            extensions: EXTENSIONS.map(str::to_owned).to_vec(),
        }))
    }

    async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> Result<Response<ModelMetadataResponse>, Status> {
        self.authorise(request.metadata())?;
        let ModelMetadataRequest { name, version } = request.into_inner();
        let service = self.service(&name, &version)?;
        Ok(Response::new(ModelMetadataResponse {
            versions: vec![MODEL_VERSION.to_owned()],
            platform: platform(&service),
            inputs: service.signature().map(|s| tensors(&s.inputs)).unwrap_or_default(),
            outputs: tensors(&service.outputs().outputs),
            name,
        }))
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> Result<Response<ModelInferResponse>, Status> {
        self.authorise(request.metadata())?;
        let (metadata, _, message) = request.into_parts();
        let timeout = timeout(&metadata);
        Ok(Response::new(self.infer(message, timeout, Some(&metadata)).await?))
    }

    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Result<Response<Self::ModelStreamInferStream>, Status> {
        self.authorise(request.metadata())?;
        let door = self.clone();
        let answers = request.into_inner().map(move |message| {
            let door = door.clone();
            async move {
                let message = message?;
                let id = message.id.clone();
                Ok(match door.infer(message, None, None).await {
                    Ok(response) => ModelStreamInferResponse {
                        error_message: String::new(),
                        infer_response: Some(response),
                    },
                    // The stream goes on: one wrong request is not the others' fault.
                    Err(refusal) => ModelStreamInferResponse {
                        error_message: refusal.words(),
                        infer_response: Some(ModelInferResponse { id, ..ModelInferResponse::default() }),
                    },
                })
            }
        });
        Ok(Response::new(Box::pin(answers.buffered(OF_ONE_STREAM))))
    }
}
