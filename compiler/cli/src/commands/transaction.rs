//! A transaction that runs → what is told of it meanwhile, and how it is said to have ended.

use super::serving::{Missing, Serving};
use super::{canvas_err, canvas_out};
use crate::arguments::{self, Change, Told};
use crate::exit::{Exit, Stop, Trouble};
use crate::machine::{self, Machine};
use crate::render::changes::{Shown, changes};
use crate::render::json;
use crate::render::transaction::{self as drawn, Summary};
use crate::report::machine::{Event as Line, ShownStep, ShownTrouble, What};
use crate::terminal::{Terminal, Verbosity};
use ent_machine::apply::{Ended, Event, Means, Outcome, Report};
use ent_machine::error::ApplyError;
use ent_machine::observed::Observed;
use ent_machine::preflight::Allowed;
use ent_machine::store::{Locked, Store};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::Path;
use std::time::Duration;

/// Takes the lock on a machine's state and journal.
///
/// # Errors
/// When another entc holds it for longer than `patience`, or the folder cannot be made or written.
pub(super) fn locked(folder: &Path, patience: Duration) -> Result<Locked, Stop> {
    crate::interrupt::is_waiting();
    let command: Vec<String> = std::env::args().collect();
    Store::open(folder)
        .and_then(|store| store.lock(&command.join(" "), patience))
        .inspect(|store| crate::interrupt::has_locked(store))
        .map_err(|error| machine::store(&error).into())
}

/// What every command begins with that changes a machine without a plan.
pub(super) struct Begun {
    pub(super) machine: Machine,
    pub(super) store: Locked,
    /// Without the processes of what entc runs there, where that is to be looked after.
    pub(super) observed: Observed,
    pub(super) serving: Option<Serving>,
}

impl Begun {
    /// Opens the library, takes the lock, looks at the machine, and at what serves there, where what is to be
    /// ready again within `readiness`; without one, what serves is left alone.
    pub(super) fn on(
        machine: &arguments::Machine,
        change: &Change,
        readiness: Option<Duration>,
    ) -> Result<Self, Stop> {
        let at = Machine::of(&machine.library)?;
        let store = locked(&machine::state_folder(machine, &at.library), change.lock_timeout)?;
        let mut observed = at.observe()?;
        let serving = match readiness {
            None => None,
            Some(readiness) => {
                let serving = Serving::of(machine, &at.library, None, readiness, Missing::Leave)?;
                serving.without_ours(&mut observed);
                Some(serving)
            }
        };
        Ok(Self { machine: at, store, observed, serving })
    }
}

/// Refuses to begin where another transaction was cut off.
///
/// # Errors
/// `open-journal`, with the ways on and back.
pub(super) fn none_open(store: &Store) -> Result<(), Stop> {
    match store.journal().map_err(|error| machine::store(&error))? {
        Some(journal) if journal.is_open() => Err(Trouble::new(
            "open-journal",
            format!(
                "an earlier transaction was cut off, and its journal is open: {}",
                journal.path.display()
            ),
            "go on with `entc apply --resume`, or back with `entc rollback`",
        )
        .into()),
        _ => Ok(()),
    }
}

/// Shows the steps of a wish that is no plan: on, back, or giving the machine back.
///
/// # Errors
/// When standard output is broken.
pub(super) fn start(
    word: &'static str,
    change: &Change,
    shown: &Shown<'_>,
    terminal: &Terminal,
) -> Result<(), Stop> {
    if change.format == Told::Human {
        terminal.result(&changes(shown, &canvas_out(terminal, false, false)))?;
    } else {
        tell_line(
            terminal,
            What::Start {
                transaction: word,
                plan: None,
                node: None,
                binding: Vec::new(),
                steps: shown.changes.steps.iter().map(ShownStep::from).collect(),
            },
        );
    }
    Ok(())
}

/// What came of what was done once a transaction was over.
#[derive(Debug, Default)]
pub(super) struct After {
    /// What is wrong.
    pub(super) troubles: Vec<Trouble>,
    /// What is well, drawn.
    pub(super) text: String,
}

/// A transaction to be carried out.
pub(super) struct Run<'a> {
    /// `apply`, `resume`, `rollback`, `destroy`.
    pub(super) word: &'static str,
    /// The machine.
    pub(super) machine: &'a Machine,
    /// Its store.
    pub(super) store: &'a Locked,
    /// How.
    pub(super) change: &'a Change,
}

