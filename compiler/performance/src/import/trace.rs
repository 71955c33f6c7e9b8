//! CSV text → the gaps between recorded arrivals (s).
//!
//! Only the pattern matters: whoever replays a trace scales its gaps to a rate. Times are seconds, or
//! dates with up to nine digits of a second and perhaps a time zone; the order of lines does not matter.

use super::{Faults, Line, LineFinder};
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Outcome, Span};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// With fewer gaps than this their variation is hardly known.
const FEW: usize = 100;

/// Arrivals as they were recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Time from each arrival to the next (s), in order; never negative.
    pub gaps: Vec<f64>,
    /// Coefficient of variation of the gaps: their standard deviation over their mean.
    pub cv: f64,
}

impl Trace {
    /// Mean rate of the recording (req/s).
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.gaps.len() as f64 / self.gaps.iter().sum::<f64>()
    }
}

/// Reads arrival times: one column, or the one column that a header calls a timestamp, an arrival or a
/// time, or else the one column of dates. Further columns are not looked at.
///
/// Errors: [`Code::MeasurementColumn`] when the column cannot be told, [`Code::MeasurementRow`] for a time
/// that cannot be read, and for a trace that has no gap. Warnings: lines out of order, very few arrivals.
#[must_use]
pub fn trace(text: &str, file: FileId) -> Outcome<Trace> {
    let mut faults = Faults::new(file);
    let mut lines = LineFinder::new(text, file);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(text))
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut records = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => records.push(record),
            Err(error) => {
                faults.row(Code::MeasurementRow, lines.whole(), "a row cannot be read", error.to_string());
            }
        }
    }
    let Some(first) = records.first() else {
        faults.error(Code::MeasurementRow, lines.whole(), "the trace has no arrivals", "no row at all");
        return faults.finish(Trace::default());
    };
    let is_header = first.iter().all(|cell| Time::of(cell).is_none());
    let body = records.get(usize::from(is_header)..).unwrap_or_default();
    let header = is_header.then_some(first);
    let column = match column(header, body.first()) {
        Ok(column) => column,
        Err(label) => {
            let span = lines.find(first.position()).span;
            faults.push(
                Diagnostic::error(
                    Code::MeasurementColumn,
                    span,
                    "the column of arrival times cannot be told",
                )
                .label(label)
                .help("keep the one column to use, or call it `timestamp`"),
            );
            return faults.finish(Trace::default());
        }
    };
    let mut times = Times::default();
    for record in body {
        let line = lines.find(record.position());
        times.read(record.get(column).unwrap_or(""), column, &line, &mut faults);
    }
    let whole = lines.whole();
    times.finish(whole, faults)
}

/// What separates columns: a comma, unless the first line has none and does have a tab or a semicolon.
fn delimiter(text: &str) -> u8 {
    let first = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with('#')).unwrap_or("");
    let has = |c: u8| first.as_bytes().contains(&c);
    [b'\t', b';'].into_iter().find(|c| !has(b',') && has(*c)).unwrap_or(b',')
}

/// The column of arrival times, or why it cannot be told.
fn column(header: Option<&csv::StringRecord>, row: Option<&csv::StringRecord>) -> Result<usize, String> {
    let width = header.or(row).map_or(0, csv::StringRecord::len);
    if width == 1 {
        return Ok(0);
    }
    let names: Vec<String> = header.into_iter().flatten().map(str::to_lowercase).collect();
    for word in ["timestamp", "arriv", "time", "date"] {
        let named: Vec<usize> = (0..names.len()).filter(|i| names[*i].contains(word)).collect();
        match named.as_slice() {
            [] => {}
            [one] => return Ok(*one),
            _ => return Err(format!("{} columns speak of `{word}`", named.len())),
        }
    }
    let cells: Vec<&str> = row.into_iter().flatten().collect();
    let is_date = |i: &usize| matches!(Time::of(cells[*i]), Some(Time::Zoned(_) | Time::Local(_)));
    let dates: Vec<usize> = (0..cells.len()).filter(is_date).collect();
    match dates.as_slice() {
        [one] => Ok(*one),
        [] => Err(format!("{width} columns, and none holds dates")),
        _ => Err(format!("{} columns hold dates", dates.len())),
    }
}

/// An arrival as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Time {
    /// Seconds from some moment.
    Seconds(f64),
    /// A moment.
    Zoned(Timestamp),
    /// A date and a time of day somewhere, taken as if clocks were never changed there.
    Local(Timestamp),
}

