//! A kind of board → its drawing, to scale: height by memory slices (or share), squares for compute slices.
//!
//! One column for each board: it is as legible on a phone as on a wall.

use super::{Content, Kind, Stretch, batch, busy, latency, share, watts};
use crate::chart::Drawing;
use crate::palette::{FAINT, GRID, IDLE, INK, PAPER, service};
use crate::text::cut;
use ent_plan::plan::{Instance, Plan, Sharing, Unused};
use maud::{Markup, html};

/// Width of a board.
pub(super) const WIDTH: u32 = 320;
/// Height of a whole board: divided by 8, 7, 4 or 100 it leaves room for letters.
const HEIGHT: u32 = 352;
/// Between two stretches.
const SEAM: f64 = 3.0;
/// How strongly a slice has its service's colour.
pub(crate) const TINT: f64 = 0.16;
/// Size of letters.
const LETTERS: f64 = 12.5;
/// From one line of letters to the next.
const LINE: f64 = 17.5;
/// Left of letters.
const INDENT: f64 = 14.0;
/// Side of the square of a compute slice, and from one to the next.
const SQUARE: f64 = 8.0;
const STEP: f64 = 11.0;

/// A number of a drawing: hundredths of a unit are enough, and always written alike.
fn at(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Draws a kind of board.
pub(crate) fn draw(id: &str, kind: &Kind<'_>, plan: &Plan) -> Drawing {
    let stretches = kind.stretches();
    let units = f64::from(kind.units());
    // Shares of more than the whole would be drawn over the edge; the check refuses such plans.
    let end = stretches.iter().map(|s| s.start.saturating_add(s.size)).max().unwrap_or(1);
    let unit = f64::from(HEIGHT) / units.max(f64::from(end));
    let body = html! {
        @for stretch in &stretches {
            (self::stretch(stretch, unit, kind, plan))
        }
    };
    Drawing {
        id: id.to_owned(),
        width: WIDTH,
        height: HEIGHT,
        title: format!("{}: {}", kind.name(), kind.facts()),
        description: description(kind, plan, &stretches),
        body: body.into_string(),
    }
}

fn stretch(stretch: &Stretch, unit: f64, kind: &Kind<'_>, plan: &Plan) -> Markup {
    let y = f64::from(stretch.start) * unit;
    let height = f64::from(stretch.size) * unit;
    match stretch.content {
        Content::Free => free(y, height, stretch.size, kind),
        Content::Instance(position) => instance(y, height, stretch.size, &kind.at(position), kind, plan),
    }
}

/// What a program reads from a picture: where each stretch is, on which axis.
fn axis(kind: &Kind<'_>) -> &'static str {
    match kind.first().map(|gpu| gpu.sharing) {
        Some(Sharing::Mig) => "memory slices",
        Some(Sharing::Mps) => "per cent of the threads",
        Some(Sharing::Whole) | None => "whole board",
    }
}

fn instance(y: f64, height: f64, size: u32, instances: &[&Instance], kind: &Kind<'_>, plan: &Plan) -> Markup {
    let Some(first) = instances.first() else { return html! {} };
    let index = plan.services.iter().position(|s| s.name == first.service).unwrap_or(0);
    let color = service(index).hex();
    let n_compute = kind.compute_slices(first).unwrap_or(0);
    let squares_width = STEP * f64::from(n_compute);
    let room = f64::from(WIDTH) - INDENT - 8.0;
    let inner = (height - SEAM).max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a board is 352 high")]
    let n_lines = ((inner - 4.0) / LINE).max(0.0) as usize;
    let lines = lines(instances, plan, n_lines);
    let top = y + SEAM / 2.0;
    // Letters stand in the middle of short stretches, at the top of tall ones.
    let spare = (inner - LINE * lines.len() as f64).max(0.0);
    let first_line = top + (spare / 2.0).min(8.0) + LETTERS + 1.0;
    html! {
        g data-service=(crate::text::plain(&first.service)) data-axis=(axis(kind)) data-units=(size)
            data-compute=(n_compute) {
            rect x="0" y=(at(top)) width=(WIDTH) height=(at(inner)) rx="4" fill=(PAPER.hex()) {}
            rect class="slice" x="0" y=(at(top)) width=(WIDTH) height=(at(inner)) rx="4" fill=(color)
                fill-opacity=(TINT) {}
            rect x="0" y=(at(top)) width="5" height=(at(inner)) rx="2" fill=(color) {}
            rect class="busy" x="5" y=(at(top + inner - 3.0)) width=(at((f64::from(WIDTH) - 5.0) * utilisation(instances)))
                height="3" fill=(color) fill-opacity="0.6" {}
            @for n in 0..n_compute {
                rect class="compute" x=(at(f64::from(WIDTH) - 8.0 - squares_width + STEP * f64::from(n)))
                    y=(at(first_line - SQUARE)) width=(at(SQUARE)) height=(at(SQUARE)) rx="1.5" fill=(color) {}
            }
            @for (n, (line, is_strong)) in lines.iter().enumerate() {
                text x=(at(INDENT)) y=(at(first_line + LINE * n as f64)) font-size=(LETTERS)
                    font-weight=[is_strong.then_some("600")] fill=(INK.hex()) {
                    (cut(line, if n == 0 { room - squares_width } else { room }, LETTERS))
                }
            }
        }
    }
}

/// How busy what is at this position is, the mean of several boards.
fn utilisation(instances: &[&Instance]) -> f64 {
    let sum: f64 = instances.iter().map(|i| i.utilisation.clamp(0.0, 1.0)).sum();
    sum / instances.len().max(1) as f64
}

/// As many lines as there is room for, the most important first; whether a line is strong.
fn lines(instances: &[&Instance], plan: &Plan, room: usize) -> Vec<(String, bool)> {
    let Some(first) = instances.first() else { return Vec::new() };
    let name = &first.service;
    let share = share(first);
    let batch = batch(first);
    let busy = busy(instances);
    let latency = latency(plan, instances);
    let mean = watts(instances, |i| i.mean_dynamic_power_w);
    let peak = watts(instances, |i| i.dynamic_power_w);
    match room {
        0 => Vec::new(),
        1 => vec![(format!("{name} · {share} · {batch}"), true)],
        2 => vec![(format!("{name} · {share} · {batch}"), true), (format!("{latency} · mean {mean}"), false)],
        3 => vec![
            (format!("{name} · {share}"), true),
            (format!("{batch} · {busy} · {latency}"), false),
            (format!("mean {mean} · busy {peak}"), false),
        ],
        _ => vec![
            (format!("{name} · {share}"), true),
            (format!("{batch} · {busy}"), false),
            (latency, false),
            (format!("mean {mean} · busy {peak}"), false),
        ],
    }
}

fn free(y: f64, height: f64, size: u32, kind: &Kind<'_>) -> Markup {
    let inner = (height - SEAM).max(1.0);
    let top = y + SEAM / 2.0;
    // A dashed line has half its width on either side: what is drawn stays within the stretch.
    let words = free_words(kind, size);
    html! {
        g data-free=(size) data-axis=(axis(kind)) {
            rect class="free" x="0.5" y=(at(top + 0.5)) width=(WIDTH - 1) height=(at((inner - 1.0).max(0.5))) rx="4"
                fill="none" stroke=(IDLE.hex()) stroke-dasharray="4 4" {}
            @if inner >= LINE {
                text x=(at(INDENT)) y=(at(top + inner / 2.0 + LETTERS * 0.35)) font-size=(LETTERS) fill=(FAINT.hex()) {
                    (cut(&words, f64::from(WIDTH) - INDENT, LETTERS))
                }
            }
        }
    }
}

fn free_words(kind: &Kind<'_>, size: u32) -> String {
    match kind.first().map(|gpu| gpu.sharing) {
        Some(Sharing::Mps) => format!("free · {size} % of the threads"),
        Some(Sharing::Mig) => {
            let word = if size == 1 { "memory slice" } else { "memory slices" };
            match kind.compute() {
                Some((all, used)) if used >= all => format!("{size} {word}, no compute slice left for it"),
                _ => format!("free · {size} {word}"),
            }
        }
        Some(Sharing::Whole) | None => "free".to_owned(),
    }
}

fn description(kind: &Kind<'_>, plan: &Plan, stretches: &[Stretch]) -> String {
    let told: Vec<String> = stretches
        .iter()
        .map(|stretch| match stretch.content {
            Content::Free => free_words(kind, stretch.size),
            Content::Instance(position) => {
                let instances = kind.at(position);
                let Some(first) = instances.first() else { return String::new() };
                format!(
                    "{} for {}, {}, {}, {}, mean {} predicted",
                    share(first),
                    first.service,
                    batch(first),
                    busy(&instances),
                    latency(plan, &instances),
                    watts(&instances, |i| i.mean_dynamic_power_w)
                )
            }
        })
        .collect();
    format!("Heights are to scale, in {}. {}.", axis(kind), told.join("; "))
}

/// Draws boards that carry nothing.
pub(crate) fn draw_unused(id: &str, unused: &Unused) -> Drawing {
    let state = if unused.is_off { "off" } else { "idle" };
    let height = 44;
    let body = html! {
        rect x="0.5" y="0.5" width=(WIDTH - 1) height=(height - 1) rx="4" fill="none" stroke=(IDLE.hex())
            stroke-dasharray="4 4" {}
        rect x="8" y="17" width="10" height="10" rx="2" fill=(if unused.is_off { GRID } else { IDLE }.hex()) {}
        text x="26" y="27" font-size=(LETTERS) fill=(FAINT.hex()) {
            (cut(&format!("nothing runs here · {state}"), f64::from(WIDTH) - 34.0, LETTERS))
        }
    };
    let title = format!("{} boards {} in {}: {state}", unused.count, unused.board, unused.node);
    Drawing {
        id: id.to_owned(),
        width: WIDTH,
        height,
        title,
        description: "They carry nothing.".to_owned(),
        body: body.into_string(),
    }
}
