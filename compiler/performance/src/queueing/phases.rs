//! Arrival process → how many requests arrive in a time, and what that says about the next one.
//!
//! Gaps between arrivals are of phase type, so that a Markov chain can carry them: exponential for
//! Poisson; Erlang for gamma distributions of whole shape; for `cv` above 1 a mixture of exponentials
//! with the same first moments, the Gauss quadrature of an exact identity: a gamma variable of shape
//! a < 1 is an exponential one times an independent Beta(a, 1 - a).
//!
//! Time is counted in mean gaps, so nothing here knows a rate.

use nalgebra::DMatrix;

/// Shares below this are left out of distributions of counts.
const NEGLIGIBLE: f64 = 1e-8;

/// Phases used for `cv` above 1.
const EXPONENTIALS: usize = 3;

/// Most phases of an Erlang distribution.
pub(super) const MOST_PHASES: usize = 8;

/// Gaps of phase type with mean 1.
#[derive(Clone, Debug)]
pub(super) struct Phases {
    /// How many phases.
    pub(super) m: usize,
    /// Where a gap begins.
    pub(super) start: Vec<f64>,
    /// Rate at which the next request arrives, by phase.
    pub(super) arrive: Vec<f64>,
    /// Rates between phases, row by row; the diagonal is minus all that leaves.
    within: Vec<f64>,
    /// One phase leads to the next at one rate: (requests, phase) is a count of Poisson events.
    pub(super) is_erlang: bool,
}

/// Numbers of arrivals in a given time: probability of `first + a` of them and phase j at the end,
/// having begun in phase i, at `(a * m + i) * m + j`.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) first: usize,
    pub(super) data: Vec<f64>,
}

impl Counts {
    /// How many counts it holds, for `m` phases.
    pub(super) fn len(&self, m: usize) -> usize {
        self.data.len() / (m * m)
    }

    /// Leaves out counts at both ends that are rarer than this.
    pub(super) fn keep_above(&mut self, rare: f64, m: usize) {
        let is_rare = |row: &[f64]| row.iter().all(|p| *p < rare);
        let n = self.data.chunks_exact(m * m).rposition(|row| !is_rare(row)).unwrap_or(0) + 1;
        self.data.truncate(n * m * m);
        let head = self.data.chunks_exact(m * m).position(|row| !is_rare(row)).unwrap_or(0);
        self.data.drain(..head * m * m);
        self.first += head;
    }

    fn trimmed(mut self, m: usize) -> Self {
        self.keep_above(NEGLIGIBLE, m);
        self
    }
}

impl Phases {
    /// Gamma-distributed gaps of whole shape `m`, 1..=MOST_PHASES.
    pub(super) fn erlang(m: usize) -> Self {
        let rate = m as f64;
        let mut within = vec![0.0; m * m];
        for i in 0..m {
            within[i * m + i] = -rate;
            if i + 1 < m {
                within[i * m + i + 1] = rate;
            }
        }
        let mut start = vec![0.0; m];
        start[0] = 1.0;
        let mut arrive = vec![0.0; m];
        arrive[m - 1] = rate;
        Self { m, start, arrive, within, is_erlang: true }
    }

    /// Gamma-distributed gaps of coefficient of variation above 1.
    ///
    /// Gauss quadrature of Beta(a, 1 - a) by Golub and Welsch: nodes are the eigenvalues of the Jacobi
    /// matrix, weights the squared first components of its eigenvectors.
    pub(super) fn bursty(cv: f64) -> Self {
        let shape = 1.0 / (cv * cv);
        let m = EXPONENTIALS;
        // Recurrence of the Jacobi polynomials for the weight y^(shape-1) (1-y)^(-shape) on (0, 1).
        let (p, q) = (-shape, shape - 1.0);
        let mut jacobi = DMatrix::<f64>::zeros(m, m);
        for i in 0..m {
            let n = i as f64;
            let s = 2.0 * n + p + q;
            let centre = if i == 0 { (q - p) / (p + q + 2.0) } else { (q * q - p * p) / (s * (s + 2.0)) };
            jacobi[(i, i)] = 0.5 * (1.0 + centre);
            if i > 0 {
                let square = if i == 1 {
                    4.0 * (1.0 + p) * (1.0 + q) / ((2.0 + p + q).powi(2) * (3.0 + p + q))
                } else {
                    4.0 * n * (n + p) * (n + q) * (n + p + q) / (s * s * (s + 1.0) * (s - 1.0))
                };
                let off = 0.5 * square.sqrt();
                jacobi[(i, i - 1)] = off;
                jacobi[(i - 1, i)] = off;
            }
        }
        let eigen = jacobi.symmetric_eigen();
        let mut nodes: Vec<(f64, f64)> =
            (0..m).map(|i| (eigen.eigenvalues[i], eigen.eigenvectors[(0, i)].powi(2))).collect();
        nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let arrive: Vec<f64> = nodes.iter().map(|(y, _)| shape / y.max(1e-6)).collect();
        let mut within = vec![0.0; m * m];
        for i in 0..m {
            within[i * m + i] = -arrive[i];
        }
        Self { m, start: nodes.iter().map(|(_, w)| *w).collect(), arrive, within, is_erlang: false }
    }

