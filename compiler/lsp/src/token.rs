//! Text → tokens: the words of a file, broken or not.
//!
//! Splitting never fails and loses nothing: a text without its closing quote ends with its line, what no
//! rule knows is a sign of its own. The parser reads whole entries; this is for what is being typed.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, a keyword, a unit's word.
    Word,
    /// Digits, without a unit.
    Number,
    /// A text in quotes; the last quote may be missing.
    Text,
    /// A MIG profile, `1g.10gb`, or the beginning of one, `1g.`.
    Profile,
    /// `//` to the end of the line.
    Comment,
    /// The end of a line.
    Newline,
    /// Anything else: a bracket, an operator.
    Sign,
}

/// A token and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Token {
    pub(crate) fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    pub(crate) fn text<'t>(&self, text: &'t str) -> &'t str {
        text.get(self.start..self.end).unwrap_or("")
    }

    /// Whether it is this sign.
    pub(crate) fn is(&self, text: &str, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text(text) == sign
    }
}

/// The tokens of a text, in order; spaces are between them.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found = Vec::with_capacity(text.len() / 4);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        let (kind, length) = match byte {
            b' ' | b'\t' => {
                at += 1;
                continue;
            }
            b'\n' => (Kind::Newline, 1),
            b'\r' => (Kind::Newline, if rest.get(1) == Some(&b'\n') { 2 } else { 1 }),
            b'/' if rest.get(1) == Some(&b'/') => (Kind::Comment, to_line_end(rest)),
            b'"' => (Kind::Text, quoted(rest)),
            b'0'..=b'9' => number_or_profile(rest),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => (Kind::Word, word_or_percentile(rest)),
            _ if starts_with_micro(text, at) => (Kind::Word, 2 + word(rest.get(2..).unwrap_or_default())),
            _ => (Kind::Sign, sign(text, at)),
        };
        let end = at + length.max(1);
        found.push(Token { kind, start: at, end });
        at = end;
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word(rest: &[u8]) -> usize {
    rest.iter().take_while(|b| is_word(**b)).count()
}

/// `p99.9` is one word.
fn word_or_percentile(rest: &[u8]) -> usize {
    let end = word(rest);
    let is_percentile = end > 1
        && rest.first() == Some(&b'p')
        && rest.get(1..end).unwrap_or_default().iter().all(u8::is_ascii_digit);
    let decimals = rest.get(end + 1..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    if is_percentile && rest.get(end) == Some(&b'.') && decimals > 0 { end + 1 + decimals } else { end }
}

/// Micro sign and Greek mu: the only letters of units that are no letters of names.
fn starts_with_micro(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with(['\u{b5}', '\u{3bc}']))
}

fn to_line_end(rest: &[u8]) -> usize {
    rest.iter().take_while(|b| !matches!(b, b'\n' | b'\r')).count()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            None | Some(b'\n' | b'\r') => return at,
            Some(b'"') => return at + 1,
            Some(b'\\') if rest.get(at + 1).is_some_and(|b| !matches!(b, b'\n' | b'\r')) => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// `1_000.5e3`, or `1g.10gb+me`, or as much of a profile as is there.
fn number_or_profile(rest: &[u8]) -> (Kind, usize) {
    let digits = |from: usize| {
        let is_digit = |b: &&u8| b.is_ascii_digit() || **b == b'_';
        rest.get(from..).unwrap_or_default().iter().take_while(is_digit).count()
    };
    let at = |i: usize| rest.get(i).copied().unwrap_or(b' ');
    let mut end = digits(0);
    if at(end) == b'g' && (at(end + 1) == b'.' || !is_word(at(end + 1))) {
        end += 1;
        if at(end) == b'.' && at(end + 1) != b'.' {
            end += 1;
            end += word(rest.get(end..).unwrap_or_default());
            if matches!(at(end), b'+' | b'-') && at(end + 1).is_ascii_alphabetic() {
                end += 1;
                while at(end).is_ascii_alphabetic() || (at(end) == b'.' && at(end + 1).is_ascii_alphabetic())
                {
                    end += 1;
                }
            }
        }
        return (Kind::Profile, end);
    }
    if at(end) == b'.' && at(end + 1).is_ascii_digit() {
        end += 1 + digits(end + 1);
    }
    if matches!(at(end), b'e' | b'E') {
        let sign = usize::from(matches!(at(end + 1), b'+' | b'-'));
        if at(end + 1 + sign).is_ascii_digit() {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    (Kind::Number, end)
}

fn sign(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or("");
    if rest.starts_with("<=") || rest.starts_with("..") {
        return 2;
    }
    rest.chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|t| t.text(text)).collect()
    }

    #[test]
    fn a_text_is_split_into_its_words() {
        assert_eq!(shown("rate = 5.2e3 req/s // x"), ["rate", "=", "5.2e3", "req", "/", "s", "// x"]);
        assert_eq!(shown("replicas=2..6"), ["replicas", "=", "2", "..", "6"]);
        assert_eq!(shown("p99.9 <= 5ms"), ["p99.9", "<=", "5", "ms"]);
        assert_eq!(shown("3g.40gb+me.all x8"), ["3g.40gb+me.all", "x8"]);
        assert_eq!(shown("\"a\\\"b\" c\r\nd"), ["\"a\\\"b\"", "c", "\r\n", "d"]);
    }

    #[test]
    fn what_is_not_finished_is_split_too() {
        assert_eq!(shown("profile = 3g."), ["profile", "=", "3g."]);
        assert_eq!(shown("import \"cat\nx"), ["import", "\"cat", "\n", "x"]);
        assert_eq!(shown("a = 5µs §"), ["a", "=", "5", "µs", "§"]);
        assert_eq!(tokens("3g")[0].kind, Kind::Profile);
        assert_eq!(tokens("3gb")[0].kind, Kind::Number);
    }

    #[test]
    fn tokens_are_in_order_and_inside_the_text() {
        for text in ["", "\"", "\\", "\u{feff}service", "a\"\\", "😀=\"😀", "1g.10gb+", "1e", "1.", "//"]
        {
            let mut last = 0;
            for token in tokens(text) {
                assert!(token.start >= last && token.end > token.start && token.end <= text.len(), "{text}");
                assert!(text.is_char_boundary(token.start) && text.is_char_boundary(token.end), "{text}");
                last = token.end;
            }
        }
    }
}
