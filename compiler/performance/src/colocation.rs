//! Base power + what each instance does → power of a shared board.
//!
//! One base for the board: fan, leakage and resident contexts are drawn once, however many models share it.
//! A model draws its dynamic power while a batch runs, so an instance that is idle a fifth of the time
//! draws a fifth less. The board never draws more than its power limit: it throttles instead.

use ent_plan::units::Watts;

/// What one instance draws.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// Dynamic power while a batch runs.
    pub dynamic_power: Watts,
    /// Share of time that batches run: offered rate over throughput. More than 1 counts as 1.
    pub utilisation: f64,
}

/// Mean power of the board. `limit` is its power limit; `None` when not known.
#[must_use]
pub fn board_power(base: Watts, shares: &[Share], limit: Option<Watts>) -> Watts {
    let dynamic: f64 = shares.iter().map(|s| s.utilisation.clamp(0.0, 1.0) * s.dynamic_power.get()).sum();
    let total = base.get() + dynamic;
    Watts(limit.map_or(total, |l| total.min(l.get())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_draws_only_base_power() {
        let share = |watts, utilisation| Share { dynamic_power: Watts(watts), utilisation };
        let base = Watts(50.0);
        assert_eq!(board_power(base, &[], None), base);
        assert_eq!(board_power(base, &[share(40.0, 0.5), share(10.0, 3.0)], None), Watts(80.0));
        assert_eq!(board_power(base, &[share(400.0, 1.0)], Some(Watts(300.0))), Watts(300.0));
    }
}
