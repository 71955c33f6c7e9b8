//! Datatypes of tensors, with the names and sizes of the Open Inference Protocol.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a tensor holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Datatype {
    /// One byte, 0 or 1.
    #[serde(rename = "BOOL")]
    Bool,
    /// Unsigned, 8 bit.
    #[serde(rename = "UINT8")]
    Uint8,
    /// Unsigned, 16 bit.
    #[serde(rename = "UINT16")]
    Uint16,
    /// Unsigned, 32 bit.
    #[serde(rename = "UINT32")]
    Uint32,
    /// Unsigned, 64 bit.
    #[serde(rename = "UINT64")]
    Uint64,
    /// Signed, 8 bit.
    #[serde(rename = "INT8")]
    Int8,
    /// Signed, 16 bit.
    #[serde(rename = "INT16")]
    Int16,
    /// Signed, 32 bit.
    #[serde(rename = "INT32")]
    Int32,
    /// Signed, 64 bit.
    #[serde(rename = "INT64")]
    Int64,
    /// IEEE half precision.
    #[serde(rename = "FP16")]
    Fp16,
    /// Brain float: the upper half of a single.
    #[serde(rename = "BF16")]
    Bf16,
    /// IEEE single precision.
    #[serde(rename = "FP32")]
    Fp32,
    /// IEEE double precision.
    #[serde(rename = "FP64")]
    Fp64,
    /// Strings of bytes, each with its length before it (4 bytes, little-endian).
    #[serde(rename = "BYTES")]
    Bytes,
}

/// A name that is no datatype.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a datatype")]
pub struct UnknownDatatype(pub String);

impl Datatype {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Fp16,
        Self::Bf16,
        Self::Fp32,
        Self::Fp64,
        Self::Bytes,
    ];

    /// The protocol's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::Uint8 => "UINT8",
            Self::Uint16 => "UINT16",
            Self::Uint32 => "UINT32",
            Self::Uint64 => "UINT64",
            Self::Int8 => "INT8",
            Self::Int16 => "INT16",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Fp16 => "FP16",
            Self::Bf16 => "BF16",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
            Self::Bytes => "BYTES",
        }
    }

    /// Bytes of one element; `None` for [`Datatype::Bytes`], whose elements differ.
    #[must_use]
    pub fn size(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 => Some(1),
            Self::Uint16 | Self::Int16 | Self::Fp16 | Self::Bf16 => Some(2),
            Self::Uint32 | Self::Int32 | Self::Fp32 => Some(4),
            Self::Uint64 | Self::Int64 | Self::Fp64 => Some(8),
            Self::Bytes => None,
        }
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Datatype {
    type Err = UnknownDatatype;

    fn from_str(name: &str) -> Result<Self, UnknownDatatype> {
        Self::ALL.into_iter().find(|d| d.name() == name).ok_or_else(|| UnknownDatatype(name.to_owned()))
    }
}
