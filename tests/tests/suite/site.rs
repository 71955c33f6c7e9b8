//! The documentation site: every page is in it once, and every command on a page prints what the page shows.

use ent_tests::console::{Part, Surroundings, parts, run};
use ent_tests::fences::fences;
use ent_tests::{files, read, root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Triton's client, for the pages that call it.
const CLIENT: &str = "tritonclient[http]==2.73.0";

/// The pages that the summary lists, by their paths in the repository.
fn listed() -> Vec<String> {
    let links = |line: &str| Some(line.split_once("](")?.1.split_once(')')?.0.to_owned());
    let plain = |link: String| link.strip_prefix("../").map_or(format!("docs/{link}"), str::to_owned);
    read(SUMMARY).lines().filter_map(links).map(plain).collect()
}

#[test]
fn every_page_is_in_the_site_once() {
    let listed = listed();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let missing: Vec<&String> = listed.iter().filter(|page| read(page).is_empty()).collect();
    assert!(missing.is_empty(), "{SUMMARY} lists pages that are not there: {missing:?}");
    let is_page = |path: &String| {
        path.ends_with(".md")
            && path != SUMMARY
            && (path.matches('/').count() == 1 || !path.starts_with("docs/"))
    };
    let pages = ["docs", "specs", "examples"].into_iter().flat_map(files).filter(is_page);
    let left_out: Vec<String> = pages.filter(|page| !once.contains(page)).collect();
    assert!(left_out.is_empty(), "{SUMMARY} leaves out {left_out:?}");
}

#[test]
fn every_spec_on_a_page_of_docs_is_a_file_that_its_commands_use() {
    for page in listed().into_iter().filter(|page| page.starts_with("docs/")) {
        let all = parts(&read(&page));
        for (index, part) in all.iter().enumerate() {
            let Part::File(name, _) = part else { continue };
            let uses = |part: &Part| matches!(part, Part::Step(step) if step.command.contains(name.as_str()));
            assert!(all[index..].iter().any(uses), "{page}: no command below uses {name}");
        }
        let n_specs = fences(&read(&page)).iter().filter(|fence| fence.is(&["ent"])).count();
        let n_files =
            all.iter().filter(|part| matches!(part, Part::File(name, _) if name.ends_with(".ent"))).count();
        assert_eq!(n_specs, n_files, "{page}: a spec has no `file=\"NAME\"`, so nothing runs it");
    }
}

/// Builds what the pages' commands run, and says where it is.
fn tools() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).map(Path::to_path_buf).unwrap()
}

/// Where Triton's client is, got with `pip` the first time; `None` where that is not possible.
fn packages() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(CLIENT.replace(['[', ']', '='], "-"));
    if folder.exists() {
        return Some(folder);
    }
    // Beside it first, so that what was left half-done is not taken for it.
    let partly = folder.with_extension(std::process::id().to_string());
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"];
    let pip = Command::new("python3").args(pip).arg(&partly).arg(CLIENT).output();
    let is_done = pip.is_ok_and(|pip| pip.status.success());
    // Continuous integration has what it takes, and must not pass without it.
    assert!(is_done || std::env::var_os("CI").is_none(), "pip could not get {CLIENT}");
    if !is_done {
        println!("not tested: commands that begin with `python3`, for want of {CLIENT}");
        return None;
    }
    std::fs::rename(&partly, &folder).unwrap();
    Some(folder)
}

#[test]
fn every_command_of_the_site_prints_what_its_page_shows() {
    let has_commands = |page: &String| parts(&read(page)).iter().any(|part| matches!(part, Part::Step(_)));
    let pages: Vec<String> = listed().into_iter().filter(has_commands).collect();
    assert!(pages.len() >= 4, "{pages:?}");
    let (tools, packages) = (tools(), packages());
    let mut report = String::new();
    for page in pages {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_path_buf();
        let surroundings = Surroundings { tools: tools.clone(), packages: packages.clone(), home };
        let (wrong, now) = run(&read(&page), &surroundings).unwrap();
        if std::env::var_os("ENT_BLESS").is_some() {
            std::fs::write(root().join(&page), now).unwrap();
        }
        if !wrong.is_empty() {
            report.push_str(&format!("{page}\n{wrong}\n"));
        }
    }
    assert!(report.is_empty(), "ENT_BLESS=1 rewrites what has no `…`:\n{report}");
}
