//! A function of a few numbers → where it is least, without derivatives (Nelder and Mead's simplex).

/// Minimises from a start with a first step in each direction. Deterministic.
pub(crate) fn minimise(
    start: &[f64],
    step: f64,
    max_evaluations: usize,
    mut f: impl FnMut(&[f64]) -> f64,
) -> Vec<f64> {
    let n = start.len();
    let mut value = |x: &[f64]| {
        let y = f(x);
        if y.is_finite() { y } else { f64::MAX }
    };
    let mut simplex: Vec<(f64, Vec<f64>)> = vec![(value(start), start.to_vec())];
    for i in 0..n {
        let mut x = start.to_vec();
        x[i] += step;
        simplex.push((value(&x), x));
    }
    let mut evaluations = n + 1;
    while evaluations < max_evaluations {
        simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, worst) = (simplex[0].0, simplex[n].0);
        if worst - best < 1e-4 * (1.0 + best.abs()) * 1e-2 {
            break;
        }
        let centre: Vec<f64> =
            (0..n).map(|j| simplex[..n].iter().map(|(_, x)| x[j]).sum::<f64>() / n as f64).collect();
        let along =
            |t: f64| -> Vec<f64> { (0..n).map(|j| centre[j] + t * (simplex[n].1[j] - centre[j])).collect() };
        let reflected = along(-1.0);
        let at_reflected = value(&reflected);
        evaluations += 1;
        let replacement = if at_reflected < best {
            let expanded = along(-2.0);
            let at_expanded = value(&expanded);
            evaluations += 1;
            if at_expanded < at_reflected { (at_expanded, expanded) } else { (at_reflected, reflected) }
        } else if at_reflected < simplex[n - 1].0 {
            (at_reflected, reflected)
        } else {
            let inner = along(if at_reflected < worst { -0.5 } else { 0.5 });
            let at_inner = value(&inner);
            evaluations += 1;
            if at_inner < at_reflected.min(worst) {
                (at_inner, inner)
            } else {
                let anchor = simplex[0].1.clone();
                for (y, x) in simplex.iter_mut().skip(1) {
                    for j in 0..n {
                        x[j] = anchor[j] + 0.5 * (x[j] - anchor[j]);
                    }
                    *y = value(x);
                    evaluations += 1;
                }
                continue;
            }
        };
        simplex[n] = replacement;
    }
    simplex.sort_by(|a, b| a.0.total_cmp(&b.0));
    simplex.swap_remove(0).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplex_finds_a_valley() {
        let least = minimise(&[-1.0, 2.0], 0.5, 2000, |x| {
            (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2)
        });
        assert!((least[0] - 1.0).abs() < 0.01 && (least[1] - 1.0).abs() < 0.02, "{least:?}");
    }
}
