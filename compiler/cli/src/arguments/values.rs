//! Words on the command line → values, or what is wrong with them.

use super::{Listen, Nvml, Over};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ent_picture::Axis;
use ent_plan::plan::{LatencyRule, Metric};
use std::time::Duration;

/// `PARAM=VALUE`.
pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write `PARAM=VALUE`, for example `load=50%`".to_owned()),
    }
}

/// `90`, `90s`, `1.5m`, `1h 30m`.
pub(super) fn time_limit(text: &str) -> Result<Duration, String> {
    let parsed = match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_duration(text.trim()).ok(),
    };
    parsed
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "write a time above zero, for example `30s`, `2m` or `90`".to_owned())
}

/// A time to wait: as a limit, but it may be zero.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let is_zero = text.trim().trim_end_matches(|c: char| c.is_alphabetic()).parse::<f64>() == Ok(0.0);
    if is_zero { Ok(Duration::ZERO) } else { time_limit(text) }
}

/// `system`, `simulated`, or the path of a library. A bare word is no path: it would be a mistyped one of
/// the two, and libraries are never guessed.
pub(super) fn nvml(text: &str) -> Result<Nvml, String> {
    match text {
        "system" => Ok(Nvml::System),
        "simulated" => Ok(Nvml::Simulated),
        path if path.contains('/') => Ok(Nvml::Path(path.into())),
        _ => Err("write `system`, `simulated`, or the path of a library, with a `/` in it".to_owned()),
    }
}

/// `127.0.0.1:8000`, `[::1]:8000`, or `off`.
pub(super) fn listen(text: &str) -> Result<Listen, String> {
    match text.trim() {
        "off" => Ok(Listen::Off),
        address => address
            .parse()
            .map(Listen::At)
            .map_err(|_| "write an address and a port, for example `127.0.0.1:8000`, or `off`".to_owned()),
    }
}

/// `0.2%` or `0.002`.
pub(super) fn gap(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let parsed = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
        None => text.parse::<f64>(),
    };
    match parsed {
        Ok(gap) if (0.0..=1.0).contains(&gap) => Ok(gap),
        _ => Err("write a fraction from 0 to 1, for example `0.2%` or `0.002`".to_owned()),
    }
}

/// A load, as it was written and as a fraction: `50%`, `0.5`.
pub(super) fn load(text: &str) -> Result<(String, f64), String> {
    let text = text.trim();
    let parsed = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|value| value / 100.0),
        None => text.parse::<f64>(),
    };
    match parsed {
        Ok(load) if (1e-6..=1e6).contains(&load) => Ok((text.to_owned(), load)),
        _ => Err("write loads above zero, for example `25%,50%,100%`".to_owned()),
    }
}

/// The address of a collector. There is no TLS in it: it is thought to be on the same machine.
pub(super) fn http_url(text: &str) -> Result<String, String> {
    let rest = text.trim().strip_prefix("http://").filter(|rest| !rest.is_empty() && !rest.starts_with('/'));
    match rest {
        Some(_) => Ok(text.trim().to_owned()),
        None => Err("write it like `http://127.0.0.1:4317`".to_owned()),
    }
}

/// `power,gpus`: two different axes. The one that is limited is the second, but for boards and latency,
/// which are limited wherever they stand.
pub(super) fn over(text: &str) -> Result<Over, String> {
    const WORDS: &str =
        "name two of power, energy, carbon, gpus, cost, latency-slack, for example `power,gpus`";
    let axis = |word: &str| match word.trim() {
        "latency-slack" => Some(Axis::LatencySlack),
        word => Metric::ALL.into_iter().find(|metric| metric.word() == word).map(Axis::Metric),
    };
    let axes: Vec<Axis> = text.split(',').map(axis).collect::<Option<_>>().ok_or(WORDS)?;
    match axes.as_slice() {
        [a, b] if a == b => Err(format!("`{}` is there twice; {WORDS}", a.word())),
        [Axis::LatencySlack, Axis::Metric(minimized)] => {
            Ok(Over { minimized: *minimized, limited: Axis::LatencySlack })
        }
        [Axis::Metric(Metric::Gpus), Axis::Metric(minimized)] => {
            Ok(Over { minimized: *minimized, limited: Axis::Metric(Metric::Gpus) })
        }
        [Axis::Metric(minimized), limited] => Ok(Over { minimized: *minimized, limited: *limited }),
        _ => Err(WORDS.to_owned()),
    }
}

