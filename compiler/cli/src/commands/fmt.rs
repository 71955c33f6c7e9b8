//! `entc fmt`: specs in their canonical layout.

use super::tell;
use crate::arguments::Fmt;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use ent_plan::diagnostic::{Diagnostic, Sources};
use std::path::Path;

/// Formats all files, or with `--check` names those that would change. A file with a syntax error is
/// left alone; the others are still done.
pub(super) fn run(arguments: &Fmt, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("ast");
    let mut exit = Exit::Done;
    for name in &arguments.files {
        let text = match crate::load::spec(name) {
            Ok(text) => text,
            Err(stop) => {
                exit = super::report(&stop, terminal);
                continue;
            }
        };
        let formatted = match ent_lang::format(&text) {
            Ok(formatted) => formatted,
            Err(diagnostics) => {
                exit = refuse(name, text, &diagnostics, terminal);
                continue;
            }
        };
        if name == "-" && !arguments.check {
            terminal.result(&formatted)?;
        } else if formatted != text {
            if arguments.check {
                terminal.result(&format!("{name}\n"))?;
                exit = Exit::Wrong;
            } else if let Err(stop) = crate::write::atomically(Path::new(name), &formatted) {
                exit = super::report(&stop, terminal);
            }
        }
    }
    Ok(exit)
}

fn refuse(name: &str, text: String, diagnostics: &[Diagnostic], terminal: &Terminal) -> Exit {
    // The formatter numbers its one file zero, as a fresh set of sources does.
    let mut sources = Sources::default();
    sources.add(name, text);
    tell(terminal, &sources, diagnostics);
    Exit::Wrong
}
