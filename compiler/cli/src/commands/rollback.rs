//! `entc rollback`: the last journal → the machine as it was before.

use super::serving::{Missing, Serving};
use super::transaction::{After, Run, locked, start};
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
    let mut observed = machine.observe()?;
    let serving = if arguments.no_serve {
        None
    } else {
        let readiness = arguments.readiness;
        let serving = Serving::of(&arguments.machine, &machine.library, None, readiness, Missing::Leave)?;
        serving.without_ours(&mut observed);
        Some(serving)
    };
    // The way back needs only the journal; a state that is gone or damaged takes the services' names from
    // what is shown, no more.
    let state = store.state().unwrap_or_default();
    let (changes, notes) =
        rollback::preview(&store, &observed).map_err(|error| Stop::World(machine::failed(&error)))?;
    let shown = Shown {
        title: "back to before the last transaction",
        changes: &changes,
        observed: &observed,
        radius: &blast_radius(&changes, &observed, &state.on(&observed)),
        has_boards_off: false,
        binding: None,
        refusals: &[],
        warnings: &[],
    };
    start("rollback", &arguments.change, &shown, terminal)?;
    for note in notes {
        terminal.message(&format!("note: {note}\n"));
    }
    if let Some(serving) = &serving {
        serving.vacate(&changes, terminal)?;
    }
    let run = Run { word: "rollback", machine: &machine, store: &store, change: &arguments.change };
    let n_steps = changes.steps.len();
    let work = |means: &mut ent_machine::apply::Means<'_>| rollback::rollback(means, arguments.without_lost);
    let then = |outcome| match &serving {
        Some(serving) => serving.settle(outcome, &machine, &store, arguments.change.format, terminal),
        None => After::default(),
    };
    Ok(run.carry_out_then(terminal, n_steps, work, then))
}
