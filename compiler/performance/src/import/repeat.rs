//! Rows → tables; repeated measurements of a point become their mean, contradictions an error.

use super::row::Row;
use super::{Comments, Context, Faults};
use ent_plan::diagnostic::{Code, Diagnostic};
use ent_plan::performance::{Measurement, PerformanceTable};
use ent_plan::units::{Megahertz, PerSecond, Seconds, Watts};

/// Repeats whose throughputs differ by more than this factor are not one point measured twice. On the
/// public A100 data repeats differ by up to 1.054.
const MAX_SPREAD: f64 = 1.25;

struct Group {
    model: String,
    board: usize,
    points: Vec<(Row, Vec<Row>)>,
    index: std::collections::BTreeMap<(u32, u32, Option<Megahertz>, u32), usize>,
}

/// Groups rows by model and board.
pub(super) fn tables(
    rows: Vec<Row>,
    comments: &Comments,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Vec<PerformanceTable> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let at =
            groups.iter().position(|g| g.model == row.model && g.board == row.board).unwrap_or(groups.len());
        if at == groups.len() {
            let (model, board) = (row.model.clone(), row.board);
            groups.push(Group { model, board, points: Vec::new(), index: std::collections::BTreeMap::new() });
        }
        let group = &mut groups[at];
        let m = &row.measurement;
        let key = (m.n_compute_slices, m.processes, m.clock, m.batch);
        match group.index.get(&key) {
            Some(point) => group.points[*point].1.push(row),
            None => {
                group.index.insert(key, group.points.len());
                group.points.push((row, Vec::new()));
            }
        }
    }
    groups.into_iter().map(|group| table(group, comments, context, faults)).collect()
}

fn table(group: Group, comments: &Comments, context: &Context<'_>, faults: &mut Faults) -> PerformanceTable {
    let mut n_repeated = 0;
    let mut first_repeat = None;
    let mut measurements = Vec::with_capacity(group.points.len());
    for (row, repeats) in group.points {
        let rates = || std::iter::once(&row).chain(&repeats).map(|r| r.measurement.throughput.get());
        let (least, most) = rates().fold((f64::INFINITY, 0.0_f64), |(lo, hi), r| (lo.min(r), hi.max(r)));
        if let Some(last) = repeats.last() {
            let (first_number, number) = (row.measurement.row, last.measurement.row);
            if most > MAX_SPREAD * least {
                faults.push(
                    Diagnostic::error(
                        Code::DuplicateMeasurement,
                        last.span,
                        format!("rows {first_number} and {number} measure the same point and contradict each other"),
                    )
                    .label(format!("throughputs from {least} to {most}"))
                    .and(row.span, "the first measurement of the point")
                    .help("delete the wrong row"),
                );
            } else {
                n_repeated += 1;
                first_repeat.get_or_insert((row.span, last.span, first_number, number));
            }
        }
        measurements.push(mean(&row.measurement, &repeats));
    }
    if let Some((first, last, first_number, number)) = first_repeat {
        let model = &group.model;
        faults.push(
            Diagnostic::warning(
                Code::DuplicateMeasurement,
                last,
                format!("rows {first_number} and {number} measure the same point; their mean is used"),
            )
            .label(format!("`{model}` has {n_repeated} points that are measured more than once"))
            .and(first, "the first measurement of the point")
            .help("delete one of the rows if they are not repeats"),
        );
    }
    PerformanceTable {
        model: group.model,
        board: context.boards.get(group.board).map_or_else(String::new, |b| b.id.clone()),
        source: comments.source.clone().unwrap_or_else(|| context.source.to_owned()),
        is_illustration: comments.is_illustration,
        measurements,
    }
}

/// Mean time, power and latency of one point. A suspect row gives way to plain ones.
fn mean(first: &Measurement, repeats: &[Row]) -> Measurement {
    if repeats.is_empty() {
        return first.clone();
    }
    let all: Vec<&Measurement> =
        std::iter::once(first).chain(repeats.iter().map(|r| &r.measurement)).collect();
    let plain: Vec<&Measurement> = all.iter().copied().filter(|m| !m.is_suspect).collect();
    let used = if plain.is_empty() { &all } else { &plain };
    let average =
        |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let watts = |get: fn(&Measurement) -> Option<Watts>| {
        average(used.iter().filter_map(|m| get(m)).map(Watts::get).collect()).map(Watts)
    };
    Measurement {
        throughput: average(used.iter().map(|m| m.throughput.get()).collect())
            .map_or(first.throughput, PerSecond),
        latency_p99: average(used.iter().map(|m| m.latency_p99.get()).collect())
            .map_or(first.latency_p99, Seconds),
        board_power: watts(|m| m.board_power),
        dynamic_power: watts(|m| m.dynamic_power),
        is_suspect: plain.is_empty(),
        ..first.clone()
    }
}
