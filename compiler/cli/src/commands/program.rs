//! The name of a spec → its program and what is known of its models' performance.

use super::replay::Traces;
use crate::arguments::Question;
use crate::exit::Stop;
use ent_lang::program::{Arrivals, Intensity};
use ent_lang::{Options, Program};
use ent_performance::PerformanceSet;
use ent_performance::import::Trace;
use ent_plan::diagnostic::{Code, Diagnostic, Severity, Sources, Span};
use ent_plan::plan::LatencyRule;
use ent_plan::text::{LoadError, MAX_DATA_BYTES, decode};
use std::collections::BTreeMap;

/// A program, and what was said about it on the way.
pub(super) struct Compiled {
    /// The program.
    pub(super) program: Program,
    /// Every text that was read.
    pub(super) sources: Sources,
    /// Warnings.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Gaps of recorded arrivals (s), by service.
    pub(super) traces: Traces,
    /// What a plan of it rests on, beyond what planners know.
    pub(super) assumptions: Vec<String>,
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
        let performance = performance(&mut compiled, None)?;
        let rule = compiled.latency_rule();
        let alone = ent_planner::alone(&compiled.program, &performance, rule);
        compiled.diagnostics.extend(alone);
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
    let mut compiled = Compiled {
        program: outcome.value.clone().unwrap_or_default(),
        sources,
        diagnostics: Vec::new(),
        traces: Traces::new(),
        assumptions: Vec::new(),
    };
    compiled.add(outcome.diagnostics)?;
    if outcome.value.is_none() {
        return Err(Stop::refused("syntax", format!("`{name}` is not a program")));
    }
    read_data(compiled)
}

/// Reads the data files of a program that is compiled already.
///
/// # Errors
/// Everything that is wrong with them.
pub(super) fn read(program: Program, sources: Sources) -> Result<Compiled, Stop> {
    let (diagnostics, assumptions) = (Vec::new(), Vec::new());
    read_data(Compiled { program, sources, diagnostics, traces: Traces::new(), assumptions })
}

fn read_data(mut compiled: Compiled) -> Result<Compiled, Stop> {
    read_intensity(&mut compiled)?;
    read_traces(&mut compiled)?;
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

/// Recorded arrivals are planned as independent gamma gaps of the same variation, which the queueing model
/// knows, and replayed in simulation as they are.
fn read_traces(compiled: &mut Compiled) -> Result<(), Stop> {
    let mut known: BTreeMap<String, Option<Trace>> = BTreeMap::new();
    let mut diagnostics = Vec::new();
    for service in &mut compiled.program.services {
        let span = service.arrivals.span;
        let Arrivals::Trace { file: name } = &service.arrivals.value else { continue };
        let name = name.clone();
        let trace = known.entry(name.clone()).or_insert_with(|| {
            match crate::load::bytes(&name).and_then(|bytes| decode(&bytes, MAX_DATA_BYTES)) {
                Ok(text) => {
                    let file = compiled.sources.add(name.as_str(), text.as_str());
                    let outcome = ent_performance::import::trace(&text, file);
                    let is_usable = !outcome.has_errors();
                    diagnostics.extend(outcome.diagnostics);
                    is_usable.then_some(outcome.value)
                }
                Err(error) => {
                    diagnostics.push(unreadable(&name, error, span));
                    None
                }
            }
        });
        let Some(trace) = trace else { continue };
        let asked = service.name.value.clone();
        service.arrivals.value = Arrivals::Gamma { cv: trace.cv.clamp(LEAST_CV, MOST_CV) };
        compiled.assumptions.push(format!(
            "`{asked}` arrives as recorded in {name}; planned as independent gamma gaps with the same variation, \
             cv {}",
            crate::render::quantity::digits(trace.cv, 3)
        ));
        compiled.traces.insert(asked, trace.gaps.clone());
    }
    compiled.add(diagnostics)
}

/// The variations that specs may ask for.
const LEAST_CV: f64 = 0.01;
const MOST_CV: f64 = 100.0;

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
