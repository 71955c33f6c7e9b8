//! The language reference → what a block or an attribute means, for hovers and completions.
//!
//! The text is `specs/language.md` itself, so that an editor and the manual say the same.

use std::sync::OnceLock;

const REFERENCE: &str = include_str!("../../../specs/language.md");

/// What the reference says of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What its value is.
    pub(crate) value: String,
    /// What holds when it is not given: `poisson`, `required`.
    pub(crate) default: Option<String>,
    /// A value as it is written.
    pub(crate) example: Option<String>,
}

struct Section {
    /// The words of its title: `model`, `hardware`.
    kind: String,
    rows: Vec<(Vec<String>, Entry)>,
    /// Its first line.
    summary: String,
    example: String,
}

fn sections() -> &'static [Section] {
    static SECTIONS: OnceLock<Vec<Section>> = OnceLock::new();
    SECTIONS.get_or_init(|| REFERENCE.split("\n## ").skip(1).map(section).collect())
}

fn section(text: &str) -> Section {
    let (title, body) = text.split_once('\n').unwrap_or((text, ""));
    let title = title.trim().trim_matches('`');
    let kind = title.split_whitespace().next().unwrap_or("").to_owned();
    let (mut rows, mut summary, mut example) = (Vec::new(), String::new(), String::new());
    let (mut is_code, mut is_first_code) = (false, true);
    let mut header: Vec<&str> = Vec::new();
    for line in body.lines() {
        if line.starts_with("```") {
            is_first_code &= !is_code;
            is_code = !is_code;
        } else if is_code {
            if is_first_code {
                example.push_str(line);
                example.push('\n');
            }
        } else if line.starts_with('|') {
            match header.as_slice() {
                [] => header = cells(line),
                titles => rows.extend(row(line, titles)),
            }
        } else {
            header.clear();
            if summary.is_empty() {
                line.trim().clone_into(&mut summary);
            }
        }
    }
    Section { kind, rows, summary, example }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// A row of a table, with the words in its first cell.
fn row(line: &str, titles: &[&str]) -> Option<(Vec<String>, Entry)> {
    let cells = cells(line);
    let names = quoted(cells.first()?);
    if names.is_empty() {
        return None;
    }
    let titled = |title: &str| {
        let column = titles.iter().position(|t| *t == title)?;
        cells.get(column).map(|c| (*c).to_owned()).filter(|c| !c.is_empty())
    };
    let entry = Entry {
        value: (*cells.get(1)?).to_owned(),
        default: titled("unless given"),
        example: titled("example"),
    };
    Some((names, entry))
}

/// The first words of what stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.filter_map(|part| part.split_whitespace().next().map(str::to_owned)).collect()
}

fn find(kind: &str) -> Option<&'static Section> {
    sections().iter().find(|s| s.kind == kind)
}

/// What an attribute or statement means, by the blocks that it is in.
pub(crate) fn attribute(path: &[&str], name: &str) -> Option<Entry> {
    let section = find(path.first()?)?;
    // The board's own facts have the same names as those of its profiles.
    let name = if path == ["board", "profile"] { "profile" } else { name };
    let row = section.rows.iter().find(|(names, _)| names.iter().any(|n| n == name));
    row.map(|(_, entry)| entry.clone())
}

/// What a kind of block is, in a sentence.
pub(crate) fn block(path: &[&str]) -> Option<String> {
    match path {
        ["hardware", "node"] => Some("A class of interchangeable boards.".to_owned()),
        [kind] => find(kind).map(|s| s.summary.clone()).filter(|s| !s.is_empty()),
        [kind, inner] => find(kind)?
            .rows
            .iter()
            .find(|(names, _)| names.iter().any(|n| n == inner))
            .map(|(_, entry)| format!("In a `{kind}`: {}.", entry.value)),
        _ => None,
    }
}

/// The reference's first example of a kind of block at the top of a file.
pub(crate) fn example(kind: &str) -> Option<&'static str> {
    find(kind).map(|s| s.example.trim_end()).filter(|e| !e.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::{attributes, inner_blocks};
    use ent_lang::vocabulary::BLOCKS;

    #[test]
    fn the_reference_says_what_every_attribute_means() {
        for kind in BLOCKS {
            let mut paths = vec![vec![*kind]];
            paths.extend(inner_blocks(&[kind]).into_iter().map(|inner| vec![*kind, inner]));
            for path in paths {
                assert!(block(&path).is_some(), "{path:?}");
                for attribute in attributes(&path) {
                    let entry = super::attribute(&path, attribute.name);
                    assert!(entry.is_some(), "{path:?} {}", attribute.name);
                }
            }
        }
    }

    #[test]
    fn what_is_required_here_is_required_there() {
        for path in [&["service"][..], &["hardware", "node"]] {
            for attribute in attributes(path) {
                let default = super::attribute(path, attribute.name).and_then(|e| e.default);
                assert_eq!(
                    default.as_deref() == Some("required"),
                    attribute.is_required,
                    "{}",
                    attribute.name
                );
            }
        }
    }

    #[test]
    fn values_and_defaults_are_those_of_the_table() {
        let arrivals = attribute(&["service"], "arrivals").unwrap();
        assert_eq!(arrivals.default.as_deref(), Some("`poisson`"));
        assert!(arrivals.value.starts_with("`poisson`"), "{arrivals:?}");
        assert_eq!(attribute(&["board"], "memory_clock").unwrap().value, "a frequency");
        assert_eq!(attribute(&["objective"], "horizon").unwrap().default.as_deref(), Some("`1 h`"));
        assert_eq!(attribute(&["service", "pin"], "batch").unwrap().example.as_deref(), Some("`8`"));
        assert!(block(&["service"]).unwrap().starts_with("A promise"));
        assert!(example("service").is_some_and(|e| e.contains("pin")));
    }
}
