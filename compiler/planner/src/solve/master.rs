//! The linear master problem over patterns and covers, on HiGHS, with columns added as they are priced.
//!
//! Rows: places per cell, one cover per service, boards per class, limits. A service whose covers are
//! too many to enumerate is *counted*: its points enter as instance counts and rates directly.

use super::SolverFault;
use super::config::Config;
use super::exact::{Branch, clocks_of};
use crate::problem::{Problem, Weights};
use ent_plan::units::Megahertz;
use highs::{Col, ColProblem, HighsModelStatus, Model, Row, Sense};

/// Prices of the rows of a solved master.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// Per place, by cell; not negative.
    pub(super) cells: Vec<f64>,
    /// Worth of serving a service, by service.
    pub(super) services: Vec<f64>,
    /// Per unit of each limit; not negative.
    pub(super) limits: Vec<f64>,
}

/// The answer of a solved master.
#[derive(Clone, Debug)]
pub(super) struct Relaxed {
    /// Objective, without the constant; infinite when no columns can serve all services.
    pub(super) value: f64,
    /// Row prices.
    pub(super) prices: Prices,
    /// Used boards, fractional.
    pub(super) boards: f64,
    /// Used boards at or below each clock, by class and clock.
    pub(super) at_or_below: Vec<Vec<f64>>,
    /// Boards of each pattern.
    pub(super) patterns: Vec<f64>,
}

/// The master problem.
pub(super) struct Master<'a> {
    problem: &'a Problem,
    model: Option<Model>,
    // Rows are numbered in the order they are made: cells, services, classes, clocks, total, limits, groups.
    cell_rows: Vec<Row>,
    service_rows: Vec<Row>,
    limit_rows: Vec<Row>,
    /// Total number of boards, to branch on.
    boards: Col,
    /// Boards at or below a clock, by class and clock, to branch on.
    at_or_below: Vec<Vec<Col>>,
    patterns: Vec<Col>,
    n_clock_rows: usize,
    artificial: Vec<Col>,
    penalty: f64,
}

/// Coefficients of a column in the objective and the limit rows.
fn column_costs(problem: &Problem, cost: impl Fn(&Weights) -> f64) -> (f64, Vec<f64>) {
    (cost(&problem.objective), problem.limits.iter().map(|l| cost(&l.weights)).collect())
}

