//! A document → its files written, its commands run, and what they say held to what the document shows.
//!
//! A fence with `file="NAME"` is a file in the folder that the commands run in; a later one of that name
//! replaces it. In a `console` fence `$ ` begins a command and what follows is what it prints, on both
//! streams; `> ` goes on with the command, and `export` lasts to the end of the document. A command ends with 0 unless `echo $?` follows it.
//!
//! What differs from run to run is not held to anything: how long planning took, process ids, UUIDs; in a fence
//! marked `timed` no time is, and in one marked `measured` only words are. A line `…` stands for any lines. Spaces and line ends do not count.

use crate::fences::fences;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What stands for any lines of output.
const ANYTHING: &str = "…";

/// The home folder that documents show, in place of the one that commands run in.
const HOME: &str = "/home/ada";

/// Where documents show entc's own files.
const BIN: &str = "/usr/local/bin";

/// How the line begins that names the simulated machine. Every command that talks to one prints it first; a
/// document may leave it out.
const LIBRARY: &str = "nvml: simulated machine in ";

/// What the documents' commands are run with.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The folder of `entc`, `ent-worker` and the simulated library.
    pub tools: PathBuf,
    /// Python's packages, where there are any; without them commands that begin with `python3` are left out.
    pub packages: Option<PathBuf>,
    /// An empty folder.
    pub home: PathBuf,
}

/// Which numbers of a fence are those of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loose {
    /// How long planning took, and no other.
    Planning,
    /// All times.
    Times,
    /// All numbers and verdicts; the words are held, in their order, and more may stand between them.
    Numbers,
}

/// A command of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line of the document that it begins on, from 1.
    pub line: usize,
    /// As a shell takes it.
    pub command: String,
    /// What the document shows below it.
    pub shown: String,
    /// What is not held to the document.
    pub loose: Loose,
}

/// A part of a document that does something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A file: name and text.
    File(String, String),
    /// A command.
    Step(Step),
}

/// What a document does, in order.
#[must_use]
pub fn parts(document: &str) -> Vec<Part> {
    let mut found = Vec::new();
    for fence in fences(document) {
        let name = fence.words.iter().find_map(|word| word.strip_prefix("file=\"")?.strip_suffix('"'));
        if let Some(name) = name {
            found.push(Part::File(name.to_owned(), fence.text.clone()));
        }
        if !fence.is(&["console"]) {
            continue;
        }
        let is = |mark: &str| fence.words.iter().any(|word| word == mark);
        let loose = match (is("measured"), is("timed")) {
            (true, _) => Loose::Numbers,
            (false, true) => Loose::Times,
            (false, false) => Loose::Planning,
        };
        let mut steps: Vec<Step> = Vec::new();
        let mut is_command = false;
        for (index, line) in fence.text.lines().enumerate() {
            match (steps.last_mut(), line.strip_prefix("$ ")) {
                (Some(step), None) if is_command && line.starts_with("> ") => {
                    step.command.push('\n');
                    step.command.push_str(&line[2..]);
                    continue;
                }
                (_, Some(command)) => {
                    let (command, shown) = (command.to_owned(), String::new());
                    steps.push(Step { line: fence.line + index, command, shown, loose });
                }
                (Some(step), None) => {
                    step.shown.push_str(line);
                    step.shown.push('\n');
                }
                (None, None) => {}
            }
            is_command = line.starts_with("$ ");
        }
        found.extend(steps.into_iter().map(Part::Step));
    }
    found
}

