//! The `.ent` language: text → Ast → Program.
//!
//! [`parse`] never fails and keeps comments; [`format()`] prints the one canonical layout; [`compile`] reads
//! a program with its imports, checks names, units, ranges and the device catalogue, and reports every
//! independent mistake of one run. Nothing here does I/O, knows measurements, or knows solvers.

pub mod ast;
mod board;
mod compile;
mod context;
mod convert;
mod declarations;
mod definitions;
mod depth;
mod fields;
mod files;
mod fixes;
mod hardware;
pub mod meaning;
mod objective;
mod parse;
mod parsed;
mod print;
pub mod program;
mod quantity;
mod rule_in_words;
mod sections;
mod service;
mod spans;
mod suggest;
mod syntax_error;
mod value;
pub mod vocabulary;

pub use compile::{Compiled, Options, compile, compile_parsed};
pub use parse::parse;
pub use parsed::{Edit, Parsed};
pub use print::{print, print_expr};
pub use program::Program;
pub use sections::{Section, sections};

use ent_plan::diagnostic::{Diagnostic, FileId};

/// Rewrites a program in the canonical layout. Comments are kept; formatting twice changes nothing.
///
/// # Errors
/// The syntax errors of the text: what could not be understood is not rewritten.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let outcome = parse(FileId(0), text);
    if outcome.has_errors() { Err(outcome.diagnostics) } else { Ok(print(&outcome.value)) }
}

/// A path written in the file `from`, as seen from where `from` is seen from.
#[must_use]
pub fn joined(from: &str, path: &str) -> String {
    files::join(from, path)
}

/// The name of the spec that the file `from` imports by this path, as [`compile`] asks for it; `None` when
/// the path is no spec's: a board, performance data, a data file.
#[must_use]
pub fn imported_spec(from: &str, path: &str) -> Option<String> {
    files::is_spec(path).then(|| files::join(from, path))
}
