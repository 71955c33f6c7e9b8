//! `entc explain`: the page of a diagnostic, or why a service got what it got.

use crate::arguments::Explain;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use ent_plan::diagnostic::Code;

/// How alike two words must be to be taken for a typing mistake.
const ALIKE: f64 = 0.75;

/// Explains.
pub(super) fn run(arguments: &Explain, terminal: &Terminal) -> Result<Exit, Stop> {
    match &arguments.service {
        Some(service) => super::plan::explain_service(arguments, service, terminal),
        None => {
            terminal.result(page(&arguments.subject)?)?;
            Ok(Exit::Done)
        }
    }
}

fn page(word: &str) -> Result<&'static str, Stop> {
    if let Some(code) = Code::from_word(word) {
        return Ok(code.page());
    }
    let nearest = Code::ALL
        .iter()
        .map(|code| (strsim::jaro_winkler(&word.to_lowercase(), code.word()), code.word()))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .filter(|(likeness, _)| *likeness >= ALIKE);
    let help = match nearest {
        Some((_, nearest)) => format!("did you mean `{nearest}`?"),
        None if std::path::Path::new(word).exists() => {
            format!("name a service too: entc explain {word} SERVICE")
        }
        None => {
            let words: Vec<&str> = Code::ALL.iter().map(|code| code.word()).collect();
            format!("choose one of: {}", words.join(", "))
        }
    };
    Err(Stop::Refused {
        code: "unknown-code",
        message: format!("`{word}` is not the code of a diagnostic"),
        help: Some(help),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page() {
        for code in Code::ALL {
            assert!(page(code.word()).is_ok_and(|text| text.contains(code.word())), "{}", code.word());
        }
    }

    #[test]
    fn a_mistyped_code_gets_a_suggestion() {
        let Err(Stop::Refused { help: Some(help), .. }) = page("unit-mismach") else {
            panic!("no help");
        };
        assert!(help.contains("unit-mismatch"), "{help}");
    }
}
