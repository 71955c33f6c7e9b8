//! What C callers hand over ↔ Rust values: the only file of this crate that touches foreign memory.
//!
//! Every type here is a pointer for C and a question for Rust. None can be made in Rust, only received
//! from C, so that the exported functions are safe to write: whoever calls through C has promised what
//! `nvml.h` asks for, namely that a pointer is null or points at what its type says. Null is checked
//! here; alignment is not assumed.

#![expect(unsafe_code, reason = "C passes pointers, and finds functions by their names")]

use super::process::Answer;
use crate::returns::Return;
use std::ffi::{CStr, c_char, c_uint};

/// Defines exported C functions. A body is an `Answer<()>`; it runs within
/// [`call`](super::process::call), which knows faults and stops panics.
macro_rules! exports {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$attribute])*
        #[expect(unsafe_code, reason = "C finds a function by its name, which must be spelled as it is")]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($argument: $type),*) -> std::ffi::c_uint {
            $crate::abi::process::call(stringify!($name), || $body)
        }
    )*};
}
pub(super) use exports;

/// Defines an exported C function that does not answer with a return code.
macro_rules! export_plain {
    ($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block) => {
        $(#[$attribute])*
        #[expect(unsafe_code, reason = "C finds a function by its name, which must be spelled as it is")]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($argument: $type),*) -> $result $body
    };
}
pub(super) use export_plain;

/// A pointer to one value that a function reads, writes or both.
#[repr(transparent)]
pub(crate) struct Pointer<T>(*mut T);

impl<T> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pointer<T> {}

impl<T: Copy> Pointer<T> {
    /// Whether the caller passed null.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Refuses null, before anything is done that could not be reported.
    pub(super) fn check(self) -> Answer<()> {
        if self.is_null() { Err(Return::InvalidArgument) } else { Ok(()) }
    }

    /// What the caller wrote there.
    pub(super) fn get(self) -> Answer<T> {
        self.check()?;
        // SAFETY: not null, so the caller has promised that it points at a `T`.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// Writes the answer.
    pub(super) fn set(self, value: T) -> Answer<()> {
        self.check()?;
        // SAFETY: not null, so the caller has promised that it points at room for a `T`.
        unsafe {
            self.0.write_unaligned(value);
        }
        Ok(())
    }
}

/// A structure that begins with a `version` field, which says how long it is.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Versioned(Pointer<c_uint>);

impl Versioned {
    /// What the caller wrote into the version field.
    pub(super) fn version(self) -> Answer<c_uint> {
        self.0.get()
    }

    /// The structure as a `T`, whose version the caller has just been asked for.
    pub(super) fn as_type<T>(self) -> Pointer<T> {
        Pointer(self.0.0.cast())
    }
}

/// An array whose length another argument tells, or the documentation.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Items<T>(*mut T);

impl<T: Copy> Items<T> {
    /// Whether the caller passed null, which often means: only count.
    pub(super) fn is_null(self) -> bool {
        self.0.is_null()
    }

    fn at(self, index: usize) -> Pointer<T> {
        Pointer(self.0.wrapping_add(index))
    }

    /// Writes into an array that the caller has made large enough for all there could be.
    pub(super) fn fill(self, values: &[T]) -> Answer<()> {
        if self.is_null() {
            return Err(Return::InvalidArgument);
        }
        values.iter().enumerate().try_for_each(|(index, value)| self.at(index).set(*value))
    }

    /// The two-call idiom: `count` holds the array's length and receives the needed one. An array that is
    /// null or too short gets nothing but the count.
    pub(super) fn fill_counted(self, count: Pointer<c_uint>, values: &[T]) -> Answer<()> {
        let room = count.get()? as usize;
        count.set(values.len() as c_uint)?;
        if values.len() > room || (self.is_null() && !values.is_empty()) {
            return Err(Return::InsufficientSize);
        }
        if values.is_empty() { Ok(()) } else { self.fill(values) }
    }

    /// Lets each of `n` elements be looked at and changed.
    pub(super) fn change(self, n: usize, mut change: impl FnMut(&mut T)) -> Answer<()> {
        for index in 0..n {
            let mut value = self.at(index).get()?;
            change(&mut value);
            self.at(index).set(value)?;
        }
        Ok(())
    }
}

/// A text that the caller passes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text; what is not UTF-8 names nothing that we know.
    pub(super) fn get(self) -> Answer<String> {
        if self.0.is_null() {
            return Err(Return::InvalidArgument);
        }
        // SAFETY: not null, so the caller has promised a text that ends with a zero.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map(str::to_owned).map_err(|_| Return::InvalidArgument)
    }
}

/// A text that C may keep: it lives as long as the library.
#[repr(transparent)]
pub(crate) struct Words(*const c_char);

impl Words {
    pub(super) fn new(text: &'static CStr) -> Self {
        Self(text.as_ptr())
    }
}

/// Room for a text; its length is another argument.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Room(Items<c_char>);

impl Room {
    /// Writes a text and the zero behind it.
    pub(super) fn set(self, length: c_uint, text: &str) -> Answer<()> {
        if self.0.is_null() {
            return Err(Return::InvalidArgument);
        }
        if text.len() >= length as usize {
            return Err(Return::InsufficientSize);
        }
        let bytes: Vec<c_char> = text.bytes().chain([0]).map(|byte| byte as c_char).collect();
        self.0.fill(&bytes)
    }
}

/// A text as C keeps it inside a structure: cut to fit, always with a zero at the end.
pub(super) fn text_field<const N: usize>(text: &str) -> [c_char; N] {
    let mut field = [0; N];
    for (slot, byte) in field.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
        *slot = byte as c_char;
    }
    field
}
