//! A program and a question about it → its plan, by the same steps as the command `entc plan`.
//!
//! Compile, read performance data, plan, note what was said in the plan, check it, verify it. Tests ask
//! here instead of running the command, so that they can look at every step.

use ent_lang::Program;
use ent_lang::program::Intensity;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::{Diagnostic, Label, Severity, Sources};
use ent_plan::plan::{LatencyRule, Metric, Note, Plan, Status, check};
use ent_plan::text::{LoadError, MAX_DATA_BYTES, decode};
use ent_planner::{Control, PlanOptions, Planner, Progress};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

/// Stops a search that would keep the suite waiting; a plan that it stopped is not what a test wants.
const PATIENCE_S: f64 = 120.0;

/// Stack of the thread that plans: what the main thread of a command has.
const STACK_BYTES: usize = 8 << 20;

/// What is asked of a program.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// Texts that are not files, by name; the name of a file otherwise means the file in the repository.
    pub texts: BTreeMap<String, String>,
    /// Params set to other values.
    pub set: Vec<(&'a str, &'a str)>,
    /// What to minimise, in place of the program's own.
    pub minimize: Option<Metric>,
    /// Which latency the promises are about, in place of the program's own.
    pub rule: Option<LatencyRule>,
    /// Name of a measured table in place of what the program says.
    pub table: Option<&'a str>,
    /// Who plans.
    pub planner: Planner,
    /// Relative gap that is close enough.
    pub gap: f64,
    /// Nodes of the search tree.
    pub node_limit: Option<u32>,
    /// Seconds; none but `PATIENCE_S` when `None`.
    pub time_limit: Option<f64>,
}

impl Default for Question<'_> {
    fn default() -> Self {
        Self {
            texts: BTreeMap::new(),
            set: Vec::new(),
            minimize: None,
            rule: None,
            table: None,
            planner: Planner::Optimal,
            gap: 0.0,
            node_limit: None,
            time_limit: None,
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct Answer {
    /// The program; empty when it could not be compiled.
    pub program: Program,
    /// What is known of its models.
    pub performance: PerformanceSet,
    /// The plan, with its notes; `None` when it did not come so far.
    pub plan: Option<Plan>,
    /// Everything that was said.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts it was said about.
    pub sources: Sources,
}

impl Answer {
    /// The plan of a program that has one, checked and verified.
    ///
    /// # Panics
    /// When there is none, or it does not hold.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test without its plan has failed")]
    pub fn kept(&self) -> &Plan {
        let errors: Vec<String> = self.errors().map(|d| self.in_words(d)).collect();
        assert!(errors.is_empty(), "{}", errors.join("\n"));
        let Some(plan) = &self.plan else { panic!("there is no plan") };
        let has_boards = matches!(plan.status, Status::Optimal | Status::WithinGap | Status::Feasible);
        assert!(has_boards, "{:?}", plan.status);
        if let Err(faults) = check(plan.clone()) {
            panic!("the plan fails its check: {faults:#?}");
        }
        let faults = ent_performance::verify::verify(&self.program, &self.performance, plan);
        assert!(faults.is_empty(), "the plan fails its verification: {faults:#?}");
        plan
    }

    /// The errors among what was said.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error)
    }

    /// A diagnostic in one line.
    #[must_use]
    pub fn in_words(&self, diagnostic: &Diagnostic) -> String {
        let Diagnostic { code, message, primary, .. } = diagnostic;
        format!("{}: [{}] {message}: {}", place(&self.sources, primary), code.word(), primary.text)
    }
}

/// Where the public data sets are; `None`, with a message, when nobody says.
#[must_use]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn data(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ENT_DATA").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: {test} needs the public data sets; ENT_DATA names no folder");
    }
    folder
}

/// Asks about a program by the name of its file.
///
/// # Panics
/// When the solver fails.
#[must_use]
pub fn ask(name: &str, question: &Question<'_>) -> Answer {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let asked =
            thread.spawn_scoped(scope, || answer(name, question)).map(std::thread::ScopedJoinHandle::join);
        match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => std::panic::resume_unwind(Box::new(error.to_string())),
        }
    })
}

