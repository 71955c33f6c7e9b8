//! Numbers with dimensions: what a unit means, and what arithmetic does to it.
//!
//! A dimension is a vector of exponents over time, energy, memory, carbon mass, money and cycles, so
//! `1 / 47.6 ms` is a rate without being told. Requests and boards are plain counts. A literal keeps its
//! unit's scale as an exact fraction until it is needed: `47.6 ms` becomes seconds by one division, and
//! `490 gCO2/kWh` asked for in gCO2/kWh is 490.

use std::cmp::Ordering;

/// Exponents of time, energy, memory, carbon mass, money, cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dimension([i16; 6]);

/// Exponents beyond this are a mistake, not physics.
const MAX_EXPONENT: i16 = 16;

impl Dimension {
    pub(crate) const NONE: Self = Self([0; 6]);
    pub(crate) const TIME: Self = Self([1, 0, 0, 0, 0, 0]);
    pub(crate) const RATE: Self = Self([-1, 0, 0, 0, 0, 0]);
    pub(crate) const ENERGY: Self = Self([0, 1, 0, 0, 0, 0]);
    pub(crate) const POWER: Self = Self([-1, 1, 0, 0, 0, 0]);
    pub(crate) const MEMORY: Self = Self([0, 0, 1, 0, 0, 0]);
    pub(crate) const CARBON: Self = Self([0, 0, 0, 1, 0, 0]);
    pub(crate) const INTENSITY: Self = Self([0, -1, 0, 1, 0, 0]);
    pub(crate) const MONEY: Self = Self([0, 0, 0, 0, 1, 0]);
    pub(crate) const PRICE: Self = Self([-1, 0, 0, 0, 1, 0]);
    pub(crate) const FREQUENCY: Self = Self([-1, 0, 0, 0, 0, 1]);

    fn combine(self, other: Self, sign: i16) -> Option<Self> {
        let mut exponents = self.0;
        for (a, b) in exponents.iter_mut().zip(other.0) {
            *a += sign * b;
            if a.abs() > MAX_EXPONENT {
                return None;
            }
        }
        Some(Self(exponents))
    }

    /// In words: `a rate`, `a time`, or the exponents where there is no word.
    pub(crate) fn words(self) -> String {
        if let Some(kind) = Measure::ALL.iter().find(|k| k.dimension() == self) {
            return kind.words().to_owned();
        }
        let units = ["s", "J", "B", "gCO2", "USD", "cycle"];
        let power = |n: i16, unit: &str| if n == 1 { unit.to_owned() } else { format!("{unit}^{n}") };
        let parts: Vec<String> =
            self.0.iter().zip(units).filter(|(n, _)| **n != 0).map(|(n, unit)| power(*n, unit)).collect();
        format!("a quantity in {}", parts.join("·"))
    }
}

/// What a number measures, or is wanted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A plain number.
    Ratio,
    /// Requests over time.
    Rate,
    /// Seconds.
    Time,
    /// Watts.
    Power,
    /// Joules.
    Energy,
    /// Cycles over time.
    Frequency,
    /// Bytes.
    Memory,
    /// Grams of CO2.
    Carbon,
    /// Grams of CO2 over energy.
    Intensity,
    /// Money over time.
    Price,
    /// Dollars.
    Money,
}

impl Measure {
    /// Every one of them.
    pub const ALL: [Self; 11] = [
        Self::Ratio,
        Self::Rate,
        Self::Time,
        Self::Power,
        Self::Energy,
        Self::Frequency,
        Self::Memory,
        Self::Carbon,
        Self::Intensity,
        Self::Price,
        Self::Money,
    ];

