//! `entc destroy`: everything of entc's leaves the machine, and the values from before come back.

use super::apply::ask;
use super::serving::DRAIN;
use super::transaction::{Begun, Run, none_open, start};
use crate::arguments::{Destroy, Told};
use crate::exit::{Exit, Stop};
use crate::machine;
use crate::render::changes::Shown;
use crate::terminal::{Terminal, Verbosity};
use ent_machine::apply::{Request, apply};
use ent_machine::destroy::target;
use ent_machine::diff::diff;
use ent_machine::journal::Transaction;
use ent_machine::persist;
use ent_machine::preflight::{Allowed, blast_radius, preflight, warnings};
use std::io::IsTerminal;

/// Shows what would go, asks, and gives the machine back.
pub(super) fn run(arguments: &Destroy, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    let change = &arguments.change;
    let is_told = change.format == Told::Human;
    let can_ask = is_told && std::io::stdin().is_terminal();
    if !(arguments.auto_approve || can_ask) {
        return Err(Stop::Refused {
            code: "usage",
            message: "a machine is given back after a `yes`, and there is nobody to ask".to_owned(),
            help: Some("give it back without asking with `--auto-approve`".to_owned()),
        });
    }
    let Begun { machine, store, observed, serving } =
        Begun::on(&arguments.machine, change, (!arguments.no_serve).then_some(DRAIN))?;
    none_open(&store)?;
    let state = store.state().map_err(|error| machine::store(&error))?;
    let (target, notes) = target(&state, &observed);
    let of_now = state.on(&observed);
    let changes =
        diff(&target, &observed, &of_now).map_err(|refusals| Stop::World(machine::refusals(&refusals)))?;
    let allowed = Allowed { reset: change.allow_reset };
    let refusals =
        machine::refusals(&preflight(&changes, &observed, allowed, machine.driver.is_privileged()));
    let radius = blast_radius(&changes, &observed, &of_now);
    let shown = Shown {
        warnings: &warnings(&changes, &observed, &of_now, None),
        ..Shown::alone("back to before entc", &changes, &observed, &radius)
    };
    start("destroy", change, &shown, terminal)?;
    for note in notes {
        terminal.message(&format!("note: {note}\n"));
    }
    if !refusals.is_empty() {
        return Err(Stop::World(refusals));
    }
    let n_steps = changes.steps.len();
    let has_to_end = n_steps > 0 || serving.as_ref().is_some_and(|serving| serving.before.is_some());
    if !arguments.auto_approve && has_to_end && !ask("Give it back? Only `yes` is taken for one: ", terminal)
    {
        terminal.message("not given back: nothing was changed\n");
        return Ok(Exit::Unchanged);
    }
    // What is given back serves nobody: requests that are there are answered first.
    if let Some(serving) = &serving
        && serving.stop().map_err(Stop::from)?
        && is_told
    {
        terminal.message("the gateway and its workers ended\n");
    }
    let run = Run { word: "destroy", machine: &machine, store: &store, change };
    let exit = run.carry_out(terminal, n_steps, |means| {
        let request = Request::without_plan(Transaction::Destroy, &observed, &target, &changes);
        apply(means, &request)
    });
    if exit == Exit::Done {
        remove_unit(arguments, terminal);
    }
    Ok(exit)
}

/// Removes the unit that would apply the plan again. The machine is given back whether or not that works, and
/// a unit that is left finds no plan to apply.
fn remove_unit(arguments: &Destroy, terminal: &Terminal) {
    match persist::remove(&arguments.unit_dir) {
        Ok(false) => {}
        Ok(true) => {
            if terminal.verbosity > Verbosity::Quiet {
                let unit = arguments.unit_dir.join(persist::UNIT);
                terminal.message(&format!("removed {}\n", unit.display()));
            }
        }
        Err(error) => {
            let trouble = crate::exit::Trouble::new(
                "not-removed",
                format!("the machine is given back, but its unit is not wholly gone: {error}"),
                format!(
                    "as root `systemctl disable {}`, then remove `{}`; at a boot it finds no plan and does nothing",
                    persist::UNIT,
                    arguments.unit_dir.join(persist::UNIT).display()
                ),
            );
            super::warn(&trouble, terminal);
        }
    }
}
