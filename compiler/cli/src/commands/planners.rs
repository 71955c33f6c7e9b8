//! A planner's name → whoever plans by it: entc's own planners and the published ones, in one list.

use crate::arguments::{Published, Question, Who as Planners};
use crate::exit::Stop;
use ent_lang::Program;
use ent_performance::PerformanceSet;
use ent_plan::diagnostic::Outcome;
use ent_plan::plan::{Fault, LatencyRule, Plan, Sharing, check};
use ent_planner::Planner;
use ent_planner::published::fgd::FgdInput;
use ent_planner::published::{
    Interference, Mode, Request, Utilisation, enertune, fgd, gpulets, parvagpu, shared_by_mps, usher,
};

/// A published planner.
#[derive(Debug)]
pub(super) struct Original {
    /// Its name.
    pub(super) name: &'static str,
    /// How it shares boards that the spec lets be cut by MIG.
    sharing: Sharing,
    plan: fn(&Program, &PerformanceSet, &Given) -> Outcome<Plan>,
}

/// The published planners. Another one is another line.
static ORIGINALS: &[Original] = &[
    Original {
        name: enertune::NAME,
        sharing: Sharing::Mig,
        plan: |program, performance, given| enertune::plan(program, performance, given.request()),
    },
    Original {
        name: parvagpu::NAME,
        sharing: Sharing::Mig,
        plan: |program, performance, given| parvagpu::plan(program, performance, given.request()),
    },
    Original {
        name: gpulets::NAME,
        sharing: Sharing::Mps,
        plan: |program, performance, given| {
            gpulets::plan(program, performance, given.interference.as_ref(), given.asked())
        },
    },
    Original {
        name: usher::NAME,
        sharing: Sharing::Mps,
        plan: |program, performance, given| {
            usher::plan(program, performance, given.interference.as_ref(), given.asked())
        },
    },
    Original {
        name: fgd::NAME,
        sharing: Sharing::Mig,
        plan: |program, performance, given| {
            fgd::plan(program, performance, given.request(), &FgdInput::default())
        },
    },
];

/// What published planners are given beside the program and its performance.
#[derive(Debug)]
pub(super) struct Given {
    /// How faithfully to decide.
    pub(super) mode: Mode,
    rule: LatencyRule,
    interference: Option<Interference>,
}

impl Given {
    /// Reads what the command line names.
    ///
    /// # Errors
    /// What is wrong with the file of utilisations; `usage` for what none of the planners heeds.
    pub(super) fn read(arguments: &Published, rule: LatencyRule, planners: &[Who]) -> Result<Self, Stop> {
        let is_original = |who: &Who| matches!(who, Who::Published(_));
        if arguments.conformant && !planners.iter().any(is_original) {
            let originals: Vec<&str> = ORIGINALS.iter().map(|original| original.name).collect();
            return Err(Stop::Refused {
                code: "usage",
                message: "entc's own planners have no original that `--conformant` could follow".to_owned(),
                help: Some(format!("leave it out, or plan with one of: {}", originals.join(", "))),
            });
        }
        let mode = if arguments.conformant { Mode::Conformant } else { Mode::Native };
        let interference = arguments.utilisation.as_deref().map(interference).transpose()?;
        Ok(Self { mode, rule, interference })
    }

    fn request(&self) -> Request {
        Request { mode: self.mode, metric: None, rule: self.rule }
    }

    fn asked(&self) -> Request {
        Request { mode: self.mode, metric: None, rule: self.rule }
    }
}

