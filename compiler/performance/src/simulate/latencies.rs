//! Observed latencies → percentiles, without keeping them all.
//!
//! A histogram over the bits of the numbers: every power of two is cut into 2048 bins, so a percentile
//! is off by at most 0.05 %. Histograms of several runs add up to the pooled one. Attainment is counted
//! exactly.

/// Bits of the mantissa that choose the bin.
const RESOLUTION: u32 = 11;

/// Latencies below this many seconds share the lowest bin.
const SMALLEST: f64 = 1e-9;

/// A sample of latencies.
#[derive(Clone, Debug)]
pub struct Latencies {
    bins: Vec<u64>,
    lowest: u64,
    count: u64,
    sum: f64,
    max: f64,
    bound: f64,
    within: u64,
}

fn bin(latency: f64) -> u64 {
    latency.max(SMALLEST).to_bits() >> (52 - RESOLUTION)
}

impl Latencies {
    /// An empty sample; `bound` is the promise that attainment is counted against (s).
    #[must_use]
    pub fn new(bound: f64) -> Self {
        Self { bins: Vec::new(), lowest: bin(SMALLEST), count: 0, sum: 0.0, max: 0.0, bound, within: 0 }
    }

    /// Adds one latency (s).
    #[inline]
    pub fn record(&mut self, latency: f64) {
        let at = (bin(latency) - self.lowest) as usize;
        if at >= self.bins.len() {
            self.bins.resize(at + 1, 0);
        }
        self.bins[at] += 1;
        self.count += 1;
        self.sum += latency;
        self.max = self.max.max(latency);
        self.within += u64::from(latency <= self.bound);
    }

    /// Adds another sample of the same promise.
    pub fn pool(&mut self, other: &Self) {
        if other.bins.len() > self.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (mine, theirs) in self.bins.iter_mut().zip(&other.bins) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
        self.within += other.within;
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean (s); 0 of an empty sample.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum / self.count as f64 }
    }

    /// The largest (s).
    #[must_use]
    pub fn max(&self) -> f64 {
        self.max
    }

    /// Share of the latencies within the promise; 1 of an empty sample.
    #[must_use]
    pub fn attainment(&self) -> f64 {
        if self.count == 0 { 1.0 } else { self.within as f64 / self.count as f64 }
    }

    /// Share of the latencies within a time (s), to the width of a bin; 1 of an empty sample.
    #[must_use]
    pub fn share_within(&self, time: f64) -> f64 {
        if self.count == 0 {
            return 1.0;
        }
        let last = bin(time).saturating_sub(self.lowest) as usize;
        self.bins.iter().take(last + 1).sum::<u64>() as f64 / self.count as f64
    }

    /// The latency (s) that the share `percentile` of the sample does not exceed; 0 of an empty sample.
    #[must_use]
    pub fn percentile(&self, percentile: f64) -> f64 {
        let rank = ((percentile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (i, n) in self.bins.iter().enumerate() {
            if seen + n >= rank {
                let edge = |i: u64| f64::from_bits((self.lowest + i) << (52 - RESOLUTION));
                let (low, high) = (edge(i as u64), edge(i as u64 + 1));
                return (low + (high - low) * (rank - seen) as f64 / *n as f64).min(self.max);
            }
            seen += n;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_sample() {
        let mut sample = Latencies::new(0.5);
        for i in 1..=1000 {
            sample.record(f64::from(i) * 1e-3);
        }
        assert!((sample.percentile(0.5) / 0.5 - 1.0).abs() < 1e-3);
        assert!((sample.percentile(0.99) / 0.99 - 1.0).abs() < 1e-3);
        assert_eq!(sample.percentile(1.0), 1.0);
        assert_eq!(sample.attainment(), 0.5);
        assert!((sample.share_within(0.25) - 0.25).abs() < 2e-3);
        assert!((sample.mean() - 0.5005).abs() < 1e-12);
    }

    #[test]
    fn pooling_equals_recording_together() {
        let (mut a, mut b, mut both) = (Latencies::new(1.0), Latencies::new(1.0), Latencies::new(1.0));
        for i in 0..500 {
            let x = 0.01 + f64::from(i * i % 97) * 0.03;
            if i % 3 == 0 {
                a.record(x)
            } else {
                b.record(x)
            }
            both.record(x);
        }
        a.pool(&b);
        for p in [0.5, 0.9, 0.99] {
            assert_eq!(a.percentile(p), both.percentile(p));
        }
        assert_eq!(a.attainment(), both.attainment());
        assert_eq!(a.count(), both.count());
    }

    #[test]
    fn an_empty_sample_is_harmless() {
        let sample = Latencies::new(1.0);
        assert_eq!((sample.percentile(0.99), sample.mean(), sample.attainment()), (0.0, 0.0, 1.0));
    }
}
