//! What can go wrong between gateway and worker.

/// A connection between gateway and worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The socket failed.
    #[error("the connection between gateway and worker failed: {0}")]
    Io(#[from] std::io::Error),
    /// The other side ended the connection between two frames.
    #[error("the other side ended the connection")]
    Closed,
    /// The bytes are not a frame.
    #[error("not a frame of entc's gateway and workers: it begins with {0:02x?}")]
    NotAFrame([u8; 4]),
    /// A frame is larger than what this side takes (bytes).
    #[error("a frame of {bytes} bytes is over the limit of {limit}")]
    TooLarge {
        /// Bytes of the frame.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The message cannot be read.
    #[error("a message cannot be read: {0}")]
    Message(#[from] postcard::Error),
    /// The tensors of a message and the bytes behind it do not fit each other.
    #[error("tensors of {declared} bytes are announced, but {present} follow")]
    Body {
        /// Bytes that the message announces.
        declared: u64,
        /// Bytes that follow.
        present: u64,
    },
    /// The gateway does not take the worker.
    #[error("the gateway does not take this worker: {0}")]
    Refused(String),
    /// A message that is not expected now.
    #[error("{0} is not expected now")]
    Unexpected(&'static str),
}
