//! `entc observe`: what a machine is now, and whose the instances on it are.
//!
//! entc's own files are not needed for the first: where they cannot be read, only the second is not known.

use super::canvas_out;
use crate::arguments::{Format, Observe};
use crate::exit::{Exit, Stop, Trouble};
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
    let mut warnings: Vec<Trouble> = Vec::new();
    let state = store.state().map_err(|error| warnings.push(unknown(machine::store(&error)))).ok();
    let journal = store.journal().unwrap_or_else(|error| {
        warnings.push(machine::store(&error));
        None
    });
    let journal = journal.filter(Journal::is_open);
    let text = match arguments.format {
        Format::Human => {
            render::observed::observed(&observed, state.as_ref(), &canvas_out(terminal, false, false))
        }
        Format::Json => {
            let state = state.unwrap_or_default();
            json::text(&serde_json::json!(Observation {
                format_version: FORMAT_VERSION,
                observed: &observed,
                plan: state.plan.as_deref(),
                node: state.node.as_deref(),
                ours: ours(&state, &observed),
                open_journal: journal.as_ref().map(|journal| journal.path.display().to_string()),
                warnings: warnings
                    .iter()
                    .map(|one| json::refusal(one.code, &one.message, Some(&one.help)))
                    .collect(),
            }))
        }
    };
    terminal.result(&text)?;
    for warning in &warnings {
        super::warn(warning, terminal);
    }
    if journal.is_some() {
        super::warn_of_open(terminal);
    }
    Ok(Exit::Done)
}

/// What follows from a state that cannot be read.
fn unknown(trouble: Trouble) -> Trouble {
    Trouble { message: format!("whose the instances here are is not known: {}", trouble.message), ..trouble }
}
