//! Board imports and `board` blocks → boards.
//!
//! A `board` block starts from another board and supplies facts the catalogue does not have. What it
//! supplies is marked as the user's own, or as invented when it says `illustration = true`. The board's
//! id is the block's name, so that performance files can name it.

#![expect(clippy::wildcard_enum_match_arm, reason = "any other value is of the wrong type")]

use crate::ast::{Block, Name};
use crate::context::Context;
use crate::declarations::Declarations;
use crate::definitions::duplicate;
use crate::fields::{Fields, Shape};
use crate::value::{Entry, Value};
use ent_plan::device::{self, BasePower, Board, Confidence, PowerLimits};
use ent_plan::diagnostic::{Code, Diagnostic, Fix, Located, Span};
use ent_plan::units::Megahertz;
use std::collections::BTreeMap;

pub(crate) const SHAPE: Shape = Shape {
    words: "a board",
    attributes: &[
        "base",
        "title",
        "clocks",
        "memory_clock",
        "base_power",
        "power_limit",
        "memory",
        "sms",
        "illustration",
        "source",
    ],
    blocks: &[],
    repeated_blocks: &["profile"],
    has_objective: false,
};

pub(crate) const PROFILE: Shape = Shape {
    words: "a profile",
    attributes: &["sms", "memory"],
    blocks: &[],
    repeated_blocks: &[],
    has_objective: false,
};

/// No ladder has more clocks.
const MAX_CLOCKS: usize = 10_000;

/// Every board a program can name: `None` for one that was reported.
pub(crate) type Boards = BTreeMap<String, Option<Board>>;

/// Makes every board of a program, each after the one it starts from.
pub(crate) fn boards(context: &mut Context<'_>, declarations: &Declarations<'_>) -> Boards {
    let mut made: Boards = BTreeMap::new();
    for (name, imported) in &declarations.imported_boards {
        made.insert(name.clone(), device::board(&imported.id));
    }
    let mut waiting: BTreeMap<&str, (&Name, &Block)> = BTreeMap::new();
    for (name, block) in &declarations.boards {
        let first = waiting
            .get(name.text.as_str())
            .map(|(first, _)| first.span)
            .or_else(|| declarations.imported_boards.get(&name.text).map(|i| i.span));
        match first {
            Some(first) => context.report(duplicate("board", &name.text, name.span, first)),
            None => {
                waiting.insert(&name.text, (*name, *block));
            }
        }
    }
    let names: Vec<&str> = waiting.keys().copied().collect();
    for name in names {
        // Follow the bases to one that is made, then make them from there up.
        let mut way: Vec<(&Name, Fields<'_>)> = Vec::new();
        let mut next = name.to_owned();
        while let Some((name, block)) = waiting.remove(next.as_str()) {
            let fields = Fields::read(context, block, &SHAPE);
            next = base_name(context, &fields).map(|b| b.value).unwrap_or_default();
            way.push((name, fields));
        }
        if let Some(at) = way.iter().position(|(name, _)| name.text == next) {
            cyclic(context, &way[at..]);
            for (name, _) in &way {
                made.insert(name.text.clone(), None);
            }
            continue;
        }
        for (name, fields) in way.iter().rev() {
            let board = derive(context, name, fields, &made, declarations);
            made.insert(name.text.clone(), board);
        }
    }
    made
}

fn base_name(context: &mut Context<'_>, fields: &Fields<'_>) -> Option<Located<String>> {
    let base = fields.value(context, "base")?;
    match &base.value {
        Value::Word(word) | Value::Text(word, _) => Some(Located::new(word.to_string(), base.span)),
        _ => None,
    }
}

fn cyclic(context: &mut Context<'_>, way: &[(&Name, Fields<'_>)]) {
    let Some((first, fields)) = way.first() else { return };
    let mut chain: Vec<&str> = way.iter().map(|(name, _)| name.text.as_str()).take(8).collect();
    chain.push(&first.text);
    let span = fields.expr("base").map_or(first.span, |e| e.span);
    context.report(
        Diagnostic::error(Code::CyclicDefinition, span, format!("board `{}` starts from itself", first.text))
            .label(chain.join(" → "))
            .help("let one of them start from a board of the catalogue"),
    );
}

