//! Board → the ways it can be cut.

use super::Board;

/// A profile at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedProfile {
    /// Index into [`Board::profiles`].
    pub profile: usize,
    /// First memory slice.
    pub start: u32,
}

/// A legal set of instances, by start.
pub type Layout = Vec<PlacedProfile>;

/// All legal layouts that use only profiles `allowed` says yes to, partial ones and the empty one included.
pub fn layouts(_board: &Board, _allowed: impl Fn(usize) -> bool) -> Vec<Layout> {
    Vec::new()
}

/// The layouts to which nothing can be added.
pub fn maximal_layouts(_board: &Board, _allowed: impl Fn(usize) -> bool) -> Vec<Layout> {
    Vec::new()
}

/// Starts for a multiset of profiles (indices into [`Board::profiles`]), in the order given; the
/// lexicographically first legal one. `None` when the multiset has no legal placement.
#[must_use]
pub fn place(_board: &Board, _profiles: &[usize]) -> Option<Vec<u32>> {
    None
}
