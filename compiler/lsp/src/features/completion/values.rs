//! A place in a value → numbers' units, names, words and functions that fit there.

#![expect(clippy::wildcard_enum_match_arm, reason = "most places want nothing of most kinds")]

use super::{Asked, Offer};
use crate::curves;
use crate::geometry;
use crate::names::Sort;
use crate::place::{Part, Subject, ValuePlace};
use crate::vocabulary::{Expected, FUNCTIONS, argument, attribute, limit, units};
use ent_lang::ast::{Expr, ExprKind, Item, ItemKind, Operator};
use ent_lang::vocabulary::ELEMENTS;
use ent_lang::vocabulary::Measure;
use ent_plan::device::{Board, board_ids};
use lsp_types::CompletionItemKind as Kind;

/// Percentiles that are promised, the usual one first.
const PERCENTILES: &[(&str, &str)] = &[
    ("p99", "99 of 100 requests are answered within the bound"),
    ("p95", "95 of 100 requests are answered within the bound"),
    ("p90", "90 of 100 requests are answered within the bound"),
    ("p50", "half of the requests are answered within the bound"),
    ("p99.9", "999 of 1,000 requests are answered within the bound"),
];

impl Asked<'_, '_> {
    pub(super) fn values(&mut self, at: ValuePlace) {
        let path = self.place.path();
        let outer = match &at.subject {
            Subject::Attribute(name) => attribute(&path, name).map_or(Expected::Any, |a| a.expected),
            Subject::Limit(metric) => limit(metric),
            Subject::Definition(name) => self.wanted_of(name),
        };
        let expected = match &at.call {
            // The least and the most of what is wanted are of its kind.
            Some((function, ..)) if matches!(function.as_str(), "min" | "max") => outer,
            Some((function, number, name)) => argument(function, name.as_deref(), *number),
            None => outer,
        };
        match &at.part {
            // The digits begin a profile, and not a number.
            Part::Unit { is_glued: true } if expected == Expected::Profile => {
                let before = self.text.get(..self.replace.start).unwrap_or("");
                self.replace.start = before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
                self.operands(expected, &at);
            }
            Part::Unit { is_glued } => {
                self.units(expected, &at, *is_glued);
                self.joints(expected, &at);
            }
            Part::Member(namespace) => self.members(namespace, 0),
            Part::Text => self.texts(expected),
            Part::AfterOperand => self.joints(expected, &at),
            Part::Operand => self.operands(expected, &at),
        }
    }

    /// What a value's first use by itself, or as part of a sum, wants it to be.
    fn wanted_of(&self, name: &str) -> Expected {
        let mut waiting: Vec<(Vec<&str>, &Item)> = self.top_items().map(|item| (Vec::new(), item)).collect();
        waiting.reverse();
        while let Some((path, item)) = waiting.pop() {
            match &item.kind {
                ItemKind::Block(block) => {
                    let inner: Vec<&str> = path.iter().copied().chain([block.kind.text.as_str()]).collect();
                    waiting.extend(block.items.iter().rev().map(|item| (inner.clone(), item)));
                }
                ItemKind::Attribute { name: own, value } if is_use(value, name) => {
                    if let Some(attribute) = attribute(&path, &own.text) {
                        return attribute.expected;
                    }
                }
                ItemKind::Limit { metric, at_most } if is_use(at_most, name) => return limit(&metric.text),
                _ => {}
            }
        }
        Expected::Any
    }

    /// What a number may measure here; `None` when nothing is known.
    fn measure(expected: Expected, at: &ValuePlace) -> Option<Measure> {
        let after = at.after.as_deref();
        match expected {
            Expected::Measure(measure) => Some(measure),
            Expected::Promise => Some(Measure::Time),
            Expected::Count | Expected::CountRange | Expected::Boards | Expected::Tensor => {
                Some(Measure::Ratio)
            }
            Expected::Clocks => Some(Measure::Frequency),
            Expected::ClockPowers if after == Some(":") => Some(Measure::Power),
            Expected::ClockPowers => Some(Measure::Frequency),
            Expected::Intensity => Some(Measure::Intensity),
            Expected::Embodied if after == Some("over") => Some(Measure::Time),
            Expected::Embodied => Some(Measure::Carbon),
            _ => None,
        }
    }

