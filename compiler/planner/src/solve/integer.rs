//! Integer programs on HiGHS, built with good_lp.
//!
//! `restricted` chooses among given covers; `compact` is the counted formulation with nothing left out:
//! weaker as a bound, but what it calls infeasible is.

use super::config::Config;
use super::exact::{Branch, clocks_of};
use super::{Control, SolverFault};
use crate::problem::{Assignment, Problem, Share, Weights};
use good_lp::solvers::highs::highs as build;
use good_lp::{Expression, ProblemVariables, SolverModel, Variable, variable};
use highs::{HighsModelStatus, HighsSolutionStatus};
use std::collections::BTreeSet;

/// An integer program over given covers.
pub(super) struct Restricted<'a> {
    pub(super) problem: &'a Problem,
    /// Covers to choose from.
    pub(super) columns: &'a [Config],
    /// Services that are counted instead.
    pub(super) counted: &'a [bool],
    /// Which part of the search this is.
    pub(super) branch: &'a Branch,
    /// Where to start.
    pub(super) start: Option<&'a Assignment>,
    /// A valid bound, without the constant.
    pub(super) bound: f64,
    /// Indices of columns that are taken.
    pub(super) fixed: &'a BTreeSet<usize>,
}

/// What an integer program gave.
pub(super) struct Integer {
    pub(super) assignment: Option<Assignment>,
    /// Bound on its own columns, without the constant; infinite when it has no plan.
    pub(super) bound: f64,
    pub(super) stopped_by: Option<&'static str>,
}

/// Columns of a program, in the order of creation.
struct Columns {
    patterns: Vec<Variable>,
    covers: Vec<Variable>,
    /// By service and point: instances and the rate they serve, as a share of the service's.
    counted: Vec<Vec<(Variable, Variable)>>,
}

