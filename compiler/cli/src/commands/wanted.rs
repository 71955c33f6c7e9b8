//! A plan file, or a spec that is planned first, and a machine → what is wanted of that machine.

use super::plan::{Limits, Made, Site, has_boards, make};
use super::planners::{Given, Who, is_plan, nothing_asked};
use super::program::{asked, performance};
use super::{canvas_err, canvas_out, show, tell};
use crate::arguments::{self, Question};
use crate::exit::{Exit, Stop};
use crate::machine::{self, Machine};
use crate::render;
use crate::terminal::Terminal;
use ent_machine::observed::Observed;
use ent_plan::diagnostic::{Code, Severity, Sources};
use ent_plan::plan::{CheckedPlan, check, seal};

/// What is wanted of a machine.
pub(super) struct Wanted {
    /// The plan, with a checksum if it is to be applied.
    pub(super) plan: CheckedPlan,
    /// The machine's node in it.
    pub(super) node: String,
    /// The machine.
    pub(super) machine: Machine,
    /// What it was when it was looked at.
    pub(super) observed: Observed,
}

/// What the command line says of it.
pub(super) struct Asked<'a> {
    /// A plan or a spec.
    pub(super) file: &'a str,
    /// What is asked of a spec.
    pub(super) question: &'a Question,
    /// Who plans a spec.
    pub(super) who: &'a arguments::Who,
    /// Which machine.
    pub(super) machine: &'a arguments::Machine,
    /// Which node.
    pub(super) node: Option<&'a str>,
    /// Whether it is to be applied: a plan must then be sealed, and a simulated machine is made where there
    /// is none.
    pub(super) is_applied: bool,
    /// Whether a plan that is made here is drawn.
    pub(super) is_drawn: bool,
}

impl Asked<'_> {
    /// Whether it is a saved plan.
    pub(super) fn is_saved(&self) -> bool {
        is_plan(self.file)
    }

    /// Reads or plans.
    ///
    /// # Errors
    /// Everything that is wrong with the files or the machine; the inner exit code where there is no plan.
    pub(super) fn answer(&self, terminal: &Terminal) -> Result<Result<Wanted, Exit>, Stop> {
        if self.is_saved() { self.saved(terminal).map(Ok) } else { self.planned(terminal) }
    }

    fn saved(&self, terminal: &Terminal) -> Result<Wanted, Stop> {
        nothing_asked(self.question, self.who)?;
        let saved = show::read(self.file)?;
        let plan = if self.is_applied {
            saved.sealed()?
        } else {
            saved.warn(terminal);
            saved.plan
        };
        if !has_boards(plan.plan().status) {
            let label = "its planner found none; it says why in `diagnostics`";
            let help = "change the spec and plan again";
            return Err(Stop::about_file(
                Code::InvalidPlan,
                self.file,
                "there is no plan in it",
                label,
                help,
            ));
        }
        let node = machine::this_node(&machine::of_plan(plan.plan()), self.node)?;
        let library = machine::choose(&self.machine.library)?;
        if self.is_applied
            && let Some((board, count)) = machine::boards_of(plan.plan(), &node)
        {
            machine::make_if_missing(&library, &board, count)?;
        }
        let machine = machine::open(library)?;
        let observed = machine.observe()?;
        Ok(Wanted { plan, node, machine, observed })
    }

    fn planned(&self, terminal: &Terminal) -> Result<Result<Wanted, Exit>, Stop> {
        crate::interrupt::listen();
        let who = Who::asked(self.who)?;
        let mut compiled = asked(self.file, self.question)?;
        let given = Given::read(&self.who.published, compiled.latency_rule(), &[who])?;
        let site = Site::of(&compiled, &self.machine.library, self.node, self.is_applied)?;
        let performance = performance(&mut compiled, self.question.table.as_deref())?;
        let time_limit = self.question.time_limit.as_secs_f64();
        let limits = Limits { gap: 0.0, time_limit, node_limit: None };
        let mut made = make(who, &given, &mut compiled, &performance, &limits, terminal)?;
        site.write_into(&mut made.plan);
        seal(&mut made.plan);
        if made.is_interrupted {
            return Ok(Err(Exit::Interrupted));
        }
        let Some(plan) = self.judged(made, &compiled.sources, terminal)? else { return Ok(Err(Exit::Wrong)) };
        Ok(Ok(Wanted { plan, node: site.node, machine: site.machine, observed: site.observed }))
    }

    /// The plan if there is one that holds, drawn; else why not, told.
    fn judged(
        &self,
        made: Made,
        sources: &Sources,
        terminal: &Terminal,
    ) -> Result<Option<CheckedPlan>, Stop> {
        let seconds = Some(made.seconds);
        let has_errors = made.diagnostics.iter().any(|d| d.severity == Severity::Error);
        if !has_boards(made.plan.status) || has_errors {
            terminal.message(&render::plan::status(&made.plan, seconds, &canvas_err(terminal)));
            tell(terminal, sources, &made.diagnostics);
            return Ok(None);
        }
        if self.is_drawn {
            let canvas = canvas_out(terminal, false, false);
            terminal.result(&(render::plan::plan(&made.plan, seconds, &canvas) + "\n"))?;
        } else {
            tell(terminal, sources, &made.diagnostics);
        }
        Ok(check(made.plan).ok())
    }
}
