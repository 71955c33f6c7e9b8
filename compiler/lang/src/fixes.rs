//! A problem and what was meant → the change of the text that an editor can make.

use crate::ast::Block;
use crate::context::Context;
use ent_plan::diagnostic::{Diagnostic, Fix, Span};

impl Context<'_> {
    /// Says what was probably meant by a word, and how to change it where it stands in a span.
    pub(crate) fn did_you_mean(
        &self,
        problem: Diagnostic,
        span: Span,
        written: &str,
        meant: &str,
    ) -> Diagnostic {
        let problem = problem.help(format!("did you mean `{meant}`?"));
        self.change_word(problem, span, written, meant)
    }

    /// Offers to change a word where it stands in a span; not where it came there by another name.
    pub(crate) fn change_word(
        &self,
        problem: Diagnostic,
        span: Span,
        written: &str,
        meant: &str,
    ) -> Diagnostic {
        match self.word_in(span, written) {
            Some(at) => problem.fix(change(at, meant)),
            None => problem,
        }
    }

    /// As [`Self::change_word`], for one choice of several.
    pub(crate) fn or_change_word(
        &self,
        problem: Diagnostic,
        span: Span,
        written: &str,
        other: &str,
    ) -> Diagnostic {
        match self.word_in(span, written) {
            Some(at) => problem.fix(change(at, other).example()),
            None => problem,
        }
    }

    fn word_in(&self, span: Span, word: &str) -> Option<Span> {
        let snippet = self.sources.snippet(span);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let stands_alone = |at: &usize| {
            let (before, after) = (snippet.get(..*at)?, snippet.get(at + word.len()..)?);
            Some(!before.ends_with(is_word) && !after.starts_with(is_word))
        };
        let mut places = snippet.match_indices(word).map(|(at, _)| at);
        let at = places.find(|at| !word.is_empty() && stands_alone(at) == Some(true))?;
        Some(part(span, at, word.len()))
    }

    /// Offers to remove something with the line it alone stands on.
    pub(crate) fn remove(&self, problem: Diagnostic, span: Span, what: &str) -> Diagnostic {
        let text = self.sources.get(span.file).map_or("", |f| f.text.as_str());
        let (start, end) = (span.start as usize, span.end as usize);
        let before = text.get(..start).unwrap_or("");
        let after = text.get(end..).unwrap_or("");
        let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
        let comma = after.len() - after.trim_start_matches([' ', '\t', ',']).len();
        let is_at_line_end = after.get(comma..).is_some_and(|a| a.is_empty() || a.starts_with(['\n', '\r']));
        let is_at_line_start = before.get(..start - indent).is_some_and(|b| b.ends_with(['\n', '\r']));
        let (mut from, mut to) = (start, end + comma);
        if is_at_line_start && is_at_line_end {
            from -= indent;
            let rest = text.get(to..).unwrap_or("");
            to += if rest.starts_with("\r\n") { 2 } else { usize::from(!rest.is_empty()) };
        }
        let span = Span { start: number(from), end: number(to), ..span };
        problem.fix(Fix::replace(format!("remove {what}"), span, ""))
    }

    /// Offers to add an entry to a block, behind its last one.
    pub(crate) fn add_entry(&self, problem: Diagnostic, block: &Block, entry: &str) -> Diagnostic {
        let file = block.kind.span.file;
        let text = self.sources.get(file).map_or("", |f| f.text.as_str());
        let place = |at: usize| Span { file, start: number(at), end: number(at) };
        let title = format!("add `{}`", entry.split(['\n', '{']).next().unwrap_or(entry).trim_end());
        let (at, inserted) = match block.items.last() {
            Some(last) => {
                let end = last.trailing.as_ref().map_or(last.span.end, |c| c.span.end) as usize;
                let separator = if text.get(..end).is_some_and(|t| t.ends_with(',')) { " " } else { ", " };
                if block.is_inline {
                    (end, format!("{separator}{entry}"))
                } else {
                    (end, format!("\n{}{entry}", indent_at(text, last.span.start as usize)))
                }
            }
            None => {
                let head = crate::fields::head(block).end as usize;
                let Some(brace) = text.get(head..).and_then(|rest| rest.find('{')) else { return problem };
                let at = block.opening_comment.as_ref().map_or(head + brace + 1, |c| c.span.end as usize);
                if block.is_inline {
                    (at, format!(" {entry} "))
                } else {
                    let indent = indent_at(text, block.kind.span.start as usize);
                    (at, format!("\n{indent}  {entry}"))
                }
            }
        };
        problem.fix(Fix::insert(title, place(at), inserted).example())
    }

    /// Offers to import something, in front of everything else a file says.
    pub(crate) fn add_import(&self, problem: Diagnostic, span: Span, path: &str) -> Diagnostic {
        let text = self.sources.get(span.file).map_or("", |f| f.text.as_str());
        // Behind the last import; else in front of the first line that is no comment.
        let mut at = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let mut end = at;
        for line in text.get(at..).unwrap_or("").split_inclusive('\n') {
            let code = line.trim_start();
            end += line.len();
            if code.starts_with("import ") && line.ends_with('\n') {
                at = end;
            } else if !(code.is_empty() || code.starts_with("//") || code.starts_with("import ")) {
                break;
            }
        }
        let place = Span { file: span.file, start: number(at), end: number(at) };
        let line = format!("import \"{path}\"\n");
        problem.fix(Fix::insert(format!("add `import \"{path}\"`"), place, line))
    }
}

/// Replaces what stands in a span.
pub(crate) fn change(span: Span, meant: &str) -> Fix {
    Fix::replace(format!("change to `{meant}`"), span, meant)
}

/// A part of a span.
pub(crate) fn part(span: Span, at: usize, length: usize) -> Span {
    let start = span.start.saturating_add(number(at));
    Span { start, end: start.saturating_add(number(length)), ..span }
}

/// The spaces that the line of a byte begins with.
pub(crate) fn indent_at(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or("");
    let line = before.get(before.rfind(['\n', '\r']).map_or(0, |i| i + 1)..).unwrap_or("");
    line.get(..line.len() - line.trim_start_matches([' ', '\t']).len()).unwrap_or("")
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
