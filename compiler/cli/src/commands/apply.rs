//! `entc apply`: plan (or spec → plan) and machine → the machine as planned, or as it was.
//!
//! A plan file is applied as it is. A spec is planned, shown, and applied after a `yes`.

use super::canvas_out;
use super::deployment::{Artifacts, artifacts, can_run, deployment};
use super::kept;
use super::serve::{can_start, command, unheeded};
use super::serving::{Missing, Serving, last_artifacts, settle};
use super::steps::{Steps, Strictness};
use super::transaction::{Begun, Run, locked, none_open, start, tell_line};
use super::wanted::{Asked, Wanted};
use crate::arguments::{Apply, Told};
use crate::exit::{Exit, Stop, Trouble};
use crate::machine::{self, Machine};
use crate::render::{self, changes::Shown};
use crate::report::machine::{ShownStep, What, bound};
use crate::terminal::{Terminal, Verbosity};
use ent_machine::apply::{Outcome, Request, apply};
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
    let artifacts = artifacts(wanted.plan.plan());
    carry_out(wanted, &artifacts, needs_yes, Strictness::AsPlanned, arguments, terminal)
}

/// The plan that was applied last, once more.
fn again(arguments: &Apply, terminal: &Terminal) -> Result<Exit, Stop> {
    let machine = Machine::of(&arguments.machine.library)?;
    let observed = machine.observe()?;
    let store = machine::store_of(&arguments.machine, &machine.library);
    let (plan, node) = kept::last(&store)?;
    let wanted = Wanted { plan, node, machine, observed };
    let kept = last_artifacts(store.folder());
    let artifacts = if kept.is_empty() { artifacts(wanted.plan.plan()) } else { kept };
    carry_out(wanted, &artifacts, false, Strictness::AnyState, arguments, terminal)
}

/// Under the lock: looks again, shows the steps, asks where it must, and takes them.
fn carry_out(
    mut wanted: Wanted,
    artifacts: &Artifacts,
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
    let serving = if arguments.no_serve {
        None
    } else {
        let library = &wanted.machine.library;
        let gateway = &arguments.gateway;
        let missing = if arguments.deploy_only { Missing::WriteDown } else { Missing::Start };
        let serving = Serving::of(&arguments.machine, library, Some(gateway), gateway.readiness, missing)?;
        serving.without_ours(&mut wanted.observed);
        can_run(wanted.plan.plan(), &wanted.node, artifacts, &wanted.observed)?;
        match &serving.before {
            None if missing == Missing::Start => can_start(gateway)?,
            None => {}
            Some(status) => {
                let unheeded = unheeded(gateway, status);
                if !unheeded.is_empty() {
                    terminal.message(&format!(
                        "warning: {} not heeded: the gateway that runs stays as it was started; to change that, \
                         `entc serve drain`, and apply again\n",
                        unheeded.join(" and ")
                    ));
                }
            }
        }
        Some(serving)
    };
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
    let is_change = n_steps > 0
        || serving.as_ref().is_some_and(|serving| {
            // Without steps the machine is what it will be, and so what would run is known.
            let plan = wanted.plan.plan();
            let made = deployment(plan, &wanted.node, &wanted.observed, &state, artifacts);
            made.map_or(true, |made| serving.would_change(&made))
        });
    if needs_yes && is_change && !is_yes(n_steps, terminal) {
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
    if let Some(serving) = &serving {
        serving.vacate(&steps.changes, terminal)?;
    }
    let run = Run { word: "apply", machine: &wanted.machine, store: &store, change: &arguments.change };
    let work = |means: &mut ent_machine::apply::Means<'_>| {
        let request = Request {
            transaction: Transaction::Apply,
            plan: checksum.as_deref(),
            node: Some(&wanted.node),
            observed: &wanted.observed,
            target: &steps.binding.target,
            changes: &steps.changes,
        };
        apply(means, &request)
    };
    let then = |outcome| match (&serving, outcome) {
        (Some(serving), Outcome::Done) => {
            serving.after(wanted.plan.plan(), &wanted.node, &run, artifacts, terminal)
        }
        _ => settle(serving.as_ref(), outcome, &run, terminal),
    };
    let exit = run.carry_out_then(terminal, n_steps, work, then);
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
    let Begun { machine, store, observed, serving } = Begun::on(
        &arguments.machine,
        &arguments.change,
        (!arguments.no_serve).then_some(arguments.gateway.readiness),
    )?;
    let state = store.state().map_err(|error| machine::store(&error))?;
    let changes = resume::preview(&store, &observed).map_err(|error| Stop::World(machine::failed(&error)))?;
    let radius = blast_radius(&changes, &observed, &state.on(&observed));
    let shown = Shown::alone("what was left to do", &changes, &observed, &radius);
    start("resume", &arguments.change, &shown, terminal)?;
    if let Some(serving) = &serving {
        serving.vacate(&changes, terminal)?;
    }
    let run = Run { word: "resume", machine: &machine, store: &store, change: &arguments.change };
    let then = |outcome| settle(serving.as_ref(), outcome, &run, terminal);
    Ok(run.carry_out_then(terminal, changes.steps.len(), resume::resume, then))
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
    let folder = &arguments.unit_dir;
    let serve = || {
        let words = command(&arguments.machine, &machine.library, &arguments.gateway, false);
        let words: Vec<String> = words.into_iter().map(|w| w.to_string_lossy().into_owned()).collect();
        persist::install_serving(folder, &words)
    };
    let installed = persist::install(folder, &reassertion(arguments, machine, store))
        .and_then(|path| if arguments.no_serve { Ok(vec![path]) } else { Ok(vec![path, serve()?]) });
    match installed {
        Ok(paths) => {
            if terminal.verbosity > Verbosity::Quiet {
                let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
                let what = if arguments.no_serve { "applied" } else { "applied and served" };
                terminal
                    .message(&format!("installed {}: {what} again after every boot\n", paths.join(" and ")));
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
    // Another unit serves.
    words.push(if arguments.no_serve { "--no-serve" } else { "--deploy-only" }.to_owned());
    words
}
