//! Rows → the same rows, with dynamic power, and with the doubtful ones found.
//!
//! A wrong unit shows in the whole file at once, so the median decides; a wrong row stands out from it.

use super::column::{Columns, Layout};
use super::row::Row;
use super::{Context, Faults};
use ent_plan::device::Board;
use ent_plan::diagnostic::{Code, Diagnostic, Span};
use ent_plan::performance::Measurement;
use ent_plan::units::{Megahertz, Watts};
use std::collections::BTreeMap;

/// Closed-loop products a plain file's median may have: the p99 is at least the mean, tails make it more.
const PLAIN: std::ops::RangeInclusive<f64> = 0.5..=4.0;
/// And those a single row may have: stalls have been measured up to 4.9.
const PLAIN_ROW: std::ops::RangeInclusive<f64> = 0.3..=40.0;
/// Power this far (W) below base is noise of the meter, farther is a fault.
const BASE_TOLERANCE: f64 = 2.0;
/// Implied base power this far (W) from that of the other rows at the clock marks a made-up row.
const SYNTHETIC: f64 = 0.25;
/// From this share of the power limit on the board may be throttling itself.
const NEAR_LIMIT: f64 = 290.0 / 300.0;

/// Checks units, then each row against its board; fills in dynamic power.
pub(super) fn judge(rows: &mut Vec<Row>, columns: &Columns, context: &Context<'_>, faults: &mut Faults) {
    if rows.is_empty() {
        return;
    }
    let units_are_right = units(rows, columns, context, faults);
    if !units_are_right {
        rows.clear();
        return;
    }
    rows.retain_mut(|row| {
        let Some(board) = context.boards.get(row.board) else { return false };
        fits_board(row, board, faults)
    });
    settle_power(rows, context, faults);
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn units(rows: &[Row], columns: &Columns, context: &Context<'_>, faults: &mut Faults) -> bool {
    let Some(first) = rows.first() else { return true };
    let Some(middle) = median(rows.iter().map(|r| r.closed_loop)) else { return true };
    let wrong = |faults: &mut Faults, span: Span, label: String, help: &str| {
        faults.push(
            Diagnostic::error(Code::MeasurementUnits, span, "a unit of the measurements is wrong")
                .label(label)
                .help(help),
        );
        false
    };
    let wants = if columns.layout == Layout::ParvaGpu { "seconds" } else { "milliseconds" };
    if !PLAIN.contains(&middle) {
        let row = first.measurement.row;
        let product = format!(
            "throughput x latency / batch is {middle:.3e} in the median row (it is about 1 when units agree)"
        );
        let processes_product =
            median(rows.iter().map(|r| r.closed_loop * f64::from(r.measurement.processes)))
                .unwrap_or(f64::NAN);
        let has_many = rows.iter().all(|r| r.measurement.processes > 1);
        let (what, help) = match middle {
            m if has_many && (0.8..=1.5).contains(&processes_product) && m < 1.0 => (
                "throughput seems to be that of one process".to_owned(),
                "give the throughput of all processes together",
            ),
            m if (3e2..4e3).contains(&m) && wants == "milliseconds" => {
                ("latency seems to be in microseconds".to_owned(), "give latency in milliseconds")
            }
            m if (3e-4..4e-3).contains(&m) && wants == "milliseconds" => {
                ("latency seems to be in seconds".to_owned(), "give latency in milliseconds")
            }
            m if (3e2..4e3).contains(&m) => {
                ("latency seems to be in milliseconds".to_owned(), "give latency in seconds")
            }
            m if (3e5..4e6).contains(&m) || (3e-7..4e-6).contains(&m) => (
                format!("latency seems to be in {}", if m > 1.0 { "nanoseconds" } else { "kiloseconds" }),
                "give latency in the layout's unit",
            ),
            _ => (
                format!("throughput (requests per second) and latency ({wants}) contradict each other"),
                "give throughput in requests, not batches, per second, and latency in the layout's unit",
            ),
        };
        return wrong(faults, first.span, format!("{what}: {product}, from row {row} on"), help);
    }
    if let Some(clock) = median(rows.iter().filter_map(|r| r.clock)) {
        // GPU clocks are 100 to 4000 MHz.
        if clock < 10.0 {
            return wrong(
                faults,
                first.span,
                format!("clock is {clock} in the median row: GHz?"),
                "give the clock in MHz",
            );
        }
        if clock > 2e4 {
            return wrong(
                faults,
                first.span,
                format!("clock is {clock} in the median row: kHz or Hz?"),
                "give the clock in MHz",
            );
        }
    }
    let limit = context.boards.get(first.board).and_then(|b| b.power_limits).map_or(2000.0, |l| l.max.get());
    if let Some(power) = median(rows.iter().filter_map(|r| r.measurement.board_power.map(Watts::get))) {
        // No board idles below 3 W, and none draws three times its limit.
        if power < 3.0 {
            return wrong(
                faults,
                first.span,
                format!("board power is {power} in the median row: kW?"),
                "give power in watts",
            );
        }
        if power > 3.0 * limit {
            return wrong(
                faults,
                first.span,
                format!("board power is {power} in the median row: mW?"),
                "give power in watts",
            );
        }
    }
    let mut all_right = true;
    for row in rows.iter().filter(|r| !PLAIN_ROW.contains(&r.closed_loop)) {
        let (number, product) = (row.measurement.row, row.closed_loop);
        faults.row(
            Code::MeasurementUnits,
            row.span,
            format!("row {number}: throughput, batch and latency contradict each other"),
            format!("throughput x latency / batch is {product:.3e}, about 1 in other rows"),
        );
        all_right = false;
    }
    all_right
}

fn fits_board(row: &mut Row, board: &Board, faults: &mut Faults) -> bool {
    let Measurement { n_compute_slices, row: number, .. } = row.measurement;
    if let Some(clock) = row.clock {
        if clock.fract() != 0.0 || !(1.0..=2e4).contains(&clock) {
            faults.row(
                Code::MeasurementRow,
                row.span,
                format!("row {number}: the clock is not a whole number of MHz"),
                clock.to_string(),
            );
            return false;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole number, 1..=2e4"
        )]
        let clock = Megahertz(clock as u32);
        row.measurement.clock = Some(clock);
    }
    let clock = row.measurement.clock;
    if !board.profiles.is_empty() && board.base_profile(n_compute_slices).is_none() {
        faults.row(
            Code::UnknownProfile,
            row.span,
            format!("row {number}: the board has no MIG profile with {n_compute_slices} compute slices"),
            board.title.clone(),
        );
        return false;
    }
    match clock {
        Some(clock) if !board.clocks.is_empty() && !board.clocks.contains(&clock) => {
            faults.row_with_help(
                Code::ClockOffLadder,
                row.span,
                format!("row {number}: the board cannot be locked to {clock}"),
                neighbours(&board.clocks, clock),
                "measure at a clock of the board's ladder, or delete the row",
            );
            false
        }
        Some(_) | None => true,
    }
}

