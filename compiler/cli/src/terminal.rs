//! Where output goes and what it may look like there: colour, width, characters.
//!
//! Results go to standard output, everything else to standard error. A closed standard output is
//! not an error: the reader has seen enough.

use crate::render::symbols::{ASCII, Symbols, UNICODE};
use anstream::{AutoStream, ColorChoice};
use std::io::{IsTerminal, Write};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    /// On a terminal that wants it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How much is said on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Warnings; progress on a terminal.
    Normal,
    /// Progress as lines everywhere.
    Verbose,
}

/// What the two output streams can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminal {
    /// Whether results are coloured.
    pub(crate) color_out: bool,
    /// Whether messages are coloured.
    pub(crate) color_err: bool,
    /// Columns for results.
    pub(crate) width: usize,
    /// Columns for messages.
    pub(crate) width_err: usize,
    /// The characters to draw with.
    pub(crate) symbols: &'static Symbols,
    /// How much is said.
    pub(crate) verbosity: Verbosity,
}

/// The narrowest and the widest drawing.
pub(crate) const WIDTHS: std::ops::RangeInclusive<usize> = 40..=300;

/// Columns when nobody says how many there are.
const DEFAULT_WIDTH: usize = 100;

impl Terminal {
    /// Looks at the streams, the environment and what was asked for.
    pub(crate) fn new(color: Color, wants_ascii: bool, verbosity: Verbosity) -> Self {
        // anstream then looks at NO_COLOR, CLICOLOR_FORCE, CLICOLOR, TERM and whether it is a terminal.
        match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
        .write_global();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
        let out = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
        let err = terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0));
        Self {
            color_out: AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
            color_err: AutoStream::choice(&std::io::stderr()) != ColorChoice::Never,
            width: clamp(out.or(columns).unwrap_or(DEFAULT_WIDTH)),
            width_err: clamp(err.or(columns).unwrap_or(DEFAULT_WIDTH)),
            symbols: if wants_ascii || !is_utf8(locale.as_deref()) { &ASCII } else { &UNICODE },
            verbosity,
        }
    }

    /// Whether standard error is a terminal, so that a moving display makes sense.
    pub(crate) fn is_interactive(&self) -> bool {
        std::io::stderr().is_terminal()
    }

    /// Writes a result.
    ///
    /// # Errors
    /// When standard output is full or broken. Closed is not an error.
    pub(crate) fn result(&self, text: &str) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    /// Writes a message. A broken standard error is nobody's business.
    pub(crate) fn message(&self, text: &str) {
        error_text(text);
    }
}

/// Writes a line to standard error, whatever state it is in.
pub(crate) fn error_line(text: &str) {
    error_text(&format!("{text}\n"));
}

fn error_text(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ignored = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

fn clamp(width: usize) -> usize {
    width.clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// Whether a locale's name says UTF-8. Without any locale, today's terminals are UTF-8.
fn is_utf8(locale: Option<&str>) -> bool {
    locale.is_none_or(|name| {
        let name = name.to_ascii_lowercase();
        name.contains("utf-8") || name.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::{clamp, is_utf8};

    #[test]
    fn a_locale_without_utf8_gets_ascii() {
        assert!(is_utf8(None) && is_utf8(Some("C.UTF-8")) && is_utf8(Some("de_DE.utf8")));
        assert!(!is_utf8(Some("C")) && !is_utf8(Some("de_DE.ISO-8859-1")));
    }

    #[test]
    fn widths_are_kept_drawable() {
        assert_eq!((clamp(1), clamp(120), clamp(5000)), (40, 120, 300));
    }
}
