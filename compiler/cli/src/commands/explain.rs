//! stub
use crate::arguments::Explain;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
pub(super) fn run(_arguments: &Explain, _terminal: &Terminal) -> Result<Exit, Stop> {
    Err(Stop::refused("todo", "todo"))
}
