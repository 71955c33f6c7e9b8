//! `entc show`: plan.json → checked → drawn. Also how every other command reads a plan file.

use super::canvas_out;
use crate::arguments::{Format, Show};
use crate::exit::{Exit, Stop};
use crate::render;
use crate::terminal::Terminal;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Sources, Span};
use ent_plan::plan::{CheckedPlan, ChecksumFault, FORMAT_VERSION, Fault, Plan, check, checksum_fault_in};
use serde_json::Value;

/// Reads, checks and draws a saved plan.
pub(super) fn run(arguments: &Show, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("plan");
    super::pictures::possible(&arguments.pictures)?;
    let saved = read(&arguments.file)?;
    saved.warn(terminal);
    super::pictures::write(
        &arguments.pictures,
        saved.plan.plan(),
        &ent_picture::Findings::default(),
        terminal,
    )?;
    let text = match arguments.format {
        Format::Json => render::json::text(&saved.value),
        Format::Human => {
            let canvas = canvas_out(terminal, arguments.explain, arguments.summary);
            render::plan::plan(saved.plan.plan(), None, &canvas)
        }
    };
    terminal.result(&text)?;
    Ok(Exit::Done)
}

/// A plan file that holds.
pub(super) struct Saved {
    /// The plan.
    pub(super) plan: CheckedPlan,
    /// The file's JSON, with whatever a later minor version added.
    value: Value,
    /// Whether it has a checksum; a wrong one was refused.
    is_sealed: bool,
    name: String,
}

impl Saved {
    /// Warns of a plan that is not known to be as it was made.
    pub(super) fn warn(&self, terminal: &Terminal) {
        if !self.is_sealed {
            let mut sources = Sources::default();
            let file: FileId = sources.add(self.name.as_str(), "");
            let span = Span { file, start: 0, end: 0 };
            let warning = Diagnostic::warning(Code::PlanChecksum, span, "the plan has no checksum")
                .label(format!("plans of format {} were written without", self.plan.plan().format_version))
                .help("plan again, so that a change by mistake is noticed");
            super::tell(terminal, &sources, &[warning]);
        }
    }

    /// The plan, if it is known to be as it was made.
    ///
    /// # Errors
    /// `plan-checksum` for a plan of the format that had none.
    pub(super) fn sealed(self) -> Result<CheckedPlan, Stop> {
        if self.is_sealed {
            return Ok(self.plan);
        }
        let label = format!("plans of format {} were written without", self.plan.plan().format_version);
        let help = "plan again with this entc; only a plan with a checksum is applied";
        Err(Stop::about_file(Code::PlanChecksum, &self.name, "the plan has no checksum", label, help))
    }
}

/// Reads a plan file and checks it.
///
/// # Errors
/// `invalid-plan` when it is not one or of another version, `plan-checksum` when it is not as it was
/// written, `plan-check-failed` when it does not hold.
pub(super) fn read(name: &str) -> Result<Saved, Stop> {
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
    let fault = checksum_fault_in(&value);
    let is_sealed = fault != Some(ChecksumFault::Older);
    let fault = fault.filter(|_| is_sealed).map(|fault| unsealed(&fault, &value));
    match (check(plan), fault) {
        (Ok(plan), None) => Ok(Saved { plan, value, is_sealed, name: name.to_owned() }),
        (Ok(_), Some(fault)) => Err(failed(name, vec![fault])),
        (Err(faults), fault) => {
            Err(failed(name, fault.into_iter().chain(faults.iter().map(fails)).collect()))
        }
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

/// What is wrong with the file as a whole. Its place is in the plan, not in its text.
type Wrong = (Code, &'static str, String, &'static str);

fn unsealed(fault: &ChecksumFault, value: &Value) -> Wrong {
    let is_report = value.get("solve_seconds").is_some() && value.get("planned_at").is_some();
    let (label, help) = match fault {
        _ if is_report => (
            "it is what `entc plan --format json` prints: a report, with a plan in it".to_owned(),
            "write the plan with `entc plan FILE -o plan.json`",
        ),
        ChecksumFault::Wrong { stated, computed } => (
            format!(
                "the file says {stated}, its contents are {computed}: it was changed after it was written"
            ),
            "plan again; a plan file is not for editing",
        ),
        ChecksumFault::Absent | ChecksumFault::Older => (
            "it has no checksum, although its format has one: it was changed after it was written".to_owned(),
            "plan again; a plan file is not for editing",
        ),
    };
    (Code::PlanChecksum, "the plan is not as it was written", label, help)
}

fn fails(fault: &Fault) -> Wrong {
    let label = format!("{}: {}", fault.place, fault.message);
    (Code::PlanCheckFailed, "the plan does not hold", label, "plan again; a plan file is not for editing")
}

/// Each fault as its own diagnostic.
fn failed(name: &str, faults: Vec<Wrong>) -> Stop {
    let mut sources = Sources::default();
    let file: FileId = sources.add(name, "");
    let span = Span { file, start: 0, end: 0 };
    let diagnostics = faults
        .into_iter()
        .map(|(code, message, label, help)| Diagnostic::error(code, span, message).label(label).help(help))
        .collect();
    Stop::Diagnostics { sources, diagnostics }
}