    fn units(&mut self, expected: Expected, at: &ValuePlace, is_glued: bool) {
        let wanted = Self::measure(expected, at);
        let gap = if is_glued { " " } else { "" };
        let mut measures: Vec<Measure> = Measure::ALL.to_vec();
        measures.sort_by_key(|m| (Some(*m) != wanted, *m == Measure::Ratio));
        for (i, measure) in measures.into_iter().enumerate() {
            let rank = if Some(measure) == wanted { 0 } else { 10 + u32::try_from(i).unwrap_or(9) };
            for unit in units(measure) {
                let mut offer = Offer::new(*unit, Kind::UNIT, rank).detail(measure.words());
                let gap = if *unit == "%" { "" } else { gap };
                if !gap.is_empty() {
                    offer = offer.snippet(format!("{gap}{unit}"));
                }
                self.offer(offer);
            }
        }
        if expected == Expected::Embodied && at.after.is_none() {
            let offer = Offer::new("kgCO2 per gpu over", Kind::UNIT, 0).detail("a carbon mass over a time");
            self.offer(offer.snippet(format!("{gap}kgCO2 per gpu over ${{1:4}} years")));
        }
    }

    /// The words and signs between the parts of a value.
    fn joints(&mut self, expected: Expected, at: &ValuePlace) {
        let joints: &[(&str, &str, &str)] = match (expected, at.after.as_deref()) {
            (Expected::Boards, None) => &[("x", "x ${1:8}", "how many boards")],
            (Expected::Embodied, None) => &[("over", "over ${1:4} years", "the life of a board")],
            (Expected::Clocks, None) if !at.is_in_list => {
                &[("..", ".. ${1:1410} MHz", "every clock up to another")]
            }
            (Expected::Clocks, Some("..")) => &[("step", "step ${1:15} MHz", "between two clocks")],
            (Expected::CountRange, None) => &[("..", "..${1:4}", "at least and at most")],
            (Expected::Promise, None) => &[("<=", "<= ${1:50} ms", "within a bound")],
            _ => &[],
        };
        for (word, snippet, what) in joints {
            let offer = Offer::new(*word, Kind::KEYWORD, 5).detail(*what).snippet(*snippet);
            self.offer(offer);
        }
    }

