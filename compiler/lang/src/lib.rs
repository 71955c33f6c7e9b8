//! The `.ent` language: text → Ast → Program.

pub mod ast;
mod depth;
mod parse;
mod print;
pub mod program;
mod syntax_error;

pub use parse::parse;
pub use print::{print, print_expr};
pub use program::Program;
