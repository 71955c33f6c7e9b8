//! Board id → its facts in the catalogue, read once, and what its generation does on a change of MIG mode.

use ent_plan::device::{self, Board};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The catalogue, parsed once: a thousand GPUs are a handful of boards.
static BOARDS: LazyLock<BTreeMap<&'static str, Board>> =
    LazyLock::new(|| device::board_ids().filter_map(|id| Some((id, device::board(id)?))).collect());

/// The board of the catalogue with this id.
pub(crate) fn board(id: &str) -> Option<&'static Board> {
    BOARDS.get(id)
}

/// All boards of the catalogue, by id.
pub(crate) fn boards() -> impl Iterator<Item = &'static Board> {
    BOARDS.values()
}

/// Whether a change of MIG mode resets the board: on Ampere it does, on Hopper and later it does not
/// (NVIDIA MIG User Guide, Getting Started). The A100 and the A30 are the Ampere boards with MIG.
pub(crate) fn mode_change_resets(board: &str) -> bool {
    ["a100-", "a30-"].iter().any(|generation| board.starts_with(generation))
}
