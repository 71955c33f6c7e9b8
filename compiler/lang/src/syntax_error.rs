//! What the parser needed and what it found → a diagnostic in the user's words.

use ent_plan::diagnostic::{Code, Diagnostic, FileId, Span};

/// The words for the end of an entry.
pub(crate) const END: &str = "the end of the line";

/// A syntax error at a byte, from the words of what could have stood there.
pub(crate) fn expected(file: FileId, text: &str, at: usize, expected: &[&str]) -> Diagnostic {
    let (found, length) = found_at(text, at);
    let start = u32::try_from(at.min(text.len())).unwrap_or(u32::MAX);
    let span = Span { file, start, end: start.saturating_add(u32::try_from(length).unwrap_or(u32::MAX)) };
    let wanted = wanted(expected);
    let mut problem = Diagnostic::error(Code::Syntax, span, format!("expected {wanted}, found {found}"))
        .label(format!("expected {wanted}"));
    let before = text.get(..at).unwrap_or("").trim_end_matches([' ', '\t']);
    let is_after_number = before.ends_with(|c: char| c.is_ascii_digit());
    if wanted == END && is_after_number && text.get(at..).is_some_and(|t| t.starts_with('.')) {
        problem = problem.help("write numbers with one decimal point: `1391.97`");
    } else if wanted == END && text.get(at..).is_some_and(|t| t.starts_with(|c: char| c.is_alphanumeric())) {
        problem = problem.help("start the next attribute on its own line, or put a `,` before it");
    } else if wanted.contains("a value") && found == END {
        problem = problem.help("write the value on the same line");
    }
    problem
}

/// The alternatives as a phrase. What may continue a value is left out where the value may also end.
fn wanted(expected: &[&str]) -> String {
    if expected.contains(&END) {
        return END.to_owned();
    }
    let mut words: Vec<&str> = Vec::new();
    for word in expected {
        if !words.contains(word) {
            words.push(word);
        }
    }
    if words.contains(&"a value") {
        words.retain(|w| {
            !matches!(*w, "a number" | "a text in quotes" | "an operator" | "a name" | "`(`" | "`[`")
        });
        words.retain(|w| *w != "a percentile like `p99`");
    }
    if words.len() > 1 {
        words.retain(|w| *w != "a comment" && *w != "an operator");
    }
    match words.as_slice() {
        [] => "something else".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// What stands at a byte, in words, and how long it is.
fn found_at(text: &str, at: usize) -> (String, usize) {
    let rest = text.get(at..).unwrap_or("");
    let Some(first) = rest.chars().next() else { return ("the end of the file".to_owned(), 0) };
    if first == '\n' || first == '\r' || rest.starts_with("//") {
        return (END.to_owned(), 0);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let length = if is_word(first) {
        rest.find(|c: char| !is_word(c)).unwrap_or(rest.len())
    } else {
        first.len_utf8()
    };
    let shown: String = rest.get(..length).unwrap_or("").chars().take(40).collect();
    if first.is_control() {
        return (format!("the character U+{:04X}", u32::from(first)), length);
    }
    (format!("`{shown}`"), length)
}

/// Mistakes that come from other languages and deserve their own words.
pub(crate) fn foreign_habit(span: Span, head: &str) -> Option<Diagnostic> {
    let at = |offset: usize, length: usize| {
        let start = span.start.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX));
        Span { start, end: start.saturating_add(u32::try_from(length).unwrap_or(u32::MAX)), ..span }
    };
    if head.starts_with('#') {
        return Some(
            Diagnostic::error(Code::Syntax, at(0, 1), "unknown kind of comment")
                .label("`#`")
                .help("start comments with `//`"),
        );
    }
    if head.starts_with("/*") {
        return Some(
            Diagnostic::error(Code::Syntax, at(0, 2), "unknown kind of comment")
                .label("`/*`")
                .help("start each line of the comment with `//`"),
        );
    }
    let words = head.trim_start();
    let name = words.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(words.len());
    let after = words.get(name..).unwrap_or("");
    let sign = after.trim_start();
    let offset = head.len() - sign.len();
    if name > 0 && sign.starts_with(':') {
        return Some(
            Diagnostic::error(Code::Syntax, at(offset, 1), "expected `=`, found `:`")
                .label("expected `=`")
                .help(format!("write `{} =`", words.get(..name).unwrap_or(""))),
        );
    }
    if let Some(quote) = head.find('\'') {
        return Some(
            Diagnostic::error(Code::Syntax, at(quote, 1), "unknown kind of quote")
                .label("`'`")
                .help("put texts in double quotes: `\"box-0\"`"),
        );
    }
    if head.matches('"').count() % 2 == 1 && !head.contains("\\\"") {
        let quote = head.rfind('"').unwrap_or(0);
        return Some(
            Diagnostic::error(Code::Syntax, at(quote, head.len() - quote), "text is not closed")
                .label("no closing `\"` on this line")
                .help("add the closing `\"`"),
        );
    }
    None
}
