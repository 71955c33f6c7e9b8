//! `entc doctor`: what would keep entc from changing this machine, each with its fix.

use super::canvas_out;
use crate::arguments::{Doctor, Format};
use crate::exit::{Exit, Stop};
use crate::machine;
use crate::render::{self, json};
use crate::report::machine::{FORMAT_VERSION, Finding, Findings};
use crate::terminal::Terminal;
use ent_machine::Driver;
use ent_machine::doctor::{Check, Verdict, collect, examine};

/// Examines the machine. What it finds is its result: a machine without a driver is no failure of it.
pub(super) fn run(arguments: &Doctor, terminal: &Terminal) -> Result<Exit, Stop> {
    let library = machine::choose(&arguments.machine.library)?;
    crate::bug::processing("machine");
    let driver = Driver::open(&library);
    crate::terminal::error_line(&format!("nvml: {}", machine::told(&library)));
    let wrong = driver.as_ref().err().and_then(|error| machine::wrong_simulation(&library, error));
    let mut checks = match wrong {
        Some(trouble) => vec![Check {
            name: "library".to_owned(),
            verdict: Verdict::Problem,
            message: trouble.message,
            fix: Some(trouble.help),
        }],
        None => examine(&collect(driver.as_ref())),
    };
    checks.push(own_files(arguments, &library));
    let is_ready = checks.iter().all(|check| check.verdict != Verdict::Problem);
    let findings =
        Findings { format_version: FORMAT_VERSION, is_ready, checks: checks.iter().map(finding).collect() };
    let text = match arguments.format {
        Format::Json => json::text(&serde_json::json!(findings)),
        Format::Human => render::doctor::doctor(&findings, &canvas_out(terminal, false, false)),
    };
    terminal.result(&text)?;
    Ok(if is_ready { Exit::Done } else { Exit::Wrong })
}

/// Whether state and journal can be read, and nothing is left undone.
fn own_files(arguments: &Doctor, library: &ent_machine::Library) -> Check {
    let store = machine::store_of(&arguments.machine, library);
    let folder = store.folder().display().to_string();
    let check =
        |verdict, message, fix: Option<String>| Check { name: "state".to_owned(), verdict, message, fix };
    let read = store.state().and_then(|state| Ok((state, store.journal()?)));
    match read {
        Err(error) => {
            let trouble = machine::store(&error);
            check(Verdict::Problem, trouble.message, Some(trouble.help))
        }
        Ok((_, Some(journal))) if journal.is_open() => check(
            Verdict::Problem,
            format!("a transaction was cut off: {}", journal.path.display()),
            Some("go on with `entc apply --resume`, or back with `entc rollback`".to_owned()),
        ),
        Ok((state, _)) if state.gpus.is_empty() => {
            check(Verdict::Ok, format!("entc has changed nothing here yet ({folder})"), None)
        }
        Ok((state, _)) => check(
            Verdict::Ok,
            format!("entc remembers what it did to {} GPUs ({folder})", state.gpus.len()),
            None,
        ),
    }
}

fn finding(check: &Check) -> Finding {
    Finding {
        name: check.name.clone(),
        verdict: match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Problem => "problem",
        },
        message: check.message.clone(),
        fix: check.fix.clone(),
    }
}
