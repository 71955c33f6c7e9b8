//! Names from a program → text that a drawing can hold: only characters that XML has, and cut to a width.

use std::borrow::Cow;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A letter is at most about this wide, as a share of the size of the font; wide ones twice.
const WIDTH: f64 = 0.56;

/// The text with what XML 1.0 cannot hold replaced, and with nothing that turns the direction of what
/// follows: a name must not change how its neighbours read.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let is_held = |c: char| {
        !(c.is_control()
            || matches!(c, '\u{FFFE}' | '\u{FFFF}' | '\u{200E}' | '\u{200F}')
            || ('\u{202A}'..='\u{202E}').contains(&c)
            || ('\u{2066}'..='\u{2069}').contains(&c))
    };
    if text.chars().all(is_held) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_held(c) { c } else { '\u{FFFD}' }).collect())
}

/// The text, cut so that it is at most this wide at this size of the font.
pub(crate) fn cut(text: &str, width: f64, size: f64) -> String {
    let text = plain(text);
    let most = (width / (size * WIDTH)).max(1.0);
    if text.width() as f64 <= most {
        return text.into_owned();
    }
    let mut kept = String::new();
    let mut used = 1.0;
    for c in text.chars() {
        used += c.width().unwrap_or(0) as f64;
        if used > most {
            break;
        }
        kept.push(c);
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_cannot_hold_is_replaced() {
        assert_eq!(plain("a<b>&\"'"), "a<b>&\"'");
        assert_eq!(plain("a\u{0}b\u{1b}\n\u{202e}c"), "a\u{FFFD}b\u{FFFD}\u{FFFD}\u{FFFD}c");
    }

    #[test]
    fn long_names_are_cut_by_their_width() {
        assert_eq!(cut("abc", 100.0, 10.0), "abc");
        assert_eq!(cut("abcdefghij", 28.5, 10.0), "abcd…");
        assert_eq!(cut("図図図図図", 28.5, 10.0), "図図…");
    }
}
