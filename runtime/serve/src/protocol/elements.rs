//! Elements in JSON ↔ elements in bytes.
//!
//! Arrays may be nested as the shape says or flat, as the protocol allows; only the number of elements
//! counts. The text has been read as JSON before, so that brackets match and tokens are whole.

use super::Refusal;
use bytes::Bytes;
use ent_wire::Datatype;

/// Reads `data` of a tensor: `count` elements of a datatype.
///
/// # Errors
/// When an element is not of the datatype, or there are more or fewer.
pub(super) fn read(name: &str, datatype: Datatype, count: usize, json: &str) -> Result<Bytes, Refusal> {
    let mut reader = Reader { name, datatype, rest: json.as_bytes(), text: json };
    // No more room than the text can fill, whatever the shape says: an element has at least two characters.
    let mut out = Vec::with_capacity(count.min(json.len() / 2 + 1) * datatype.size().unwrap_or(4));
    let mut seen = 0;
    while let Some(token) = reader.next_token()? {
        if seen == count {
            return Err(reader.invalid(format!("has more than the {count} elements of its shape")));
        }
        reader.element(token, &mut out)?;
        seen += 1;
    }
    if seen < count {
        return Err(reader.invalid(format!("has {seen} elements; its shape has {count}")));
    }
    Ok(Bytes::from(out))
}

struct Reader<'a> {
    name: &'a str,
    datatype: Datatype,
    rest: &'a [u8],
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn invalid(&self, what: String) -> Refusal {
        Refusal::Invalid(format!("input `{}` {what}", self.name))
    }

    fn not(&self, token: &str) -> Refusal {
        let shown: String = token.chars().take(40).collect();
        self.invalid(format!("is {}, but has the element `{shown}`", self.datatype))
    }

    /// The next number, string or word.
    fn next_token(&mut self) -> Result<Option<&'a str>, Refusal> {
        let start = loop {
            match self.rest.split_first() {
                None => return Ok(None),
                Some((b'[' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r', more)) => self.rest = more,
                Some((b'{', _)) => return Err(self.invalid("has an object among its elements".to_owned())),
                Some(_) => break self.text.len() - self.rest.len(),
            }
        };
        let length = if self.rest.first() == Some(&b'"') {
            let mut is_escaped = false;
            let mut is_end = |byte: &u8| {
                let is_end = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                is_end
            };
            self.rest.iter().skip(1).position(&mut is_end).map_or(self.rest.len(), |n| n + 2)
        } else {
            let ends = |b: &u8| matches!(b, b'[' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'{');
            self.rest.iter().position(ends).unwrap_or(self.rest.len())
        };
        self.rest = self.rest.get(length..).unwrap_or_default();
        Ok(self.text.get(start..start + length))
    }

    fn element(&self, token: &str, out: &mut Vec<u8>) -> Result<(), Refusal> {
        macro_rules! number {
            ($kind:ty) => {
                match token.parse::<$kind>() {
                    Ok(value) => out.extend_from_slice(&value.to_le_bytes()),
                    Err(_) => return Err(self.not(token)),
                }
            };
        }
        match self.datatype {
            Datatype::Bool => match token {
                "true" | "1" => out.push(1),
                "false" | "0" => out.push(0),
                _ => return Err(self.not(token)),
            },
            Datatype::Uint8 => number!(u8),
            Datatype::Uint16 => number!(u16),
            Datatype::Uint32 => number!(u32),
            Datatype::Uint64 => number!(u64),
            Datatype::Int8 => number!(i8),
            Datatype::Int16 => number!(i16),
            Datatype::Int32 => number!(i32),
            Datatype::Int64 => number!(i64),
            // A float's parser also takes words like `nan`, which JSON has not.
            Datatype::Fp32 if is_number(token) => number!(f32),
            Datatype::Fp64 if is_number(token) => number!(f64),
            Datatype::Fp32 | Datatype::Fp64 => return Err(self.not(token)),
            Datatype::Fp16 | Datatype::Bf16 => {
                return Err(
                    self.invalid(format!("is {}, which has to be sent as binary data", self.datatype))
                );
            }
            Datatype::Bytes => {
                let string: String = serde_json::from_str(token).map_err(|_| self.not(token))?;
                let length = u32::try_from(string.len()).map_err(|_| self.not("…"))?;
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(string.as_bytes());
            }
        }
        Ok(())
    }
}

fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Writes elements as a flat JSON array.
///
/// # Errors
/// What JSON cannot hold, in words: NaN, infinity, half precision, or bytes that are no text.
pub(super) fn write(name: &str, datatype: Datatype, data: &[u8], out: &mut Vec<u8>) -> Result<(), Refusal> {
    let failed = |what: &str| {
        Err(Refusal::Failed(format!("output `{name}` {what}; ask for it with `\"binary_data\": true`")))
    };
    out.push(b'[');
    macro_rules! integers {
        ($kind:ty) => {{
            let mut buffer = itoa::Buffer::new();
            for (i, chunk) in data.as_chunks::<{ size_of::<$kind>() }>().0.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(buffer.format(<$kind>::from_le_bytes(*chunk)).as_bytes());
            }
        }};
    }
    macro_rules! floats {
        ($kind:ty) => {{
            let mut buffer = ryu::Buffer::new();
            for (i, chunk) in data.as_chunks::<{ size_of::<$kind>() }>().0.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                let value = <$kind>::from_le_bytes(*chunk);
                if !value.is_finite() {
                    return failed("holds NaN or infinity, which JSON has not");
                }
                out.extend_from_slice(buffer.format_finite(value).as_bytes());
            }
        }};
    }
    match datatype {
        Datatype::Bool => {
            for (i, byte) in data.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(if *byte == 0 { b"false" } else { b"true" });
            }
        }
        Datatype::Uint8 => integers!(u8),
        Datatype::Uint16 => integers!(u16),
        Datatype::Uint32 => integers!(u32),
        Datatype::Uint64 => integers!(u64),
        Datatype::Int8 => integers!(i8),
        Datatype::Int16 => integers!(i16),
        Datatype::Int32 => integers!(i32),
        Datatype::Int64 => integers!(i64),
        Datatype::Fp32 => floats!(f32),
        Datatype::Fp64 => floats!(f64),
        Datatype::Fp16 | Datatype::Bf16 => return failed("is half precision, which JSON has not"),
        Datatype::Bytes => {
            let mut rest = data;
            while let Some((length, more)) = rest.split_first_chunk::<4>() {
                if rest.len() < data.len() {
                    out.push(b',');
                }
                let length = (u32::from_le_bytes(*length) as usize).min(more.len());
                let (string, more) = more.split_at(length);
                let Ok(text) = std::str::from_utf8(string) else {
                    return failed("holds bytes that are no text");
                };
                string_json(text, out);
                rest = more;
            }
        }
    }
    out.push(b']');
    Ok(())
}

/// Writes a string as JSON.
pub(super) fn string_json(text: &str, out: &mut Vec<u8>) {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing a string into memory cannot fail.
        let _ = serde_json::to_writer(out, text);
    }
}
