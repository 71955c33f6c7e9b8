//! What a supervisor is asked on its socket, and what it answers: one JSON object a line.
//!
//! Only the user that it runs as, and root, is answered.

use super::status::Status;
use super::{Reloaded, Supervisor};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

/// The longest question (bytes).
const LONGEST: u64 = 4096;

/// A question to a supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ask")]
pub enum Question {
    /// What is there?
    Status,
    /// Run what `deployment.next.json` says, or `deployment.json` where there is no such.
    Reload,
    /// End the workers of these replicas, and return when they are gone: their devices are about to go. Their
    /// requests go to other replicas of the service, or wait for the next reload.
    Vacate {
        /// Their places.
        replicas: Vec<String>,
    },
    /// Take no more requests, answer those that are there, and end.
    Drain {
        /// How long they may take (s).
        patience_s: f64,
    },
    /// End now: requests that are there fail.
    Stop,
}

/// A supervisor's answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer")]
pub enum Answer {
    /// What is there.
    Status(Box<Status>),
    /// What became of a reload.
    Reloaded(Reloaded),
    /// The workers are gone.
    Vacated,
    /// It is about to end.
    Ending,
    /// The question was not understood, or is not answered.
    Refused {
        /// Why.
        reason: String,
    },
}

/// Answers for as long as the supervisor runs.
pub(super) async fn answer(supervisor: Arc<Supervisor>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let supervisor = Arc::clone(&supervisor);
                tokio::spawn(async move {
                    // Whoever asked has gone, if this fails.
                    let _ = converse(&supervisor, stream).await;
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn converse(supervisor: &Arc<Supervisor>, stream: UnixStream) -> std::io::Result<()> {
    let asker = stream.peer_cred()?.uid();
    let is_allowed = asker == 0 || asker == rustix::process::geteuid().as_raw();
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        if (&mut read).take(LONGEST).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice(&line) {
            _ if !is_allowed => Answer::Refused { reason: "another user's supervisor".to_owned() },
            Ok(question) => supervisor.asked(question).await,
            Err(error) => Answer::Refused { reason: format!("not a question: {error}") },
        };
        let mut text = serde_json::to_vec(&answer).map_err(std::io::Error::other)?;
        text.push(b'\n');
        write.write_all(&text).await?;
    }
}
