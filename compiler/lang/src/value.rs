//! Expr → Value: arithmetic with units, names replaced by what they stand for.
//!
//! Parts of lists, calls, ranges and promises are single values, so that values are never deep and never
//! grow by naming each other. What went wrong is reported once and becomes [`Value::Poison`].

#![expect(clippy::wildcard_enum_match_arm, reason = "any other value is of the wrong type")]

use crate::ast::{Argument, Expr, ExprKind, Operator};
use crate::context::Context;
use crate::fixes::change;
use crate::quantity::{Fault, Quantity, meaning, similar_unit};
use crate::suggest::similar;
use ent_plan::diagnostic::{Code, Diagnostic, FileId, Located, Span};
use std::cmp::Ordering;
use std::rc::Rc;

/// A value of the language.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// Something that was reported already.
    Poison,
    Quantity(Quantity),
    /// A text, and the file it is written in: paths are relative to that file.
    Text(Rc<str>, FileId),
    /// A bare word that stands for nothing here: a model's name, `poisson`, `off`.
    Word(Rc<str>),
    /// `a.b`
    Path(Rc<[String]>),
    Profile(Rc<str>),
    List(Rc<[Entry]>),
    Promise {
        percentile: Located<Rc<str>>,
        bound: Box<Located<Value>>,
    },
    Range {
        from: Box<Located<Value>>,
        to: Box<Located<Value>>,
        step: Option<Box<Located<Value>>>,
    },
    Over {
        amount: Box<Located<Value>>,
        time: Box<Located<Value>>,
    },
    Times {
        item: Box<Located<Value>>,
        count: Box<Located<Value>>,
    },
    /// `csv(…)`, `trace(…)`, `gamma(…)`
    Call {
        function: Rc<str>,
        arguments: Rc<[Passed]>,
    },
    Tensor,
}

/// An element of a list.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Option<Located<Value>>,
    pub(crate) value: Located<Value>,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    pub(crate) name: Option<Located<Rc<str>>>,
    pub(crate) value: Located<Value>,
}

impl Value {
    /// What it is, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Poison => "nothing".to_owned(),
            Self::Quantity(quantity) => quantity.dimension.words(),
            Self::Text(..) => "a text".to_owned(),
            Self::Word(_) | Self::Path(_) => "a name".to_owned(),
            Self::Profile(_) => "a MIG profile".to_owned(),
            Self::List(_) => "a list".to_owned(),
            Self::Promise { .. } => "a latency promise".to_owned(),
            Self::Range { .. } => "a range".to_owned(),
            Self::Over { .. } => "an amount over a time".to_owned(),
            Self::Times { .. } => "a number of boards".to_owned(),
            Self::Call { function, .. } => format!("`{function}(…)`"),
            Self::Tensor => "a tensor".to_owned(),
        }
    }

    fn is_single(&self) -> bool {
        match self {
            Self::Poison | Self::Quantity(_) | Self::Text(..) | Self::Word(_) | Self::Path(_) => true,
            Self::Profile(_) => true,
            Self::List(_) | Self::Promise { .. } | Self::Range { .. } | Self::Over { .. } => false,
            Self::Times { .. } | Self::Call { .. } | Self::Tensor => false,
        }
    }
}

/// The types of a tensor's elements.
pub(crate) const ELEMENTS: [&str; 8] =
    ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8"];

/// The functions there are.
pub(crate) const FUNCTIONS: [&str; 6] = ["min", "max", "round", "csv", "trace", "gamma"];

