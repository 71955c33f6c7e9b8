//! What the planner says while it plans → a moving line on a terminal, or plain lines when asked for.
//!
//! Elapsed time is measured here: the planner reads no clock.

use crate::render::quantity::{grams, number, percent, watts};
use crate::terminal::{Terminal, Verbosity};
use ent_plan::plan::{Metric, gap};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// What is known at one moment of planning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment<'a> {
    /// What is being done.
    pub(crate) phase: &'a str,
    /// Value of the best plan so far: W for power and energy, g/h, boards, USD/h.
    pub(crate) incumbent: Option<f64>,
    /// No plan is better than this.
    pub(crate) bound: Option<f64>,
}

/// The display.
pub(crate) struct Display {
    metric: Metric,
    started: Instant,
    spinner: Option<ProgressBar>,
    has_lines: bool,
    /// The last line written and when, so that nothing is said twice and nothing floods a log.
    last: Option<(String, Instant)>,
}

/// Lines come at most this often.
const BETWEEN_LINES: Duration = Duration::from_millis(500);

impl Display {
    /// Starts the display where it makes sense.
    pub(crate) fn start(terminal: &Terminal, metric: Metric, started: Instant) -> Self {
        let moves = terminal.is_interactive() && terminal.verbosity == Verbosity::Normal;
        let spinner = moves.then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            let template =
                if terminal.symbols.is_unicode { "{spinner} {msg}, {elapsed}" } else { "* {msg}, {elapsed}" };
            if let Ok(style) = ProgressStyle::with_template(template) {
                spinner.set_style(style);
            }
            spinner.set_message("formulating");
            spinner.enable_steady_tick(Duration::from_millis(120));
            spinner
        });
        let has_lines = terminal.verbosity == Verbosity::Verbose;
        Self { metric, started, spinner, has_lines, last: None }
    }

    fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Shows a moment.
    pub(crate) fn show(&mut self, moment: &Moment<'_>) {
        if self.spinner.is_none() && !self.has_lines {
            return;
        }
        let text = describe(moment, self.metric);
        if let Some(spinner) = &self.spinner {
            spinner.set_message(text.clone());
        }
        if self.has_lines {
            let is_new =
                self.last.as_ref().is_none_or(|(last, at)| *last != text && at.elapsed() >= BETWEEN_LINES);
            if is_new {
                crate::terminal::error_line(&format!("{:7.1} s  {text}", self.elapsed()));
                self.last = Some((text, Instant::now()));
            }
        }
    }

    /// Removes the display.
    pub(crate) fn finish(self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn describe(moment: &Moment<'_>, of: Metric) -> String {
    let mut text = moment.phase.to_owned();
    match moment.incumbent {
        Some(value) => text.push_str(&format!(": {} {}", of.word(), rate(of, value))),
        None => text.push_str(": no plan yet"),
    }
    if let Some(bound) = moment.bound {
        text.push_str(&format!(", bound {}", rate(of, bound)));
    }
    if let (Some(value), Some(bound)) = (moment.incumbent, moment.bound) {
        text.push_str(&format!(", gap {}", percent(gap(value, bound))));
    }
    text
}

/// The value of a metric per time, which is what a search counts in.
fn rate(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Power | Metric::Energy => watts(value),
        Metric::Carbon => format!("{} per hour", grams(value, 5)),
        Metric::Gpus => format!("{} boards", number(value)),
        Metric::Cost => format!("{} USD per hour", number(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_tells_incumbent_bound_and_gap() {
        let moment = Moment { phase: "proving", incumbent: Some(412.0), bound: Some(410.0) };
        let text = describe(&moment, Metric::Power);
        assert_eq!(text, "proving: power 412 W, bound 410 W, gap 0.49 %");
        let start = Moment { phase: "starting", incumbent: None, bound: None };
        assert_eq!(describe(&start, Metric::Power), "starting: no plan yet");
    }
}
