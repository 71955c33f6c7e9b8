//! stub
use crate::arguments::{Fit, ShowPerformance};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
pub(super) fn fit(_arguments: &Fit, _terminal: &Terminal) -> Result<Exit, Stop> {
    Err(Stop::refused("todo", "todo"))
}
pub(super) fn show(_arguments: &ShowPerformance, _terminal: &Terminal) -> Result<Exit, Stop> {
    Err(Stop::refused("todo", "todo"))
}
