//! A program and two axes → plans of which none is better in both: the epsilon-constraint method.
//!
//! One metric is minimised while the other is limited, from as little as is possible to as much as the best
//! plan uses (Haimes, Lasdon and Wismer, 1971). Every point is a plan with its own bound and gap. Latency is
//! no metric of plans: there the promises themselves are scaled.

use crate::commands::pictures::step;
use crate::commands::plan::{Made, Wishes, has_boards, solve};
use crate::commands::program::Compiled;
use crate::exit::Stop;
use crate::interrupt;
use crate::terminal::Terminal;
use ent_lang::program::Limit;
use ent_performance::PerformanceSet;
use ent_picture::{Axis, Front, FrontPoint};
use ent_plan::plan::{Metric, Plan, Status};
use ent_plan::units::Seconds;
use std::time::Instant;

/// What is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// What is minimised.
    pub(crate) minimized: Metric,
    /// What is limited.
    pub(crate) limited: Axis,
    /// Most points.
    pub(crate) n_points: usize,
    /// The tightest and the loosest promises.
    pub(crate) slack: (f64, f64),
}

/// A search for a front.
pub(crate) struct Search<'a> {
    /// The program; it is as before when the search is over.
    pub(crate) compiled: &'a mut Compiled,
    /// What is known of its models.
    pub(crate) performance: &'a PerformanceSet,
    /// What each point is asked for.
    pub(crate) wishes: Wishes,
    /// Seconds for all points.
    pub(crate) total_s: f64,
    /// Where progress is told.
    pub(crate) terminal: &'a Terminal,
}

/// A plan on the way, and what it was limited to.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// The plan.
    pub(crate) plan: Plan,
    /// What the limited metric was kept within; `None` for the plan without a limit.
    pub(crate) limit: Option<f64>,
    /// What promises were multiplied by.
    pub(crate) slack: f64,
    /// Its value on the limited axis.
    pub(crate) x: f64,
    /// Its value on the minimised axis.
    pub(crate) y: f64,
}

/// What a search found.
pub(crate) struct Found {
    /// The front, ascending by the limited axis.
    pub(crate) points: Vec<Point>,
    /// What the points do not say.
    pub(crate) notes: Vec<String>,
    /// What stopped it before all points were tried: `interrupted`, `total time`.
    pub(crate) stopped_by: Option<&'static str>,
    /// The plan that could not be made, when there is none at all.
    pub(crate) failed: Option<Made>,
}

/// Why no more points are looked for.
enum End {
    /// By the user or the clock.
    Stopped(&'static str),
    /// The planner failed in a way that is the user's to know.
    Stop(Stop),
}

impl From<Stop> for End {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

/// A limit that the best plan itself reaches is not missed by rounding.
const ROOM: f64 = 1e-6;

/// Relative difference below which two values are one.
const ALIKE: f64 = 1e-7;

/// One plan that is asked for.
#[derive(Clone, Copy, Debug)]
struct Ask {
    minimized: Metric,
    limit: Option<(Metric, f64)>,
    slack: f64,
}

/// A search under way.
struct Course<'s, 'a> {
    search: &'s mut Search<'a>,
    wanted: Wanted,
    started: Instant,
    n_tried: usize,
    n_all: usize,
    points: Vec<Point>,
    notes: Vec<String>,
    failed: Option<Made>,
}

impl Search<'_> {
    /// Looks for the front. `known` is the plan without a limit, where the caller has it.
    ///
    /// # Errors
    /// When a plan cannot be asked for at all. No plan is no error: [`Found::failed`] has what was said.
    pub(crate) fn run(&mut self, wanted: &Wanted, known: Option<&Plan>) -> Result<Found, Stop> {
        let n_all = wanted.n_points;
        let mut course = Course {
            search: self,
            wanted: *wanted,
            started: Instant::now(),
            n_tried: 0,
            n_all,
            points: Vec::new(),
            notes: Vec::new(),
            failed: None,
        };
        let ended = match wanted.limited {
            Axis::Metric(limited) => course.by_limits(limited, known),
            Axis::LatencySlack => course.by_slack(known),
        };
        let stopped_by = match ended {
            Ok(()) => None,
            Err(End::Stopped(by)) => Some(by),
            Err(End::Stop(stop)) => return Err(stop),
        };
        Ok(course.found(stopped_by))
    }
}

impl Course<'_, '_> {
    /// One metric minimised while another is limited.
    fn by_limits(&mut self, limited: Metric, known: Option<&Plan>) -> Result<(), End> {
        let minimized = self.wanted.minimized;
        let free = Ask { minimized, limit: None, slack: 1.0 };
        match known {
            Some(plan) => self.keep(plan.clone(), free),
            None => self.ask(free)?,
        }
        let Some(most) = self.points.first().map(|point| point.x) else { return Ok(()) };
        // The least that is possible at all, then the best with no more than that.
        let Some(least) = self.least(limited)? else { return Ok(()) };
        let within = |value: f64| if limited == Metric::Gpus { value } else { value + ROOM * value.abs() };
        if least >= most - ALIKE * most.abs() {
            self.notes.push(format!(
                "the plan with the least {} is also one with the least {}: there is nothing to trade",
                Axis::Metric(minimized).name(),
                Axis::Metric(limited).name()
            ));
            return Ok(());
        }
        let between = between(limited, least, most, self.wanted.n_points.saturating_sub(2));
        self.n_all = self.n_tried + 1 + between.len();
        for value in std::iter::once(least).chain(between) {
            self.ask(Ask { limit: Some((limited, within(value))), ..free })?;
        }
        Ok(())
    }

