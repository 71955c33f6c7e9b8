//! A question to a supervisor → its answer, without a runtime.

use super::control::{Answer, Question};
use super::folder::{Address, CONTROL};
use super::status::Status;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A connection to a supervisor.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the supervisor of a folder; `None` when none runs there.
    ///
    /// # Errors
    /// When there is one that this user may not ask.
    pub fn connect(folder: &Path) -> io::Result<Option<Self>> {
        let connected = Address::of(folder, CONTROL).and_then(|address| UnixStream::connect(&address.path));
        match connected {
            Ok(stream) => Ok(Some(Self { stream: BufReader::new(stream) })),
            // No folder, no socket, or one that a killed supervisor has left.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Asks, and waits for the answer for so long.
    ///
    /// # Errors
    /// When the supervisor has gone, or does not answer in time.
    pub fn ask(&mut self, question: &Question, patience: Duration) -> io::Result<Answer> {
        let mut text = serde_json::to_vec(question)?;
        text.push(b'\n');
        let stream = self.stream.get_mut();
        stream.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        stream.write_all(&text)?;
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// What it has.
    ///
    /// # Errors
    /// As [`Client::ask`]; also when it does not say.
    pub fn status(&mut self) -> io::Result<Status> {
        match self.ask(&Question::Status, Duration::from_secs(10))? {
            Answer::Status(status) => Ok(*status),
            Answer::Refused { reason } => Err(io::Error::new(ErrorKind::PermissionDenied, reason)),
            other @ (Answer::Reloaded(_) | Answer::Vacated | Answer::Ending) => {
                Err(io::Error::new(ErrorKind::InvalidData, format!("an answer to no question: {other:?}")))
            }
        }
    }

    /// Has the workers of these replicas end, and waits until they are gone.
    ///
    /// # Errors
    /// As [`Client::ask`]; also when it refuses.
    pub fn vacate(&mut self, replicas: &[String]) -> io::Result<()> {
        let question = Question::Vacate { replicas: replicas.to_vec() };
        match self.ask(&question, Duration::from_secs(120))? {
            Answer::Vacated => Ok(()),
            Answer::Refused { reason } => Err(io::Error::new(ErrorKind::WouldBlock, reason)),
            other @ (Answer::Status(_) | Answer::Reloaded(_) | Answer::Ending) => {
                Err(io::Error::new(ErrorKind::InvalidData, format!("an answer to no question: {other:?}")))
            }
        }
    }
}
