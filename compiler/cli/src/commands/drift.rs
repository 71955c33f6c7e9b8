//! `entc drift`: what is no longer as entc left it.

use super::canvas_out;
use crate::arguments::{Drift, Format};
use crate::exit::{Exit, Stop};
use crate::machine::{self, Machine};
use crate::render::{self, json};
use crate::report::machine::{DriftReport, Drifted, FORMAT_VERSION};
use crate::terminal::Terminal;
use ent_machine::drift::drift;

/// Compares the machine with the state.
pub(super) fn run(arguments: &Drift, terminal: &Terminal) -> Result<Exit, Stop> {
    let machine = Machine::of(&arguments.machine.library)?;
    let observed = machine.observe()?;
    let store = machine::store_of(&arguments.machine, &machine.library);
    let state = store.state().map_err(|error| machine::store(&error))?;
    super::warn_if_open(&store, terminal)?;
    crate::bug::processing("drift");
    let drifted = |one: ent_machine::drift::Drift| Drifted {
        gpu: one.gpu,
        field: one.field,
        expected: one.expected,
        found: one.found,
        is_reasserted: one.is_reasserted,
    };
    let report = DriftReport {
        format_version: FORMAT_VERSION,
        plan: state.plan.clone(),
        has_drifted: false,
        drift: drift(&state, &observed).into_iter().map(drifted).collect(),
    };
    let report = DriftReport { has_drifted: !report.drift.is_empty(), ..report };
    let text = match arguments.format {
        Format::Json => json::text(&serde_json::json!(report)),
        Format::Human => {
            render::drift::drift(&report, &observed, &state, &canvas_out(terminal, false, false))
        }
    };
    terminal.result(&text)?;
    Ok(if report.has_drifted && arguments.detailed_exitcode { Exit::Changes } else { Exit::Done })
}
