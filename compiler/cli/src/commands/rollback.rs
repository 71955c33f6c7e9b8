//! `entc rollback`: the last journal → the machine as it was before.

use super::serving::settle;
use super::transaction::{Begun, Run, start};
use crate::arguments::Rollback;
use crate::exit::{Exit, Stop};
use crate::machine;
use crate::render::changes::Shown;
use crate::terminal::Terminal;
use ent_machine::preflight::blast_radius;
use ent_machine::rollback;

/// Shows the way back and goes it.
pub(super) fn run(arguments: &Rollback, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    let Begun { machine, store, observed, serving } = Begun::on(
        &arguments.machine,
        &arguments.change,
        (!arguments.no_serve).then_some(arguments.readiness),
    )?;
    // The way back needs only the journal; a state that is gone or damaged takes the services' names from
    // what is shown, no more.
    let state = store.state().unwrap_or_default();
    let (changes, notes) =
        rollback::preview(&store, &observed).map_err(|error| Stop::World(machine::failed(&error)))?;
    let radius = blast_radius(&changes, &observed, &state.on(&observed));
    let shown = Shown::alone("back to before the last transaction", &changes, &observed, &radius);
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
    let then = |outcome| settle(serving.as_ref(), outcome, &run, terminal);
    Ok(run.carry_out_then(terminal, n_steps, work, then))
}
