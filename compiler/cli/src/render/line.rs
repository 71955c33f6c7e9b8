//! Styled text that knows how many columns it takes.
//!
//! Widths are those of a terminal (`unicode-width`); styles are kept apart from the text until the end,
//! so that a line without colour is the same line.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What a piece of text is, which decides its colour. Never the only carrier of a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Ordinary text.
    Plain,
    /// A heading.
    Heading,
    /// Frames, units, side notes.
    Faint,
    /// A name the user gave.
    Name,
    /// Leads advice.
    Note,
    /// Kept, proven.
    Good,
    /// To be looked at.
    Warn,
    /// Broken.
    Bad,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Heading => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Name => Style::new().bold().fg_color(Some(AnsiColor::Cyan.into())),
            Self::Note => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            Self::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Self::Warn => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Self::Bad => Style::new().bold().fg_color(Some(AnsiColor::Red.into())),
        }
    }
}

/// One line of styled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    parts: Vec<(Role, String)>,
}

impl Line {
    /// An empty line.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A line of one role.
    pub(crate) fn of(role: Role, text: impl AsRef<str>) -> Self {
        Self::new().and(role, text)
    }

    /// Ordinary text.
    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::of(Role::Plain, text)
    }

    /// Appends text. Control characters, which could move the cursor, are shown as `?`.
    #[must_use]
    pub(crate) fn and(mut self, role: Role, text: impl AsRef<str>) -> Self {
        self.push(role, text);
        self
    }

    /// Appends text in place.
    pub(crate) fn push(&mut self, role: Role, text: impl AsRef<str>) {
        let text: String = text.as_ref().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some((last, before)) if *last == role => before.push_str(&text),
            _ => self.parts.push((role, text)),
        }
    }

    /// Appends another line.
    #[must_use]
    pub(crate) fn then(mut self, other: Self) -> Self {
        for (role, text) in other.parts {
            self.push(role, text);
        }
        self
    }

    /// Columns it takes.
    pub(crate) fn width(&self) -> usize {
        self.parts.iter().map(|(_, text)| text.width()).sum()
    }

    /// Fills with spaces on the right up to a width.
    #[must_use]
    pub(crate) fn padded(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.and(Role::Plain, " ".repeat(missing))
    }

    /// Fills with spaces on the left up to a width.
    #[must_use]
    pub(crate) fn right_aligned(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        Self::plain(" ".repeat(missing)).then(self)
    }

    /// Cuts to a width, marking the cut.
    #[must_use]
    pub(crate) fn cut(self, width: usize, ellipsis: char) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut room = width.saturating_sub(1);
        let mut line = Self::new();
        'parts: for (role, text) in &self.parts {
            for letter in text.chars() {
                let columns = letter.width().unwrap_or(0);
                if columns > room {
                    break 'parts;
                }
                room -= columns;
                line.push(*role, letter.encode_utf8(&mut [0; 4]));
            }
        }
        if width == 0 { line } else { line.and(Role::Faint, ellipsis.encode_utf8(&mut [0; 4])) }
    }

    /// Breaks at spaces into lines of at most `width` columns, the later ones indented. A word wider than
    /// that is broken where it must be.
    pub(crate) fn wrapped(self, width: usize, indent: usize) -> Vec<Self> {
        if self.width() <= width {
            return vec![self];
        }
        let indent = indent.min(width / 2);
        let mut lines = Vec::new();
        let mut line = Self::new();
        let mut is_fresh = true;
        for (role, word) in self.words() {
            let columns = word.width();
            if !is_fresh && word.trim().is_empty() && line.width() + columns > width {
                continue;
            }
            if line.width() + columns > width && !is_fresh {
                lines.push(std::mem::replace(&mut line, Self::plain(" ".repeat(indent))).trimmed());
                is_fresh = true;
            }
            if is_fresh && word.trim().is_empty() && !lines.is_empty() {
                continue;
            }
            for letter in word.chars() {
                if line.width() + letter.width().unwrap_or(0) > width {
                    lines.push(std::mem::replace(&mut line, Self::plain(" ".repeat(indent))).trimmed());
                }
                line.push(role, letter.encode_utf8(&mut [0; 4]));
            }
            is_fresh = false;
        }
        lines.push(line.trimmed());
        lines
    }

    /// As text, with or without colour.
    pub(crate) fn text(&self, color: bool) -> String {
        let mut out = String::new();
        for (role, text) in &self.parts {
            let style = role.style();
            if color && style != Style::new() {
                out.push_str(&format!("{style}{text}{style:#}"));
            } else {
                out.push_str(text);
            }
        }
        out
    }

    /// Runs of spaces and runs of other characters, in order.
    fn words(&self) -> Vec<(Role, String)> {
        let mut words: Vec<(Role, String)> = Vec::new();
        for (role, text) in &self.parts {
            let mut was_space = None;
            for letter in text.chars() {
                let is_space = letter == ' ';
                match words.last_mut() {
                    Some((_, word)) if was_space == Some(is_space) => word.push(letter),
                    _ => words.push((*role, letter.to_string())),
                }
                was_space = Some(is_space);
            }
        }
        words
    }

    fn trimmed(mut self) -> Self {
        while let Some((_, text)) = self.parts.last_mut() {
            text.truncate(text.trim_end_matches(' ').len());
            if !text.is_empty() {
                break;
            }
            self.parts.pop();
        }
        self
    }
}

/// Lines → text, trailing spaces removed.
pub(crate) fn page(lines: &[Line], color: bool) -> String {
    lines.iter().map(|line| line.clone().trimmed().text(color) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::{Line, Role};

    #[test]
    fn wide_characters_count_twice_and_are_cut_whole() {
        let line = Line::plain("模型模型");
        assert_eq!(line.width(), 8);
        assert_eq!(line.cut(6, '…').text(false), "模型…");
    }

    #[test]
    fn control_characters_cannot_reach_the_terminal() {
        assert_eq!(Line::plain("a\u{1b}[2J\nb").text(false), "a?[2J?b");
    }

    #[test]
    fn long_text_is_wrapped_at_spaces_and_long_words_are_broken() {
        let lines = Line::plain("one two three fourteen-letters").wrapped(9, 2);
        let lines: Vec<String> = lines.iter().map(|l| l.text(false)).collect();
        assert_eq!(lines, ["one two", "  three", "  fourtee", "  n-lette", "  rs"]);
    }

    #[test]
    fn colour_changes_no_letter() {
        let line = Line::of(Role::Bad, "over").and(Role::Plain, " it");
        let colored = line.text(true);
        assert!(colored.contains('\u{1b}') && !line.text(false).contains('\u{1b}'));
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), line.text(false));
    }
}
