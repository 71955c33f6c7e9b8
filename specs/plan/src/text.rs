//! Bytes of a file → text, or a reason in words.
//!
//! Files arrive from editors on every system: a UTF-8 byte-order mark is dropped; UTF-16, binary, empty
//! and oversized files are refused with what they are, never half-read.

/// Why a file could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// It does not exist.
    Missing,
    /// It exists and cannot be used; the reason, lower case, no full stop.
    Unreadable(String),
}

/// Reads a file by the name a spec gives it: a path relative to the working folder, `catalog:…`, `data:…`.
pub type Load<'a> = dyn FnMut(&str) -> Result<Vec<u8>, LoadError> + 'a;

/// The largest spec that is read.
pub const MAX_SPEC_BYTES: usize = 8 << 20;

/// The largest data file (CSV, JSON) that is read.
pub const MAX_DATA_BYTES: usize = 256 << 20;

/// Decodes a text file.
///
/// # Errors
/// [`LoadError::Unreadable`] when it is empty, larger than `max_bytes`, UTF-16, or not UTF-8.
pub fn decode(bytes: &[u8], max_bytes: usize) -> Result<String, LoadError> {
    let refuse = |why: &str| Err(LoadError::Unreadable(why.to_owned()));
    if bytes.len() > max_bytes {
        return refuse(&format!("the file has {} bytes; at most {max_bytes} are read", bytes.len()));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return refuse("the file is UTF-16; save it as UTF-8");
    }
    let bytes = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            return refuse(&format!("the file is not text: byte {} is not UTF-8", error.valid_up_to()));
        }
    };
    if let Some(at) = text.bytes().position(|b| b == 0) {
        return refuse(&format!("the file is not text: byte {at} is zero"));
    }
    if text.trim().is_empty() {
        return refuse("the file is empty");
    }
    Ok(text.to_owned())
}
