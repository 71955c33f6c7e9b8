//! Every file the server knows: open ones as the client has them, others as they are on disk.
//!
//! A file keeps its id for the server's life, so that spans of different programs may be mixed. Its name
//! is its path (`/home/me/program.ent`), or its whole address where it has none (`untitled:Untitled-1`).

use crate::documents::{Encoding, LineIndex, apply};
use crate::features::actions::document_changes;
use crate::foreign::foreign;
use ent_lang::Parsed;
use ent_lang::ast::{Ast, Item, ItemKind};
use ent_plan::diagnostic::{FileId, Sources, Span};
use ent_plan::text::{LoadError, MAX_SPEC_BYTES, decode};
use lsp_types::{Location, Range, TextDocumentContentChangeEvent, TextEdit, Uri, WorkspaceEdit};
use std::collections::BTreeMap;
use std::str::FromStr;

/// A file that very many programs import is looked at in the first few of them.
const MAX_MAINS: usize = 8;

/// Folders are looked through this deep, and for so many specs.
const MAX_DEPTH: usize = 8;
const MAX_SCANNED: usize = 1_000;

/// All files.
#[derive(Debug, Default)]
pub struct Workspace {
    /// The texts. A file that could not be had has an empty one.
    pub sources: Sources,
    /// The units of the client's columns.
    pub encoding: Encoding,
    /// The folders that are open in the editor, without a slash at the end.
    pub folders: Vec<String>,
    /// The client takes changes with versions of files.
    pub has_document_changes: bool,
    files: Vec<File>,
    by_name: BTreeMap<String, FileId>,
}

/// One file.
#[derive(Debug)]
pub struct File {
    /// Its address, as the client writes it.
    pub uri: Uri,
    /// Its name in [`Sources`].
    pub name: String,
    /// The client's version when it is open there.
    pub version: Option<i32>,
    /// Its lines.
    pub lines: LineIndex,
    /// Its tree, or why there is none.
    pub parsed: Result<Parsed, LoadError>,
    /// What it is instead of a program: other tools' files have the same ending.
    pub foreign: Option<&'static str>,
    /// The names of the specs it imports directly.
    pub imports: Vec<String>,
    /// Counts every change of the text, whoever made it.
    pub revision: u64,
}

impl File {
    /// Whether the client has it open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.version.is_some()
    }
}

impl Workspace {
    /// The file of an id.
    #[must_use]
    pub fn file(&self, id: FileId) -> Option<&File> {
        self.files.get(id.0 as usize)
    }