/// Builds the program.
fn formulate(
    input: &Restricted<'_>,
    whole_covers: bool,
) -> (ProblemVariables, Expression, Vec<good_lp::Constraint>, Columns) {
    let problem = input.problem;
    let mut variables = ProblemVariables::new();
    let mut columns = Columns { patterns: Vec::new(), covers: Vec::new(), counted: Vec::new() };
    let mut cells: Vec<Expression> = vec![Expression::default(); problem.cells.len()];
    let mut classes: Vec<Expression> = vec![Expression::default(); problem.classes.len()];
    let mut services: Vec<Expression> = vec![Expression::default(); problem.services.len()];
    let mut limits: Vec<Expression> = vec![Expression::default(); problem.limits.len()];
    let mut objective = Expression::default();
    let mut constraints = Vec::new();
    for (pattern, &(low, high)) in problem.patterns.iter().zip(&input.branch.patterns) {
        let most = high.min(problem.classes[pattern.class].count).min(input.branch.boards.1);
        let v = variables.add(variable().integer().min(f64::from(low)).max(f64::from(most.max(low))));
        let value = |w: &Weights| {
            let w = w.classes[pattern.class];
            w.board + w.base * pattern.base
        };
        objective += value(&problem.objective) * v;
        for (row, limit) in limits.iter_mut().zip(&problem.limits) {
            *row += value(&limit.weights) * v;
        }
        classes[pattern.class] += v;
        for &(cell, n) in &pattern.places {
            cells[cell] -= f64::from(n) * v;
        }
        columns.patterns.push(v);
    }
    for (index, config) in input.columns.iter().enumerate() {
        let least = if input.fixed.contains(&index) { 1.0 } else { 0.0 };
        let v = variable().min(least).max(1.0);
        let v = variables.add(if whole_covers { v.integer() } else { v });
        objective += config.cost * v;
        for (row, &cost) in limits.iter_mut().zip(&config.limits) {
            *row += cost * v;
        }
        services[config.service] += v;
        for &(cell, n) in &config.cells {
            cells[cell] += f64::from(n) * v;
        }
        columns.covers.push(v);
    }
    for (index, service) in problem.services.iter().enumerate() {
        let mut own = Vec::new();
        if input.counted[index] {
            let mut instances = Expression::default();
            for point in &service.points {
                let class = problem.cells[point.cell].class;
                let share = point.admissible / service.rate;
                let most = (1.0 / share)
                    .ceil()
                    .max(f64::from(service.replicas.0))
                    .min(f64::from(service.replicas.1));
                // Counts are priced by least energies: by those a beaten point is never better.
                let (most, whole) = if point.is_beaten { (0.0, 0.0) } else { (most, 1.0) };
                let n = variables.add(variable().integer().min(0.0).max(most));
                let q = variables.add(variable().min(0.0).max(whole));
                let fixed = |w: &Weights| w.classes[class].dynamic * point.dynamic;
                let rate = |w: &Weights| w.classes[class].mean * point.energy * service.rate;
                objective += fixed(&problem.objective) * n + rate(&problem.objective) * q;
                for (row, limit) in limits.iter_mut().zip(&problem.limits) {
                    *row += fixed(&limit.weights) * n + rate(&limit.weights) * q;
                }
                cells[point.cell] += n;
                services[index] += q;
                instances += n;
                constraints.push((q - share * n).leq(0.0));
                own.push((n, q));
            }
            if service.replicas.0 > 1 {
                constraints.push(instances.clone().geq(f64::from(service.replicas.0)));
            }
            if service.replicas.1 < u32::MAX {
                constraints.push(instances.leq(f64::from(service.replicas.1)));
            }
        }
        columns.counted.push(own);
    }
    for cell in cells {
        constraints.push(cell.leq(0.0));
    }
    for service in services {
        constraints.push(service.geq(1.0));
    }
    for group in problem.apart() {
        let mut row = Expression::default();
        for (config, &v) in
            input.columns.iter().zip(&columns.covers).filter(|(c, _)| c.service == group.service)
        {
            let n: u32 = config.cells.iter().filter(|(c, _)| group.cells.contains(c)).map(|(_, n)| n).sum();
            row += f64::from(n) * v;
        }
        let points = &problem.services[group.service].points;
        for (point, &(n, _)) in points.iter().zip(&columns.counted[group.service]) {
            if group.cells.contains(&point.cell) {
                row += n;
            }
        }
        for &pattern in &group.patterns {
            row -= columns.patterns[pattern];
        }
        constraints.push(row.leq(if group.patterns.is_empty() { f64::from(group.most) } else { 0.0 }));
    }
    for group in problem.at_least_one() {
        let boards: Expression = group.into_iter().map(|p| columns.patterns[p]).sum();
        constraints.push(boards.geq(1.0));
    }
    for (class, bounds) in input.branch.clocks.iter().enumerate() {
        let most = problem.classes[class].count;
        for (clock, &(low, high)) in clocks_of(problem, class).into_iter().zip(bounds) {
            if (low, high) == (0, most) {
                continue;
            }
            let at_or_below: Expression = problem
                .patterns
                .iter()
                .zip(&columns.patterns)
                .filter(|(p, _)| p.class == class && p.clock <= clock)
                .map(|(_, &v)| v)
                .sum();
            constraints.push(at_or_below.clone().geq(f64::from(low)));
            constraints.push(at_or_below.leq(f64::from(high)));
        }
    }
    let mut total = Expression::default();
    for (row, class) in classes.into_iter().zip(&problem.classes) {
        total += row.clone();
        constraints.push(row.leq(f64::from(class.count)));
    }
    constraints.push(total.clone().geq(f64::from(input.branch.boards.0)));
    constraints.push(total.leq(f64::from(input.branch.boards.1)));
    for (row, limit) in limits.into_iter().zip(&problem.limits) {
        constraints.push(row.leq(limit.at_most - limit.weights.constant));
    }
    (variables, objective, constraints, columns)
}

/// Nodes of a program that is given a few seconds, where nodes are what is limited.
const SHORT_NODES: u32 = 200;

