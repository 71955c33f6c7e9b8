//! Arguments → a command carried out → an exit code; one file for each command.

use crate::arguments::{Arguments, CheckFormat, Command, CompareFormat, Format, Performance, Told};
use crate::exit::{Exit, Stop, Trouble};
use crate::machine;
use crate::render::plan::{Canvas, Detail};
use crate::render::{diagnostic, json};
use crate::terminal::{Terminal, Verbosity};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use ent_machine::store::Store;
use ent_plan::diagnostic::{Diagnostic, Severity, Sources};
use std::ffi::OsString;

mod apply;
mod bench;
mod check;
mod compare;
mod deployment;
mod destroy;
mod diff;
mod doctor;
mod drift;
mod explain;
mod explore;
mod fmt;
mod import;
mod kept;
mod observe;
mod performance;
mod pictures;
mod plan;
mod planners;
mod program;
mod replay;
mod rollback;
mod schema;
mod serve;
mod serving;
mod show;
mod simulate;
mod steps;
mod top;
mod transaction;
mod wanted;

pub(crate) use bench::{BenchedService, Benchmark, Threefold};
pub(crate) use compare::{AtLoad, Comparison, Judged};
pub(crate) use replay::{Replay, ReplayedService};
pub(crate) use top::{BoardRow, ServiceRow, View};

/// Carries out a command line.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = words.collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(error) => return refuse_usage(&error, &words),
    };
    let look = arguments.look;
    let verbosity = match (look.quiet, look.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    };
    let terminal = Terminal::new(look.color, look.ascii, verbosity);
    let shape = told_as(&arguments.command);
    match dispatch(&arguments.command, &terminal) {
        Ok(exit) => exit,
        Err(stop) => {
            let world = left_by(&arguments.command, &stop);
            stopped(&stop, &terminal, shape, &world)
        }
    }
}

fn dispatch(command: &Command, terminal: &Terminal) -> Result<Exit, Stop> {
    match command {
        Command::Check(arguments) => check::run(arguments, terminal),
        Command::Fmt(arguments) => fmt::run(arguments, terminal),
        Command::Plan(arguments) => plan::run(arguments, terminal),
        Command::Show(arguments) => show::run(arguments, terminal),
        Command::Simulate(arguments) => simulate::run(arguments, terminal),
        Command::Compare(arguments) => compare::run(arguments, terminal),
        Command::Explore(arguments) => explore::run(arguments, terminal),
        Command::Observe(arguments) => observe::run(arguments, terminal),
        Command::Diff(arguments) => diff::run(arguments, terminal),
        Command::Apply(arguments) => apply::run(arguments, terminal),
        Command::Rollback(arguments) => rollback::run(arguments, terminal),
        Command::Destroy(arguments) => destroy::run(arguments, terminal),
        Command::Import(arguments) => import::run(arguments, terminal),
        Command::Drift(arguments) => drift::run(arguments, terminal),
        Command::Doctor(arguments) => doctor::run(arguments, terminal),
        Command::Serve(arguments) => serve::run(arguments, terminal),
        Command::Bench(arguments) => bench::run(arguments, terminal),
        Command::Top(arguments) => top::run(arguments, terminal),
        Command::Explain(arguments) => explain::run(arguments, terminal),
        Command::Schema(arguments) => schema::run(arguments, terminal),
        Command::Performance(Performance::Fit(arguments)) => performance::fit(arguments, terminal),
        Command::Performance(Performance::Show(arguments)) => performance::show(arguments, terminal),
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            clap_complete::generate(arguments.shell, &mut Arguments::command(), "entc", &mut script);
            terminal.result(&String::from_utf8_lossy(&script))?;
            Ok(Exit::Done)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
            terminal.result(&String::from_utf8_lossy(&page))?;
            Ok(Exit::Done)
        }
    }
}

/// How a command that stops early says so, beside the words on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Not at all.
    None,
    /// As a report of diagnostics.
    Report,
    /// As the last of its JSON lines.
    Line,
}