    fn operands(&mut self, expected: Expected, at: &ValuePlace) {
        match expected {
            Expected::Model => self.declared(Sort::Model, 0, false),
            Expected::Node => self.declared(Sort::Node, 0, true),
            Expected::Board => self.boards(),
            Expected::Boards if at.after.as_deref() != Some("x") => self.boards(),
            Expected::Performance => self.performance(),
            Expected::Profile => {
                let boards = self.boards_in_question();
                self.profiles(&boards);
            }
            Expected::Choice(words) => {
                for (i, (word, what)) in words.iter().enumerate() {
                    let offer = Offer::new(*word, Kind::ENUM_MEMBER, u32::try_from(i).unwrap_or(9));
                    self.offer(offer.detail(*what));
                }
            }
            Expected::Arrivals => {
                for (word, what) in [("poisson", "memoryless"), ("uniform", "evenly spaced")] {
                    let offer = Offer::new(word, Kind::ENUM_MEMBER, 0).detail(what);
                    self.offer(offer);
                }
                self.functions(&["gamma", "trace"], 1);
            }
            Expected::Promise if at.after.is_none() => {
                for (i, (word, what)) in PERCENTILES.iter().enumerate() {
                    let offer =
                        Offer::new(*word, Kind::ENUM_MEMBER, u32::try_from(i).unwrap_or(9)).detail(*what);
                    let has_bound = self.rest_of_line().starts_with("<=");
                    self.offer(if has_bound {
                        offer
                    } else {
                        offer.snippet(format!("{word} <= ${{1:50}} ms"))
                    });
                }
                self.named_values(Some("a latency promise"));
                return;
            }
            Expected::Tensor if at.is_first => {
                for (i, element) in ELEMENTS.iter().enumerate() {
                    let rank = if *element == "float32" { 0 } else { 1 + u32::try_from(i).unwrap_or(9) };
                    let offer = Offer::new(*element, Kind::TYPE_PARAMETER, rank).detail("tensor");
                    self.offer(offer.snippet(format!("{element}[${{1:3, 224, 224}}]")));
                }
            }
            Expected::File(_) | Expected::Text => {
                let offer = Offer::new("\"…\"", Kind::TEXT, 0).detail("a text in quotes").snippet("\"$1\"");
                self.offer(offer);
            }
            Expected::Intensity => self.functions(&["csv"], 1),
            _ => {}
        }
        let is_clock = expected == Expected::Clocks || expected == Expected::Measure(Measure::Frequency);
        if is_clock && matches!(self.place.path().as_slice(), ["service", "pin"] | ["hardware", "node"]) {
            self.clocks();
        }
        if let Some((function, _, None)) = &at.call
            && function == "csv"
            && at.is_first
        {
            for (name, snippet) in
                [("start", "start = \"${1:2025-03-01T00:00Z}\""), ("step", "step = ${1:1} h")]
            {
                let offer = Offer::new(name, Kind::PROPERTY, 0).detail("argument").snippet(snippet);
                self.offer(offer);
            }
        }
        let measure = Self::measure(expected, at);
        if let (Some(_), Subject::Attribute(name), true, None) = (measure, &at.subject, at.is_first, &at.call)
        {
            let path = self.place.path();
            if let Some(attribute) = attribute(&path, name).filter(|a| a.snippet.contains("${")) {
                let label = super::plain(attribute.snippet);
                let what = "an example, to be changed";
                self.offer(Offer::new(label, Kind::SNIPPET, 30).detail(what).snippet(attribute.snippet));
            }
        }
        match (measure, expected) {
            (Some(measure), _) => {
                self.named_values(Some(measure.words()));
                self.functions(&["min", "max", "round"], 20);
            }
            (None, Expected::Any) => {
                self.named_values(None);
                self.functions(&["min", "max", "round"], 20);
            }
            _ => self.named_values(Some("")),
        }
    }

    /// Params and lets. With `words`, those of that kind come first, then factors; where nothing is measured
    /// (`""`) numbers stay away.
    fn named_values(&mut self, words: Option<&str>) {
        let names = self.names();
        for declared in names.declared().iter().filter(|d| d.sort == Sort::Value) {
            let covers = |span: ent_plan::diagnostic::Span| {
                span.file == self.file
                    && (span.start as usize..=span.end as usize).contains(&self.place.replace.start)
            };
            // A value that names itself has none.
            if declared.entry.is_some_and(covers) {
                continue;
            }
            let resolved = self.meaning().named_value(&declared.name);
            let is_number = |words: &str| {
                words.starts_with("a quantity") || Measure::ALL.iter().any(|m| m.words() == words)
            };
            if words == Some("") && resolved.as_ref().is_some_and(|r| is_number(&r.words)) {
                continue;
            }
            let rank = match (words, &resolved) {
                (None, _) => 0,
                (Some(words), Some(resolved)) if resolved.words == words => 0,
                (Some(_), Some(resolved)) if resolved.words == Measure::Ratio.words() => 2,
                (Some(_), None) => 3,
                (Some(_), Some(_)) => 12,
            };
            let mut offer = Offer::new(declared.name.to_string(), Kind::VARIABLE, rank);
            if let Some(resolved) = resolved {
                offer = offer.detail(format!("{}: {}", resolved.words, resolved.text));
            }
            self.offer(offer);
        }
    }

