//! Costs of rows × columns → the cheapest assignment of every row to a column of its own.
//!
//! Shortest augmenting paths with potentials (Jonker and Volgenant 1987; the Hungarian method), in
//! O(rows² × columns).

/// Assigns each of `rows` to a distinct one of `columns` (`columns ≥ rows`, costs finite); the
/// column of each row.
pub(super) fn assign(rows: usize, columns: usize, cost: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    debug_assert!(columns >= rows);
    let mut row_potential = vec![0.0; rows + 1];
    let mut column_potential = vec![0.0; columns + 1];
    // Column 0 and row 0 are sentinels; real ones count from 1.
    let mut owner = vec![0usize; columns + 1];
    let mut previous = vec![0usize; columns + 1];
    let mut shortest = vec![f64::INFINITY; columns + 1];
    let mut done = vec![false; columns + 1];
    for row in 1..=rows {
        owner[0] = row;
        let mut column = 0;
        shortest.fill(f64::INFINITY);
        done.fill(false);
        loop {
            done[column] = true;
            let from = owner[column];
            let mut step = f64::INFINITY;
            let mut next = 0;
            for candidate in 1..=columns {
                if done[candidate] {
                    continue;
                }
                let reduced = cost(from - 1, candidate - 1) - row_potential[from] - column_potential[candidate];
                if reduced < shortest[candidate] {
                    shortest[candidate] = reduced;
                    previous[candidate] = column;
                }
                if shortest[candidate] < step {
                    step = shortest[candidate];
                    next = candidate;
                }
            }
            for candidate in 0..=columns {
                if done[candidate] {
                    row_potential[owner[candidate]] += step;
                    column_potential[candidate] -= step;
                } else {
                    shortest[candidate] -= step;
                }
            }
            column = next;
            if owner[column] == 0 {
                break;
            }
        }
        while column != 0 {
            let before = previous[column];
            owner[column] = owner[before];
            column = before;
        }
    }
    let mut result = vec![0; rows];
    for column in 1..=columns {
        if owner[column] > 0 {
            result[owner[column] - 1] = column - 1;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::assign;

    #[test]
    fn cheapest_assignment_of_a_small_matrix() {
        let costs = [[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]];
        let columns = assign(3, 3, |r, c| costs[r][c]);
        let total: f64 = columns.iter().enumerate().map(|(r, &c)| costs[r][c]).sum();
        assert_eq!(total, 5.0);
    }

    #[test]
    fn more_columns_than_rows() {
        let costs = [[9.0, 8.0, 1.0, 7.0], [9.0, 2.0, 1.0, 7.0]];
        assert_eq!(assign(2, 4, |r, c| costs[r][c]), vec![2, 1]);
    }
}