/// The program as a HiGHS model with its limits set.
fn model_of(
    input: &Restricted<'_>,
    whole_covers: bool,
    control: &Control<'_>,
    seconds: f64,
) -> Result<(highs::Model, Columns), SolverFault> {
    let (variables, objective, constraints, columns) = formulate(input, whole_covers);
    let mut model = variables.minimise(objective).using(build);
    for constraint in constraints {
        model.add_constraint(constraint);
    }
    let mut model = model.try_into_inner().map_err(|e| SolverFault::Highs(e.to_string()))?;
    model.make_quiet();
    // A node limit is for runs that can be repeated: there a short program is one of few nodes.
    let is_short = seconds.is_finite();
    let seconds = if control.node_limit.is_some() { f64::INFINITY } else { seconds };
    let seconds = seconds.min(control.seconds_left());
    let constant = input.problem.objective.constant;
    let gap = control.gap.max(super::exact::NO_GAP);
    model.try_set_option("threads", 1)?;
    model.try_set_option("parallel", "off")?;
    model.try_set_option("random_seed", 0)?;
    model.try_set_option("mip_rel_gap", if constant == 0.0 { gap } else { gap * 0.1 })?;
    model.try_set_option("mip_abs_gap", 1e-9)?;
    if seconds.is_finite() {
        model.try_set_option("time_limit", seconds.max(0.05))?;
    }
    if let Some(nodes) = control.node_limit {
        let nodes = if is_short { nodes.min(SHORT_NODES) } else { nodes };
        model.try_set_option("mip_max_nodes", i32::try_from(nodes).unwrap_or(i32::MAX))?;
    }
    Ok((model, columns))
}

/// Whole boards, services split as it suits: how much of each cover is used.
pub(super) fn whole_boards(
    input: &Restricted<'_>,
    control: &Control<'_>,
    seconds: f64,
) -> Result<Option<Vec<f64>>, SolverFault> {
    let (model, columns) = model_of(input, false, control, seconds)?;
    let solved = model.try_solve()?;
    if solved.primal_solution_status() != HighsSolutionStatus::Feasible {
        return Ok(None);
    }
    let values = solved.get_solution();
    let first = columns.patterns.len();
    Ok(values.columns().get(first..first + columns.covers.len()).map(<[f64]>::to_vec))
}

/// Chooses among covers.
pub(super) fn restricted(
    input: Restricted<'_>,
    control: &Control<'_>,
    seconds: f64,
) -> Result<Integer, SolverFault> {
    let (mut model, columns) = model_of(&input, true, control, seconds)?;
    let start = input.start.and_then(|start| columns.values_of(&input, start));
    if let Some(values) = &start {
        // A refused start costs time, not truth.
        let _refused = model.try_set_solution(Some(values), None, None, None);
    }
    let mut solved = model.try_solve()?;
    if start.is_some() && solved.primal_solution_status() == HighsSolutionStatus::Feasible {
        // HiGHS 1.16 can misread a start in the presolved space: it then takes the start for better than it
        // is, and calls it optimal. Its objective is not that of its columns; a run without a start is.
        let (claimed, value) =
            (solved.objective_value(), columns.value(&input, solved.get_solution().columns()));
        if (claimed - value).abs() > 1e-6 * value.abs().max(1.0) {
            solved = model_of(&input, true, control, seconds)?.0.try_solve()?;
        }
    }
    let status = solved.status();
    let has_plan = solved.primal_solution_status() == HighsSolutionStatus::Feasible;
    let dual = solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NEG_INFINITY);
    let stopped_by = if status == HighsModelStatus::ReachedTimeLimit {
        Some("time limit")
    } else if matches!(
        status,
        HighsModelStatus::ReachedSolutionLimit | HighsModelStatus::ReachedIterationLimit
    ) {
        Some("node limit")
    } else {
        None
    };
    if status == HighsModelStatus::Infeasible {
        return Ok(Integer { assignment: None, bound: f64::INFINITY, stopped_by: None });
    }
    let assignment = has_plan.then(|| columns.assignment(&input, solved.get_solution().columns()));
    let bound = if dual.is_finite() { dual.max(input.bound) } else { input.bound };
    Ok(Integer { assignment, bound, stopped_by })
}

/// The counted formulation of everything: a plan, or proof that there is none.
pub(super) fn compact(
    problem: &Problem,
    control: &Control<'_>,
) -> Result<(Option<Assignment>, bool, Option<&'static str>), SolverFault> {
    let counted = vec![true; problem.services.len()];
    let branch = Branch::root(problem);
    let input = Restricted {
        problem,
        columns: &[],
        counted: &counted,
        branch: &branch,
        start: None,
        bound: f64::NEG_INFINITY,
        fixed: &BTreeSet::new(),
    };
    let result = restricted(input, control, f64::INFINITY)?;
    let infeasible = result.assignment.is_none() && result.bound == f64::INFINITY;
    Ok((result.assignment, infeasible, result.stopped_by))
}