    fn functions(&mut self, wanted: &[&str], rank: u32) {
        let known = |wanted: &&str| FUNCTIONS.iter().find(|(name, ..)| name == wanted);
        for (name, snippet, what) in wanted.iter().filter_map(known) {
            let offer = Offer::new(*name, Kind::FUNCTION, rank).detail(*what).snippet(*snippet);
            self.offer(offer);
        }
    }

    /// Names of a sort that the program declares.
    fn declared(&mut self, sort: Sort, rank: u32, is_quoted: bool) {
        let names = self.names();
        let mut seen = Vec::new();
        for declared in names.declared().iter().filter(|d| d.sort == sort) {
            if seen.contains(&declared.name) {
                continue;
            }
            seen.push(declared.name.clone());
            let is_word = crate::features::navigate::is_word(&declared.name);
            let kind = if sort == Sort::Node { Kind::MODULE } else { Kind::CLASS };
            let offer = Offer::new(declared.name.to_string(), kind, rank).detail(sort.words());
            self.offer(if is_quoted || !is_word {
                offer.snippet(format!("\"{}\"", declared.name))
            } else {
                offer
            });
        }
    }

    fn boards(&mut self) {
        let known: Vec<(String, String, String)> = self
            .meaning()
            .boards()
            .map(|(name, board)| (name.to_owned(), board.title.clone(), geometry::menu(board)))
            .collect();
        for (name, title, menu) in &known {
            let offer = Offer::new(name.clone(), Kind::STRUCT, 0).detail(title.clone());
            self.offer(offer.documentation(menu.clone()));
        }
        for board in geometry::catalogue() {
            let name = board.id.replace('-', "_");
            if known.iter().any(|(known, ..)| *known == name) {
                continue;
            }
            let offer = Offer::new(name, Kind::STRUCT, 8)
                .detail(board.title.clone())
                .documentation(geometry::menu(board))
                .import(format!("catalog:nvidia/{}", board.id));
            self.offer(offer);
        }
    }

    fn performance(&mut self) {
        let known: Vec<(String, String)> =
            self.meaning().performance().map(|(name, file)| (name.to_owned(), file.to_owned())).collect();
        for (name, file) in &known {
            let offer = Offer::new(name.clone(), Kind::MODULE, 1).detail(file.clone());
            self.offer(offer.documentation("The entry that has the model's own name."));
            for entry in curves::entries(file) {
                let written = member(&entry);
                let offer = Offer::new(format!("{name}.{written}"), Kind::VALUE, 0).detail(file.clone());
                self.offer(offer);
            }
        }
        for id in board_ids().filter(|id| ent_plan::performance::catalogue(id).is_some()) {
            let name = id.replace('-', "_");
            let path = format!("catalog:performance/{id}");
            if known.iter().any(|(_, file)| *file == path) {
                continue;
            }
            for entry in curves::entries(&path) {
                let offer =
                    Offer::new(format!("{name}.{}", member(&entry)), Kind::VALUE, 8).detail(path.clone());
                self.offer(offer.import(path.clone()));
            }
        }
        let offer = Offer::new("\"…\"", Kind::FILE, 9).detail("a `.csv` or `.json` file").snippet("\"$1\"");
        self.offer(offer);
    }

    /// The entries of imported performance data.
    fn members(&mut self, namespace: &str, rank: u32) {
        let file =
            self.meaning().performance().find(|(name, _)| *name == namespace).map(|(_, f)| f.to_owned());
        let Some(file) = file else { return };
        for entry in curves::entries(&file) {
            let offer = Offer::new(member(&entry), Kind::VALUE, rank).detail(file.clone());
            self.offer(offer);
        }
    }

    fn texts(&mut self, expected: Expected) {
        match expected {
            Expected::File(endings) => self.files(endings),
            Expected::Performance => self.files(&["csv", "json"]),
            Expected::Model | Expected::Node | Expected::Board | Expected::Boards => {
                let sort = match expected {
                    Expected::Model => Sort::Model,
                    Expected::Node => Sort::Node,
                    _ => Sort::Board,
                };
                let names = self.names();
                for declared in names.declared().iter().filter(|d| d.sort == sort) {
                    let offer = Offer::new(declared.name.to_string(), Kind::VALUE, 0).detail(sort.words());
                    self.offer(offer);
                }
            }
            _ => {}
        }
    }

