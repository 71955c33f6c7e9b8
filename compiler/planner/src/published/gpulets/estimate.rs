//! The shares a rate would get on boards without end.

use super::measure::Rules;

/// A share that is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wanted {
    /// Its number in the order estimated.
    pub(super) number: usize,
    pub(super) model: usize,
    pub(super) percent: u32,
    pub(super) batch: u32,
    /// Time between batches (ms).
    pub(super) duty: f64,
    pub(super) occupancy: f64,
    /// Requests per second it serves.
    pub(super) throughput: f64,
    /// Requests per second that were left when it was estimated.
    pub(super) rate: f64,
    pub(super) is_saturated: bool,
}

impl Rules<'_> {
    /// Wanted shares for a rate, in the order estimated; `None` when not even one request is within the promise.
    pub(super) fn estimate(&self, model: usize, asked: f64) -> Option<Vec<Wanted>> {
        let mut rate = asked;
        let mut all = Vec::new();
        while !self.is_served(rate, asked) {
            let (percent, is_enough) = self.size(model, rate);
            let (batch, latency, throughput) = self.saturated(model, percent);
            let number = all.len();
            if is_enough {
                all.push(self.residue(model, percent, rate, number)?);
                break;
            }
            if !(throughput > 0.0 && throughput.is_finite()) || number >= MOST_SHARES {
                return None;
            }
            if self.mode == super::Mode::Native && 2.0 * latency > self.model(model).bound_ms {
                return None;
            }
            all.push(Wanted {
                number,
                model,
                percent,
                batch,
                duty: latency,
                occupancy: 1.0,
                throughput,
                rate,
                is_saturated: true,
            });
            rate = self.whole(rate - throughput);
        }
        Some(all)
    }

    /// The size of the next share, and whether it carries the whole rate.
    fn size(&self, model: usize, rate: f64) -> (u32, bool) {
        if !self.input.is_self_tuning {
            let knee = self.knee(model);
            return (knee, self.saturated(model, knee).2 >= rate);
        }
        let sizes = self.sizes();
        let enough = sizes.iter().copied().find(|&p| self.whole(self.saturated(model, p).2) > rate);
        enough.map_or((sizes.last().copied().unwrap_or(100), false), |p| (p, true))
    }

    /// A share that is not filled: as small as keeps up and keeps the promise.
    fn residue(&self, model: usize, largest: u32, mut rate: f64, number: usize) -> Option<Wanted> {
        let batch = self.residue_batch(model, largest, &mut rate, &[]);
        if batch == 0 {
            return None;
        }
        let bound = self.model(model).bound_ms;
        let duty = self.duty(batch, rate);
        let mut percent = largest;
        for size in self.sizes().into_iter().rev().filter(|&s| s <= largest) {
            let latency = self.latency(model, batch, size, &[]);
            if duty >= latency && latency + self.wait(batch, duty) <= bound {
                percent = size;
            }
        }
        let latency = self.latency(model, batch, percent, &[]);
        let duty = duty.max(latency);
        Some(Wanted {
            number,
            model,
            percent,
            batch,
            duty,
            occupancy: latency / duty,
            throughput: self.real(1000.0 * f64::from(batch) / duty),
            rate,
            is_saturated: false,
        })
    }
}

/// No rate is met with more shares than this.
const MOST_SHARES: usize = 10_000;
