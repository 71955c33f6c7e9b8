//! The name of a spec → its program and what is known of its models' performance.

use crate::arguments::Question;
use crate::exit::Stop;
use ent_lang::program::{Arrivals, Intensity, Service};
use ent_lang::{Options, Program};
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Code, Diagnostic, Severity, Sources, Span};
use ent_plan::plan::LatencyRule;
use ent_plan::text::{LoadError, MAX_DATA_BYTES, decode};

/// A program, and what was said about it on the way.
pub(super) struct Compiled {
    /// The program.
    pub(super) program: Program,
    /// Every text that was read.
    pub(super) sources: Sources,
    /// Warnings.
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// Adds what a further phase says.
    ///
    /// # Errors
    /// When any of it is an error: then everything said so far, warnings included.
    pub(super) fn add(&mut self, more: Vec<Diagnostic>) -> Result<(), Stop> {
        self.diagnostics.extend(more);
        if self.diagnostics.iter().any(|d| d.severity == Severity::Error) {
            return Err(Stop::Diagnostics {
                sources: std::mem::take(&mut self.sources),
                diagnostics: std::mem::take(&mut self.diagnostics),
            });
        }
        Ok(())
    }
}

/// Reads a spec to answer a question: everything it imports, and what is known of its models.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn asked(name: &str, question: &Question) -> Result<Compiled, Stop> {
    let options = Options {
        set: question.settings.clone(),
        minimize: question.minimize,
        latency_rule: question.latency_rule,
    };
    compile(name, &options)
}

/// Everything that is wrong with a spec.
///
/// # Errors
/// Only what is about no spec.
pub(super) fn check(name: &str, options: &Options) -> Result<(Sources, Vec<Diagnostic>), Stop> {
    let checked = compile(name, options).and_then(|mut compiled| {
        performance(&mut compiled, None)?;
        Ok((compiled.sources, compiled.diagnostics))
    });
    match checked {
        Err(Stop::Diagnostics { sources, diagnostics }) => Ok((sources, diagnostics)),
        other => other,
    }
}

/// Reads a spec and everything it imports.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn compile(name: &str, options: &Options) -> Result<Compiled, Stop> {
    crate::bug::processing("program");
    let mut sources = Sources::default();
    let outcome = ent_lang::compile(name, options, &mut crate::load::bytes, &mut sources);
    let mut compiled =
        Compiled { program: outcome.value.clone().unwrap_or_default(), sources, diagnostics: Vec::new() };
    compiled.add(outcome.diagnostics)?;
    if outcome.value.is_none() {
        return Err(Stop::refused("syntax", format!("`{name}` is not a program")));
    }
    read_intensity(&mut compiled)?;
    let traces = compiled.program.services.iter().filter_map(unplanned_trace).collect();
    compiled.add(traces)?;
    Ok(compiled)
}

impl Compiled {
    /// Which latency the promises are about.
    pub(super) fn latency_rule(&self) -> LatencyRule {
        self.program.latency_rule.unwrap_or(LatencyRule::Queueing)
    }
}

/// Reads what is known of the models' performance: what the spec names, or the table in its place.
///
/// # Errors
/// What is wrong with those files.
pub(super) fn performance(compiled: &mut Compiled, table: Option<&str>) -> Result<PerformanceSet, Stop> {
    crate::bug::processing("performance");
    let outcome = match table {
        Some(name) => match crate::load::bytes(name) {
            Ok(bytes) => PerformanceSet::from_table(&compiled.program, name, &bytes, &mut compiled.sources),
            Err(error) => return Err(crate::load::refuse(name, error)),
        },
        None => ent_performance::load(&compiled.program, &mut crate::load::bytes, &mut compiled.sources),
    };
    compiled.add(outcome.diagnostics)?;
    Ok(outcome.value)
}

/// Fills in a carbon intensity that is kept in a file.
fn read_intensity(compiled: &mut Compiled) -> Result<(), Stop> {
    let Some(located) = &mut compiled.program.carbon.intensity else { return Ok(()) };
    let span = located.span;
    let Intensity::Series { file: name, values, .. } = &mut located.value else { return Ok(()) };
    match crate::load::bytes(name).and_then(|bytes| decode(&bytes, MAX_DATA_BYTES)) {
        Ok(text) => {
            let file = compiled.sources.add(name.as_str(), text.as_str());
            let outcome = ent_performance::import::carbon(&text, file);
            *values = outcome.value;
            compiled.add(outcome.diagnostics)
        }
        Err(error) => {
            let diagnostic = unreadable(name, error, span);
            compiled.add(vec![diagnostic])
        }
    }
}

/// Recorded arrivals have no queueing model yet; planning them as if they were Poisson would be a guess.
fn unplanned_trace(service: &Service) -> Option<Diagnostic> {
    let Arrivals::Trace { file } = &service.arrivals.value else { return None };
    let message = "recorded arrivals cannot be planned with";
    Some(
        Diagnostic::error(Code::PlannerLimitation, service.arrivals.span, message)
            .label(format!("`{file}` is not read"))
            .help("give the coefficient of variation of its gaps: `arrivals = gamma(cv = 2)`"),
    )
}

fn unreadable(name: &str, error: LoadError, span: Span) -> Diagnostic {
    match error {
        LoadError::Missing => Diagnostic::error(Code::MissingFile, span, "file not found")
            .label(format!("there is no file `{name}`"))
            .help("correct the path; it is relative to the folder of the spec"),
        LoadError::Unreadable(why) => Diagnostic::error(Code::UnreadableFile, span, "file cannot be read")
            .label(why)
            .help("give a UTF-8 text file"),
    }
}