/// Looks a board up by the name a program uses.
pub(crate) fn find<'b>(
    context: &mut Context<'_>,
    boards: &'b Boards,
    declarations: &Declarations<'_>,
    name: &str,
    span: Span,
) -> Option<&'b Board> {
    if let Some(board) = boards.get(name) {
        return board.as_ref();
    }
    if context.is_all_poisoned || context.poisoned.contains(name) {
        return None;
    }
    let id = name.replace('_', "-");
    let in_catalogue: Vec<&str> =
        device::board_ids().filter(|known| *known == id || known.starts_with(&format!("{id}-"))).collect();
    let problem = Diagnostic::error(Code::UnknownName, span, format!("unknown board `{name}`"))
        .label("no board has this name here");
    let names = || boards.keys().map(String::as_str);
    let problem = match declarations.namespaces.get(name) {
        Some(namespace) => problem.and(namespace.span, "this imports performance data, not the board"),
        None => problem,
    };
    let help = match (crate::suggest::similar(name, names()), in_catalogue.as_slice()) {
        (Some(meant), []) => {
            context.report(context.did_you_mean(problem, span, name, meant));
            return None;
        }
        (_, [one]) => {
            let problem = problem.help(format!("add `import \"catalog:nvidia/{one}\"`"));
            let problem = context.add_import(problem, span, &format!("catalog:nvidia/{one}"));
            context.report(problem);
            return None;
        }
        (_, [_, ..]) => {
            format!("import one of {} from `catalog:nvidia/`", crate::suggest::choices(in_catalogue))
        }
        (None, []) => match crate::suggest::similar(&id, device::board_ids()) {
            Some(meant) => {
                format!("add `import \"catalog:nvidia/{meant}\"` and name it `{}`", meant.replace('-', "_"))
            }
            None => "import a board from `catalog:nvidia/`, or add a `board` block".to_owned(),
        },
    };
    context.report(problem.help(help));
    None
}

fn derive(
    context: &mut Context<'_>,
    name: &Name,
    fields: &Fields<'_>,
    made: &Boards,
    declarations: &Declarations<'_>,
) -> Option<Board> {
    let base = fields.required(context, "base", "base = a100_80gb_sxm")?;
    let (Value::Word(word) | Value::Text(word, _)) = &base.value else {
        context.mismatch(&base, "a board", "name a board that was imported: `base = a100_80gb_sxm`");
        return None;
    };
    let mut board = find(context, made, declarations, word, base.span)?.clone();
    board.id.clone_from(&name.text);
    let is_illustration = fields.expr("illustration").and_then(|e| context.truth(e)).is_some_and(|t| t.value);
    board.is_illustration |= is_illustration;
    let confidence = if is_illustration { Confidence::Illustration } else { Confidence::User };
    let source = fields.value(context, "source").and_then(|v| context.text(&v, "a text"));
    let source =
        source.map_or_else(|| format!("board `{}` of the program", name.text), |(text, _)| text.to_string());
    if let Some((title, _)) = fields.value(context, "title").and_then(|v| context.text(&v, "a text")) {
        board.title = title.to_string();
    }
    let mut supplied = Vec::new();
    if let Some(value) = fields.value(context, "clocks") {
        let clocks = clocks(context, &value, &[])?;
        board.clocks = clocks.value;
        // Base power at clocks that the board no longer has would be of no use.
        if let Some(power) = &mut board.base_power {
            power.points.retain(|(clock, _)| board.clocks.contains(clock));
        }
        supplied.push("clocks");
    }
    if let Some(clock) = fields.value(context, "memory_clock").and_then(|v| context.megahertz(&v)) {
        board.memory_clock = Some(clock.value);
    }
    if let Some(value) = fields.value(context, "base_power") {
        let points = base_power(context, &value, &board)?;
        board.base_power = Some(BasePower { points, source: source.clone(), confidence });
        supplied.push("base_power");
    }
    if let Some(limit) = fields.value(context, "power_limit").and_then(|v| context.power(&v, "power limit")) {
        let known = board.power_limits;
        if let Some(least) = known.and_then(|k| k.min).filter(|least| limit.value < *least) {
            context.report(
                Diagnostic::error(Code::OutOfRange, limit.span, "a number outside what makes sense")
                    .label(format!("the board's power limit cannot be set below {least}"))
                    .help(format!("write a power limit of at least `{least}`")),
            );
        }
        let max = known.map_or(limit.value, |k| if k.max < limit.value { limit.value } else { k.max });
        board.power_limits = Some(PowerLimits { min: known.and_then(|k| k.min), default: limit.value, max });
        supplied.push("power_limits");
    }
    if let Some(memory) = fields.value(context, "memory").and_then(|v| context.memory(&v)) {
        board.memory = Some(memory.value);
        supplied.push("memory");
    }
    if let Some(sms) =
        fields.value(context, "sms").and_then(|v| context.whole_number(&v, "number of SMs", 1.0..=4096.0))
    {
        board.n_sms = Some(sms.value);
        supplied.push("sms");
    }
    profiles(context, fields, &mut board);
    board.unverified.retain(|fact| !supplied.contains(&fact.as_str()));
    board.sources.push(source);
    Some(board)
}

