//! `entc top`: metrics and boards → a live view.

use crate::arguments::Top;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Draws.
pub(super) fn run(_arguments: &Top, _terminal: &Terminal) -> Result<Exit, Stop> {
    Ok(Exit::Done)
}