    /// The names of the boards that a pin may be about: those of the pinned node, or of every node.
    fn boards_in_question(&mut self) -> Vec<String> {
        let path = self.place.path();
        let siblings = self.siblings();
        let value = |name: &str| siblings.iter().find(|s| s.name == name).and_then(|s| s.value);
        if path.as_slice() == ["hardware", "node"] {
            return value("gpu").map(|board| crate::place::unquoted(board).to_owned()).into_iter().collect();
        }
        let node = value("node").map(crate::place::unquoted).map(str::to_owned);
        let nodes = self.meaning().nodes();
        let mut boards: Vec<String> = nodes
            .iter()
            .filter(|n| node.as_ref().is_none_or(|wanted| *wanted == n.name))
            .map(|n| n.board.clone())
            .collect();
        if boards.is_empty() {
            boards = self.meaning().boards().map(|(name, _)| name.to_owned()).collect();
        }
        boards.sort();
        boards.dedup();
        boards
    }

    /// The MIG profiles of some boards, the plain ones first.
    pub(super) fn profiles(&mut self, names: &[String]) {
        let boards: Vec<Board> = {
            let meaning = self.meaning();
            names.iter().filter_map(|name| meaning.board(name)).cloned().collect()
        };
        let mut seen: Vec<&str> = Vec::new();
        let profiles = boards.iter().flat_map(|board| board.profiles.iter().map(move |p| (board, p)));
        for (board, profile) in profiles {
            if seen.contains(&profile.name.as_str()) {
                continue;
            }
            seen.push(&profile.name);
            let on: Vec<&str> =
                boards.iter().filter(|b| b.profile(&profile.name).is_some()).map(|b| b.id.as_str()).collect();
            let offer = Offer::new(profile.name.clone(), Kind::ENUM_MEMBER, u32::from(!profile.is_base))
                .detail(on.join(", "))
                .documentation(geometry::profile(board, profile));
            self.offer(offer);
        }
    }

    /// The clocks of the boards in question, those with a known base power first, the highest on top.
    fn clocks(&mut self) {
        let names = self.boards_in_question();
        let boards: Vec<Board> = {
            let meaning = self.meaning();
            names.iter().filter_map(|name| meaning.board(name)).cloned().collect()
        };
        let mut seen = Vec::new();
        for board in &boards {
            for clock in board.clocks.iter().rev() {
                if seen.contains(clock) {
                    continue;
                }
                seen.push(*clock);
                let base = board.base_power.as_ref().and_then(|power| power.at(*clock));
                let mut offer =
                    Offer::new(clock.to_string(), Kind::VALUE, if base.is_some() { 0 } else { 6 });
                offer = offer.detail(match base {
                    Some(watts) => format!("base power {:.1} W", watts.get()),
                    None => "no known base power".to_owned(),
                });
                self.offer(offer);
            }
        }
    }
}

/// Whether an expression is of the kind that a name in it is.
fn is_use(value: &Expr, name: &str) -> bool {
    match &value.kind {
        ExprKind::Path(names) => matches!(names.as_slice(), [one] if one.text == name && !one.is_quoted),
        ExprKind::Paren(inner) | ExprKind::Negative(inner) => is_use(inner, name),
        ExprKind::Chain { first, rest } => {
            let is_sum =
                |(operator, _): &(Operator, Expr)| matches!(operator, Operator::Add | Operator::Subtract);
            let mut operands = std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand));
            rest.iter().all(is_sum) && operands.any(|operand| is_use(operand, name))
        }
        _ => false,
    }
}

/// An entry as it is written behind a dot.
fn member(entry: &str) -> String {
    if crate::features::navigate::is_word(entry) { entry.to_owned() } else { format!("\"{entry}\"") }
}
