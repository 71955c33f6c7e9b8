//! Quantities: a number and its unit as one type, so that watts never meet seconds by accident.
//!
//! Inside entc everything is SI (`Seconds`, `Watts`, `PerSecond`, …); conversions happen where text
//! is read and where numbers are shown. The one exception is [`Megahertz`], the driver's own unit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub f64);

        impl $name {
            /// The unit, as it is printed.
            pub const UNIT: &'static str = $unit;

            /// The bare number, in this type's unit.
            #[must_use]
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)?;
                f.write_str(concat!(" ", $unit))
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }

        impl std::ops::Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }

        impl std::ops::Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                Self(iter.map(|q| q.0).sum())
            }
        }
    };
}

quantity!(
    /// Power.
    Watts, "W"
);
quantity!(
    /// Energy.
    Joules, "J"
);
quantity!(
    /// Time.
    Seconds, "s"
);
quantity!(
    /// A rate: requests per second.
    PerSecond, "req/s"
);
quantity!(
    /// Memory, in bytes.
    Bytes, "B"
);
quantity!(
    /// Mass of carbon dioxide equivalent.
    Grams, "gCO2"
);
quantity!(
    /// Carbon intensity of electricity.
    GramsPerKilowattHour, "gCO2/kWh"
);
quantity!(
    /// Money. One currency, US dollars.
    Dollars, "USD"
);

/// A clock frequency in MHz, the unit NVML uses.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Megahertz(pub u32);

impl std::fmt::Display for Megahertz {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} MHz", self.0)
    }
}

impl std::ops::Mul<Seconds> for Watts {
    type Output = Joules;
    fn mul(self, time: Seconds) -> Joules {
        Joules(self.0 * time.0)
    }
}

impl Joules {
    /// Kilowatt-hours.
    #[must_use]
    pub fn kilowatt_hours(self) -> f64 {
        self.0 / 3.6e6
    }
}

impl Seconds {
    /// Milliseconds.
    #[must_use]
    pub fn millis(self) -> f64 {
        self.0 * 1e3
    }
}
