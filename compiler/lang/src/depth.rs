//! Text → how deeply its brackets nest.
//!
//! The parser recurses once for each open bracket, so this is asked before it runs. Texts in quotes and
//! comments are skipped exactly as the grammar skips them; a `}` closes its block whatever else was left
//! open in it, a `)` or `]` closes only its own kind. So the parser is never deeper than what is counted.

/// At most this many brackets of any kind may be open at once.
pub(crate) const MAX_DEPTH: usize = 64;

/// Where the first bracket stands that is open inside [`MAX_DEPTH`] others.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut open: Vec<u8> = Vec::new();
    let mut found = None;
    brackets(text, |at, bracket| {
        match bracket {
            b'}' => {
                if let Some(block) = open.iter().rposition(|b| *b == b'{') {
                    open.truncate(block);
                }
            }
            b')' => {
                open.pop_if(|b| *b == b'(');
            }
            b']' => {
                open.pop_if(|b| *b == b'[');
            }
            _ => open.push(bracket),
        }
        if open.len() > MAX_DEPTH {
            found = Some(at);
        }
        found.is_none()
    });
    found
}

/// How many `(` and `[` are open after a line, `open` of them having been open before it.
pub(crate) fn brackets_left_open(open: usize, line: &str) -> usize {
    let mut open = open;
    brackets(line, |_, bracket| {
        match bracket {
            b'(' | b'[' => open += 1,
            b')' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        true
    });
    open
}

/// Calls `visit` with each bracket outside texts and comments until it says no.
fn brackets(text: &str, mut visit: impl FnMut(usize, u8) -> bool) {
    let bytes = text.as_bytes();
    let is_line_end = |b: u8| b == b'\n' || b == b'\r';
    let line_end =
        |from: usize| bytes[from..].iter().position(|b| is_line_end(*b)).map_or(bytes.len(), |n| from + n);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = line_end(at);
                let mut i = at + 1;
                while i < end && bytes[i] != b'"' {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
                at = (i + 1).min(end);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = line_end(at);
                continue;
            }
            b'(' | b'[' | b'{' | b')' | b']' | b'}' if !visit(at, byte) => return,
            _ => {}
        }
        at += 1;
    }
}
