//! The gateway's end of one worker's connection: frames out at once where the socket takes them, frames in.

use bytes::{Buf, Bytes, BytesMut};
use ent_wire::frame::{self, HEAD_LENGTH, Head};
use ent_wire::{ToWorker, WireError};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use tokio::net::UnixStream;
use tokio::sync::Notify;

/// The largest answer to a batch (bytes of tensors).
const BODY_LIMIT: u64 = 2 << 30;

/// Room that is made before each read.
const CHUNK: usize = 64 << 10;

/// One worker's connection.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    /// What the socket did not take yet.
    backlog: Mutex<VecDeque<Bytes>>,
    more: Notify,
}

/// A frame of a worker.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The message, to be read with [`frame::read_from_worker`].
    pub(crate) message: Bytes,
    /// The bytes of its tensors.
    pub(crate) body: Bytes,
}

impl Link {
    pub(crate) fn new(stream: UnixStream) -> Self {
        Self { stream, backlog: Mutex::default(), more: Notify::new() }
    }

    /// Sends a frame: on this thread as far as the socket takes it, the rest by [`Link::drain`]. A broken
    /// connection is not noticed here but by its reader.
    pub(crate) fn send(&self, message: &ToWorker<'_>, tensors: &[&Bytes]) {
        let Ok(start) = frame::to_worker(message) else { return };
        let mut backlog = self.backlog.lock();
        let mut written = 0;
        if backlog.is_empty() {
            let mut slices = Vec::with_capacity(1 + tensors.len());
            slices.push(IoSlice::new(&start));
            slices.extend(tensors.iter().map(|t| IoSlice::new(t)));
            match self.stream.try_write_vectored(&slices) {
                Ok(n) => written = n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
        let total = start.len() + tensors.iter().map(|t| t.len()).sum::<usize>();
        if written < total {
            let pieces = std::iter::once(Bytes::from(start)).chain(tensors.iter().copied().cloned());
            for mut piece in pieces {
                let skipped = written.min(piece.len());
                piece.advance(skipped);
                written -= skipped;
                if !piece.is_empty() {
                    backlog.push_back(piece);
                }
            }
            drop(backlog);
            self.more.notify_one();
        }
    }

    /// Writes what the socket did not take at once, for as long as the connection lasts.
    pub(crate) async fn drain(&self) -> io::Result<()> {
        loop {
            if self.backlog.lock().is_empty() {
                self.more.notified().await;
                continue;
            }
            self.stream.writable().await?;
            let mut backlog = self.backlog.lock();
            let slices: Vec<IoSlice<'_>> = backlog.iter().take(64).map(|b| IoSlice::new(b)).collect();
            match self.stream.try_write_vectored(&slices) {
                Ok(mut written) => {
                    drop(slices);
                    while let Some(first) = backlog.front_mut() {
                        let taken = written.min(first.len());
                        first.advance(taken);
                        written -= taken;
                        if !first.is_empty() {
                            break;
                        }
                        backlog.pop_front();
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The next frame. `buffer` holds what was read beyond the last one, and is only for this.
    pub(crate) async fn receive(&self, buffer: &mut BytesMut) -> Result<Frame, WireError> {
        loop {
            let mut wanted = HEAD_LENGTH;
            if let Some(head) = buffer.first_chunk::<HEAD_LENGTH>() {
                let head = Head::read(head, BODY_LIMIT)?;
                wanted = HEAD_LENGTH + head.message + head.body;
                if buffer.len() >= wanted {
                    buffer.advance(HEAD_LENGTH);
                    let message = buffer.split_to(head.message).freeze();
                    let body = buffer.split_to(head.body).freeze();
                    return Ok(Frame { message, body });
                }
            }
            // A large frame gets its room as it comes, not because its head says so.
            let missing = wanted - buffer.len();
            buffer.reserve(missing.clamp(CHUNK / 16, CHUNK.max(buffer.len())));
            self.stream.readable().await?;
            match self.stream.try_read_buf(buffer) {
                Ok(0) if buffer.is_empty() => return Err(WireError::Closed),
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}