/// Runs a document. Returns what is wrong, and the document with what its commands now print.
///
/// # Errors
/// When a file cannot be written or a command cannot be run.
pub fn run(document: &str, surroundings: &Surroundings) -> std::io::Result<(String, String)> {
    let folder = surroundings.home.join("tour");
    std::fs::create_dir_all(&folder)?;
    let ports = [8000_u16, 8001, 8002].map(|shown| TcpListener::bind("127.0.0.1:0").map(|l| (shown, l)));
    let mut words: Vec<(String, String)> = Vec::new();
    for port in ports {
        let (shown, listener) = port?;
        words.push((format!("127.0.0.1:{shown}"), listener.local_addr()?.to_string()));
    }
    let addresses: Vec<String> = words.iter().map(|(_, real)| real.clone()).collect();
    words.push((HOME.to_owned(), surroundings.home.display().to_string()));
    words.push((BIN.to_owned(), surroundings.tools.display().to_string()));
    let real =
        |text: &str| words.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(shown, real));
    let shown =
        |text: &str| words.iter().fold(text.to_owned(), |text, (shown, real)| text.replace(real, shown));

    let mut exported: BTreeMap<String, String> = BTreeMap::new();
    let mut wrong = String::new();
    let mut other: Vec<(&Step, String)> = Vec::new();
    let all = parts(document);
    let mut code = 0;
    for (index, part) in all.iter().enumerate() {
        let step = match part {
            Part::File(name, text) => {
                std::fs::write(folder.join(name), real(text))?;
                continue;
            }
            Part::Step(step) => step,
        };
        if let Some(pairs) = step.command.strip_prefix("export ") {
            let pairs = pairs.split_whitespace().filter_map(|pair| pair.split_once('='));
            exported.extend(pairs.map(|(name, value)| (name.to_owned(), real(value))));
            continue;
        }
        if step.command.starts_with("python3") && surroundings.packages.is_none() {
            continue;
        }
        let mut command = shell(surroundings, &folder, &addresses, &exported);
        // The exit code of the command before is what `$?` means.
        let output =
            command.arg("-c").arg(format!("(exit {code})\n{{ {}\n}} 2>&1", real(&step.command))).output()?;
        code = output.status.code().unwrap_or(-1);
        let said = shown(&String::from_utf8_lossy(&output.stdout));
        let is_named = step.shown.contains(LIBRARY);
        let said: String =
            said.split_inclusive('\n').filter(|l| is_named || !l.starts_with(LIBRARY)).collect();
        let is_told = matches!(all.get(index + 1), Some(Part::Step(next)) if next.command == "echo $?");
        if code != 0 && !is_told {
            let _ = writeln!(wrong, "line {}: `{}` ended with {code}\n{said}", step.line, step.command);
        }
        if !is_alike(&step.shown, &said, step.loose) {
            let _ = writeln!(wrong, "line {}: `{}` prints\n{said}", step.line, step.command);
            if !step.shown.lines().any(|line| line == ANYTHING) {
                other.push((step, said));
            }
        }
    }
    // What a document leaves running ends with it.
    let _ = shell(surroundings, &folder, &addresses, &exported).args(["-c", "entc serve stop"]).output();
    // From the end, so that the lines of what is still to be replaced stay where they are.
    let now = other.iter().rev().fold(document.to_owned(), |now, (step, said)| replaced(&now, step, said));
    Ok((wrong, now))
}

/// A shell as a reader has it who has just installed entc, on ports that nobody else has.
fn shell(
    surroundings: &Surroundings,
    folder: &Path,
    addresses: &[String],
    exported: &BTreeMap<String, String>,
) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .env_clear()
        .env("PATH", format!("{}:{path}", surroundings.tools.display()))
        .env("HOME", &surroundings.home)
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "100")
        // No search is cut short, however busy the machine is: what is printed does not hang on it.
        .env("ENTC_TIME_LIMIT", "10m")
        .envs(["ENTC_HTTP", "ENTC_GRPC", "ENTC_METRICS"].iter().zip(addresses))
        .envs(exported)
        .current_dir(folder)
        .stdin(Stdio::null());
    if let Some(packages) = &surroundings.packages {
        command.env("PYTHONPATH", packages);
    }
    command
}

/// The document with what a command now prints below it.
fn replaced(document: &str, step: &Step, said: &str) -> String {
    let lines: Vec<&str> = document.lines().collect();
    let begin = step.line - 1 + step.command.lines().count();
    let end = begin + step.shown.lines().count();
    let all =
        lines[..begin].iter().copied().chain(said.trim_end().lines()).chain(lines[end..].iter().copied());
    all.map(|line| format!("{line}\n")).collect()
}

/// Whether what was printed is what is shown, but for what differs from run to run.
#[must_use]
pub fn is_alike(shown: &str, printed: &str, loose: Loose) -> bool {
    if loose == Loose::Numbers {
        let mut said = printed.split_whitespace().map(bare);
        return shown
            .split_whitespace()
            .map(bare)
            .filter(|word| is_held(word))
            .all(|word| said.any(|w| w == word));
    }
    let (pattern, text) = (words(shown, loose), words(printed, loose));
    let (mut p, mut t) = (0, 0);
    let mut open: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p).is_some_and(|word| word == ANYTHING) {
            open = Some((p, t));
            p += 1;
        } else if pattern.get(p) == text.get(t) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((star, from)) = open {
            open = Some((star, from + 1));
            (p, t) = (star + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|word| word == ANYTHING)
}

