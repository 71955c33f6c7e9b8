//! Bytes ↔ frames, with no socket in sight: for blocking and for async sides alike.
//!
//! ```text
//! 0        4          8            16
//! | magic  | message  | body       | message, in postcard … | body: tensors, one after the other …
//! | "entW" | u32 len  | u64 len    |
//! ```
//!
//! Numbers are little-endian. A frame says its lengths first, so that a reader can refuse it before it
//! has made room for it.

use crate::{FromWorker, ToWorker, WireError};
use serde::Serialize;

/// Bytes before the message of a frame.
pub const HEAD_LENGTH: usize = 16;

/// The largest message (bytes): names and shapes, never tensors.
pub const MESSAGE_LIMIT: u64 = 16 << 20;

const MAGIC: [u8; 4] = *b"entW";

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Bytes of the message.
    pub message: usize,
    /// Bytes of tensors behind it.
    pub body: usize,
}

impl Head {
    /// Reads a head.
    ///
    /// # Errors
    /// When the bytes are not a head, or the frame is larger than `body_limit` (bytes of tensors).
    pub fn read(bytes: &[u8; HEAD_LENGTH], body_limit: u64) -> Result<Self, WireError> {
        let [a, b, c, d, m0, m1, m2, m3, body @ ..] = *bytes;
        if [a, b, c, d] != MAGIC {
            return Err(WireError::NotAFrame([a, b, c, d]));
        }
        let message = u64::from(u32::from_le_bytes([m0, m1, m2, m3]));
        let body = u64::from_le_bytes(body);
        for (bytes, limit) in [(message, MESSAGE_LIMIT), (body, body_limit)] {
            if bytes > limit {
                return Err(WireError::TooLarge { bytes, limit });
            }
        }
        let fits =
            |n: u64| usize::try_from(n).map_err(|_| WireError::TooLarge { bytes: n, limit: body_limit });
        Ok(Self { message: fits(message)?, body: fits(body)? })
    }
}

/// Head and message of a frame of the gateway; the tensors' bytes are to follow in the message's order.
///
/// # Errors
/// When the message cannot be written.
pub fn to_worker(message: &ToWorker<'_>) -> Result<Vec<u8>, WireError> {
    encode(message, message.body_length())
}

/// Head and message of a frame of a worker; the tensors' bytes are to follow in the message's order.
///
/// # Errors
/// When the message cannot be written.
pub fn from_worker(message: &FromWorker<'_>) -> Result<Vec<u8>, WireError> {
    encode(message, message.body_length())
}

/// Reads a message of the gateway, and checks that its tensors are as many bytes as the body has.
///
/// # Errors
/// When it is none, or its tensors are not the body.
pub fn read_to_worker(message: &[u8], body: usize) -> Result<ToWorker<'_>, WireError> {
    let read: ToWorker<'_> = postcard::from_bytes(message)?;
    matches(read.body_length(), body)?;
    Ok(read)
}

/// Reads a message of a worker, and checks that its tensors are as many bytes as the body has.
///
/// # Errors
/// When it is none, or its tensors are not the body.
pub fn read_from_worker(message: &[u8], body: usize) -> Result<FromWorker<'_>, WireError> {
    let read: FromWorker<'_> = postcard::from_bytes(message)?;
    matches(read.body_length(), body)?;
    Ok(read)
}

fn matches(declared: u64, body: usize) -> Result<(), WireError> {
    let present = body as u64;
    if declared == present { Ok(()) } else { Err(WireError::Body { declared, present }) }
}

fn encode<M: Serialize>(message: &M, body: u64) -> Result<Vec<u8>, WireError> {
    let mut frame = postcard::to_extend(message, Vec::from([0; HEAD_LENGTH]))?;
    let length = frame.len() - HEAD_LENGTH;
    let too_large = WireError::TooLarge { bytes: length as u64, limit: MESSAGE_LIMIT };
    if length as u64 > MESSAGE_LIMIT {
        return Err(too_large);
    }
    let length = u32::try_from(length).map_err(|_| too_large)?;
    let head = frame.iter_mut();
    let values = MAGIC.into_iter().chain(length.to_le_bytes()).chain(body.to_le_bytes());
    head.zip(values).for_each(|(byte, value)| *byte = value);
    Ok(frame)
}
