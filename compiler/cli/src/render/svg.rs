//! What all pictures share: colours, and text that follows its surroundings.

use crate::exit::Stop;
use plotters::prelude::RGBColor;

/// Colours that stay apart for colour-blind readers, on light and on dark (Okabe and Ito, 2008).
pub(crate) const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(148, 103, 189),
    RGBColor(127, 127, 127),
];

/// What stands for the colour of the surroundings until the picture is text.
pub(crate) const INK: RGBColor = RGBColor(1, 2, 3);
const INK_TEXT: &str = "#010203";

/// A picture as it is written: letters, axes and grid follow the page, light or dark, and a reader that sees
/// nothing is told what it is of.
///
/// # Errors
/// When it could not be drawn, which is a fault of the drawing library.
pub(crate) fn finished(
    drawn: Result<(), Box<dyn std::error::Error>>,
    text: &str,
    label: &str,
) -> Result<String, Stop> {
    drawn.map_err(|error| Stop::refused("cannot-write", format!("the picture cannot be drawn: {error}")))?;
    let style = "<style>:root{color-scheme:light dark}svg{color:#222}\
                 @media(prefers-color-scheme:dark){svg{color:#ddd}}</style>";
    let text = text.replace(INK_TEXT, "currentColor");
    Ok(match text.find('>') {
        Some(end) => {
            let (head, body) = text.split_at(end + 1);
            format!("{} role=\"img\" aria-label=\"{label}\">{style}{body}\n", head.trim_end_matches('>'))
        }
        None => text,
    })
}
