//! Plans for fleets: rounding a relaxation, then improving it part by part.
//!
//! With hundreds of boards the relaxation is tight and branching on boards gains nothing; what is hard is
//! finding a plan near it. First the boards are made whole while services may still be split, then the
//! few split services are settled, then groups of services are planned anew around the rest, over the
//! covers that the relaxation's prices favour.

use super::super::config::{Config, points_of};
use super::super::integer::{self, Restricted};
use super::super::master::{Prices, Relaxed};
use super::{Branch, ExactSearch, SolverFault};
use crate::problem::Assignment;
use std::collections::BTreeSet;

/// Covers per service that rounding and improving choose among.
const COVERS_EACH: usize = 12;
/// Services planned anew at a time.
const WINDOW: usize = 60;
/// Seconds for one of the small integer programs.
const SECONDS: f64 = 4.0;
/// Rounds without gain, in windows over all services, before it stops.
const FRUITLESS_ROUNDS: usize = 3;

impl ExactSearch<'_, '_, '_> {
    /// Finds plans near the relaxation, until the gap is small enough or the time is over.
    pub(super) fn round_and_improve(&mut self, root: &Branch, relaxed: &Relaxed) -> Result<(), SolverFault> {
        let columns = self.favoured(&relaxed.prices);
        self.round(root, relaxed, &columns)?;
        self.report("rounding", relaxed.value);
        let n = self.problem.services.len();
        let n_windows = n.div_ceil(WINDOW).max(1);
        let mut fruitless = 0;
        let mut turn = 0;
        while fruitless < FRUITLESS_ROUNDS * n_windows
            && !self.is_closed(relaxed.value)
            && !self.control.is_over()
        {
            let before = self.upper();
            // A different grouping each turn: strides through the services, shifted.
            let stride = [1, 7, 3, 13, 5, 11][(turn / n_windows) % 6];
            let first = (turn % n_windows) * WINDOW;
            let free: BTreeSet<usize> =
                (0..WINDOW.min(n)).map(|i| ((first + i) * stride + turn / n_windows) % n).collect();
            self.replan(root, relaxed.value, &columns, &free)?;
            turn += 1;
            if self.upper() < before - 1e-9 * before.abs() {
                fruitless = 0;
                self.report("improving", relaxed.value);
            } else {
                fruitless += 1;
            }
        }
        Ok(())
    }

    /// The covers of each service with the least reduced cost.
    fn favoured(&self, prices: &Prices) -> Vec<Config> {
        let mut by_service: Vec<Vec<(f64, &Config)>> = vec![Vec::new(); self.problem.services.len()];
        for column in &self.columns {
            let places: f64 = column.cells.iter().map(|&(cell, n)| prices.cells[cell] * f64::from(n)).sum();
            let limits: f64 = column.limits.iter().zip(&prices.limits).map(|(c, p)| c * p).sum();
            by_service[column.service].push((column.cost + places + limits, column));
        }
        let mut favoured = Vec::new();
        for mut own in by_service {
            own.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.points.cmp(&b.1.points)));
            favoured.extend(own.into_iter().take(COVERS_EACH).map(|(_, c)| c.clone()));
        }
        favoured
    }

    /// Whole boards first, then whole services.
    fn round(&mut self, root: &Branch, relaxed: &Relaxed, columns: &[Config]) -> Result<(), SolverFault> {
        let input = |fixed| Restricted {
            problem: self.problem,
            columns,
            counted: &self.counted,
            branch: root,
            start: None,
            bound: relaxed.value,
            fixed,
        };
        let none = BTreeSet::new();
        let Some(shares) = integer::whole_boards(&input(&none), self.control, SECONDS)? else {
            return Ok(());
        };
        let fixed: BTreeSet<usize> =
            (0..columns.len()).filter(|&c| shares.get(c).is_some_and(|&x| x > 0.999)).collect();
        let result = integer::restricted(input(&fixed), self.control, 2.0 * SECONDS)?;
        if let Some(assignment) = result.assignment {
            self.offer(assignment)?;
        }
        Ok(())
    }

    /// Plans some services anew, the others as they are in the incumbent.
    fn replan(
        &mut self,
        root: &Branch,
        bound: f64,
        columns: &[Config],
        free: &BTreeSet<usize>,
    ) -> Result<(), SolverFault> {
        let Some((_, incumbent)) = self.incumbent.clone() else { return Ok(()) };
        let (columns, fixed) = self.around(&incumbent, columns, free);
        let input = Restricted {
            problem: self.problem,
            columns: &columns,
            counted: &self.counted,
            branch: root,
            start: Some(&incumbent),
            bound,
            fixed: &fixed,
        };
        let result = integer::restricted(input, self.control, SECONDS)?;
        if let Some(assignment) = result.assignment {
            self.offer(assignment)?;
        }
        Ok(())
    }

    /// The columns of a neighbourhood: all favoured ones of the free services, the incumbent's of all;
    /// and which of them are fixed.
    fn around(
        &self,
        incumbent: &Assignment,
        columns: &[Config],
        free: &BTreeSet<usize>,
    ) -> (Vec<Config>, BTreeSet<usize>) {
        let mut kept = Vec::new();
        let mut fixed = BTreeSet::new();
        for (service, shares) in incumbent.shares.iter().enumerate() {
            if self.counted[service] {
                continue;
            }
            let points = points_of(shares);
            let own = self.config_of(service, shares);
            if free.contains(&service) {
                let others = columns.iter().filter(|c| c.service == service && c.sorted_points() != points);
                kept.extend(others.cloned());
            } else {
                fixed.insert(kept.len());
            }
            kept.push(own);
        }
        (kept, fixed)
    }
}