/// Reads how much of a board each model uses. The slowdown's constants are those that EnerTune measured on
/// the A100 for its GPUlets and Usher.
fn interference(name: &str) -> Result<Interference, Stop> {
    let text = crate::load::text(name)?;
    let mut sources = ent_plan::diagnostic::Sources::default();
    let file = sources.add(name, text.as_str());
    let outcome = ent_performance::import::utilisation(&text, file);
    if outcome.has_errors() {
        return Err(Stop::Diagnostics { sources, diagnostics: outcome.diagnostics });
    }
    let row = |u: ent_performance::import::ModelUtilisation| Utilisation {
        model: u.model,
        batch: u.batch,
        compute: u.compute,
        l2: u.l2,
        memory: u.memory,
    };
    Ok(Interference {
        utilisation: outcome.value.into_iter().map(row).collect(),
        // Code-Tomato/glet and UsherRemake, the interference constants for the A100.
        constants: [
            -0.152_892_374_829_47,
            0.078_927_324_324_95,
            0.091_284_972_348_732,
            -0.072_849_273_482_937_48,
            1.032_839_728_347_3,
        ],
    })
}

/// Whoever plans.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// A planner of entc's own.
    Own(Planner),
    /// A published one.
    Published(&'static Original),
}

impl Who {
    /// All planners, in the order in which they are shown.
    pub(super) fn all() -> Vec<Self> {
        Planner::ALL.into_iter().map(Self::Own).chain(ORIGINALS.iter().map(Self::Published)).collect()
    }

    /// The planner that the command line asks for: entc's own that proves, unless it names one.
    ///
    /// # Errors
    /// As [`Self::named`].
    pub(super) fn asked(arguments: &Planners) -> Result<Self, Stop> {
        arguments.planner.as_deref().map_or(Ok(Self::Own(Planner::Optimal)), Self::named)
    }

    /// The planner with this name.
    ///
    /// # Errors
    /// `unknown-planner`, with all names.
    pub(super) fn named(word: &str) -> Result<Self, Stop> {
        let word = word.trim();
        Self::all().into_iter().find(|who| who.name() == word).ok_or_else(|| {
            let words: Vec<&str> = Self::all().into_iter().map(Self::name).collect();
            Stop::Refused {
                code: "unknown-planner",
                message: format!("there is no planner `{word}`"),
                help: Some(format!("use one of: {}", words.join(", "))),
            }
        })
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Own(planner) => planner.word(),
            Self::Published(original) => original.name,
        }
    }
}

impl Original {
    /// Its plan, and the program that the plan is to be verified against: the one given, with its boards
    /// shared as this planner shares them.
    pub(super) fn plan(
        &self,
        program: &Program,
        performance: &PerformanceSet,
        given: &Given,
    ) -> (Outcome<Plan>, Option<Program>) {
        let outcome = (self.plan)(program, performance, given);
        (outcome, (self.sharing == Sharing::Mps).then(|| shared_by_mps(program)))
    }
}

/// In what a plan does not hold: by itself, and by its program and performance data.
pub(super) fn faults(program: &Program, performance: &PerformanceSet, plan: &Plan) -> Vec<Fault> {
    let mut all = check(plan.clone()).err().unwrap_or_default();
    for fault in ent_performance::verify(program, performance, plan) {
        let is_known = |known: &Fault| known.place == fault.place && known.message == fault.message;
        if !all.iter().any(is_known) {
            all.push(fault);
        }
    }
    all
}

/// Whether the user names a saved plan, and not a spec to be planned.
pub(super) fn is_plan(file: &str) -> bool {
    file == "-" || file.to_lowercase().ends_with(".json")
}

/// Refuses what is asked of a spec where there is none.
///
/// # Errors
/// `usage` when anything is asked.
pub(super) fn nothing_asked(question: &Question, who: &Planners) -> Result<(), Stop> {
    let asks = !question.settings.is_empty()
        || question.minimize.is_some()
        || question.latency_rule.is_some()
        || question.table.is_some()
        || who.planner.is_some()
        || who.published.conformant
        || who.published.utilisation.is_some();
    if asks {
        return Err(Stop::Refused {
            code: "usage",
            message: "a saved plan is not planned again".to_owned(),
            help: Some("give the spec to ask another question of it, or another planner".to_owned()),
        });
    }
    Ok(())
}
