//! A place in a program → what could be written there.
//!
//! Reads the tokens around the place, so that it works where the text is broken, and the trees of the
//! program for the names that there are. Compatible and likely items come first; each says what it is.

#![expect(clippy::wildcard_enum_match_arm, reason = "most words are no entries")]

mod paths;
mod values;

use crate::Snapshot;
use crate::manual;
use crate::names::{Names, Sort};
use crate::place::{Place, Position, Role, place, roles};
use crate::vocabulary::{Attribute, METRICS, attributes, inner_blocks};
use ent_lang::ast::{Item, ItemKind};
use ent_lang::meaning::Meaning;
use ent_lang::vocabulary::{BLOCKS, contents};
use ent_plan::diagnostic::FileId;
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemLabelDetails, CompletionList, CompletionTextEdit,
    Documentation, InsertTextFormat, MarkupContent, MarkupKind, TextEdit,
};
use std::ops::Range;

/// At most this many items are sent; typing on asks again.
const MAX_ITEMS: usize = 400;

/// What could be written at a byte. Without `with_snippets` items are plain text.
#[must_use]
pub fn completion(
    snapshot: &Snapshot<'_>,
    file: FileId,
    offset: usize,
    with_snippets: bool,
) -> CompletionList {
    let text = snapshot.text(file);
    let place = place(text, offset);
    let mut asked = Asked {
        snapshot,
        file,
        text,
        place: &place,
        replace: place.replace.clone(),
        offers: Vec::new(),
        meaning: None,
    };
    asked.offer_all();
    let mut offers = std::mem::take(&mut asked.offers);
    offers.sort_by_key(|o| o.rank);
    let typed = text.get(asked.replace.start..offset.max(asked.replace.start)).unwrap_or("").to_lowercase();
    let is_incomplete = offers.len() > MAX_ITEMS;
    if is_incomplete {
        offers.retain(|o| is_like(&o.label.to_lowercase(), &typed));
        offers.truncate(MAX_ITEMS);
    }
    let items = offers.into_iter().enumerate().map(|(i, o)| asked.item(i, o, with_snippets)).collect();
    CompletionList { is_incomplete, items }
}

/// Adds what an item leaves out until it is looked at: nothing, items are whole.
#[must_use]
pub fn resolve(item: CompletionItem) -> CompletionItem {
    item
}

/// Whether the letters of `typed` stand in `label` in this order, as editors filter.
fn is_like(label: &str, typed: &str) -> bool {
    let mut letters = label.chars();
    typed.chars().all(|c| letters.any(|l| l == c))
}

/// Something that could be written.
struct Offer {
    label: String,
    kind: CompletionItemKind,
    /// What it is, in a few words.
    detail: String,
    /// What it means, as Markdown.
    documentation: String,
    /// What is written, as a snippet; the label when `None`.
    snippet: Option<String>,
    /// What is typed to find it; the label when `None`.
    filter: Option<String>,
    /// An import that is added with it.
    import: Option<String>,
    /// Lower comes first.
    rank: u32,
}

impl Offer {
    fn new(label: impl Into<String>, kind: CompletionItemKind, rank: u32) -> Self {
        Self {
            label: label.into(),
            kind,
            detail: String::new(),
            documentation: String::new(),
            snippet: None,
            filter: None,
            import: None,
            rank,
        }
    }

    fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    fn documentation(mut self, documentation: impl Into<String>) -> Self {
        self.documentation = documentation.into();
        self
    }

    fn snippet(mut self, snippet: impl Into<String>) -> Self {
        self.snippet = Some(snippet.into());
        self
    }

    fn import(mut self, path: impl Into<String>) -> Self {
        self.import = Some(path.into());
        self
    }
}

/// An entry beside the one that is typed, and its value's text if that is one word.
struct Sibling<'t> {
    name: &'t str,
    value: Option<&'t str>,
}

/// One question.
struct Asked<'a, 's> {
    snapshot: &'s Snapshot<'a>,
    file: FileId,
    text: &'a str,
    place: &'s Place,
    /// What is replaced by what is taken.
    replace: Range<usize>,
    offers: Vec<Offer>,
    meaning: Option<Meaning<'a>>,
}