impl Columns {
    /// Values of all columns for an assignment; `None` when it uses a cover that is not here.
    fn values_of(&self, input: &Restricted<'_>, start: &Assignment) -> Option<Vec<f64>> {
        let mut values = vec![
            0.0;
            self.patterns.len()
                + self.covers.len()
                + 2 * self.counted.iter().map(Vec::len).sum::<usize>()
        ];
        for &(pattern, n) in &start.boards {
            values[pattern] = f64::from(n);
        }
        let first_cover = self.patterns.len();
        let mut first_counted = first_cover + self.covers.len();
        for (service, shares) in start.shares.iter().enumerate() {
            if input.counted[service] {
                let rate = input.problem.services[service].rate;
                for share in shares {
                    values[first_counted + 2 * share.point] = share.rates.len() as f64;
                    values[first_counted + 2 * share.point + 1] = share.rates.iter().sum::<f64>() / rate;
                }
                first_counted += 2 * self.counted[service].len();
                continue;
            }
            let wanted = super::config::points_of(shares);
            let index =
                input.columns.iter().position(|c| c.service == service && c.sorted_points() == wanted)?;
            values[first_cover + index] = 1.0;
        }
        Some(values)
    }

    /// The objective of column values.
    fn value(&self, input: &Restricted<'_>, values: &[f64]) -> f64 {
        let problem = input.problem;
        let weights = &problem.objective;
        let value = |index: usize| values.get(index).copied().unwrap_or(0.0);
        let mut total = 0.0;
        for (index, pattern) in problem.patterns.iter().enumerate() {
            let w = weights.classes[pattern.class];
            total += (w.board + w.base * pattern.base) * value(index);
        }
        for (index, config) in input.columns.iter().enumerate() {
            total += config.cost * value(self.patterns.len() + index);
        }
        let mut at = self.patterns.len() + self.covers.len();
        for (service, own) in problem.services.iter().zip(&self.counted) {
            for (point, _) in service.points.iter().zip(own) {
                let w = weights.classes[problem.cells[point.cell].class];
                total += w.dynamic * point.dynamic * value(at);
                total += w.mean * point.energy * service.rate * value(at + 1);
                at += 2;
            }
        }
        total
    }

    /// The assignment that column values say.
    fn assignment(&self, input: &Restricted<'_>, values: &[f64]) -> Assignment {
        let problem = input.problem;
        let count = |value: f64| value.round().max(0.0) as u32;
        let value = |index: usize| values.get(index).copied().unwrap_or(0.0);
        let mut boards = Vec::new();
        for index in 0..self.patterns.len() {
            let n = count(value(index));
            if n > 0 {
                boards.push((index, n));
            }
        }
        let first_cover = self.patterns.len();
        let mut shares: Vec<Vec<Share>> = vec![Vec::new(); problem.services.len()];
        for (index, config) in input.columns.iter().enumerate() {
            if count(value(first_cover + index)) > 0 && shares[config.service].is_empty() {
                shares[config.service] = config.shares();
            }
        }
        let mut at = first_cover + self.covers.len();
        for (index, own) in self.counted.iter().enumerate() {
            if own.is_empty() {
                continue;
            }
            let service = &problem.services[index];
            let mut left = service.rate;
            for (point, _) in own.iter().enumerate() {
                let n = count(value(at + 2 * point));
                let served = value(at + 2 * point + 1).clamp(0.0, 1.0) * service.rate;
                if n > 0 && served > 0.0 {
                    let most = service.points[point].admissible;
                    let each = (served / f64::from(n)).min(most).min(left / f64::from(n)).max(0.0);
                    left -= each * f64::from(n);
                    shares[index].push(Share { point, rates: vec![each; n as usize] });
                }
            }
            // Rounding may leave a crumb of the rate; give it to whoever has room.
            for share in &mut shares[index] {
                for rate in &mut share.rates {
                    let room = (service.points[share.point].admissible - *rate).max(0.0);
                    let more = room.min(left.max(0.0));
                    *rate += more;
                    left -= more;
                }
            }
            at += 2 * own.len();
        }
        Assignment { boards, shares }
    }
}
