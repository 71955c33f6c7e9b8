//! A place in a program → what stands there.
//!
//! Names with what they are worth, attributes with what the reference says, profiles with their
//! geometry, models with their curves, services with what the current plan gives them and why.

#![expect(clippy::wildcard_enum_match_arm, reason = "most words are no words of a list")]

mod entry;

use crate::Snapshot;
use crate::curves;
use crate::geometry;
use crate::manual;
use crate::names::{Names, Occurrence, Sort};
use crate::place::{Place, Position, Role, place, roles, unquoted};
use crate::placement;
use crate::planning::Planned;
use crate::token::{Kind, Token};
use crate::vocabulary::{Expected, FUNCTIONS, METRICS, attribute};
use ent_lang::ast::{ExprKind, Item, ItemKind};
use ent_lang::meaning::Meaning;
use ent_plan::device::{self, Board};
use ent_plan::diagnostic::FileId;
use ent_plan::plan::Metric;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};

/// What stands at a byte; with what the current plan does about it, if there is one.
#[must_use]
pub fn hover(
    snapshot: &Snapshot<'_>,
    planned: Option<&Planned>,
    file: FileId,
    offset: usize,
) -> Option<Hover> {
    let text = snapshot.text(file);
    let all = roles(text);
    let (index, (token, role)) = all.iter().enumerate().find(|(_, (token, _))| {
        let is_word = matches!(token.kind, Kind::Word | Kind::Number | Kind::Profile);
        token.start <= offset && (offset < token.end || (is_word && offset == token.end))
    })?;
    let question = Question {
        snapshot,
        planned,
        file,
        text,
        place: place(text, token.end),
        token,
        before: index.checked_sub(1).and_then(|i| all.get(i)).map(|(t, _)| t.text(text)),
        first: index.checked_sub(2).and_then(|i| all.get(i)).map(|(t, _)| t.text(text)),
    };
    let value = question.answer(*role)?;
    let range = Some(snapshot.workspace.range(file, token.range()));
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }),
        range,
    })
}

/// One question.
struct Question<'a, 's> {
    snapshot: &'s Snapshot<'a>,
    planned: Option<&'s Planned>,
    file: FileId,
    text: &'a str,
    place: Place,
    token: &'s Token,
    /// The words of the two tokens before it.
    before: Option<&'a str>,
    first: Option<&'a str>,
}

