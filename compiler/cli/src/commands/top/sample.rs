//! Prometheus text → values by name and labels, at one moment.

use std::collections::BTreeMap;
use std::time::Instant;

/// Labels of a value.
pub(super) type Labels = BTreeMap<String, String>;

/// All values at one moment.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// When.
    pub(super) at: Instant,
    values: BTreeMap<String, Vec<(Labels, f64)>>,
}

impl Sample {
    /// Reads the text format (Prometheus, "Exposition formats"); lines that are not understood are left out.
    pub(super) fn read(text: &str, at: Instant) -> Self {
        let mut values: BTreeMap<String, Vec<(Labels, f64)>> = BTreeMap::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some((name, labels, value)) = value(line) {
                values.entry(name.to_owned()).or_default().push((labels, value));
            }
        }
        Self { at, values }
    }

    /// All values of a name.
    pub(super) fn all(&self, name: &str) -> &[(Labels, f64)] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The sum of the values whose labels are these, and perhaps others.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let is_it = |of: &Labels| labels.iter().all(|(k, v)| of.get(*k).is_some_and(|found| found == v));
        let found: Vec<f64> =
            self.all(name).iter().filter(|(of, _)| is_it(of)).map(|(_, value)| *value).collect();
        (!found.is_empty()).then(|| found.iter().sum())
    }
}

/// `name{label="value",…} number`.
fn value(line: &str) -> Option<(&str, Labels, f64)> {
    let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Labels::new(), rest),
    };
    let number = rest.split_whitespace().next()?;
    Some((name, labels, number.parse().ok()?))
}

/// Labels up to the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Labels, &str)> {
    let mut labels = Labels::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (key, after) = rest.split_once("=\"")?;
        let mut text = String::new();
        let mut letters = after.char_indices();
        let end = loop {
            match letters.next()? {
                (at, '"') => break at,
                (_, '\\') => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    other => text.push(other),
                },
                (_, other) => text.push(other),
            }
        };
        labels.insert(key.to_owned(), text);
        rest = after.get(end + 1..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name_and_labels() {
        let text = "# HELP a b\na{x=\"1\",y=\"q\\\"}\\n\"} 2.5\na{x=\"2\",y=\"z\"} 4\nb 7 1700000000\nc_bucket{le=\"+Inf\"} 3\n\
                    nonsense\nd{x=\"unclosed 1\n";
        let sample = Sample::read(text, Instant::now());
        assert_eq!(sample.sum("a", &[]), Some(6.5));
        assert_eq!(sample.sum("a", &[("y", "q\"}\n")]), Some(2.5));
        assert_eq!(sample.sum("a", &[("x", "3")]), None);
        assert_eq!(sample.sum("b", &[]), Some(7.0));
        assert_eq!(sample.sum("c_bucket", &[("le", "+Inf")]), Some(3.0));
        assert!(sample.all("d").is_empty());
    }
}
