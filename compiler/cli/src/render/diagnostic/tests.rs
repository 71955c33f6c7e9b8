//! What diagnostics look like.

use super::*;
use crate::render::plan::Detail;
use crate::render::symbols::{ASCII, UNICODE};
use ent_plan::diagnostic::{Code, Span};

fn canvas(color: bool, is_unicode: bool) -> Canvas {
    Canvas { width: 80, color, symbols: if is_unicode { &UNICODE } else { &ASCII }, detail: Detail::Boards }
}

fn sample() -> (Sources, Diagnostic) {
    let mut sources = Sources::default();
    let text = "service a {\n  rate = 47.6 ms\n}\n";
    let file = sources.add("vision.ent", text);
    let start = u32::try_from(text.find("47.6").unwrap()).unwrap();
    let span = Span { file, start, end: start + 7 };
    let diagnostic = Diagnostic::error(Code::UnitMismatch, span, "expected a rate, found a time")
        .label("time")
        .help("write a rate like `1391.97 req/s`");
    (sources, diagnostic)
}

#[test]
fn an_error_shows_its_line_what_is_there_and_what_to_do() {
    let (sources, diagnostic) = sample();
    let text = draw(&sources, &diagnostic, &canvas(false, true));
    let expected = "\
error[unit-mismatch]: expected a rate, found a time
   ╭─[vision.ent:2:10]
 1 │ service a {
 2 │   rate = 47.6 ms
   ·          ───┬───
   ·             ╰── time
 3 │ }
   ╰────
  help: write a rate like `1391.97 req/s`
";
    assert_eq!(text, expected);
}

#[test]
fn colour_and_ascii_change_no_words() {
    let (sources, diagnostic) = sample();
    let plain = draw(&sources, &diagnostic, &canvas(false, true));
    let colored = draw(&sources, &diagnostic, &canvas(true, true));
    assert!(colored.contains('\u{1b}'));
    assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    assert!(draw(&sources, &diagnostic, &canvas(false, false)).is_ascii());
}

#[test]
fn a_place_that_cannot_be_drawn_is_named() {
    let mut sources = Sources::default();
    let empty = sources.add("gone.ent", "");
    let long = sources.add("long.ent", "x".repeat(1_000_000));
    let at = |file, start, end| Span { file, start, end };
    let missing =
        Diagnostic::error(Code::MissingFile, at(empty, 0, 0), "file not found").label("nothing there");
    let text = draw(&sources, &missing, &canvas(false, true));
    assert!(text.contains("gone.ent: nothing there"), "{text}");
    let endless = Diagnostic::error(Code::Syntax, at(long, 999_990, u32::MAX), "what is this").label("this");
    let text = draw(&sources, &endless, &canvas(false, true));
    assert!(text.contains("long.ent:1:999991: this") && text.len() < 500, "{text}");
}

#[test]
fn labels_in_another_file_are_told_with_their_place() {
    let (mut sources, diagnostic) = sample();
    let other = sources.add("other.ent", "let a = 1\nlet b = 2\n");
    let diagnostic = diagnostic.and(Span { file: other, start: 10, end: 13 }, "declared here");
    let text = draw(&sources, &diagnostic, &canvas(false, true));
    assert!(text.contains("other.ent:2:1: declared here"), "{text}");
}

#[test]
fn the_concise_form_is_one_line() {
    let (sources, diagnostic) = sample();
    let text = concise(&sources, &[diagnostic]);
    assert_eq!(text, "vision.ent:2:10: unit-mismatch: expected a rate, found a time\n");
}