#[expect(clippy::panic, reason = "a solver that fails is a bug, and fails the test")]
fn answer(name: &str, question: &Question<'_>) -> Answer {
    let mut load = |name: &str| load(&question.texts, name);
    let mut sources = Sources::default();
    let options = ent_lang::Options {
        set: question.set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        minimize: question.minimize,
        latency_rule: question.rule,
    };
    let compiled = ent_lang::compile(name, &options, &mut load, &mut sources);
    let mut diagnostics = compiled.diagnostics;
    let mut answer = Answer {
        program: compiled.value.unwrap_or_default(),
        performance: PerformanceSet::default(),
        plan: None,
        diagnostics: Vec::new(),
        sources: Sources::default(),
    };
    let has_errors = |said: &[Diagnostic]| said.iter().any(|d| d.severity == Severity::Error);
    if !has_errors(&diagnostics) {
        diagnostics.extend(intensity(&mut answer.program, &mut load, &mut sources));
        let outcome = match question.table {
            Some(table) => {
                let bytes = load(table).unwrap_or_else(|error| panic!("{table}: {error:?}"));
                PerformanceSet::from_table(&answer.program, table, &bytes, &mut sources)
            }
            None => ent_performance::load(&answer.program, &mut load, &mut sources),
        };
        answer.performance = outcome.value;
        diagnostics.extend(outcome.diagnostics);
    }
    if !has_errors(&diagnostics) {
        let (mut plan, said) = plan(&answer.program, &answer.performance, question);
        diagnostics.extend(said);
        plan.diagnostics = diagnostics.iter().map(|d| note(&sources, d)).collect();
        answer.plan = Some(plan);
    }
    Answer { diagnostics, sources, ..answer }
}

#[expect(clippy::panic, reason = "a solver that fails is a bug, and fails the test")]
fn plan(program: &Program, performance: &PerformanceSet, question: &Question<'_>) -> (Plan, Vec<Diagnostic>) {
    let options = PlanOptions {
        planner: question.planner,
        metric: None,
        rule: program.latency_rule.unwrap_or(LatencyRule::Queueing),
    };
    let started = Instant::now();
    let mut go_on = |_: Progress| ControlFlow::Continue(());
    let mut control = Control {
        gap: question.gap,
        time_limit: Some(question.time_limit.unwrap_or(PATIENCE_S)),
        node_limit: question.node_limit,
        elapsed: &|| started.elapsed().as_secs_f64(),
        progress: &mut go_on,
        is_stopped: false,
    };
    match ent_planner::plan(program, performance, options, &mut control) {
        Ok(outcome) => (outcome.value, outcome.diagnostics),
        Err(fault) => panic!("the solver failed: {fault}"),
    }
}

/// The file of a name: one of the texts, below the data folder, or in the repository.
fn load(texts: &BTreeMap<String, String>, name: &str) -> Result<Vec<u8>, LoadError> {
    if let Some(text) = texts.get(name) {
        return Ok(text.clone().into_bytes());
    }
    let path = match name.strip_prefix("data:") {
        Some(rest) => PathBuf::from(std::env::var_os("ENT_DATA").ok_or(LoadError::Missing)?).join(rest),
        None => crate::root().join(name),
    };
    std::fs::read(path).map_err(|_| LoadError::Missing)
}

/// Reads a carbon intensity that is kept in a file.
fn intensity(
    program: &mut Program,
    load: &mut dyn FnMut(&str) -> Result<Vec<u8>, LoadError>,
    sources: &mut Sources,
) -> Vec<Diagnostic> {
    let Some(located) = &mut program.carbon.intensity else { return Vec::new() };
    let Intensity::Series { file: name, values, .. } = &mut located.value else { return Vec::new() };
    let text = load(name).and_then(|bytes| decode(&bytes, MAX_DATA_BYTES));
    let text = text.unwrap_or_default();
    let file = sources.add(name.as_str(), text.as_str());
    let outcome = ent_performance::import::carbon(&text, file);
    *values = outcome.value;
    outcome.diagnostics
}

fn note(sources: &Sources, diagnostic: &Diagnostic) -> Note {
    Note {
        severity: if diagnostic.severity == Severity::Error { "error" } else { "warning" }.to_owned(),
        code: diagnostic.code.word().to_owned(),
        message: diagnostic.message.clone(),
        location: Some(place(sources, &diagnostic.primary)),
        help: diagnostic.help.clone(),
    }
}

fn place(sources: &Sources, label: &Label) -> String {
    let name = sources.get(label.span.file).map_or("", |file| file.name.as_str());
    let (line, column) = sources.position(label.span);
    format!("{name}:{line}:{column}")
}
