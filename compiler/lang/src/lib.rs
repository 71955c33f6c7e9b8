//! The `.ent` language: text → Ast → Program.

pub mod program;
pub use program::Program;