    /// Every file, with its id.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &File)> {
        (0u32..).map(FileId).zip(&self.files)
    }

    /// The text of a file.
    #[must_use]
    pub fn text(&self, id: FileId) -> &str {
        self.sources.get(id).map_or("", |f| f.text.as_str())
    }

    /// The tree of a file, if it could be read.
    #[must_use]
    pub fn ast(&self, id: FileId) -> Option<&Ast> {
        self.file(id).and_then(|f| f.parsed.as_ref().ok()).map(Parsed::ast)
    }

    /// The file with this address, if it is known.
    #[must_use]
    pub fn find(&self, uri: &Uri) -> Option<FileId> {
        self.named(&name_of(uri))
    }

    /// The file with this name, if it is known.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<FileId> {
        self.by_name.get(name).copied()
    }

    /// The byte of a position in a file.
    #[must_use]
    pub fn offset(&self, id: FileId, position: lsp_types::Position) -> usize {
        self.file(id).map_or(0, |f| f.lines.offset(self.text(id), position, self.encoding))
    }

    /// The range of bytes of a range in a file.
    #[must_use]
    pub fn bytes(&self, id: FileId, range: Range) -> std::ops::Range<usize> {
        let (start, end) = (self.offset(id, range.start), self.offset(id, range.end));
        start.min(end)..end.max(start)
    }

    /// The range of bytes in a file.
    #[must_use]
    pub fn range(&self, id: FileId, bytes: std::ops::Range<usize>) -> Range {
        self.file(id).map_or_else(Range::default, |f| f.lines.range(self.text(id), bytes, self.encoding))
    }

    /// The range of a span in its file.
    #[must_use]
    pub fn range_of(&self, span: Span) -> Range {
        self.range(span.file, span.start as usize..span.end as usize)
    }

    /// The file and range of a span; `None` when the file is not known.
    #[must_use]
    pub fn location(&self, span: Span) -> Option<Location> {
        let uri = self.file(span.file)?.uri.clone();
        Some(Location { uri, range: self.range_of(span) })
    }

    /// Takes over a text that the client has opened.
    pub fn open(&mut self, uri: Uri, version: i32, text: String) -> FileId {
        let id = self.declare(name_of(&uri), uri.clone());
        self.replace(id, Ok(text));
        if let Some(file) = self.files.get_mut(id.0 as usize) {
            file.version = Some(version);
            file.uri = uri;
        }
        id
    }

    /// Changes of files, each with the version they are changes of, in the shape the client understands.
    #[must_use]
    pub fn edit(&self, changes: Vec<(Uri, Option<i32>, Vec<TextEdit>)>) -> WorkspaceEdit {
        if self.has_document_changes {
            return document_changes(changes);
        }
        #[expect(clippy::mutable_key_type, reason = "the protocol's own type; no key is ever changed")]
        let changes = changes.into_iter().map(|(uri, _, edits)| (uri, edits)).collect();
        WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
    }

    /// Applies the client's changes, in order.
    pub fn change(&mut self, id: FileId, version: i32, changes: Vec<TextDocumentContentChangeEvent>) {
        for change in changes {
            let encoding = self.encoding;
            let (Some(file), Some(text)) = (self.files.get_mut(id.0 as usize), self.sources.text_mut(id))
            else {
                return;
            };
            let edit = apply(text, &mut file.lines, change, encoding);
            file.foreign = foreign(text);
            match (&mut file.parsed, edit) {
                (Ok(parsed), Some(edit)) if file.foreign.is_none() && text.len() <= MAX_SPEC_BYTES => {
                    parsed.edit(text, edit);
                }
                (parsed, _) => *parsed = parse(id, text, file.foreign),
            }
            file.revision += 1;
            file.version = Some(version);
        }
        self.settle(id);
    }

    /// The client has closed a file: from now on it is what is on disk.
    pub fn close(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(id.0 as usize) {
            file.version = None;
        }
        self.reload(id);
    }

    /// Reads a file again from disk, unless it is open. Whether it has changed.
    pub fn reload(&mut self, id: FileId) -> bool {
        let Some(file) = self.file(id).filter(|f| !f.is_open()) else { return false };
        let read = read(&file.name);
        let is_same = match (&read, &file.parsed) {
            (Ok(text), Ok(_)) => text == self.text(id),
            (Err(now), Err(before)) => now == before,
            _ => false,
        };
        if !is_same {
            self.replace(id, read);
        }
        !is_same
    }

    /// The id of a file that a program imports; read from disk when it is met first.
    pub fn load(&mut self, name: &str) -> Option<FileId> {
        if let Some(id) = self.named(name) {
            return Some(id);
        }
        let uri = uri_of(name)?;
        let id = self.declare(name.to_owned(), uri);
        let read = read(name);
        self.replace(id, read);
        Some(id)
    }

    /// The names of the specs that a file imports directly.
    #[must_use]
    pub fn imports(&self, id: FileId) -> &[String] {
        self.file(id).map_or(&[], |f| &f.imports)
    }

    /// The main files of the programs that read a file: those nothing imports. Open ones come first.
    #[must_use]
    pub fn mains_of(&self, file: FileId) -> Vec<FileId> {
        let mut above = vec![file];
        let mut mains = Vec::new();
        let mut at = 0;
        while let Some(id) = above.get(at).copied() {
            at += 1;
            let name = self.file(id).map_or("", |f| f.name.as_str());
            let imports_it =
                |(other, f): &(FileId, &File)| *other != id && f.imports.iter().any(|i| i == name);
            let importers: Vec<FileId> = self.files().filter(imports_it).map(|(id, _)| id).collect();
            if importers.is_empty() {
                mains.push(id);
            }
            for importer in importers {
                if !above.contains(&importer) {
                    above.push(importer);
                }
            }
        }
        if mains.is_empty() {
            mains.push(file);
        }
        mains.sort_by_key(|id| (!self.file(*id).is_some_and(File::is_open), *id));
        mains.truncate(MAX_MAINS);
        mains
    }

    /// Meets every spec in the open folders, so that a file knows the programs that import it.
    pub fn scan(&mut self) {
        let mut found = Vec::new();
        for folder in self.folders.clone() {
            specs_below(std::path::Path::new(&folder), 0, &mut found);
        }
        for name in found {
            self.load(&name);
        }
    }

    /// Works out again what follows from a file's tree.
    fn settle(&mut self, id: FileId) {
        let Some(file) = self.files.get_mut(id.0 as usize) else { return };
        let items = file.parsed.as_ref().map_or(&[][..], |parsed| &parsed.ast().items);
        let import = |item: &Item| {
            let ItemKind::Import { path, .. } = &item.kind else { return None };
            ent_lang::imported_spec(&file.name, &path.text)
        };
        file.imports = items.iter().filter_map(import).collect();
    }

    /// Loads everything a program reads, directly or not; its files, the main file first.
    pub fn load_all(&mut self, main: FileId) -> Vec<FileId> {
        let mut found = vec![main];
        let mut at = 0;
        while let Some(id) = found.get(at).copied() {
            at += 1;
            for name in self.imports(id).to_vec() {
                if let Some(next) = self.load(&name)
                    && !found.contains(&next)
                {
                    found.push(next);
                }
            }
        }
        found
    }

    fn declare(&mut self, name: String, uri: Uri) -> FileId {
        if let Some(id) = self.named(&name) {
            return id;
        }
        let id = self.sources.add(name.clone(), "");
        self.by_name.insert(name.clone(), id);
        self.files.push(File {
            uri,
            name,
            version: None,
            lines: LineIndex::default(),
            parsed: Err(LoadError::Missing),
            foreign: None,
            imports: Vec::new(),
            revision: 0,
        });
        id
    }

    fn replace(&mut self, id: FileId, read: Result<String, LoadError>) {
        let (Some(file), Some(text)) = (self.files.get_mut(id.0 as usize), self.sources.text_mut(id)) else {
            return;
        };
        file.revision += 1;
        let parsed;
        (*text, parsed) = match read {
            Ok(new) => (new, Ok(())),
            Err(error) => (String::new(), Err(error)),
        };
        file.lines = LineIndex::new(text);
        file.foreign = foreign(text);
        file.parsed = parsed.and_then(|()| parse(id, text, file.foreign));
        self.settle(id);
    }
}