    /// Numbers of arrivals in each of these times, which ascend.
    pub(super) fn counts(&self, times: &[f64]) -> Vec<Counts> {
        if self.is_erlang {
            return times.iter().map(|t| self.erlang_counts(*t)).collect();
        }
        let mut last = 0.0;
        let mut now = self.no_time();
        times
            .iter()
            .map(|t| {
                if *t > last {
                    // Short steps keep the uniformised series short.
                    let steps = ((t - last) / 2.0).ceil().max(1.0);
                    let step = self.short((t - last) / steps);
                    for _ in 0..steps as usize {
                        now = self.then(&now, &step);
                    }
                    last = *t;
                }
                now.clone()
            })
            .collect()
    }

    fn erlang_counts(&self, time: f64) -> Counts {
        let m = self.m;
        let events = poisson(m as f64 * time);
        if m == 1 {
            return events;
        }
        // From phase i, e events lead to request (i + e) / m and phase (i + e) % m.
        let first = events.first / m;
        let last = (events.first + events.data.len() + m - 2) / m;
        let mut data = vec![0.0; (last - first + 1) * m * m];
        for (e, p) in events.data.iter().enumerate() {
            for i in 0..m {
                let to = i + events.first + e;
                data[((to / m - first) * m + i) * m + to % m] = *p;
            }
        }
        Counts { first, data }
    }

    fn no_time(&self) -> Counts {
        let m = self.m;
        let mut data = vec![0.0; m * m];
        for i in 0..m {
            data[i * m + i] = 1.0;
        }
        Counts { first: 0, data }
    }

    /// Counts in one time, whatever its length.
    pub(super) fn short_or_long(&self, time: f64) -> Counts {
        self.counts(&[time]).swap_remove(0)
    }

    /// Counts in a short time by uniformisation.
    fn short(&self, time: f64) -> Counts {
        let m = self.m;
        let fastest = (0..m).map(|i| -self.within[i * m + i]).fold(0.0, f64::max);
        let mut stay = vec![0.0; m * m];
        let mut next = vec![0.0; m * m];
        for i in 0..m {
            for j in 0..m {
                stay[i * m + j] = self.within[i * m + j] / fastest + if i == j { 1.0 } else { 0.0 };
                next[i * m + j] = self.arrive[i] * self.start[j] / fastest;
            }
        }
        let jumps = poisson(fastest * time);
        let n = jumps.first + jumps.data.len();
        let mut power = vec![0.0; (n + 1) * m * m];
        power[..m * m].copy_from_slice(&self.no_time().data);
        let mut data = vec![0.0; n * m * m];
        for k in 0..n {
            if k >= jumps.first {
                let share = jumps.data[k - jumps.first];
                for (d, p) in data.iter_mut().zip(&power[..(k + 1) * m * m]) {
                    *d += share * p;
                }
            }
            // Downwards, so that the power can be raised in place.
            for a in (0..=k + 1).rev() {
                let mut row = [0.0; MOST_PHASES * MOST_PHASES];
                if a <= k {
                    multiply_into(&power[a * m * m..(a + 1) * m * m], &stay, m, &mut row);
                }
                if a > 0 {
                    multiply_into(&power[(a - 1) * m * m..a * m * m], &next, m, &mut row);
                }
                power[a * m * m..(a + 1) * m * m].copy_from_slice(&row[..m * m]);
            }
        }
        Counts { first: 0, data }.trimmed(m)
    }