impl Context<'_> {
    /// The value of an expression.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Located<Value> {
        Located::new(self.value_of(expr), expr.span)
    }

    fn value_of(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Number { digits, unit } => {
                let unit = unit.as_ref().map(|u| (u.text.as_str(), u.span));
                self.number(expr.span, digits, unit)
            }
            ExprKind::Text(text) => Value::Text(text.as_str().into(), expr.span.file),
            ExprKind::Profile(name) => Value::Profile(name.as_str().into()),
            ExprKind::Path(names) => match names.as_slice() {
                [one] if one.is_quoted => Value::Text(one.text.as_str().into(), expr.span.file),
                [one] => match self.definitions.get(&one.text) {
                    Some(definition) => definition.value.clone(),
                    None => Value::Word(one.text.as_str().into()),
                },
                many => Value::Path(many.iter().map(|n| n.text.clone()).collect()),
            },
            ExprKind::Tensor { element, extents } => self.tensor(&element.text, element.span, extents),
            ExprKind::List(list) => {
                let mut entries = Vec::with_capacity(list.elements.len());
                for element in &list.elements {
                    let key = element.key.as_ref().map(|k| self.single(k));
                    entries.push(Entry { key, value: self.single(&element.value) });
                }
                Value::List(entries.into())
            }
            ExprKind::Call { function, arguments } => {
                self.call(expr.span, &function.text, function.span, arguments)
            }
            ExprKind::Negative(inner) => match self.operand(inner) {
                Some(quantity) => Value::Quantity(quantity.negated()),
                None => Value::Poison,
            },
            ExprKind::Paren(inner) => self.value_of(inner),
            ExprKind::Chain { first, rest } => self.chain(first, rest),
            ExprKind::Promise { percentile, bound } => Value::Promise {
                percentile: Located::new(percentile.text.as_str().into(), percentile.span),
                bound: Box::new(self.single(bound)),
            },
            ExprKind::Range { from, to, step } => Value::Range {
                from: Box::new(self.single(from)),
                to: Box::new(self.single(to)),
                step: step.as_ref().map(|s| Box::new(self.single(s))),
            },
            ExprKind::Over { amount, time } => {
                Value::Over { amount: Box::new(self.single(amount)), time: Box::new(self.single(time)) }
            }
            ExprKind::Times { item, count } => {
                Value::Times { item: Box::new(self.single(item)), count: Box::new(self.single(count)) }
            }
        }
    }

    /// A value that has no parts of its own.
    fn single(&mut self, expr: &Expr) -> Located<Value> {
        let found = self.evaluate(expr);
        if found.value.is_single() {
            return found;
        }
        let what = found.value.words();
        self.report(
            Diagnostic::error(
                Code::TypeMismatch,
                found.span,
                format!("expected a single value, found {what}"),
            )
            .label(what)
            .help("write one number, name or text here"),
        );
        Located::new(Value::Poison, found.span)
    }

    fn number(&mut self, span: Span, digits: &str, unit: Option<(&str, Span)>) -> Value {
        let parsed =
            if digits.contains('_') { digits.replace('_', "").parse::<f64>() } else { digits.parse::<f64>() };
        let Some(value) = parsed.ok().filter(|v| v.is_finite()) else {
            self.report(
                Diagnostic::error(Code::OutOfRange, span, "number is too large")
                    .label("no finite number")
                    .help("write a number below 1e308"),
            );
            return Value::Poison;
        };
        let Some((unit, unit_span)) = unit else { return Value::Quantity(Quantity::plain(value)) };
        let Some(meaning) = meaning(unit) else {
            self.unknown_unit(unit, unit_span);
            return Value::Poison;
        };
        let quantity = Quantity::literal(value, meaning);
        if !quantity.base().is_finite() {
            self.not_finite(span);
            return Value::Poison;
        }
        Value::Quantity(quantity)
    }

    fn unknown_unit(&mut self, unit: &str, span: Span) {
        let problem = Diagnostic::error(Code::UnknownUnit, span, format!("unknown unit `{unit}`"))
            .label("no such unit");
        let is_division = unit.split_once('/').is_some_and(|(first, _)| meaning(first).is_some());
        let help = match similar_unit(unit) {
            Some(meant) => {
                let problem = problem.help(format!("did you mean `{meant}`?"));
                self.report(problem.fix(change(span, &meant)));
                return;
            }
            None if is_division => "put spaces around `/` to divide by a name".to_owned(),
            None => "use a unit like `ms`, `req/s`, `W`, `MHz`, `GiB`, `gCO2/kWh`, `USD` or `%`".to_owned(),
        };
        self.report(problem.help(help));
    }

    fn not_finite(&mut self, span: Span) {
        self.report(
            Diagnostic::error(Code::OutOfRange, span, "result is not a finite number")
                .label("too large")
                .help("use smaller numbers"),
        );
    }

    /// A number to calculate with.
    fn operand(&mut self, expr: &Expr) -> Option<Quantity> {
        let found = self.evaluate(expr);
        match found.value {
            Value::Quantity(quantity) => Some(quantity),
            Value::Poison => None,
            Value::Word(word) => {
                self.unknown_value(found.span, &word);
                None
            }
            other => {
                let what = other.words();
                self.report(
                    Diagnostic::error(
                        Code::TypeMismatch,
                        found.span,
                        format!("expected a number, found {what}"),
                    )
                    .label(what)
                    .help("calculate with numbers and units only"),
                );
                None
            }
        }
    }

    /// Reports a word where a number was wanted.
    pub(crate) fn unknown_value(&mut self, span: Span, word: &str) {
        let names: Vec<String> = self.definitions.keys().cloned().collect();
        let otherwise = format!("add `let {word} = …` or `param {word} = …`");
        self.unknown_name(span, word, "value", names.iter().map(String::as_str), &otherwise);
    }

    fn chain(&mut self, first: &Expr, rest: &[(Operator, Expr)]) -> Value {
        let mut left = self.operand(first);
        let mut span = first.span;
        for (operator, operand) in rest {
            let right = self.operand(operand);
            let (Some(a), Some(b)) = (left, right) else {
                left = None;
                continue;
            };
            let result = match operator {
                Operator::Add => a.plus(b, 1.0),
                Operator::Subtract => a.plus(b, -1.0),
                Operator::Multiply => a.times(b),
                Operator::Divide => a.over(b),
            };
            left = match result {
                Ok(quantity) => Some(quantity),
                Err(fault) => {
                    self.arithmetic(fault, (span, a), (operand.span, b));
                    None
                }
            };
            span = span.to(operand.span);
        }
        left.map_or(Value::Poison, Value::Quantity)
    }

    fn arithmetic(&mut self, fault: Fault, left: (Span, Quantity), right: (Span, Quantity)) {
        match fault {
            Fault::Dimensions => {
                let (a, b) = (left.1.dimension.words(), right.1.dimension.words());
                self.report(
                    Diagnostic::error(Code::UnitMismatch, right.0, format!("expected {a}, found {b}"))
                        .label(b)
                        .and(left.0, a)
                        .help("add, subtract and compare quantities of one kind only"),
                );
            }
            Fault::ZeroDivisor => self.report(
                Diagnostic::error(Code::OutOfRange, right.0, "division by zero")
                    .label("this is zero")
                    .help("divide by something else"),
            ),
            Fault::NotFinite => self.not_finite(left.0.to(right.0)),
        }
    }

    fn tensor(&mut self, element: &str, span: Span, extents: &[Expr]) -> Value {
        if !ELEMENTS.contains(&element) {
            self.unknown_name(span, element, "element type", ELEMENTS, "");
        }
        for extent in extents {
            let found = self.single(extent);
            self.whole_number(&found, "extent", 1.0..=1e9);
        }
        Value::Tensor
    }

    fn call(&mut self, span: Span, function: &str, name_span: Span, arguments: &[Argument]) -> Value {
        match function {
            "min" | "max" => self.least_or_most(span, function, arguments),
            "round" => {
                let [Argument { name: None, value }] = arguments else {
                    return self.wrong_arguments(span, function, "round(2.4)");
                };
                match self.operand(value) {
                    None => Value::Poison,
                    Some(q) if q.dimension == crate::quantity::Dimension::NONE => {
                        Value::Quantity(Quantity::plain(q.base().round()))
                    }
                    Some(q) => {
                        let what = q.dimension.words();
                        self.report(
                            Diagnostic::error(
                                Code::UnitMismatch,
                                value.span,
                                format!("expected a plain number, found {what}"),
                            )
                            .label(what)
                            .help("divide by a unit first: `round(x / 1 W) * 1 W`"),
                        );
                        Value::Poison
                    }
                }
            }
            "csv" | "trace" | "gamma" => {
                let mut passed = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    let name = argument.name.as_ref().map(|n| Located::new(n.text.as_str().into(), n.span));
                    passed.push(Passed { name, value: self.single(&argument.value) });
                }
                Value::Call { function: function.into(), arguments: passed.into() }
            }
            other => {
                for argument in arguments {
                    self.evaluate(&argument.value);
                }
                let meant = similar(other, FUNCTIONS);
                let problem =
                    Diagnostic::error(Code::UnknownName, name_span, format!("unknown function `{other}`"))
                        .label("no function has this name");
                self.report(match meant {
                    Some(meant) => self.did_you_mean(problem, name_span, other, meant),
                    None => problem.help(format!("use one of {}", crate::suggest::choices(FUNCTIONS))),
                });
                Value::Poison
            }
        }
    }

    fn wrong_arguments(&mut self, span: Span, function: &str, example: &str) -> Value {
        self.report(
            Diagnostic::error(Code::TypeMismatch, span, format!("wrong arguments of `{function}`"))
                .label("these arguments do not fit")
                .help(format!("write it like `{example}`")),
        );
        Value::Poison
    }

    fn least_or_most(&mut self, span: Span, function: &str, arguments: &[Argument]) -> Value {
        let wanted = if function == "min" { Ordering::Less } else { Ordering::Greater };
        let mut best: Option<(Span, Quantity)> = None;
        let mut is_poisoned = false;
        for argument in arguments {
            if argument.name.is_some() {
                return self.wrong_arguments(span, function, &format!("{function}(a, b)"));
            }
            let Some(quantity) = self.operand(&argument.value) else {
                is_poisoned = true;
                continue;
            };
            let here = (argument.value.span, quantity);
            best = match best {
                None => Some(here),
                Some(found) => match quantity.compare(found.1) {
                    Some(order) => Some(if order == wanted { here } else { found }),
                    None => {
                        self.arithmetic(Fault::Dimensions, found, here);
                        is_poisoned = true;
                        Some(found)
                    }
                },
            };
        }
        match best {
            _ if is_poisoned => Value::Poison,
            Some((_, quantity)) => Value::Quantity(quantity),
            None => self.wrong_arguments(span, function, &format!("{function}(a, b)")),
        }
    }
}
