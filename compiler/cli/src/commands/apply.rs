//! `entc apply`: plan (or spec → plan) and machine → the machine as planned, or as it was.
//!
//! A plan file is applied as it is. A spec is planned, shown, and applied after a `yes`.

use super::canvas_out;
use super::kept;
use super::steps::{Steps, Strictness};
use super::transaction::{Begun, Run, locked, none_open, start, tell_line};
use super::wanted::{Asked, Wanted};
use crate::arguments::{Apply, Told};
use crate::exit::{Exit, Stop, Trouble};
use crate::machine::{self, Machine};
use crate::render::{self, changes::Shown};
use crate::report::machine::{ShownStep, What, bound};
use crate::terminal::{Terminal, Verbosity};
use ent_machine::apply::{Request, apply};
use ent_machine::journal::Transaction;
use ent_machine::persist;
use ent_machine::preflight::{Allowed, blast_radius};
use ent_machine::resume;
use ent_machine::store::Locked;
use std::io::IsTerminal;

/// Applies.
pub(super) fn run(arguments: &Apply, terminal: &Terminal) -> Result<Exit, Stop> {
    crate::interrupt::listen();
    if arguments.persist {
        can_persist(arguments)?;
    }
    if arguments.resume {
        return go_on(arguments, terminal);
    }
    match &arguments.file {
        Some(file) => wanted(file, arguments, terminal),
        None => again(arguments, terminal),
    }
}

/// A plan file or a spec.
fn wanted(file: &str, arguments: &Apply, terminal: &Terminal) -> Result<Exit, Stop> {
    let is_told = arguments.change.format == Told::Human;
    let asked = Asked {
        file,
        question: &arguments.question,
        who: &arguments.who,
        machine: &arguments.machine,
        node: arguments.node.node.as_deref(),
        is_applied: true,
        is_drawn: is_told,
    };
    let needs_yes = !asked.is_saved() && !arguments.auto_approve;
    if needs_yes && !(is_told && std::io::stdin().is_terminal()) {
        return Err(Stop::Refused {
            code: "usage",
            message: "the plan of a spec is applied after a `yes`, and there is nobody to ask".to_owned(),
            help: Some(
                "apply without asking with `--auto-approve`, or plan with `entc plan FILE -o plan.json` and apply that"
                    .to_owned(),
            ),
        });
    }
    let wanted = match asked.answer(terminal)? {
        Ok(wanted) => wanted,
        Err(exit) => return Ok(exit),
    };
    carry_out(wanted, needs_yes, Strictness::AsPlanned, arguments, terminal)
}

/// The plan that was applied last, once more.
fn again(arguments: &Apply, terminal: &Terminal) -> Result<Exit, Stop> {
    let machine = Machine::of(&arguments.machine.library)?;
    let observed = machine.observe()?;
    let store = machine::store_of(&arguments.machine, &machine.library);
    let (plan, node) = kept::last(&store)?;
    let wanted = Wanted { plan, node, machine, observed };
    carry_out(wanted, false, Strictness::AnyState, arguments, terminal)
}

/// Under the lock: looks again, shows the steps, asks where it must, and takes them.
fn carry_out(
    mut wanted: Wanted,
    needs_yes: bool,
    strictness: Strictness,
    arguments: &Apply,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let folder = machine::state_folder(&arguments.machine, &wanted.machine.library);
    let store = locked(&folder, arguments.change.lock_timeout)?;
    none_open(&store)?;
    // Planning took its time; what was seen before the lock is of no worth.
    wanted.observed = wanted.machine.observe()?;
    let state = store.state().map_err(|error| machine::store(&error))?;
    let allowed = Allowed { reset: arguments.change.allow_reset };
    let steps = Steps::between(&wanted, &state, allowed, strictness)?;
    let is_told = arguments.change.format == Told::Human;
    if is_told {
        // What would be refused is refused right after, in full.
        let shown = Shown { refusals: &[], ..steps.shown(&wanted) };
        let text = render::changes::changes(&shown, &canvas_out(terminal, false, false));
        terminal.result(&text)?;
    }
    if !steps.refusals.is_empty() {
        return Err(Stop::World(steps.refusals));
    }
    let n_steps = steps.changes.steps.len();
    if needs_yes && n_steps > 0 && !is_yes(n_steps, terminal) {
        terminal.message("not applied: nothing was changed\n");
        return Ok(Exit::Unchanged);
    }
    kept::keep(&store, &state, &wanted.plan)?;
    let checksum = wanted.plan.plan().checksum.clone();
    if !is_told {
        tell_line(
            terminal,
            What::Start {
                transaction: "apply",
                plan: checksum.clone(),
                node: Some(wanted.node.clone()),
                binding: bound(&steps.binding),
                steps: steps.changes.steps.iter().map(ShownStep::from).collect(),
            },
        );
    }
    let run = Run { word: "apply", machine: &wanted.machine, store: &store, change: &arguments.change };
    let exit = run.carry_out(terminal, n_steps, |means| {
        let request = Request {
            transaction: Transaction::Apply,
            plan: checksum.as_deref(),
            node: Some(&wanted.node),
            observed: &wanted.observed,
            target: &steps.binding.target,
            changes: &steps.changes,
        };
        apply(means, &request)
    });
    Ok(if exit == Exit::Done { persisted(arguments, &wanted.machine, &store, terminal) } else { exit })
}

