//! Plans, fronts and what is known beside them → pictures as SVG, and pages as HTML.
//!
//! A page is one file: no script, no network, no font of its own. It follows light and dark, fits a phone, prints,
//! and is read aloud in order. The same plan gives the same bytes. Everything that comes from a program
//! is text here, never markup: `maud` escapes it, and `text::plain` takes out what XML cannot hold.
//!
//! Nothing is computed that a plan does not say: what only models know (curves, alternatives, fronts) the
//! caller computes and gives as [`Findings`]. Watts are said to be measured, predicted or attributed.

mod boards;
mod chart;
mod curve;
mod front;
mod latency;
mod page;
mod palette;
pub mod quantity;
mod text;
mod watts;

pub use chart::DrawError;
pub use curve::{Curve, CurvePoint};
pub use front::{Axis, Front, FrontPoint};
pub use page::{front_page, plan_page};

use ent_plan::plan::Plan;

/// What is known of a plan beside the plan. `None` where nobody has computed it: the page says so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Dynamic power over the clock, of the operating points that were chosen.
    pub curves: Option<Vec<Curve>>,
    /// What else each service could have had.
    pub alternatives: Option<Vec<Alternatives>>,
    /// The objective against something else.
    pub fronts: Option<Vec<Front>>,
}

/// What else a service could have had.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternatives {
    /// The service.
    pub service: String,
    /// The choices, in any order.
    pub choices: Vec<Alternative>,
}

/// Another choice for all instances of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// In words that complete "every instance …".
    pub choice: String,
    /// What the best plan with it is worth.
    pub answer: Answer,
}

/// The best plan with an alternative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// The objective of a plan that is proven best.
    Proven(f64),
    /// The objective of the best plan found.
    Found(f64),
    /// No plan keeps all promises.
    Impossible,
    /// There was no time.
    NotTried,
}

impl Answer {
    /// What the best known plan is worth, in the unit of the plan's objective.
    #[must_use]
    pub fn value(self) -> Option<f64> {
        match self {
            Self::Proven(value) | Self::Found(value) => Some(value),
            Self::Impossible | Self::NotTried => None,
        }
    }

    /// How sure that is, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Proven(_) => "proven",
            Self::Found(_) => "best found in its time",
            Self::Impossible => "no plan keeps all promises",
            Self::NotTried => "not tried: no time left",
        }
    }

    /// Its place among answers: the cheapest first, then what is impossible, then what is not known.
    #[must_use]
    pub fn rank(self) -> f64 {
        match self {
            Self::Proven(value) | Self::Found(value) => value,
            Self::Impossible => f64::MAX,
            Self::NotTried => f64::INFINITY,
        }
    }
}

/// How much dearer another plan is, as a signed share: `+3.2 %`.
#[must_use]
pub fn change(value: f64, other: f64) -> String {
    let share = (other - value) / value.abs() * 100.0;
    // Below the solver's own tolerance two plans are alike.
    if share.abs() < 1e-4 {
        "0 %".to_owned()
    } else {
        format!("{}{} %", if share > 0.0 { "+" } else { "" }, quantity::digits(share, 3))
    }
}

/// The boards of a plan to scale, as a picture of its own.
#[must_use]
pub fn plan_svg(plan: &Plan) -> String {
    boards::sheet(plan)
}

/// A front, as a picture of its own.
///
/// # Errors
/// Only for faults of the drawing library.
pub fn front_svg(front: &Front) -> Result<String, DrawError> {
    Ok(front::draw(front, "front")?.standalone())
}
