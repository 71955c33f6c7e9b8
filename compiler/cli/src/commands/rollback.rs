//! `entc rollback`: the last journal → the machine as it was before.

use super::transaction::{Run, locked, start};
use crate::arguments::Rollback;
use crate::exit::{Exit, Stop};
use crate::machine::{self, Machine};
use crate::render::changes::Shown;
use crate::terminal::Terminal;
use ent_machine::preflight::blast_radius;
use ent_machine::rollback;

/// Shows the way back and goes it.
pub(super) fn run(arguments: &Rollback, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    let machine = Machine::of(&arguments.machine.library)?;
    let folder = machine::state_folder(&arguments.machine, &machine.library);
    let store = locked(&folder, arguments.change.lock_timeout)?;
    let observed = machine.observe()?;
    let state = store.state().map_err(|error| machine::store(&error))?;
    let (changes, notes) =
        rollback::preview(&store, &observed).map_err(|error| Stop::World(machine::failed(&error)))?;
    let shown = Shown {
        title: "back to before the last transaction",
        changes: &changes,
        observed: &observed,
        radius: &blast_radius(&changes, &observed, &state.on(&observed)),
        binding: None,
        refusals: &[],
        warnings: &[],
    };
    start("rollback", &arguments.change, &shown, terminal)?;
    for note in notes {
        terminal.message(&format!("note: {note}\n"));
    }
    let run = Run { word: "rollback", machine: &machine, store: &store, change: &arguments.change };
    let n_steps = changes.steps.len();
    Ok(run.carry_out(terminal, n_steps, |means| rollback::rollback(means, arguments.without_lost)))
}
