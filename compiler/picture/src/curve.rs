//! Dynamic power over the clock of one operating point → a small chart with the chosen clock marked.

use crate::chart::{DrawError, Drawing, Labels, axes, draw as paint, letters};
use crate::palette::{INK, PAPER, service};
use crate::quantity::{few_watts, number};
use crate::text::plain;
use ent_plan::units::Megahertz;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Dynamic power over the clock, everything else of an operating point kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The service.
    pub service: String,
    /// The rest of the operating point, in words: `3g.40gb, batch 32`.
    pub point: String,
    /// The curve, ascending by clock.
    pub points: Vec<CurvePoint>,
    /// The clock that was chosen.
    pub chosen: Megahertz,
    /// Relative error band of the watts, one standard deviation; 0 for measured rows.
    pub power_error: f64,
    /// Where the numbers come from: `fitted`, `table`, `extrapolated`.
    pub source: String,
}

/// One clock of a [`Curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The clock.
    pub clock: Megahertz,
    /// Dynamic power of the instance when always busy with full batches (W).
    pub dynamic_power_w: f64,
    /// Energy of a request in a full batch (J).
    pub joules_per_request: f64,
    /// Whether the promise holds at this clock and the rate that the plan gives the instance.
    pub is_kept: bool,
}

/// Height of the chart.
const HEIGHT: u32 = 250;

/// Draws a curve; `index` is the service's in the program, `id` unique in the page.
pub(crate) fn draw(id: &str, curve: &Curve, index: usize) -> Result<Drawing, DrawError> {
    let title = format!("{}: dynamic power over the clock ({})", curve.service, curve.point);
    let clock = |point: &CurvePoint| f64::from(point.clock.0);
    let chosen = curve.points.iter().find(|p| p.clock == curve.chosen);
    let description = describe(curve, chosen);
    paint(id, HEIGHT, title, description, |area| {
        let most =
            curve.points.iter().map(|p| p.dynamic_power_w * (1.0 + curve.power_error)).fold(1.0, f64::max);
        let (least, last) = (curve.points.first().map_or(0.0, clock), curve.points.last().map_or(1.0, clock));
        let margin = (last - least).max(10.0) * 0.05;
        let labels =
            Labels { x: "SM clock (MHz)", write_x: &|v| format!("{v:.0}"), write_y: &|v| number(*v), n_x: 5 };
        let x = least - margin..last + margin;
        let mut chart = axes(area, "dynamic watts, always busy", &labels, x, 0.0..most * 1.12)?;
        let color = service(index).rgb();
        if curve.power_error > 0.0 {
            let edge = |sign: f64| {
                move |p: &CurvePoint| {
                    (f64::from(p.clock.0), p.dynamic_power_w * (1.0 + sign * curve.power_error))
                }
            };
            let ring: Vec<(f64, f64)> =
                curve.points.iter().map(edge(1.0)).chain(curve.points.iter().rev().map(edge(-1.0))).collect();
            chart.draw_series(std::iter::once(Polygon::new(ring, color.mix(0.18))))?;
        }
        chart.draw_series(LineSeries::new(
            curve.points.iter().map(|p| (clock(p), p.dynamic_power_w)),
            color.stroke_width(2),
        ))?;
        for point in &curve.points {
            let style = if point.is_kept { color.filled() } else { PAPER.rgb().filled() };
            let place = (clock(point), point.dynamic_power_w);
            chart.draw_series(std::iter::once(Circle::new(place, 4, style)))?;
            chart.draw_series(std::iter::once(Circle::new(place, 4, color.stroke_width(2))))?;
        }
        if let Some(point) = chosen {
            let place = (clock(point), point.dynamic_power_w);
            chart.draw_series(std::iter::once(Circle::new(place, 8, INK.rgb().stroke_width(2))))?;
            let is_right = clock(point) > (least + last) / 2.0;
            let (h, dx) = if is_right { (HPos::Right, -12) } else { (HPos::Left, 12) };
            let words = format!("{} W at {}", few_watts(point.dynamic_power_w), point.clock);
            // Above the curve on the right, below it on the left, where the curve is not.
            let dy = if is_right { -16 } else { 14 };
            let style = letters(INK.rgb(), h, VPos::Center);
            chart
                .draw_series(std::iter::once(EmptyElement::at(place) + Text::new(words, (dx, dy), style)))?;
        }
        Ok(())
    })
}

fn describe(curve: &Curve, chosen: Option<&CurvePoint>) -> String {
    let mut text = match (curve.points.first(), curve.points.last()) {
        (Some(first), Some(last)) => format!(
            "From {} W at {} to {} W at {}.",
            few_watts(first.dynamic_power_w),
            first.clock,
            few_watts(last.dynamic_power_w),
            last.clock
        ),
        _ => "No clock is known.".to_owned(),
    };
    if let Some(point) = chosen {
        text.push_str(&format!(" Chosen: {} W at {}.", few_watts(point.dynamic_power_w), point.clock));
    }
    let broken: Vec<String> =
        curve.points.iter().filter(|p| !p.is_kept).map(|p| p.clock.to_string()).collect();
    if !broken.is_empty() {
        text.push_str(&format!(" The promise does not hold at {}.", broken.join(", ")));
    }
    plain(&text).into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Three clocks; at the lowest the promise does not hold.
    pub(crate) fn sample() -> Curve {
        let point = |clock, dynamic_power_w, is_kept| CurvePoint {
            clock: Megahertz(clock),
            dynamic_power_w,
            joules_per_request: 0.3,
            is_kept,
        };
        Curve {
            service: "classify".to_owned(),
            point: "3g.40gb, batch 2".to_owned(),
            points: vec![point(510, 20.0, false), point(1050, 40.0, true), point(1410, 70.0, true)],
            chosen: Megahertz(1050),
            power_error: 0.05,
            source: "fitted".to_owned(),
        }
    }

    #[test]
    fn the_chosen_point_is_marked_once_and_broken_ones_are_hollow() {
        let text = draw("curve", &sample(), 0).unwrap().standalone();
        let tree = roxmltree::Document::parse(&text).unwrap();
        let circles: Vec<_> = tree.descendants().filter(|n| n.has_tag_name("circle")).collect();
        let marks = circles.iter().filter(|n| n.attribute("r") == Some("8")).count();
        let hollow = circles.iter().filter(|n| n.attribute("fill") == Some(&PAPER.hex())).count();
        assert_eq!((marks, hollow, circles.len()), (1, 1, 7));
        assert!(text.contains("does not hold at 510 MHz") && text.contains("40.0 W at 1050 MHz"), "{text}");
    }

    #[test]
    fn a_curve_of_one_point_or_none_is_still_a_picture() {
        let mut curve = sample();
        curve.points.truncate(1);
        let text = draw("curve", &curve, 3).unwrap().standalone();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        curve.points.clear();
        assert!(draw("curve", &curve, 3).unwrap().standalone().contains("No clock is known"));
    }
}
