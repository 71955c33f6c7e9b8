//! The worker's side of a connection: blocking, one frame at a time, with one buffer for all of them.

use crate::frame::{self, HEAD_LENGTH, Head};
use crate::{Configure, FromWorker, Hello, Model, ToWorker, VERSION, Welcome, WireError};
use std::io::{IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// The largest body that a worker takes (bytes): far above any batch that the gateway's own limit lets
/// through, and far below what a machine has.
const BODY_LIMIT: u64 = 8 << 30;

/// A worker's connection to its gateway.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    message: Vec<u8>,
    body: Vec<u8>,
}

/// One frame of the gateway, in the connection's buffer.
#[derive(Debug)]
pub struct Received<'a> {
    /// What it says.
    pub message: ToWorker<'a>,
    /// The bytes of its tensors, in the message's order. They may be changed in place; aligned for any
    /// datatype only if the tensors before it are.
    pub body: &'a mut [u8],
}

impl Connection {
    /// Connects to the gateway's socket and says hello. Returns when the gateway has taken the worker.
    ///
    /// # Errors
    /// When there is no gateway, or it does not take the worker ([`WireError::Refused`]).
    pub fn open(socket: &Path, hello: Hello) -> Result<(Self, Model, Configure), WireError> {
        let mut connection = Self::from(UnixStream::connect(socket)?);
        connection.send(&FromWorker::Hello(Hello { version: VERSION, ..hello }), &[])?;
        match connection.receive()?.message {
            ToWorker::Welcome(Welcome { model, configure }) => Ok((connection, model, configure)),
            ToWorker::Refused(refused) => Err(WireError::Refused(refused.reason)),
            other @ (ToWorker::Configure(_) | ToWorker::Execute(_) | ToWorker::Shutdown) => {
                Err(WireError::Unexpected(other.word()))
            }
        }
    }

    /// Waits for the next frame. What the last one returned is gone then.
    ///
    /// # Errors
    /// [`WireError::Closed`] when the gateway ended the connection between two frames; anything else when
    /// it cannot go on.
    pub fn receive(&mut self) -> Result<Received<'_>, WireError> {
        let mut head = [0; HEAD_LENGTH];
        let mut filled = 0;
        while filled < HEAD_LENGTH {
            match self.stream.read(&mut head[filled..]) {
                Ok(0) if filled == 0 => return Err(WireError::Closed),
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        let head = Head::read(&head, BODY_LIMIT)?;
        self.message.resize(head.message, 0);
        self.stream.read_exact(&mut self.message)?;
        self.body.resize(head.body, 0);
        self.stream.read_exact(&mut self.body)?;
        let message = frame::read_to_worker(&self.message, head.body)?;
        Ok(Received { message, body: &mut self.body })
    }

    /// Sends a frame: a message, and the bytes of its tensors in the message's order.
    ///
    /// # Errors
    /// When the message and the bytes do not fit each other, or the connection cannot go on.
    pub fn send(&mut self, message: &FromWorker<'_>, tensors: &[&[u8]]) -> Result<(), WireError> {
        let present: u64 = tensors.iter().map(|t| t.len() as u64).sum();
        let declared = message.body_length();
        if present != declared {
            return Err(WireError::Body { declared, present });
        }
        let start = frame::from_worker(message)?;
        let mut slices = Vec::with_capacity(1 + tensors.len());
        slices.push(IoSlice::new(&start));
        slices.extend(tensors.iter().filter(|t| !t.is_empty()).map(|t| IoSlice::new(t)));
        let mut left = slices.as_mut_slice();
        while !left.is_empty() {
            match self.stream.write_vectored(left) {
                Ok(0) => return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into()),
                Ok(n) => IoSlice::advance_slices(&mut left, n),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// The socket, for timeouts and for being woken from another thread.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }
}

impl From<UnixStream> for Connection {
    fn from(stream: UnixStream) -> Self {
        Self { stream, message: Vec::new(), body: Vec::new() }
    }
}
