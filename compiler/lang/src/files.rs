//! A main file's name → it and every spec it imports, parsed, each once.
//!
//! Files come through the caller's `open`; nothing is read here. Imports of boards, performance data and
//! data files are left to `declarations`: only specs are followed.

use crate::ast::{Ast, ItemKind};
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Sources, Span};
use ent_plan::text::LoadError;
use std::borrow::Borrow;
use std::collections::BTreeMap;

/// Every spec of a program.
pub(crate) struct Files<A> {
    /// The main file first, then in the order met.
    pub(crate) asts: Vec<A>,
    /// What was wrong with reading and parsing.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Some file could not be read: names may be unknown for that reason alone.
    pub(crate) is_incomplete: bool,
}

/// One import of a spec by another.
struct Import {
    span: Span,
    target: String,
}

/// A file that was opened: its tree, and what was wrong with parsing it.
pub(crate) type Opened<A> = (A, Vec<Diagnostic>);

/// Reads the main file and what it imports. `open` gives the file of a name. Why the main
/// file cannot be had is the second value: no import says where to report it.
pub(crate) fn read<A: Borrow<Ast>>(
    main: &str,
    open: &mut dyn FnMut(&str) -> Result<Opened<A>, LoadError>,
) -> (Files<A>, Option<LoadError>) {
    let mut files = Files { asts: Vec::new(), diagnostics: Vec::new(), is_incomplete: false };
    let mut no_main = None;
    // By name: the imports of each file that was read; `None` for one that could not be.
    let mut read: BTreeMap<String, Option<Vec<Import>>> = BTreeMap::new();
    let mut waiting: Vec<(String, Option<Span>)> = vec![(main.to_owned(), None)];
    let mut at = 0;
    while let Some((name, asked_by)) = waiting.get(at).cloned() {
        at += 1;
        if read.contains_key(&name) {
            continue;
        }
        match open(&name) {
            Ok((ast, mut diagnostics)) => {
                files.diagnostics.append(&mut diagnostics);
                let imports = imports(&name, ast.borrow());
                waiting.extend(imports.iter().map(|i| (i.target.clone(), Some(i.span))));
                read.insert(name, Some(imports));
                files.asts.push(ast);
            }
            Err(error) => {
                match asked_by {
                    Some(span) => files.diagnostics.push(unreadable(&name, span, &error, true)),
                    None => no_main = Some(error),
                }
                files.is_incomplete = true;
                read.insert(name, None);
            }
        }
    }
    files.diagnostics.extend(cycles(main, &read));
    (files, no_main)
}

fn imports(from: &str, ast: &Ast) -> Vec<Import> {
    let mut found = Vec::new();
    for item in &ast.items {
        if let ItemKind::Import { path, .. } = &item.kind
            && is_spec(&path.text)
        {
            found.push(Import { span: path.span, target: join(from, &path.text) });
        }
    }
    found
}

/// Whether an import names another spec.
pub(crate) fn is_spec(path: &str) -> bool {
    path.ends_with(".ent") && !path.starts_with("catalog:") && !path.starts_with("data:")
}

pub(crate) fn unreadable(name: &str, span: Span, error: &LoadError, is_imported: bool) -> Diagnostic {
    match error {
        LoadError::Missing => {
            let help = if is_imported {
                "write the path as seen from this file's folder"
            } else {
                "check the path, or the folder this runs in"
            };
            Diagnostic::error(Code::MissingFile, span, format!("no file `{name}`"))
                .label("this file does not exist")
                .help(help)
        }
        LoadError::Unreadable(why) => {
            Diagnostic::error(Code::UnreadableFile, span, format!("cannot read `{name}`"))
                .label(why.clone())
                .help("save the program as UTF-8 text")
        }
    }
}

/// Finds imports that lead back to a file on the way to them, each cycle once.
fn cycles(main: &str, read: &BTreeMap<String, Option<Vec<Import>>>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut is_done: BTreeMap<&str, bool> = BTreeMap::new();
    // The way from the main file: each file, and how many of its imports were followed.
    let mut way: Vec<(&str, usize)> = vec![(main, 0)];
    is_done.insert(main, false);
    while let Some((name, next)) = way.last_mut() {
        let imports = read.get(*name).and_then(Option::as_ref);
        let Some(import) = imports.and_then(|i| i.get(*next)) else {
            is_done.insert(*name, true);
            way.pop();
            continue;
        };
        *next += 1;
        match is_done.get(import.target.as_str()) {
            None => {
                is_done.insert(&import.target, false);
                way.push((&import.target, 0));
            }
            Some(true) => {}
            Some(false) => {
                let start = way.iter().position(|(file, _)| *file == import.target).unwrap_or(0);
                found.push(cycle(&way[start..], import, read));
            }
        }
    }
    found
}

fn cycle(way: &[(&str, usize)], last: &Import, read: &BTreeMap<String, Option<Vec<Import>>>) -> Diagnostic {
    let mut chain: Vec<&str> = way.iter().map(|(file, _)| *file).collect();
    chain.push(&last.target);
    let shown = if chain.len() > 12 {
        format!("{} → … → {}", chain[..6].join(" → "), chain[chain.len() - 5..].join(" → "))
    } else {
        chain.join(" → ")
    };
    let mut problem = Diagnostic::error(Code::ImportCycle, last.span, "imports form a cycle")
        .label(shown)
        .help("move what both need into a third file, and import that");
    for (file, followed) in way.iter().take(way.len().saturating_sub(1)).take(8) {
        let import = read.get(*file).and_then(Option::as_ref).and_then(|i| i.get(followed.saturating_sub(1)));
        if let Some(import) = import {
            problem = problem.and(import.span, format!("imports `{}`", import.target));
        }
    }
    problem
}

/// A path written in the file `from`, as seen from where `from` is seen from. `.` and `..` are worked
/// out in the text, so that one file has one name.
pub(crate) fn join(from: &str, path: &str) -> String {
    if path.starts_with("catalog:") || path.starts_with("data:") || path.starts_with('/') {
        return path.to_owned();
    }
    let folder = from.rfind('/').map_or("", |slash| from.get(..=slash).unwrap_or(""));
    let joined = format!("{folder}{path}");
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|p| !matches!(*p, ".." | "")) => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

/// The file part of a path without its ending, as a name: `perf/h100-80gb.json` → `h100_80gb`.
pub(crate) fn stem(path: &str) -> String {
    let file = path.rsplit(['/', ':']).next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    stem.replace('-', "_")
}

/// Where the whole of a file is.
pub(crate) fn whole(file: FileId, sources: &Sources) -> Span {
    let end = sources.get(file).map_or(0, |f| f.text.len());
    Span { file, start: 0, end: u32::try_from(end).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_to_the_importing_file() {
        assert_eq!(join("program.ent", "a.ent"), "a.ent");
        assert_eq!(join("x/program.ent", "a.ent"), "x/a.ent");
        assert_eq!(join("x/y/program.ent", "../a.ent"), "x/a.ent");
        assert_eq!(join("x/program.ent", "../../a.ent"), "../a.ent");
        assert_eq!(join("../program.ent", "../a.ent"), "../../a.ent");
        assert_eq!(join("/x/program.ent", "./a.ent"), "/x/a.ent");
        assert_eq!(join("x/program.ent", "/a.ent"), "/a.ent");
        assert_eq!(join("x/program.ent", "data:a/b.csv"), "data:a/b.csv");
    }

    #[test]
    fn stems_become_names() {
        assert_eq!(stem("perf/h100-80gb.json"), "h100_80gb");
        assert_eq!(stem("data:parvagpu/bert.csv"), "bert");
    }
}
