//! The client's positions ↔ byte offsets, and the client's edits → edits of our text.
//!
//! A position is a line and a column in the units that were agreed on: UTF-8 bytes, UTF-16 words or
//! characters. Lines end with `\n`, `\r\n` or `\r`, as the protocol says. A position beyond the end of
//! its line means the end of that line, without its line end; inside a character, the character's start.

use ent_lang::Edit;
use lsp_types::{Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent};

/// The units of columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 words: what the protocol takes when nothing was agreed on.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// The encoding to speak, of those the client can: bytes if possible.
    #[must_use]
    pub fn choose(offered: Option<&[PositionEncodingKind]>) -> Self {
        let offered = offered.unwrap_or(&[]);
        if offered.contains(&PositionEncodingKind::UTF8) {
            return Self::Utf8;
        }
        let is_only_utf32 =
            offered.contains(&PositionEncodingKind::UTF32) && !offered.contains(&PositionEncodingKind::UTF16);
        if is_only_utf32 { Self::Utf32 } else { Self::Utf16 }
    }

    /// Its name in the protocol.
    #[must_use]
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    /// How many units a character takes.
    #[must_use]
    pub fn width(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    /// How many units a text takes.
    #[must_use]
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 | Self::Utf32 if text.is_ascii() => text.len(),
            Self::Utf16 | Self::Utf32 => text.chars().map(|c| self.width(c)).sum(),
        }
    }
}

/// Where each line of a text starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineIndex {
    /// First bytes of the lines; the first is 0.
    starts: Vec<usize>,
}

impl Default for LineIndex {
    fn default() -> Self {
        Self { starts: vec![0] }
    }
}

impl LineIndex {
    /// Finds the lines of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut starts = vec![0];
        line_starts(text, 0, text.len(), &mut starts);
        Self { starts }
    }

    /// How many lines there are: one more than line ends.
    #[must_use]
    pub fn n_lines(&self) -> usize {
        self.starts.len()
    }

    /// The line that a byte is on, from 0.
    #[must_use]
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The bytes of a line, without its line end. Empty at the end of the text for lines beyond it.
    #[must_use]
    pub fn line(&self, text: &str, line: usize) -> std::ops::Range<usize> {
        let Some(start) = self.starts.get(line).copied() else { return text.len()..text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let inside = text.get(start..end).unwrap_or("");
        let inside = inside.strip_suffix('\n').unwrap_or(inside);
        let inside = inside.strip_suffix('\r').unwrap_or(inside);
        start..start + inside.len()
    }

    /// The byte of a position.
    #[must_use]
    pub fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = self.line(text, usize::try_from(position.line).unwrap_or(usize::MAX));
        let inside = text.get(line.clone()).unwrap_or("");
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        if inside.is_ascii() {
            return line.start + wanted.min(inside.len());
        }
        let mut column = 0usize;
        for (at, c) in inside.char_indices() {
            column += encoding.width(c);
            if column > wanted {
                return line.start + at;
            }
        }
        line.end
    }

    /// The position of a byte.
    #[must_use]
    pub fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_of(offset);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let column = encoding.length(text.get(start..offset).unwrap_or(""));
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position { line: number(line), character: number(column) }
    }

    /// The range of two bytes.
    #[must_use]
    pub fn range(&self, text: &str, bytes: std::ops::Range<usize>, encoding: Encoding) -> Range {
        Range {
            start: self.position(text, bytes.start, encoding),
            end: self.position(text, bytes.end, encoding),
        }
    }

    /// Brings the index up to date: `text` is the new text, `edit` what was replaced.
    fn edit(&mut self, text: &str, edit: Edit) {
        // A line end may be half replaced, or completed by what is new: look at both neighbours again.
        let from = edit.start.saturating_sub(1);
        let kept = self.starts.partition_point(|start| *start <= from);
        let beyond = self.starts.partition_point(|start| *start <= edit.old_end + 1);
        let mut between = Vec::new();
        line_starts(text, from, (edit.new_end + 1).min(text.len()), &mut between);
        let moved: Vec<usize> =
            self.starts.iter().skip(beyond).map(|start| start - edit.old_end + edit.new_end).collect();
        self.starts.truncate(kept);
        let last = self.starts.last().copied().unwrap_or(0);
        let first_moved = moved.first().copied().unwrap_or(usize::MAX);
        self.starts.extend(between.into_iter().filter(|start| *start > last && *start < first_moved));
        self.starts.extend(moved);
    }
}

/// Adds the starts of the lines that follow line ends in `from..to`.
fn line_starts(text: &str, from: usize, to: usize, starts: &mut Vec<usize>) {
    let bytes = text.as_bytes();
    for (i, byte) in bytes.iter().enumerate().take(to).skip(from) {
        match byte {
            b'\n' => starts.push(i + 1),
            b'\r' if bytes.get(i + 1) != Some(&b'\n') => starts.push(i + 1),
            _ => {}
        }
    }
}

/// Applies one change of the client to a text and its lines. `None` is a replacement of everything.
pub fn apply(
    text: &mut String,
    lines: &mut LineIndex,
    change: TextDocumentContentChangeEvent,
    encoding: Encoding,
) -> Option<Edit> {
    let Some(range) = change.range else {
        *text = change.text;
        *lines = LineIndex::new(text);
        return None;
    };
    let start = lines.offset(text, range.start, encoding);
    let end = lines.offset(text, range.end, encoding);
    let (start, end) = (start.min(end), start.max(end));
    text.replace_range(start..end, &change.text);
    let edit = Edit { start, old_end: end, new_end: start + change.text.len() };
    lines.edit(text, edit);
    Some(edit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_what_was_agreed_on() {
        let text = "a\u{1f600}b\r\n\u{e9}\rz";
        let lines = LineIndex::new(text);
        assert_eq!(lines.n_lines(), 3);
        let at = |line, character, encoding| lines.offset(text, Position { line, character }, encoding);
        assert_eq!(at(0, 3, Encoding::Utf16), 5);
        assert_eq!(at(0, 2, Encoding::Utf16), 1, "inside a character");
        assert_eq!(at(0, 2, Encoding::Utf32), 5);
        assert_eq!(at(0, 5, Encoding::Utf8), 5);
        assert_eq!(at(0, 99, Encoding::Utf16), 6, "the end of the line");
        assert_eq!(at(1, 1, Encoding::Utf16), 10);
        assert_eq!(at(9, 0, Encoding::Utf16), text.len());
        for (offset, _) in text.char_indices() {
            let position = lines.position(text, offset, Encoding::Utf16);
            let back = lines.offset(text, position, Encoding::Utf16);
            assert!(back == offset || text[back..].starts_with("\r\n"), "{offset} {position:?} {back}");
        }
    }
}
