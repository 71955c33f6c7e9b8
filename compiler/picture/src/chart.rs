//! A painter on a plotters canvas → an SVG with a title and a description that are read aloud.
//!
//! The one file that knows how plotters is set up: sizes, letters, axes. Coordinates come out as whole
//! pixels, so that the same numbers give the same bytes.

use crate::palette::{FAINT, GRID, INK, dark_rules};
use crate::text::plain;
use maud::{PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct DrawError(pub(crate) String);

/// What a painter may fail with; only ever the drawing library's faults.
pub(crate) type Painted = Result<(), Box<dyn std::error::Error>>;

/// What is painted on.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Width of a chart in its own units: at this width letters can be read on a phone.
pub(crate) const WIDTH: u32 = 420;

/// Size of letters, as plotters wants it; it writes 1/1.24 of it.
pub(crate) const LETTERS: f64 = 17.5;

/// A drawing, and what it says to those who do not see it.
#[derive(Clone, Debug)]
pub(crate) struct Drawing {
    /// Unique in a page.
    pub(crate) id: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) title: String,
    pub(crate) description: String,
    /// Elements of SVG.
    pub(crate) body: String,
}

impl Drawing {
    /// For a page, which has the style.
    pub(crate) fn inline(&self) -> String {
        self.svg("", None)
    }

    /// As a file of its own.
    pub(crate) fn standalone(&self) -> String {
        let style = format!(
            "svg{{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}}\
             text{{font-family:inherit}}{}",
            dark_rules()
        );
        let mut text = self.svg(&style, Some((self.width, self.height)));
        text.push('\n');
        text
    }

    fn svg(&self, style: &str, size: Option<(u32, u32)>) -> String {
        let (title_id, text_id) = (format!("{}-title", self.id), format!("{}-text", self.id));
        let view = format!("0 0 {} {}", self.width, self.height);
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox=(view) width=[size.map(|s| s.0)]
                height=[size.map(|s| s.1)] role="img" aria-labelledby={ (title_id) " " (text_id) } {
                title id=(title_id) { (plain(&self.title)) }
                desc id=(text_id) { (plain(&self.description)) }
                @if !style.is_empty() { style { (PreEscaped(style)) } }
                (PreEscaped(&self.body))
            }
        }
        .into_string()
    }
}

/// Paints with plotters.
pub(crate) fn draw(
    id: &str,
    height: u32,
    title: String,
    description: String,
    paint: impl FnOnce(&Area<'_>) -> Painted,
) -> Result<Drawing, DrawError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, height)).into_drawing_area();
        paint(&root)
            .and_then(|()| root.present().map_err(Into::into))
            .map_err(|error| DrawError(error.to_string()))?;
    }
    // Ours is the element around it, with a title; plotters' own is taken off.
    let body = text
        .split_once('>')
        .map_or("", |(_, rest)| rest)
        .trim_end()
        .trim_end_matches("</svg>")
        .trim_matches('\n')
        // A line break within letters is no part of them.
        .replace("\n</text>", "</text>");
    Ok(Drawing { id: id.to_owned(), width: WIDTH, height, title, description, body })
}

/// Letters in ink, anchored.
pub(crate) fn letters(color: RGBColor, h: HPos, v: VPos) -> TextStyle<'static> {
    ("sans-serif", LETTERS).into_font().color(&color).pos(Pos::new(h, v))
}

/// How an axis is labelled.
pub(crate) struct Labels<'a> {
    /// What the horizontal axis shows.
    pub(crate) x: &'a str,
    /// How its numbers are written.
    pub(crate) write_x: &'a dyn Fn(&f64) -> String,
    /// How the numbers of the vertical axis are written.
    pub(crate) write_y: &'a dyn Fn(&f64) -> String,
    /// About how many numbers the horizontal axis has.
    pub(crate) n_x: usize,
}

/// A chart of numbers over numbers with quiet axes. What the vertical axis shows stands above it, where it
/// needs no turned letters.
pub(crate) fn axes<'a, 'b>(
    area: &'a Area<'b>,
    y_title: &str,
    labels: &Labels<'_>,
    x: std::ops::Range<f64>,
    y: std::ops::Range<f64>,
) -> Result<
    ChartContext<
        'a,
        SVGBackend<'b>,
        Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
    >,
    Box<dyn std::error::Error>,
>
where
    'b: 'a,
{
    area.draw(&Text::new(plain(y_title).into_owned(), (4, 4), letters(FAINT.rgb(), HPos::Left, VPos::Top)))?;
    let mut chart = ChartBuilder::on(area)
        .margin_top(30)
        .margin_right(18)
        .margin_left(4)
        .margin_bottom(2)
        .x_label_area_size(50)
        .y_label_area_size(54)
        .build_cartesian_2d(x, y)?;
    let numbers = ("sans-serif", LETTERS).into_font().color(&INK.rgb());
    chart
        .configure_mesh()
        .x_desc(labels.x)
        .x_labels(labels.n_x)
        .y_labels(5)
        .x_label_formatter(&|v| (labels.write_x)(v))
        .y_label_formatter(&|v| (labels.write_y)(v))
        .axis_style(FAINT.rgb())
        .bold_line_style(GRID.rgb())
        .light_line_style(TRANSPARENT)
        .label_style(numbers)
        .axis_desc_style(("sans-serif", LETTERS).into_font().color(&FAINT.rgb()))
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(chart)
}
