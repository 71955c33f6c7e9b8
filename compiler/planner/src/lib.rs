//! Program + performance → Plan: formulate, solve, emit.
//!
//! Pure: no I/O, no clock, no global state. The same program, options and node limit give the same plan,
//! byte for byte; a time limit is measured by the caller's `elapsed`.

// Indices here come from the same structure they index; a wrong one is a bug, caught as one.
#![expect(clippy::indexing_slicing, reason = "indices are made by the structures they index")]

mod assemble;
mod emit;
pub mod explain;
pub mod formulate;
pub mod lp;
pub mod problem;
pub mod published;
pub mod solve;
mod weights;

pub use formulate::{alone, formulate};
pub use lp::lp;
pub use problem::{Problem, Solution};
pub use solve::{Control, Progress, SolverFault};

use assemble::Making;
use ent_lang::Program;
use ent_performance::operate::mean_dynamic_power;
use ent_performance::{PerformanceSet, PointKey};
use ent_plan::diagnostic::{Code, Diagnostic, Outcome, Severity};
use ent_plan::plan::{LatencyRule, Metric, Plan};
use formulate::points::Care;
use problem::{Assignment, ClassWeights, LimitRow, Weights};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Who plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// Proven optimal, as far as the limits allow, on HiGHS.
    #[default]
    Optimal,
    /// Fast, without a solver, without a bound.
    Greedy,
}

impl Planner {
    /// All planners.
    pub const ALL: [Self; 2] = [Self::Optimal, Self::Greedy];

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Optimal => "optimal",
            Self::Greedy => "greedy",
        }
    }
}

/// What to plan for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanOptions {
    /// Who plans.
    pub planner: Planner,
    /// What to minimise, in place of the program's own.
    pub metric: Option<Metric>,
    /// Which latency promises are about.
    pub rule: LatencyRule,
}

/// Plans a program. The plan's status says whether there is one; with errors among the diagnostics there
/// is none.
///
/// # Errors
/// When the solver fails: a bug, not the user's fault.
pub fn plan(
    program: &Program,
    performance: &PerformanceSet,
    options: PlanOptions,
    control: &mut Control<'_>,
) -> Result<Outcome<Plan>, SolverFault> {
    let metric = options.metric.unwrap_or(program.objective.minimize.value);
    let asked_care = formulate::care(program, performance, options.rule);
    let deadline = control.time_limit.map_or(f64::INFINITY, |limit| FORMULATION_SHARE * limit);
    let elapsed = control.elapsed;
    let mut pace = || if elapsed() < deadline { asked_care } else { Care::Thin(LEAST_POINTS) };
    let (Outcome { value: problem, mut diagnostics }, care) =
        formulate::formulate_with(program, performance, metric, options.rule, asked_care, &mut pace);
    let making = Making {
        program,
        performance,
        planner: options.planner.word(),
        metric,
        rule: options.rule,
        gap: control.gap,
    };
    if diagnostics.iter().any(|d| d.severity == Severity::Error) {
        // What a planner cannot express or a fact that is missing proves nothing of the wish itself.
        let is_infeasible = diagnostics.iter().filter(|d| d.severity == Severity::Error).all(|d| {
            matches!(
                d.code,
                Code::LatencyOutOfReach
                    | Code::MemoryOutOfReach
                    | Code::PinOutOfReach
                    | Code::ConflictingRequirements
            )
        });
        let solution = Solution { incumbent: None, bound: None, is_infeasible, stopped_by: None };
        return Ok(Outcome { value: emit::emit(&making, &problem, &solution), diagnostics });
    }
    // With points left out, the bound must be over all of them. It comes first: a search takes all the time
    // that there is.
    let is_partial = care != Care::Exact;
    let mut bound = None;
    if is_partial && options.planner == Planner::Optimal {
        let mut all = || Care::Optimistic;
        let (all, _) =
            formulate::formulate_with(program, performance, metric, options.rule, Care::Optimistic, &mut all);
        bound = Some(solve::bound(&all.value, control)?);
    }
    let mut solution = solve(program, performance, &problem, options.planner, control)?;
    if is_partial {
        solution.bound = bound.flatten();
        solution.is_infeasible = bound == Some(None);
        solution.stopped_by =
            Some(if care == asked_care { "number of operating points" } else { "time limit" });
    }
    let solution = refine(program, performance, &problem, solution, options.planner, control)?;
    let mut plan = emit::emit(&making, &problem, &solution);
    let together = explain::together(program, &plan);
    if !together.is_empty() {
        // Counting boards allows more than dealing instances to them can keep; rare, and said.
        diagnostics.extend(together);
        let none =
            Solution { incumbent: None, bound: solution.bound, is_infeasible: false, stopped_by: None };
        plan = emit::emit(&making, &problem, &none);
    }
    if solution.incumbent.is_none() && solution.is_infeasible {
        diagnostics.extend(explain::conflict(program, performance, &problem, control)?);
    }
    if solution.incumbent.is_none() && options.planner == Planner::Greedy {
        diagnostics.push(
            Diagnostic::error(
                Code::PlannerLimitation,
                program.objective.minimize.span,
                "the greedy search met no plan that keeps everything",
            )
            .label("it proves nothing: there may be one")
            .help("plan with `--planner optimal`"),
        );
    }
    diagnostics.extend(warnings(program, &plan));
    Ok(Outcome { value: plan, diagnostics })
}

