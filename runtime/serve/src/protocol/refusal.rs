//! Why a client does not get what it asked for, in both protocols' terms.

use std::time::Duration;

/// Why a client does not get what it asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The request is wrong; the message says how.
    #[error("{0}")]
    Invalid(String),
    /// Something that the protocol has and this server has not.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// No such model.
    #[error("there is no model `{0}`")]
    UnknownModel(String),
    /// No such version.
    #[error("model `{model}` has no version `{version}`; its one version is `1`")]
    UnknownVersion {
        /// The model.
        model: String,
        /// What was asked for.
        version: String,
    },
    /// No such path.
    #[error("there is nothing at `{0}`")]
    UnknownPath(String),
    /// Another method is needed.
    #[error("use {0} here")]
    Method(&'static str),
    /// Without the token.
    #[error("a token is needed: send it as `Authorization: Bearer …`")]
    Unauthorised,
    /// The body is larger than the limit (bytes).
    #[error("the body is larger than the limit of {0} bytes")]
    BodyTooLarge(u64),
    /// The body did not arrive in time.
    #[error("the body did not arrive within {} s", .0.as_secs())]
    BodyTooSlow(Duration),
    /// The client ended the body early.
    #[error("the body ended early: {0}")]
    BodyCut(String),
    /// Too many wait already.
    #[error("too many requests wait: {0}")]
    Full(String),
    /// It would be, or is, late.
    #[error("{reason}")]
    Late {
        /// Why.
        reason: String,
        /// When it would not be.
        retry_after: Duration,
    },
    /// No worker can take it.
    #[error("{0}")]
    Absent(String),
    /// The gateway is about to end.
    #[error("the server is draining")]
    Draining,
    /// The worker could not run it.
    #[error("{0}")]
    Failed(String),
}

/// Characters of the longest message: what a client sent may be quoted in it.
const LONGEST: usize = 1000;

impl Refusal {
    /// What the client is told.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = self.to_string();
        if let Some((end, _)) = words.char_indices().nth(LONGEST) {
            words.truncate(end);
            words.push('…');
        }
        words
    }

    /// The status of HTTP.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::Invalid(_) | Self::BodyCut(_) => 400,
            Self::Unsupported(_) => 415,
            Self::UnknownModel(_) | Self::UnknownVersion { .. } | Self::UnknownPath(_) => 404,
            Self::Method(_) => 405,
            Self::Unauthorised => 401,
            Self::BodyTooLarge(_) => 413,
            Self::BodyTooSlow(_) => 408,
            Self::Full(_) => 429,
            Self::Late { .. } | Self::Absent(_) | Self::Draining => 503,
            Self::Failed(_) => 500,
        }
    }

    /// When to ask again, in whole seconds; `None` when that would not help.
    #[must_use]
    pub fn retry_after_s(&self) -> Option<u64> {
        match self {
            Self::Late { retry_after, .. } => Some(retry_after.as_secs_f64().ceil().max(1.0) as u64),
            Self::Full(_) | Self::Absent(_) | Self::Draining => Some(1),
            Self::Invalid(_)
            | Self::BodyCut(_)
            | Self::Unsupported(_)
            | Self::UnknownModel(_)
            | Self::UnknownVersion { .. }
            | Self::UnknownPath(_)
            | Self::Method(_)
            | Self::Unauthorised
            | Self::BodyTooLarge(_)
            | Self::BodyTooSlow(_)
            | Self::Failed(_) => None,
        }
    }
}