impl Time {
    fn of(cell: &str) -> Option<Self> {
        if let Ok(seconds) = cell.parse::<f64>() {
            return seconds.is_finite().then_some(Self::Seconds(seconds));
        }
        if let Ok(moment) = cell.parse::<Timestamp>() {
            return Some(Self::Zoned(moment));
        }
        let local = cell.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(Self::Local(local.timestamp()))
    }

    /// How it is written, in words.
    fn kind(self) -> &'static str {
        match self {
            Self::Seconds(_) => "seconds",
            Self::Zoned(_) => "dates with a time zone",
            Self::Local(_) => "dates without a time zone",
        }
    }

    /// Seconds since another time of the same kind.
    fn since(self, start: Self) -> f64 {
        let apart = |a: Timestamp, b: Timestamp| -> f64 {
            let apart: SignedDuration = a.duration_since(b);
            apart.as_secs_f64()
        };
        match (self, start) {
            (Self::Seconds(a), Self::Seconds(b)) => a - b,
            (Self::Zoned(a), Self::Zoned(b)) | (Self::Local(a), Self::Local(b)) => apart(a, b),
            // INVARIANT: times of another kind than the first are refused when they are read.
            (_, _) => f64::NAN,
        }
    }
}

/// The arrivals read so far.
#[derive(Default)]
struct Times {
    start: Option<Time>,
    /// Seconds since `start`.
    seconds: Vec<f64>,
    /// The first line that is earlier than the one before, and how many there are.
    backward: Option<(Span, usize)>,
    n_backward: usize,
}

impl Times {
    fn read(&mut self, cell: &str, column: usize, line: &Line<'_>, faults: &mut Faults) {
        let row = line.number;
        let Some(time) = Time::of(cell) else {
            let label = if cell.is_empty() { "no value here".to_owned() } else { format!("`{cell}`") };
            let message = format!("row {row}: the arrival time cannot be read");
            let help = "write seconds, or a date as `2023-11-16 18:17:03.9799600` or `2023-11-16T18:17:03Z`";
            faults.row_with_help(Code::MeasurementRow, line.cell(column), message, label, help);
            return;
        };
        let start = *self.start.get_or_insert(time);
        if time.kind() != start.kind() {
            let message = format!("row {row}: the arrival time is not written like those above it");
            let label = format!("{} here, {} above", time.kind(), start.kind());
            faults.row_with_help(
                Code::MeasurementRow,
                line.cell(column),
                message,
                label,
                "write all times the same way",
            );
            return;
        }
        let at = time.since(start);
        if self.seconds.last().is_some_and(|before| at < *before) {
            self.backward.get_or_insert((line.cell(column), row));
            self.n_backward += 1;
        }
        self.seconds.push(at);
    }