fn profiles(context: &mut Context<'_>, fields: &Fields<'_>, board: &mut Board) {
    let mut seen: Vec<&Name> = Vec::new();
    for block in &fields.blocks {
        let inner = Fields::read(context, block, &PROFILE);
        let Some(name) = &block.name else {
            inner.missing(context, "name", "profile 1g.10gb { sms = 14 }");
            continue;
        };
        if let Some(first) = seen.iter().find(|n| n.text == name.text) {
            context.report(duplicate("profile", &name.text, name.span, first.span));
            continue;
        }
        seen.push(name);
        let Some(index) = board.profiles.iter().position(|p| p.name == name.text) else {
            unknown_profile(context, name.span, &name.text, &[&*board]);
            continue;
        };
        let Some(profile) = board.profiles.get_mut(index) else { continue };
        if let Some(sms) =
            inner.value(context, "sms").and_then(|v| context.whole_number(&v, "number of SMs", 1.0..=4096.0))
        {
            profile.n_sms = Some(sms.value);
            profile.unverified.retain(|fact| fact != "sms");
        }
        if let Some(memory) = inner.value(context, "memory").and_then(|v| context.memory(&v)) {
            profile.memory = Some(memory.value);
            profile.unverified.retain(|fact| fact != "memory");
        }
    }
}

/// Reports a MIG profile that none of some boards has.
pub(crate) fn unknown_profile(context: &mut Context<'_>, span: Span, name: &str, boards: &[&Board]) {
    let names: Vec<&str> = match boards {
        [one] => one.profiles.iter().map(|p| p.name.as_str()).collect(),
        many => {
            let mut names: Vec<&str> =
                many.iter().flat_map(|b| b.profiles.iter()).map(|p| p.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names
        }
    };
    let ids: Vec<&str> = boards.iter().map(|b| b.id.as_str()).collect();
    let problem = Diagnostic::error(Code::UnknownProfile, span, format!("unknown MIG profile `{name}`"))
        .label(format!("not a profile of {}", crate::suggest::choices(ids)))
        .help(format!("use one of {}", crate::suggest::choices(names.iter().copied())));
    // Of as many compute slices first, then the others as they come.
    let slices = |profile: &str| profile.split('g').next().unwrap_or("").to_owned();
    let (alike, others): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|profile| slices(profile) == slices(name));
    let problem = alike.into_iter().chain(others).take(4).fold(problem, |problem, profile| {
        let quoted = context.sources.snippet(span).starts_with('"');
        let text = if quoted { format!("\"{profile}\"") } else { profile.to_owned() };
        problem.fix(Fix::replace(format!("change to `{profile}`"), span, text))
    });
    context.report(problem);
}