fn neighbours(ladder: &[Megahertz], clock: Megahertz) -> String {
    let below = ladder.iter().rev().find(|c| **c < clock);
    let above = ladder.iter().find(|c| **c > clock);
    match (below, above) {
        (Some(below), Some(above)) => format!("nearest: {below} and {above}"),
        (Some(one), None) | (None, Some(one)) => format!("nearest: {one}"),
        (None, None) => "the ladder is empty".to_owned(),
    }
}

/// Makes dynamic power what it says: board power less base power.
fn settle_power(rows: &mut Vec<Row>, context: &Context<'_>, faults: &mut Faults) {
    let implied = implied_base(rows);
    let mut n_recomputed = 0;
    let mut first_recomputed = None;
    rows.retain_mut(|row| {
        let Some(board) = context.boards.get(row.board) else { return false };
        let clock = row.measurement.clock.or_else(|| board.clocks.last().copied());
        let base = clock.and_then(|c| board.base_power.as_ref()?.at(c)).map(Watts::get);
        let m = &mut row.measurement;
        if let (Some(total), Some(base)) = (m.board_power.map(Watts::get), base)
            && total < base - BASE_TOLERANCE
        {
            let number = m.row;
            faults.row(
                Code::MeasurementRow,
                row.span,
                format!("row {number}: board power is below the board's base power"),
                format!("{total:.1} W, base {base:.1} W"),
            );
            return false;
        }
        if let (Some(total), Some(limit)) = (m.board_power.map(Watts::get), board.power_limits) {
            m.is_suspect |= total >= NEAR_LIMIT * limit.default.get();
        }
        match (m.board_power.map(Watts::get), m.dynamic_power.map(Watts::get)) {
            // One profile file of EnerTune repeats board power as dynamic power.
            (Some(total), Some(dynamic)) if dynamic >= total - 1e-9 && base.is_some() => {
                m.dynamic_power = base.map(|b| Watts((total - b).max(0.0)));
                n_recomputed += 1;
                first_recomputed.get_or_insert(row.span);
            }
            (Some(total), Some(dynamic)) => {
                let usual = clock.and_then(|c| implied.get(&(row.board, c))).copied();
                m.is_suspect |= usual.is_some_and(|u| (total - dynamic - u).abs() > SYNTHETIC);
                m.dynamic_power = Some(Watts(dynamic.max(0.0)));
            }
            (Some(total), None) => m.dynamic_power = base.map(|b| Watts((total - b).max(0.0))),
            (None, Some(dynamic)) => m.dynamic_power = Some(Watts(dynamic.max(0.0))),
            (None, None) => {}
        }
        true
    });
    if let Some(span) = first_recomputed {
        faults.push(
            Diagnostic::warning(
                Code::MeasurementRow,
                span,
                format!("{n_recomputed} rows give board power as dynamic power"),
            )
            .label("base power was not taken off; it is taken off here")
            .help("give board power less base power, or leave the column out"),
        );
    }
}

/// Base power the rows themselves imply, by board and clock: the median of board less dynamic power.
fn implied_base(rows: &[Row]) -> BTreeMap<(usize, Megahertz), f64> {
    let mut by_clock: BTreeMap<(usize, Megahertz), Vec<f64>> = BTreeMap::new();
    for row in rows {
        let m = &row.measurement;
        if let (Some(clock), Some(total), Some(dynamic)) = (m.clock, m.board_power, m.dynamic_power)
            && dynamic < total
        {
            by_clock.entry((row.board, clock)).or_default().push(total.get() - dynamic.get());
        }
    }
    by_clock
        .into_iter()
        .filter(|(_, implied)| implied.len() >= 3)
        .filter_map(|(key, implied)| Some((key, median(implied.into_iter())?)))
        .collect()
}