    /// Its dimension, its name, how it is written, and the unit it is shown in.
    fn facts(self) -> (Dimension, &'static str, &'static str, &'static str) {
        match self {
            Self::Ratio => {
                (Dimension::NONE, "a plain number", "plain numbers are written like `2` or `50%`", "")
            }
            Self::Rate => (Dimension::RATE, "a rate", "rates are written like `1391.97 req/s`", "req/s"),
            Self::Time => (Dimension::TIME, "a time", "times are written like `47.6 ms`", "s"),
            Self::Power => (Dimension::POWER, "a power", "powers are written like `1.2 kW`", "W"),
            Self::Energy => {
                (Dimension::ENERGY, "an energy", "energies are written like `3.6 MJ` or `1 kWh`", "J")
            }
            Self::Frequency => {
                (Dimension::FREQUENCY, "a frequency", "frequencies are written like `1050 MHz`", "MHz")
            }
            Self::Memory => {
                (Dimension::MEMORY, "an amount of memory", "memory is written like `40 GiB`", "GiB")
            }
            Self::Carbon => {
                (Dimension::CARBON, "a carbon mass", "carbon masses are written like `150 kgCO2`", "gCO2")
            }
            Self::Intensity => (
                Dimension::INTENSITY,
                "a carbon intensity",
                "carbon intensities are written like `490 gCO2/kWh`",
                "gCO2/kWh",
            ),
            Self::Price => (
                Dimension::PRICE,
                "a price per time",
                "prices are written like `2.1 USD per hour`",
                "USD per hour",
            ),
            Self::Money => (Dimension::MONEY, "an amount of money", "money is written like `40 USD`", "USD"),
        }
    }

    pub(crate) fn dimension(self) -> Dimension {
        self.facts().0
    }

    /// What it is called in the language's messages, as [`crate::vocabulary::unit_in_words`] says it.
    #[must_use]
    pub fn words(self) -> &'static str {
        self.facts().1
    }

    pub(crate) fn example(self) -> &'static str {
        self.facts().2
    }

    pub(crate) fn unit(self) -> &'static str {
        self.facts().3
    }

    /// The unit that a bare number most likely lacks.
    pub(crate) fn likely_unit(self) -> &'static str {
        if self == Self::Time { "ms" } else { self.unit() }
    }
}

/// How many base units one unit is, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    over: u64,
    under: u64,
}

impl Scale {
    pub(crate) const ONE: Self = Self { over: 1, under: 1 };

    pub(crate) const fn new(over: u64, under: u64) -> Self {
        Self { over, under }
    }

    fn times(self, other: Self) -> Option<Self> {
        let (a, d) = reduced(self.over, other.under);
        let (c, b) = reduced(other.over, self.under);
        Some(Self { over: a.checked_mul(c)?, under: b.checked_mul(d)? })
    }

    fn inverse(self) -> Self {
        Self { over: self.under, under: self.over }
    }

    /// `value` of these in base units: one rounding whenever the fraction is a whole number or its inverse.
    #[expect(clippy::cast_precision_loss, reason = "scales are products of small powers of ten and sixty")]
    fn apply(self, value: f64) -> f64 {
        match self {
            Self { over: 1, under: 1 } => value,
            Self { over, under: 1 } => value * over as f64,
            Self { over: 1, under } => value / under as f64,
            Self { over, under } => value * over as f64 / under as f64,
        }
    }
}

fn reduced(a: u64, b: u64) -> (u64, u64) {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1), b / x.max(1))
}

/// A number and its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantity {
    value: f64,
    scale: Scale,
    pub(crate) dimension: Dimension,
}

/// Why arithmetic has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Sums and comparisons need one dimension.
    Dimensions,
    /// Division by zero.
    ZeroDivisor,
    /// Too large for a number, or exponents no quantity has.
    NotFinite,
}

impl Quantity {
    pub(crate) fn plain(value: f64) -> Self {
        Self { value, scale: Scale::ONE, dimension: Dimension::NONE }
    }

    /// A literal. Ratios become plain numbers at once, so that `100%` of anything is that thing exactly.
    pub(crate) fn literal(value: f64, unit: UnitMeaning) -> Self {
        let quantity = Self { value, scale: unit.scale, dimension: unit.dimension };
        if unit.dimension == Dimension::NONE { Self::plain(quantity.base()) } else { quantity }
    }

