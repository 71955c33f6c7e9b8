//! stub
use crate::arguments::Fmt;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
pub(super) fn run(_arguments: &Fmt, _terminal: &Terminal) -> Result<Exit, Stop> {
    Err(Stop::refused("todo", "todo"))
}
