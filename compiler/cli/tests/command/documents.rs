//! The documents, held to the command: what README.md shows is printed, what they tell to type is understood.

use crate::run::{entc, told};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents that tell what to type.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("specs/language.md")];
    for folder in ["docs", "examples", "specs/diagnostics"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // A folder of examples has one; one of pictures or styles has none.
                found.extend(Some(path.join("README.md")).filter(|page| page.is_file()));
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The commands of a document's `sh` fences that are ours, without what a shell would take away.
fn commands(document: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for fence in document.split("```sh\n").skip(1) {
        let text = fence.split("```").next().unwrap_or_default().replace("\\\n", " ");
        for line in text.lines() {
            let line = line.split(" # ").next().unwrap_or_default();
            let mut words =
                line.split_whitespace().skip_while(|word| word.contains('=') && !word.contains('-'));
            if words.next() == Some("entc") {
                found.push(words.map(|word| word.trim_matches('"').to_owned()).collect());
            }
        }
    }
    found
}

#[test]
fn every_command_in_the_documents_is_understood() {
    let mut count = 0;
    for path in documents() {
        for command in commands(&std::fs::read_to_string(&path).unwrap()) {
            let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
            let (code, _, err) = told(&entc(&root(), &arguments).output().unwrap());
            assert_eq!(code, 0, "{}: entc {}\n{err}", path.display(), command.join(" "));
            count += 1;
        }
    }
    assert!(count >= 40, "only {count} commands were found");
}

/// A plan as shown, without how long it took.
fn timeless(shown: &str) -> String {
    let mut lines: Vec<String> = shown.lines().map(str::to_owned).collect();
    if let Some(first) = lines.first_mut()
        && let Some(at) = first.find(" in ")
    {
        first.truncate(at);
    }
    lines.join("\n")
}

#[test]
fn the_readme_shows_the_plan_of_the_quickstart() {
    let mut command = entc(&root(), &["plan", "examples/quickstart/program.ent", "--time-limit", "5m"]);
    let (code, out, err) = told(&command.env("COLUMNS", "100").output().unwrap());
    assert_eq!(code, 0, "{err}");
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once("```text\n").unwrap();
    let (shown, after) = rest.split_once("```").unwrap();
    if timeless(shown) == timeless(&out) {
        return;
    }
    assert!(
        std::env::var_os("ENT_BLESS").is_some(),
        "README.md shows another plan; ENT_BLESS=1 rewrites it. Now it is\n{out}"
    );
    std::fs::write(path, format!("{before}```text\n{out}```{after}")).unwrap();
}

#[test]
fn the_page_of_pictures_shows_the_front_of_the_quickstart() {
    let page = std::fs::read_to_string(root().join("docs/pictures.md")).unwrap();
    let (_, rest) = page.split_once("```text\n$ entc ").unwrap();
    let (command, shown) = rest.split_once("```").unwrap().0.split_once('\n').unwrap();
    let arguments: Vec<&str> = command.split_whitespace().collect();
    let (code, out, err) = told(entc(&root(), &arguments).env("COLUMNS", "100").output().as_ref().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, shown);
}
