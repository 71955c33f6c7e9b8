//! Colours, each for light and for dark: one place, so that contrast is looked after once.
//!
//! A drawing says the light colour; a rule of the style sheet that looks at that very attribute puts the
//! dark one in its place. A reader that knows no style sheets still gets the light one. Every pair stands off
//! its background by 3:1 at least, letters by 4.5:1 (WCAG 2.2, 1.4.3 and 1.4.11); a test measures it.

use plotters::style::RGBColor;
use std::fmt::Write;

/// A colour on light and on dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shade {
    pub(crate) light: (u8, u8, u8),
    pub(crate) dark: (u8, u8, u8),
}

const fn shade(light: u32, dark: u32) -> Shade {
    const fn parts(hex: u32) -> (u8, u8, u8) {
        let bytes = hex.to_be_bytes();
        (bytes[1], bytes[2], bytes[3])
    }
    Shade { light: parts(light), dark: parts(dark) }
}

/// The background.
pub(crate) const PAPER: Shade = shade(0xFF_FF_FF, 0x0D_11_17);
/// Letters.
pub(crate) const INK: Shade = shade(0x1F_23_28, 0xE6_ED_F3);
/// Letters that may be overlooked, axes, base power.
pub(crate) const FAINT: Shade = shade(0x57_60_6A, 0x9D_A7_B1);
/// Lines behind other things. Carries no meaning.
pub(crate) const GRID: Shade = shade(0xD8_DE_E4, 0x30_36_3D);
/// What is idle or free.
pub(crate) const IDLE: Shade = shade(0x6B_74_7D, 0x8A_94_9E);
/// What is broken.
pub(crate) const BAD: Shade = shade(0xCF_22_2E, 0xFF_7B_72);
/// What is kept.
pub(crate) const GOOD: Shade = shade(0x1A_7F_37, 0x3F_B9_50);

/// Services, in the order of the program; then again from the start. Names always stand beside them.
pub(crate) const SERVICES: [Shade; 12] = [
    shade(0x00_72_B2, 0x58_A6_FF),
    shade(0xC2_41_0C, 0xFF_9D_5C),
    shade(0x00_7A_5E, 0x3F_D6_A5),
    shade(0xA8_32_7E, 0xF0_8C_C8),
    shade(0x8A_6D_00, 0xE3_B3_41),
    shade(0x0E_74_90, 0x56_D4_DD),
    shade(0x6D_4B_C3, 0xB3_92_F0),
    shade(0x6B_5B_4B, 0xC9_B8_A6),
    shade(0x4D_7C_0F, 0xA3_D6_5C),
    shade(0x1E_3A_8A, 0x8F_A8_FF),
    shade(0x7F_1D_4F, 0xFF_B0_D0),
    shade(0x7C_2D_12, 0xE8_A8_7C),
];

/// The colour of the service with this index.
pub(crate) fn service(index: usize) -> Shade {
    SERVICES[index % SERVICES.len()]
}

fn all() -> impl Iterator<Item = Shade> {
    [PAPER, INK, FAINT, GRID, IDLE, BAD, GOOD].into_iter().chain(SERVICES)
}

impl Shade {
    /// As attributes have it, and as plotters writes it: `#1F2328`.
    pub(crate) fn hex(self) -> String {
        hex(self.light)
    }

    /// For plotters.
    pub(crate) fn rgb(self) -> RGBColor {
        RGBColor(self.light.0, self.light.1, self.light.2)
    }
}

fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

/// The rules that put dark colours in the place of light ones; paper is never printed dark.
pub(crate) fn dark_rules() -> String {
    let mut rules = String::from("@media screen and (prefers-color-scheme:dark){");
    for shade in all() {
        let (light, dark) = (hex(shade.light), hex(shade.dark));
        let _infallible =
            write!(rules, "[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}");
    }
    rules.push('}');
    rules
}

/// The same colours as variables of a page: `--ink`, `--c0`.
pub(crate) fn variables() -> String {
    let named = [
        ("paper", PAPER),
        ("ink", INK),
        ("faint", FAINT),
        ("grid", GRID),
        ("idle", IDLE),
        ("bad", BAD),
        ("good", GOOD),
    ];
    let write_all = |pick: fn(Shade) -> (u8, u8, u8)| {
        let mut text = String::new();
        for (name, shade) in named {
            let _infallible = write!(text, "--{name}:{};", hex(pick(shade)));
        }
        for (n, shade) in SERVICES.into_iter().enumerate() {
            let _infallible = write!(text, "--c{n}:{};", hex(pick(shade)));
        }
        text
    };
    format!(
        ":root{{{}}}@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}",
        write_all(|s| s.light),
        write_all(|s| s.dark)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2: contrast ratio from relative luminances.
    fn contrast(a: (u8, u8, u8), b: (u8, u8, u8)) -> f64 {
        let luminance = |(r, g, b): (u8, u8, u8)| {
            let part = |c: u8| {
                let c = f64::from(c) / 255.0;
                if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// A colour laid over another one, as far as `share`.
    fn over(top: (u8, u8, u8), below: (u8, u8, u8), share: f64) -> (u8, u8, u8) {
        let mix = |a: u8, b: u8| (f64::from(a) * share + f64::from(b) * (1.0 - share)).round() as u8;
        (mix(top.0, below.0), mix(top.1, below.1), mix(top.2, below.2))
    }

    #[test]
    fn everything_stands_off_its_background_on_light_and_on_dark() {
        let letters = [INK, FAINT, BAD, GOOD];
        let shapes = SERVICES.into_iter().chain([IDLE]);
        for (shade, least) in letters.into_iter().map(|s| (s, 4.5)).chain(shapes.map(|s| (s, 3.0))) {
            for (own, paper) in [(shade.light, PAPER.light), (shade.dark, PAPER.dark)] {
                let ratio = contrast(own, paper);
                assert!(ratio >= least, "{} {ratio:.2}", hex(own));
            }
        }
        // Letters on the tint of a slice.
        for service in SERVICES {
            for (tint, paper, ink) in
                [(service.light, PAPER.light, INK.light), (service.dark, PAPER.dark, INK.dark)]
            {
                let ratio = contrast(ink, over(tint, paper, crate::boards::TINT));
                assert!(ratio >= 4.5, "on {} {ratio:.2}", hex(tint));
            }
        }
    }

    #[test]
    fn no_light_colour_stands_for_two_things() {
        let mut lights: Vec<_> = all().map(|s| s.light).collect();
        let n = lights.len();
        lights.sort_unstable();
        lights.dedup();
        assert_eq!(lights.len(), n);
    }
}
