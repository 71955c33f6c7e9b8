//! What a plan measured → a table: predicted, simulated, measured.

pub(crate) mod picture;

use super::line::{Line, Role, page};
use super::plan::Canvas;
use super::quantity::{digits, few_watts, millis, number};
use super::table::{Column, table};
use crate::commands::{BenchedService, Benchmark, Threefold};

/// Draws it.
pub(crate) fn benchmark(benchmark: &Benchmark, canvas: &Canvas) -> String {
    let verdict = if benchmark.failed == 0 {
        Line::of(Role::Good, "no request failed")
    } else {
        Line::of(Role::Bad, format!("{} of {} requests FAILED", benchmark.failed, benchmark.sent))
    };
    let heading = Line::of(Role::Heading, &benchmark.program)
        .and(Role::Plain, "  measured: ")
        .then(verdict)
        .and(Role::Faint, format!("  ({})", how(benchmark)));
    let mut lines = heading.wrapped(canvas.width, 2);
    lines.push(Line::new());
    lines.extend(services(benchmark, canvas));
    lines.push(Line::new());
    lines.extend(energy(benchmark).into_iter().flat_map(|line| line.wrapped(canvas.width, 2)));
    lines.extend(bands(benchmark).wrapped(canvas.width, 2));
    lines.extend(client(benchmark).wrapped(canvas.width, 2));
    for service in benchmark.services.iter().filter(|s| s.failed > 0) {
        for (reason, failure) in &service.failures {
            let text = format!("  {}: {} x {reason}: {}", service.name, failure.count, failure.example);
            lines.extend(Line::of(Role::Bad, text).wrapped(canvas.width, 4));
        }
    }
    page(&lines, canvas.color)
}

fn how(benchmark: &Benchmark) -> String {
    let mut words = vec![format!("{} requests in {} s", benchmark.sent, digits(benchmark.seconds, 3))];
    words.push(format!("seed {}", benchmark.seed));
    if (benchmark.load - 1.0).abs() > 1e-12 {
        words.push(format!("at {} % of the planned load", digits(benchmark.load * 100.0, 3)));
    }
    if benchmark.is_interrupted {
        words.push("interrupted".to_owned());
    }
    words.join(", ")
}

fn services(benchmark: &Benchmark, canvas: &Canvas) -> Vec<Line> {
    let columns = [
        Column::name("service"),
        Column::word("executor"),
        Column::number("sent"),
        Column::number("promised"),
        Column::number("predicted"),
        Column::number("simulated"),
        Column::number("measured"),
        Column::number("within"),
        Column::number("simulated"),
        Column::number("batch"),
        Column::number("simulated"),
        Column::word("promise"),
    ];
    let rows: Vec<Vec<Line>> = benchmark.services.iter().map(|service| row(service, canvas)).collect();
    table(&columns, &rows, canvas.width, 2, canvas.symbols)
}

fn row(service: &BenchedService, canvas: &Canvas) -> Vec<Line> {
    let time = |ms: Option<f64>| ms.map_or_else(String::new, millis);
    let Threefold { predicted, simulated, measured } = service.latency_ms;
    let off = measured.zip(simulated).map(|(m, s)| m / s - 1.0).filter(|off| off.is_finite());
    let off = off.map_or_else(String::new, |off| format!(" {:+.0}%", off * 100.0));
    let promise = format!(
        "p{} {} {}",
        number(service.percentile * 100.0),
        canvas.symbols.at_most,
        millis(service.promised_latency_ms)
    );
    let share =
        |value: Option<f64>| value.map_or_else(String::new, |share| format!("{:.2} %", share * 100.0));
    let batch = |value: Option<f64>| value.map_or_else(String::new, |batch| format!("{batch:.1}"));
    vec![
        Line::of(Role::Name, &service.name),
        Line::plain(service.executor.clone().unwrap_or_default()),
        Line::plain(service.sent.to_string()),
        Line::plain(promise),
        Line::plain(time(predicted)),
        Line::plain(time(simulated)),
        Line::plain(time(measured)).and(Role::Faint, off),
        Line::plain(share(service.attainment.measured)),
        Line::plain(share(service.attainment.simulated)),
        Line::plain(batch(service.mean_batch.measured)),
        Line::plain(batch(service.mean_batch.simulated)),
        match service.is_kept {
            Some(true) => Line::of(Role::Good, "kept"),
            Some(false) => Line::of(Role::Bad, "BROKEN"),
            None => Line::of(Role::Warn, "not measured"),
        },
    ]
}

fn energy(benchmark: &Benchmark) -> Vec<Line> {
    let Some(energy) = &benchmark.energy else {
        return vec![Line::of(
            Role::Warn,
            "joules unknown: a board does not count them, or not all services were sent to",
        )];
    };
    let three = |of: &Threefold, shown: &dyn Fn(f64) -> String, word: &str| {
        let all = [("predicted", of.predicted), ("in simulation", of.simulated), (word, of.measured)];
        let known = all.into_iter().filter_map(|(word, value)| Some(format!("{} {word}", shown(value?))));
        known.collect::<Vec<_>>().join(", ")
    };
    let word = match energy.source {
        "measured" => "measured by the boards",
        _ => "by the simulated driver",
    };
    let off = energy.joules.predicted.zip(energy.joules.measured).map(|(p, m)| (m / p - 1.0) * 100.0);
    let off = off.filter(|off| off.is_finite()).map_or_else(String::new, |off| format!(" ({off:+.2} %)"));
    let watts = |w: f64| format!("{} W", few_watts(w));
    let joules = |j: f64| format!("{} J", digits(j, 4));
    vec![
        Line::of(Role::Faint, format!("mean power of {} boards  ", energy.boards))
            .and(Role::Plain, three(&energy.watts, &watts, word)),
        Line::of(Role::Faint, "energy per request  ")
            .and(Role::Plain, three(&energy.joules_per_request, &joules, word))
            .and(Role::Faint, off),
    ]
}

/// How sure what is predicted is.
fn bands(benchmark: &Benchmark) -> Line {
    let error = benchmark.predicted_error;
    let percent = |share: f64| format!("{} %", digits(share * 100.0, 2));
    Line::of(Role::Faint, "predicted to  ").and(
        Role::Plain,
        format!(
            "± {} in times, ± {} in dynamic energy, at most: one standard deviation of the models",
            percent(error.time),
            percent(error.power)
        ),
    )
}

fn client(benchmark: &Benchmark) -> Line {
    let lag = &benchmark.client_lag_ms;
    let load = |load: Option<f64>| load.map_or_else(|| "unknown".to_owned(), |l| digits(l, 3));
    let [before, after] = benchmark.load_average;
    Line::of(Role::Faint, "the client was late by  ")
        .and(
            Role::Plain,
            format!("p50 {}, p99 {}, at most {}", millis(lag.p50), millis(lag.p99), millis(lag.max)),
        )
        .and(Role::Faint, format!("; load average {} before, {} after", load(before), load(after)))
}
