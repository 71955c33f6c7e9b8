//! A name → where it is declared and used, over all files of its program.

#![expect(clippy::wildcard_enum_match_arm, reason = "only imports have paths")]

use crate::Snapshot;
use crate::names::{Form, Names, Occurrence, Sort};
use crate::place::{Position, place};
use ent_lang::ast::ItemKind;
use ent_plan::diagnostic::{FileId, Span};
use lsp_types::{
    DocumentHighlight, DocumentHighlightKind, Location, PrepareRenameResponse, TextEdit, Uri, WorkspaceEdit,
};
use std::collections::{BTreeMap, HashMap};

/// Where the name at a byte is declared; of an import, the file.
#[must_use]
pub fn definition(snapshot: &Snapshot<'_>, file: FileId, offset: usize) -> Vec<Location> {
    if let Some(target) = imported(snapshot, file, offset) {
        return vec![target];
    }
    let names = Names::of(snapshot);
    let Some(at) = names.meant(file, offset, snapshot.text(file)) else { return Vec::new() };
    let declarations = names.same(at.sort, &at.name).filter(|o| o.is_declaration());
    declarations.filter_map(|o| snapshot.location(o.span)).collect()
}

/// Where the name at a byte is used, in these programs: all that read the file.
#[must_use]
pub fn references(
    snapshots: &[Snapshot<'_>],
    file: FileId,
    offset: usize,
    with_declaration: bool,
) -> Vec<Location> {
    let mut found = Vec::new();
    for snapshot in snapshots {
        let names = Names::of(snapshot);
        let Some(at) = names.at(file, offset) else { continue };
        for one in names.same(at.sort, &at.name).filter(|o| with_declaration || !o.is_declaration()) {
            if let Some(location) = snapshot.location(one.span)
                && !found.contains(&location)
            {
                found.push(location);
            }
        }
    }
    found
}

/// Where the name at a byte stands in this file.
#[must_use]
pub fn highlights(snapshot: &Snapshot<'_>, file: FileId, offset: usize) -> Vec<DocumentHighlight> {
    let names = Names::of(snapshot);
    let Some(at) = names.at(file, offset) else { return Vec::new() };
    let here = names.same(at.sort, &at.name).filter(|o| o.span.file == file);
    here.map(|o| DocumentHighlight {
        range: snapshot.range(o.span),
        kind: Some(if o.is_declaration() {
            DocumentHighlightKind::WRITE
        } else {
            DocumentHighlightKind::READ
        }),
    })
    .collect()
}

/// What would be renamed at a byte.
///
/// # Errors
/// Why nothing there can be renamed.
pub fn prepare_rename(
    snapshot: &Snapshot<'_>,
    file: FileId,
    offset: usize,
) -> Result<PrepareRenameResponse, String> {
    let names = Names::of(snapshot);
    let at = renamable(&names, file, offset)?;
    let mut span = at.span;
    if at.form == Form::Quoted {
        (span.start, span.end) = (span.start + 1, span.end.saturating_sub(1));
    }
    Ok(PrepareRenameResponse::RangeWithPlaceholder {
        range: snapshot.range(span),
        placeholder: at.name.to_string(),
    })
}

/// Renames the name at a byte everywhere in these programs: all that read the file.
///
/// # Errors
/// Why it cannot be renamed so.
pub fn rename(
    snapshots: &[Snapshot<'_>],
    file: FileId,
    offset: usize,
    new_name: &str,
) -> Result<WorkspaceEdit, String> {
    let mut edits: BTreeMap<Span, String> = BTreeMap::new();
    let Some(first) = snapshots.first() else { return Err("the file is part of no program".to_owned()) };
    let own = Names::of(first);
    let (sort, name) = {
        let at = renamable(&own, file, offset)?;
        (at.sort, at.name.to_string())
    };
    let is_quotable = sort != Sort::Value && sort != Sort::Performance;
    check_name(new_name, sort, is_quotable)?;
    for snapshot in snapshots {
        let names = Names::of(snapshot);
        let is_meant = names.at(file, offset).is_some_and(|o| o.sort == sort && o.name == name);
        if !is_meant || new_name == name {
            continue;
        }
        check_free(snapshot, &names, sort, new_name)?;
        check_whole(snapshot, &name)?;
        for one in names.same(sort, &name) {
            edits.insert(one.span, written(snapshot, one, new_name));
        }
    }
    #[expect(clippy::mutable_key_type, reason = "the protocol's own type; addresses are not changed")]
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for (span, new_text) in edits {
        let Some(Location { uri, range }) = first.location(span) else { continue };
        changes.entry(uri).or_default().push(TextEdit { range, new_text });
    }
    Ok(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() })
}

/// Whether a text can be written as a name without quotes.
pub(crate) fn is_word(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_letter) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// The name at a place, if it has a declaration that can be changed.
fn renamable<'n, 'a>(
    names: &'n Names<'a>,
    file: FileId,
    offset: usize,
) -> Result<&'n Occurrence<'a>, String> {
    let at = names.at(file, offset).ok_or("nothing here has a name of its own")?;
    if at.form == Form::Implied {
        return Err(
            "this path is an import; rename where its name is used, and `as` is added here".to_owned()
        );
    }
    let is_declared = names.same(at.sort, &at.name).any(Occurrence::is_declaration);
    if is_declared { Ok(at) } else { Err(format!("no {} `{}` is declared", at.sort.words(), at.name)) }
}

fn check_name(name: &str, sort: Sort, is_quotable: bool) -> Result<(), String> {
    if name.is_empty() {
        return Err("a name has at least one letter".to_owned());
    }
    if is_quotable {
        return match name.chars().find(|c| c.is_control()) {
            Some(_) => Err("a name has no line end or other control sign".to_owned()),
            None => Ok(()),
        };
    }
    if !is_word(name) {
        let rule = "letters, digits and `_`, not beginning with a digit";
        return Err(format!("`{name}` cannot be the name of {}: it needs {rule}", a(sort)));
    }
    match name {
        "let" | "param" | "import" | "true" | "false" => Err(format!("`{name}` is a word of the language")),
        _ => Ok(()),
    }
}

fn a(sort: Sort) -> &'static str {
    match sort {
        Sort::Value => "a value",
        Sort::Model => "a model",
        Sort::Service => "a service",
        Sort::Node => "a node",
        Sort::Board => "a board",
        Sort::Performance => "performance data",
    }
}