fn told_as(command: &Command) -> Shape {
    let report = |is_json: bool| if is_json { Shape::Report } else { Shape::None };
    let line = |told: Told| if told == Told::JsonLines { Shape::Line } else { Shape::None };
    match command {
        Command::Check(arguments) => report(arguments.format == CheckFormat::Json),
        Command::Plan(arguments) => report(arguments.format == Format::Json),
        Command::Show(arguments) => report(arguments.format == Format::Json),
        Command::Simulate(arguments) => report(arguments.format == Format::Json),
        Command::Compare(arguments) => report(arguments.format == CompareFormat::Json),
        Command::Explore(arguments) => report(arguments.format == Format::Json),
        Command::Performance(Performance::Show(arguments)) => report(arguments.format == Format::Json),
        Command::Observe(arguments) => report(arguments.format == Format::Json),
        Command::Diff(arguments) => report(arguments.format == Format::Json),
        Command::Import(arguments) => report(arguments.format == Format::Json),
        Command::Drift(arguments) => report(arguments.format == Format::Json),
        Command::Doctor(arguments) => report(arguments.format == Format::Json),
        Command::Serve(arguments) => report(arguments.format == Format::Json),
        Command::Bench(arguments) => report(arguments.format == Format::Json),
        Command::Apply(arguments) => line(arguments.change.format),
        Command::Rollback(arguments) => line(arguments.change.format),
        Command::Destroy(arguments) => line(arguments.change.format),
        Command::Fmt(_)
        | Command::Top(_)
        | Command::Explain(_)
        | Command::Schema(_)
        | Command::Performance(Performance::Fit(_))
        | Command::Completions(_)
        | Command::Man => Shape::None,
    }
}

/// How the machine is that the world kept a command from changing.
enum World {
    /// The command changes no machine.
    Read,
    /// As it was, and whole.
    Unchanged,
    /// As it was, which is half way.
    HalfWay(machine::HalfWay),
}

/// Looks how the machine of a command is left that was kept from changing it.
fn left_by(command: &Command, stop: &Stop) -> World {
    let arguments = match command {
        Command::Apply(arguments) => &arguments.machine,
        Command::Rollback(arguments) => &arguments.machine,
        Command::Destroy(arguments) => &arguments.machine,
        Command::Import(arguments) => &arguments.machine,
        Command::Check(_)
        | Command::Fmt(_)
        | Command::Plan(_)
        | Command::Show(_)
        | Command::Simulate(_)
        | Command::Compare(_)
        | Command::Explore(_)
        | Command::Observe(_)
        | Command::Diff(_)
        | Command::Drift(_)
        | Command::Doctor(_)
        | Command::Serve(_)
        | Command::Bench(_)
        | Command::Top(_)
        | Command::Explain(_)
        | Command::Schema(_)
        | Command::Performance(_)
        | Command::Completions(_)
        | Command::Man => return World::Read,
    };
    // The journal of another entc that is at work is open, and not cut off.
    let is_at_work = matches!(stop, Stop::World(all) if all.iter().any(|trouble| trouble.code == "locked"));
    let store = machine::choose(&arguments.library).map(|library| machine::store_of(arguments, &library));
    match store.ok().as_ref().and_then(machine::half_way) {
        Some(left) if !is_at_work => World::HalfWay(left),
        _ => World::Unchanged,
    }
}

/// Help and version are results; all else is a mistake, with exit code 1 and not clap's 2.
fn refuse_usage(error: &clap::Error, words: &[OsString]) -> Exit {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let asks = |format: &str| {
        words.windows(2).any(|pair| matches!(pair, [a, b] if a == "--format" && b == format))
            || words.iter().any(|word| *word == *format!("--format={format}"))
    };
    let is_line = ["apply", "rollback", "destroy"].iter().any(|name| words.iter().any(|word| word == name));
    if (asks("json") || asks("json-lines")) && !is_help {
        let text = error.render().to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let shown = vec![json::refusal("usage", &message, Some("run `entc --help`"))];
        let terminal = Terminal::new(crate::terminal::Color::Never, false, Verbosity::Normal);
        let text = match is_line {
            true => crate::report::machine::Event::refused(Exit::Wrong.code(), None, shown),
            false => json::Report::new(shown).text(),
        };
        let _ignored = terminal.result(&text);
    }
    // clap writes to the right stream, with colour where it may; a closed stream is not an error.
    let _ignored = error.print();
    if is_help { Exit::Done } else { Exit::Wrong }
}

