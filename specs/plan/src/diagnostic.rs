//! Diagnostics: what is wrong with what the user gave, where, and what to do about it.
//!
//! Plain data: nothing here knows how a diagnostic is drawn. Messages are lower case, one line, no
//! full stop, the same words every time; labels hold the particulars; help begins with a verb.

use serde::{Deserialize, Serialize};

mod code;
pub use code::Code;

/// Which file of a [`Sources`] a span is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId(pub u32);

/// A half-open byte range `[start, end)` in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that covers both. Both must be in one file.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        Self { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A value and where it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Located<T> {
    /// Puts a value at a place.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// The texts that spans point into, in the order they were read.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// One text: a spec, an imported spec, or a CSV file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Its name as shown to the user: the path they would type, or `catalog:…`.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

impl Sources {
    /// Adds a file and returns its id.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(SourceFile { name: name.into(), text: text.into() });
        id
    }

    /// The file of an id.
    #[must_use]
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// The text of a file, to be edited in place: an editor's. Spans made before may then lie elsewhere.
    pub fn text_mut(&mut self, id: FileId) -> Option<&mut String> {
        self.files.get_mut(id.0 as usize).map(|f| &mut f.text)
    }

    /// The file with this name, if it was read.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<FileId> {
        let index = self.files.iter().position(|f| f.name == name)?;
        Some(FileId(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    /// The text under a span; empty if the span is not inside its file.
    #[must_use]
    pub fn snippet(&self, span: Span) -> &str {
        self.get(span.file).and_then(|f| f.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// One-based line and column (in characters) of a span's start.
    #[must_use]
    pub fn position(&self, span: Span) -> (usize, usize) {
        let Some(file) = self.get(span.file) else { return (1, 1) };
        let mut end = (span.start as usize).min(file.text.len());
        while !file.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = file.text.get(..end).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }

    /// All files, with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(u32::try_from(i).unwrap_or(u32::MAX)), f))
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing can be planned until it is mended.
    Error,
    /// The plan goes ahead; the user should know.
    Warning,
}

/// A place and what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is wrong here; may be empty.
    pub text: String,
}

/// A change of the text that mends something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What it does, as an order: ``change to `latency` ``.
    pub title: String,
    /// What is replaced by what. None overlap.
    pub edits: Vec<Replacement>,
    /// It puts in a value that only the user can know, for them to look at.
    pub is_example: bool,
}

/// A part of a text and what is to stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The part; empty where something is to be inserted.
    pub span: Span,
    /// The new text.
    pub text: String,
}

impl Fix {
    /// Replaces one part of a text.
    pub fn replace(title: impl Into<String>, span: Span, text: impl Into<String>) -> Self {
        let edits = vec![Replacement { span, text: text.into() }];
        Self { title: title.into(), edits, is_example: false }
    }

    /// Inserts a text before a place.
    pub fn insert(title: impl Into<String>, at: Span, text: impl Into<String>) -> Self {
        Self::replace(title, Span { end: at.start, ..at }, text)
    }

    /// Says that a value in it is only an example.
    #[must_use]
    pub fn example(mut self) -> Self {
        self.is_example = true;
        self
    }
}

/// One thing that is wrong with what the user gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which kind; has a page in `specs/diagnostics`.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Terse; stands alone.
    pub message: String,
    /// The place, and what is wrong there.
    pub primary: Label,
    /// The other ends of the story.
    pub secondary: Vec<Label>,
    /// What to do. Begins with a verb.
    pub help: Option<String>,
    /// Changes an editor can make, the likeliest first; each alone mends it.
    pub fixes: Vec<Fix>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            primary: Label { span, text: String::new() },
            secondary: Vec::new(),
            help: None,
            fixes: Vec::new(),
        }
    }

    /// A warning at a place.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Says what is wrong at the primary place.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Adds a further place.
    #[must_use]
    pub fn and(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds a change that an editor can make.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fixes.push(fix);
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// A value, as far as it could be made, and what was wrong on the way.
#[derive(Clone, Debug)]
pub struct Outcome<T> {
    /// The value. When there are errors it is only fit for further checking.
    pub value: T,
    /// What was wrong, in the order found.
    pub diagnostics: Vec<Diagnostic>,
}

impl<T> Outcome<T> {
    /// Whether any diagnostic is an error.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}