    /// Counts of one time after another.
    fn then(&self, a: &Counts, b: &Counts) -> Counts {
        let m = self.m;
        let (na, nb) = (a.len(m), b.len(m));
        let mut data = vec![0.0; (na + nb - 1) * m * m];
        for (i, x) in a.data.chunks_exact(m * m).enumerate() {
            for (j, y) in b.data.chunks_exact(m * m).enumerate() {
                multiply_into(x, y, m, &mut data[(i + j) * m * m..(i + j + 1) * m * m]);
            }
        }
        Counts { first: a.first + b.first, data }.trimmed(m)
    }
}

/// `out += a b` for m x m matrices.
#[inline]
fn multiply_into(a: &[f64], b: &[f64], m: usize, out: &mut [f64]) {
    for i in 0..m {
        for k in 0..m {
            let x = a[i * m + k];
            for j in 0..m {
                out[i * m + j] += x * b[k * m + j];
            }
        }
    }
}

/// Poisson probabilities, negligible ones left out, the rest adding up to 1.
pub(super) fn poisson(mean: f64) -> Counts {
    if mean <= 0.0 {
        return Counts { first: 0, data: vec![1.0] };
    }
    // Outwards from the mode, relative to it: no factorial, no underflow.
    let mode = mean as usize;
    let mut below = Vec::with_capacity(16);
    let mut p = 1.0;
    let mut n = mode;
    while n > 0 {
        p *= n as f64 / mean;
        if p < NEGLIGIBLE {
            break;
        }
        n -= 1;
        below.push(p);
    }
    let first = mode - below.len();
    let mut data = Vec::with_capacity(2 * below.len() + 16);
    data.extend(below.iter().rev());
    data.push(1.0);
    p = 1.0;
    n = mode;
    loop {
        n += 1;
        p *= mean / n as f64;
        if p < NEGLIGIBLE {
            break;
        }
        data.push(p);
    }
    let scale = 1.0 / data.iter().sum::<f64>();
    data.iter_mut().for_each(|p| *p *= scale);
    Counts { first, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and squared coefficient of variation from the phases themselves.
    fn moments(p: &Phases) -> (f64, f64, f64) {
        let minus = DMatrix::from_fn(p.m, p.m, |i, j| -p.within[i * p.m + j]);
        let inverse = minus.try_inverse().unwrap();
        let ones = DMatrix::from_element(p.m, 1, 1.0);
        let start = DMatrix::from_fn(1, p.m, |_, j| p.start[j]);
        let first = (&start * &inverse * &ones)[(0, 0)];
        let second = 2.0 * (&start * &inverse * &inverse * &ones)[(0, 0)];
        let third = 6.0 * (&start * &inverse * &inverse * &inverse * &ones)[(0, 0)];
        (first, second, third)
    }

    fn phases(cv: f64) -> Phases {
        if cv > 1.0 { Phases::bursty(cv) } else { Phases::erlang((1.0 / (cv * cv)).round() as usize) }
    }

    #[test]
    fn phases_have_the_gamma_distributions_moments() {
        for cv in [0.5_f64, 0.5_f64.sqrt(), 1.0, 1.3, 2.0, 4.0] {
            let p = phases(cv);
            let (first, second, third) = moments(&p);
            let (shape, scale) = (1.0 / (cv * cv), cv * cv);
            assert!((p.start.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!((first - 1.0).abs() < 1e-6, "cv {cv}: mean {first}");
            assert!((second / (1.0 + cv * cv) - 1.0).abs() < 1e-6, "cv {cv}: second {second}");
            if cv > 1.0 {
                let exact = scale.powi(3) * shape * (shape + 1.0) * (shape + 2.0);
                assert!((third / exact - 1.0).abs() < 1e-6, "cv {cv}: third {third}");
            }
        }
    }

    #[test]
    fn counts_add_up_and_have_the_right_mean() {
        for cv in [0.5, 0.7, 1.0, 2.0] {
            let p = phases(cv);
            for counts in p.counts(&[0.3, 4.0, 30.0]) {
                let m = p.m;
                for i in 0..m {
                    let total: f64 = counts
                        .data
                        .chunks_exact(m * m)
                        .map(|c| c[i * m..(i + 1) * m].iter().sum::<f64>())
                        .sum();
                    assert!((total - 1.0).abs() < 1e-6, "cv {cv}: {total}");
                }
            }
        }
    }
}
