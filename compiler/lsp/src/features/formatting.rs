//! A file → the edits that give it the canonical layout.
//!
//! What was not understood is left as it is, so a file with an error can be laid out around it. Line ends
//! stay what most of the file's are, and a byte-order mark stays where it is.

use crate::Snapshot;
use ent_lang::{Section, sections};
use ent_plan::diagnostic::FileId;
use lsp_types::TextEdit;
use std::ops::Range;

/// The edits for a whole file.
#[must_use]
pub fn whole(snapshot: &Snapshot<'_>, file: FileId) -> Vec<TextEdit> {
    let layout = Layout::new(snapshot, file);
    let sections = layout.sections(0..layout.text.len());
    let mut edits: Vec<TextEdit> = Vec::new();
    let mut from = layout.beginning;
    for (i, section) in sections.iter().enumerate() {
        let is_first = i == 0;
        let start = layout.start(section);
        // Between two sections stands an empty line; before the first nothing; around what is broken all stays.
        if layout.is_blank(from..start) && (!is_first || from == layout.beginning) {
            let gap = if is_first { String::new() } else { layout.end_of_line.repeat(2) };
            layout.replace(&mut edits, from..start, &gap);
        }
        layout.lay_out(&mut edits, section);
        from = section.bytes.end;
    }
    if !sections.is_empty() && layout.is_blank(from..layout.text.len()) {
        layout.replace(&mut edits, from..layout.text.len(), layout.end_of_line);
    }
    edits
}

/// The edits for the entries that a range of bytes touches.
#[must_use]
pub fn range(snapshot: &Snapshot<'_>, file: FileId, bytes: Range<usize>) -> Vec<TextEdit> {
    let layout = Layout::new(snapshot, file);
    let mut edits = Vec::new();
    for section in &layout.sections(bytes) {
        layout.lay_out(&mut edits, section);
    }
    edits
}

/// The edits after a character was typed before a byte: the block that a `}` closed is laid out, a new
/// line is indented as deep as the blocks and lists around it.
#[must_use]
pub fn on_type(snapshot: &Snapshot<'_>, file: FileId, offset: usize, typed: &str) -> Vec<TextEdit> {
    let layout = Layout::new(snapshot, file);
    let mut edits = Vec::new();
    if typed == "}" {
        let ends_here = |section: &Section| section.bytes.start < offset && section.bytes.end >= offset;
        for section in layout.sections(offset.saturating_sub(1)..offset).iter().filter(|s| ends_here(s)) {
            layout.lay_out(&mut edits, section);
        }
    } else if typed == "\n" {
        let before = layout.text.get(..offset).unwrap_or("");
        let line = before.rfind(['\n', '\r']).map_or(0, |i| i + 1);
        let rest = layout.text.get(line..).unwrap_or("");
        let end = line + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let closes = layout.text.get(end..).is_some_and(|t| t.starts_with(['}', ')', ']']));
        let depth = depth_at(layout.text, line).saturating_sub(usize::from(closes));
        layout.replace(&mut edits, line..end, &"  ".repeat(depth));
    }
    edits
}

/// How many brackets of any kind are open at a byte.
fn depth_at(text: &str, at: usize) -> usize {
    let mut depth = 0usize;
    for line in text.get(..at).unwrap_or("").split(['\n', '\r']) {
        // A line that begins an entry of a file starts anew, whatever was left open above it.
        if line.starts_with(|c: char| c.is_ascii_alphabetic()) && line.trim_end().ends_with('{') {
            depth = 0;
        }
        let mut is_text = false;
        let mut is_escaped = false;
        for (i, byte) in line.bytes().enumerate() {
            match byte {
                b'"' if !is_escaped => is_text = !is_text,
                b'/' if !is_text && line.get(i + 1..).is_some_and(|l| l.starts_with('/')) => break,
                b'{' | b'(' | b'[' if !is_text => depth += 1,
                b'}' | b')' | b']' if !is_text => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_escaped = is_text && byte == b'\\' && !is_escaped;
        }
    }
    depth.min(16)
}

/// A file to be laid out.
struct Layout<'a> {
    snapshot: &'a Snapshot<'a>,
    file: FileId,
    text: &'a str,
    end_of_line: &'static str,
    /// Behind the byte-order mark.
    beginning: usize,
}

impl<'a> Layout<'a> {
    fn new(snapshot: &'a Snapshot<'a>, file: FileId) -> Self {
        let text = snapshot.text(file);
        let n_windows = text.matches("\r\n").count();
        let n_all = text.bytes().filter(|b| *b == b'\n').count();
        let end_of_line = if n_windows > n_all / 2 { "\r\n" } else { "\n" };
        let beginning = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { snapshot, file, text, end_of_line, beginning }
    }

    fn sections(&self, bytes: Range<usize>) -> Vec<Section> {
        let file = self.snapshot.workspace.file(self.file);
        file.and_then(|f| f.parsed.as_ref().ok()).map_or_else(Vec::new, |parsed| sections(parsed, bytes))
    }

    fn is_blank(&self, bytes: Range<usize>) -> bool {
        self.text.get(bytes).is_some_and(|gap| gap.trim_matches([' ', '\t', '\n', '\r']).is_empty())
    }

    /// Where a section begins, with the spaces before it on its line.
    fn start(&self, section: &Section) -> usize {
        let start = section.bytes.start;
        let before = self.text.get(..start).unwrap_or("");
        let line = before.rfind(['\n', '\r']).map_or(self.beginning, |i| i + 1);
        if self.is_blank(line..start) { line } else { start }
    }

    /// Lays out a section with the fewest lines replaced at its ends, its indent included.
    fn lay_out(&self, edits: &mut Vec<TextEdit>, section: &Section) {
        let (mut start, end) = (self.start(section), section.bytes.end);
        let new = if self.end_of_line == "\n" {
            section.text.clone()
        } else {
            section.text.replace('\n', self.end_of_line)
        };
        let old = self.text.get(start..end).unwrap_or("");
        let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
        let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
        if old_lines.len() == new_lines.len() {
            for (old, new) in old_lines.iter().zip(new_lines) {
                self.replace(edits, start..start + old.len(), new);
                start += old.len();
            }
            return;
        }
        let head = old_lines.iter().zip(&new_lines).take_while(|(a, b)| a == b).count();
        let most = old_lines.len().min(new_lines.len()) - head;
        let tail =
            old_lines.iter().rev().zip(new_lines.iter().rev()).take_while(|(a, b)| a == b).count().min(most);
        let length = |lines: &[&str]| lines.iter().map(|l| l.len()).sum::<usize>();
        let from = start + length(&old_lines[..head]);
        let to = end - length(&old_lines[old_lines.len() - tail..]);
        self.replace(edits, from..to, &new_lines[head..new_lines.len() - tail].concat());
    }

    fn replace(&self, edits: &mut Vec<TextEdit>, bytes: Range<usize>, new: &str) {
        if self.text.get(bytes.clone()) == Some(new) {
            return;
        }
        let range = self.snapshot.workspace.range(self.file, bytes);
        edits.push(TextEdit { range, new_text: new.to_owned() });
    }
}
