//! A plan → predicted latency of each service as a share of its promise, with error bands.
//!
//! Promises differ by a factor of a thousand; their shares have one scale.

use crate::boards::{pair, percentile_word};
use crate::chart::{Area, DrawError, Drawing, Painted, WIDTH, draw as paint, letters};
use crate::palette::{BAD, FAINT, GRID, INK, service};
use crate::text::cut;
use ent_plan::plan::{Plan, Service};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Services that are drawn, those nearest to their promise first; the table beside has all.
pub(crate) const MOST_DRAWN: usize = 40;

/// Height of a service's row, and of what stands above and below the rows.
const ROW: i32 = 46;
const ABOVE: i32 = 26;
const BELOW: i32 = 8;
/// Left and right of the bars.
const LEFT: i32 = 2;
const RIGHT: i32 = 16;

/// A service's predicted latency beside its promise.
pub(crate) struct Kept<'a> {
    pub(crate) service: &'a Service,
    /// Index in the program's order.
    pub(crate) index: usize,
    /// `predicted / promised`; `None` where it is not served.
    pub(crate) share: Option<f64>,
    /// Relative error band of its times, the widest of its instances.
    pub(crate) band: f64,
}

/// All services, in the program's order.
pub(crate) fn all(plan: &Plan) -> Vec<Kept<'_>> {
    let mut bands = std::collections::BTreeMap::<&str, f64>::new();
    for instance in plan.gpus.iter().flat_map(|gpu| &gpu.instances) {
        let band = bands.entry(&instance.service).or_default();
        *band = band.max(instance.time_error);
    }
    plan.services
        .iter()
        .enumerate()
        .map(|(index, service)| Kept {
            service,
            index,
            share: service.predicted_latency_ms.map(|ms| ms / service.promised_latency_ms),
            band: bands.get(service.name.as_str()).copied().unwrap_or(0.0),
        })
        .collect()
}

/// `p99 92.46 ≤ 100 ms`, or that it is not served.
pub(crate) fn words(service: &Service) -> String {
    let promised = service.promised_latency_ms;
    match service.predicted_latency_ms {
        Some(ms) => {
            let sign = if ms <= promised { '≤' } else { '>' };
            format!("{} {}", percentile_word(service.percentile), pair(ms, sign, promised))
        }
        None => "not served".to_owned(),
    }
}

/// Draws the services nearest to their promises. `None` without any that is served.
pub(crate) fn draw(plan: &Plan) -> Option<Result<Drawing, DrawError>> {
    let mut services: Vec<Kept<'_>> = all(plan).into_iter().filter(|kept| kept.share.is_some()).collect();
    if services.is_empty() {
        return None;
    }
    if services.len() > MOST_DRAWN {
        services.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)));
        services.truncate(MOST_DRAWN);
    }
    let longest = services
        .iter()
        .filter_map(|kept| kept.share.map(|share| share * (1.0 + kept.band)))
        .fold(1.1, f64::max)
        // What breaks its promise by far is cut off at the edge, and its words say by how much.
        .min(2.0);
    let told: Vec<String> =
        services.iter().map(|kept| format!("{} {}", kept.service.name, words(kept.service))).collect();
    let rows = i32::try_from(services.len()).unwrap_or(1) * ROW;
    let height = u32::try_from(ABOVE + rows + BELOW).unwrap_or(100);
    let title = "Predicted latency as a share of what is promised".to_owned();
    Some(paint("latency", height, title, format!("{}.", told.join("; ")), |area| {
        scale(area, longest, ABOVE + rows)?;
        for (kept, y) in services.iter().zip((ABOVE..).step_by(46)) {
            row(area, kept, y, longest)?;
        }
        Ok(())
    }))
}

#[expect(clippy::cast_possible_truncation, reason = "a share of the width of the picture")]
fn place(share: f64, longest: f64) -> i32 {
    let room = f64::from(WIDTH) - f64::from(LEFT + RIGHT);
    LEFT + (share.clamp(0.0, longest) / longest * room).round() as i32
}

/// The promise as a line through all rows, and half of it.
fn scale(area: &Area<'_>, longest: f64, bottom: i32) -> Painted {
    for (share, words, is_promise) in [(0.5, "50 %", false), (1.0, "promise", true)] {
        let x = place(share, longest);
        let (line, letter) = if is_promise { (INK.rgb(), INK.rgb()) } else { (GRID.rgb(), FAINT.rgb()) };
        area.draw(&PathElement::new(
            vec![(x, ABOVE - 4), (x, bottom)],
            line.stroke_width(if is_promise { 2 } else { 1 }),
        ))?;
        area.draw(&Text::new(words, (x, ABOVE - 8), letters(letter, HPos::Center, VPos::Bottom)))?;
    }
    Ok(())
}

fn row(area: &Area<'_>, kept: &Kept<'_>, y: i32, longest: f64) -> Painted {
    let share = kept.share.unwrap_or(0.0);
    let is_broken = share > 1.0;
    let words = words(kept.service);
    let words_width = words.chars().count() as f64 * 7.9;
    let name = cut(&kept.service.name, f64::from(place(1.0, longest)) - words_width - 24.0, 14.1);
    let style = |color| letters(color, HPos::Left, VPos::Center);
    area.draw(&Text::new(name, (LEFT, y + 11), style(INK.rgb())))?;
    // Left of the line of the promise, which stays free.
    let right = place(1.0, longest) - 8;
    let color = if is_broken { BAD.rgb() } else { FAINT.rgb() };
    area.draw(&Text::new(words, (right, y + 11), letters(color, HPos::Right, VPos::Center)))?;
    let (top, bottom) = (y + 22, y + 36);
    let shade = if is_broken { BAD } else { service(kept.index) };
    let end = place(share, longest);
    area.draw(&Rectangle::new([(LEFT, top), (end, bottom)], shade.rgb().filled()))?;
    if kept.band > 0.0 {
        let (low, high) =
            (place(share * (1.0 - kept.band), longest), place(share * (1.0 + kept.band), longest));
        let (middle, ink) = (y + 29, INK.rgb().stroke_width(2));
        area.draw(&PathElement::new(vec![(low, middle), (high, middle)], ink))?;
        for x in [low, high] {
            area.draw(&PathElement::new(vec![(x, middle - 5), (x, middle + 5)], ink))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ent_plan::plan::sample;

    #[test]
    fn the_length_of_a_bar_is_the_share_of_the_promise() {
        let mut plan = sample::plan();
        plan.services[0].predicted_latency_ms = Some(20.0);
        plan.services[1].predicted_latency_ms = Some(10.0);
        let text = draw(&plan).unwrap().unwrap().standalone();
        let tree = roxmltree::Document::parse(&text).unwrap();
        let widths: Vec<f64> = tree
            .descendants()
            .filter(|n| n.has_tag_name("rect"))
            .map(|n| n.attribute("width").unwrap().parse().unwrap())
            .collect();
        assert_eq!(widths.len(), 2);
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.02, "{widths:?}");
        assert!(text.contains("p99 20 ≤ 40 ms"), "{text}");
    }

    #[test]
    fn a_broken_promise_and_a_service_that_is_left_out_are_said() {
        let mut plan = sample::plan();
        plan.services[0].predicted_latency_ms = Some(4000.0);
        plan.services[1].predicted_latency_ms = None;
        assert_eq!(words(&plan.services[0]), "p99 4000 > 40 ms");
        assert_eq!(words(&plan.services[1]), "not served");
        assert!(draw(&plan).unwrap().unwrap().body.contains(&BAD.hex()));
    }
}
