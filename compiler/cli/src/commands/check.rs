//! `entc check`: specs → everything that is wrong with them.

use super::{program, tell};
use crate::arguments::{Check, CheckFormat};
use crate::exit::{Exit, Stop};
use crate::render::{diagnostic, json, sarif};
use crate::terminal::{Terminal, Verbosity};
use ent_lang::Options;
use ent_plan::diagnostic::{Diagnostic, Severity, Sources};

/// Checks every file by itself.
pub(super) fn run(arguments: &Check, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("program");
    let options = Options { set: arguments.settings.clone(), ..Options::default() };
    let found: Vec<(Sources, Vec<Diagnostic>)> =
        arguments.files.iter().map(|name| program::check(name, &options)).collect::<Result<_, _>>()?;
    let count = |severity| found.iter().flat_map(|(_, list)| list).filter(|d| d.severity == severity).count();
    let (n_errors, n_warnings) = (count(Severity::Error), count(Severity::Warning));
    match arguments.format {
        _ if arguments.concise => {
            let text: String =
                found.iter().map(|(sources, list)| diagnostic::concise(sources, list)).collect();
            terminal.result(&text)?;
        }
        CheckFormat::Human => {
            for (sources, list) in &found {
                tell(terminal, sources, list);
            }
            if terminal.verbosity > Verbosity::Quiet {
                let files = counted(found.len(), "file");
                let errors = counted(n_errors, "error");
                let warnings = counted(n_warnings, "warning");
                terminal.message(&format!("checked {files}: {errors}, {warnings}\n"));
            }
        }
        CheckFormat::Json => {
            let shown = found.iter().flat_map(|(sources, list)| json::diagnostics(sources, list)).collect();
            terminal.result(&json::Report::new(shown).text())?;
        }
        CheckFormat::Sarif => terminal.result(&json::text(&sarif::log(&found)))?,
    }
    Ok(if n_errors > 0 { Exit::Wrong } else { Exit::Done })
}

fn counted(count: usize, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {word}{plural}")
}