/// The words of a text, without what differs from run to run.
fn words(text: &str, loose: Loose) -> Vec<String> {
    let all: Vec<&str> = text.split_whitespace().collect();
    let mut found: Vec<String> = Vec::new();
    for (index, word) in all.iter().enumerate() {
        let before = index.checked_sub(1).map_or("", |at| all[at]);
        let two_before = index.checked_sub(2).map_or("", |at| all[at]);
        let after = all.get(index + 1).copied().unwrap_or("");
        let is_counted = |before: &str| before == "in" || loose == Loose::Times;
        let is_time = is_counted(before) && is_number(word) && is_unit_of_time(after);
        let is_unit = is_counted(two_before) && is_number(before) && is_unit_of_time(word);
        let is_process = bare(before) == "process" || (word.starts_with('(') && is_number(bare(word)));
        let is_speed = after == "million" && is_number(word);
        found.push(if is_unit || is_time || is_process || is_speed {
            word.replace(bare(word), "#")
        } else if let Some(at) = ["GPU-", "MIG-"].iter().find_map(|kind| word.find(kind)) {
            format!("{}#", &word[..at + 4])
        } else {
            (*word).to_owned()
        });
    }
    found
}

/// Whether a word of a measurement stands there whatever was measured.
fn is_held(word: &str) -> bool {
    const VERDICTS: [&str; 9] =
        ["kept", "BROKEN", "no", "of", "request", "requests", "failed", "FAILED", "nothing"];
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
    is_word && !is_unit_of_time(word) && !VERDICTS.contains(&word)
}

/// A word without brackets and marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn is_unit_of_time(word: &str) -> bool {
    ["s", "ms", "µs", "min"].contains(&bare(word))
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_not_compared_and_all_else_is() {
        let cases = [
            ("optimal in 5.2 s)", "optimal in 13 ms)", Loose::Planning, true),
            ("process 8051: http", "process 1: http", Loose::Planning, true),
            ("ent-worker (8055)", "ent-worker  (7)", Loose::Planning, true),
            ("gpu GPU-3ab4-99 x", "gpu GPU-0-1 x", Loose::Planning, true),
            ("100 W 5 ms optimal", "100 W 5.1 s optimal", Loose::Times, true),
            ("100 W 5 ms", "101 W 5 ms", Loose::Times, false),
            ("p99 82.58 ms", "p99 82.59 ms", Loose::Planning, false),
            ("sent 2015 ms +104% kept", "sent 7 s 3% BROKEN", Loose::Numbers, true),
            ("sent 2015\nload 3", "sent 2015 and 7 failed\nload 9", Loose::Numbers, true),
            ("sent 2015", "lost 2015", Loose::Numbers, false),
            ("sent\nload", "load\nsent", Loose::Numbers, false),
            ("a\n…\nz", "a b c z", Loose::Planning, true),
            ("a\n…\nz", "a b c y", Loose::Planning, false),
            ("…", "", Loose::Planning, true),
            ("a …", "b", Loose::Planning, false),
            ("a", "a b", Loose::Planning, false),
            ("a b", "a", Loose::Planning, false),
        ];
        for (shown, printed, loose, expected) in cases {
            assert_eq!(is_alike(shown, printed, loose), expected, "{shown:?} {printed:?}");
        }
    }

    #[test]
    fn a_document_is_files_and_commands() {
        let text =
            "```ent file=\"a.ent\"\nx\n```\n\n```console measured\n$ one \\\n>  two\nsaid\n$ three\n```\n";
        let step = |line, command: &str, shown: &str| {
            let (command, shown) = (command.to_owned(), shown.to_owned());
            Part::Step(Step { line, command, shown, loose: Loose::Numbers })
        };
        let expected = [
            Part::File("a.ent".into(), "x\n".into()),
            step(6, "one \\\n two", "said\n"),
            step(9, "three", ""),
        ];
        assert_eq!(parts(text), expected);
    }

    #[test]
    fn a_document_is_held_to_what_its_commands_print() {
        let folder = std::env::temp_dir().join(format!("ent-console-{}", std::process::id()));
        let surroundings = Surroundings { tools: "/nowhere".into(), packages: None, home: folder.clone() };
        let page = |shown: &str| {
            format!(
                "```text file=\"a\"\nhere\n```\n\n```console\n$ export B=c\n$ cat a; echo $B\n{shown}$ false\n$ echo $?\n1\n```\n"
            )
        };
        let (wrong, now) = run(&page("here\nc\n"), &surroundings).unwrap_or_default();
        assert_eq!((wrong.as_str(), now), ("", page("here\nc\n")));
        let (wrong, now) = run(&page("there\n"), &surroundings).unwrap_or_default();
        assert!(wrong.starts_with("line 7: `cat a; echo $B` prints\nhere\nc\n"), "{wrong}");
        assert_eq!(now, page("here\nc\n"));
        let (wrong, _) = run("```console\n$ false\n```\n", &surroundings).unwrap_or_default();
        assert!(wrong.contains("ended with 1"), "{wrong}");
        let _ = std::fs::remove_dir_all(folder);
    }
}
