//! `entc performance`: measurements → fitted models, and what a file of them says.

use super::{canvas_out, tell};
use crate::arguments::{Fit, Format, ShowPerformance};
use crate::exit::{Exit, Stop};
use crate::render;
use crate::terminal::{Terminal, Verbosity};
use ent_performance::fit::{fit_model, knowledge, learn, read_models};
use ent_performance::import::{Context, measurements};
use ent_plan::device::{Board, board, board_ids};
use ent_plan::diagnostic::{Code, Severity, Sources, Span};
use ent_plan::performance::{FITTED_FORMAT_VERSION, FittedModel, FittedModels, catalogue};

/// Fits every model of a file of measurements and writes the models.
pub(super) fn fit(arguments: &Fit, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("performance");
    let board = known_board(&arguments.board)?;
    let text = crate::load::text(&arguments.file)?;
    let mut sources = Sources::default();
    let file = sources.add(arguments.file.as_str(), text.as_str());
    let boards = std::slice::from_ref(&board);
    let context =
        Context { boards, board: Some(0), model: arguments.model.as_deref(), source: &arguments.file };
    let outcome = measurements(&text, file, &context);
    let mut diagnostics = outcome.diagnostics;
    let has_errors =
        |list: &[ent_plan::diagnostic::Diagnostic]| list.iter().any(|d| d.severity == Severity::Error);
    if has_errors(&diagnostics) {
        return Err(Stop::Diagnostics { sources, diagnostics });
    }
    let mut tables = outcome.value;
    if let Some(model) = &arguments.model {
        let names: Vec<String> = tables.iter().map(|table| table.model.clone()).collect();
        tables.retain(|table| table.model == *model);
        if tables.is_empty() {
            return Err(Stop::Refused {
                code: Code::UnknownName.word(),
                message: format!("`{}` has no measurements of `{model}`", arguments.file),
                help: Some(format!("name one of: {}", names.join(", "))),
            });
        }
    }
    let learned = arguments.learn.then(|| learn(&tables.iter().collect::<Vec<_>>(), &board));
    let start = learned.clone().unwrap_or_else(|| knowledge(&board));
    let whole = Span { file, start: 0, end: 0 };
    let mut models = Vec::new();
    for table in &tables {
        let fitted = fit_model(table, &board, &start, whole);
        diagnostics.extend(fitted.diagnostics);
        models.extend(fitted.value);
    }
    if has_errors(&diagnostics) {
        return Err(Stop::Diagnostics { sources, diagnostics });
    }
    let fitted =
        FittedModels { format_version: FITTED_FORMAT_VERSION.to_owned(), knowledge: learned, models };
    let text = serde_json::to_string_pretty(&fitted).map_err(|error| {
        Stop::refused("cannot-write", format!("the models cannot be written as JSON: {error}"))
    })?;
    crate::write::atomically(&arguments.output, &(text + "\n"))?;
    tell(terminal, &sources, &diagnostics);
    if terminal.verbosity > Verbosity::Quiet {
        let shown = render::performance::models(&fitted.models, &super::canvas_err(terminal));
        terminal.message(&format!("{shown}wrote {}\n", arguments.output.display()));
    }
    Ok(Exit::Done)
}

/// Shows a file of fitted models.
pub(super) fn show(arguments: &ShowPerformance, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::bug::processing("performance");
    let name = &arguments.file;
    let models = match name.strip_prefix("catalog:") {
        Some(entry) => built_in(name, entry)?,
        None => {
            let text = crate::load::text(name)?;
            read_models(&text).map_err(|why| {
                Stop::about_file(
                    Code::UnreadableFile,
                    name,
                    "not a file of fitted models",
                    why,
                    "give a file written by `entc performance fit`",
                )
            })?
        }
    };
    let text = match arguments.format {
        Format::Json => render::json::text(&serde_json::json!(models)),
        Format::Human => render::performance::models(&models, &canvas_out(terminal, true, false)),
    };
    terminal.result(&text)?;
    Ok(Exit::Done)
}

fn built_in(name: &str, entry: &str) -> Result<Vec<FittedModel>, Stop> {
    let text = entry.strip_prefix("performance/").and_then(catalogue);
    let Some(text) = text else {
        let known: Vec<String> = board_ids()
            .filter(|id| catalogue(id).is_some())
            .map(|id| format!("catalog:performance/{id}"))
            .collect();
        return Err(Stop::Refused {
            code: Code::UnknownName.word(),
            message: format!("the catalogue has no `{name}`"),
            help: Some(format!("name one of: {}", known.join(", "))),
        });
    };
    read_models(text).map_err(|why| Stop::refused(Code::UnreadableFile.word(), why))
}

fn known_board(id: &str) -> Result<Board, Stop> {
    board(id).ok_or_else(|| Stop::Refused {
        code: Code::UnknownBoard.word(),
        message: format!("the catalogue has no board `{id}`"),
        help: Some(format!("name one of: {}", board_ids().collect::<Vec<_>>().join(", "))),
    })
}