fn base_power(
    context: &mut Context<'_>,
    value: &Located<Value>,
    board: &Board,
) -> Option<Vec<(Megahertz, ent_plan::units::Watts)>> {
    let Value::List(entries) = &value.value else {
        context.mismatch(
            value,
            "a list of clocks and powers",
            "write `base_power = [210 MHz: 43.8 W, 1410 MHz: 73.4 W]`",
        );
        return None;
    };
    let mut points: Vec<(Megahertz, ent_plan::units::Watts)> = Vec::new();
    let mut is_whole = true;
    for Entry { key, value } in entries.iter() {
        let Some(key) = key else {
            context.mismatch(value, "a clock and a power", "write `210 MHz: 43.8 W`");
            is_whole = false;
            continue;
        };
        let (Some(clock), Some(power)) = (context.megahertz(key), context.power(value, "base power")) else {
            is_whole = false;
            continue;
        };
        on_ladder(context, clock, &[board]);
        if points.iter().any(|(known, _)| *known == clock.value) {
            let what = format!("second base power at {}", clock.value);
            context.report(
                Diagnostic::error(Code::Duplicate, key.span, what)
                    .label("given again here")
                    .help("remove one of them"),
            );
            continue;
        }
        points.push((clock.value, power.value));
    }
    if points.is_empty() && is_whole {
        context.out_of_range(
            value.span,
            "base power",
            "this list is empty",
            "give at least one clock and its power",
        );
        return None;
    }
    points.sort_unstable_by_key(|(clock, _)| *clock);
    is_whole.then_some(points)
}

/// Reports a clock that none of some boards has. Boards with no known ladder have any.
pub(crate) fn on_ladder(context: &mut Context<'_>, clock: Located<Megahertz>, boards: &[&Board]) -> bool {
    if boards.iter().any(|b| b.clocks.is_empty() || b.clocks.contains(&clock.value)) || boards.is_empty() {
        return true;
    }
    let distance = |c: &Megahertz| c.0.abs_diff(clock.value.0);
    let nearest = boards.iter().flat_map(|b| b.clocks.iter()).min_by_key(|c| distance(c)).copied();
    let ids: Vec<&str> = boards.iter().map(|b| b.id.as_str()).collect();
    let problem = Diagnostic::error(Code::ClockOffLadder, clock.span, format!("no clock of {}", clock.value))
        .label(format!("not a clock of {}", crate::suggest::choices(ids)));
    context.report(match nearest {
        Some(nearest) => problem
            .help(format!("use `{nearest}`, the nearest clock there is"))
            .fix(crate::fixes::change(clock.span, &nearest.to_string())),
        None => problem,
    });
    false
}

/// Clocks: one, a list, or a range with a step; without a step, those of the board's ladder.
pub(crate) fn clocks(
    context: &mut Context<'_>,
    value: &Located<Value>,
    ladder: &[Megahertz],
) -> Option<Located<Vec<Megahertz>>> {
    let mut found = Vec::new();
    match &value.value {
        Value::Quantity(_) => found.push(context.megahertz(value)?.value),
        Value::List(entries) => {
            for Entry { key, value } in entries.iter() {
                if let Some(key) = key {
                    context.mismatch(key, "a clock", "write clocks alone: `[1050 MHz, 1410 MHz]`");
                    return None;
                }
                found.push(context.megahertz(value)?.value);
            }
        }
        Value::Range { from, to, step } => {
            let (low, high) = (context.megahertz(from)?, context.megahertz(to)?);
            if low.value > high.value {
                context.out_of_range(
                    value.span,
                    "range of clocks",
                    "it ends below its start",
                    "put the lower clock first",
                );
                return None;
            }
            match step {
                Some(step) => {
                    let step = context.megahertz(step)?.value.0;
                    let count = (high.value.0 - low.value.0) / step;
                    if count as usize >= MAX_CLOCKS {
                        context.out_of_range(
                            value.span,
                            "range of clocks",
                            "far too many clocks",
                            "use a larger step",
                        );
                        return None;
                    }
                    found.extend((0..=count).map(|i| Megahertz(low.value.0 + i * step)));
                }
                None if ladder.is_empty() => {
                    context.report(
                        Diagnostic::error(
                            Code::MissingAttribute,
                            value.span,
                            "missing step of a range of clocks",
                        )
                        .label("no step")
                        .help("add one: `210 MHz .. 1410 MHz step 15 MHz`"),
                    );
                    return None;
                }
                None => found.extend(ladder.iter().filter(|c| **c >= low.value && **c <= high.value)),
            }
        }
        Value::Word(word) => {
            let word = word.clone();
            context.unknown_value(value.span, &word);
            return None;
        }
        _ => {
            context.mismatch(
                value,
                "clocks",
                "write `[1050 MHz, 1410 MHz]` or `210 MHz .. 1410 MHz step 15 MHz`",
            );
            return None;
        }
    }
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        context.out_of_range(value.span, "list of clocks", "no clock is in it", "give at least one clock");
        return None;
    }
    Some(Located::new(found, value.span))
}
