//! What a plan measured → an SVG picture: each service's latency beside its promise.
//!
//! One row a service, and along it the latency at the promised percentile over the promise: predicted,
//! simulated and measured, told apart by colour and by mark. Right of the line at 100 % the promise is broken.

use crate::commands::{BenchedService, Benchmark};
use crate::exit::Stop;
use crate::render::quantity::millis;
use crate::render::svg::{COLORS, INK, finished};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 860;
const ROW: u32 = 34;
/// Pixels above the first row and below the last, and left of the rows for names.
const HEAD: u32 = 44;
const FOOT: u32 = 60;
const NAMES: u32 = 210;

const SERIES: [&str; 3] = ["predicted", "simulated", "measured"];

/// Latency over the promise, in the three ways.
fn ratios(service: &BenchedService) -> [Option<f64>; 3] {
    let latency = service.latency_ms;
    [latency.predicted, latency.simulated, latency.measured]
        .map(|ms| ms.map(|ms| ms / service.promised_latency_ms).filter(|ratio| ratio.is_finite()))
}

/// Draws the picture.
///
/// # Errors
/// Never but for faults of the drawing library.
pub(crate) fn svg(benchmark: &Benchmark) -> Result<String, Stop> {
    let mut text = String::new();
    let drawn = draw(benchmark, &mut text);
    finished(drawn, &text, "latency of each service over its promise: predicted, simulated, measured")
}

fn draw(benchmark: &Benchmark, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let services = &benchmark.services;
    let rows = u32::try_from(services.len().max(1)).unwrap_or(1);
    let highest = services.iter().flat_map(ratios).flatten().fold(1.0, f64::max);
    let root = SVGBackend::with_string(text, (WIDTH, HEAD + rows * ROW + FOOT)).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(HEAD)
        .margin_right(24)
        .margin_left(NAMES)
        .x_label_area_size(FOOT)
        .build_cartesian_2d(0.0..highest * 1.05, f64::from(rows)..0.0)?;
    let font = ("sans-serif", 15).into_font().color(&INK);
    chart
        .configure_mesh()
        .disable_y_mesh()
        .x_desc("latency at the promised percentile (% of the promise)")
        .x_labels(8)
        .x_label_formatter(&|x| format!("{:.0}", x * 100.0))
        .axis_style(INK.mix(0.6))
        .bold_line_style(INK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .label_style(font.clone())
        .axis_desc_style(font.clone())
        .draw()?;
    chart.draw_series(LineSeries::new([(1.0, 0.0), (1.0, f64::from(rows))], INK.stroke_width(2)))?;
    let name = font.clone().pos(Pos::new(HPos::Right, VPos::Center));
    for (n, service) in services.iter().enumerate() {
        let y = n as f64 + 0.5;
        for (series, ratio) in ratios(service).into_iter().enumerate() {
            let Some(x) = ratio else { continue };
            let style = COLORS[series * 2].filled();
            match series {
                0 => chart.draw_series([Circle::new((x, y), 6, COLORS[0].stroke_width(2))])?,
                1 => chart.draw_series([TriangleMarker::new((x, y), 7, style)])?,
                _ => chart
                    .draw_series([EmptyElement::at((x, y)) + Rectangle::new([(-5, -5), (5, 5)], style)])?,
            };
        }
        let promise = millis(service.promised_latency_ms);
        let at = (i32::try_from(NAMES).unwrap_or(0) - 10, i32::try_from(HEAD + ROW / 2).unwrap_or(0));
        let at = (at.0, at.1 + i32::try_from(n).unwrap_or(0) * i32::try_from(ROW).unwrap_or(0));
        root.draw(&Text::new(format!("{}, {promise}", service.name), at, name.clone()))?;
    }
    let left = font.pos(Pos::new(HPos::Left, VPos::Center));
    for (series, (word, x)) in SERIES.into_iter().zip([220, 350, 480]).enumerate() {
        let at = (x, 22);
        match series {
            0 => root.draw(&Circle::new(at, 6, COLORS[0].stroke_width(2)))?,
            1 => root.draw(&TriangleMarker::new(at, 7, COLORS[2].filled()))?,
            _ => root.draw(&Rectangle::new([(x - 5, 17), (x + 5, 27)], COLORS[4].filled()))?,
        }
        root.draw(&Text::new(word, (x + 14, 22), left.clone()))?;
    }
    root.present()?;
    Ok(())
}