impl<'a> Master<'a> {
    /// The master with all patterns, the counted services' points, and no cover yet.
    pub(super) fn new(problem: &'a Problem, counted: &[bool]) -> Result<Self, SolverFault> {
        let mut columns = ColProblem::new();
        let cell_rows: Vec<Row> = problem.cells.iter().map(|_| columns.add_row(..=0.0)).collect();
        let service_rows: Vec<Row> = problem.services.iter().map(|_| columns.add_row(1.0..)).collect();
        let class_rows: Vec<Row> = problem.classes.iter().map(|_| columns.add_row(0.0..=0.0)).collect();
        let clocks: Vec<Vec<Megahertz>> = (0..problem.classes.len()).map(|c| clocks_of(problem, c)).collect();
        let clock_rows: Vec<Vec<Row>> =
            clocks.iter().map(|all| all.iter().map(|_| columns.add_row(0.0..=0.0)).collect()).collect();
        let total_row = columns.add_row(0.0..=0.0);
        let limit_rows: Vec<Row> =
            problem.limits.iter().map(|l| columns.add_row(..=l.at_most - l.weights.constant)).collect();
        let groups: Vec<(Vec<usize>, Row)> =
            problem.at_least_one().into_iter().map(|group| (group, columns.add_row(1.0..))).collect();
        let mut of_patterns = Vec::new();
        for (index, pattern) in problem.patterns.iter().enumerate() {
            let (cost, limits) = column_costs(problem, |w| {
                let w = w.classes[pattern.class];
                w.board + w.base * pattern.base
            });
            let mut rows = vec![(class_rows[pattern.class], 1.0)];
            let at_or_above = clocks[pattern.class].iter().zip(&clock_rows[pattern.class]);
            rows.extend(at_or_above.filter(|(c, _)| **c >= pattern.clock).map(|(_, &row)| (row, 1.0)));
            rows.extend(pattern.places.iter().map(|&(cell, n)| (cell_rows[cell], -f64::from(n))));
            rows.extend(limit_rows.iter().copied().zip(limits));
            rows.extend(
                groups.iter().filter(|(group, _)| group.contains(&index)).map(|&(_, row)| (row, 1.0)),
            );
            of_patterns.push((cost, rows));
        }
        let n_boards: f64 = problem.classes.iter().map(|c| f64::from(c.count)).sum();
        for (class, &row) in problem.classes.iter().zip(&class_rows) {
            columns.add_column(0.0, 0.0..=f64::from(class.count), [(row, -1.0), (total_row, 1.0)]);
        }
        for (index, service) in problem.services.iter().enumerate() {
            if !counted[index] {
                continue;
            }
            for point in &service.points {
                let class = problem.cells[point.cell].class;
                let most =
                    if point.is_beaten { 0.0 } else { (service.rate / point.admissible).ceil().max(1.0) };
                let share = (point.admissible / service.rate).min(1.0);
                // Continuous relaxation of n instances serving q of the rate: q = share·n at best.
                let (cost, limits) = column_costs(problem, |w| {
                    let w = w.classes[class];
                    w.dynamic * point.dynamic + w.mean * point.energy * share * service.rate
                });
                let mut rows = vec![(cell_rows[point.cell], 1.0), (service_rows[index], share)];
                rows.extend(limit_rows.iter().copied().zip(limits));
                columns.add_column(cost, 0.0..=most, rows);
            }
        }
        let mut model = columns.try_optimise(Sense::Minimise)?;
        model.make_quiet();
        for (option, value) in [("threads", 1), ("random_seed", 0)] {
            model.try_set_option(option, value)?;
        }
        model.try_set_option("parallel", "off")?;
        let boards = model.try_add_column(0.0, 0.0..=n_boards, [(total_row, -1.0)])?;
        let mut at_or_below = Vec::new();
        for (class, rows) in problem.classes.iter().zip(&clock_rows) {
            let mut own = Vec::new();
            for &row in rows {
                own.push(model.try_add_column(0.0, 0.0..=f64::from(class.count), [(row, -1.0)])?);
            }
            at_or_below.push(own);
        }
        let mut patterns = Vec::new();
        for (pattern, (cost, rows)) in problem.patterns.iter().zip(of_patterns) {
            let most = f64::from(problem.classes[pattern.class].count);
            patterns.push(model.try_add_column(cost, 0.0..=most, rows)?);
        }
        let penalty = penalty(problem);
        let mut artificial = Vec::new();
        for &row in &service_rows {
            artificial.push(model.try_add_column(penalty, 0.0.., [(row, 1.0)])?);
        }
        Ok(Self {
            problem,
            model: Some(model),
            cell_rows,
            service_rows,
            limit_rows,
            boards,
            at_or_below,
            patterns,
            n_clock_rows: clock_rows.iter().map(Vec::len).sum(),
            artificial,
            penalty,
        })
    }

    /// Adds a cover of a service.
    pub(super) fn add(&mut self, config: &Config) -> Result<(), SolverFault> {
        let mut rows: Vec<(Row, f64)> = vec![(self.service_rows[config.service], 1.0)];
        rows.extend(config.cells.iter().map(|&(cell, n)| (self.cell_rows[cell], f64::from(n))));
        rows.extend(self.limit_rows.iter().copied().zip(config.limits.iter().copied()));
        let model = self.model.as_mut().ok_or(SolverFault::Lost)?;
        model.try_add_column(config.cost, 0.0.., rows)?;
        Ok(())
    }

