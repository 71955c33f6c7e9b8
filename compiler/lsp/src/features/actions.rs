//! A range and its diagnostics → the fixes that can be applied there.
//!
//! Each fix that a diagnostic carries becomes one action; `source.fixAll` makes every change at once that
//! is not an example for the user to look at.

use super::diagnostics::shown;
use crate::Snapshot;
use ent_plan::diagnostic::{Diagnostic, FileId, Fix, Replacement};
use lsp_types::{
    CodeAction, CodeActionContext, CodeActionKind, CodeActionOrCommand, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextEdit, WorkspaceEdit,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// The fixes in a range of bytes. `planning` is what the current plan found wrong.
#[must_use]
pub fn actions(
    snapshot: &Snapshot<'_>,
    planning: &[Diagnostic],
    file: FileId,
    bytes: Range<usize>,
    context: &CodeActionContext,
) -> Vec<CodeActionOrCommand> {
    let mut found = Vec::new();
    let problems = || snapshot.analysis.diagnostics.iter().chain(planning);
    if wants(context, &CodeActionKind::QUICKFIX) {
        for problem in problems().filter(|p| touches(p, file, &bytes)) {
            for (i, fix) in problem.fixes.iter().enumerate() {
                let Some(edit) = workspace_edit(snapshot, &fix.edits) else { continue };
                found.push(CodeActionOrCommand::CodeAction(CodeAction {
                    title: fix.title.clone(),
                    kind: Some(CodeActionKind::QUICKFIX),
                    diagnostics: Some(vec![shown(snapshot.workspace, problem)]),
                    is_preferred: (i == 0 && !fix.is_example).then_some(true),
                    edit: Some(edit),
                    ..CodeAction::default()
                }));
            }
        }
    }
    if wants(context, &CodeActionKind::SOURCE_FIX_ALL)
        && let Some(edit) = fix_all(snapshot, problems(), file)
    {
        found.push(CodeActionOrCommand::CodeAction(CodeAction {
            title: "make every change that mends a mistake of this file".to_owned(),
            kind: Some(CodeActionKind::SOURCE_FIX_ALL),
            edit: Some(edit),
            ..CodeAction::default()
        }));
    }
    found
}

/// Whether the client asks for a kind of actions: for all, for it, or for one it is a part of.
fn wants(context: &CodeActionContext, kind: &CodeActionKind) -> bool {
    context.only.as_ref().is_none_or(|only| {
        only.iter().any(|wanted| {
            let rest = kind.as_str().strip_prefix(wanted.as_str());
            wanted.as_str().is_empty() || rest.is_some_and(|r| r.is_empty() || r.starts_with('.'))
        })
    })
}

/// Whether a diagnostic or one of its changes is in a range of a file.
fn touches(problem: &Diagnostic, file: FileId, bytes: &Range<usize>) -> bool {
    let changed = problem.fixes.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span);
    std::iter::once(problem.primary.span)
        .chain(changed)
        .any(|span| span.file == file && span.start as usize <= bytes.end && bytes.start <= span.end as usize)
}

/// Every first change of a file's diagnostics that is no example, as far as they do not overlap.
fn fix_all<'d>(
    snapshot: &Snapshot<'_>,
    problems: impl Iterator<Item = &'d Diagnostic>,
    file: FileId,
) -> Option<WorkspaceEdit> {
    let mut edits: Vec<Replacement> = Vec::new();
    let sure = |problem: &'d Diagnostic| -> Option<&'d Fix> {
        // Where several changes are as likely, none of them is sure.
        problem.fixes.first().filter(|fix| !fix.is_example && problem.fixes.len() == 1)
    };
    for fix in problems.filter_map(sure) {
        let is_free = |new: &Replacement| {
            new.span.file == file
                && edits.iter().all(|e| new.span.end < e.span.start || e.span.end < new.span.start)
        };
        if fix.edits.iter().all(is_free) {
            edits.extend(fix.edits.iter().cloned());
        }
    }
    if edits.is_empty() { None } else { workspace_edit(snapshot, &edits) }
}

/// Changes of texts as the client applies them. `None` when a file is not known.
fn workspace_edit(snapshot: &Snapshot<'_>, edits: &[Replacement]) -> Option<WorkspaceEdit> {
    let mut by_file: BTreeMap<FileId, Vec<TextEdit>> = BTreeMap::new();
    for edit in edits {
        let edit_of = |new_text| TextEdit { range: snapshot.range(edit.span), new_text };
        // New lines end as the file's do.
        let text = if snapshot.text(edit.span.file).contains("\r\n") {
            edit.text.replace('\n', "\r\n")
        } else {
            edit.text.clone()
        };
        by_file.entry(edit.span.file).or_default().push(edit_of(text));
    }
    let mut changes = Vec::new();
    for (file, edits) in by_file {
        let file = snapshot.workspace.file(file)?;
        changes.push((file.uri.clone(), file.version, edits));
    }
    Some(snapshot.workspace.edit(changes))
}

/// Changes of files in the shape the client understands.
pub(crate) fn document_changes(changes: Vec<(lsp_types::Uri, Option<i32>, Vec<TextEdit>)>) -> WorkspaceEdit {
    let edits = changes.into_iter().map(|(uri, version, edits)| TextDocumentEdit {
        text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
        edits: edits.into_iter().map(OneOf::Left).collect(),
    });
    WorkspaceEdit {
        document_changes: Some(DocumentChanges::Edits(edits.collect())),
        ..WorkspaceEdit::default()
    }
}
