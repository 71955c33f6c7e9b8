//! How fast the server answers one who types: `cargo bench -p ent-lsp --bench typing`.
//!
//! A scripted client types an attribute into the middle of a long file, one character a change, and waits
//! after each for the diagnostics of that change; then it asks for completions all over the file, and
//! makes ten thousand edits while the memory is looked at. The same client does the same with servers of
//! other languages, on files of as many lines, when they are found: `taplo` (TOML), `ruff` (Python) and
//! `yaml-language-server`, in `PATH` or in the folders of `RIVALS`. Those that are absent are skipped.

#![allow(clippy::print_stdout, reason = "a benchmark that reports to a terminal")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark stops where it cannot measure")]

#[path = "../tests/suite/client.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod client;

use client::Client;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// No server is measured longer than this in one respect.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server and how its language is written.
struct Server {
    name: &'static str,
    command: Vec<String>,
    language: &'static str,
    ending: &'static str,
    program: fn(usize) -> String,
    /// What is typed, and where something can be completed: behind this in a line.
    typed: &'static str,
    completed_behind: &'static str,
}

fn main() {
    let ours = env!("CARGO_BIN_EXE_ent-lsp").to_owned();
    let servers = [
        Server {
            name: "entc",
            command: vec![ours],
            language: "ent",
            ending: "ent",
            program: ent,
            typed: "  spread = gpu // new\n",
            completed_behind: "  model    = ",
        },
        Server {
            name: "taplo",
            command: words("taplo lsp stdio"),
            language: "toml",
            ending: "toml",
            program: toml,
            typed: "spread = \"gpu\" # new\n",
            completed_behind: "model = ",
        },
        Server {
            name: "ruff",
            command: words("ruff server"),
            language: "python",
            ending: "py",
            program: python,
            typed: "    spread = \"gpu\"  # new\n",
            completed_behind: "    model = ",
        },
        Server {
            name: "yaml-language-server",
            command: words("yaml-language-server --stdio"),
            language: "yaml",
            ending: "yaml",
            program: yaml,
            typed: "  spread: gpu # new\n",
            completed_behind: "  model: ",
        },
    ];
    let only: Option<String> = std::env::args().skip(1).find(|a| !a.starts_with('-'));
    println!(
        "| server | lines | keystroke to diagnostics p50 | p99 | most | completion p50 | p99 | opened in |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for n_lines in [2_000, 20_000] {
        for server in servers.iter().filter(|s| only.as_ref().is_none_or(|o| o == s.name)) {
            match found(&server.command) {
                Some(command) => match catch_unwind(|| measure(server, &command, n_lines)) {
                    Ok(row) => println!("{row}"),
                    Err(_) => println!("| {} | | gave up | | | | | |", server.name),
                },
                None => println!("| {} | | not installed: skipped | | | | | |", server.name),
            }
        }
    }
    println!();
    for server in servers.iter().filter(|s| only.as_ref().is_none_or(|o| o == s.name)) {
        if let Some(command) = found(&server.command)
            && let Ok(line) = catch_unwind(|| memory(server, &command))
        {
            println!("{line}");
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The command with its program's path, if there is such a program.
fn found(command: &[String]) -> Option<Vec<String>> {
    let (program, arguments) = command.split_first()?;
    let folders = ["RIVALS", "PATH"].map(|name| std::env::var_os(name).unwrap_or_default());
    let paths: Vec<PathBuf> =
        folders.iter().flat_map(std::env::split_paths).map(|f| f.join(program)).collect();
    let path = if program.contains('/') {
        Some(PathBuf::from(program))
    } else {
        paths.into_iter().find(|p| p.is_file())
    };
    let mut found = vec![path?.to_str()?.to_owned()];
    found.extend(arguments.iter().cloned());
    Some(found)
}

/// A file that a server has opened.
struct Opened {
    client: Client,
    uri: String,
    lines: Vec<String>,
    version: i32,
    /// How long it took from opening to the first diagnostics.
    took: Duration,
    _folder: tempfile::TempDir,
}

fn open(server: &Server, command: &[String], n_lines: usize) -> Opened {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("program.{}", server.ending));
    let text = (server.program)(n_lines);
    std::fs::write(&path, &text).unwrap();
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).current_dir(folder.path());
    let mut client = Client::spawn(process);
    let capabilities = json!({
        "general": { "positionEncodings": ["utf-16"] },
        "textDocument": {
            "publishDiagnostics": { "versionSupport": true },
            "completion": {},
            "synchronization": {},
        },
        "workspace": { "configuration": true, "workspaceFolders": true },
    });
    client.start(capabilities, Some(&format!("file://{}", folder.path().display())));
    let uri = format!("file://{}", path.display());
    let start = Instant::now();
    client.open(&uri, server.language, &text);
    client.diagnostics(&uri, 0);
    let lines = text.lines().map(str::to_owned).collect();
    Opened { client, uri, lines, version: 0, took: start.elapsed(), _folder: folder }
}

impl Opened {
    /// Inserts (or, with no text, removes) at a place.
    fn edit(&mut self, line: usize, column: usize, removed: usize, text: &str) {
        self.version += 1;
        let range = json!({
            "start": { "line": line, "character": column },
            "end": { "line": line, "character": column + removed },
        });
        let version = self.version;
        self.client.change(&self.uri, version, json!([{ "range": range, "text": text }]));
    }

    /// Waits for what is said of the last edit.
    fn diagnosed(&mut self) -> Vec<Value> {
        self.client.diagnostics(&self.uri, self.version)
    }

    fn line_with(&self, text: &str, from: usize) -> usize {
        let n = self.lines.len();
        (from..n).chain(0..from).find(|i| self.lines[*i].starts_with(text)).expect(text)
    }
}

fn measure(server: &Server, command: &[String], n_lines: usize) -> String {
    let mut file = open(server, command, n_lines);
    let n_rounds = if n_lines > 10_000 { 6 } else { 15 };
    let mut keystrokes = Vec::new();
    let begun = Instant::now();
    for round in 0..n_rounds {
        if round > 1 && begun.elapsed() > PATIENCE {
            break;
        }
        let line = file.line_with(server.completed_behind, (round * 7919) % file.lines.len());
        for (column, key) in server.typed.trim_end().char_indices() {
            if column == 0 {
                // The line that is typed on; not measured: it is no keystroke of the text.
                file.edit(line, 0, 0, "\n");
                file.diagnosed();
            }
            let start = Instant::now();
            file.edit(line, column, 0, &key.to_string());
            file.diagnosed();
            keystrokes.push(start.elapsed());
        }
        let range =
            json!({ "start": { "line": line, "character": 0 }, "end": { "line": line + 1, "character": 0 } });
        file.version += 1;
        file.client.change(&file.uri, file.version, json!([{ "range": range, "text": "" }]));
        file.diagnosed();
    }
    let mut completions = Vec::new();
    let begun = Instant::now();
    for round in 0..200usize {
        if round > 20 && begun.elapsed() > PATIENCE {
            break;
        }
        let line = file.line_with(server.completed_behind, (round * 104_729) % file.lines.len());
        let position = json!({ "line": line, "character": server.completed_behind.len() });
        let params = json!({ "textDocument": { "uri": file.uri }, "position": position });
        let start = Instant::now();
        match file.client.request("textDocument/completion", params) {
            Ok(_) => completions.push(start.elapsed()),
            // It has none.
            Err(_) => break,
        }
    }
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} |",
        server.name,
        file.lines.len(),
        quantile(&mut keystrokes, 0.5),
        quantile(&mut keystrokes, 0.99),
        quantile(&mut keystrokes, 1.0),
        quantile(&mut completions, 0.5),
        quantile(&mut completions, 0.99),
        shown(file.took),
    )
}

