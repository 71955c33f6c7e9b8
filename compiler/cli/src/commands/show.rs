//! `entc show`: plan.json → checked → drawn.

use super::canvas_out;
use crate::arguments::{Format, Show};
use crate::exit::{Exit, Stop};
use crate::render;
use crate::terminal::Terminal;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Sources, Span};
use ent_plan::plan::{FORMAT_VERSION, Fault, Plan, check};
use serde_json::Value;

/// Reads, checks and draws a saved plan.
pub(super) fn run(arguments: &Show, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("plan");
    let plan = read(&arguments.file)?;
    let text = match arguments.format {
        Format::Json => crate::report::plan_file(&plan)?,
        Format::Human => {
            let canvas = canvas_out(terminal, arguments.explain, arguments.summary);
            render::plan::plan(&plan, None, &canvas)
        }
    };
    terminal.result(&text)?;
    Ok(Exit::Done)
}

/// Reads a plan file and checks it.
///
/// # Errors
/// `invalid-plan` when it is not one or of another version, `plan-check-failed` when it does not hold.
pub(super) fn read(name: &str) -> Result<Plan, Stop> {
    let text = crate::load::text(name)?;
    let value: Value = serde_json::from_str(&text).map_err(|error| at(name, &text, &error))?;
    let version = value.get("format_version").and_then(Value::as_str);
    let Some(version) = version else {
        return Err(invalid(name, "it has no `format_version`", "give a file written by `entc plan -o`"));
    };
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(version) != major(FORMAT_VERSION) {
        let label = format!("its format is {version}; this entc reads {FORMAT_VERSION}");
        return Err(invalid(name, &label, "plan again with this entc, or use the entc that made it"));
    }
    let plan: Plan = serde_json::from_str(&text).map_err(|error| at(name, &text, &error))?;
    match check(plan) {
        Ok(checked) => Ok(checked.plan().clone()),
        Err(faults) => Err(failed(name, &faults)),
    }
}

fn invalid(name: &str, label: &str, help: &str) -> Stop {
    Stop::about_file(Code::InvalidPlan, name, "not a plan that can be used", label, help)
}

/// A fault of the JSON, at its place in the file.
fn at(name: &str, text: &str, error: &serde_json::Error) -> Stop {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let start = (before + error.column().saturating_sub(1)).min(text.len());
    let offset = u32::try_from(start).unwrap_or(u32::MAX);
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    let (label, help) = if error.is_eof() {
        (
            "the file ends here, before the plan does".to_owned(),
            "write the plan again: the file was cut short",
        )
    } else {
        (what.to_owned(), "give a file written by `entc plan -o`, unchanged")
    };
    let span = Span { file, start: offset, end: offset };
    let diagnostic =
        Diagnostic::error(Code::InvalidPlan, span, "not a plan that can be used").label(label).help(help);
    Stop::Diagnostics { sources, diagnostics: vec![diagnostic] }
}

/// Each fault as its own diagnostic. Their places are in the plan, not in its text.
fn failed(name: &str, faults: &[Fault]) -> Stop {
    let mut sources = Sources::default();
    let file: FileId = sources.add(name, "");
    let span = Span { file, start: 0, end: 0 };
    let diagnostics = faults
        .iter()
        .map(|fault| {
            Diagnostic::error(Code::PlanCheckFailed, span, "the plan does not hold")
                .label(format!("{}: {}", fault.place, fault.message))
                .help("plan again; a plan file is not for editing")
        })
        .collect();
    Stop::Diagnostics { sources, diagnostics }
}
