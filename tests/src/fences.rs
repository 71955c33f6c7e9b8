//! A document → its fenced blocks, and what the comments in them expect to be reported.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The words after the backticks.
    pub words: Vec<String>,
    /// The line of the document that its text begins on, from 1.
    pub line: usize,
    /// Its text; every line ends with a line feed.
    pub text: String,
}

impl Fence {
    /// Whether the fence begins with these words.
    #[must_use]
    pub fn is(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && self.words.iter().zip(words).all(|(own, word)| own == word)
    }
}

/// Every fenced block of a document, in order. One that is not closed runs to the end.
#[must_use]
pub fn fences(document: &str) -> Vec<Fence> {
    let mut found: Vec<Fence> = Vec::new();
    let mut is_open = false;
    for (index, line) in document.lines().enumerate() {
        match (is_open, line.strip_prefix("```")) {
            (true, Some(_)) => is_open = false,
            (false, Some(info)) => {
                let words = info.split_whitespace().map(str::to_owned).collect();
                found.push(Fence { words, line: index + 2, text: String::new() });
                is_open = true;
            }
            (true, None) => {
                if let Some(fence) = found.last_mut() {
                    fence.text.push_str(line);
                    fence.text.push('\n');
                }
            }
            (false, None) => {}
        }
    }
    found
}

/// Something that a document says is reported: `// error: [code]` at the end of a line of a program, or
/// `# error: [code]` below a row of a table. `"text"` may follow, and is what is underlined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expectation {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// `error` or `warning`.
    pub severity: String,
    /// The diagnostic's code.
    pub code: String,
    /// What is underlined, if the document says.
    pub underlined: Option<String>,
}

/// The expectations that a file's text states.
#[must_use]
pub fn expectations(file: &str, text: &str) -> Vec<Expectation> {
    let mut found = Vec::new();
    let mut row = 0;
    for (index, line) in text.lines().enumerate() {
        let is_below = line.starts_with("# ");
        if !is_below {
            row = index + 1;
        }
        for severity in ["error", "warning"] {
            let marks = [format!("// {severity}: ["), format!("# {severity}: [")];
            let Some(rest) = marks.iter().find_map(|mark| Some(line.split_once(mark.as_str())?.1)) else {
                continue;
            };
            let Some((code, rest)) = rest.split_once(']') else { continue };
            let underlined = rest.trim().strip_prefix('"').and_then(|r| r.strip_suffix('"'));
            found.push(Expectation {
                file: file.to_owned(),
                line: row,
                severity: severity.to_owned(),
                code: code.to_owned(),
                underlined: underlined.map(str::to_owned),
            });
        }
    }
    found
}
