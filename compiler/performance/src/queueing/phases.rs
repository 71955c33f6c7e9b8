//! Arrival process → how many requests arrive in a time, and what that says about the next one.
//!
//! Gaps between arrivals are of phase type, so that a Markov chain can carry them: exponential for
//! Poisson; Erlang for gamma distributions of whole shape; for `cv` above 1 a mixture of exponentials by
//! quadrature of an exact identity: a gamma variable of shape a < 1 is an exponential one times an
//! independent Beta(a, 1 - a).
//!
//! Time is counted in mean gaps, so nothing here knows a rate.

use nalgebra::DMatrix;

/// Shares below this are left out of distributions of counts.
const NEGLIGIBLE: f64 = 1e-8;

/// The same where arrivals are not Poisson, whose counts have longer tails.
const RARE: f64 = 1e-5;

/// Below this load bursts are looked at as finely as requests are served: gaps of this share of the
/// shortest batch's time are told apart.
const LIGHT: f64 = 0.35;
const FINE: f64 = 0.25;

/// Most parts that the mixing distribution of bursty gaps is cut into.
const MOST_PARTS: usize = 5;

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

    /// Gaps with a squared coefficient of variation between 1/2 and 1: exponential or Erlang of two
    /// phases with one rate, Tijms' fit of two moments.
    pub(super) fn between_one_and_two(square: f64) -> Self {
        let single = ((2.0 * square - (2.0 - 2.0 * square).max(0.0).sqrt()) / (1.0 + square)).clamp(0.0, 1.0);
        let rate = 2.0 - single;
        Self {
            m: 2,
            start: vec![1.0 - single, single],
            arrive: vec![0.0, rate],
            within: vec![-rate, rate, 0.0, -rate],
            is_erlang: false,
        }
    }

    /// Squared coefficient of variation of the gaps.
    pub(super) fn variation(&self) -> f64 {
        // Expected time left by phase, from the last phase back: phases only lead onwards.
        let m = self.m;
        let mut first = vec![0.0; m];
        let mut second = vec![0.0; m];
        for i in (0..m).rev() {
            let rate = -self.within[i * m + i];
            let on = if i + 1 < m { self.within[i * m + i + 1] / rate } else { 0.0 };
            let (then, then_square) = if i + 1 < m { (first[i + 1], second[i + 1]) } else { (0.0, 0.0) };
            first[i] = 1.0 / rate + on * then;
            second[i] = 2.0 / (rate * rate) + on * (2.0 * then / rate + then_square);
        }
        let mean: f64 = self.start.iter().zip(&first).map(|(s, x)| s * x).sum();
        let square: f64 = self.start.iter().zip(&second).map(|(s, x)| s * x).sum();
        square / (mean * mean) - 1.0
    }

    /// Laplace transform of the gaps.
    fn transform(&self, at: f64) -> f64 {
        let m = self.m;
        let matrix = DMatrix::from_fn(m, m, |i, j| if i == j { at } else { 0.0 } - self.within[i * m + j]);
        let arrive = DMatrix::from_column_slice(m, 1, &self.arrive);
        matrix.lu().solve(&arrive).map_or(1.0, |x| x.iter().zip(&self.start).map(|(x, s)| x * s).sum())
    }

    /// Ratio of probabilities of long queues that differ by one request, for full batches of this time:
    /// the transform at the x > 0 where `x time + batch ln(transform) = 0`.
    pub(super) fn tail_ratio(&self, batch: usize, time: f64) -> f64 {
        let excess = |x: f64| x * time + batch as f64 * self.transform(x).ln();
        let (mut low, mut high) = (0.0, 1e-3);
        while excess(high) < 0.0 && high < 1e12 {
            low = high;
            high *= 2.0;
        }
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if excess(middle) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.transform(high)
    }

    /// Gamma-distributed gaps with a squared coefficient of variation above 1, for batches whose
    /// shortest and full ones take these times.
    ///
    /// Long queues see the gaps' moments: Gauss quadrature of the mixing Beta(a, 1 - a). Short ones at
    /// light load see how close requests can follow each other, at whatever scale they are served: there
    /// the distribution is cut at powers of 1/4, its top part gets the two nodes that keep its first four
    /// moments, every other part one node at its mean.
    pub(super) fn bursty(square: f64, batch: usize, shortest: f64, full: f64) -> Self {
        let shape = 1.0 / square;
        let nodes = if full >= LIGHT * batch as f64 {
            gauss_nodes(shape, if batch <= 4 { 4 } else { 3 })
        } else {
            cut_nodes(shape, FINE * shortest * shape)
        };
        let m = nodes.len();
        let arrive: Vec<f64> = nodes.iter().map(|(y, _)| shape / y).collect();
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
        let m = self.m;
        let mut now = vec![0.0; m * m];
        for i in 0..m {
            now[i * m + i] = 1.0;
        }
        let (mut last, mut first) = (0.0, 0);
        times
            .iter()
            .map(|t| {
                self.evolve(&mut now, m, usize::MAX, t - last);
                last = t.max(last);
                let mut counts = Counts { first, data: std::mem::take(&mut now) };
                counts.keep_above(RARE, m);
                now.clone_from(&counts.data);
                first = counts.first;
                counts
            })
            .collect()
    }

    /// Numbers of arrivals in one time.
    pub(super) fn counts_in(&self, time: f64) -> Counts {
        self.counts(&[time]).swap_remove(0)
    }

    /// Lets time pass over a distribution of (count, lane, phase), `lanes` of them side by side, counts
    /// from `most` on forgotten: jumps of the chain uniformised at its fastest rate.
    pub(super) fn evolve(&self, state: &mut Vec<f64>, lanes: usize, most: usize, time: f64) {
        if time <= 0.0 {
            return;
        }
        let (m, width) = (self.m, lanes * self.m);
        let rate = (0..m).map(|i| -self.within[i * m + i]).fold(0.0, f64::max);
        let jumps = poisson(rate * time);
        let stay: Vec<f64> = (0..m).map(|i| 1.0 + self.within[i * m + i] / rate).collect();
        // A phase leads to the next one only.
        let on: Vec<f64> =
            (0..m).map(|i| if i > 0 { self.within[(i - 1) * m + i] / rate } else { 0.0 }).collect();
        let arrive: Vec<f64> = self.arrive.iter().map(|a| a / rate).collect();
        let mut out = vec![0.0; state.len()];
        let mut next: Vec<f64> = Vec::with_capacity(state.len() + 32 * width);
        for k in 0..jumps.first + jumps.data.len() {
            if let Some(share) = k.checked_sub(jumps.first).map(|k| jumps.data[k]) {
                out.resize(state.len(), 0.0);
                for (o, s) in out.iter_mut().zip(state.iter()) {
                    *o += share * s;
                }
            }
            next.clear();
            next.resize((state.len() + width).min(most.saturating_mul(width)), 0.0);
            let rates = [&stay[..], &on, &arrive, &self.start];
            match m {
                2 => jump::<2>(state, &mut next, width, rates),
                3 => jump::<3>(state, &mut next, width, rates),
                4 => jump::<4>(state, &mut next, width, rates),
                5 => jump::<5>(state, &mut next, width, rates),
                6 => jump::<6>(state, &mut next, width, rates),
                7 => jump::<7>(state, &mut next, width, rates),
                _ => jump::<MOST_PHASES>(state, &mut next, width, rates),
            }
            std::mem::swap(state, &mut next);
        }
        *state = out;
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
}