/// Asks. Only the whole word is a yes; an end of input is none.
fn is_yes(n_steps: usize, terminal: &Terminal) -> bool {
    let steps = if n_steps == 1 { "this step".to_owned() } else { format!("these {n_steps} steps") };
    ask(&format!("Take {steps}? Only `yes` is taken for one: "), terminal)
}

/// Asks a question on the terminal.
pub(super) fn ask(question: &str, terminal: &Terminal) -> bool {
    crate::interrupt::is_waiting();
    terminal.message(question);
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}

/// Goes on with a transaction that was cut off.
fn go_on(arguments: &Apply, terminal: &Terminal) -> Result<Exit, Stop> {
    let Begun { machine, store, observed } = Begun::on(&arguments.machine, &arguments.change)?;
    let state = store.state().map_err(|error| machine::store(&error))?;
    let changes = resume::preview(&store, &observed).map_err(|error| Stop::World(machine::failed(&error)))?;
    let radius = blast_radius(&changes, &observed, &state.on(&observed));
    let shown = Shown::alone("what was left to do", &changes, &observed, &radius);
    start("resume", &arguments.change, &shown, terminal)?;
    let run = Run { word: "resume", machine: &machine, store: &store, change: &arguments.change };
    Ok(run.carry_out(terminal, changes.steps.len(), resume::resume))
}

/// Refuses a unit that could not be installed, before anything is changed.
fn can_persist(arguments: &Apply) -> Result<(), Stop> {
    let unit = arguments.unit_dir.join(persist::UNIT);
    crate::write::possible(&unit).map_err(|_| {
        Trouble::new(
            "cannot-write",
            format!("the unit `{}` cannot be written", unit.display()),
            "run it as root, or name another folder with `--unit-dir DIR`",
        )
        .into()
    })
}

/// Installs the unit where it is asked for. The machine is as planned whether or not that works.
fn persisted(arguments: &Apply, machine: &Machine, store: &Locked, terminal: &Terminal) -> Exit {
    if !arguments.persist {
        return Exit::Done;
    }
    match persist::install(&arguments.unit_dir, &reassertion(arguments, machine, store)) {
        Ok(path) => {
            if terminal.verbosity > Verbosity::Quiet {
                terminal.message(&format!("installed {}: applied again after every boot\n", path.display()));
            }
            Exit::Done
        }
        Err(error) => {
            let trouble = machine::persistence(&error);
            terminal.message(&super::told(&trouble));
            Exit::Wrong
        }
    }
}

/// The command that the unit runs.
fn reassertion(arguments: &Apply, machine: &Machine, store: &Locked) -> Vec<String> {
    let path = |path: &std::path::Path| {
        std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
    };
    let executable = std::env::current_exe().map_or_else(|_| "entc".to_owned(), |own| path(&own));
    let mut words = vec![executable, "apply".to_owned(), "--reassert".to_owned(), "--nvml".to_owned()];
    match &machine.library {
        ent_machine::Library::System => words.push("system".to_owned()),
        ent_machine::Library::Path(library) => words.push(path(library)),
        ent_machine::Library::Simulated { library, state } => {
            words.extend([path(library), "--sim-state".to_owned(), path(state)]);
        }
    }
    words.extend(["--state".to_owned(), path(store.folder())]);
    if arguments.change.allow_reset {
        words.push("--allow-reset".to_owned());
    }
    words
}
