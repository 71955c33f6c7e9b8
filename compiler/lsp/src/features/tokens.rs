//! A file → what each of its words is, for colours.
//!
//! Words are told apart by their place in the text, so that broken entries keep their colours; names by
//! what the program declares.

use crate::Snapshot;
use crate::names::{Names, Sort};
use crate::place::{Role, roles};
use ent_lang::ast::ItemKind;
use ent_plan::diagnostic::FileId;
use lsp_types::{
    SemanticToken, SemanticTokenModifier, SemanticTokenType, SemanticTokens, SemanticTokensLegend,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The kinds of tokens, in the order of their numbers.
#[derive(Clone, Copy)]
enum Kind {
    Namespace,
    Class,
    Struct,
    Function,
    Variable,
    Parameter,
    Property,
    EnumMember,
    Keyword,
    Comment,
    String,
    Number,
    Operator,
    Type,
    /// Not one of the protocol's own: `ms`, `req/s`.
    Unit,
}

const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const DEFAULT_LIBRARY: u32 = 4;

/// The kinds and modifiers of tokens.
#[must_use]
pub fn legend() -> SemanticTokensLegend {
    SemanticTokensLegend {
        token_types: vec![
            SemanticTokenType::NAMESPACE,
            SemanticTokenType::CLASS,
            SemanticTokenType::STRUCT,
            SemanticTokenType::FUNCTION,
            SemanticTokenType::VARIABLE,
            SemanticTokenType::PARAMETER,
            SemanticTokenType::PROPERTY,
            SemanticTokenType::ENUM_MEMBER,
            SemanticTokenType::KEYWORD,
            SemanticTokenType::COMMENT,
            SemanticTokenType::STRING,
            SemanticTokenType::NUMBER,
            SemanticTokenType::OPERATOR,
            SemanticTokenType::TYPE,
            SemanticTokenType::new("unit"),
        ],
        token_modifiers: vec![
            SemanticTokenModifier::DECLARATION,
            SemanticTokenModifier::READONLY,
            SemanticTokenModifier::DEFAULT_LIBRARY,
        ],
    }
}

/// What the names of a program are, by place and by word.
struct Known {
    by_start: BTreeMap<usize, (Sort, bool)>,
    by_word: BTreeMap<String, Sort>,
    params: BTreeSet<String>,
}

impl Known {
    fn of(snapshot: &Snapshot<'_>, file: FileId) -> Self {
        let names = Names::of(snapshot);
        let here = names.all.iter().filter(|o| o.span.file == file);
        let by_start = here.map(|o| (o.span.start as usize, (o.sort, o.is_declaration()))).collect();
        let by_word = names.declared().iter().map(|o| (o.name.to_string(), o.sort)).collect();
        let items = snapshot.files().iter().filter_map(|f| snapshot.ast(*f)).flat_map(|ast| &ast.items);
        let params = items.filter_map(|item| {
            let ItemKind::Param { name, .. } = &item.kind else { return None };
            Some(name.text.clone())
        });
        Self { by_start, by_word, params: params.collect() }
    }

    fn sort_kind(&self, sort: Sort, word: &str) -> (Kind, u32) {
        match sort {
            Sort::Value if self.params.contains(word) => (Kind::Parameter, 0),
            Sort::Value => (Kind::Variable, READONLY),
            Sort::Model => (Kind::Class, 0),
            Sort::Service => (Kind::Function, 0),
            Sort::Node => (Kind::Variable, 0),
            Sort::Board => (Kind::Struct, 0),
            Sort::Performance => (Kind::Namespace, 0),
        }
    }

    fn kind(&self, role: Role, start: usize, word: &str) -> Option<(Kind, u32)> {
        let known = self.by_start.get(&start).copied();
        Some(match role {
            Role::Comment => (Kind::Comment, 0),
            Role::Keyword | Role::BlockKind => (Kind::Keyword, 0),
            Role::Attribute | Role::ArgumentName => (Kind::Property, 0),
            Role::ImportPath => (Kind::String, 0),
            Role::Metric | Role::Percentile | Role::Profile => (Kind::EnumMember, 0),
            Role::Number => (Kind::Number, 0),
            Role::Unit => (Kind::Unit, 0),
            Role::Function => (Kind::Function, DEFAULT_LIBRARY),
            Role::ElementType => (Kind::Type, DEFAULT_LIBRARY),
            Role::Operator => (Kind::Operator, 0),
            Role::Member => (Kind::Property, READONLY),
            Role::Text if known.is_none() => (Kind::String, 0),
            Role::Unfinished | Role::Other => return None,
            Role::Declared | Role::Alias | Role::BlockName | Role::Name | Role::Text => match known {
                Some((sort, is_declaration)) => {
                    let (kind, modifiers) = self.sort_kind(sort, word);
                    (kind, modifiers | if is_declaration { DECLARATION } else { 0 })
                }
                // The entry is broken, or the word is one of the language.
                None => match self.by_word.get(word) {
                    Some(sort) => self.sort_kind(*sort, word),
                    None if role == Role::Name => (Kind::EnumMember, DEFAULT_LIBRARY),
                    None => (Kind::Variable, DECLARATION),
                },
            },
        })
    }
}

/// The tokens that a range of bytes touches.
#[must_use]
pub fn tokens(snapshot: &Snapshot<'_>, file: FileId, bytes: Range<usize>) -> SemanticTokens {
    let text = snapshot.text(file);
    let Some(lines) = snapshot.lines(file) else { return SemanticTokens::default() };
    let encoding = snapshot.workspace.encoding;
    let known = Known::of(snapshot, file);
    let length = |from: usize, to: usize| encoding.length(text.get(from..to).unwrap_or(""));
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let mut data = Vec::new();
    // Where the last token began: its line, byte and column.
    let (mut last_line, mut last_column) = (0, 0);
    let (mut at, mut column) = (0, 0);
    let mut line = 0;
    for (token, role) in roles(text) {
        if token.end <= bytes.start || token.start >= bytes.end {
            continue;
        }
        let Some((kind, modifiers)) = known.kind(role, token.start, token.text(text)) else { continue };
        let own_line = lines.line_of(token.start);
        if own_line != line {
            line = own_line;
            (at, column) = (lines.line(text, line).start, 0);
        }
        // Counted from the token before it: a long line is read once.
        column += length(at, token.start);
        at = token.start;
        let is_same_line = line == last_line;
        data.push(SemanticToken {
            delta_line: number(line - last_line),
            delta_start: number(if is_same_line { column - last_column } else { column }),
            length: number(length(token.start, token.end)),
            token_type: kind as u32,
            token_modifiers_bitset: modifiers,
        });
        (last_line, last_column) = (line, column);
    }
    SemanticTokens { result_id: None, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::World;
    use lsp_types::Position;

    /// The tokens as words with their kinds.
    fn shown(text: &str) -> Vec<String> {
        let world = World::of(text);
        let legend = legend();
        let (mut line, mut column) = (0, 0);
        let mut words = Vec::new();
        for token in tokens(&world.snapshot(), world.file, 0..text.len()).data {
            line += token.delta_line;
            column = if token.delta_line > 0 { token.delta_start } else { column + token.delta_start };
            let at = |character| Position { line, character };
            let range = lsp_types::Range { start: at(column), end: at(column + token.length) };
            let kind = legend.token_types[token.token_type as usize].as_str().to_owned();
            words.push(format!("{} {kind} {}", world.text(world.file, range), token.token_modifiers_bitset));
        }
        words
    }

    #[test]
    fn names_have_the_kinds_of_what_they_name_also_in_broken_entries() {
        let text = "param load = 50% // 😀\nlet peak = 3 req/s\nmodel m {}\n\
                    service \"😀\" { model = m, rate = load * , arrivals = poisson }\n";
        assert_eq!(
            shown(text),
            [
                "param keyword 0",
                "load parameter 1",
                "= operator 0",
                "50 number 0",
                "% unit 0",
                "// 😀 comment 0",
                "let keyword 0",
                "peak variable 3",
                "= operator 0",
                "3 number 0",
                "req unit 0",
                "/ unit 0",
                "s unit 0",
                "model keyword 0",
                "m class 1",
                "service keyword 0",
                "\"😀\" function 1",
                "model property 0",
                "= operator 0",
                "m class 0",
                "rate property 0",
                "= operator 0",
                "load parameter 0",
                "* operator 0",
                "arrivals property 0",
                "= operator 0",
                "poisson enumMember 4",
            ]
        );
    }

    #[test]
    fn a_range_has_the_tokens_it_touches() {
        let world = World::of("let a = 1\nlet b = 2\nlet c = 3\n");
        let found = tokens(&world.snapshot(), world.file, 10..19);
        assert_eq!(found.data.len(), 4);
        assert_eq!((found.data[0].delta_line, found.data[0].delta_start), (1, 0));
    }
}
