//! Diagnostic → text with the lines it is about. The one file that knows miette.

use super::line::{Line, Role, page};
use super::plan::Canvas;
use ent_plan::diagnostic::{Diagnostic, Label, Severity, SourceFile, Sources};
use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents, ThemeCharacters, ThemeStyles,
};

/// A line longer than this is not shown: a diagnostic is read, not scrolled.
const LONGEST_LINE: usize = 400;

/// More than this nobody reads, and each one costs a walk through its file.
const MOST_DRAWN: usize = 100;

/// Draws diagnostics one below the other; of very many the first ones.
pub(crate) fn diagnostics(sources: &Sources, diagnostics: &[Diagnostic], canvas: &Canvas) -> String {
    let mut text: String = diagnostics
        .iter()
        .take(MOST_DRAWN)
        .map(|diagnostic| draw(sources, diagnostic, canvas) + "\n")
        .collect();
    if let Some(more) = diagnostics.len().checked_sub(MOST_DRAWN).filter(|more| *more > 0) {
        text.push_str(&format!("and {more} more; `entc check --concise` lists all\n"));
    }
    text
}

/// `file:line:column: code: message`, one line each, for editors and `grep`.
pub(crate) fn concise(sources: &Sources, diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(|d| format!("{}: {}: {}\n", location(sources, &d.primary), d.code.word(), d.message))
        .collect()
}

/// `file:line:column`.
pub(crate) fn location(sources: &Sources, label: &Label) -> String {
    let (line, column) = sources.position(label.span);
    let name = sources.get(label.span.file).map_or("?", |file| file.name.as_str());
    format!("{name}:{line}:{column}")
}

fn draw(sources: &Sources, diagnostic: &Diagnostic, canvas: &Canvas) -> String {
    let word = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let mut characters =
        if canvas.symbols.is_unicode { ThemeCharacters::unicode() } else { ThemeCharacters::ascii() };
    // miette's icon becomes the head of the message: `error[unit-mismatch]: expected a rate, found a time`.
    let head = format!("{word}[{}]:", diagnostic.code.word());
    characters.error.clone_from(&head);
    characters.warning = head;
    let styles = if canvas.color { ThemeStyles::ansi() } else { ThemeStyles::none() };
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(canvas.width)
        .with_links(false)
        .with_context_lines(1);
    let shown = Shown::new(sources, diagnostic);
    let mut text = String::new();
    if handler.render_report(&mut text, &shown).is_err() {
        text = concise(sources, std::slice::from_ref(diagnostic));
    }
    // The head starts the line; miette would indent it.
    let text = text.trim_start_matches(['\n', ' ']);
    let mut text: String = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .map(|line| line.to_owned() + "\n")
        .collect();
    let mut lines = Vec::new();
    for place in &shown.elsewhere {
        lines.extend(Line::plain(format!("  at {place}")).wrapped(canvas.width, 5));
    }
    for (index, help) in diagnostic.help.iter().flat_map(|help| help.lines()).enumerate() {
        let head = if index == 0 { "  help: " } else { "        " };
        lines.extend(Line::of(Role::Note, head).and(Role::Plain, help).wrapped(canvas.width, 8));
    }
    text.push_str(&page(&lines, canvas.color));
    text
}

/// A diagnostic in miette's words.
#[derive(Debug)]
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: Option<Named<'a>>,
    labels: Vec<LabeledSpan>,
    /// What cannot be drawn is still said: another file, a file without text, endless lines.
    elsewhere: Vec<String>,
}

impl<'a> Shown<'a> {
    fn new(sources: &'a Sources, diagnostic: &'a Diagnostic) -> Self {
        let file = sources.get(diagnostic.primary.span.file);
        let all = || std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary);
        let is_here = |label: &Label| label.span.file == diagnostic.primary.span.file;
        let drawable = file
            .filter(|file| !file.text.is_empty() && all().filter(|l| is_here(l)).all(|l| is_short(file, l)));
        let mut labels = Vec::new();
        let mut elsewhere = Vec::new();
        for label in all() {
            match drawable {
                Some(file) if is_here(label) => {
                    let (start, end) = bounds(file, label);
                    let text = Some(label.text.clone()).filter(|text| !text.is_empty());
                    labels.push(LabeledSpan::new(text, start, end - start));
                }
                _ => {
                    let place = match sources.get(label.span.file) {
                        Some(file) if file.text.is_empty() => file.name.clone(),
                        _ => location(sources, label),
                    };
                    let says =
                        if label.text.is_empty() { String::new() } else { format!(": {}", label.text) };
                    elsewhere.push(format!("{place}{says}"));
                }
            }
        }
        Self { diagnostic, source: drawable.map(Named), labels, elsewhere }
    }
}

/// Whether the lines around a label are short enough to show.
fn is_short(file: &SourceFile, label: &Label) -> bool {
    let (start, end) = bounds(file, label);
    let from = file.text.get(..start).unwrap_or("").rmatch_indices('\n').nth(1).map_or(0, |(at, _)| at);
    let to = file
        .text
        .get(end..)
        .unwrap_or("")
        .match_indices('\n')
        .nth(1)
        .map_or(file.text.len(), |(at, _)| end + at);
    let around = file.text.get(from..to).unwrap_or("");
    around.lines().all(|line| line.len() <= LONGEST_LINE) && around.len() <= 64 * LONGEST_LINE
}

/// The label's bytes, moved inside the text and onto whole characters.
fn bounds(file: &SourceFile, label: &Label) -> (usize, usize) {
    let inside = |at: u32| {
        let mut at = (at as usize).min(file.text.len());
        while !file.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = inside(label.span.start);
    (start, inside(label.span.end).max(start))
}

/// A file that tells its name. (miette's own `NamedSource` wants a copy of the text.)
#[derive(Debug)]
struct Named<'a>(&'a SourceFile);

impl SourceCode for Named<'_> {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.0.text.as_str().read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.0.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line(),
            inner.column(),
            inner.line_count(),
        )))
    }
}

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.diagnostic.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.diagnostic.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.source.as_ref().map(|source| source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

#[cfg(test)]
mod tests;