/// Share of the time after which formulation leaves operating points out, and how many it then looks at.
const FORMULATION_SHARE: f64 = 0.3;
const LEAST_POINTS: usize = 12;

/// Solves a problem, with exact mean powers from the performance data.
pub fn solve(
    program: &Program,
    performance: &PerformanceSet,
    problem: &Problem,
    planner: Planner,
    control: &mut Control<'_>,
) -> Result<Solution, SolverFault> {
    let known: RefCell<BTreeMap<(usize, PointKey, usize, u64), f64>> = RefCell::new(BTreeMap::new());
    let (kinds, _) = formulate::alike(program);
    let mean = |service: usize, point: usize, rate: f64| -> f64 {
        let p = &problem.services[service].points[point];
        if problem.rule == LatencyRule::Execution {
            return p.energy * rate;
        }
        let cell = problem.cells[p.cell];
        let key = (kinds[problem.services[service].index], p.key, cell.class, rate.to_bits());
        if let Some(&watts) = known.borrow().get(&key) {
            return watts;
        }
        let board = problem.classes[cell.class].board;
        let asked = &program.services[problem.services[service].index];
        let watts = performance
            .get(asked.model.value, board)
            .and_then(|m| m.predict(&program.boards[board], p.key))
            .and_then(|prediction| {
                mean_dynamic_power(
                    &prediction,
                    p.key.processes,
                    formulate::promise(asked, problem.rule),
                    rate,
                )
            })
            .unwrap_or(p.energy * rate);
        known.borrow_mut().insert(key, watts);
        watts
    };
    match planner {
        Planner::Optimal => solve::optimal(problem, &mean, control),
        Planner::Greedy => {
            let incumbent = solve::greedy(problem, &mean, control);
            Ok(Solution { is_infeasible: false, incumbent, bound: None, stopped_by: None })
        }
    }
}

/// Among plans with equally many boards (or dollars), the one with the least energy, if power is known.
fn refine(
    program: &Program,
    performance: &PerformanceSet,
    problem: &Problem,
    solution: Solution,
    planner: Planner,
    control: &mut Control<'_>,
) -> Result<Solution, SolverFault> {
    let Some(best) = solution.incumbent.as_ref() else { return Ok(solution) };
    if !matches!(problem.metric, Metric::Gpus | Metric::Cost)
        || planner != Planner::Optimal
        || control.is_over()
    {
        return Ok(solution);
    }
    if problem.services.iter().any(|s| s.points.iter().any(|p| p.dynamic <= 0.0))
        || problem.patterns.iter().any(|p| p.base <= 0.0)
    {
        return Ok(solution);
    }
    let value = problem.value(&problem.objective, best);
    let mut second = problem.clone();
    second.metric = Metric::Energy;
    second.objective = Weights {
        constant: 0.0,
        classes: problem
            .classes
            .iter()
            .map(|_| ClassWeights { base: 1.0, mean: 1.0, ..ClassWeights::default() })
            .collect(),
    };
    second.limits.push(LimitRow {
        metric: problem.metric,
        weights: problem.objective.clone(),
        at_most: value + 1e-7 * value.abs(),
        span: program.objective.minimize.span,
    });
    let refined = solve(program, performance, &second, planner, control)?;
    Ok(match refined.incumbent {
        Some(assignment) => Solution { incumbent: Some(assignment), ..solution },
        None => solution,
    })
}

/// What a person should know about a plan that holds.
fn warnings(program: &Program, plan: &Plan) -> Vec<Diagnostic> {
    explain::warnings(program, plan)
}

/// An assignment's value in the unit of the objective, for reports.
#[must_use]
pub fn value(problem: &Problem, assignment: &Assignment) -> f64 {
    problem.value(&problem.objective, assignment)
}
