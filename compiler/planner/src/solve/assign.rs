//! Costs of rows × columns → the cheapest assignment of every row to a column of its own, or to none.
//!
//! Shortest augmenting paths with potentials (Jonker and Volgenant 1987; the Hungarian method), in
//! O(rows² × columns). It gives up as soon as the cost is known to reach a budget: local search asks for
//! thousands of assignments and wants only better ones.

/// What to assign.
pub(super) struct Costs<'a> {
    /// Costs, row after row; finite or infinite, not negative.
    pub(super) matrix: &'a [f64],
    /// Columns per row.
    pub(super) columns: usize,
    /// Cost of giving a row no column.
    pub(super) none: f64,
    /// Stop when the total is known to reach this.
    pub(super) budget: f64,
}

/// Room for the computation, kept between calls.
#[derive(Default)]
pub(super) struct Workspace {
    row_potential: Vec<f64>,
    column_potential: Vec<f64>,
    owner: Vec<usize>,
    previous: Vec<usize>,
    shortest: Vec<f64>,
    done: Vec<bool>,
    rest: Vec<f64>,
}

/// The total cost and the column of each of `rows`; `None` when the budget is reached.
pub(super) fn assign(
    rows: usize,
    costs: &Costs<'_>,
    work: &mut Workspace,
) -> Option<(f64, Vec<Option<usize>>)> {
    let n = costs.columns;
    // Column 0 and row 0 are sentinels, real ones count from 1; column `nobody` takes any number of rows.
    let nobody = n + 1;
    work.row_potential.clear();
    work.row_potential.resize(rows + 1, 0.0);
    work.column_potential.clear();
    work.column_potential.resize(n + 2, 0.0);
    work.owner.clear();
    work.owner.resize(n + 2, 0);
    work.previous.clear();
    work.previous.resize(n + 2, 0);
    // Rows still to come cost at least their cheapest column each.
    work.rest.clear();
    work.rest.resize(rows + 1, 0.0);
    for row in (0..rows).rev() {
        let least = costs.matrix[row * n..(row + 1) * n].iter().copied().fold(costs.none, f64::min);
        work.rest[row] = work.rest[row + 1] + least;
    }
    for row in 1..=rows {
        work.owner[0] = row;
        let mut column = 0;
        work.shortest.clear();
        work.shortest.resize(n + 2, f64::INFINITY);
        work.done.clear();
        work.done.resize(n + 2, false);
        loop {
            work.done[column] = true;
            let from = work.owner[column];
            let own = &costs.matrix[(from - 1) * n..from * n];
            let mut step = f64::INFINITY;
            let mut next = nobody;
            let potential = work.row_potential[from];
            for candidate in 1..=n {
                if work.done[candidate] {
                    continue;
                }
                let reduced = own[candidate - 1] - potential - work.column_potential[candidate];
                if reduced < work.shortest[candidate] {
                    work.shortest[candidate] = reduced;
                    work.previous[candidate] = column;
                }
                if work.shortest[candidate] < step {
                    step = work.shortest[candidate];
                    next = candidate;
                }
            }
            let reduced = costs.none - potential;
            if reduced < work.shortest[nobody] {
                work.shortest[nobody] = reduced;
                work.previous[nobody] = column;
            }
            if work.shortest[nobody] < step {
                step = work.shortest[nobody];
                next = nobody;
            }
            for candidate in 0..=nobody {
                if work.done[candidate] {
                    work.row_potential[work.owner[candidate]] += step;
                    work.column_potential[candidate] -= step;
                } else {
                    work.shortest[candidate] -= step;
                }
            }
            column = next;
            if work.owner[column] == 0 {
                break;
            }
        }
        while column != 0 {
            let before = work.previous[column];
            work.owner[column] = work.owner[before];
            column = before;
        }
        // A row without a column never gets one back: later rows only take columns.
        work.owner[nobody] = 0;
        // The sentinel's potential is the cost of the rows so far.
        if -work.column_potential[0] + work.rest[row] >= costs.budget {
            return None;
        }
    }
    let mut result = vec![None; rows];
    for column in 1..=n {
        if work.owner[column] > 0 {
            result[work.owner[column] - 1] = Some(column - 1);
        }
    }
    Some((-work.column_potential[0], result))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(matrix: &[f64], columns: usize, none: f64, budget: f64) -> Option<(f64, Vec<Option<usize>>)> {
        assign(matrix.len() / columns, &Costs { matrix, columns, none, budget }, &mut Workspace::default())
    }

    #[test]
    fn cheapest_assignment_of_a_small_matrix() {
        let (total, _) = best(&[4.0, 1.0, 3.0, 2.0, 0.0, 5.0, 3.0, 2.0, 2.0], 3, 100.0, 1e9).unwrap();
        assert_eq!(total, 5.0);
    }

    #[test]
    fn more_columns_than_rows() {
        let found = best(&[9.0, 8.0, 1.0, 7.0, 9.0, 2.0, 1.0, 7.0], 4, 100.0, 1e9).unwrap();
        assert_eq!(found, (3.0, vec![Some(2), Some(1)]));
    }

    #[test]
    fn a_row_without_a_column_pays_for_it() {
        let found = best(&[5.0, 3.0], 1, 10.0, 1e9).unwrap();
        assert_eq!(found, (13.0, vec![None, Some(0)]));
    }

    #[test]
    fn gives_up_at_the_budget() {
        assert_eq!(best(&[4.0, 1.0, 3.0, 2.0, 0.0, 5.0, 3.0, 2.0, 2.0], 3, 100.0, 5.0), None);
    }

    #[test]
    fn equals_exhaustive_search() {
        let mut state = 3u64;
        let mut next = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 40) % 100) as f64
        };
        for _ in 0..100 {
            let matrix: Vec<f64> = (0..12).map(|_| next()).collect();
            let none = 60.0;
            let mut least = f64::INFINITY;
            // Three rows, each on one of four columns or on none.
            for code in 0..125usize {
                let pick = [code % 5, code / 5 % 5, code / 25];
                let clash = (0..3).any(|a| (0..a).any(|b| pick[a] < 4 && pick[a] == pick[b]));
                if !clash {
                    let cost = |row: usize| if pick[row] < 4 { matrix[row * 4 + pick[row]] } else { none };
                    least = least.min(cost(0) + cost(1) + cost(2));
                }
            }
            let (total, columns) = best(&matrix, 4, none, 1e9).unwrap();
            assert!((total - least).abs() < 1e-9);
            let real: f64 =
                columns.iter().enumerate().map(|(r, c)| c.map_or(none, |c| matrix[r * 4 + c])).sum();
            assert!((real - least).abs() < 1e-9);
        }
    }
}
