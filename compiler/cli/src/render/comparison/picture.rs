//! Planners side by side → an SVG picture of watts over load.
//!
//! One line per planner, told apart by colour and by mark. A hollow mark is a plan that drops a service or
//! cannot be set up: its watts are not those of the whole work. Text takes the colour of its surroundings.

use crate::commands::{Comparison, Judged};
use crate::exit::Stop;
use crate::render::svg::{COLORS, INK, finished};
use ent_plan::plan::Metric;
use plotters::prelude::*;
use plotters::style::{FontTransform, text_anchor};

const SIZE: (u32, u32) = (860, 480);

/// The watts that a picture of this metric shows, and what they are called.
fn watts(metric: Metric, judged: &Judged) -> Option<f64> {
    if metric == Metric::Power { judged.metrics.power_w } else { judged.metrics.mean_power_w }
}

/// What the vertical axis shows.
pub(crate) fn axis(metric: Metric) -> &'static str {
    if metric == Metric::Power { "power, everything busy (W)" } else { "mean power at the offered load (W)" }
}

/// Draws the picture.
///
/// # Errors
/// Never but for faults of the drawing library.
pub(crate) fn svg(comparison: &Comparison) -> Result<String, Stop> {
    let mut text = String::new();
    let drawn = draw(comparison, &mut text);
    finished(drawn, &text, "watts over load by planner")
}

fn draw(comparison: &Comparison, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let points = |planner: &str| -> Vec<(f64, f64, bool)> {
        let at = |load: &crate::commands::AtLoad| {
            let judged = load.plans.iter().find(|p| p.planner == planner).filter(|p| p.has_plan())?;
            Some((load.load.unwrap_or(1.0) * 100.0, watts(comparison.metric, judged)?, judged.carries_all))
        };
        let mut all: Vec<(f64, f64, bool)> = comparison.loads.iter().filter_map(at).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    };
    let planners: Vec<&str> =
        comparison.loads.first().into_iter().flat_map(|at| &at.plans).map(|p| p.planner.as_str()).collect();
    let everything: Vec<(f64, f64, bool)> = planners.iter().flat_map(|p| points(p)).collect();
    let highest = everything.iter().map(|p| p.1).fold(1.0, f64::max);
    let (least, most) =
        everything.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), p| (a.min(p.0), b.max(p.0)));
    let (least, most) = if least.is_finite() { (least, most) } else { (100.0, 100.0) };
    let margin = if most > least { 0.04 * (most - least) } else { 10.0 };

    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin(14)
        .margin_right(150)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(least - margin..most + margin, 0.0..highest * 1.08)?;
    let label = ("sans-serif", 16).into_font().color(&INK);
    chart
        .configure_mesh()
        .x_desc("load (% of the nominal rates)")
        .y_desc(axis(comparison.metric))
        .x_labels(8)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .axis_style(INK.mix(0.6))
        .bold_line_style(INK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style(label.clone())
        .axis_desc_style(label)
        .draw()?;
    for (n, planner) in planners.iter().enumerate() {
        let color = COLORS[n % COLORS.len()];
        let own = points(planner);
        chart.draw_series(LineSeries::new(own.iter().map(|p| (p.0, p.1)), color.stroke_width(2)))?;
        for (x, y, is_whole) in &own {
            let style = if *is_whole { color.filled() } else { color.stroke_width(2) };
            match n % 3 {
                0 => chart.draw_series(std::iter::once(Circle::new((*x, *y), 5, style)))?,
                1 => chart.draw_series(std::iter::once(TriangleMarker::new((*x, *y), 6, style)))?,
                _ => chart.draw_series(std::iter::once(
                    EmptyElement::at((*x, *y)) + Rectangle::new([(-4, -4), (4, 4)], style),
                ))?,
            };
        }
    }
    legend(&root, &planners)?;
    root.present()?;
    Ok(())
}

/// Names of the planners with their lines and marks, right of the picture.
fn legend(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    planners: &[&str],
) -> Result<(), Box<dyn std::error::Error>> {
    let x = i32::try_from(SIZE.0).unwrap_or(860) - 138;
    let style = ("sans-serif", 16)
        .into_font()
        .color(&INK)
        .pos(text_anchor::Pos::new(text_anchor::HPos::Left, text_anchor::VPos::Center))
        .transform(FontTransform::None);
    for ((n, planner), y) in planners.iter().enumerate().zip((28..).step_by(24)) {
        let color = COLORS[n % COLORS.len()];
        root.draw(&PathElement::new(vec![(x, y), (x + 24, y)], color.stroke_width(2)))?;
        let at = (x + 12, y);
        match n % 3 {
            0 => root.draw(&Circle::new(at, 5, color.filled()))?,
            1 => root.draw(&TriangleMarker::new(at, 6, color.filled()))?,
            _ => root.draw(&Rectangle::new([(at.0 - 4, y - 4), (at.0 + 4, y + 4)], color.filled()))?,
        }
        root.draw(&Text::new((*planner).to_owned(), (x + 32, y), style.clone()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn the_picture_is_svg_that_follows_light_and_dark() {
        let text = svg(&sample()).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"), "{text}");
        assert!(text.contains("currentColor") && !text.contains("#010203"));
        for word in ["optimal", "parvagpu", "prefers-color-scheme"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn one_load_or_no_plan_at_all_is_still_a_picture() {
        let mut one = sample();
        one.loads.truncate(1);
        one.loads[0].load = None;
        assert!(svg(&one).unwrap().contains("</svg>"));
        one.loads.clear();
        assert!(svg(&one).unwrap().contains("</svg>"));
    }
}
