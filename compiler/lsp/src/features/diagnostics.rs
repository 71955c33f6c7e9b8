//! Diagnostics of programs → diagnostics of files, as the client shows them.

use crate::workspace::Workspace;
use ent_plan::diagnostic::{self, Code, Severity};
use lsp_types::{
    CodeDescription, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, NumberOrString, Uri,
};
use std::str::FromStr;

/// One diagnostic as the client shows it, in the file of its primary place.
#[must_use]
pub fn shown(workspace: &Workspace, problem: &diagnostic::Diagnostic) -> lsp_types::Diagnostic {
    let mut message = problem.message.clone();
    if !problem.primary.text.is_empty() {
        message = format!("{message}\n{}", problem.primary.text);
    }
    if let Some(help) = &problem.help {
        message = format!("{message}\nhelp: {help}");
    }
    let related = problem.secondary.iter().filter_map(|label| {
        let location = workspace.location(label.span)?;
        Some(DiagnosticRelatedInformation { location, message: short(workspace, &label.text) })
    });
    let related: Vec<DiagnosticRelatedInformation> = related.collect();
    let titles: Vec<&str> = problem.fixes.iter().map(|fix| fix.title.as_str()).collect();
    lsp_types::Diagnostic {
        range: workspace.range_of(problem.primary.span),
        severity: Some(match problem.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(problem.code.word().to_owned())),
        code_description: page(problem.code),
        source: Some("entc".to_owned()),
        message: short(workspace, &message),
        related_information: (!related.is_empty()).then_some(related),
        tags: (problem.code == Code::Duplicate).then(|| vec![DiagnosticTag::UNNECESSARY]),
        data: (!titles.is_empty()).then(|| serde_json::json!({ "fixes": titles })),
    }
}

/// Where the page of a diagnostic can be read.
fn page(code: Code) -> Option<CodeDescription> {
    let href = format!("{}/blob/main/specs/diagnostics/{}.md", env!("CARGO_PKG_REPOSITORY"), code.word());
    Some(CodeDescription { href: Uri::from_str(&href).ok()? })
}

/// A text in which files below an open folder are named as seen from there.
fn short(workspace: &Workspace, text: &str) -> String {
    let folders = workspace.folders.iter().filter(|folder| !folder.is_empty());
    folders.fold(text.to_owned(), |text, folder| text.replace(&format!("{folder}/"), ""))
}
