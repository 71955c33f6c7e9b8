//! `entc diff`: the steps between a machine and a plan, shown and not taken.

use super::canvas_out;
use super::steps::{Steps, Strictness};
use super::wanted::Asked;
use crate::arguments::{Diff, Format};
use crate::exit::{Exit, Stop};
use crate::machine;
use crate::render::{self, json};
use crate::terminal::Terminal;
use ent_machine::preflight::Allowed;

/// Plans where need be, looks at the machine, and shows the steps.
pub(super) fn run(arguments: &Diff, terminal: &Terminal) -> Result<Exit, Stop> {
    let asked = Asked {
        file: &arguments.planned.file,
        question: &arguments.planned.question,
        who: &arguments.planned.who,
        machine: &arguments.machine,
        node: arguments.node.node.as_deref(),
        is_applied: false,
        is_drawn: false,
    };
    let wanted = match asked.answer(terminal)? {
        Ok(wanted) => wanted,
        Err(exit) => return Ok(exit),
    };
    let store = machine::store_of(&arguments.machine, &wanted.machine.library);
    let state = store.state().map_err(|error| machine::store(&error))?;
    super::warn_if_open(&store, terminal)?;
    let steps = Steps::between(&wanted, &state, Allowed::default(), Strictness::AsPlanned)?;
    let text = match arguments.format {
        Format::Human => render::changes::changes(&steps.shown(&wanted), &canvas_out(terminal, false, false)),
        Format::Json => json::text(&serde_json::json!(steps.report(&wanted))),
    };
    terminal.result(&text)?;
    let has_changes = !steps.changes.is_empty();
    Ok(if has_changes && arguments.detailed_exitcode { Exit::Changes } else { Exit::Done })
}
