//! `entc import`: instances that others made become entc's, and nothing on the machine changes.

use super::canvas_out;
use super::transaction::locked;
use crate::arguments::{Format, Import};
use crate::exit::{Exit, Stop};
use crate::machine::{self, Machine};
use crate::render::json;
use crate::render::line::{Line, Role, page};
use crate::report::machine::{FORMAT_VERSION, ImportReport, instances};
use crate::terminal::Terminal;
use ent_machine::apply::Means;
use ent_machine::import::{foreign, import, in_the_way};
use ent_machine::preflight::Allowed;

/// Takes foreign instances over.
pub(super) fn run(arguments: &Import, terminal: &Terminal) -> Result<Exit, Stop> {
    let machine = Machine::of(&arguments.machine.library)?;
    let observed = machine.observe()?;
    let gpus = match arguments.gpus.as_slice() {
        [] => None,
        names => Some(machine::named_gpus(names, &observed)?),
    };
    let folder = machine::state_folder(&arguments.machine, &machine.library);
    let store = locked(&folder, arguments.lock_timeout)?;
    let found = match store.journal().map_err(|error| machine::store(&error))? {
        Some(journal) if journal.is_open() => in_the_way(&journal, &observed, gpus.as_deref()),
        _ => {
            let state = store.state().map_err(|error| machine::store(&error))?;
            foreign(&state, &observed, gpus.as_deref())
        }
    };
    let (report, result) = import(
        &mut Means {
            driver: &machine.driver,
            store: &store,
            allowed: Allowed::default(),
            is_privileged: machine.driver.is_privileged(),
            keep_going: false,
            is_interrupted: &crate::interrupt::is_interrupted,
            tell: &mut |_| {},
        },
        gpus.as_deref(),
    );
    if let Err(error) = result {
        return Err(Stop::World(machine::failed(&error)));
    }
    let report =
        ImportReport { format_version: FORMAT_VERSION, imported: instances(found), notes: report.notes };
    let text = match arguments.format {
        Format::Json => json::text(&serde_json::json!(report)),
        Format::Human => drawn(&report, terminal),
    };
    terminal.result(&text)?;
    Ok(Exit::Done)
}

fn drawn(report: &ImportReport, terminal: &Terminal) -> String {
    let canvas = canvas_out(terminal, false, false);
    let mut lines = match report.imported.len() {
        0 => vec![Line::plain("nothing to import: every instance on this machine is entc's")],
        n => vec![Line::of(Role::Good, "imported").and(
            Role::Plain,
            format!(": {n} {} entc's from now on", if n == 1 { "instance is" } else { "instances are" }),
        )],
    };
    lines.extend(report.imported.iter().map(|one| Line::plain(format!("  {one}"))));
    page(&lines.into_iter().flat_map(|line| line.wrapped(canvas.width, 4)).collect::<Vec<_>>(), canvas.color)
}
