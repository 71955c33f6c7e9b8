//! What one metric costs in another, plan by plan → a chart of the front.
//!
//! A point is a plan; its whisker ends at what no plan within that limit is below. Both axes are better
//! towards the origin.

use crate::chart::{DrawError, Drawing, Labels, axes, draw as paint, letters};
use crate::palette::{FAINT, INK, PAPER, SERVICES};
use crate::quantity::{metric as shown, number, percent};
use ent_plan::plan::{Metric, Status};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// What an axis of a front counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// A metric of plans.
    Metric(Metric),
    /// What every latency promise is multiplied by: 1 is the program as it is, 0.5 promises half the time.
    LatencySlack,
}

impl Axis {
    /// Its word on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Metric(metric) => metric.word(),
            Self::LatencySlack => "latency-slack",
        }
    }

    /// What a reader calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Metric(Metric::Gpus) => "boards",
            Self::Metric(metric) => metric.word(),
            Self::LatencySlack => "latency",
        }
    }

    /// What it counts, in words.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Metric(Metric::Power) => "power, everything busy",
            Self::Metric(Metric::Energy) => "energy over the horizon",
            Self::Metric(Metric::Carbon) => "carbon over the horizon",
            Self::Metric(Metric::Gpus) => "boards used",
            Self::Metric(Metric::Cost) => "cost over the horizon",
            Self::LatencySlack => "promises, of those in the spec",
        }
    }

    /// A value with its unit.
    #[must_use]
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Metric(metric) => shown(metric, value),
            Self::LatencySlack => percent(value),
        }
    }

    /// The unit for an axis with numbers up to this, and what they are divided by.
    fn unit(self, most: f64) -> (&'static str, f64) {
        let first = |units: &[(f64, &'static str)]| {
            units.iter().copied().find(|(by, _)| most >= *by).map_or(("", 1.0), |(by, unit)| (unit, by))
        };
        match self {
            Self::Metric(Metric::Power) => first(&[(1e6, "MW"), (1e3, "kW"), (1.0, "W")]),
            Self::Metric(Metric::Energy) => first(&[(1e9, "GJ"), (1e6, "MJ"), (1e3, "kJ"), (1.0, "J")]),
            Self::Metric(Metric::Carbon) => first(&[(1e6, "tCO2"), (1e3, "kgCO2"), (1.0, "gCO2")]),
            Self::Metric(Metric::Gpus) => ("", 1.0),
            Self::Metric(Metric::Cost) => ("USD", 1.0),
            Self::LatencySlack => ("%", 0.01),
        }
    }
}

/// A front: plans of which none is better than another in both axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Front {
    /// What is limited.
    pub x: Axis,
    /// What is minimised within the limit.
    pub y: Axis,
    /// The points, ascending by `x`.
    pub points: Vec<FrontPoint>,
    /// What the points do not say: infeasible ends, what was left out, and why.
    pub notes: Vec<String>,
}

/// A plan on a front.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontPoint {
    /// Its value on the limited axis.
    pub x: f64,
    /// Its value on the minimised axis.
    pub y: f64,
    /// No plan within the limit is below this on the minimised axis.
    pub bound: Option<f64>,
    /// How far it is proven.
    pub status: Status,
    /// Relative gap.
    pub gap: Option<f64>,
    /// Boards used.
    pub gpus: u32,
    /// Mean power at the offered load (W), predicted.
    pub mean_power_w: Option<f64>,
    /// Whether this is the plan that the page is about, or the spec as it is.
    pub is_chosen: bool,
}

impl FrontPoint {
    /// `optimal`, `gap 0.3 %`, `no bound`.
    #[must_use]
    pub fn proof(&self) -> String {
        match (self.status, self.gap) {
            (Status::Optimal, _) => "optimal".to_owned(),
            (_, Some(gap)) => format!("gap {}", percent(gap)),
            (_, None) => "no bound".to_owned(),
        }
    }
}

/// Height of the chart.
const HEIGHT: u32 = 320;

