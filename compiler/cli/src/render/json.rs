//! Diagnostics → JSON, the same shape wherever a command writes them.

use ent_plan::diagnostic::{Code, Diagnostic, Label, Severity, Sources, Span};
use ent_plan::plan::FORMAT_VERSION;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// One diagnostic.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Shown {
    /// `error` or `warning`.
    severity: &'static str,
    /// Its word; `entc explain WORD` tells more.
    code: String,
    /// What is wrong, in one line.
    message: String,
    /// `file:line:column`; `null` when it is about no place.
    location: Option<String>,
    /// The place in parts; `null` when it is about no place.
    place: Option<Place>,
    /// What is wrong at that place; may be empty.
    label: String,
    /// Further places.
    labels: Vec<FurtherPlace>,
    /// What to do.
    help: Option<String>,
}

impl Shown {
    /// Whether it is an error.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == "error"
    }

    /// Whether it is of this kind.
    pub(crate) fn is(&self, code: Code) -> bool {
        self.code == code.word()
    }

    /// Message and label in one line.
    pub(crate) fn in_one_line(&self) -> String {
        if self.label.is_empty() { self.message.clone() } else { format!("{}: {}", self.message, self.label) }
    }
}

/// A stretch of a file. Lines and columns count from one, columns in characters.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Place {
    /// The file as the user named it.
    file: String,
    /// First line.
    line: usize,
    /// First column.
    column: usize,
    /// Last line.
    end_line: usize,
    /// One past the last column.
    end_column: usize,
}

/// A further place and what is to be said about it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct FurtherPlace {
    /// Where.
    place: Place,
    /// What.
    label: String,
}

/// What a command writes that has nothing but diagnostics to say.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Version of this format.
    pub(crate) format_version: &'static str,
    /// `ok` or `error`.
    pub(crate) status: &'static str,
    /// Everything found.
    pub(crate) diagnostics: Vec<Shown>,
}

impl Report {
    /// From diagnostics; `error` if any is one.
    pub(crate) fn new(diagnostics: Vec<Shown>) -> Self {
        let has_error = diagnostics.iter().any(|d| d.severity == "error");
        Self { format_version: FORMAT_VERSION, status: if has_error { "error" } else { "ok" }, diagnostics }
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        text(&json!(self))
    }
}

/// Diagnostics in JSON's shape.
pub(crate) fn diagnostics(sources: &Sources, diagnostics: &[Diagnostic]) -> Vec<Shown> {
    diagnostics.iter().map(|diagnostic| shown(sources, diagnostic)).collect()
}

/// A refusal that is about no file.
pub(crate) fn refusal(code: &str, message: &str, help: Option<&str>) -> Shown {
    Shown {
        severity: "error",
        code: code.to_owned(),
        message: message.to_owned(),
        location: None,
        place: None,
        label: String::new(),
        labels: Vec::new(),
        help: help.map(str::to_owned),
    }
}

/// The place of a span.
pub(crate) fn place(sources: &Sources, span: Span) -> Place {
    let (line, column) = sources.position(span);
    let (end_line, end_column) = sources.position(Span { start: span.end.max(span.start), ..span });
    let file = sources.get(span.file).map_or_else(String::new, |file| file.name.clone());
    Place { file, line, column, end_line, end_column }
}

/// A JSON value as text that ends in a newline.
pub(crate) fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

fn shown(sources: &Sources, diagnostic: &Diagnostic) -> Shown {
    let further =
        |label: &Label| FurtherPlace { place: place(sources, label.span), label: label.text.clone() };
    Shown {
        severity: severity(diagnostic.severity),
        code: diagnostic.code.word().to_owned(),
        message: diagnostic.message.clone(),
        location: Some(super::diagnostic::location(sources, &diagnostic.primary)),
        place: Some(place(sources, diagnostic.primary.span)),
        label: diagnostic.primary.text.clone(),
        labels: diagnostic.secondary.iter().map(further).collect(),
        help: diagnostic.help.clone(),
    }
}

/// The word of a severity.
pub(crate) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}
