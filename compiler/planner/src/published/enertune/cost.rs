//! What a board costs, as the published planner estimates it.

use super::Row;

/// What a board draws besides its instances, at one clock (W).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockPower {
    /// SM clock (MHz).
    pub clock: u32,
    /// Drawn by a board that does nothing.
    pub static_power: f64,
    /// The fan.
    pub fan: f64,
    /// Resident contexts.
    pub idle: f64,
}

impl ClockPower {
    /// All of it (W).
    #[must_use]
    pub fn base(&self) -> f64 {
        self.static_power + self.fan + self.idle
    }
}

const fn at(clock: u32, static_power: f64, idle: f64) -> ClockPower {
    ClockPower { clock, static_power, fan: 20.4, idle }
}

/// The published planner's own table for the A100 80GB PCIe. Static and fan are its constants; idle is
/// given to as many digits as its published totals tell. At 690 and 780 MHz it contradicts the
/// measurements by 2 W, which draws its plans there.
pub const PUBLISHED: [ClockPower; 15] = [
    at(210, 22.0, 1.390),
    at(240, 22.1, 1.443_439),
    at(330, 22.5, 1.470_161),
    at(420, 22.9, 1.420),
    at(510, 23.2, 1.644_264),
    at(600, 23.5, 1.647),
    at(690, 21.7, 1.660_922),
    at(780, 21.8, 2.085_770),
    at(870, 23.4, 2.117_947),
    at(960, 24.4, 2.161_720),
    at(1050, 25.4, 3.258_763),
    at(1140, 27.1, 3.878_160),
    at(1230, 32.1, 4.781_903),
    at(1320, 37.56, 7.284),
    at(1410, 44.7, 8.333_537),
];

/// Power usage effectiveness, carbon intensity (gCO2/kWh), embodied carbon of a board (gCO2) and its
/// life (ms, of which the original forgets the thousand), as the original has them.
const PUE: f64 = 1.1;
const INTENSITY: f64 = 490.0;
const EMBODIED: f64 = (583.0 * 1.52 + 350.0 + 500.0) * 8.26 / 0.9 + 66.60 * 80.0 + 2.0 * 150.0;
const LIFE: f64 = 4.0 * 352.0 * 86_400.0;

/// What is minimised, as the original estimates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// Power with everything busy (W).
    Power,
    /// Energy of one batch of every model started together (W ms), whatever the rates are.
    Energy,
    /// That energy times intensity, and a share of the board's embodied carbon; in mixed units, so that
    /// it follows energy.
    Carbon,
    /// Power with fan and idle power counted once for each instance (W); the original's additive energy
    /// is the same.
    Additive,
}

/// A cost is `fixed + Σ own + per_latency · greatest latency`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price {
    fixed: f64,
    per_instance: f64,
    per_latency: f64,
}

impl Estimator {
    /// The prices at a clock.
    pub(super) fn price(self, clock: &ClockPower) -> Price {
        let base = clock.base();
        match self {
            Self::Power => Price { fixed: base, per_instance: 0.0, per_latency: 0.0 },
            Self::Additive => {
                Price { fixed: clock.static_power, per_instance: clock.fan + clock.idle, per_latency: 0.0 }
            }
            Self::Energy => Price { fixed: 0.0, per_instance: 0.0, per_latency: base },
            Self::Carbon => {
                Price { fixed: 0.0, per_instance: 0.0, per_latency: PUE * INTENSITY * base + EMBODIED / LIFE }
            }
        }
    }

    /// A row's own part. Energy is the integral, over the time until the slowest model's batch ends, of
    /// the base power and of the dynamic powers of those not yet finished.
    pub(super) fn own(self, row: &Row, price: &Price) -> f64 {
        price.per_instance
            + match self {
                Self::Power | Self::Additive => row.dynamic,
                Self::Energy => row.dynamic * row.latency,
                Self::Carbon => PUE * INTENSITY * row.dynamic * row.latency,
            }
    }
}

impl Price {
    /// A cost from its parts.
    pub(super) fn of(&self, own: f64, latency: f64) -> f64 {
        self.fixed + own + self.per_latency * latency
    }
}