    /// In base units: s, J, B, gCO2, USD, cycles and their products.
    pub(crate) fn base(self) -> f64 {
        self.scale.apply(self.value)
    }

    /// In another unit of the same dimension.
    pub(crate) fn in_unit(self, unit: UnitMeaning) -> f64 {
        match self.scale.times(unit.scale.inverse()) {
            Some(scale) => scale.apply(self.value),
            None => unit.scale.inverse().apply(self.base()),
        }
    }

    fn checked(self) -> Result<Self, Fault> {
        if self.base().is_finite() { Ok(self) } else { Err(Fault::NotFinite) }
    }

    pub(crate) fn negated(self) -> Self {
        Self { value: -self.value, ..self }
    }

    pub(crate) fn plus(self, other: Self, sign: f64) -> Result<Self, Fault> {
        if self.dimension != other.dimension {
            return Err(Fault::Dimensions);
        }
        if self.scale == other.scale {
            return Self { value: self.value + sign * other.value, ..self }.checked();
        }
        let value = self.base() + sign * other.base();
        Self { value, scale: Scale::ONE, dimension: self.dimension }.checked()
    }

    pub(crate) fn times(self, other: Self) -> Result<Self, Fault> {
        let dimension = self.dimension.combine(other.dimension, 1).ok_or(Fault::NotFinite)?;
        if other.dimension == Dimension::NONE {
            return Self { value: self.value * other.base(), ..self }.checked();
        }
        if self.dimension == Dimension::NONE {
            return Self { value: self.base() * other.value, ..other }.checked();
        }
        Self { value: self.base() * other.base(), scale: Scale::ONE, dimension }.checked()
    }

    pub(crate) fn over(self, other: Self) -> Result<Self, Fault> {
        let dimension = self.dimension.combine(other.dimension, -1).ok_or(Fault::NotFinite)?;
        let divisor = other.base();
        if divisor == 0.0 {
            return Err(Fault::ZeroDivisor);
        }
        if other.dimension == Dimension::NONE {
            return Self { value: self.value / divisor, ..self }.checked();
        }
        Self { value: self.base() / divisor, scale: Scale::ONE, dimension }.checked()
    }

    /// Compares two of one dimension.
    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        if self.dimension != other.dimension {
            return None;
        }
        self.base().partial_cmp(&other.base())
    }

    /// As a user would write it.
    pub(crate) fn text(self) -> String {
        let kind = Measure::ALL.iter().find(|k| k.dimension() == self.dimension);
        match kind {
            Some(Measure::Ratio) => format!("{}", self.base()),
            Some(kind) => match meaning(kind.unit()) {
                Some(unit) => format!("{} {}", self.in_unit(unit), kind.unit()),
                None => format!("{}", self.base()),
            },
            None => format!("{} ({})", self.base(), self.dimension.words()),
        }
    }
}

/// What a unit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitMeaning {
    pub(crate) dimension: Dimension,
    pub(crate) scale: Scale,
}

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
// A year is 365 days.
const YEAR: u64 = 365 * DAY;