impl<'a> Asked<'a, '_> {
    fn offer(&mut self, offer: Offer) {
        self.offers.push(offer);
    }

    fn offer_all(&mut self) {
        match &self.place.position {
            Position::Entry if self.place.blocks.is_empty() => self.file_entries(),
            Position::Entry => self.block_entries(),
            Position::BlockName { kind } => self.block_names(kind.clone()),
            Position::ImportPath => self.import_paths(),
            Position::AfterImportPath => {
                let offer = Offer::new("as", CompletionItemKind::KEYWORD, 0);
                self.offer(offer.detail("gives what is imported another name").snippet("as ${1:name}"));
            }
            Position::Metric => self.metrics(),
            Position::Value(value) => self.values(value.clone()),
            Position::NewName | Position::Comment | Position::Nothing => {}
        }
    }

    /// What the names of the program mean.
    fn meaning(&mut self) -> &Meaning<'a> {
        let snapshot = self.snapshot;
        self.meaning.get_or_insert_with(|| {
            Meaning::of(snapshot.sources(), snapshot.files().iter().filter_map(|file| snapshot.ast(*file)))
        })
    }

    fn names(&self) -> Names<'a> {
        Names::of(self.snapshot)
    }

    /// The entries at the top of all files of the program.
    fn top_items(&self) -> impl Iterator<Item = &'a Item> {
        let snapshot = *self.snapshot;
        snapshot.files().iter().filter_map(move |file| snapshot.ast(*file)).flat_map(|ast| &ast.items)
    }

    fn file_entries(&mut self) {
        let is_there = |kind: &str| {
            self.top_items().any(|item| matches!(&item.kind, ItemKind::Block(b) if b.kind.text == kind))
        };
        let missing: Vec<&'static str> = BLOCKS
            .iter()
            .copied()
            .filter(|kind| !matches!(*kind, "carbon" | "objective") || !is_there(kind))
            .collect();
        for kind in missing {
            let rank = ["service", "model", "hardware"].iter().position(|k| *k == kind).unwrap_or(4);
            let documentation = match manual::example(kind) {
                Some(example) => {
                    format!("{}\n\n```ent\n{example}\n```", manual::block(&[kind]).unwrap_or_default())
                }
                None => manual::block(&[kind]).unwrap_or_default(),
            };
            let offer = Offer::new(kind, CompletionItemKind::CLASS, u32::try_from(rank).unwrap_or(4))
                .detail("block")
                .documentation(documentation)
                .snippet(block_snippet(&[kind]));
            self.offer(offer);
        }
        for (word, snippet, what) in [
            ("let", "let ${1:name} = $0", "names a value"),
            ("param", "param ${1:name} = $0", "names a value that `--set` can replace"),
            ("import", "import \"$0\"", "brings boards, performance data or another file"),
        ] {
            let offer = Offer::new(word, CompletionItemKind::KEYWORD, 5).detail(what).snippet(snippet);
            self.offer(offer);
        }
    }

    fn block_entries(&mut self) {
        let path = self.place.path();
        let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let there: Vec<String> = self.siblings().iter().map(|s| s.name.to_owned()).collect();
        let is_there = |name: &str| there.iter().any(|t| t == name);
        let is_assigned = self.rest_of_line().starts_with('=');
        let missing: Vec<&Attribute> = attributes(&path).iter().filter(|a| !is_there(a.name)).collect();
        for (i, attribute) in missing.into_iter().enumerate() {
            let entry = manual::attribute(&path, attribute.name);
            let value = entry.as_ref().map_or("", |e| e.value.as_str());
            let default = entry.as_ref().and_then(|e| e.default.as_deref());
            let mut documentation = value.to_owned();
            if let Some(default) = default.filter(|d| *d != "required") {
                documentation.push_str(&format!("\n\nUnless given: {default}."));
            }
            let rank = u32::from(!attribute.is_required) * 100 + u32::try_from(i).unwrap_or(99);
            let offer = Offer::new(attribute.name, CompletionItemKind::FIELD, rank)
                .detail(if attribute.is_required { "required" } else { "attribute" })
                .documentation(documentation);
            self.offer(if is_assigned {
                offer
            } else {
                offer.snippet(format!("{} = {}", attribute.name, attribute.snippet))
            });
        }
        let repeated = contents(&path).map_or(&[][..], |c| c.repeated_blocks);
        for inner in inner_blocks(&path) {
            if is_there(inner) && !repeated.contains(&inner) {
                continue;
            }
            let inner_path: Vec<&str> = path.iter().copied().chain([inner]).collect();
            let rank = if path == ["hardware"] { 0 } else { 200 };
            let offer = Offer::new(inner, CompletionItemKind::CLASS, rank)
                .detail("block")
                .documentation(manual::block(&inner_path).unwrap_or_default())
                .snippet(block_snippet(&inner_path));
            self.offer(offer);
        }
        if contents(&path).is_some_and(|c| c.has_objective) {
            for (word, snippet) in [("minimize", "minimize ${1:energy}"), ("limit", "limit ${1:power} <= $0")]
            {
                if word == "minimize" && is_there(word) {
                    continue;
                }
                let documentation = manual::attribute(&path, word).map(|e| e.value).unwrap_or_default();
                let offer = Offer::new(word, CompletionItemKind::KEYWORD, 0).snippet(snippet);
                self.offer(offer.documentation(documentation).detail("entry"));
            }
        }
    }

    /// The entries of the innermost block, without the one that is typed.
    fn siblings(&self) -> Vec<Sibling<'a>> {
        let Some(block) = self.place.blocks.last() else { return Vec::new() };
        self.entries_from(block.start)
    }

    /// The entries of the block around the innermost one, or whichever starts there.
    fn entries_from(&self, start: usize) -> Vec<Sibling<'a>> {
        let mut found: Vec<Sibling<'a>> = Vec::new();
        let mut depth = 0;
        let all = roles(self.text);
        let from = all.partition_point(|(token, _)| token.start < start);
        for (i, (token, role)) in all.iter().enumerate().skip(from) {
            let word = token.text(self.text);
            if token.is(self.text, "{") {
                depth += 1;
            } else if token.is(self.text, "}") {
                depth -= 1;
                if depth < 0 {
                    break;
                }
            }
            if depth > 0 || token.start == self.place.entry_start {
                continue;
            }
            match role {
                Role::Attribute => {
                    let value = all.get(i + 2).map(|(token, _)| token.text(self.text));
                    found.push(Sibling { name: word, value });
                }
                // A block at the margin is no entry of one that was left open.
                Role::BlockKind if BLOCKS.contains(&word) => break,
                Role::BlockKind => found.push(Sibling { name: word, value: None }),
                Role::Keyword if matches!(word, "minimize" | "limit") => {
                    let value = all.get(i + 1).map(|(token, _)| token.text(self.text));
                    found.push(Sibling { name: word, value });
                }
                _ => {}
            }
        }
        found
    }

    /// What stands behind the word that is typed, on its line.
    fn rest_of_line(&self) -> &'a str {
        self.text.get(self.place.replace.end..).unwrap_or("").trim_start_matches([' ', '\t'])
    }

    fn block_names(&mut self, kind: String) {
        match (kind.as_str(), self.place.path().as_slice()) {
            ("profile", ["board"]) => {
                let base = self.siblings().iter().find(|s| s.name == "base").and_then(|s| s.value);
                let boards: Vec<String> = base.into_iter().map(str::to_owned).collect();
                self.profiles(&boards);
            }
            ("model", []) => {
                let known = self.names();
                let files: Vec<String> =
                    self.meaning().performance().map(|(_, file)| file.to_owned()).collect();
                for file in files {
                    for model in crate::curves::entries(&file) {
                        if known.same(Sort::Model, &model).next().is_none() {
                            let offer = Offer::new(model, CompletionItemKind::VALUE, 0);
                            self.offer(offer.detail(format!("measured in {file}")));
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn metrics(&mut self) {
        let is_limit = self.text.get(self.place.entry_start..).is_some_and(|rest| rest.starts_with("limit"));
        let there: Vec<Option<&str>> = match is_limit {
            true => self.siblings().iter().filter(|s| s.name == "limit").map(|s| s.value).collect(),
            false => Vec::new(),
        };
        for (i, (metric, what)) in METRICS.iter().enumerate() {
            if !there.contains(&Some(metric)) {
                let rank = u32::try_from(i).unwrap_or(9);
                let offer = Offer::new(*metric, CompletionItemKind::ENUM_MEMBER, rank).detail("metric");
                self.offer(offer.documentation(*what));
            }
        }
    }

    fn item(&self, number: usize, offer: Offer, with_snippets: bool) -> CompletionItem {
        let range = self.snapshot.workspace.range(self.file, self.replace.clone());
        let (new_text, format) = match offer.snippet {
            Some(snippet) if with_snippets => (snippet, InsertTextFormat::SNIPPET),
            Some(snippet) => (plain(&snippet), InsertTextFormat::PLAIN_TEXT),
            None => (offer.label.clone(), InsertTextFormat::PLAIN_TEXT),
        };
        let markdown =
            |value: String| Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value });
        let additional = offer.import.map(|path| vec![self.import_edit(&path)]);
        CompletionItem {
            label_details: additional.is_some().then(|| CompletionItemLabelDetails {
                detail: None,
                description: Some("adds its import".to_owned()),
            }),
            label: offer.label,
            kind: Some(offer.kind),
            detail: Some(offer.detail).filter(|d| !d.is_empty()),
            documentation: Some(offer.documentation).filter(|d| !d.is_empty()).map(markdown),
            sort_text: Some(format!("{number:04}")),
            filter_text: offer.filter,
            insert_text_format: Some(format),
            text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text })),
            additional_text_edits: additional,
            ..CompletionItem::default()
        }
    }

    /// The edit that adds an import below those that are there.
    fn import_edit(&self, path: &str) -> TextEdit {
        let last = self.snapshot.ast(self.file).and_then(|ast| {
            let is_import = |item: &&Item| matches!(item.kind, ItemKind::Import { .. });
            ast.items.iter().rev().find(is_import).map(|item| item.span.end as usize)
        });
        let (at, new_text) = match last {
            Some(end) => {
                let rest = self.text.get(end..).unwrap_or("");
                let at = rest.find(['\n', '\r']).map_or(self.text.len(), |to_line_end| end + to_line_end);
                (at, format!("\nimport \"{path}\""))
            }
            None => (0, format!("import \"{path}\"\n")),
        };
        TextEdit { range: self.snapshot.workspace.range(self.file, at..at), new_text }
    }
}