/// Draws a front.
pub(crate) fn draw(front: &Front, id: &str) -> Result<Drawing, DrawError> {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let (x_unit, x_by) = front.x.unit(most(&mut front.points.iter().map(|p| p.x)));
    let (y_unit, y_by) = front.y.unit(most(&mut front.points.iter().map(|p| p.y)));
    let named = |axis: Axis, unit: &str| {
        if unit.is_empty() { axis.title().to_owned() } else { format!("{} ({unit})", axis.title()) }
    };
    let title = format!("{} against {}", front.y.title(), front.x.title());
    let told: Vec<String> = front
        .points
        .iter()
        .map(|p| format!("{} at {}, {}", front.y.shown(p.y), front.x.shown(p.x), p.proof()))
        .collect();
    let description =
        if told.is_empty() { "No plan was found.".to_owned() } else { format!("{}.", told.join("; ")) };
    paint(id, HEIGHT, title, description, |area| {
        let points: Vec<(f64, f64, f64)> = front
            .points
            .iter()
            .map(|p| (p.x / x_by, p.y / y_by, p.bound.unwrap_or(p.y).min(p.y) / y_by))
            .collect();
        let x = span(points.iter().map(|p| p.0), front.x == Axis::Metric(Metric::Gpus));
        let y = span(points.iter().flat_map(|p| [p.1, p.2]), front.y == Axis::Metric(Metric::Gpus));
        let x_title = named(front.x, x_unit);
        let whole = |v: &f64| if (v - v.round()).abs() < 1e-6 { format!("{v:.0}") } else { String::new() };
        let plain = |v: &f64| number(*v);
        let labels = Labels {
            x: &x_title,
            write_x: if front.x == Axis::Metric(Metric::Gpus) { &whole } else { &plain },
            write_y: if front.y == Axis::Metric(Metric::Gpus) { &whole } else { &plain },
            n_x: 6,
        };
        let mut chart = axes(area, &named(front.y, y_unit), &labels, x.clone(), y.clone())?;
        let color = SERVICES[0].rgb();
        // Between two points nothing better is known than the left one.
        let mut steps = Vec::new();
        for pair in points.windows(2) {
            if let [a, b] = pair {
                steps.extend([(a.0, a.1), (b.0, a.1), (b.0, b.1)]);
            }
        }
        chart.draw_series(LineSeries::new(steps, color.mix(0.55).stroke_width(2)))?;
        for (point, (x, y, bound)) in front.points.iter().zip(&points) {
            if y > bound {
                let whisker = PathElement::new(vec![(*x, *y), (*x, *bound)], FAINT.rgb().stroke_width(2));
                chart.draw_series(std::iter::once(whisker))?;
                chart.draw_series(std::iter::once(
                    EmptyElement::at((*x, *bound))
                        + PathElement::new(vec![(-5, 0), (5, 0)], FAINT.rgb().stroke_width(2)),
                ))?;
            }
            let is_proven = point.status == Status::Optimal;
            let fill = if is_proven { color.filled() } else { PAPER.rgb().filled() };
            chart.draw_series(std::iter::once(Circle::new((*x, *y), 5, fill)))?;
            chart.draw_series(std::iter::once(Circle::new((*x, *y), 5, color.stroke_width(2))))?;
            if point.is_chosen {
                chart.draw_series(std::iter::once(Circle::new((*x, *y), 9, INK.rgb().stroke_width(2))))?;
            }
        }
        if points.is_empty() {
            let style = letters(FAINT.rgb(), HPos::Center, VPos::Center);
            area.draw(&Text::new("no plan was found", (210, 150), style))?;
        }
        Ok(())
    })
}

/// An axis that holds all values with room around them; never empty.
fn span(values: impl Iterator<Item = f64>, is_whole: bool) -> std::ops::Range<f64> {
    let (least, most) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(v), most.max(v)));
    if !least.is_finite() {
        return 0.0..1.0;
    }
    if is_whole {
        return least - 0.5..most + 0.5;
    }
    let room = ((most - least) * 0.1).max(most.abs() * 0.005).max(1e-9);
    (least - room).max(if least >= 0.0 { 0.0 } else { f64::MIN })..most + room
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Front {
        let point = |x, y, bound, status, is_chosen| FrontPoint {
            x,
            y,
            bound: Some(bound),
            status,
            gap: Some((y - bound) / y),
            gpus: 2,
            mean_power_w: Some(y),
            is_chosen,
        };
        Front {
            x: Axis::Metric(Metric::Gpus),
            y: Axis::Metric(Metric::Power),
            points: vec![
                point(1.0, 300.0, 300.0, Status::Optimal, false),
                point(2.0, 250.0, 240.0, Status::Feasible, true),
                point(3.0, 245.0, 245.0, Status::Optimal, false),
            ],
            notes: vec!["with 0 boards no plan keeps all promises".to_owned()],
        }
    }

    #[test]
    fn points_stand_to_scale_and_only_unproven_ones_have_a_whisker() {
        let text = draw(&sample(), "front").unwrap().standalone();
        let tree = roxmltree::Document::parse(&text).unwrap();
        let at = |n: &roxmltree::Node<'_, '_>| {
            let number = |name| n.attribute(name).unwrap().parse::<f64>().unwrap();
            (number("cx"), number("cy"))
        };
        let circles = |r: &str| {
            tree.descendants()
                .filter(|n| n.has_tag_name("circle") && n.attribute("r") == Some(r))
                .map(|n| at(&n))
                .collect::<Vec<_>>()
        };
        let points: Vec<(f64, f64)> = circles("5").into_iter().step_by(2).collect();
        assert_eq!(points.len(), 3);
        // One board from point to point; 50 W are ten times 5 W.
        assert!((points[1].0 - points[0].0 - (points[2].0 - points[1].0)).abs() <= 1.0, "{points:?}");
        let (long, short) = (points[1].1 - points[0].1, points[2].1 - points[1].1);
        assert!((long / short - 10.0).abs() < 1.2, "{points:?}");
        assert_eq!(circles("9"), [points[1]]);
        assert!(text.contains("250 W at 2 boards, gap 4 %"), "{text}");
    }

    #[test]
    fn no_point_and_one_point_are_pictures_too() {
        let mut front = sample();
        front.points.truncate(1);
        front.points[0].bound = None;
        let one = draw(&front, "front").unwrap().standalone();
        front.points.clear();
        let none = draw(&front, "front").unwrap().standalone();
        for text in [one, none] {
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            roxmltree::Document::parse(&text).unwrap();
        }
    }
}
