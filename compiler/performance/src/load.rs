//! Program + files → the performance of its models on its boards.
//!
//! Files are read through the caller's function and become part of `sources`, so that a fault in a CSV
//! row is shown as a fault in the spec is.

use crate::fit;
use crate::import;
use crate::predict::{ModelPerformance, is_measured_as};
use crate::table::highest_clock;
use ent_lang::Program;
use ent_lang::program::{PerformanceRef, PerformanceSource};
use ent_plan::device::Board;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Outcome, Sources, Span};
use ent_plan::performance::{FittedModel, PerformanceTable, catalogue};
use ent_plan::text::{Load, LoadError, MAX_DATA_BYTES, decode};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of each model on each board of a program.
#[derive(Clone, Debug, Default)]
pub struct PerformanceSet {
    models: Vec<BTreeMap<usize, ModelPerformance>>,
}

impl PerformanceSet {
    /// The performance of a model (index into [`Program::models`]) on a board (index into
    /// [`Program::boards`]); `None` when nobody measured it.
    #[must_use]
    pub fn get(&self, model: usize, board: usize) -> Option<&ModelPerformance> {
        self.models.get(model)?.get(&board)
    }

    /// The measured rows of a table in place of what the program says: every model by its own name.
    /// `name` is the file's name as shown to the user.
    ///
    /// Errors: those of [`import::measurements`]; [`Code::SloWithoutMeasurement`] for a service whose
    /// model is not in the table.
    #[must_use]
    pub fn from_table(program: &Program, name: &str, bytes: &[u8], sources: &mut Sources) -> Outcome<Self> {
        let mut loader = Loader::new(program);
        let nowhere = program.services.first().map_or_else(Span::default, |s| s.model.span);
        if let Some(text) = loader.text(name, bytes, nowhere) {
            let file = sources.add(name, text.clone());
            let model = match program.models.as_slice() {
                [only] => Some(only.name.value.clone()),
                _ => None,
            };
            let tables = loader.import(name, &text, file, model.as_deref());
            for (index, model) in program.models.iter().enumerate() {
                for table in tables.iter().filter(|t| t.model == model.name.value) {
                    loader.put_table(index, table, PerformanceSource::Table, Span { file, start: 0, end: 0 });
                }
            }
        }
        loader.finish(Some(name))
    }
}

/// Reads the performance data that a program's models name.
///
/// Errors: [`Code::MissingFile`], [`Code::UnreadableFile`], those of [`import::measurements`],
/// [`Code::UnknownName`] for an entry the file lacks, [`Code::TooFewMeasurements`] from fitting, and
/// [`Code::SloWithoutMeasurement`] for a service whose model has no data on any board of the program.
/// Warnings: [`Code::IllustrativeData`].
#[must_use]
pub fn load(program: &Program, load: &mut Load<'_>, sources: &mut Sources) -> Outcome<PerformanceSet> {
    let mut loader = Loader::new(program);
    let mut files: BTreeMap<String, Content> = BTreeMap::new();
    for (index, model) in program.models.iter().enumerate() {
        for reference in &model.performance {
            let name = &reference.value.file;
            if !files.contains_key(name) {
                let content = loader.read(name, &model.name.value, reference.span, load, sources);
                files.insert(name.clone(), content);
            }
            let Some(content) = files.get(name) else { continue };
            loader.take(index, &model.name.value, &reference.value, reference.span, content);
        }
    }
    loader.finish(None)
}

/// What a file holds.
enum Content {
    Fitted(Vec<FittedModel>),
    Measured(Vec<PerformanceTable>),
    /// It could not be read; said so already.
    Nothing,
}

struct Loader<'a> {
    program: &'a Program,
    /// Boards that nodes have, in the order of first use.
    used_boards: Vec<usize>,
    set: PerformanceSet,
    diagnostics: Vec<Diagnostic>,
    /// Models whose data failed to load: their absence was explained.
    excused: BTreeSet<usize>,
}

