//! Requests → answers, over connections that are kept and used again. As many as there are requests at a time.

use super::Target;
use super::request::Prepared;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpStream;

/// The largest answer (bytes).
const LARGEST: usize = 256 << 20;

/// How a request ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// With a good answer.
    Answered {
        /// What took its time, when the answer was looked into.
        executor: Option<String>,
    },
    /// Not well.
    Failed {
        /// Of which kind.
        reason: String,
        /// In particular.
        example: String,
    },
}

fn failed(reason: &str, example: impl std::fmt::Display) -> Outcome {
    Outcome::Failed { reason: reason.to_owned(), example: example.to_string() }
}

/// Connections to one gateway.
pub(super) struct Pool {
    target: Target,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
    opened: AtomicU64,
}

impl Pool {
    pub(super) fn new(target: Target) -> Self {
        Self { target, idle: Mutex::default(), opened: AtomicU64::new(0) }
    }

    /// Connections that were opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Sends a request and reads its whole answer.
    pub(super) async fn send(&self, request: &Prepared) -> Outcome {
        match tokio::time::timeout(self.target.timeout, self.exchange(request)).await {
            Ok(outcome) => outcome,
            Err(_) => failed("timeout", format!("no answer within {:?}", self.target.timeout)),
        }
    }

    async fn exchange(&self, request: &Prepared) -> Outcome {
        let mut connection = match self.connection().await {
            Ok(connection) => connection,
            Err(error) => return failed("connection", error),
        };
        let response = match connection.send_request(request.http()).await {
            Ok(response) => response,
            Err(error) => return failed("connection", error),
        };
        let status = response.status();
        let body = match Limited::new(response.into_body(), LARGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return failed("connection", error),
        };
        // The answer is read to its end, so that another request can follow.
        self.idle.lock().push(connection);
        if status.is_success() {
            return Outcome::Answered { executor: request.look(&body) };
        }
        let text = String::from_utf8_lossy(&body);
        let words = serde_json::from_str::<serde_json::Value>(&text).ok();
        let words = words.as_ref().and_then(|v| v.get("error")?.as_str()).unwrap_or(&text);
        failed(&format!("HTTP {}", status.as_u16()), words)
    }

    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        while let Some(mut idle) = { self.idle.lock().pop() } {
            // It becomes ready as soon as its task has seen the end of the last answer.
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
        let stream = TcpStream::connect(self.target.address).await.map_err(|e| e.to_string())?;
        let _ = stream.set_nodelay(true);
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
        tokio::spawn(async move {
            // Its requests hear of it.
            let _ = connection.await;
        });
        self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(sender)
    }
}
