//! Diagnostics → SARIF 2.1.0, the form that code-review services read.

use super::json::place;
use ent_plan::diagnostic::{Code, Diagnostic, Severity, Sources, Span};
use serde_json::{Value, json};

/// One run with everything found in all files.
pub(crate) fn log(found: &[(Sources, Vec<Diagnostic>)]) -> Value {
    let mut codes: Vec<Code> = found.iter().flat_map(|(_, list)| list.iter().map(|d| d.code)).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules: Vec<Value> = codes
        .iter()
        .map(|code| {
            json!({
                "id": code.word(),
                "shortDescription": { "text": code.word().replace('-', " ") },
                "help": { "text": format!("entc explain {}", code.word()), "markdown": code.page() },
            })
        })
        .collect();
    let results: Vec<Value> = found
        .iter()
        .flat_map(|(sources, list)| list.iter().map(|diagnostic| result(sources, diagnostic, &codes)))
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "entc", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(sources: &Sources, diagnostic: &Diagnostic, codes: &[Code]) -> Value {
    let mut text = diagnostic.message.clone();
    if !diagnostic.primary.text.is_empty() {
        text.push_str(&format!(": {}", diagnostic.primary.text));
    }
    if let Some(help) = &diagnostic.help {
        text.push_str(&format!("\nhelp: {help}"));
    }
    let related: Vec<Value> = diagnostic
        .secondary
        .iter()
        .map(|label| {
            let mut location = location(sources, label.span);
            if let Some(object) = location.as_object_mut() {
                object.insert("message".to_owned(), json!({ "text": label.text }));
            }
            location
        })
        .collect();
    json!({
        "ruleId": diagnostic.code.word(),
        "ruleIndex": codes.iter().position(|code| *code == diagnostic.code),
        "level": match diagnostic.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "message": { "text": text },
        "locations": [location(sources, diagnostic.primary.span)],
        "relatedLocations": related,
    })
}

fn location(sources: &Sources, span: Span) -> Value {
    let place = json!(place(sources, span));
    let name = place["file"].as_str().unwrap_or_default();
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(name) },
            "region": {
                "startLine": place["line"],
                "startColumn": place["column"],
                "endLine": place["end_line"],
                "endColumn": place["end_column"],
            },
        },
    })
}

/// A file name as a relative URI reference: what is not allowed in a path is percent-encoded.
fn uri(name: &str) -> String {
    name.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_point_at_rules_and_places() {
        let mut sources = Sources::default();
        let file = sources.add("a b.ent", "x\ny z\n");
        let span = Span { file, start: 4, end: 5 };
        let diagnostic = Diagnostic::warning(Code::UnknownName, span, "unknown name").and(span, "here");
        let log = log(&[(sources, vec![diagnostic])]);
        let run = &log["runs"][0];
        let result = &run["results"][0];
        assert_eq!(log["version"], "2.1.0");
        assert_eq!(result["level"], "warning");
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], result["ruleId"]);
        let at = &result["locations"][0]["physicalLocation"];
        assert_eq!(at["artifactLocation"]["uri"], "a%20b.ent");
        assert_eq!(
            (at["region"]["startLine"].as_u64(), at["region"]["startColumn"].as_u64()),
            (Some(2), Some(3))
        );
        assert_eq!(result["relatedLocations"][0]["message"]["text"], "here");
    }
}