/// The words units are made of; products with `/` and `per` are read from their parts.
const UNITS: &[(&str, Dimension, Scale)] = &[
    ("ns", Dimension::TIME, Scale::new(1, 1_000_000_000)),
    ("us", Dimension::TIME, Scale::new(1, 1_000_000)),
    ("µs", Dimension::TIME, Scale::new(1, 1_000_000)),
    ("μs", Dimension::TIME, Scale::new(1, 1_000_000)),
    ("ms", Dimension::TIME, Scale::new(1, 1_000)),
    ("s", Dimension::TIME, Scale::ONE),
    ("min", Dimension::TIME, Scale::new(60, 1)),
    ("h", Dimension::TIME, Scale::new(HOUR, 1)),
    ("hour", Dimension::TIME, Scale::new(HOUR, 1)),
    ("hours", Dimension::TIME, Scale::new(HOUR, 1)),
    ("day", Dimension::TIME, Scale::new(DAY, 1)),
    ("days", Dimension::TIME, Scale::new(DAY, 1)),
    ("year", Dimension::TIME, Scale::new(YEAR, 1)),
    ("years", Dimension::TIME, Scale::new(YEAR, 1)),
    ("mW", Dimension::POWER, Scale::new(1, 1_000)),
    ("W", Dimension::POWER, Scale::ONE),
    ("kW", Dimension::POWER, Scale::new(1_000, 1)),
    ("MW", Dimension::POWER, Scale::new(1_000_000, 1)),
    ("mJ", Dimension::ENERGY, Scale::new(1, 1_000)),
    ("J", Dimension::ENERGY, Scale::ONE),
    ("kJ", Dimension::ENERGY, Scale::new(1_000, 1)),
    ("MJ", Dimension::ENERGY, Scale::new(1_000_000, 1)),
    ("GJ", Dimension::ENERGY, Scale::new(1_000_000_000, 1)),
    ("Wh", Dimension::ENERGY, Scale::new(3_600, 1)),
    ("kWh", Dimension::ENERGY, Scale::new(3_600_000, 1)),
    ("MWh", Dimension::ENERGY, Scale::new(3_600_000_000, 1)),
    ("Hz", Dimension::FREQUENCY, Scale::ONE),
    ("kHz", Dimension::FREQUENCY, Scale::new(1_000, 1)),
    ("MHz", Dimension::FREQUENCY, Scale::new(1_000_000, 1)),
    ("GHz", Dimension::FREQUENCY, Scale::new(1_000_000_000, 1)),
    ("B", Dimension::MEMORY, Scale::ONE),
    ("kB", Dimension::MEMORY, Scale::new(1_000, 1)),
    ("MB", Dimension::MEMORY, Scale::new(1_000_000, 1)),
    ("GB", Dimension::MEMORY, Scale::new(1_000_000_000, 1)),
    ("TB", Dimension::MEMORY, Scale::new(1_000_000_000_000, 1)),
    ("KiB", Dimension::MEMORY, Scale::new(1 << 10, 1)),
    ("MiB", Dimension::MEMORY, Scale::new(1 << 20, 1)),
    ("GiB", Dimension::MEMORY, Scale::new(1 << 30, 1)),
    ("TiB", Dimension::MEMORY, Scale::new(1 << 40, 1)),
    ("gCO2", Dimension::CARBON, Scale::ONE),
    ("kgCO2", Dimension::CARBON, Scale::new(1_000, 1)),
    ("tCO2", Dimension::CARBON, Scale::new(1_000_000, 1)),
    ("gCO2e", Dimension::CARBON, Scale::ONE),
    ("kgCO2e", Dimension::CARBON, Scale::new(1_000, 1)),
    ("tCO2e", Dimension::CARBON, Scale::new(1_000_000, 1)),
    ("USD", Dimension::MONEY, Scale::ONE),
    ("req", Dimension::NONE, Scale::ONE),
    ("gpu", Dimension::NONE, Scale::ONE),
    ("gpus", Dimension::NONE, Scale::ONE),
];

