//! Diagnostics of programs → diagnostics of files, as the client shows them.

use crate::workspace::Workspace;
use ent_plan::diagnostic::{self, Severity};
use lsp_types::{DiagnosticRelatedInformation, DiagnosticSeverity, NumberOrString};

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
        Some(DiagnosticRelatedInformation { location, message: label.text.clone() })
    });
    let related: Vec<DiagnosticRelatedInformation> = related.collect();
    lsp_types::Diagnostic {
        range: workspace.range_of(problem.primary.span),
        severity: Some(match problem.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
        }),
        code: Some(NumberOrString::String(problem.code.word().to_owned())),
        source: Some("entc".to_owned()),
        message,
        related_information: (!related.is_empty()).then_some(related),
        ..lsp_types::Diagnostic::default()
    }
}