/// Refuses a name that something of the sort has, or that a value would take over from a name.
fn check_free(snapshot: &Snapshot<'_>, names: &Names<'_>, sort: Sort, new_name: &str) -> Result<(), String> {
    let clash = names.declared().iter().find(|o| o.name == new_name && o.sort == sort);
    if let Some(clash) = clash {
        let (line, _) = snapshot.sources().position(clash.span);
        let file = snapshot.name(clash.span.file);
        let file = file.rsplit('/').next().unwrap_or(file);
        return Err(format!("there is {} `{new_name}` already, in line {line} of {file}", a(sort)));
    }
    // A value comes before a board or data of the same name wherever either may stand.
    let takes_over = |o: &&Occurrence<'_>| {
        o.name == new_name
            && (sort == Sort::Value) != (o.sort == Sort::Value)
            && matches!(
                (sort, o.sort),
                (Sort::Value, Sort::Board | Sort::Performance)
                    | (Sort::Board | Sort::Performance, Sort::Value)
            )
    };
    match names.declared().iter().find(takes_over) {
        Some(other) => Err(format!("`{new_name}` is {} already, and could mean either", a(other.sort))),
        None => Ok(()),
    }
}

/// Refuses where a broken line mentions the name: it would be left behind.
fn check_whole(snapshot: &Snapshot<'_>, name: &str) -> Result<(), String> {
    for file in snapshot.files() {
        let Some(ast) = snapshot.ast(*file) else { continue };
        let mut waiting: Vec<&ent_lang::ast::Item> = ast.items.iter().collect();
        while let Some(item) = waiting.pop() {
            if let ItemKind::Block(block) = &item.kind {
                waiting.extend(&block.items);
            }
            if !matches!(item.kind, ItemKind::Broken { .. }) {
                continue;
            }
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if snapshot.snippet(item.span).split(|c| !is_letter(c)).any(|word| word == name) {
                let (line, _) = snapshot.sources().position(item.span);
                let path = snapshot.name(*file);
                let short = path.rsplit('/').next().unwrap_or(path);
                return Err(format!(
                    "line {line} of {short} mentions `{name}` and is not finished; mend it first"
                ));
            }
        }
    }
    Ok(())
}

/// How a name is written in the place of another.
fn written(snapshot: &Snapshot<'_>, at: &Occurrence<'_>, new_name: &str) -> String {
    let quoted = || format!("\"{}\"", new_name.replace('\\', "\\\\").replace('"', "\\\""));
    match at.form {
        Form::Implied => format!("{} as {new_name}", snapshot.snippet(at.span)),
        Form::Quoted => quoted(),
        Form::Word if is_word(new_name) => new_name.to_owned(),
        Form::Word => quoted(),
    }
}

/// The file that the import at a byte names.
fn imported(snapshot: &Snapshot<'_>, file: FileId, offset: usize) -> Option<Location> {
    if place(snapshot.text(file), offset).position != Position::ImportPath {
        return None;
    }
    let ast = snapshot.ast(file)?;
    let path = ast.items.iter().find_map(|item| match &item.kind {
        ItemKind::Import { path, .. }
            if (path.span.start as usize..=path.span.end as usize).contains(&offset) =>
        {
            Some(path.text.as_str())
        }
        _ => None,
    })?;
    let name = crate::features::links::target(snapshot, file, path)?;
    Some(Location { uri: crate::uri_of(&name)?, range: lsp_types::Range::default() })
}

#[cfg(test)]
mod tests;