/// Words of other tools for units the language has.
const ALIASES: &[(&str, &str)] = &[
    ("rps", "req/s"),
    ("qps", "req/s"),
    ("rpm", "req/min"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("minute", "min"),
    ("minutes", "min"),
    ("mins", "min"),
    ("hrs", "h"),
    ("hr", "h"),
    ("d", "day"),
    ("y", "year"),
    ("watt", "W"),
    ("watts", "W"),
    ("dollars", "USD"),
    ("percent", "%"),
    ("requests", "req"),
    ("request", "req"),
    ("G", "GiB"),
    ("Gi", "GiB"),
    ("M", "MiB"),
    ("Mi", "MiB"),
    ("KB", "kB"),
    ("g", "gCO2"),
    ("kg", "kgCO2"),
    ("t", "tCO2"),
];

/// What a unit, as written, means.
pub(crate) fn meaning(text: &str) -> Option<UnitMeaning> {
    if text == "%" {
        return Some(UnitMeaning { dimension: Dimension::NONE, scale: Scale::new(1, 100) });
    }
    let text = text.replace(" per ", "/");
    let mut parts = text.split('/');
    let first = parts.next()?;
    let mut found = if first.is_empty() {
        UnitMeaning { dimension: Dimension::NONE, scale: Scale::ONE }
    } else {
        word(first)?
    };
    for part in parts {
        let divisor = word(part)?;
        found.dimension = found.dimension.combine(divisor.dimension, -1)?;
        found.scale = found.scale.times(divisor.scale.inverse())?;
    }
    Some(found)
}

fn word(text: &str) -> Option<UnitMeaning> {
    let (_, dimension, scale) = UNITS.iter().find(|(name, ..)| *name == text)?;
    Some(UnitMeaning { dimension: *dimension, scale: *scale })
}

/// The unit that was probably meant.
pub(crate) fn similar_unit(text: &str) -> Option<String> {
    let joined = text.replace(" per ", "/");
    let mut mended = Vec::new();
    for part in joined.split('/') {
        mended.push(similar_word(part)?);
    }
    let mended = mended.join("/");
    (meaning(&mended).is_some() && mended != joined).then_some(mended)
}

fn similar_word(part: &str) -> Option<&str> {
    if part.is_empty() || word(part).is_some() {
        return Some(part);
    }
    if let Some((_, unit)) = ALIASES.iter().find(|(alias, _)| *alias == part) {
        return Some(unit);
    }
    let folded = part.to_ascii_lowercase();
    if let Some((name, ..)) = UNITS.iter().find(|(name, ..)| name.to_ascii_lowercase() == folded) {
        return Some(name);
    }
    if let Some((_, unit)) = ALIASES.iter().find(|(alias, _)| *alias == folded) {
        return Some(unit);
    }
    crate::suggest::similar(part, UNITS.iter().map(|(name, ..)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(value: f64, unit: &str) -> Quantity {
        Quantity::literal(value, meaning(unit).unwrap())
    }

    #[test]
    fn a_literal_in_milliseconds_is_divided_once() {
        assert_eq!(quantity(47.576_308_250_427_26, "ms").base(), 47.576_308_250_427_26 / 1000.0);
    }

    #[test]
    fn a_carbon_intensity_reads_back_exactly() {
        let unit = meaning("gCO2/kWh").unwrap();
        assert_eq!(quantity(490.0, "gCO2/kWh").in_unit(unit), 490.0);
        assert_eq!(quantity(0.49, "kgCO2/kWh").in_unit(unit), 490.0);
        assert_eq!(quantity(490_000.0, "gCO2/MWh").in_unit(unit), 490.0);
    }

    #[test]
    fn a_whole_share_of_a_rate_is_that_rate() {
        let rate = quantity(100.0, "%").times(quantity(1391.97, "req/s")).unwrap();
        assert_eq!(rate.base(), 1391.97);
        assert_eq!(rate.dimension, Dimension::RATE);
    }

    #[test]
    fn one_over_a_time_is_a_rate_and_not_a_frequency() {
        let rate = Quantity::plain(1.0).over(quantity(47.6, "ms")).unwrap();
        assert_eq!(rate.dimension, Dimension::RATE);
        assert_ne!(rate.dimension, quantity(5.0, "MHz").dimension);
    }

    #[test]
    fn powers_beyond_sense_and_overflow_have_no_result() {
        let mut x = quantity(2.0, "s");
        let mut outcome = Ok(x);
        for _ in 0..6 {
            outcome = x.times(x);
            let Ok(next) = outcome else { break };
            x = next;
        }
        assert_eq!(outcome, Err(Fault::NotFinite));
        let huge = Quantity::plain(1e300);
        assert_eq!(huge.times(huge), Err(Fault::NotFinite));
        assert_eq!(huge.over(Quantity::plain(0.0)), Err(Fault::ZeroDivisor));
    }
}