/// Parses a text that may be none of ours.
fn parse(id: FileId, text: &str, foreign: Option<&str>) -> Result<Parsed, LoadError> {
    if let Some(what) = foreign {
        return Err(LoadError::Unreadable(format!("it is {what}, not a program")));
    }
    if text.len() > MAX_SPEC_BYTES {
        let n = text.len();
        return Err(LoadError::Unreadable(format!("it has {n} bytes; at most {MAX_SPEC_BYTES} are read")));
    }
    Ok(Parsed::new(id, text))
}

/// Adds the specs below a folder. Folders that tools fill are left out.
fn specs_below(folder: &std::path::Path, depth: usize, found: &mut Vec<String>) {
    const TOOLS: [&str; 4] = ["node_modules", "target", "venv", "__pycache__"];
    if depth > MAX_DEPTH {
        return;
    }
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        if found.len() >= MAX_SCANNED {
            return;
        }
        let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
        let name = name.to_string_lossy();
        if name.starts_with('.') || TOOLS.contains(&&*name) {
            continue;
        }
        if kind.is_dir() {
            specs_below(&entry.path(), depth + 1, found);
        } else if kind.is_file() && name.ends_with(".ent") {
            // A path that is not UTF-8 has no address that a client could send.
            found.extend(entry.path().to_str().map(str::to_owned));
        }
    }
}

/// Reads a spec from disk.
fn read(name: &str) -> Result<String, LoadError> {
    let metadata = std::fs::metadata(name).map_err(|error| refusal(&error))?;
    if !metadata.is_file() {
        return Err(LoadError::Unreadable("it is not a file".to_owned()));
    }
    if metadata.len() > MAX_SPEC_BYTES as u64 {
        return Err(LoadError::Unreadable(format!("the file is larger than {MAX_SPEC_BYTES} bytes")));
    }
    decode(&std::fs::read(name).map_err(|error| refusal(&error))?, MAX_SPEC_BYTES)
}

fn refusal(error: &std::io::Error) -> LoadError {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => LoadError::Missing,
        kind => LoadError::Unreadable(kind.to_string()),
    }
}

/// The name of an address: the path of `file:` addresses, percent signs resolved, a drive's letter small.
#[must_use]
pub fn name_of(uri: &Uri) -> String {
    let text = uri.as_str();
    let Some(rest) = text.strip_prefix("file://") else { return text.to_owned() };
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let path = decoded(path);
    let bytes = path.as_bytes();
    match bytes {
        [b'/', letter, b':', ..] if letter.is_ascii_alphabetic() => {
            format!("{}{}", char::from(letter.to_ascii_lowercase()), path.get(2..).unwrap_or(""))
        }
        _ => path,
    }
}

/// The address of a path.
#[must_use]
pub fn uri_of(name: &str) -> Option<Uri> {
    if !name.starts_with('/') && name.as_bytes().get(1) != Some(&b':') {
        return Uri::from_str(name).ok();
    }
    let mut text = String::from("file://");
    if !name.starts_with('/') {
        text.push('/');
    }
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    Uri::from_str(&text).ok()
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let code = more.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or(&[]);
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths_are_one_to_one() {
        for (path, address) in [
            ("/home/me/a b.ent", "file:///home/me/a%20b.ent"),
            ("/\u{fc}/x.ent", "file:///%C3%BC/x.ent"),
            ("c:/x/p.ent", "file:///c%3A/x/p.ent"),
            ("untitled:Untitled-1", "untitled:Untitled-1"),
        ] {
            let uri = uri_of(path).unwrap();
            assert_eq!(uri.as_str(), address);
            assert_eq!(name_of(&uri), path);
        }
        assert_eq!(name_of(&Uri::from_str("file:///C:/x/p.ent").unwrap()), "c:/x/p.ent");
    }
}
