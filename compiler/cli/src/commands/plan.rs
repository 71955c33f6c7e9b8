//! stub
use crate::arguments::Plan;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
pub(super) fn run(_arguments: &Plan, _terminal: &Terminal) -> Result<Exit, Stop> {
    Err(Stop::refused("todo", "todo"))
}