/// Memory after a few and after ten thousand edits.
fn memory(server: &Server, command: &[String]) -> String {
    let mut file = open(server, command, 2_000);
    let line = file.line_with(server.completed_behind, 1_000);
    let mut seen = Vec::new();
    for edit in 0..=10_000 {
        let (removed, text) = if edit % 2 == 0 { (0, "x") } else { (1, "") };
        file.edit(line, 0, removed, text);
        // A typist is never far ahead of the server.
        if edit % 100 == 0 {
            file.diagnosed();
        }
        if edit % 1_000 == 0 && edit > 0 {
            seen.push(resident(file.client.process().unwrap()));
        }
    }
    let shown: Vec<String> = seen.iter().map(|kib| format!("{:.1}", kib / 1024.0)).collect();
    format!("{}: MiB resident after each thousand of 10,000 edits: {}", server.name, shown.join(", "))
}

/// KiB of memory that a process holds.
fn resident(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(f64::NAN)
}

fn quantile(times: &mut [Duration], share: f64) -> String {
    times.sort_unstable();
    let Some(last) = times.len().checked_sub(1) else { return "none".to_owned() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    let at = (share * last as f64).round() as usize;
    shown(times[at])
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn ent(n_lines: usize) -> String {
    let mut text = String::from(
        "import \"catalog:nvidia/a100-80gb-pcie\"\nimport \"catalog:performance/a100-80gb-pcie\"\n\nparam load = 100%\n",
    );
    let n = (n_lines - 16) / 13;
    for i in 0..n {
        let _ = write!(
            text,
            "\n// service {i}\nmodel model_{i} {{\n  performance = a100_80gb_pcie.resnet50\n  memory      = 4 GiB\n}}\n\
             service service_{i} {{\n  model    = model_{i}\n  rate     = min(load, 100%) * {}.25 req/s\n  \
             latency  = p99 <= 47.5 ms // promised\n  arrivals = poisson\n  replicas = 1..6\n}}\n",
            i + 1
        );
    }
    text.push_str("\nhardware {\n  node \"box-0\" {\n    gpu = a100_80gb_pcie x 12\n  }\n}\n\nobjective {\n  minimize energy\n}\n");
    text
}

fn toml(n_lines: usize) -> String {
    (0..n_lines / 10).fold(String::new(), |mut text, i| {
        let _ = write!(
            text,
            "\n# service {i}\n[service.service_{i}]\nmodel = \"model_{i}\"\nrate = {}.25\nlatency = \"p99 <= 47.5 ms\" # promised\n\
             arrivals = \"poisson\"\nreplicas = [1, 6]\nmemory = {{ amount = 4, unit = \"GiB\" }}\ndate = 2026-01-01\n",
            i + 1
        );
        text
    })
}

fn python(n_lines: usize) -> String {
    (0..n_lines / 10).fold(String::from("import math\n"), |mut text, i| {
        let _ = write!(
            text,
            "\n\ndef service_{i}(load: float) -> float:\n    model = \"model_{i}\"\n    rate = min(load, 1.0) * {}.25\n    \
             latency = 47.5  # promised\n    arrivals = [1, 2, 3]\n    replicas = {{\"min\": 1, \"max\": 6}}\n    \
             print(model, arrivals, replicas)\n    return math.sqrt(rate) * latency\n",
            i + 1
        );
        text
    })
}

fn yaml(n_lines: usize) -> String {
    (0..n_lines / 10).fold(String::new(), |mut text, i| {
        let _ = write!(
            text,
            "\n# service {i}\nservice_{i}:\n  model: model_{i}\n  rate: {}.25\n  latency: p99 47.5 ms # promised\n  \
             arrivals: poisson\n  replicas: [1, 6]\n  memory:\n    amount: 4 GiB\n",
            i + 1
        );
        text
    })
}
