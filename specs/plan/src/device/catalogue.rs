//! The built-in boards.

use super::Board;

/// The built-in boards' files, embedded: id and TOML text.
pub const BOARDS: &[(&str, &str)] = &[];

/// The built-in board with this id.
#[must_use]
pub fn board(_id: &str) -> Option<Board> {
    None
}

/// The ids of the built-in boards.
pub fn board_ids() -> impl Iterator<Item = &'static str> {
    BOARDS.iter().map(|(id, _)| *id)
}
