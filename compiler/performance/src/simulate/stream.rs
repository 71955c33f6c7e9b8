//! Arrival process + seed → arrival times.

use ent_lang::program::Arrivals;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma};

enum Gaps {
    Even,
    Memoryless,
    Gamma(Gamma<f64>),
    /// Gaps of a recorded trace over their mean, repeated.
    Recorded {
        gaps: Vec<f64>,
        next: usize,
    },
}

/// Arrival times of one service or instance, endless.
pub struct Stream {
    gaps: Gaps,
    mean: f64,
    now: f64,
    random: ChaCha8Rng,
}

impl Stream {
    /// A stream at a rate (req/s, positive). `lane` tells streams of one seed apart. A recorded trace's
    /// gaps (s, any scale) are brought to the rate; without them a trace is taken as Poisson.
    #[must_use]
    pub fn new(arrivals: &Arrivals, trace: Option<&[f64]>, rate: f64, seed: u64, lane: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(lane);
        let gaps = match arrivals {
            Arrivals::Uniform => Gaps::Even,
            Arrivals::Poisson => Gaps::Memoryless,
            Arrivals::Gamma { cv } => {
                // Shape and scale for mean 1; a shape out of the sampler's range is as good as even.
                Gamma::new(1.0 / (cv * cv), cv * cv).map_or(Gaps::Even, Gaps::Gamma)
            }
            Arrivals::Trace { .. } => match trace {
                Some(gaps) if gaps.iter().sum::<f64>() > 0.0 => {
                    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
                    let next = random.random_range(0..gaps.len());
                    Gaps::Recorded { gaps: gaps.iter().map(|g| g / mean).collect(), next }
                }
                _ => Gaps::Memoryless,
            },
        };
        let mean = 1.0 / rate;
        // Even arrivals begin anywhere within a gap, so that instances do not march in step.
        let now = if matches!(gaps, Gaps::Even) { -mean * random.random::<f64>() } else { 0.0 };
        Self { gaps, mean, now, random }
    }

    /// The next arrival (s).
    #[inline]
    pub fn next_arrival(&mut self) -> f64 {
        let gap = match &mut self.gaps {
            Gaps::Even => 1.0,
            Gaps::Memoryless => Exp1.sample(&mut self.random),
            Gaps::Gamma(gamma) => gamma.sample(&mut self.random),
            Gaps::Recorded { gaps, next } => {
                let gap = gaps[*next];
                *next = (*next + 1) % gaps.len();
                gap
            }
        };
        self.now += gap * self.mean;
        self.now
    }

    /// A uniform number in [0, 1) from the same source, for routing.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        self.random.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(arrivals: &Arrivals, trace: Option<&[f64]>) -> (f64, f64) {
        let mut stream = Stream::new(arrivals, trace, 50.0, 1, 0);
        let n = 200_000;
        let (mut last, mut sum, mut square) = (stream.next_arrival(), 0.0, 0.0);
        for _ in 0..n {
            let now = stream.next_arrival();
            let gap = now - last;
            last = now;
            sum += gap;
            square += gap * gap;
        }
        let mean = sum / f64::from(n);
        (mean, (square / f64::from(n) - mean * mean).max(0.0).sqrt() / mean)
    }

    #[test]
    fn gaps_have_the_asked_mean_and_variation() {
        for (arrivals, cv) in [
            (Arrivals::Uniform, 0.0),
            (Arrivals::Poisson, 1.0),
            (Arrivals::Gamma { cv: 0.5 }, 0.5),
            (Arrivals::Gamma { cv: 2.0 }, 2.0),
        ] {
            let (mean, seen) = moments(&arrivals, None);
            assert!((mean * 50.0 - 1.0).abs() < 0.02, "{arrivals:?}: mean {mean}");
            assert!((seen - cv).abs() < 0.03 * cv.max(0.1), "{arrivals:?}: cv {seen}");
        }
    }

    #[test]
    fn a_trace_is_replayed_at_the_asked_rate() {
        let trace = Arrivals::Trace { file: String::new() };
        let (mean, cv) = moments(&trace, Some(&[1.0, 3.0]));
        assert!((mean * 50.0 - 1.0).abs() < 1e-4);
        assert!((cv - 0.5).abs() < 1e-3);
    }

    #[test]
    fn a_seed_gives_one_stream_and_lanes_differ() {
        let first = |seed, lane| Stream::new(&Arrivals::Poisson, None, 1.0, seed, lane).next_arrival();
        assert_eq!(first(7, 0), first(7, 0));
        assert_ne!(first(7, 0), first(7, 1));
        assert_ne!(first(7, 0), first(8, 0));
    }
}
