//! The language server for `.ent`: an editor's messages in, answers out.
//!
//! [`serve`] speaks the Language Server Protocol over a connection until the client says `exit`. Nothing
//! is written to disk, nothing is planned here: whoever starts the server may bring a [`Planning`], whose
//! plans then appear beside the text. A message that makes a handler fail is answered with an error; the
//! server lives on.

mod analysis;
mod curves;
mod documents;
pub mod features;
#[cfg(test)]
mod fixture;
mod foreign;
mod geometry;
mod manual;
mod names;
mod place;
mod placement;
pub mod planning;
mod server;
mod token;
mod vocabulary;
mod workspace;

pub use analysis::{Analysis, Programs, Snapshot};
pub use documents::{Encoding, LineIndex, apply};
pub use planning::Planning;
pub use server::{End, serve};
pub use workspace::{File, Workspace, name_of, uri_of};