/// A block with its required attributes.
fn block_snippet(path: &[&str]) -> String {
    let kind = path.last().copied().unwrap_or("");
    match path {
        ["service"] => "service ${1:name} {\n  model   = ${2:model}\n  rate    = ${3:100} req/s\n  latency = p${4:99} <= ${5:50} ms\n}$0".to_owned(),
        ["model"] => "model ${1:name} { performance = $0 }".to_owned(),
        ["hardware"] => "hardware {\n  node \"${1:box-0}\" {\n    gpu = ${2:board} x ${3:8}\n  }\n}$0".to_owned(),
        ["hardware", "node"] => "node \"${1:box-0}\" {\n  gpu = ${2:board} x ${3:8}\n}$0".to_owned(),
        ["board"] => "board ${1:name} {\n  base = ${2:board}\n  $0\n}".to_owned(),
        ["board", "profile"] => "profile ${1:1g.10gb} { sms = ${2:14} }$0".to_owned(),
        ["service", "pin"] => "pin { $0 }".to_owned(),
        ["carbon"] => "carbon {\n  intensity = ${1:490} gCO2/kWh\n}$0".to_owned(),
        ["objective"] => "objective {\n  minimize ${1|energy,power,carbon,gpus,cost|}\n}$0".to_owned(),
        _ => format!("{kind} {{\n  $0\n}}"),
    }
}

/// A snippet as plain text: the first choice of each place, and its example.
fn plain(snippet: &str) -> String {
    let mut text = String::with_capacity(snippet.len());
    let mut rest = snippet;
    while let Some(at) = rest.find('$') {
        text.push_str(rest.get(..at).unwrap_or(""));
        rest = rest.get(at + 1..).unwrap_or("");
        if let Some(inside) = rest.strip_prefix('{') {
            let end = inside.find('}').unwrap_or(inside.len());
            let field = inside.get(..end).unwrap_or("");
            let shown = field.trim_start_matches(|c: char| c.is_ascii_digit());
            let shown = shown.trim_start_matches([':', '|']);
            text.push_str(shown.split([',', '|']).next().unwrap_or(""));
            // An example may hold a comma of its own: only choices end with a bar.
            if !field.ends_with('|') {
                text.push_str(shown.strip_prefix(shown.split([',', '|']).next().unwrap_or("")).unwrap_or(""));
            }
            rest = inside.get(end + 1..).unwrap_or("");
        } else {
            rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        }
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests;