    /// The least value of the limited metric.
    fn least(&mut self, limited: Metric) -> Result<Option<f64>, End> {
        let made = self.plan(Ask { minimized: limited, limit: None, slack: 1.0 })?;
        let horizon = made.plan.accounting.horizon_s;
        let value =
            if has_boards(made.plan.status) { made.plan.metrics.value(limited, horizon) } else { None };
        match value {
            Some(value) => {
                if let (Status::Feasible, Some(bound)) = (made.plan.status, made.plan.objective.bound) {
                    self.notes.push(format!(
                        "the least {} found is {}; none is below {}, and in between is not known",
                        Axis::Metric(limited).name(),
                        Axis::Metric(limited).shown(value),
                        Axis::Metric(limited).shown(bound)
                    ));
                } else {
                    self.notes.push(format!(
                        "no plan that keeps all promises is below {}",
                        Axis::Metric(limited).shown(value)
                    ));
                }
            }
            None => {
                self.notes.push(format!("no plan with the least {} was found in its time", limited.word()));
            }
        }
        Ok(value)
    }

    /// One metric minimised while all promises are scaled: from the loosest to the tightest, which ends
    /// where nothing can be promised any more.
    fn by_slack(&mut self, known: Option<&Plan>) -> Result<(), End> {
        let minimized = self.wanted.minimized;
        for slack in slacks(self.wanted.slack, self.wanted.n_points) {
            let ask = Ask { minimized, limit: None, slack };
            let n_before = self.points.len();
            match known.filter(|_| slack == 1.0) {
                Some(plan) => self.keep(plan.clone(), ask),
                None => self.ask(ask)?,
            }
            if self.points.len() == n_before {
                // What cannot be kept now cannot be kept tighter.
                let is_proven =
                    self.failed.as_ref().is_some_and(|made| made.plan.status == Status::Infeasible);
                self.notes.push(if is_proven {
                    format!(
                        "with promises of {} and tighter no plan keeps them all",
                        Axis::LatencySlack.shown(slack)
                    )
                } else {
                    format!(
                        "with promises of {} no plan was found in its time",
                        Axis::LatencySlack.shown(slack)
                    )
                });
                if is_proven {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Plans, and keeps the plan if there is one.
    fn ask(&mut self, ask: Ask) -> Result<(), End> {
        let made = self.plan(ask)?;
        let is_interrupted = made.is_interrupted;
        if has_boards(made.plan.status) {
            self.keep(made.plan, ask);
        } else if is_interrupted {
            return Err(End::Stopped("interrupted"));
        } else {
            self.failed = Some(made);
        }
        if is_interrupted { Err(End::Stopped("interrupted")) } else { Ok(()) }
    }

    fn keep(&mut self, plan: Plan, ask: Ask) {
        let value = |metric| plan.metrics.value(metric, plan.accounting.horizon_s);
        let x = match self.wanted.limited {
            Axis::Metric(metric) => value(metric),
            Axis::LatencySlack => Some(ask.slack),
        };
        let (Some(x), Some(y)) = (x, value(ask.minimized)) else { return };
        let limit = ask.limit.map(|(_, at_most)| at_most);
        self.points.push(Point { plan, limit, slack: ask.slack, x, y });
    }

    /// Plans the program with what is asked in place of its own wishes.
    fn plan(&mut self, ask: Ask) -> Result<Made, End> {
        if interrupt::is_interrupted() {
            return Err(End::Stopped("interrupted"));
        }
        let left = self.search.total_s - self.started.elapsed().as_secs_f64();
        if left <= 0.0 {
            return Err(End::Stopped("total time"));
        }
        self.n_tried += 1;
        let n_all = self.n_all.max(self.n_tried);
        step(self.search.terminal, &format!("point {} of at most {n_all}: {}", self.n_tried, words(ask)));
        let search = &mut *self.search;
        let before = search.compiled.program.clone();
        let program = &mut search.compiled.program;
        program.objective.minimize.value = ask.minimized;
        if let Some((metric, at_most)) = ask.limit {
            let span = program.objective.minimize.span;
            program.objective.limits.push(Limit { metric, at_most, span });
        }
        if ask.slack != 1.0 {
            for service in &mut program.services {
                service.slo.value.bound = Seconds(service.slo.value.bound.get() * ask.slack);
            }
        }
        let wishes = Wishes { time_limit: search.wishes.time_limit.min(left), ..search.wishes };
        let made = solve(search.compiled, search.performance, &wishes, search.terminal);
        search.compiled.program = before;
        Ok(made?)
    }

    /// Leaves out what another plan is as good as in both axes.
    fn found(mut self, stopped_by: Option<&'static str>) -> Found {
        let n_before = self.points.len();
        self.points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        let mut front: Vec<Point> = Vec::new();
        for point in self.points {
            if front.last().is_none_or(|last| point.y < last.y - ALIKE * last.y.abs()) {
                front.push(point);
            }
        }
        let n_left_out = n_before - front.len();
        if n_left_out > 0 {
            let (plans, are) = if n_left_out == 1 { ("plan", "is") } else { ("plans", "are") };
            self.notes
                .push(format!("{n_left_out} {plans} {are} left out: another one here is as good in both"));
        }
        match stopped_by {
            Some("interrupted") => self.notes.push("interrupted: the front is not complete".to_owned()),
            Some(by) => self.notes.push(format!("stopped by the {by}: the front is not complete")),
            None => {}
        }
        let failed = if front.is_empty() { self.failed } else { None };
        Found { points: front, notes: self.notes, stopped_by, failed }
    }
}

impl Found {
    /// The front, to be drawn. The point of the chosen plan is marked: the one without a limit, or the spec
    /// as it is.
    pub(crate) fn front(&self, wanted: &Wanted, chosen: Option<&Plan>) -> Front {
        let is_chosen = |point: &Point| match (wanted.limited, chosen) {
            (Axis::LatencySlack, _) => point.slack == 1.0,
            (Axis::Metric(_), Some(plan)) => point.plan.gpus == plan.gpus,
            (Axis::Metric(_), None) => false,
        };
        let point = |point: &Point| FrontPoint {
            x: point.x,
            y: point.y,
            bound: point.plan.objective.bound,
            status: point.plan.status,
            gap: point.plan.objective.gap,
            gpus: point.plan.metrics.gpus,
            mean_power_w: point.plan.metrics.mean_power_w,
            is_chosen: is_chosen(point),
        };
        Front {
            x: wanted.limited,
            y: Axis::Metric(wanted.minimized),
            points: self.points.iter().map(point).collect(),
            notes: self.notes.clone(),
        }
    }
}

fn words(ask: Ask) -> String {
    let what = format!("least {}", ask.minimized.word());
    match ask.limit {
        Some((metric, at_most)) => {
            format!("{what} within {} of {}", Axis::Metric(metric).shown(at_most), metric.word())
        }
        None if ask.slack == 1.0 => what,
        None => format!("{what} with promises of {}", Axis::LatencySlack.shown(ask.slack)),
    }
}

/// Limits strictly between two values: whole numbers for boards, evenly spaced.
fn between(metric: Metric, least: f64, most: f64, n_most: usize) -> Vec<f64> {
    if metric == Metric::Gpus {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of boards")]
        let (first, last) = (least.round() as u32 + 1, most.round() as u32);
        let all: Vec<f64> = (first..last).map(f64::from).collect();
        if all.len() <= n_most {
            return all;
        }
        // Evenly spaced, rounded to whole boards.
        let every = all.len() as f64 / n_most.max(1) as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let pick = |n: usize| all.get((n as f64 * every) as usize).copied();
        return (0..n_most).filter_map(pick).collect();
    }
    (1..=n_most).map(|n| least + (most - least) * n as f64 / (n_most + 1) as f64).collect()
}

/// Slacks from the loosest to the tightest, with the spec as it is among them if it is within.
fn slacks((low, high): (f64, f64), n: usize) -> Vec<f64> {
    // Evenly spaced as factors: half and twice are equally far from the spec.
    let last = n.saturating_sub(1).max(1) as f64;
    let mut all: Vec<f64> = (0..n).map(|i| high * (low / high).powf(i as f64 / last)).collect();
    if let Some(end) = all.last_mut() {
        *end = low;
    }
    if (low..=high).contains(&1.0) {
        let nearest = all.iter_mut().min_by(|a, b| a.ln().abs().total_cmp(&b.ln().abs()));
        if let Some(nearest) = nearest {
            *nearest = 1.0;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_lie_between_the_ends() {
        assert_eq!(between(Metric::Gpus, 1.0, 5.0, 6), [2.0, 3.0, 4.0]);
        assert_eq!(between(Metric::Gpus, 1.0, 2.0, 6), [0.0; 0]);
        let many = between(Metric::Gpus, 1.0, 101.0, 6);
        assert_eq!(many.len(), 6);
        assert!(many.windows(2).all(|w| w[1] > w[0]) && many.iter().all(|v| (2.0..101.0).contains(v)));
        assert_eq!(between(Metric::Power, 100.0, 200.0, 3), [125.0, 150.0, 175.0]);
    }

    #[test]
    fn slacks_hold_both_ends_and_the_spec_as_it_is() {
        let all = slacks((0.5, 2.0), 6);
        assert_eq!((all[0], all[5], all.len()), (2.0, 0.5, 6));
        assert!(all.contains(&1.0) && all.windows(2).all(|w| w[1] < w[0]), "{all:?}");
        assert!(!slacks((1.5, 2.0), 4).contains(&1.0));
    }
}
