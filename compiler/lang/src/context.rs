//! What resolving knows while it reads blocks: values of names, texts, and the problems found so far.

use crate::suggest::{choices, similar};
use crate::value::Value;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Severity, Sources, Span};
use std::collections::{BTreeMap, BTreeSet};

/// At most this many errors are kept; a file with more has one cause, or is no program.
const MAX_ERRORS: usize = 200;

/// What a name stands for, and where it was given that value.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) value: Value,
    pub(crate) span: Span,
}

/// The state of resolving.
pub(crate) struct Context<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) definitions: BTreeMap<String, Definition>,
    /// Names that broken lines seem to declare; they are never reported as unknown.
    pub(crate) poisoned: BTreeSet<String>,
    /// A file could not be read, or a broken line may declare anything: no name is reported as unknown.
    pub(crate) is_all_poisoned: bool,
    diagnostics: Vec<Diagnostic>,
    n_errors: usize,
}

impl<'a> Context<'a> {
    pub(crate) fn new(sources: &'a Sources) -> Self {
        Self {
            sources,
            definitions: BTreeMap::new(),
            poisoned: BTreeSet::new(),
            is_all_poisoned: false,
            diagnostics: Vec::new(),
            n_errors: 0,
        }
    }

    pub(crate) fn report(&mut self, problem: Diagnostic) {
        if problem.severity == Severity::Error {
            self.n_errors += 1;
        }
        if self.n_errors <= MAX_ERRORS {
            self.diagnostics.push(problem);
        }
    }

    /// Whether further errors are counted and not kept: then their suggestions need not be worked out.
    pub(crate) fn is_full(&self) -> bool {
        self.n_errors >= MAX_ERRORS
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// Reports a name nothing declares, unless a broken line may have declared it.
    pub(crate) fn unknown_name<'c>(
        &mut self,
        span: Span,
        name: &str,
        what: &str,
        candidates: impl IntoIterator<Item = &'c str> + Clone,
        otherwise: &str,
    ) {
        if self.is_all_poisoned || self.poisoned.contains(name) {
            return;
        }
        if self.is_full() {
            self.report(Diagnostic::error(Code::UnknownName, span, ""));
            return;
        }
        let problem = Diagnostic::error(Code::UnknownName, span, format!("unknown {what} `{name}`"))
            .label(format!("no {what} has this name"));
        let problem = match similar(name, candidates.clone()) {
            Some(meant) => self.did_you_mean(problem, span, name, meant),
            None if !otherwise.is_empty() => problem.help(otherwise),
            None => {
                let known = choices(candidates.clone());
                let problem =
                    if known.is_empty() { problem } else { problem.help(format!("use one of {known}")) };
                candidates
                    .into_iter()
                    .take(4)
                    .fold(problem, |problem, other| self.or_change_word(problem, span, name, other))
            }
        };
        self.report(problem);
    }

    /// A path written in a file, as seen from the working folder; `catalog:…`, `data:…` and absolute
    /// paths stay.
    pub(crate) fn join(&self, file: FileId, path: &str) -> String {
        let from = self.sources.get(file).map_or("", |f| f.name.as_str());
        crate::files::join(from, path)
    }
}