/// `50%..200%`: what promises are multiplied by, from the tightest to the loosest.
pub(super) fn slack(text: &str) -> Result<(f64, f64), String> {
    const WORDS: &str = "write from–to above zero, for example `50%..200%`";
    let (low, high) = text.split_once("..").ok_or(WORDS)?;
    let value = |text: &str| load(text).map(|(_, value)| value).map_err(|_| WORDS.to_owned());
    match (value(low)?, value(high)?) {
        (low, high) if low < high && low >= 0.01 && high <= 100.0 => Ok((low, high)),
        _ => Err(format!("{WORDS}, at least 1% and at most 10000%")),
    }
}

/// A metric by its word.
pub(super) fn metric() -> impl TypedValueParser<Value = Metric> {
    PossibleValuesParser::new(Metric::ALL.map(Metric::word))
        .try_map(|word| Metric::ALL.into_iter().find(|metric| metric.word() == word).ok_or("no such metric"))
}

/// A latency rule by its word.
pub(super) fn latency_rule() -> impl TypedValueParser<Value = LatencyRule> {
    PossibleValuesParser::new(["queueing", "execution"]).map(|word| match word.as_str() {
        "execution" => LatencyRule::Execution,
        _ => LatencyRule::Queueing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_carry_a_unit() {
        assert_eq!(time_limit("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time_limit("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(time_limit("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "0", "-3", "nan", "inf", "1e300", "soon", "0s"] {
            assert!(time_limit(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_different_axes_are_explored_and_boards_are_the_limit() {
        let of = |text| over(text).map(|o| (o.minimized.word(), o.limited.word()));
        assert_eq!(of("power,gpus"), Ok(("power", "gpus")));
        assert_eq!(of("gpus, power"), Ok(("power", "gpus")));
        assert_eq!(of("latency-slack,carbon"), Ok(("carbon", "latency-slack")));
        assert_eq!(of("energy,power"), Ok(("energy", "power")));
        for wrong in ["power", "power,power", "power,watts", "latency-slack,latency-slack", "a,b,c", ""] {
            assert!(over(wrong).is_err(), "{wrong}");
        }
        assert_eq!(slack("50%..2"), Ok((0.5, 2.0)));
        for wrong in ["50%", "2..1", "0..1", "-1..2", "1..1e9", "a..b"] {
            assert!(slack(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wait_may_be_zero_and_a_limit_may_not() {
        assert_eq!(wait("0"), Ok(Duration::ZERO));
        assert_eq!(wait("0s"), Ok(Duration::ZERO));
        assert_eq!(wait("5m"), Ok(Duration::from_secs(300)));
        assert!(wait("soon").is_err() && wait("-1").is_err() && wait("").is_err());
    }

    #[test]
    fn a_library_is_a_known_word_or_a_path() {
        assert_eq!(nvml("simulated"), Ok(Nvml::Simulated));
        assert_eq!(nvml("./libnvidia-ml.so.1"), Ok(Nvml::Path("./libnvidia-ml.so.1".into())));
        assert!(nvml("simulatd").is_err() && nvml("").is_err());
    }

    #[test]
    fn gaps_are_fractions_or_per_cent() {
        assert_eq!((gap("0.2%"), gap("0.002")), (Ok(0.002), Ok(0.002)));
        for wrong in ["", "%", "-1%", "200%", "nan", "x"] {
            assert!(gap(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_collector_has_an_http_address() {
        assert_eq!(http_url("http://127.0.0.1:4317").as_deref(), Ok("http://127.0.0.1:4317"));
        for wrong in ["", "127.0.0.1:4317", "https://otel", "http://", "http:///x"] {
            assert!(http_url(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn loads_are_fractions_above_zero() {
        assert_eq!(load("50%"), Ok(("50%".to_owned(), 0.5)));
        assert_eq!(load(" 1.25 "), Ok(("1.25".to_owned(), 1.25)));
        for wrong in ["", "%", "0", "-1", "nan", "inf", "1e300", "half"] {
            assert!(load(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_need_a_name_and_a_value() {
        assert_eq!(setting("load = 50%"), Ok(("load".to_owned(), "50%".to_owned())));
        assert_eq!(setting("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        for wrong in ["load", "=1", "load=", ""] {
            assert!(setting(wrong).is_err(), "{wrong}");
        }
    }
}
