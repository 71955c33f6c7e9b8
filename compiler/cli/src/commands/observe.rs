//! `entc observe`: what a machine is now, and whose the instances on it are.

use super::canvas_out;
use crate::arguments::{Format, Observe};
use crate::exit::{Exit, Stop};
use crate::machine::{self, Machine};
use crate::render::{self, json};
use crate::report::machine::{FORMAT_VERSION, Observation, ours};
use crate::terminal::Terminal;
use ent_machine::journal::Journal;

/// Looks at the machine and shows it.
pub(super) fn run(arguments: &Observe, terminal: &Terminal) -> Result<Exit, Stop> {
    let machine = Machine::of(&arguments.machine.library)?;
    let observed = machine.observe()?;
    let store = machine::store_of(&arguments.machine, &machine.library);
    let state = store.state().map_err(|error| machine::store(&error))?;
    let journal = store.journal().map_err(|error| machine::store(&error))?.filter(Journal::is_open);
    let text = match arguments.format {
        Format::Human => render::observed::observed(&observed, &state, &canvas_out(terminal, false, false)),
        Format::Json => json::text(&serde_json::json!(Observation {
            format_version: FORMAT_VERSION,
            observed: &observed,
            plan: state.plan.as_deref(),
            node: state.node.as_deref(),
            ours: ours(&state, &observed),
            open_journal: journal.as_ref().map(|journal| journal.path.display().to_string()),
        })),
    };
    terminal.result(&text)?;
    if journal.is_some() {
        super::warn_of_open(terminal);
    }
    Ok(Exit::Done)
}
