//! What the parser needed and what it found → a diagnostic in the user's words.

use crate::fixes::{change, part};
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Fix, Span};

/// The words for the end of an entry.
pub(crate) const END: &str = "the end of the line";

/// The words for what may stand anywhere, and is never worth naming.
pub(crate) const SPACE: &str = "a space";

/// What may continue a value: not named where something else is needed.
const CONTINUATIONS: [&str; 9] =
    [SPACE, "an operator", "`..`", "`x`", "`over`", "`step`", "`:`", "`.`", "a unit"];

/// A syntax error at a byte, from the words of what could have stood there.
pub(crate) fn expected(file: FileId, text: &str, at: usize, expected: &[&str]) -> Diagnostic {
    let at = back_to_code(text, at);
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
        let gap = Span {
            start: start.saturating_sub(u32::try_from(at - before.len()).unwrap_or(0)),
            end: start,
            ..span
        };
        problem = problem
            .help("start the next attribute on its own line, or put a `,` before it")
            .fix(Fix::replace("put a `,` before it", gap, ", "));
    } else if text.get(at..).is_some_and(|t| t.starts_with(['<', '>', '≤'])) {
        let sign: usize = text.get(at..).map_or(0, |t| {
            t.chars().take_while(|c| matches!(c, '<' | '>' | '=' | '≤' | '≥')).map(char::len_utf8).sum()
        });
        problem = problem
            .help("write `<=`; promises and limits are upper bounds")
            .fix(change(part(span, 0, sign), "<="));
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
        let parts =
            ["a number", "a text in quotes", "a name", "a percentile like `p99`", "a word of the language"];
        words.retain(|w| !parts.contains(w) && !matches!(*w, "an operator" | "`(`" | "`[`"));
    }
    if words.iter().any(|w| !CONTINUATIONS.contains(w) && !matches!(*w, "`(`" | "`[`")) {
        words.retain(|w| !CONTINUATIONS.contains(w));
    }
    if words.iter().any(|w| matches!(*w, "`,`" | "`)`" | "`]`")) && !words.contains(&"a value") {
        words.retain(|w| !matches!(*w, "`(`" | "`[`"));
    }
    match words.as_slice() {
        [] => "something else".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// Where a line begins with what cannot be, the end of the code before it: what is missing is missing there.
fn back_to_code(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        let before = text.get(..at).unwrap_or("");
        let line = before.rfind(['\n', '\r']).map_or(0, |i| i + 1);
        let code = code_end(before.get(line..).unwrap_or(""));
        // A line that begins here, below another: look at the one above.
        if code == 0 && line > 0 && (at > line || text.get(at..).is_some_and(|t| !t.is_empty())) {
            at = line - 1;
            continue;
        }
        let is_moved = text.get(line + code..at).is_some_and(|gap| gap.contains("//"));
        let rest = text.get(at..).unwrap_or("");
        let is_at_end = rest.starts_with(['\n', '\r']);
        return if is_moved || is_at_end { line + code } else { at };
    }
}

/// How long a line is without its comment and the spaces before it.
fn code_end(line: &str) -> usize {
    let mut is_text = false;
    let mut end = line.len();
    for (i, c) in line.char_indices() {
        match c {
            '"' => is_text = !is_text,
            '/' if !is_text && line.get(i + 1..).is_some_and(|l| l.starts_with('/')) => {
                end = i;
                break;
            }
            _ => {}
        }
    }
    line.get(..end).unwrap_or("").trim_end().len()
}

/// What stands at a byte, in words, and how long it is.
fn found_at(text: &str, at: usize) -> (String, usize) {
    let rest = text.get(at..).unwrap_or("");
    let Some(first) = rest.chars().next() else { return ("the end of the file".to_owned(), 0) };
    let code = rest.trim_start_matches([' ', '\t']);
    if code.starts_with(['\n', '\r']) || code.starts_with("//") {
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
                .help("start comments with `//`")
                .fix(change(at(0, 1), "//")),
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
                .help(format!("write `{} =`", words.get(..name).unwrap_or("")))
                .fix(change(at(offset, 1), if head[..offset].ends_with(' ') { "=" } else { " =" })),
        );
    }
    if name > 0 && sign.starts_with("==") {
        return Some(
            Diagnostic::error(Code::Syntax, at(offset, 2), "expected `=`, found `==`")
                .label("expected `=`")
                .help("write one `=`")
                .fix(change(at(offset, 2), "=")),
        );
    }
    if let Some(quote) = head.find('\'') {
        return Some(
            Diagnostic::error(Code::Syntax, at(quote, 1), "unknown kind of quote")
                .label("`'`")
                .help("put texts in double quotes: `\"box-0\"`")
                .fix(Fix::replace("change to double quotes", at(0, head.len()), head.replace('\'', "\""))),
        );
    }
    if head.matches('"').count() % 2 == 1 && !head.contains("\\\"") {
        let quote = head.rfind('"').unwrap_or(0);
        return Some(
            Diagnostic::error(Code::Syntax, at(quote, head.len() - quote), "text is not closed")
                .label("no closing `\"` on this line")
                .help("add the closing `\"`")
                .fix(Fix::insert("add the closing `\"`", at(head.len(), 0), "\"")),
        );
    }
    None
}