    /// Restricts the numbers of boards to a branch.
    pub(super) fn restrict(&mut self, branch: &Branch) -> Result<(), SolverFault> {
        let model = self.model.as_mut().ok_or(SolverFault::Lost)?;
        let mut bound = |column: Col, (low, high): (u32, u32)| {
            model.change_column_bounds(column, f64::from(low)..=f64::from(high));
        };
        bound(self.boards, branch.boards);
        for (&column, &own) in self.patterns.iter().zip(&branch.patterns) {
            bound(column, own);
        }
        for (columns, bounds) in self.at_or_below.iter().zip(&branch.clocks) {
            for (&column, &own) in columns.iter().zip(bounds) {
                bound(column, own);
            }
        }
        Ok(())
    }

    /// Makes leaving a service unserved dearer; true while that makes sense.
    pub(super) fn raise_penalty(&mut self) -> Result<bool, SolverFault> {
        if self.penalty > 1e2 * penalty(self.problem) {
            return Ok(false);
        }
        self.penalty *= 20.0;
        let model = self.model.as_mut().ok_or(SolverFault::Lost)?;
        for &column in &self.artificial {
            model.change_column_cost(column, self.penalty);
        }
        Ok(true)
    }

    /// Solves it. The second value is how much of all services is left unserved. `None` when the branch and
    /// the limits leave nothing at all.
    pub(super) fn solve(&mut self) -> Result<Option<(Relaxed, f64)>, SolverFault> {
        let mut model = self.model.take().ok_or(SolverFault::Lost)?;
        let mut attempts = ["ipm", "simplex"].into_iter();
        let solved = loop {
            let solved = model.try_solve()?;
            let status = solved.status();
            let value = solved.objective_value();
            let solution = solved.get_solution();
            model = Model::from(solved);
            if status == HighsModelStatus::Optimal {
                break Some((value, solution));
            }
            if status == HighsModelStatus::Infeasible {
                break None;
            }
            // Warm starts sometimes leave simplex without a verdict: another method from scratch has one.
            let Some(solver) = attempts.next() else {
                return Err(SolverFault::Status(format!("{status:?}")));
            };
            model.try_set_option("solver", solver)?;
        };
        model.try_set_option("solver", "choose")?;
        self.model = Some(model);
        let Some((value, solution)) = solved else { return Ok(None) };
        let duals = solution.dual_rows();
        let at = |row: usize| duals.get(row).copied().unwrap_or(0.0);
        let (n_cells, n_services) = (self.cell_rows.len(), self.service_rows.len());
        let first_limit = n_cells + n_services + self.problem.classes.len() + self.n_clock_rows + 1;
        let prices = Prices {
            cells: (0..n_cells).map(|r| (-at(r)).max(0.0)).collect(),
            services: (n_cells..n_cells + n_services).map(at).collect(),
            limits: (0..self.limit_rows.len()).map(|r| (-at(first_limit + r)).max(0.0)).collect(),
        };
        let columns = solution.columns();
        let column = |c: &Col| columns.get(c.index()).copied().unwrap_or(0.0);
        let unserved = self.artificial.iter().map(column).sum();
        let at_or_below = self.at_or_below.iter().map(|own| own.iter().map(column).collect()).collect();
        let patterns = self.patterns.iter().map(column).collect();
        Ok(Some((Relaxed { value, prices, boards: column(&self.boards), at_or_below, patterns }, unserved)))
    }
}

/// A price above what any service can cost: every service alone on its dearest point and board.
fn penalty(problem: &Problem) -> f64 {
    let weights = &problem.objective;
    let dearest_board = problem
        .patterns
        .iter()
        .map(|p| {
            let w = weights.classes[p.class];
            (w.board + w.base * p.base).abs()
        })
        .fold(0.0, f64::max);
    let dearest_service = problem
        .services
        .iter()
        .flat_map(|s| {
            s.points.iter().map(|p| {
                let w = weights.classes[problem.cells[p.cell].class];
                let n = (s.rate / p.admissible).ceil().max(1.0);
                n * (w.dynamic * p.dynamic + dearest_board) + w.mean * p.energy * s.rate
            })
        })
        .fold(0.0, f64::max);
    10.0 * (dearest_service + dearest_board).max(1e-6)
}
