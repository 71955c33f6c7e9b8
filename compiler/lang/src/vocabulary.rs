//! The words of the language, for whoever offers them: what a block may hold, units, functions.
//!
//! The lists are those that the resolver checks by; what each word means is in `specs/language.md`.

use crate::fields::Shape;
use crate::quantity::meaning;

pub use crate::quantity::Measure;
use crate::{board, hardware, objective, service, value};

/// The kinds of blocks at the top of a file.
pub const BLOCKS: &[&str] = crate::declarations::BLOCKS;

/// The functions there are.
pub const FUNCTIONS: &[&str] = &value::FUNCTIONS;

/// The types of a tensor's elements.
pub const ELEMENTS: &[&str] = &value::ELEMENTS;

/// What a kind of block may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Its attributes.
    pub attributes: &'static [&'static str],
    /// Inner blocks that may be given once.
    pub blocks: &'static [&'static str],
    /// Inner blocks that may be repeated.
    pub repeated_blocks: &'static [&'static str],
    /// Whether it holds `minimize` and `limit`.
    pub has_objective: bool,
}

/// What a block may hold, by the kinds of blocks it is in, the outermost first: `["service", "pin"]`.
/// `None` where no such block can stand.
#[must_use]
pub fn contents(path: &[&str]) -> Option<Contents> {
    let shape: &Shape = match path {
        ["model"] => &service::MODEL,
        ["service"] => &service::SERVICE,
        ["service", "pin"] => &service::PIN,
        ["hardware"] => &hardware::SHAPE,
        ["hardware", "node"] => &hardware::NODE,
        ["board"] => &board::SHAPE,
        ["board", "profile"] => &board::PROFILE,
        ["carbon"] => &objective::CARBON,
        ["objective"] => &objective::OBJECTIVE,
        _ => return None,
    };
    Some(Contents {
        attributes: shape.attributes,
        blocks: shape.blocks,
        repeated_blocks: shape.repeated_blocks,
        has_objective: shape.has_objective,
    })
}

/// What a unit measures, in words: `req/s` is `a rate`. `None` for what is no unit.
#[must_use]
pub fn unit_in_words(unit: &str) -> Option<String> {
    meaning(unit).map(|unit| unit.dimension.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_and_inner_block_has_contents() {
        for kind in BLOCKS {
            let outer = contents(&[kind]).unwrap();
            for inner in outer.blocks.iter().chain(outer.repeated_blocks) {
                assert!(contents(&[kind, inner]).is_some(), "{kind} {inner}");
            }
        }
        assert_eq!(contents(&["pin"]), None);
    }

    #[test]
    fn units_are_told_in_words() {
        assert_eq!(unit_in_words("req/s").as_deref(), Some("a rate"));
        assert_eq!(unit_in_words("USD per hour").as_deref(), Some("a price per time"));
        assert_eq!(unit_in_words("parsec"), None);
    }
}