    fn finish(mut self, whole: Span, mut faults: Faults) -> Outcome<Trace> {
        if faults.has_errors() {
            return faults.finish(Trace::default());
        }
        self.seconds.sort_by(f64::total_cmp);
        let gaps: Vec<f64> = self.seconds.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let total: f64 = gaps.iter().sum();
        let fault = match self.seconds.len() {
            0 => Some(("the trace has no arrivals", "nothing below the header")),
            1 => Some(("a trace of one arrival has no gap", "this is all there is")),
            _ if !(total.is_finite() && total > 0.0) => {
                Some(("the trace has no gap", "all arrivals are at one moment"))
            }
            _ => None,
        };
        if let Some((message, label)) = fault {
            faults.push(
                Diagnostic::error(Code::MeasurementRow, whole, message)
                    .label(label)
                    .help("record at least two arrivals; a few thousand tell how they vary"),
            );
            return faults.finish(Trace::default());
        }
        if let Some((span, row)) = self.backward {
            let n = self.n_backward;
            faults.push(
                Diagnostic::warning(Code::MeasurementRow, span, "the trace is not in the order of time")
                    .label(format!("row {row} is earlier than the one before; {n} such rows"))
                    .help("sort the file; it is read as if it were"),
            );
        }
        if gaps.len() < FEW {
            faults.push(
                Diagnostic::warning(
                    Code::MeasurementRow,
                    whole,
                    "the trace is too short to tell how arrivals vary",
                )
                .label(format!("{} arrivals", self.seconds.len()))
                .help("record a few thousand arrivals"),
            );
        }
        let mean = total / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g / mean - 1.0).powi(2)).sum::<f64>() / gaps.len() as f64;
        faults.finish(Trace { cv: variance.sqrt(), gaps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::diagnostic::Severity;

    fn read(text: &str) -> Outcome<Trace> {
        trace(text, FileId(0))
    }

    fn gaps(text: &str) -> Vec<f64> {
        let outcome = read(text);
        assert!(!outcome.has_errors(), "{:#?}", outcome.diagnostics);
        outcome.value.gaps
    }

    fn error(text: &str) -> (Code, String, String) {
        let outcome = read(text);
        let first = outcome.diagnostics.iter().find(|d| d.severity == Severity::Error).unwrap().clone();
        let under = text.get(first.primary.span.start as usize..first.primary.span.end as usize);
        (first.code, first.message, under.unwrap_or("").to_owned())
    }

    #[test]
    fn seconds_in_one_column_need_no_header() {
        assert_eq!(gaps("0\n1\n3\n"), [1.0, 2.0]);
        assert_eq!(gaps("arrival_s\r\n0.5\r\n\r\n# a pause\r\n10.5\r\n10.5\r\n"), [10.0, 0.0]);
        let trace = read("0\n1\n4\n").value;
        assert!((trace.cv - 0.5).abs() < 1e-12 && (trace.rate() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn dates_may_have_seven_or_nine_digits_of_a_second() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\n\
                    2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n";
        assert!((gaps(text)[0] - 0.052).abs() < 1e-12);
        let text = "2024-05-10T00:00:00.000000001Z\n2024-05-10 00:00:00.000000003+00:00\n";
        assert!((gaps(text)[0] - 2e-9).abs() < 1e-18);
    }

    #[test]
    fn time_zones_are_taken_into_account() {
        assert_eq!(gaps("2024-03-10T12:00:00+02:00\n2024-03-10T10:00:01Z\n"), [1.0]);
        let (code, message, under) = error("2024-03-10T12:00:00+02:00\n2024-03-10T10:00:01\n");
        assert_eq!((code, under.as_str()), (Code::MeasurementRow, "2024-03-10T10:00:01"));
        assert!(message.contains("not written like those above"), "{message}");
    }

    #[test]
    fn lines_out_of_order_are_sorted_and_told() {
        let outcome = read("t\n5\n2\n9\n3\n");
        assert_eq!(outcome.value.gaps, [1.0, 2.0, 4.0]);
        let told = &outcome.diagnostics[0];
        assert_eq!(
            (told.severity, told.message.as_str()),
            (Severity::Warning, "the trace is not in the order of time")
        );
        assert!(told.primary.text.starts_with("row 3") && told.primary.text.contains("2 such rows"));
    }

    #[test]
    fn the_column_is_found_by_name_or_by_its_dates() {
        assert_eq!(gaps("id,tokens,arrived_at\n7,10,0\n8,20,4\n"), [4.0]);
        assert_eq!(gaps("id;when\n1;2024-01-01 00:00:00\n2;2024-01-01 00:00:02\n"), [2.0]);
        assert_eq!(gaps("1\t2024-01-01 00:00:00\n2\t2024-01-01 00:00:02\n"), [2.0]);
        for text in ["1,2\n3,4\n", "a,b\n1,2\n", "start time,end time\n1,2\n"] {
            assert_eq!(error(text).0, Code::MeasurementColumn, "{text}");
        }
    }

    #[test]
    fn a_trace_without_a_gap_is_refused() {
        assert!(error("").1.contains("no arrivals"));
        assert!(error("timestamp\n").1.contains("no arrivals"));
        assert!(error("timestamp\n12\n").1.contains("one arrival"));
        assert!(error("12\n12\n12\n").1.contains("no gap"));
        assert!(error("1e308\n-1e308\n").1.contains("no gap"));
    }

    #[test]
    fn a_time_that_cannot_be_read_is_shown() {
        for cell in ["soon", "nan", "inf", "2023-13-01 00:00:00", "25:00", "\"\""] {
            let (code, message, _) = error(&format!("timestamp\n1\n{cell}\n"));
            assert_eq!(
                (code, message.as_str()),
                (Code::MeasurementRow, "row 3: the arrival time cannot be read")
            );
        }
    }

    #[test]
    fn few_arrivals_are_told_and_many_are_not() {
        let many: String = (0..200).map(|i| format!("{}\n", i * i)).collect();
        assert!(read(&many).diagnostics.is_empty());
        assert!(read("1\n2\n").diagnostics[0].message.contains("too short"));
    }

    #[test]
    fn text_of_any_kind_is_survived() {
        for text in ["\u{0}", ",,,\n,,,", "\"", "#\n#", "a\n\n\nb", "1,2\n\"3", "é;é\n1;2"] {
            let _told = read(text);
        }
    }
}
