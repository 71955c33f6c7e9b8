//! Panics → "This is a bug in entc.", with what is needed to report it; exit code 101.

use std::panic::PanicHookInfo;
use std::sync::Mutex;

/// The form being processed, in the words of the chain: `program`, `problem`, `plan`, …
static FORM: Mutex<&str> = Mutex::new("arguments");

/// Remembers which form is being processed, for the report of a bug.
pub(crate) fn processing(form: &'static str) {
    if let Ok(mut current) = FORM.lock() {
        *current = form;
    }
}

/// Makes a panic speak to the user. The process then ends with 101, Rust's own code for a panic.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        let form = FORM.try_lock().map_or("unknown", |form| *form);
        let command: Vec<String> = std::env::args().collect();
        crate::terminal::error_line(&describe(info_text(info).as_str(), &command.join(" "), form));
    }));
}

fn info_text(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    match info.location() {
        Some(place) => format!("{message} ({}:{})", place.file(), place.line()),
        None => message,
    }
}

fn describe(what: &str, command: &str, form: &str) -> String {
    format!(
        "This is a bug in entc.\n\
         \x20 what:    {what}\n\
         \x20 version: {}\n\
         \x20 command: {command}\n\
         \x20 form:    {form}\n\
         Nothing of yours is wrong. Please report these lines, with the spec if you can share it.",
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_bug_names_version_command_and_form() {
        let text = super::describe("index out of range (a.rs:1)", "entc plan a.ent", "problem");
        for part in ["a bug in entc", env!("CARGO_PKG_VERSION"), "entc plan a.ent", "problem", "a.rs:1"] {
            assert!(text.contains(part), "{part} is missing from {text}");
        }
    }
}
