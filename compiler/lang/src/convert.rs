//! Value → what an attribute needs: a quantity of a kind, a whole number, a word of a choice.
//!
//! Every check of a number's range is here or in the caller's arguments. `None` means it was reported.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other value is of the wrong type")]

use crate::ast::Expr;
use crate::context::Context;
use crate::fixes::change;
use crate::quantity::{Dimension, Measure, Quantity, meaning};
use crate::suggest::{choices, similar};
use crate::value::Value;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Fix, Located, Span};
use ent_plan::units::{Bytes, Megahertz, PerSecond, Seconds, Watts};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// No rate, time, power or memory beyond these is believed.
const MAX_RATE: f64 = 1e9;
const MAX_SECONDS: f64 = 3.2e9;
const MAX_WATTS: f64 = 1e12;
const MAX_BYTES: f64 = 1e15;
const MAX_MEGAHERTZ: f64 = 100_000.0;

impl Context<'_> {
    /// Reports a value of the wrong type.
    pub(crate) fn mismatch(&mut self, found: &Located<Value>, expected: &str, help: &str) {
        self.mismatch_with(found, expected, help, None);
    }

    /// Reports a value of the wrong type that an editor can mend.
    pub(crate) fn mismatch_with(
        &mut self,
        found: &Located<Value>,
        expected: &str,
        help: &str,
        fix: Option<Fix>,
    ) {
        match &found.value {
            Value::Poison => {}
            Value::Word(word) if self.is_all_poisoned || self.poisoned.contains(&**word) => {}
            other => {
                let what = other.words();
                let problem = Diagnostic::error(
                    Code::TypeMismatch,
                    found.span,
                    format!("expected {expected}, found {what}"),
                );
                let problem = problem.label(what).help(help);
                self.report(fix.into_iter().fold(problem, Diagnostic::fix));
            }
        }
    }

    /// A quantity of a kind.
    pub(crate) fn quantity(&mut self, found: &Located<Value>, kind: Measure) -> Option<Quantity> {
        match &found.value {
            Value::Poison => None,
            Value::Quantity(quantity) if quantity.dimension == kind.dimension() => Some(*quantity),
            Value::Quantity(quantity) => {
                self.unit_mismatch(found.span, *quantity, kind);
                None
            }
            Value::Word(word) => {
                let word = word.clone();
                self.unknown_value(found.span, &word);
                None
            }
            _ => {
                self.mismatch(found, kind.words(), &format!("write it with its unit: {}", kind.example()));
                None
            }
        }
    }

    fn unit_mismatch(&mut self, span: Span, found: Quantity, kind: Measure) {
        let what = found.dimension.words();
        let written = self.sources.snippet(span);
        let is_short = !written.is_empty() && written.len() <= 40 && !written.contains('\n');
        let is_plain = found.dimension == Measure::Ratio.dimension();
        let mut help = kind.example().to_owned();
        let mut meant = None;
        let is_inverse = [(Measure::Rate, Measure::Time), (Measure::Time, Measure::Rate)]
            .iter()
            .any(|(wanted, other)| kind == *wanted && found.dimension == other.dimension());
        if is_short && is_inverse {
            // The `/` of a unit is no division.
            let unit = written.split_once(' ').map_or("", |(_, unit)| unit);
            let is_operand = !written.contains(['+', '-', '*', '/']) || meaning(unit).is_some();
            meant = Some(if is_operand { format!("1 / {written}") } else { format!("1 / ({written})") });
        } else if is_short && kind == Measure::Price && found.dimension == Measure::Money.dimension() {
            meant = Some(format!("{written} per hour"));
        } else if is_short && is_plain && written.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            meant = Some(format!("{written} {}", kind.likely_unit()));
        } else if is_short {
            meant = same_digits_as(written, found.dimension, kind);
        }
        if let Some(meant) = &meant {
            help.push_str(&format!("; did you mean `{meant}`?"));
        }
        let problem =
            Diagnostic::error(Code::UnitMismatch, span, format!("expected {}, found {what}", kind.words()))
                .label(what)
                .help(help);
        let problem = match self.definitions.get(written) {
            Some(definition) => problem.and(definition.span, "it gets its value here"),
            None => problem,
        };
        self.report(match meant {
            Some(meant) => problem.fix(change(span, &meant)),
            None => problem,
        });
    }

    /// Reports a number outside its range.
    pub(crate) fn out_of_range(&mut self, span: Span, what: &str, why: &str, help: &str) {
        self.report(
            Diagnostic::error(Code::OutOfRange, span, format!("{what} is out of range"))
                .label(why)
                .help(help),
        );
    }

    /// A quantity of a kind in its unit, within `(0, most]`, or `[0, most]` if zero makes sense.
    fn measured(
        &mut self,
        found: &Located<Value>,
        kind: Measure,
        what: &str,
        most: f64,
        may_be_zero: bool,
    ) -> Option<Quantity> {
        let quantity = self.quantity(found, kind)?;
        let value = quantity.base();
        let why = if value < 0.0 {
            "this is negative"
        } else if value == 0.0 && !may_be_zero {
            "this is zero"
        } else if value > most {
            "this is larger than anything that exists"
        } else {
            return Some(quantity);
        };
        let shown = quantity.text();
        let least = if may_be_zero { "of at least zero" } else { "above zero" };
        let why = if self.sources.snippet(found.span) == shown {
            why.to_owned()
        } else {
            format!("{why}: {shown}")
        };
        self.out_of_range(found.span, what, &why, &format!("give a {what} {least}, with its unit"));
        None
    }

    pub(crate) fn rate(&mut self, found: &Located<Value>) -> Option<Located<PerSecond>> {
        let rate = self.measured(found, Measure::Rate, "rate", MAX_RATE, false)?;
        Some(Located::new(PerSecond(rate.base()), found.span))
    }

    pub(crate) fn time(&mut self, found: &Located<Value>, what: &str) -> Option<Located<Seconds>> {
        let time = self.measured(found, Measure::Time, what, MAX_SECONDS, false)?;
        Some(Located::new(Seconds(time.base()), found.span))
    }

    pub(crate) fn power(&mut self, found: &Located<Value>, what: &str) -> Option<Located<Watts>> {
        let power = self.measured(found, Measure::Power, what, MAX_WATTS, false)?;
        Some(Located::new(Watts(power.base()), found.span))
    }

    pub(crate) fn memory(&mut self, found: &Located<Value>) -> Option<Located<Bytes>> {
        let memory = self.measured(found, Measure::Memory, "memory", MAX_BYTES, false)?;
        Some(Located::new(Bytes(memory.base()), found.span))
    }

    /// A quantity in the unit its kind is shown in, at least zero.
    pub(crate) fn amount(
        &mut self,
        found: &Located<Value>,
        kind: Measure,
        what: &str,
        most: f64,
    ) -> Option<f64> {
        let quantity = self.measured(found, kind, what, most, true)?;
        meaning(kind.unit()).map(|unit| quantity.in_unit(unit))
    }

    pub(crate) fn megahertz(&mut self, found: &Located<Value>) -> Option<Located<Megahertz>> {
        let most = MAX_MEGAHERTZ * 1e6;
        let quantity = self.measured(found, Measure::Frequency, "clock", most, false)?;
        let megahertz = meaning("MHz").map(|unit| quantity.in_unit(unit)).unwrap_or(0.0);
        match whole(megahertz, &(1.0..=MAX_MEGAHERTZ)) {
            Some(whole) => Some(Located::new(Megahertz(whole), found.span)),
            None => {
                let why = format!("{megahertz} MHz is not a whole number of MHz");
                self.out_of_range(found.span, "clock", &why, "give a clock in whole MHz");
                None
            }
        }
    }

    /// A whole number within a range.
    pub(crate) fn whole_number(
        &mut self,
        found: &Located<Value>,
        what: &str,
        range: RangeInclusive<f64>,
    ) -> Option<Located<u32>> {
        let quantity = self.quantity(found, Measure::Ratio)?;
        let value = quantity.base();
        if let Some(whole) = whole(value, &range) {
            return Some(Located::new(whole, found.span));
        }
        let why =
            if value.fract() == 0.0 { format!("{value}") } else { format!("{value} is not a whole number") };
        let help = format!("give a whole number from {} to {}", range.start(), range.end());
        self.out_of_range(found.span, what, &why, &help);
        None
    }

    /// A plain number within a range.
    pub(crate) fn ratio(
        &mut self,
        found: &Located<Value>,
        what: &str,
        range: RangeInclusive<f64>,
    ) -> Option<Located<f64>> {
        let value = self.quantity(found, Measure::Ratio)?.base();
        if range.contains(&value) {
            return Some(Located::new(value, found.span));
        }
        let help = format!("give a number from {} to {}", range.start(), range.end());
        self.out_of_range(found.span, what, &format!("{value}"), &help);
        None
    }

    /// One of some words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        found: &Located<Value>,
        what: &str,
        options: &[(&str, T)],
    ) -> Option<Located<T>> {
        let words = || options.iter().map(|(word, _)| *word);
        match &found.value {
            Value::Word(word) | Value::Text(word, _) => {
                if let Some((_, value)) = options.iter().find(|(name, _)| **name == **word) {
                    return Some(Located::new(*value, found.span));
                }
                if self.is_all_poisoned || self.poisoned.contains(&**word) {
                    return None;
                }
                let problem =
                    Diagnostic::error(Code::UnknownName, found.span, format!("unknown {what} `{word}`"))
                        .label(format!("no {what} has this name"));
                let problem = match similar(word, words()) {
                    Some(meant) => self.did_you_mean(problem, found.span, word, meant),
                    None => words()
                        .take(4)
                        .fold(problem.help(format!("use {}", choices(words()))), |problem, other| {
                            self.or_change_word(problem, found.span, word, other)
                        }),
                };
                self.report(problem);
            }
            _ => self.mismatch(found, &format!("a {what}"), &format!("use {}", choices(words()))),
        }
        None
    }

    /// `true` or `false`.
    pub(crate) fn truth(&mut self, expr: &Expr) -> Option<Located<bool>> {
        let found = self.evaluate(expr);
        self.choice(&found, "truth value", &[("true", true), ("false", false)])
    }

    /// A text, and the file it is written in.
    pub(crate) fn text(&mut self, found: &Located<Value>, what: &str) -> Option<(Rc<str>, FileId)> {
        match &found.value {
            Value::Text(text, file) => return Some((text.clone(), *file)),
            Value::Word(word) => {
                let quoted = format!("\"{word}\"");
                let fix = (self.sources.snippet(found.span) == &**word).then(|| change(found.span, &quoted));
                self.mismatch_with(found, what, &format!("put it in quotes: `{quoted}`"), fix);
            }
            _ => self.mismatch(found, what, "put it in quotes"),
        }
        None
    }
}

/// A quantity whose unit is one letter away from the wanted kind: energy for power, a rate for a frequency.
fn same_digits_as(written: &str, found: Dimension, wanted: Measure) -> Option<String> {
    let (digits, unit) = written.split_once(' ')?;
    let is_number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let swapped = if found == Dimension::ENERGY && wanted == Measure::Power {
        unit.strip_suffix('h').filter(|power| power.ends_with('W')).map(str::to_owned)
    } else if found == Dimension::POWER && wanted == Measure::Energy {
        Some(format!("{unit}h"))
    } else if found == Dimension::CARBON && wanted == Measure::Intensity {
        Some(format!("{unit}/kWh"))
    } else {
        None
    };
    let swapped = swapped
        .filter(|unit| is_number && meaning(unit).is_some_and(|m| m.dimension == wanted.dimension()))?;
    Some(format!("{digits} {swapped}"))
}

/// A whole number within a range, if it is one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked before")]
fn whole(value: f64, range: &RangeInclusive<f64>) -> Option<u32> {
    let fits = range.contains(&value) && value.fract() == 0.0 && value >= 0.0 && value <= f64::from(u32::MAX);
    fits.then_some(value as u32)
}
