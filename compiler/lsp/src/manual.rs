//! The language reference → what a block or an attribute means, for hovers and completions.
//!
//! The text is `specs/language.md` itself, so that an editor and the manual say the same.

use std::sync::OnceLock;

const REFERENCE: &str = include_str!("../../../specs/language.md");

/// What the reference says of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Its value, or a sentence.
    pub(crate) value: String,
    /// What holds when it is not given: `poisson`, `required`.
    pub(crate) default: Option<String>,
}

struct Section {
    /// The words of its title: `model`, `hardware`.
    kind: String,
    rows: Vec<(Vec<String>, Entry)>,
    prose: Vec<String>,
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
    let (mut rows, mut prose, mut example, mut is_code) = (Vec::new(), Vec::new(), String::new(), false);
    let mut is_first_code = true;
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
            rows.extend(row(line));
        } else if !line.trim().is_empty() {
            prose.push(line.trim().to_owned());
        }
    }
    Section { kind, rows, prose, example }
}

/// A row of a table, with the words in its first cell.
fn row(line: &str) -> Option<(Vec<String>, Entry)> {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let names = quoted(cells.first()?);
    if names.is_empty() {
        return None;
    }
    let default = cells.get(2).map(|c| (*c).to_owned()).filter(|c| !c.is_empty());
    Some((names, Entry { value: (*cells.get(1)?).to_owned(), default }))
}

/// The first words of what stands in backticks.
fn quoted(cell: &str) -> Vec<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.filter_map(|part| part.split_whitespace().next().map(str::to_owned)).collect()
}

fn find(kind: &str) -> Option<&'static Section> {
    sections().iter().find(|s| s.kind == kind)
}

/// What an attribute means, by the blocks that it is in.
pub(crate) fn attribute(path: &[&str], name: &str) -> Option<Entry> {
    let section = find(path.first()?)?;
    let is_pin = path.get(1) == Some(&"pin");
    if !is_pin {
        if let Some((_, entry)) = section.rows.iter().find(|(names, _)| names.iter().any(|n| n == name)) {
            return Some(entry.clone());
        }
        let begins = |line: &&String| {
            line.starts_with(&format!("`{name}` ")) || line.starts_with(&format!("`{name} "))
        };
        return section.prose.iter().find(begins).map(|line| Entry { value: line.clone(), default: None });
    }
    let value = match name {
        "profile" => "a MIG profile of the boards in question: `3g.40gb`",
        "batch" => "the largest batch",
        "clock" => "the SM clock of its boards, one of their ladder",
        "processes" => "worker processes of each instance",
        "node" => "the name of a node: replicas are on no other",
        _ => return None,
    };
    Some(Entry { value: value.to_owned(), default: Some("free".to_owned()) })
}

/// What a kind of block is: a sentence or two, and an example.
pub(crate) fn block(path: &[&str]) -> Option<String> {
    let words = match path {
        ["model"] => "A neural network, and where its performance is known from.",
        ["service"] => "A promise: requests of one model at a rate are answered within a latency.",
        ["hardware"] => "The boards there are, by node.",
        ["hardware", "node"] => "A class of interchangeable boards.",
        ["board"] => "A board with facts that nobody has captured, supplied by you.",
        ["board", "profile"] => "Facts of a MIG profile of this board.",
        ["service", "pin"] => "A part of the operating point, fixed; the planner chooses the rest.",
        ["carbon"] => "What is known of the electricity's carbon, and of making a board.",
        ["objective"] => "What to minimise, within what. `energy` over one hour unless given.",
        _ => return None,
    };
    Some(words.to_owned())
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
        assert_eq!(
            attribute(&["board"], "memory_clock").unwrap().value,
            "the ladder of SM clocks; the memory clock"
        );
        assert!(attribute(&["objective"], "horizon").unwrap().value.contains("one hour"));
        assert!(example("service").is_some_and(|e| e.contains("pin")));
    }
}
