//! A part of the search: bounds on how many boards there are, at which clocks, in which layouts.

use crate::problem::Problem;
use ent_plan::units::Megahertz;
use std::collections::BTreeSet;

/// A part of the search: how many boards, and how many at or below each clock.
#[derive(Clone, Debug)]
pub(in crate::solve) struct Branch {
    /// Least and most boards in total.
    pub(in crate::solve) boards: (u32, u32),
    /// By class and clock (ascending, as in [`clocks_of`]): least and most boards at or below it.
    pub(in crate::solve) clocks: Vec<Vec<(u32, u32)>>,
    /// By pattern: least and most boards.
    pub(in crate::solve) patterns: Vec<(u32, u32)>,
}

/// The clocks of a class's patterns, ascending.
pub(in crate::solve) fn clocks_of(problem: &Problem, class: usize) -> Vec<Megahertz> {
    let all: BTreeSet<Megahertz> =
        problem.patterns.iter().filter(|p| p.class == class).map(|p| p.clock).collect();
    all.into_iter().collect()
}

impl Branch {
    /// Everything.
    pub(in crate::solve) fn root(problem: &Problem) -> Self {
        let boards = problem.classes.iter().map(|c| c.count).fold(0, u32::saturating_add);
        let clocks = problem
            .classes
            .iter()
            .enumerate()
            .map(|(class, c)| vec![(0, c.count); clocks_of(problem, class).len()])
            .collect();
        let patterns = problem.patterns.iter().map(|p| (0, problem.classes[p.class].count)).collect();
        Self { boards: (0, boards), clocks, patterns }
    }
}