impl<'a> Loader<'a> {
    fn new(program: &'a Program) -> Self {
        let mut used_boards: Vec<usize> = Vec::new();
        for node in &program.nodes {
            if node.board.value < program.boards.len() && !used_boards.contains(&node.board.value) {
                used_boards.push(node.board.value);
            }
        }
        Self {
            program,
            used_boards,
            set: PerformanceSet { models: vec![BTreeMap::new(); program.models.len()] },
            diagnostics: Vec::new(),
            excused: BTreeSet::new(),
        }
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == ent_plan::diagnostic::Severity::Error)
    }

    fn text(&mut self, name: &str, bytes: &[u8], span: Span) -> Option<String> {
        match decode(bytes, MAX_DATA_BYTES) {
            Ok(text) => Some(text),
            Err(error) => {
                self.refuse(name, &error, span);
                None
            }
        }
    }

    fn refuse(&mut self, name: &str, error: &LoadError, span: Span) {
        let diagnostic = match error {
            LoadError::Missing => {
                Diagnostic::error(Code::MissingFile, span, format!("the file `{name}` does not exist"))
                    .label("performance data is read from here")
                    .help("correct the path, or create the file")
            }
            LoadError::Unreadable(why) => {
                Diagnostic::error(Code::UnreadableFile, span, format!("the file `{name}` cannot be read"))
                    .label(why.clone())
                    .help("give a UTF-8 text file")
            }
        };
        self.push(diagnostic);
    }

    fn read(
        &mut self,
        name: &str,
        model: &str,
        span: Span,
        load: &mut Load<'_>,
        sources: &mut Sources,
    ) -> Content {
        let bytes = match name.strip_prefix("catalog:performance/") {
            Some(board) => {
                if let Some(text) = catalogue(board) {
                    return self.fitted(name, text, span);
                }
                load(name)
            }
            None => load(name),
        };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                self.refuse(name, &error, span);
                return Content::Nothing;
            }
        };
        let Some(text) = self.text(name, &bytes, span) else { return Content::Nothing };
        if name.to_lowercase().ends_with(".json") {
            return self.fitted(name, &text, span);
        }
        let file = match sources.find(name) {
            Some(file) => file,
            None => sources.add(name, text.clone()),
        };
        let n_before = self.diagnostics.len();
        let tables = self.import(name, &text, file, Some(model));
        if self.diagnostics[n_before..].iter().any(|d| d.severity == ent_plan::diagnostic::Severity::Error) {
            return Content::Nothing;
        }
        Content::Measured(tables)
    }

    fn fitted(&mut self, name: &str, text: &str, span: Span) -> Content {
        match fit::read_models(text) {
            Ok(models) => Content::Fitted(models),
            Err(why) => {
                self.refuse(name, &LoadError::Unreadable(why), span);
                Content::Nothing
            }
        }
    }

    fn import(&mut self, name: &str, text: &str, file: FileId, model: Option<&str>) -> Vec<PerformanceTable> {
        let board = match self.used_boards.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let context = import::Context { boards: &self.program.boards, board, model, source: name };
        let outcome = import::measurements(text, file, &context);
        self.diagnostics.extend(outcome.diagnostics);
        outcome.value
    }

    /// Gives a model what its reference points to.
    fn take(&mut self, index: usize, model: &str, reference: &PerformanceRef, span: Span, content: &Content) {
        let n_before = self.diagnostics.len();
        match content {
            Content::Nothing => {
                self.excused.insert(index);
            }
            Content::Fitted(models) => {
                let names: Vec<&str> = models.iter().map(|m| m.model.as_str()).collect();
                let Some(name) = self.entry(reference, model, &names, span) else {
                    self.excused.insert(index);
                    return;
                };
                if reference.source == PerformanceSource::Table {
                    self.push(
                        Diagnostic::error(
                            Code::SloWithoutMeasurement,
                            span,
                            "a fitted model has no measured rows",
                        )
                        .label("`source = table` asks for rows")
                        .help("name the CSV file of the measurements, or use `source = fitted`"),
                    );
                    self.excused.insert(index);
                    return;
                }
                for fitted in models.iter().filter(|m| m.model == name) {
                    self.put_fitted(index, fitted, span);
                }
            }
            Content::Measured(tables) => {
                let names: Vec<&str> = tables.iter().map(|t| t.model.as_str()).collect();
                let Some(name) = self.entry(reference, model, &names, span) else {
                    self.excused.insert(index);
                    return;
                };
                for table in tables.iter().filter(|t| t.model == name) {
                    self.put_table(index, table, reference.source, span);
                }
            }
        }
        if self.diagnostics[n_before..].iter().any(|d| d.severity == ent_plan::diagnostic::Severity::Error) {
            self.excused.insert(index);
        }
    }

    /// Which entry of a file is meant: the one named, the one of the model's name, or the only one.
    fn entry(
        &mut self,
        reference: &PerformanceRef,
        model: &str,
        names: &[&str],
        span: Span,
    ) -> Option<String> {
        let wanted = reference.entry.as_deref().unwrap_or(model);
        if names.contains(&wanted) {
            return Some(wanted.to_owned());
        }
        let distinct: BTreeSet<&str> = names.iter().copied().collect();
        if reference.entry.is_none()
            && let [only] = distinct.iter().copied().collect::<Vec<_>>().as_slice()
        {
            return Some((*only).to_owned());
        }
        let file = &reference.file;
        let near = distinct
            .iter()
            .map(|name| (strsim::damerau_levenshtein(name, wanted), *name))
            .min()
            .filter(|(distance, name)| *distance <= 1 + name.len().max(wanted.len()) / 3);
        let help = match near {
            Some((_, near)) => format!("did you mean `{near}`?"),
            None => format!("choose one of: {}", distinct.into_iter().collect::<Vec<_>>().join(", ")),
        };
        self.push(
            Diagnostic::error(Code::UnknownName, span, format!("`{file}` has no entry `{wanted}`"))
                .label("no performance data of this name")
                .help(help),
        );
        None
    }

    fn boards_with_id(&self, id: &str) -> Vec<usize> {
        self.used_boards.iter().copied().filter(|b| is_measured_as(&self.program.boards[*b], id)).collect()
    }

    fn put(&mut self, model: usize, board: usize, performance: ModelPerformance, span: Span) {
        if performance.is_illustration {
            let title = &self.program.boards[board].title;
            let name = &self.program.models[model].name.value;
            self.push(
                Diagnostic::warning(
                    Code::IllustrativeData,
                    span,
                    format!("the performance of `{name}` on {title} is invented to illustrate"),
                )
                .label("nobody measured it")
                .help("measure the model on the board before you rely on the plan"),
            );
        }
        self.set.models[model].entry(board).or_insert(performance);
    }

    fn put_fitted(&mut self, model: usize, fitted: &FittedModel, span: Span) {
        for board in self.boards_with_id(&fitted.board) {
            match ModelPerformance::from_fitted(fitted, &self.program.boards[board]) {
                Some(performance) => self.put(model, board, performance, span),
                None => {
                    let name = &fitted.model;
                    self.push(
                        Diagnostic::error(
                            Code::UnreadableFile,
                            span,
                            format!("the fitted model `{name}` is damaged"),
                        )
                        .label("its coefficients cannot be those of a fit")
                        .help("fit it again with `entc performance fit`"),
                    );
                }
            }
        }
    }

    fn put_table(&mut self, model: usize, table: &PerformanceTable, source: PerformanceSource, span: Span) {
        for board in self.boards_with_id(&table.board) {
            let description: &Board = &self.program.boards[board];
            if table.measurements.iter().all(|m| m.clock.is_none()) && highest_clock(description).is_none() {
                // Rows at "the highest clock" of a board whose clocks nobody knows: the planner says what is
                // missing of the board, and that is what the user can mend.
                self.excused.insert(model);
                continue;
            }
            match source {
                PerformanceSource::Table => {
                    let performance = ModelPerformance::from_table(table, description);
                    self.put(model, board, performance, span);
                }
                PerformanceSource::Fitted => {
                    let outcome = fit::fit_on_board(table, description, span);
                    self.diagnostics.extend(outcome.diagnostics);
                    if let Some(fitted) = outcome.value {
                        self.put_fitted(model, &fitted, span);
                    }
                }
            }
        }
    }

    /// Names every service that has nothing to plan with, unless that was explained.
    fn finish(mut self, table: Option<&str>) -> Outcome<PerformanceSet> {
        let failed = table.is_some() && self.has_errors();
        let mut told = BTreeSet::new();
        for service in &self.program.services {
            let model = service.model.value;
            let is_known = self.set.models.get(model).is_some_and(|boards| !boards.is_empty());
            if is_known || failed || self.excused.contains(&model) || !told.insert(model) {
                continue;
            }
            let Some(declared) = self.program.models.get(model) else { continue };
            let name = &declared.name.value;
            let boards: Vec<&str> =
                self.used_boards.iter().map(|b| self.program.boards[*b].title.as_str()).collect();
            let label = match table {
                Some(table) => format!("`{table}` has no rows of `{name}`"),
                None if declared.performance.is_empty() => format!("`{name}` names no performance data"),
                None => format!("`{name}` was not measured on {}", boards.join(" or ")),
            };
            self.diagnostics.push(
                Diagnostic::error(
                    Code::SloWithoutMeasurement,
                    service.name.span,
                    format!("service `{}` has no measurements to plan with", service.name.value),
                )
                .label(label)
                .and(declared.name.span, "its model")
                .help(format!("measure `{name}`, or remove the service")),
            );
        }
        Outcome { value: self.set, diagnostics: self.diagnostics }
    }
}

#[cfg(test)]
mod tests;