/// One jump of a uniformised chain of M phases: stay, go on to the next phase, or arrive and start anew,
/// one count further.
fn jump<const M: usize>(state: &[f64], next: &mut [f64], width: usize, rates: [&[f64]; 4]) {
    let [stay, on, arrive, start] =
        rates.map(|list| std::array::from_fn::<f64, M, _>(|i| list.get(i).copied().unwrap_or(0.0)));
    let (phases, _) = state.as_chunks::<M>();
    let (same, _) = next.as_chunks_mut::<M>();
    for (to, from) in same.iter_mut().zip(phases) {
        to[0] = from[0] * stay[0];
        for j in 1..M {
            to[j] = from[j] * stay[j] + from[j - 1] * on[j];
        }
    }
    if next.len() <= width {
        return;
    }
    let (further, _) = next[width..].as_chunks_mut::<M>();
    for (to, from) in further.iter_mut().zip(phases) {
        let arriving: f64 = (0..M).map(|j| from[j] * arrive[j]).sum();
        for j in 0..M {
            to[j] += arriving * start[j];
        }
    }
}

/// Gauss quadrature of Beta(a, 1 - a) by Golub and Welsch: nodes are the eigenvalues of the Jacobi
/// matrix, weights the squared first components of its eigenvectors.
fn gauss_nodes(shape: f64, m: usize) -> Vec<(f64, f64)> {
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
        (0..m).map(|i| (eigen.eigenvalues[i].max(1e-9), eigen.eigenvectors[(0, i)].powi(2))).collect();
    nodes.sort_by(|a, b| a.0.total_cmp(&b.0));
    nodes
}

