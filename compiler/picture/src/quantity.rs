//! Numbers with their units → short text for people. JSON never goes through here.

use ent_plan::plan::Metric;

/// A number with about four significant digits, without exponent where that stays short.
pub fn number(value: f64) -> String {
    digits(value, 4)
}

/// A number with this many significant digits; whole digits are never rounded away.
pub fn digits(value: f64, significant: i32) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "?".to_owned() } else { "infinite".to_owned() };
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-6.0..15.0).contains(&magnitude) {
        return format!("{value:.3e}");
    }
    #[expect(clippy::cast_possible_truncation, reason = "the magnitude is between -6 and 15")]
    let decimals = (significant - 1 - magnitude as i32).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Milliseconds, as ms below 10 s and as s above.
pub fn millis(ms: f64) -> String {
    if ms.abs() < 10_000.0 { format!("{} ms", number(ms)) } else { format!("{} s", number(ms / 1e3)) }
}

/// Seconds of a horizon or a solve.
pub fn seconds(s: f64) -> String {
    if s < 120.0 {
        format!("{} s", number(s))
    } else if s < 3600.0 {
        format!("{} min", number(s / 60.0))
    } else {
        format!("{} h", number(s / 3600.0))
    }
}

/// Watts.
pub fn watts(w: f64) -> String {
    scaled(w, &[(1e6, "MW"), (1e4, "kW"), (0.0, "W")], 4)
}

/// Watts of one board or instance, without the unit: tenths are enough, and they line up.
pub fn few_watts(w: f64) -> String {
    if w.is_finite() { format!("{w:.1}") } else { number(w) }
}

/// Joules.
pub fn joules(j: f64, significant: i32) -> String {
    scaled(j, &[(1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"), (0.0, "J")], significant)
}

/// Grams of CO2.
pub fn grams(g: f64, significant: i32) -> String {
    scaled(g, &[(1e6, "tCO2"), (1e3, "kgCO2"), (0.0, "gCO2")], significant)
}

/// A fraction as per cent.
pub fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if value != 0.0 && value.abs() < 0.01 {
        "under 0.01 %".to_owned()
    } else {
        format!("{} %", digits(value, 2))
    }
}

/// The value of a metric in its unit.
pub fn metric(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Power => scaled(value, &[(1e6, "MW"), (1e4, "kW"), (0.0, "W")], 6),
        Metric::Energy => joules(value, 6),
        Metric::Carbon => grams(value, 6),
        Metric::Gpus => {
            format!("{} {}", number(value), if (value - 1.0).abs() < 1e-9 { "board" } else { "boards" })
        }
        Metric::Cost => format!("{} USD", digits(value, 6)),
    }
}

/// The unit is the first whose threshold the value reaches; kW starts at 10 kW so that boards stay in W.
fn scaled(value: f64, units: &[(f64, &str)], significant: i32) -> String {
    let size = value.abs();
    let (threshold, unit) = units.iter().copied().find(|(t, _)| size >= *t).unwrap_or((0.0, ""));
    let divisor = match threshold {
        0.0 => 1.0,
        1e4 => 1e3,
        other => other,
    };
    format!("{} {unit}", digits(value / divisor, significant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_keep_whole_digits() {
        let shown: Vec<String> =
            [0.0, 47.6, 1391.97, 123_456.7, 0.001_234_5, 365.482, f64::INFINITY].map(number).to_vec();
        assert_eq!(shown, ["0", "47.6", "1392", "123457", "0.001234", "365.5", "infinite"]);
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!(watts(412.3), "412.3 W");
        assert_eq!(watts(12_345.0), "12.35 kW");
        assert_eq!(joules(1.316e6, 4), "1.316 MJ");
        assert_eq!(millis(25_000.0), "25 s");
        assert_eq!(seconds(86_400.0), "24 h");
        assert_eq!(percent(0.002), "0.2 %");
        assert_eq!(percent(1e-6), "under 0.01 %");
        assert_eq!(metric(Metric::Gpus, 1.0), "1 board");
    }
}