/// Says why a command that asks for nothing of the world stopped.
fn report(stop: &Stop, terminal: &Terminal) -> Exit {
    stopped(stop, terminal, Shape::None, &World::Read)
}

/// Says why a command stopped, and how the machine is where the world stands in the way.
fn stopped(stop: &Stop, terminal: &Terminal, shape: Shape, world: &World) -> Exit {
    let (mut exit, mut journal) = (Exit::Wrong, None);
    let shown = match stop {
        Stop::Diagnostics { sources, diagnostics } => {
            tell(terminal, sources, diagnostics);
            json::diagnostics(sources, diagnostics)
        }
        Stop::Refused { code, message, help } => {
            let help_line = help.as_ref().map_or(String::new(), |help| format!("  help: {help}\n"));
            terminal.message(&format!("error[{code}]: {message}\n{help_line}"));
            vec![json::refusal(code, message, help.as_deref())]
        }
        Stop::World(troubles) => {
            let words: String = troubles.iter().map(told).collect();
            let now = match world {
                World::Read => String::new(),
                World::Unchanged => {
                    exit = Exit::Unchanged;
                    "  now:  nothing was changed\n".to_owned()
                }
                World::HalfWay(left) => {
                    (exit, journal) = (Exit::Partly, Some(left.journal.as_path()));
                    format!("  now:  as before this command, {}\n", left.words)
                }
            };
            terminal.message(&format!("{words}{now}"));
            troubles.iter().map(|t| json::refusal(t.code, &t.message, Some(&t.help))).collect()
        }
        Stop::Output(error) => {
            let why = crate::write::reason(error);
            terminal.message(&format!("error[cannot-write]: cannot write standard output: {why}\n"));
            return Exit::Wrong;
        }
    };
    let _ignored = match shape {
        Shape::None => Ok(()),
        Shape::Report => terminal.result(&json::Report::new(shown).text()),
        Shape::Line => terminal.result(&crate::report::machine::Event::refused(exit.code(), journal, shown)),
    };
    exit
}

/// One thing that stands in the way, in words.
fn told(trouble: &Trouble) -> String {
    let help = trouble.help.replace('\n', "\n        ");
    format!("error[{}]: {}\n  help: {help}\n", trouble.code, trouble.message)
}

/// Warns of what does not stop the command.
fn warn(trouble: &Trouble, terminal: &Terminal) {
    terminal.message(&told(trouble).replacen("error[", "warning[", 1));
}

/// Warns where a transaction was cut off: what is shown is of a machine half way.
fn warn_if_open(store: &Store, terminal: &Terminal) -> Result<(), Stop> {
    let journal = store.journal().map_err(|error| machine::store(&error))?;
    if journal.is_some_and(|journal| journal.is_open()) {
        warn_of_open(terminal);
    }
    Ok(())
}

/// Warns that a transaction was cut off.
fn warn_of_open(terminal: &Terminal) {
    terminal.message(
        "warning[open-journal]: a transaction was cut off half way\n  \
         help: go on with `entc apply --resume`, or back with `entc rollback`\n",
    );
}

/// Draws diagnostics on standard error; warnings only where they are wanted.
fn tell(terminal: &Terminal, sources: &Sources, diagnostics: &[Diagnostic]) {
    let is_wanted = |d: &&Diagnostic| d.severity == Severity::Error || terminal.verbosity > Verbosity::Quiet;
    let wanted: Vec<Diagnostic> = diagnostics.iter().filter(is_wanted).cloned().collect();
    if !wanted.is_empty() {
        terminal.message(&diagnostic::diagnostics(sources, &wanted, &canvas_err(terminal)));
    }
}

/// What messages are drawn on.
fn canvas_err(terminal: &Terminal) -> Canvas {
    Canvas {
        width: terminal.width_err,
        color: terminal.color_err,
        symbols: terminal.symbols,
        detail: Detail::Boards,
    }
}

/// What results are drawn on.
fn canvas_out(terminal: &Terminal, explain: bool, summary: bool) -> Canvas {
    let detail = match (explain, summary) {
        (true, _) => Detail::Explain,
        (false, true) => Detail::Summary,
        (false, false) => Detail::Boards,
    };
    Canvas { width: terminal.width, color: terminal.color_out, symbols: terminal.symbols, detail }
}