/// Nodes of Beta(a, 1 - a) cut at powers of 1/4 down to `finest`.
fn cut_nodes(shape: f64, finest: f64) -> Vec<(f64, f64)> {
    let mut edges = vec![0.25];
    while edges[edges.len() - 1] > finest && edges.len() < MOST_PARTS {
        edges.push(0.25 * edges[edges.len() - 1]);
    }
    let mut above = [1.0; 4];
    for k in 1..4 {
        above[k] = above[k - 1] * (shape + k as f64 - 1.0) / k as f64;
    }
    let mut nodes = Vec::new();
    for (i, edge) in edges.iter().enumerate() {
        let below = lower_moments(shape, *edge);
        let part = std::array::from_fn(|k| above[k] - below[k]);
        if i == 0 {
            nodes.extend(two_nodes(&part))
        } else {
            nodes.push((part[1] / part[0], part[0]))
        }
        above = below;
    }
    // Gaps too short to be told from none, at this scale, are none: the safe side.
    let is_cut_short = edges.last().is_some_and(|edge| finest < edge / 4.0);
    let mean = above[1] / above[0];
    nodes.push((if is_cut_short { mean.min(finest) } else { mean }, above[0]));
    nodes
}

/// Moments 0 to 3 of Beta(a, 1 - a) below an edge of at most 1/4, by the power series of its density.
fn lower_moments(shape: f64, edge: f64) -> [f64; 4] {
    let norm = (std::f64::consts::PI * shape).sin() / std::f64::consts::PI;
    std::array::from_fn(|k| {
        let (mut sum, mut factor) = (0.0, 1.0);
        let mut power = edge.powf(shape + k as f64);
        for j in 0..30 {
            let j = f64::from(j);
            sum += factor * power / (shape + k as f64 + j);
            factor *= (shape + j) / (j + 1.0);
            power *= edge;
        }
        norm * sum
    })
}

/// The two nodes and weights with these moments 0 to 3.
fn two_nodes(moments: &[f64; 4]) -> [(f64, f64); 2] {
    let [zero, one, two, three] = *moments;
    // The nodes are the roots of y^2 + a y + b, orthogonal to 1 and y.
    let det = one * one - zero * two;
    let (a, b) = ((zero * three - one * two) / det, (two * two - one * three) / det);
    let root = (a * a - 4.0 * b).max(0.0).sqrt();
    let (low, high) = (0.5 * (-a - root), 0.5 * (-a + root));
    let weight = (zero * high - one) / (high - low);
    [(low, weight), (high, zero - weight)]
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
        if cv > 1.0 {
            Phases::bursty(cv * cv, 1, 0.1, 0.1)
        } else {
            Phases::erlang((1.0 / (cv * cv)).round() as usize)
        }
    }

    #[test]
    fn phases_have_the_gamma_distributions_moments() {
        for cv in [0.5_f64, 0.5_f64.sqrt(), 1.0, 1.3, 2.0, 4.0] {
            let p = phases(cv);
            let (first, second, third) = moments(&p);
            let (shape, scale) = (1.0 / (cv * cv), cv * cv);
            assert!((p.start.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!((first - 1.0).abs() < 1e-6, "cv {cv}: mean {first}");
            assert!((p.variation() + 1.0 - second).abs() < 1e-6);
            assert!((second / (1.0 + cv * cv) - 1.0).abs() < 0.01, "cv {cv}: second {second}");
            if cv > 1.0 {
                let exact = scale.powi(3) * shape * (shape + 1.0) * (shape + 2.0);
                assert!((third / exact - 1.0).abs() < 0.01, "cv {cv}: third {third}");
            }
        }
    }

    #[test]
    fn the_mixture_has_the_asked_variation() {
        for square in [0.5, 0.7, 0.95] {
            let (first, second, _) = moments(&Phases::between_one_and_two(square));
            assert!((first - 1.0).abs() < 1e-9 && (second - 1.0 - square).abs() < 1e-9);
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
                    assert!((total - 1.0).abs() < 1e-3, "cv {cv}: {total}");
                }
            }
        }
    }
}
