//! stub
use crate::arguments::Check;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
pub(super) fn run(_arguments: &Check, _terminal: &Terminal) -> Result<Exit, Stop> {
    Err(Stop::refused("todo", "todo"))
}
