//! Bodies: in with limits on size and time, out without copying.

use super::super::front::{Front, Held};
use crate::protocol::Refusal;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a body that nobody wants is read on, so that its client gets to read why instead of a reset.
const LINGER: Duration = Duration::from_secs(1);

/// Bytes of a body that nobody wants which are read to keep its connection.
const READ_OFF: u64 = 64 << 10;

/// A whole request's body. It stays in `unread` where it is refused and more of it may come.
pub(super) async fn receive(
    front: &Arc<Front>,
    unread: &mut Option<Incoming>,
) -> Result<(Bytes, Held), Refusal> {
    let limit = front.options.limits.body_bytes;
    let Some(incoming) = unread else { return Ok((Bytes::new(), front.hold(0)?)) };
    let announced = incoming.size_hint().lower();
    if announced > limit {
        return Err(Refusal::BodyTooLarge(limit));
    }
    let mut held = front.hold(announced)?;
    let time = front.options.limits.body_time;
    let collected = {
        let mut collecting = pin!(collect(incoming, announced, limit, &mut held));
        // A body that is there already needs no timer.
        match poll_fn(|context| Poll::Ready(collecting.as_mut().poll(context))).await {
            Poll::Ready(collected) => collected,
            Poll::Pending => match tokio::time::timeout(time, collecting).await {
                Ok(collected) => collected,
                Err(_) => Err(Refusal::BodyTooSlow(time)),
            },
        }
    };
    let bytes = collected?;
    *unread = None;
    Ok((bytes, held))
}

/// Reads what is left of a body that nobody wants, if it is little and comes soon. Otherwise it is read on
/// for a moment beside the answer, up to `limit` bytes, and the connection has to end: false.
pub(super) async fn read_off(mut incoming: Incoming, limit: u64) -> bool {
    if incoming.is_end_stream() {
        return true;
    }
    if incoming.size_hint().lower() <= READ_OFF {
        let reading = tokio::time::timeout(LINGER, skip(&mut incoming, READ_OFF));
        if reading.await.unwrap_or(false) {
            return true;
        }
    }
    tokio::spawn(tokio::time::timeout(LINGER, async move { skip(&mut incoming, limit).await }));
    false
}

/// Whether the body was at its end within so many bytes.
async fn skip(incoming: &mut Incoming, limit: u64) -> bool {
    let mut read = 0;
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else { return false };
        read += frame.data_ref().map_or(0, |d| d.len() as u64);
        if read > limit {
            return false;
        }
    }
    true
}

async fn collect(
    incoming: &mut Incoming,
    announced: u64,
    limit: u64,
    held: &mut Held,
) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|e| Refusal::BodyCut(e.to_string()))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.is_empty() && all.is_empty() {
            first = data;
            if incoming.is_end_stream() {
                return Ok(first);
            }
            continue;
        }
        if all.is_empty() {
            // Room as it is needed: a head that announces much does not get it before it is there.
            all.reserve(usize::try_from(announced).unwrap_or(0).min(1 << 20).max(first.len() + data.len()));
            all.extend_from_slice(&first);
        }
        let total = (all.len() + data.len()) as u64;
        if total > limit {
            return Err(Refusal::BodyTooLarge(limit));
        }
        // One that comes in chunks did not say its length.
        held.grow(total)?;
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

/// A response's body: pieces of memory, one after the other.
#[derive(Debug)]
pub(crate) struct Chunks {
    first: Option<Bytes>,
    rest: VecDeque<Bytes>,
    left: u64,
}

impl Chunks {
    pub(super) fn one(bytes: Bytes) -> Self {
        let left = bytes.len() as u64;
        Self { first: (left > 0).then_some(bytes), rest: VecDeque::new(), left }
    }

    pub(super) fn many(chunks: impl Iterator<Item = Bytes>) -> Self {
        let rest: VecDeque<Bytes> = chunks.filter(|c| !c.is_empty()).collect();
        let left = rest.iter().map(|c| c.len() as u64).sum();
        Self { first: None, rest, left }
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.first.take().or_else(|| self.rest.pop_front());
        Poll::Ready(next.map(|bytes| {
            self.left -= bytes.len() as u64;
            Ok(Frame::data(bytes))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