impl Run<'_> {
    /// Carries it out, telling on the way, and says how it ended.
    ///
    /// # Errors
    /// Never when it ended badly: that is told here, and is the exit code.
    pub(super) fn carry_out(
        &self,
        terminal: &Terminal,
        n_steps: usize,
        work: impl FnOnce(&mut Means<'_>) -> Ended,
    ) -> Exit {
        self.carry_out_then(terminal, n_steps, work, |_| After::default())
    }

    /// The same, with something to do once the machine is as it is to be, or as it was: what is said of that is
    /// part of how it ended.
    pub(super) fn carry_out_then(
        &self,
        terminal: &Terminal,
        n_steps: usize,
        work: impl FnOnce(&mut Means<'_>) -> Ended,
        then: impl FnOnce(Outcome) -> After,
    ) -> Exit {
        crate::bug::processing("journal");
        let mut teller = Teller::new(self.change.format, terminal, n_steps);
        crate::interrupt::begins();
        let (report, result) = work(&mut Means {
            driver: &self.machine.driver,
            store: self.store,
            allowed: Allowed { reset: self.change.allow_reset },
            is_privileged: self.machine.driver.is_privileged(),
            keep_going: self.change.keep_going,
            is_interrupted: &crate::interrupt::is_transaction_interrupted,
            tell: &mut |event| {
                crate::interrupt::happens(&event);
                teller.tell(&event);
            },
        });
        crate::interrupt::is_over();
        teller.finish();
        crate::interrupt::is_serving();
        let after = then(report.outcome);
        crate::interrupt::is_over();
        self.conclude(&report, result.err().as_ref(), &after, terminal)
    }

    /// Says how it ended.
    fn conclude(
        &self,
        report: &Report,
        error: Option<&ApplyError>,
        after: &After,
        terminal: &Terminal,
    ) -> Exit {
        let mut exit = exit(report.outcome, error);
        if exit == Exit::Done && !after.troubles.is_empty() {
            // The machine is as wished, and what is to run on it does not.
            exit = Exit::Partly;
        }
        let troubles = error.map(machine::failed).unwrap_or_default();
        match self.change.format {
            Told::JsonLines => {
                let shown =
                    |trouble: &Trouble| json::refusal(trouble.code, &trouble.message, Some(&trouble.help));
                let steps = |all: &[ent_machine::changes::Step]| all.iter().map(ShownStep::from).collect();
                let has_journal =
                    !report.journal.as_os_str().is_empty() && report.outcome != Outcome::Unchanged;
                tell_line(
                    terminal,
                    What::End {
                        outcome: report.outcome.into(),
                        exit_code: exit.code(),
                        done: steps(&report.done),
                        failed: steps(&report.failed),
                        not_started: steps(&report.not_started),
                        taken_back: steps(&report.taken_back),
                        journal: has_journal.then(|| report.journal.display().to_string()),
                        notes: report.notes.clone(),
                        diagnostics: troubles.iter().chain(&after.troubles).map(shown).collect(),
                    },
                );
            }
            Told::Human => {
                let summary = Summary { word: self.word, report, troubles: &troubles };
                let text = drawn::summary(&summary, &canvas_err(terminal));
                if error.is_none() {
                    // The machine is changed, whether or not anybody can read so.
                    let _ignored = terminal.result(&text);
                } else {
                    terminal.message(&text);
                }
                let _ignored = terminal.result(&after.text);
                for trouble in &after.troubles {
                    terminal.message(&super::told(trouble));
                }
            }
        }
        exit
    }
}

/// The exit code of a transaction.
pub(super) fn exit(outcome: Outcome, error: Option<&ApplyError>) -> Exit {
    match (outcome, error) {
        (Outcome::Open, _) => Exit::Partly,
        (_, None) => Exit::Done,
        (_, Some(ApplyError::Interrupted)) => Exit::Interrupted,
        (_, Some(_)) => Exit::Unchanged,
    }
}

/// Writes an event's line. A closed standard output does not stop a transaction.
pub(super) fn tell_line(terminal: &Terminal, what: What) {
    let _ignored = terminal.result(&Line::line(what));
}

/// Tells what happens: a bar on a terminal, lines elsewhere, or JSON lines.
struct Teller<'a> {
    terminal: &'a Terminal,
    is_json: bool,
    bar: Option<ProgressBar>,
}

impl<'a> Teller<'a> {
    fn new(format: Told, terminal: &'a Terminal, n_steps: usize) -> Self {
        let is_json = format == Told::JsonLines;
        let moves = !is_json && terminal.is_interactive() && terminal.verbosity == Verbosity::Normal;
        let bar = (moves && n_steps > 0).then(|| {
            let length = u64::try_from(n_steps).unwrap_or(u64::MAX);
            let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10));
            let (template, characters) = if terminal.symbols.is_unicode {
                ("{bar:24} {pos}/{len}  {msg}", "━╸─")
            } else {
                ("[{bar:24}] {pos}/{len}  {msg}", "=> ")
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars(characters));
            }
            bar
        });
        Self { terminal, is_json, bar }
    }

    fn tell(&mut self, event: &Event<'_>) {
        if self.is_json {
            tell_line(self.terminal, json_event(event));
            return;
        }
        let (line, is_failure) = drawn::event(event);
        match (&self.bar, event) {
            (Some(bar), Event::Started { number, .. }) => {
                bar.set_position(u64::try_from(number.saturating_sub(1)).unwrap_or(0));
                bar.set_message(line);
            }
            (Some(bar), Event::Finished { number, error: None, .. }) => {
                bar.set_position(u64::try_from(*number).unwrap_or(0));
            }
            (Some(bar), Event::Verifying) => bar.set_message(line),
            (Some(bar), Event::Finished { .. } | Event::GoingBack { .. }) => bar.println(line),
            (None, Event::Finished { error: None, .. }) => {}
            (None, _) => {
                if is_failure || self.terminal.verbosity > Verbosity::Quiet {
                    crate::terminal::error_line(&line);
                }
            }
        }
    }

    fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn json_event(event: &Event<'_>) -> What {
    match event {
        Event::Started { number, of, step, is_inverse } => What::StepStarted {
            number: *number,
            of: *of,
            is_inverse: *is_inverse,
            step: ShownStep::from(*step),
        },
        Event::Finished { number, step, error } => What::StepFinished {
            number: *number,
            step: ShownStep::from(*step),
            error: error.map(|error| ShownTrouble::from(&machine::device(error))),
        },
        Event::Verifying => What::Verifying,
        Event::GoingBack { reason } => What::GoingBack { reason: machine::going_back(reason) },
    }
}
