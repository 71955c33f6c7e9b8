//! A word nobody knows → the word that was probably meant.

/// At most this many candidates are compared, so that a large file stays quick to check.
const MAX_CANDIDATES: usize = 2_000;

/// The candidate most like the word, if one is like it enough to be worth saying.
pub(crate) fn similar<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded: String =
        word.chars().take(80).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect();
    let length = folded.chars().count();
    // One slip in three letters, at least one, at most three.
    let most = (length / 3).clamp(1, 3);
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|c| c.len().abs_diff(folded.len()) <= 4 && !c.is_empty())
        .map(|c| (strsim::damerau_levenshtein(&folded, &c.to_ascii_lowercase().replace('-', "_")), c))
        .filter(|(distance, c)| *distance <= most && (*distance < c.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

/// `a`, `b` or `c`, in backticks; at most a handful.
pub(crate) fn choices<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.into_iter().collect();
    let shown: Vec<String> = words.iter().take(12).map(|w| format!("`{w}`")).collect();
    if words.len() > shown.len() {
        return format!("{} and {} more", shown.join(", "), words.len() - shown.len());
    }
    match shown.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