impl<'a> Question<'a, '_> {
    fn word(&self) -> &'a str {
        self.token.text(self.text)
    }

    fn meaning(&self) -> Meaning<'a> {
        let snapshot = *self.snapshot;
        Meaning::of(snapshot.sources(), snapshot.files().iter().filter_map(move |f| snapshot.ast(*f)))
    }

    fn answer(&self, role: Role) -> Option<String> {
        let word = self.word();
        match role {
            Role::Attribute => self.attribute(word),
            Role::BlockKind => self.block_kind(word),
            Role::Keyword => keyword(word).map(str::to_owned).or_else(|| self.entry_word(word)),
            Role::Metric => self.metric(word),
            Role::Percentile => Some(percentile(word)),
            Role::Profile => self.profile(word),
            Role::Function => FUNCTIONS
                .iter()
                .find(|(name, ..)| *name == word)
                .map(|(name, snippet, what)| format!("`{}`: {what}", plain_call(name, snippet))),
            Role::ImportPath => self.import(unquoted(word)),
            Role::Member => self.member(word),
            Role::BlockName | Role::Declared | Role::Alias | Role::Name | Role::Text => {
                self.name().or_else(|| self.plain_word(word)).or_else(|| self.worth())
            }
            Role::Number | Role::Unit | Role::Operator => self.worth(),
            Role::Comment | Role::ElementType | Role::ArgumentName => None,
            Role::Unfinished => self.block_kind(word),
            Role::Other => None,
        }
    }

    /// An attribute: what the reference says, and what it is worth here.
    fn attribute(&self, name: &str) -> Option<String> {
        let path = self.place.path();
        let entry = manual::attribute(&path, name)?;
        let mut text = format!("**{name}** of `{}`\n\n{}", path.join(" "), entry.value);
        match entry.default.as_deref() {
            Some("required") => text.push_str("\n\nRequired."),
            Some(default) => text.push_str(&format!("\n\nUnless given: {default}.")),
            None => {}
        }
        if let Some(value) = entry::attribute_at(self.snapshot.ast(self.file)?, self.token.start)
            && let Some(resolved) = self.meaning().value(value)
        {
            text.push_str(&format!("\n\nHere: `{}`, {}.", resolved.text, resolved.words));
        }
        Some(text)
    }

    fn block_kind(&self, kind: &str) -> Option<String> {
        let mut path = self.place.path();
        path.push(kind);
        let mut text = format!("**{kind}**\n\n{}", manual::block(&path)?);
        if let Some(example) = manual::example(kind).filter(|_| path.len() == 1) {
            text.push_str(&format!("\n\n```ent\n{example}\n```"));
        }
        Some(text)
    }

    /// `minimize` and `limit`, as the reference has them.
    fn entry_word(&self, word: &str) -> Option<String> {
        let entry = manual::attribute(&self.place.path(), word)?;
        Some(format!("**{word}**\n\n{}", entry.value))
    }

    fn metric(&self, word: &str) -> Option<String> {
        let (_, what) = METRICS.iter().find(|(name, _)| *name == word)?;
        let mut text = format!("**{word}**: {what}");
        let metric = Metric::ALL.iter().find(|m| m.word() == word)?;
        if let Some(plan) = self.planned.and_then(|p| p.plan.as_ref())
            && let Some(value) = placement::metric(plan, *metric)
        {
            text.push_str(&format!("\n\nIn the current plan: {value}{}.", self.age()));
        }
        Some(text)
    }

    /// What is to be said of a plan that was made before the last change.
    fn age(&self) -> &'static str {
        match self.planned {
            Some(planned) if !planned.is_of(self.snapshot) => " (before the last change)",
            _ => "",
        }
    }

    fn profile(&self, name: &str) -> Option<String> {
        let meaning = self.meaning();
        let boards = self.boards_in_question(&meaning);
        let shown: Vec<String> =
            boards.iter().filter_map(|board| Some(geometry::profile(board, board.profile(name)?))).collect();
        if shown.is_empty() {
            let ids: Vec<&str> = boards.iter().map(|b| b.id.as_str()).collect();
            return Some(format!("`{name}` is no MIG profile of {}", ids.join(", ")))
                .filter(|_| !ids.is_empty());
        }
        Some(shown.join("\n\n---\n\n"))
    }

    /// The boards that a profile may be of: the base of a `board` block, or those of the nodes.
    fn boards_in_question<'m>(&self, meaning: &'m Meaning<'_>) -> Vec<&'m Board> {
        let own = self.place.blocks.first().filter(|b| b.kind == "board").and_then(|b| b.name.as_deref());
        if let Some(board) = own.and_then(|name| meaning.board(name)) {
            return vec![board];
        }
        let mut boards: Vec<&Board> = Vec::new();
        for board in meaning.nodes().iter().filter_map(|node| meaning.board(&node.board)) {
            if !boards.iter().any(|known| known.id == board.id) {
                boards.push(board);
            }
        }
        if boards.is_empty() { meaning.boards().map(|(_, board)| board).collect() } else { boards }
    }

    fn import(&self, path: &str) -> Option<String> {
        if let Some(id) = path.strip_prefix("catalog:nvidia/") {
            let named = format!("\n\nNamed `{}` unless `as` gives another name.", id.replace('-', "_"));
            return device::board(id).map(|board| geometry::menu(&board) + &named);
        }
        let file = match path.starts_with("catalog:") {
            true => path.to_owned(),
            false => crate::features::links::target(self.snapshot, self.file, path)?,
        };
        let entries = curves::entries(&file);
        if entries.is_empty() {
            return Some(format!("`{file}`"));
        }
        Some(format!("Performance data of {} models: {}", entries.len(), entries.join(", ")))
    }

    /// An entry of performance data.
    fn member(&self, entry: &str) -> Option<String> {
        // `name . entry`: the sign is the token before, the name the one before that.
        let namespace = self.first.filter(|_| self.before == Some("."))?;
        let meaning = self.meaning();
        let file = meaning.performance().find(|(name, _)| *name == namespace).map(|(_, file)| file)?;
        curves::describe(file, entry, None)
    }

    /// A name that the program declares.
    fn name(&self) -> Option<String> {
        let names = Names::of(self.snapshot);
        let at = names.meant(self.file, self.token.start, self.text)?;
        let declared = names.same(at.sort, &at.name).find(|o| o.is_declaration());
        match at.sort {
            Sort::Value => self.value(at, declared),
            Sort::Board => self.meaning().board(&at.name).map(geometry::menu),
            Sort::Model => self.model(&at.name),
            Sort::Service => self.service(&at.name),
            Sort::Node => self.node(&at.name),
            Sort::Performance => {
                let meaning = self.meaning();
                let file = meaning.performance().find(|(name, _)| *name == at.name).map(|(_, f)| f)?;
                let entries = curves::entries(file).join(", ");
                Some(format!("Performance data from `{file}`: {entries}"))
            }
        }
    }

    fn value(&self, at: &Occurrence<'_>, declared: Option<&Occurrence<'_>>) -> Option<String> {
        let entry = self.snapshot.snippet(declared?.entry?);
        let shown = entry.lines().next().unwrap_or(entry);
        let mut text = format!("```ent\n{shown}\n```");
        if let Some(resolved) = self.meaning().named_value(&at.name) {
            text.push_str(&format!("\n\n`{}`, {}", resolved.text, resolved.words));
        }
        if shown.starts_with("param") {
            text.push_str(&format!("\n\n`--set {}=…` gives it another value.", at.name));
        }
        Some(text)
    }

    fn block(&self, kind: &str, name: &str) -> Option<&'a Item> {
        let items =
            self.snapshot.files().iter().filter_map(|f| self.snapshot.ast(*f)).flat_map(|ast| &ast.items);
        let mut items = items;
        items.find(|item| {
            matches!(&item.kind, ItemKind::Block(b) if b.kind.text == kind
                && b.name.as_ref().is_some_and(|n| n.text == name))
        })
    }

    fn model(&self, name: &str) -> Option<String> {
        let ItemKind::Block(block) = &self.block("model", name)?.kind else { return None };
        let meaning = self.meaning();
        let mut parts = Vec::new();
        for (file, entry) in entry::performance(block, &meaning, self.snapshot) {
            let entry = entry.as_deref().unwrap_or(name);
            let known = curves::describe(&file, entry, None);
            parts.push(known.unwrap_or_else(|| match file.ends_with(".csv") {
                true => format!("**{name}**: measured rows of `{file}`"),
                false => format!("`{entry}` is not in `{file}`"),
            }));
        }
        Some(if parts.is_empty() {
            format!("**{name}**: a model without `performance`")
        } else {
            parts.join("\n\n---\n\n")
        })
    }

    fn service(&self, name: &str) -> Option<String> {
        let ItemKind::Block(block) = &self.block("service", name)?.kind else { return None };
        let meaning = self.meaning();
        let mut text = format!("**{name}**\n\n{}", entry::promises(block, &meaning));
        if let Some(plan) = self.planned.and_then(|p| p.plan.as_ref())
            && let Some(described) = placement::describe(plan, name)
        {
            text.push_str(&format!("\n\n---\n\n{described}"));
            if !self.age().is_empty() {
                text.push_str("\n\nThe plan was made before the last change.");
            }
        }
        Some(text)
    }

    fn node(&self, name: &str) -> Option<String> {
        let meaning = self.meaning();
        let node = meaning.nodes().iter().find(|n| n.name == name)?;
        let count = node.n_boards.map_or_else(|| "?".to_owned(), |n| n.to_string());
        let mut text = format!("**{name}**: {count} × {}", node.board);
        if let Some(plan) = self.planned.and_then(|p| p.plan.as_ref()) {
            let used: Vec<_> = plan.gpus.iter().filter(|gpu| gpu.node == name).collect();
            let watts: f64 = used.iter().filter_map(|gpu| gpu.mean_power_w).sum();
            text.push_str(&format!(
                "\n\nIn the current plan {} of them are used, {watts:.1} W mean{}.",
                used.len(),
                self.age()
            ));
        }
        if let Some(board) = meaning.board(&node.board) {
            text.push_str(&format!("\n\n{}", geometry::menu(board)));
        }
        Some(text)
    }

    /// A word of the language where a word of a list is expected.
    fn plain_word(&self, word: &str) -> Option<String> {
        let Position::Value(value) = &self.place.position else { return None };
        let crate::place::Subject::Attribute(name) = &value.subject else { return None };
        let path = self.place.path();
        let what = match attribute(&path, name)?.expected {
            Expected::Choice(words) => words.iter().find(|(w, _)| *w == word).map(|(_, what)| *what)?,
            Expected::Arrivals => match word {
                "poisson" => "memoryless arrivals",
                "uniform" => "evenly spaced arrivals",
                _ => return None,
            },
            _ => return None,
        };
        Some(format!("`{word}`: {what}"))
    }

    /// What the smallest expression around the place is worth.
    fn worth(&self) -> Option<String> {
        let expr = entry::expression_at(self.snapshot.ast(self.file)?, self.token.start)?;
        let resolved = self.meaning().value(expr)?;
        let is_plain = matches!(expr.kind, ExprKind::Number { .. });
        let written = self.snapshot.snippet(expr.span);
        if is_plain && written == resolved.text {
            return Some(format!("`{written}`, {}", resolved.words));
        }
        Some(format!(
            "`{}` = `{}`, {}",
            written.split_whitespace().collect::<Vec<_>>().join(" "),
            resolved.text,
            resolved.words
        ))
    }
}

fn percentile(word: &str) -> String {
    format!("{} % of requests are answered within the bound", word.trim_start_matches('p'))
}

fn plain_call(name: &str, snippet: &str) -> String {
    let arguments = snippet.strip_prefix(name).unwrap_or("");
    let mut text = name.to_owned();
    let mut rest = arguments;
    while let Some((before, field)) = rest.split_once("${") {
        text.push_str(before);
        let (field, after) = field.split_once('}').unwrap_or((field, ""));
        text.push_str(field.split_once(':').map_or("", |(_, example)| example));
        rest = after;
    }
    text + rest
}

fn keyword(word: &str) -> Option<&'static str> {
    Some(match word {
        "let" => "`let NAME = VALUE` names a value",
        "param" => "`param NAME = VALUE` names a value that `--set NAME=VALUE` replaces",
        "import" => "`import \"PATH\"` brings boards, performance data or what another file declares",
        "as" => "`as NAME` gives what is imported another name",
        "x" => "`BOARD x COUNT`: how many boards",
        "over" => "`MASS over TIME`: the carbon of making a board, over its life",
        "step" => "`FROM .. TO step STEP`: the distance between two values",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
